/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/indexes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

/* Names of workloads are cut at 1023 bytes where they are made. */
#define KEY_MAX 1088

struct index_entry {
	struct index_entry *next; /* of those that have the same */
	const char *uid;	  /* in `text`, behind the key */
	uint32_t index;
	uint32_t len; /* of the key */
	char text[];
};

static size_t make_key(char key[KEY_MAX], const char *workload, uint32_t index)
{
	int n = snprintf(key, KEY_MAX, "%u %s", index, workload);

	return n < 0 ? 0 : MIN((size_t)n, (size_t)KEY_MAX - 1);
}

static const char *workload_of(const struct index_entry *e)
{
	return strchr(e->text, ' ') + 1;
}

void indexes_init(struct indexes *set, uint64_t seed)
{
	*set = (struct indexes){ 0 };
	map_init(&set->by_key, seed);
	map_init(&set->by_uid, seed);
}

void indexes_done(struct indexes *set)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&set->by_uid, &at, &entry);)
		free(entry.value);
	map_done(&set->by_key);
	map_done(&set->by_uid);
}

static struct index_entry *entry_of(const struct indexes *set, const char *uid)
{
	return map_get(&set->by_uid, uid, strlen(uid));
}

bool indexes_taken(const struct indexes *set, const char *workload, uint32_t index,
		   const char *reader)
{
	char key[KEY_MAX];
	const struct index_entry *first =
		map_get(&set->by_key, key, make_key(key, workload, index));

	return first && (first->next || !reader || strcmp(first->uid, reader) != 0);
}

uint32_t indexes_of(const struct indexes *set, const char *workload, const char *uid)
{
	const struct index_entry *e = entry_of(set, uid);

	return e && strcmp(workload_of(e), workload) == 0 ? e->index : INDEXES_NONE;
}

static struct index_entry *entry_new(const char *workload, uint32_t index, const char *uid)
{
	char key[KEY_MAX];
	size_t len = make_key(key, workload, index), uid_size = strlen(uid) + 1;
	struct index_entry *e = calloc(1, sizeof(*e) + len + 1 + uid_size);

	if (!e)
		return NULL;
	e->index = index;
	e->len = (uint32_t)len;
	memcpy(e->text, key, len);
	e->uid = memcpy(e->text + len + 1, uid, uid_size);
	return e;
}

/* Second of those that have the index: the map's key is the memory of the first. */
static int link_key(struct indexes *set, struct index_entry *e)
{
	struct index_entry *first = map_get(&set->by_key, e->text, e->len);

	if (!first)
		return map_put(&set->by_key, e->text, e->len, e);
	e->next = first->next;
	first->next = e;
	return 0;
}

static void unlink_key(struct indexes *set, struct index_entry *e)
{
	struct index_entry *first = map_get(&set->by_key, e->text, e->len);

	if (first != e) {
		while (first->next != e)
			first = first->next;
		first->next = e->next;
		return;
	}
	map_del(&set->by_key, e->text, e->len);
	/* One entry has just left the map: there is room. */
	if (e->next && map_put(&set->by_key, e->next->text, e->len, e->next) < 0)
		abort();
}

static int add(struct indexes *set, struct index_entry *e)
{
	if (link_key(set, e) < 0)
		return -ENOMEM;
	if (map_put(&set->by_uid, e->uid, strlen(e->uid), e) == 0)
		return 0;
	unlink_key(set, e);
	return -ENOMEM;
}

int indexes_take(struct indexes *set, const char *workload, uint32_t index, const char *uid)
{
	const struct index_entry *had = entry_of(set, uid);
	struct index_entry *e;

	if (had && had->index == index && strcmp(workload_of(had), workload) == 0)
		return 0;
	e = entry_new(workload, index, uid);
	indexes_drop(set, uid);
	if (!e || add(set, e) < 0) {
		free(e);
		return -ENOMEM;
	}
	return 0;
}

void indexes_drop(struct indexes *set, const char *uid)
{
	struct index_entry *e = entry_of(set, uid);

	if (!e)
		return;
	map_del(&set->by_uid, e->uid, strlen(e->uid));
	unlink_key(set, e);
	if (set->freed)
		set->freed(set->context, workload_of(e), e->index);
	free(e);
}
