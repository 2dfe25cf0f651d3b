/* SPDX-License-Identifier: Apache-2.0 */
/* locks_lease.c - the one writer of a Lease.
 *
 * A write replaces exactly the state that it was composed from: the server compares uid and
 * version.  So whatever is on its way, at most one write lands on each state, and what does not
 * land is judged anew on the state that is there. */
#include "scheduler/locks_private.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/log.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "wire/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void cell_touch(struct cell *cell)
{
	struct locks *locks = cell->locks;

	if (locks->closing)
		return;
	link_append(&locks->dirty, &cell->dirty);
	locks_wake(locks);
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

void lease_rights(const struct locks *locks, char *text, size_t size)
{
	snprintf(text, size,
		 "create namespace %s if it is missing, and let this account get, list, watch, "
		 "create, update and delete leases there; deploy/rbac does both for "
		 "gpu-scheduler-locks",
		 locks->namespace);
}

const char *lease_trouble(const struct locks *locks, const struct kube_write_result *result,
			  char *text, size_t size)
{
	const struct kube_reply *reply = result->reply;

	if (reply->reason == KUBE_NOT_FOUND)
		snprintf(text, size, "namespace %s is missing, where the locks are to be: %s",
			 locks->namespace, locks->hint);
	else if (reply->reason == KUBE_FORBIDDEN)
		snprintf(text, size, "leases of namespace %s may not be written (%s): %s",
			 locks->namespace, locks->hint, reply->message);
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

static int lease_send(struct cell *cell, const struct lease_plan *plan, struct err *err)
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

static void unchoose(struct lease_plan *plan, struct cell *cell)
{
	while (!link_is_empty(&plan->chosen)) {
		struct claim *claim = LINK_OF(plan->chosen.prev, struct claim, link);

		claim->state = CLAIM_WAITING;
		link_prepend(&cell->waiting, &claim->link);
	}
}

static void lease_write(struct cell *cell, struct lease_plan *plan)
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

/* What became of it is read: the answer has the Lease, or that there is none any more. */
static void was_removed(void *context, const struct kube_write_result *result)
{
	struct cell *cell = context;
	struct locks *locks = cell->locks;
	enum kube_reason reason = result->reply->reason;
	bool fine = reason == KUBE_OK || reason == KUBE_CONFLICT || reason == KUBE_NOT_FOUND;

	cell->writing = NULL;
	locks->writes--;
	count_write(locks, result->reply);
	if (!fine && !locks->trouble_told)
		log_warn(locks->options.log, "lock of a node that is gone cannot be deleted",
			 LOG_STR("lease", cell->name), LOG_STR("error", result->reply->message));
	locks->trouble_told = locks->trouble_told || !fine;
	cell->refresh = true;
	cell_touch(cell);
}

void cell_remove(struct cell *cell)
{
	struct locks *locks = cell->locks;
	struct kube_write delete = { .verb = KUBE_DELETE,
				     .kind = &kube_kinds[KUBE_LEASE],
				     .namespace = locks->namespace,
				     .name = cell->name,
				     .uid = cell->uid,
				     .version = cell->version,
				     .background = true,
				     .done = was_removed,
				     .context = cell };

	if (kube_write(locks->options.client, &delete, &cell->writing, NULL) == 0)
		locks->writes++;
}

/* Where another's finalizer keeps it, and ours cannot be added, it would vanish with what we put
 * there. */
bool cell_is_writable(const struct cell *cell)
{
	return !cell->unreadable && !(cell->deleting && !cell->has_finalizer);
}

/* Whether the Lease as it is lets us write at all. */
static bool is_writable(struct cell *cell)
{
	if (cell_is_writable(cell))
		return true;
	fail_waiting(cell, LOCK_CLOSED,
		     cell->unreadable ? cell->unreadable : "the node's lease is being deleted");
	return false;
}

static bool card_changes(const struct cell *cell)
{
	return cell->card_wanted && (!cell->card || strcmp(cell->card, cell->card_wanted) != 0);
}

/* A Lease is about another card only while it has no entry; claims wait for that. */
static void flush_card(struct cell *cell, struct lease_plan *plan)
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
	struct lease_plan plan CLEANUP(plan_done) = { .text = STRBUF_INIT };

	link_leave(&cell->dirty);
	if (cell->writing || !link_is_empty(&cell->retry) || !cell->locks->synced)
		return;
	if (cell->refresh) {
		lease_read(cell);
		return;
	}
	cell_settle(cell);
	if (!cell->exists && cell->records.len)
		return;
	if (cell_is_over(cell)) {
		cell_free(cell);
		return;
	}
	if (!is_writable(cell))
		return;
	link_init(&plan.chosen);
	if (cell->closed) {
		lease_write(cell, &plan);
		return;
	}
	bool by_gpu = cell->locks->options.mode == LOCKS_BY_GPU;
	if (by_gpu && cell->locks->ready && !cell->card && !cell->card_wanted) {
		fail_waiting(cell, LOCK_LOST, "the lease of that GPU is gone");
		return;
	}
	if (cell->locks->ready && card_changes(cell)) {
		flush_card(cell, &plan);
		return;
	}
	if (!cell->locks->ready)
		fail_waiting(cell, LOCK_REFUSED, locks_why_not(cell->locks));
	if (link_is_empty(&cell->waiting) && !cell->must_drop)
		return;
	plan_make(&plan, cell);
	bool over = cell->deleting && plan.entries.len == 0 && cell->must_drop;
	if (plan.worth || over)
		lease_write(cell, &plan);
}
