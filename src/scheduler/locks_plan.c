/* SPDX-License-Identifier: Apache-2.0 */
/* locks_plan.c - what the next write of a Lease has in it: what stays of the state that it
 * replaces, then what must be there, then what is wanted and fits beside that. */
#include "scheduler/locks_private.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LABEL_MAX 63
#define LABEL_CUT 46

void plan_done(struct lease_plan *plan)
{
	vec_done(&plan->entries);
	strbuf_done(&plan->text);
}

/* False: the Lease would become too large. */
static bool plan_add(struct lease_plan *plan, const struct lock_entry *entry, bool always)
{
	size_t len = plan->text.len;

	strbuf_putc(&plan->text, plan->entries.len ? ',' : '[');
	entry_write(entry, &plan->text);
	if (!always && plan->text.len > ENTRIES_BYTES_MAX - LOCKS_OTHER_BYTES) {
		strbuf_truncate(&plan->text, len);
		return false;
	}
	if (vec_push(&plan->entries, *entry) < 0)
		plan->failed = true;
	return true;
}

static void plan_kept(struct lease_plan *plan, struct cell *cell)
{
	for (size_t i = 0; i < cell->records.len; i++) {
		struct record *record = cell->records.items[i];

		if (record_can_go(record))
			plan->worth = plan->worth || cell->must_drop;
		else
			(void)plan_add(plan, &record->entry, true);
	}
}

static const struct lock_entry *plan_find(const struct lease_plan *plan, const char *uid)
{
	for (size_t i = 0; i < plan->entries.len; i++)
		if (strcmp(plan->entries.items[i].uid, uid) == 0)
			return &plan->entries.items[i];
	return NULL;
}

/* The text is written anew: it happens when a bound pod's entry replaces a dead one. */
static void plan_remove(struct lease_plan *plan, const char *uid)
{
	size_t len = 0;

	for (size_t i = 0; i < plan->entries.len; i++)
		if (strcmp(plan->entries.items[i].uid, uid) != 0)
			plan->entries.items[len++] = plan->entries.items[i];
	plan->entries.len = 0;
	strbuf_reset(&plan->text);
	for (size_t i = 0; i < len; i++)
		(void)plan_add(plan, &plan->entries.items[i], true);
}

static void plan_choose(struct lease_plan *plan, struct claim *claim)
{
	link_append(&plan->chosen, &claim->link);
	plan->worth = true;
}

/* With --locks=gpu: the Lease may have come to be about another card. */
static bool is_of_card(const struct claim *claim)
{
	return claim->cell->locks->options.mode == LOCKS_BY_NODE ||
	       strcmp(claim->cell->card, claim->record->entry.holds[0].uuid) == 0;
}

/* A pod that is bound by this attempt has no other one: what else is there of it is dead.  What
 * we know of the pod may be old, and its cards those of another by now: until that is known
 * nothing is taken here. */
static void plan_required(struct lease_plan *plan, struct claim *claim)
{
	const struct lock_entry *entry = &claim->record->entry;
	const struct lock_entry *there = plan_find(plan, entry->uid);

	if (there && (there->attempt == entry->attempt || claim->rescued)) {
		claim_free(claim);
		return;
	}
	if (!claim->cell->locks->active || !is_of_card(claim))
		return;
	if (!fence_proves(claim)) {
		plan->unproven = true;
		return;
	}
	if (there)
		plan_remove(plan, entry->uid);
	(void)plan_add(plan, entry, true);
	plan_choose(plan, claim);
}

/* What is in the way may be dead without anybody having said so. */
static bool sweep(struct cell *cell)
{
	bool any = false;

	for (size_t i = 0; i < cell->records.len; i++) {
		struct record *record = cell->records.items[i];

		if (record->dead || record->claim || record_pod(record) != LOCK_POD_OVER)
			continue;
		collect_dead(record, false);
		any = any || record_can_go(record);
	}
	return any;
}

/* The pod's other entry: one that is about to go is worth waiting for. */
static bool is_about_to_go(const struct cell *cell, const char *uid)
{
	for (struct record *r = records_of(cell->locks, BY_POD, uid); r; r = r->next[BY_POD])
		if (r->cell == cell && (r->dead || r->leaving))
			return true;
	return false;
}

static void judge_rival(const struct cell *cell, const struct lock_entry *entry)
{
	for (struct record *r = records_of(cell->locks, BY_POD, entry->uid); r;
	     r = r->next[BY_POD])
		if (r->cell == cell && !r->claim && !r->bound && cell->locks->active &&
		    strcmp(r->entry.version, entry->version) != 0)
			fence_record(r);
}

static void plan_claim(struct lease_plan *plan, struct claim *claim)
{
	struct cell *cell = claim->cell;
	const struct lock_entry *entry = &claim->record->entry;
	struct err err = ERR_INIT;

	if (!is_of_card(claim)) {
		lock_finish(claim->lock, LOCK_LOST, "the lease of that GPU is about another one");
		return;
	}
	int rc = entries_fit(plan->entries.items, (uint32_t)plan->entries.len, entry, locks_card,
			     cell, &err);

	if (rc == 0 && plan_add(plan, entry, false)) {
		plan_choose(plan, claim);
	} else if (rc == 0) {
		cell->full = true;
		lock_finish(claim->lock, LOCK_CLOSED, "the node's lease has no room for more");
	} else if (rc == -EEXIST && is_about_to_go(cell, entry->uid)) {
		return;
	} else if (rc == -EEXIST) {
		judge_rival(cell, entry);
		lock_finish(claim->lock, LOCK_BUSY, err.text);
	} else {
		lock_finish(claim->lock, LOCK_LOST, err.text);
	}
}

static bool fits_all(const struct lease_plan *plan, struct cell *cell)
{
	for (struct link *at = cell->waiting.next; at != &cell->waiting; at = at->next) {
		struct claim *claim = LINK_OF(at, struct claim, link);

		if (!claim->required &&
		    entries_fit(plan->entries.items, (uint32_t)plan->entries.len,
				&claim->record->entry, locks_card, cell, NULL) < 0)
			return false;
	}
	return true;
}

/* Nothing is added before the mode is recorded, also where that Lease was deleted: what is dead
 * goes nevertheless, or the namespace of both could not go. */
static void plan_claims(struct lease_plan *plan, struct cell *cell)
{
	struct link *next;

	if (!cell->locks->ready)
		return;
	for (struct link *at = cell->waiting.next; at != &cell->waiting; at = next) {
		struct claim *claim = LINK_OF(at, struct claim, link);

		/* It may leave the ring, and a lock with several claims here takes no other
		 * along: it has one of each Lease. */
		next = at->next;
		if (claim->required)
			plan_required(plan, claim);
		else if (!plan->unproven)
			plan_claim(plan, claim);
	}
}

void plan_make(struct lease_plan *plan, struct cell *cell)
{
	*plan = (struct lease_plan){ .text = STRBUF_INIT };
	link_init(&plan->chosen);
	plan_kept(plan, cell);
	if (!link_is_empty(&cell->waiting) && !fits_all(plan, cell) && sweep(cell)) {
		plan->entries.len = 0;
		strbuf_reset(&plan->text);
		plan_kept(plan, cell);
	}
	plan_claims(plan, cell);
	for (size_t i = 0; i < plan->entries.len; i++) {
		const struct lock_entry *entry = &plan->entries.items[i];

		for (uint32_t h = 0; h < entry->holds_count; h++)
			if (entry->holds[h].core_milli == 1000)
				plan->whole = entry;
	}
	if (plan->entries.len == 0)
		strbuf_putc(&plan->text, '[');
	strbuf_putc(&plan->text, ']');
	plan->failed = plan->failed || plan->text.failed;
}

static void add_str(struct strbuf *out, const char *key, const char *value)
{
	strbuf_puts(out, key);
	strbuf_add_json(out, value, strlen(value));
}

void lease_head(struct strbuf *out, const struct locks *locks, const char *name, const char *uid,
		const char *version)
{
	strbuf_puts(out, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\","
			 "\"metadata\":{");
	add_str(out, "\"name\":", name);
	add_str(out, ",\"namespace\":", locks->namespace);
	if (!uid)
		return;
	add_str(out, ",\"uid\":", uid);
	add_str(out, ",\"resourceVersion\":", version);
}

static void add_pod_label(struct strbuf *out, const char *name)
{
	size_t len = strlen(name), cut = LABEL_CUT;
	char label[LABEL_MAX + 1];

	if (len <= LABEL_MAX) {
		add_str(out, ",\"" KEY_LOCK_POD "\":", name);
		return;
	}
	while (cut > 0 && (name[cut - 1] == '.' || name[cut - 1] == '-'))
		cut--;
	snprintf(label, sizeof(label), "%.*s-%016" PRIx64, (int)cut, name,
		 hash_bytes(name, len, 0));
	add_str(out, ",\"" KEY_LOCK_POD "\":", label);
}

/* A Lease that somebody deletes stays as long as there are entries in it.  Then it goes in two
 * writes: the first takes the annotation with the entries away, after which nobody adds any
 * to it, the second the finalizer.  One would not do: the server compares the version and
 * then deletes by uid alone, and in between another's entry may come. */
void lease_body(struct strbuf *out, const struct cell *cell, const struct lease_plan *plan)
{
	/* One that has entries loses them first, as that card's. */
	bool stays = cell->card && cell->records.len;
	const char *card = cell->card_wanted && !stays ? cell->card_wanted : cell->card;
	bool by_gpu = cell->locks->options.mode == LOCKS_BY_GPU;

	lease_head(out, cell->locks, cell->name, cell->exists ? cell->uid : NULL, cell->version);
	strbuf_puts(out, ",\"labels\":{\"" KEY_LOCK_MANAGED "\":\"true\"");
	if (by_gpu && plan->whole)
		add_pod_label(out, plan->whole->name);
	add_str(out, "},\"annotations\":{\"" KEY_LOCK_NODE "\":", cell->node);
	if (by_gpu && card)
		add_str(out, ",\"" KEY_LOCK_GPU "\":", card);
	if (!cell->deleting || plan->entries.len) {
		strbuf_puts(out, ",\"" KEY_LOCK_ENTRIES "\":");
		strbuf_add_json(out, plan->text.s, plan->text.len);
	}
	strbuf_puts(out, "}");
	if (!cell->closed)
		strbuf_puts(out, ",\"finalizers\":[\"" LOCKS_FINALIZER "\"]");
	strbuf_puts(out, "},\"spec\":{");
	if (by_gpu && plan->whole)
		add_str(out, "\"holderIdentity\":", plan->whole->uid);
	strbuf_puts(out, "}}");
}
