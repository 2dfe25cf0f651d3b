/* SPDX-License-Identifier: Apache-2.0 */
/* locks_entries.c - the entries of a Lease as they have come to be: which are known, which are
 * of claims that got in, which are new, and which are gone; and who is told. */
#include "scheduler/locks_private.h"

#include "base/attr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct record *find_record(const struct cell *cell, const struct lock_entry *entry)
{
	for (struct record *r = records_of(cell->locks, BY_POD, entry->uid); r;
	     r = r->next[BY_POD])
		if (r->cell == cell && entry_equal(&r->entry, entry))
			return r;
	return NULL;
}

static struct claim *find_sent(struct cell *cell, const struct lock_entry *entry)
{
	for (struct link *at = cell->sent.next; at != &cell->sent; at = at->next) {
		struct claim *claim = LINK_OF(at, struct claim, link);

		if (entry_equal(&claim->record->entry, entry))
			return claim;
	}
	return NULL;
}

/* The record of an entry that the Lease has: as before, of a claim that is in now, or new. */
static struct record *record_for(struct cell *cell, const struct lock_entry *entry, bool *fresh)
{
	struct record *record = find_record(cell, entry);
	struct claim *claim = record ? NULL : find_sent(cell, entry);

	*fresh = !record;
	if (record)
		return record;
	record = claim ? claim->record : record_new(entry, entry->holds, entry->holds_count);
	if (!record)
		return NULL;
	record->cell = cell;
	record->mine = claim && !claim->required;
	if (lock_record_enter(record) < 0) {
		if (!claim)
			record_free(record);
		return NULL;
	}
	if (claim)
		claim_in(claim);
	return record;
}

typedef VEC(struct record *) record_list;

/* Guests of one pod on the node: with --locks=gpu there may be several, shown as one. */
static bool is_guest_of(const struct record *record, const char *node, const char *uid)
{
	return !record->mine && strcmp(record->entry.uid, uid) == 0 &&
	       strcmp(record->cell->node, node) == 0;
}

static void show(struct locks *locks, const char *node, const char *uid)
{
	struct lock_hold holds[ENTRY_HOLDS_MAX];
	struct lock_entry entry = { .holds = holds };

	for (struct record *r = records_of(locks, BY_POD, uid); r; r = r->next[BY_POD]) {
		if (!is_guest_of(r, node, uid))
			continue;
		uint32_t had = entry.holds_count;
		uint32_t more = MIN(r->entry.holds_count, ENTRY_HOLDS_MAX - had);

		memcpy(&holds[had], r->entry.holds, more * sizeof(*holds));
		entry = r->entry;
		entry.holds = holds;
		entry.holds_count = had + more;
		r->shown = true;
	}
	if (entry.uid && locks->options.came)
		locks->options.came(locks->options.context, node, &entry);
}

void locks_tell(struct locks *locks, const char *uid)
{
	for (struct record *r = records_of(locks, BY_POD, uid); r; r = r->next[BY_POD]) {
		if (r->mine)
			continue;
		show(locks, r->cell->node, uid);
		return;
	}
}

/* Says that the guest of that pod is gone, if it was shown. */
static void hide(struct locks *locks, const char *node, const struct lock_entry *entry, bool shown)
{
	for (struct record *r = records_of(locks, BY_POD, entry->uid); r; r = r->next[BY_POD]) {
		if (!is_guest_of(r, node, entry->uid))
			continue;
		shown = shown || r->shown;
		r->shown = false;
	}
	if (shown && locks->options.left)
		locks->options.left(locks->options.context, node, entry);
}

/* With --locks=gpu the entries of a pod go one by one: what they held is free when the last one
 * is gone, or whoever wants one of the cards would be before who wants them all. */
static bool has_rest(const struct record *gone)
{
	for (const struct record *r = records_of(gone->cell->locks, BY_POD, gone->entry.uid); r;
	     r = r->next[BY_POD])
		if (is_guest_of(r, gone->cell->node, gone->entry.uid) && record_same_try(r, gone))
			return true;
	return false;
}

/* Those that are gone are no longer found by their pod, but not freed yet. */
static void tell(struct cell *cell, const record_list *gone, const record_list *came)
{
	struct locks *locks = cell->locks;

	for (size_t i = 0; i < gone->len; i++) {
		struct record *record = gone->items[i];

		if (!record->shown || has_rest(record))
			continue;
		hide(locks, cell->node, &record->entry, true);
		show(locks, cell->node, record->entry.uid);
	}
	for (size_t i = 0; i < came->len; i++) {
		struct record *record = came->items[i];

		if (record->mine || record->shown)
			continue;
		hide(locks, cell->node, &record->entry, false);
		show(locks, cell->node, record->entry.uid);
	}
}

/* A lock whose entry somebody else has dropped has nothing to give up any more; its Binding is
 * refused, for the pod was fenced. */
static void forget(struct record *record)
{
	if (record->claim) {
		record->claim->record = NULL;
		record->claim = NULL;
	}
	record_free(record);
}

static void take_list(struct cell *cell, record_list *now, record_list *gone)
{
	for (size_t i = 0; i < cell->records.len; i++)
		if (!cell->records.items[i]->kept)
			(void)vec_push(gone, cell->records.items[i]);
	for (size_t i = 0; i < now->len; i++)
		now->items[i]->kept = false;
	for (size_t i = 0; i < gone->len; i++)
		lock_record_leave(gone->items[i]);
	free(cell->records.items);
	cell->records.items = now->items;
	cell->records.len = now->len;
	cell->records.cap = now->cap;
}

/* Splits the former records into what stays and what is gone, and takes the new state.  Out of
 * memory, all of both states counts. */
static int replace_records(struct cell *cell, const struct lock_entry *entries, uint32_t count,
			   record_list *gone, record_list *came)
{
	record_list now = { 0 };
	int rc = 0;

	if (vec_reserve(&now, count + cell->records.len) < 0 ||
	    vec_reserve(gone, cell->records.len) < 0 || vec_reserve(came, count) < 0) {
		vec_done(&now);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		bool fresh;
		struct record *record = record_for(cell, &entries[i], &fresh);

		if (!record) {
			rc = -ENOMEM;
			continue;
		}
		record->kept = true;
		(void)vec_push(&now, record);
		if (fresh)
			(void)vec_push(came, record);
	}
	for (size_t i = 0; rc < 0 && i < cell->records.len; i++) {
		if (!cell->records.items[i]->kept)
			(void)vec_push(&now, cell->records.items[i]);
		cell->records.items[i]->kept = true;
	}
	take_list(cell, &now, gone);
	return rc;
}

void cell_set_entries(struct cell *cell, const struct lock_entry *entries, uint32_t count)
{
	record_list gone CLEANUP(vec_cleanup) = { 0 };
	record_list came CLEANUP(vec_cleanup) = { 0 };

	if (replace_records(cell, entries, count, &gone, &came) < 0) {
		free(cell->unreadable);
		cell->unreadable = strdup("out of memory");
		collect_retry_cell(cell);
	}
	for (size_t i = 0; i < came.len; i++)
		if (!came.items[i]->mine)
			collect_orphan(came.items[i]);
	tell(cell, &gone, &came);
	cell->full = cell->full && !gone.len;
	for (size_t i = 0; i < gone.len; i++)
		forget(gone.items[i]);
}
