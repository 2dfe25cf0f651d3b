/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/indexes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

/* Names of workloads are cut at 1023 bytes where they are made. */
#define KEY_MAX 1088

struct index_pod {
	struct index_entry *entries;
	char uid[];
};

struct index_entry {
	struct index_entry *of_pod; /* the next of the same pod */
	struct index_entry *of_key; /* the next that has the same index */
	uint32_t len;
	char key[];
};

static size_t make_key(char key[KEY_MAX], const char *workload, uint32_t index)
{
	int n = snprintf(key, KEY_MAX, "%u %s", index, workload);

	return n < 0 ? 0 : MIN((size_t)n, (size_t)KEY_MAX - 1);
}

void indexes_init(struct indexes *set, uint64_t seed)
{
	map_init(&set->by_key, seed);
	map_init(&set->by_uid, seed);
}

void indexes_done(struct indexes *set)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&set->by_uid, &at, &entry);) {
		struct index_pod *pod = entry.value;

		for (struct index_entry *e = pod->entries, *next; e; e = next) {
			next = e->of_pod;
			free(e);
		}
		free(pod);
	}
	map_done(&set->by_key);
	map_done(&set->by_uid);
}

bool indexes_taken(const struct indexes *set, const char *workload, uint32_t index)
{
	char key[KEY_MAX];

	return map_get(&set->by_key, key, make_key(key, workload, index)) != NULL;
}

static struct index_pod *pod_get(struct indexes *set, const char *uid)
{
	size_t len = strlen(uid);
	struct index_pod *pod = map_get(&set->by_uid, uid, len);

	if (pod)
		return pod;
	pod = calloc(1, sizeof(*pod) + len + 1);
	if (!pod)
		return NULL;
	memcpy(pod->uid, uid, len);
	if (map_put(&set->by_uid, pod->uid, len, pod) == 0)
		return pod;
	free(pod);
	return NULL;
}

static void pod_forget(struct indexes *set, struct index_pod *pod)
{
	if (pod->entries)
		return;
	map_del(&set->by_uid, pod->uid, strlen(pod->uid));
	free(pod);
}

/* First of those that have the index.  The map's key is the memory of the first. */
static int entry_link(struct indexes *set, struct index_entry *e)
{
	struct index_entry *first = map_get(&set->by_key, e->key, e->len);

	if (first) {
		e->of_key = first->of_key;
		first->of_key = e;
		return 0;
	}
	return map_put(&set->by_key, e->key, e->len, e);
}

static void entry_unlink(struct indexes *set, struct index_entry *e)
{
	struct index_entry *first = map_get(&set->by_key, e->key, e->len);

	if (first != e) {
		while (first->of_key != e)
			first = first->of_key;
		first->of_key = e->of_key;
		return;
	}
	map_del(&set->by_key, e->key, e->len);
	/* One entry has just left the map: there is room. */
	if (e->of_key && map_put(&set->by_key, e->of_key->key, e->len, e->of_key) < 0)
		abort();
}

int indexes_take(struct indexes *set, const char *workload, uint32_t index, const char *uid)
{
	char key[KEY_MAX];
	size_t len = make_key(key, workload, index);
	struct index_pod *pod = pod_get(set, uid);
	struct index_entry *e;

	if (!pod)
		return -ENOMEM;
	for (e = pod->entries; e; e = e->of_pod)
		if (e->len == len && memcmp(e->key, key, len) == 0)
			return 0;
	e = calloc(1, sizeof(*e) + len + 1);
	if (e) {
		memcpy(e->key, key, len);
		e->len = (uint32_t)len;
	}
	if (!e || entry_link(set, e) < 0) {
		free(e);
		pod_forget(set, pod);
		return -ENOMEM;
	}
	e->of_pod = pod->entries;
	pod->entries = e;
	return 0;
}

void indexes_drop(struct indexes *set, const char *uid)
{
	struct index_pod *pod = map_get(&set->by_uid, uid, strlen(uid));

	if (!pod)
		return;
	while (pod->entries) {
		struct index_entry *e = pod->entries;

		pod->entries = e->of_pod;
		entry_unlink(set, e);
		free(e);
	}
	pod_forget(set, pod);
}
