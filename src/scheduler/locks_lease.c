/* SPDX-License-Identifier: Apache-2.0 */
/* locks_lease.c - the one writer of a Lease.
 *
 * A write replaces exactly the state that it was composed from: the server compares uid and
 * version.  So whatever is on its way, at most one write lands on each state, and what does not
 * land is judged anew on the state that is there. */
#include "scheduler/locks_private.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "wire/json.h"
#include "wire/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL_MAX 63
#define LABEL_CUT 46

/* What the next write would have in it. */
struct plan {
	VEC(struct lock_entry) entries; /* borrowed from their records */
	struct strbuf text;		/* the same as JSON, without its end */
	struct link chosen;		/* claims that go with it */
	const struct lock_entry *whole; /* who has all of the card, with --locks=gpu */
	bool worth;			/* something would change that cannot wait */
	bool unproven;			/* something may lack that must come first */
	bool failed;			/* out of memory */
};

static void plan_done(struct plan *plan)
{
	vec_done(&plan->entries);
	strbuf_done(&plan->text);
}

void cell_touch(struct cell *cell)
{
	struct locks *locks = cell->locks;

	if (locks->closing)
		return;
	link_append(&locks->dirty, &cell->dirty);
	locks_wake(locks);
}

/* False: the Lease would become too large. */
static bool plan_add(struct plan *plan, const struct lock_entry *entry, bool always)
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

static void plan_kept(struct plan *plan, struct cell *cell)
{
	for (size_t i = 0; i < cell->records.len; i++) {
		struct record *record = cell->records.items[i];

		if (record_can_go(record))
			plan->worth = plan->worth || cell->must_drop;
		else
			(void)plan_add(plan, &record->entry, true);
	}
}

static const struct lock_entry *plan_find(const struct plan *plan, const char *uid)
{
	for (size_t i = 0; i < plan->entries.len; i++)
		if (strcmp(plan->entries.items[i].uid, uid) == 0)
			return &plan->entries.items[i];
	return NULL;
}

/* The text is written anew: it happens when a bound pod's entry replaces a dead one. */
static void plan_remove(struct plan *plan, const char *uid)
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

static void plan_choose(struct plan *plan, struct claim *claim)
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
static void plan_required(struct plan *plan, struct claim *claim)
{
	const struct lock_entry *entry = &claim->record->entry;
	const struct lock_entry *there = plan_find(plan, entry->uid);

	if (there && (there->attempt == entry->attempt || claim->rescued)) {
		claim_free(claim);
		return;
	}
	if (!claim->cell->locks->active || !is_of_card(claim))
		return;
	if (!claim->rescued && !fence_proves(claim)) {
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

static void plan_claim(struct plan *plan, struct claim *claim)
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
		lock_finish(claim->lock, LOCK_REFUSED, "the node's lock has no room for more");
	} else if (rc == -EEXIST && is_about_to_go(cell, entry->uid)) {
		return;
	} else if (rc == -EEXIST) {
		judge_rival(cell, entry);
		lock_finish(claim->lock, LOCK_BUSY, err.text);
	} else {
		lock_finish(claim->lock, LOCK_LOST, err.text);
	}
}

static bool fits_all(const struct plan *plan, struct cell *cell)
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

static void plan_claims(struct plan *plan, struct cell *cell)
{
	struct link *next;

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

static void plan_make(struct plan *plan, struct cell *cell)
{
	*plan = (struct plan){ .text = STRBUF_INIT };
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

/* A Lease that somebody deletes stays as long as there are entries in it, and goes with the
 * write that drops the last one. */
static void lease_body(struct strbuf *out, const struct cell *cell, const struct plan *plan)
{
	const char *card = cell->card_wanted ? cell->card_wanted : cell->card;
	bool by_gpu = cell->locks->options.mode == LOCKS_BY_GPU;

	lease_head(out, cell->locks, cell->name, cell->exists ? cell->uid : NULL, cell->version);
	strbuf_puts(out, ",\"labels\":{\"" KEY_LOCK_MANAGED "\":\"true\"");
	if (by_gpu && plan->whole)
		add_pod_label(out, plan->whole->name);
	add_str(out, "},\"annotations\":{\"" KEY_LOCK_NODE "\":", cell->node);
	if (by_gpu && card)
		add_str(out, ",\"" KEY_LOCK_GPU "\":", card);
	strbuf_puts(out, ",\"" KEY_LOCK_ENTRIES "\":");
	strbuf_add_json(out, plan->text.s, plan->text.len);
	strbuf_puts(out, "}");
	if (!cell->deleting || plan->entries.len)
		strbuf_puts(out, ",\"finalizers\":[\"" LOCKS_FINALIZER "\"]");
	strbuf_puts(out, "},\"spec\":{");
	if (by_gpu && plan->whole)
		add_str(out, "\"holderIdentity\":", plan->whole->uid);
	strbuf_puts(out, "}}");
}

static void fail_waiting(struct cell *cell, enum lock_outcome outcome, const char *why)
{
	struct link *next;

	for (struct link *at = cell->waiting.next; at != &cell->waiting; at = next) {
		struct claim *claim = LINK_OF(at, struct claim, link);

		next = at->next;
		if (!claim->required)
			lock_finish(claim->lock, outcome, why);
	}
}

/* What did not get in waits again, in its order and before what came later. */
static void requeue_sent(struct cell *cell)
{
	while (!link_is_empty(&cell->sent)) {
		struct claim *claim = LINK_OF(cell->sent.prev, struct claim, link);

		if (!claim->lock && !claim->required) {
			claim_free(claim);
			continue;
		}
		claim->state = CLAIM_WAITING;
		link_prepend(&cell->waiting, &claim->link);
	}
}

const char *lease_trouble(const struct locks *locks, const struct kube_write_result *result,
			  char *text, size_t size)
{
	const struct kube_reply *reply = result->reply;

	if (reply->reason == KUBE_NOT_FOUND)
		snprintf(text, size, "namespace %s is missing: create it, for the locks lie there",
			 locks->namespace);
	else if (reply->reason == KUBE_FORBIDDEN)
		snprintf(text, size, "leases of namespace %s may not be written: %s",
			 locks->namespace, reply->message);
	else
		snprintf(text, size, "%s", reply->message);
	return text;
}

static void count_write(const struct locks *locks, const struct kube_reply *reply)
{
	if (!locks->metrics.writes)
		return;
	metric_inc(locks->metrics.writes, METRIC_LABELS(kube_reason_name(reply->reason)), 1);
	if (reply->reason == KUBE_CONFLICT || reply->reason == KUBE_ALREADY_EXISTS)
		metric_inc(locks->metrics.conflicts, METRIC_NO_LABELS, 1);
}

/* Certainly not done, and nothing is known of the Lease that was not known before. */
static void refused(struct cell *cell, const struct kube_write_result *result)
{
	struct locks *locks = cell->locks;
	char text[ERR_TEXT_MAX];

	lease_trouble(locks, result, text, sizeof(text));
	if (!locks->trouble_told)
		log_error(locks->options.log, "lock was refused", LOG_STR("lease", cell->name),
			  LOG_STR("error", text));
	locks->trouble_told = true;
	requeue_sent(cell);
	fail_waiting(cell, LOCK_REFUSED, text);
	cell->skipped = true;
	collect_retry_cell(cell);
}

static bool is_told(const struct kube_write_result *result)
{
	return result->reply->reason == KUBE_OK || (result->reread && result->current);
}

static bool is_in_doubt(const struct kube_write_result *result)
{
	enum kube_reason reason = result->reply->reason;

	return result->reread || reason == KUBE_UNKNOWN || reason == KUBE_MALFORMED;
}

static void written(void *context, const struct kube_write_result *result)
{
	struct cell *cell = context;
	struct locks *locks = cell->locks;
	const struct kube_reply *told = result->reread ? result->current : result->reply;
	bool nowhere = cell->creates && result->reply->reason == KUBE_NOT_FOUND;

	cell->writing = NULL;
	locks->writes--;
	count_write(locks, result->reply);
	if (is_told(result) && !nowhere) {
		cell_apply(cell, told->reason == KUBE_OK ? told->body : NULL, NULL, false);
		requeue_sent(cell);
		locks->trouble_told = false;
	} else if (is_in_doubt(result) && !nowhere) {
		/* Nothing is known: it is read until it is, and nobody is told anything. */
		cell->refresh = true;
		collect_retry_cell(cell);
	} else {
		refused(cell, result);
	}
	cell_catch_up(cell);
	cell_touch(cell);
	locks_dispatch(locks);
}

static int lease_send(struct cell *cell, const struct plan *plan, struct err *err)
{
	struct locks *locks = cell->locks;
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;

	lease_body(&body, cell, plan);
	if (body.failed || plan->failed)
		return err_set(err, ENOMEM, "out of memory");
	cell->creates = !cell->exists;
	return kube_write(locks->options.client,
			  &(struct kube_write){
				  .verb = cell->exists ? KUBE_REPLACE : KUBE_CREATE,
				  .kind = &kube_kinds[KUBE_LEASE],
				  .namespace = locks->namespace,
				  .name = cell->name,
				  .body = body.s,
				  .body_len = body.len,
				  .reread_refused = true,
				  .done = written,
				  .context = cell,
			  },
			  &cell->writing, err);
}

static void unchoose(struct plan *plan, struct cell *cell)
{
	while (!link_is_empty(&plan->chosen)) {
		struct claim *claim = LINK_OF(plan->chosen.prev, struct claim, link);

		claim->state = CLAIM_WAITING;
		link_prepend(&cell->waiting, &claim->link);
	}
}

static void lease_write(struct cell *cell, struct plan *plan)
{
	struct err err = ERR_INIT;

	if (lease_send(cell, plan, &err) < 0) {
		unchoose(plan, cell);
		log_error(cell->locks->options.log, "lock cannot be written",
			  LOG_STR("lease", cell->name), LOG_STR("error", err.text));
		fail_waiting(cell, LOCK_REFUSED, err.text);
		collect_retry_cell(cell);
		return;
	}
	cell->locks->writes++;
	cell->must_drop = false;
	while (!link_is_empty(&plan->chosen)) {
		struct claim *claim = LINK_OF(plan->chosen.next, struct claim, link);

		claim->state = CLAIM_SENT;
		link_append(&cell->sent, &claim->link);
	}
}

static void was_read(void *context, const struct kube_write_result *result)
{
	struct cell *cell = context;
	struct locks *locks = cell->locks;
	enum kube_reason reason = result->reply->reason;

	cell->writing = NULL;
	locks->writes--;
	if (reason == KUBE_OK || reason == KUBE_NOT_FOUND) {
		cell->refresh = false;
		cell_apply(cell, reason == KUBE_OK ? result->reply->body : NULL, NULL, false);
		requeue_sent(cell);
	} else {
		collect_retry_cell(cell);
	}
	cell_catch_up(cell);
	cell_touch(cell);
	locks_dispatch(locks);
}

static void lease_read(struct cell *cell)
{
	struct locks *locks = cell->locks;
	struct kube_write get = { .verb = KUBE_GET,
				  .kind = &kube_kinds[KUBE_LEASE],
				  .namespace = locks->namespace,
				  .name = cell->name,
				  .done = was_read,
				  .context = cell };

	cell->skipped = false;
	if (kube_write(locks->options.client, &get, &cell->writing, NULL) < 0) {
		collect_retry_cell(cell);
		return;
	}
	locks->writes++;
}

/* Whether the Lease as it is lets us write at all. */
static bool is_writable(struct cell *cell)
{
	if (cell->unreadable) {
		fail_waiting(cell, LOCK_REFUSED, cell->unreadable);
		return false;
	}
	/* Another's finalizer keeps it, and ours cannot be added: it would vanish with what we
	 * put there. */
	if (cell->deleting && !cell->has_finalizer) {
		fail_waiting(cell, LOCK_REFUSED, "the node's lease is being deleted");
		return false;
	}
	return true;
}

static bool card_changes(const struct cell *cell)
{
	return cell->card_wanted && (!cell->card || strcmp(cell->card, cell->card_wanted) != 0);
}

/* A Lease is about another card only while it has no entry; claims wait for that. */
static void flush_card(struct cell *cell, struct plan *plan)
{
	for (size_t i = 0; i < cell->records.len; i++) {
		if (record_can_go(cell->records.items[i]))
			continue;
		fail_waiting(cell, LOCK_LOST, "the lease of that GPU is about another one");
		return;
	}
	strbuf_puts(&plan->text, "[]");
	lease_write(cell, plan);
}

void cell_flush(struct cell *cell)
{
	struct plan plan CLEANUP(plan_done) = { .text = STRBUF_INIT };

	link_leave(&cell->dirty);
	if (cell->writing || !link_is_empty(&cell->retry) || !cell->locks->ready)
		return;
	if (cell->refresh) {
		lease_read(cell);
		return;
	}
	cell_settle(cell);
	if (!cell->exists && cell->records.len)
		return;
	if (!is_writable(cell))
		return;
	link_init(&plan.chosen);
	if (cell->locks->options.mode == LOCKS_BY_GPU && !cell->card && !cell->card_wanted) {
		fail_waiting(cell, LOCK_LOST, "the lease of that GPU is gone");
		return;
	}
	if (card_changes(cell)) {
		flush_card(cell, &plan);
		return;
	}
	if (link_is_empty(&cell->waiting) && !cell->must_drop)
		return;
	plan_make(&plan, cell);
	bool over = cell->deleting && plan.entries.len == 0 && cell->must_drop;
	if (plan.worth || over)
		lease_write(cell, &plan);
}
