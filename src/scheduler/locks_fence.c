/* SPDX-License-Identifier: Apache-2.0 */
/* locks_fence.c - whether an entry's pod is dead, and making sure that it is.
 *
 * The pod is read after its entry was, so what is seen is of a later moment.  One that is
 * alive and unbound at the entry's version is patched, on the condition that it still has that
 * version: then no Binding that names it can land any more, and none has.  The patch adds a
 * condition to its status, which is a change whatever was there: the text has the attempt and
 * the version. */
#include "scheduler/locks_private.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "dialect/keys.h"
#include "kube/kind.h"
#include "kube/time.h"
#include "kube/views/pod.h"
#include "kube/write.h"
#include "wire/json.h"
#include "wire/json_write.h"
#include "wire/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum verdict_of_pod {
	POD_IS_DEAD,	/* this entry will never bind it */
	POD_IS_BOUND,	/* by this entry */
	POD_IS_WAITING, /* a Binding may still land */
	POD_IS_UNCLEAR,
};

static void judged(void *context, const struct kube_write_result *result);

/* A decision that cannot be read may be this one. */
static bool is_other_attempt(const struct json *pod, uint32_t attempt)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	const char *text = json_str(pod, "metadata", "annotations", KEY_DECISION);
	int64_t theirs;

	if (!text)
		return true;
	if (json_parse("decision", text, strlen(text), NULL, &doc, NULL) < 0 ||
	    json_i64(json_root(doc), &theirs, "attempt") < 0)
		return false;
	return theirs != attempt;
}

static enum verdict_of_pod judge(const struct record *record, const struct json *pod)
{
	const struct lock_entry *entry = &record->entry;
	struct pod_view view;

	if (!pod)
		return POD_IS_DEAD;
	if (pod_view_read(pod, &view, NULL) < 0)
		return POD_IS_UNCLEAR;
	if (strcmp(view.meta.uid, entry->uid) != 0 || pod_view_is_finished(&view))
		return POD_IS_DEAD;
	if (!*view.node)
		return strcmp(view.meta.version, entry->version) == 0 ? POD_IS_WAITING
								      : POD_IS_DEAD;
	if (strcmp(view.node, record->cell->node) != 0 || is_other_attempt(pod, entry->attempt))
		return POD_IS_DEAD;
	return POD_IS_BOUND;
}

void fence_body(struct strbuf *out, const struct locks *locks, const struct lock_entry *entry)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	char now[KUBE_TIME_MAX], message[160];

	kube_time_format(clock_wall_ns(locks->options.clock), now);
	snprintf(message, sizeof(message),
		 "attempt %" PRIu32 " at version %s has given up its GPUs", entry->attempt,
		 entry->version);
	json_open_object(&w);
	json_add_key(&w, "metadata");
	json_open_object(&w);
	json_add_key(&w, "uid");
	json_add_str(&w, entry->uid);
	json_add_key(&w, "resourceVersion");
	json_add_str(&w, entry->version);
	json_close_object(&w);
	json_add_key(&w, "status");
	json_open_object(&w);
	json_add_key(&w, "conditions");
	json_open_array(&w);
	json_open_object(&w);
	const char *const fields[][2] = { { "type", "gpu.scheduling/Fenced" },
					  { "status", "True" },
					  { "reason", "LockReleased" },
					  { "message", message },
					  { "lastTransitionTime", now } };
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		json_add_key(&w, fields[i][0]);
		json_add_str(&w, fields[i][1]);
	}
	json_close_object(&w);
	json_close_array(&w);
	json_close_object(&w);
	json_close_object(&w);
}

/* Asks for the pod, or patches it. */
static void ask(struct record *record, bool patch)
{
	struct locks *locks = record->cell->locks;
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct kube_write write = { .verb = KUBE_GET,
				    .kind = &kube_kinds[KUBE_POD],
				    .namespace = record->entry.namespace,
				    .name = record->entry.name,
				    .done = judged,
				    .context = record };

	if (patch) {
		fence_body(&body, locks, &record->entry);
		write.verb = KUBE_STRATEGIC_PATCH;
		write.subresource = "status";
		write.body = body.s;
		write.body_len = body.len;
		write.reread_refused = true;
	}
	record->fencing = patch;
	struct err err = ERR_INIT;
	if (body.failed || kube_write(locks->options.client, &write, &record->judging, &err) < 0) {
		log_error(locks->options.log, "pod of a lock cannot be asked for",
			  LOG_STR("pod", record->entry.name), LOG_STR("error", err.text));
		collect_retry(record);
		return;
	}
	locks->writes++;
}

static void count_fence(const struct record *record)
{
	const struct locks_metrics *metrics = &record->cell->locks->metrics;

	if (metrics->fences)
		metric_inc(metrics->fences, METRIC_NO_LABELS, 1);
}

static void all_dead(struct record *record)
{
	struct locks *locks = record->cell->locks;

	for (struct record *r = records_of(locks, BY_POD, record->entry.uid); r;
	     r = r->next[BY_POD]) {
		if (r->dead || !record_same_try(r, record))
			continue;
		if (!r->mine && locks->metrics.collected)
			metric_inc(locks->metrics.collected, METRIC_NO_LABELS, 1);
		collect_dead(r, true);
		cell_touch(r->cell);
	}
}

/* The entry belongs to a live pod, whoever wanted it gone. */
static void all_bound(struct record *record)
{
	for (struct record *r = records_of(record->cell->locks, BY_POD, record->entry.uid); r;
	     r = r->next[BY_POD]) {
		if (!record_same_try(r, record))
			continue;
		r->bound = true;
		record_set_leaving(r, false);
		link_leave(&r->due);
		cell_touch(r->cell);
		/* A cache that has not seen it may never say that it went. */
		if (record_pod(r) != LOCK_POD_BOUND)
			collect_orphan(r);
	}
}

/* The pod as the server has it; NULL: it has none; not told: false. */
static bool pod_of(const struct kube_write_result *result, const struct json **ret)
{
	const struct kube_reply *told = result->reread ? result->current : result->reply;

	if (!told || (told->reason != KUBE_OK && told->reason != KUBE_NOT_FOUND))
		return false;
	*ret = told->reason == KUBE_OK ? told->body : NULL;
	return told->reason == KUBE_NOT_FOUND || told->body;
}

static void untold(struct record *record, const struct kube_reply *reply)
{
	struct locks *locks = record->cell->locks;

	/* Another pod has the name: its uid cannot be patched into this one. */
	if (record->fencing && reply->reason == KUBE_INVALID) {
		ask(record, false);
		return;
	}
	if (!locks->trouble_told)
		log_warn(locks->options.log, "pod of a lock could not be fenced; tried again",
			 LOG_STR("pod", record->entry.name), LOG_STR("error", reply->message));
	locks->trouble_told = true;
	collect_retry(record);
}

static void judged(void *context, const struct kube_write_result *result)
{
	struct record *record = context;
	struct locks *locks = record->cell->locks;
	const struct json *pod = NULL;
	bool was_patch = record->fencing;

	record->judging = NULL;
	locks->writes--;
	if (was_patch && result->reply->reason == KUBE_OK) {
		record->fenced = ++locks->serial;
		count_fence(record);
	}
	if (!pod_of(result, &pod)) {
		untold(record, result->reply);
		return;
	}
	switch (judge(record, pod)) {
	case POD_IS_DEAD:
		all_dead(record);
		break;
	case POD_IS_BOUND:
		all_bound(record);
		break;
	case POD_IS_WAITING:
		/* After a patch: it was in doubt and has not landed, or will yet. */
		if (!was_patch)
			ask(record, true);
		else
			collect_retry(record);
		break;
	case POD_IS_UNCLEAR:
		collect_retry(record);
		break;
	}
	locks_dispatch(locks);
}

void fence_record(struct record *record)
{
	if (record->dead || record->bound)
		return;
	for (struct record *r = records_of(record->cell->locks, BY_POD, record->entry.uid); r;
	     r = r->next[BY_POD])
		if (r->judging && record_same_try(r, record)) {
			if (r != record)
				collect_retry(record);
			return;
		}
	link_leave(&record->due);
	switch (record_pod(record)) {
	case LOCK_POD_OVER:
		all_dead(record);
		break;
	case LOCK_POD_BOUND:
		all_bound(record);
		break;
	case LOCK_POD_UNBOUND:
		ask(record, true);
		break;
	default:
		ask(record, false);
	}
}

void fence_verify(struct record *record)
{
	if (record->judging || record->dead)
		return;
	link_leave(&record->due);
	ask(record, false);
}

static void asked(void *context, const struct kube_write_result *result)
{
	struct claim *claim = context;
	struct cell *cell = claim->cell;
	const struct json *pod = NULL;

	claim->asking = NULL;
	cell->locks->writes--;
	enum verdict_of_pod verdict =
		pod_of(result, &pod) ? judge(claim->record, pod) : POD_IS_UNCLEAR;
	if (verdict == POD_IS_UNCLEAR)
		collect_retry_cell(cell);
	else if (verdict == POD_IS_BOUND)
		claim->proven = true;
	else
		claim_free(claim);
	cell_touch(cell);
}

/* The pod is read after the Lease was.  If it is bound then, its entry was missing from that
 * state of the Lease, which is the one that is replaced. */
static void ask_required(struct claim *claim)
{
	struct locks *locks = claim->cell->locks;
	struct kube_write get = { .verb = KUBE_GET,
				  .kind = &kube_kinds[KUBE_POD],
				  .namespace = claim->record->entry.namespace,
				  .name = claim->record->entry.name,
				  .done = asked,
				  .context = claim };

	claim->proven = false;
	snprintf(claim->version, sizeof(claim->version), "%s", claim->cell->version);
	if (kube_write(locks->options.client, &get, &claim->asking, NULL) < 0) {
		claim->asking = NULL;
		collect_retry_cell(claim->cell);
		return;
	}
	locks->writes++;
}

bool fence_proves(struct claim *claim)
{
	if (claim->asking)
		return false;
	if (claim->proven && strcmp(claim->version, claim->cell->version) == 0)
		return true;
	ask_required(claim);
	return false;
}
