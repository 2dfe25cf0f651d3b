/* SPDX-License-Identifier: Apache-2.0 */
/* locks_state.c - entries in memory, found by their pod and by their gang. */
#include "scheduler/locks_private.h"

#include "kube/write.h"
#include "wire/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t text_bytes(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static const char *put_text(char **at, const char *s)
{
	size_t bytes = text_bytes(s);
	char *copy = *at;

	if (!s)
		return NULL;
	memcpy(copy, s, bytes);
	*at += bytes;
	return copy;
}

static size_t record_bytes(const struct lock_entry *entry, const struct lock_hold *holds,
			   uint32_t count)
{
	size_t bytes = sizeof(struct record) + count * sizeof(*holds) + text_bytes(entry->uid) +
		       text_bytes(entry->namespace) + text_bytes(entry->name) +
		       text_bytes(entry->version) + text_bytes(entry->gang) +
		       text_bytes(entry->map);

	for (uint32_t i = 0; i < count; i++)
		bytes += text_bytes(holds[i].uuid) + text_bytes(holds[i].mig_profile);
	/* "<namespace>/<gang>" */
	return bytes + (entry->gang ? text_bytes(entry->namespace) + text_bytes(entry->gang) : 0);
}

static void put_strings(struct record *record, struct lock_hold *holds, char *at)
{
	struct lock_entry *entry = &record->entry;

	entry->uid = put_text(&at, entry->uid);
	entry->namespace = put_text(&at, entry->namespace);
	entry->name = put_text(&at, entry->name);
	entry->version = put_text(&at, entry->version);
	entry->gang = put_text(&at, entry->gang);
	entry->map = put_text(&at, entry->map);
	for (uint32_t i = 0; i < entry->holds_count; i++) {
		holds[i].uuid = put_text(&at, holds[i].uuid);
		holds[i].mig_profile = put_text(&at, holds[i].mig_profile);
	}
	record->key[BY_POD] = entry->uid;
	if (!entry->gang)
		return;
	record->key[BY_GANG] = at;
	put_text(&at, entry->namespace);
	at[-1] = '/';
	put_text(&at, entry->gang);
}

struct record *record_new(const struct lock_entry *entry, const struct lock_hold *holds,
			  uint32_t holds_count)
{
	struct record *record = malloc(record_bytes(entry, holds, holds_count));

	if (!record)
		return NULL;
	*record = (struct record){ .entry = *entry };
	struct lock_hold *copies = (struct lock_hold *)(record + 1);
	if (holds_count)
		memcpy(copies, holds, holds_count * sizeof(*holds));
	record->entry.holds = copies;
	record->entry.holds_count = holds_count;
	link_init(&record->due);
	put_strings(record, copies, (char *)(copies + holds_count));
	return record;
}

struct record *records_of(const struct locks *locks, enum record_chain chain, const char *key)
{
	return map_get(&locks->chains[chain], key, strlen(key));
}

/* The key belongs to the first of the chain: another first, another key. */
static int chain_add(struct locks *locks, struct record *record, enum record_chain chain)
{
	const char *key = record->key[chain];

	if (!key)
		return 0;
	struct record *first = records_of(locks, chain, key);
	if (!first)
		return map_put(&locks->chains[chain], key, strlen(key), record);
	record->prev[chain] = first;
	record->next[chain] = first->next[chain];
	if (first->next[chain])
		first->next[chain]->prev[chain] = record;
	first->next[chain] = record;
	return 0;
}

static void chain_remove(struct locks *locks, struct record *record, enum record_chain chain)
{
	struct map *map = &locks->chains[chain];
	struct record *next = record->next[chain];
	const char *key = record->key[chain];

	if (!key)
		return;
	if (next)
		next->prev[chain] = record->prev[chain];
	if (record->prev[chain]) {
		record->prev[chain]->next[chain] = next;
		return;
	}
	map_del(map, key, strlen(key));
	/* A slot has just become free, so this takes no memory. */
	if (next)
		(void)map_put(map, next->key[chain], strlen(next->key[chain]), next);
}

static void count_records(struct locks *locks, int by)
{
	locks->records += (uint32_t)by;
	if (locks->metrics.held)
		metric_set(locks->metrics.held, METRIC_NO_LABELS, locks->records);
}

int lock_record_enter(struct record *record)
{
	struct locks *locks = record->cell->locks;

	if (chain_add(locks, record, BY_POD) < 0)
		return -ENOMEM;
	if (chain_add(locks, record, BY_GANG) < 0) {
		chain_remove(locks, record, BY_POD);
		return -ENOMEM;
	}
	record->listed = true;
	record->serial = ++locks->serial;
	count_records(locks, 1);
	return 0;
}

static bool is_doomed(const struct record *record)
{
	return record->dead || record->leaving;
}

void lock_record_leave(struct record *record)
{
	struct locks *locks = record->cell->locks;

	if (!record->listed)
		return;
	record->listed = false;
	locks->doomed -= is_doomed(record);
	chain_remove(locks, record, BY_POD);
	chain_remove(locks, record, BY_GANG);
	count_records(locks, -1);
}

void record_free(struct record *record)
{
	if (!record)
		return;
	if (record->judging) {
		kube_write_cancel(record->judging);
		record->cell->locks->writes--;
	}
	if (record->listed)
		lock_record_leave(record);
	link_leave(&record->due);
	free(record);
}

void record_set_leaving(struct record *record, bool leaving)
{
	uint32_t before = is_doomed(record);

	if (leaving && !before)
		record->dead_serial = ++record->cell->locks->serial;
	record->leaving = leaving;
	if (record->listed)
		record->cell->locks->doomed += (uint32_t)is_doomed(record) - before;
}

void record_set_dead(struct record *record)
{
	struct locks *locks = record->cell->locks;

	if (!is_doomed(record)) {
		locks->doomed++;
		record->dead_serial = ++locks->serial;
	}
	record->dead = true;
}

bool record_same_try(const struct record *a, const struct record *b)
{
	return a->entry.attempt == b->entry.attempt && strcmp(a->entry.uid, b->entry.uid) == 0 &&
	       strcmp(a->entry.version, b->entry.version) == 0 &&
	       strcmp(a->cell->node, b->cell->node) == 0;
}

enum lock_pod record_pod(const struct record *record)
{
	const struct locks_options *options = &record->cell->locks->options;

	return options->pod(options->context, record->cell->node, &record->entry);
}

/* Of a gang nobody loses its entry while the Binding of another may be under way: that one
 * would be bound without the whole gang being locked.  Those that came after this one was given
 * up, or found dead, are of another try, which does not count on it: it may even wait for it to
 * go. */
bool record_can_go(struct record *record)
{
	struct locks *locks = record->cell->locks;

	if (!record->dead || !record->key[BY_GANG])
		return record->dead;
	for (struct record *mate = records_of(locks, BY_GANG, record->key[BY_GANG]); mate;
	     mate = mate->next[BY_GANG]) {
		if (mate->dead || mate->bound || mate->serial > record->dead_serial)
			continue;
		mate->bound = record_pod(mate) == LOCK_POD_BOUND;
		if (!mate->bound)
			return false;
	}
	return mates_fenced(record);
}
