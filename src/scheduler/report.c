/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what people are told of a pod: why it waits, where it went.
 *
 * A refusal is an event and the condition PodScheduled of the pod's status, by which cluster
 * autoscalers know that a node is wanted.  A write of the status costs the server more than
 * a Binding and changes the pod's version, so there is only one when the message is another,
 * only a few are on their way at a time, in the background, and none for a pod that is on its
 * way itself.  Others' comings and goings change the figures of a message all the time: when
 * the reasons are the same, the latest figures are told after FIGURES_MS, and each time later; so
 * is what the server refused.  What is likely over in a moment is told after HOPES_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "kube/cache.h"
#include "kube/events.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/time.h"
#include "kube/views/pod.h"
#include "kube/write.h"
#include "scheduler/claims.h"
#include "scheduler/scheduler_private.h"
#include "wire/json.h"
#include "wire/json_write.h"

#define TELLING_MAX 8
#define FIGURES_MS  5000
#define FIGURES_MAX 6 /* doublings of that */
#define HOPES_MS    1000

static void add_event(struct scheduler *s, const struct task *task, bool warning,
		      const char *reason, const char *action, const char *note)
{
	struct kube_event event = { .regarding = { .api_version = "v1",
						   .kind = "Pod",
						   .namespace = task->namespace,
						   .name = task->name,
						   .uid = task->uid },
				    .warning = warning,
				    .reason = reason,
				    .action = action,
				    .note = note };
	struct err err = ERR_INIT;

	if (kube_events_add(s->events, &event, &err) < 0)
		log_warn(s->log, "an event cannot be sent", LOG_STR("why", err.text));
}

static void leave_ring(struct scheduler *s, struct task *task)
{
	struct task **ring = task->due_ms ? &s->untold_later : &s->untold;

	task->due_ms = 0;
	if (!task->next)
		return;
	if (*ring == task)
		*ring = task->next == task ? NULL : task->next;
	task->next->previous = task->previous;
	task->previous->next = task->next;
	task->next = task->previous = NULL;
}

/* Who joins last comes last. */
static void join_ring(struct task **ring, struct task *task)
{
	if (!*ring) {
		*ring = task->next = task->previous = task;
		return;
	}
	task->next = *ring;
	task->previous = (*ring)->previous;
	task->previous->next = task->next->previous = task;
}

/* To be told as soon as it can be. */
static void tell_soon(struct scheduler *s, struct task *task)
{
	if (task->due_ms)
		leave_ring(s, task);
	log_info(s->log, "pod waits", LOG_STR("pod", task->key), LOG_STR("why", task->message));
	add_event(s, task, true, "FailedScheduling", "Scheduling", task->message);
	task->said = task->told;
	if (!task->next && !task->telling)
		join_ring(&s->untold, task); /* else when what is on its way is answered */
	scheduler_kick(s);
}

static void tell_at(struct scheduler *s, struct task *task, uint64_t due_ms)
{
	task->due_ms = due_ms;
	if (!s->untold_later || due_ms < s->later_ms)
		s->later_ms = due_ms;
	join_ring(&s->untold_later, task);
}

static void tell_later(struct scheduler *s, struct task *task)
{
	if (task->next)
		return; /* what is told then is the latest */
	tell_at(s, task, now_ms(s) + ((uint64_t)FIGURES_MS << task->figures));
	task->figures = MIN(task->figures + 1, FIGURES_MAX);
}

static bool may_tell(const struct scheduler *s, const struct task *task)
{
	return !task->flight && !task->landed && !task->held && (s->active || s->stalled);
}

static void tell_due(struct scheduler *s)
{
	uint64_t now = now_ms(s);
	struct task *last = s->untold_later ? s->untold_later->previous : NULL, *next;

	if (!last || now < s->later_ms)
		return;
	s->later_ms = UINT64_MAX;
	for (struct task *task = s->untold_later, *at = NULL; at != last; task = next) {
		at = task;
		next = task->next;
		if (task->due_ms > now) {
			s->later_ms = MIN(s->later_ms, task->due_ms);
			continue;
		}
		leave_ring(s, task);
		if (!may_tell(s, task))
			task->told = 0; /* said again when it waits again */
		else if (task->told != task->said && task->message)
			tell_soon(s, task);
	}
}

/* Whether it is another than before. */
static bool set_message(struct task *task, const char *message, uint64_t gist, bool is_error)
{
	uint64_t hash = hash_bytes(message, strlen(message), is_error ? 3 : 1);

	if (!*message || hash == task->told)
		return false;
	free(task->message);
	task->message = strdup(message);
	task->message_is_error = is_error;
	task->hopes = false;
	task->told = hash;
	task->gist = gist;
	return task->message != NULL;
}

static void waits(struct scheduler *s, struct task *task, const char *message, uint64_t gist,
		  bool is_error)
{
	bool figures = task->told && gist == task->gist && is_error == task->message_is_error;

	if (!set_message(task, message, gist, is_error))
		return;
	if (figures) {
		tell_later(s, task);
		return;
	}
	task->figures = 0;
	tell_soon(s, task);
}

void report_refused(struct scheduler *s, struct task *task, const char *message, uint64_t gist)
{
	if (*message)
		claims_waits(s->claims, task->uid, message, false);
	waits(s, task, message, gist, false);
}

/* No node was looked at: what kube-scheduler says then.  How many there are is a figure. */
static void put_refusal(const struct scheduler *s, const char *why, struct strbuf *out)
{
	size_t len = strlen(why);

	strbuf_addf(out, "0/%u nodes are available: %s", (unsigned)cluster_nodes_count(s->cluster),
		    why);
	if (len && !strchr(".?!", why[len - 1]))
		strbuf_putc(out, '.');
}

static void refuse_all(struct scheduler *s, struct task *task, const char *why, uint64_t gist)
{
	struct strbuf message CLEANUP(strbuf_done) = STRBUF_INIT;

	put_refusal(s, why, &message);
	waits(s, task, message.failed ? why : message.s, gist, false);
}

void report_waits(struct scheduler *s, struct task *task, const char *why, bool is_error)
{
	uint64_t gist = hash_sentence(why, 1);

	if (!*why)
		return;
	claims_waits(s->claims, task->uid, why, false);
	if (is_error)
		waits(s, task, why, gist, true);
	else
		refuse_all(s, task, why, gist);
}

void report_hopes(struct scheduler *s, struct task *task, const char *why)
{
	struct strbuf message CLEANUP(strbuf_done) = STRBUF_INIT;
	uint64_t gist = hash_sentence(why, 1);
	bool figures = task->hopes && gist == task->gist;

	claims_waits(s->claims, task->uid, why, false);
	put_refusal(s, why, &message);
	if (!set_message(task, message.failed ? why : message.s, gist, false))
		return;
	task->hopes = true;
	if (figures) {
		tell_later(s, task);
		return;
	}
	task->figures = 0;
	leave_ring(s, task);
	tell_at(s, task, now_ms(s) + HOPES_MS);
}

void report_wrong(struct scheduler *s, struct task *task, int rc, const char *why)
{
	if (rc == -ESRCH) { /* each kind comes on a stream of its own, and some are late */
		report_hopes(s, task, why);
		return;
	}
	report_waits(s, task, why, rc == -ENOMEM);
	if (*why)
		claims_waits(s->claims, task->uid, why, rc != -ENOMEM);
}

void report_over(struct scheduler *s, struct task *task)
{
	if (!task->hopes)
		return;
	task->hopes = false;
	if (!task->due_ms)
		return; /* it knows, and keeps that until there is something else to know */
	leave_ring(s, task);
	task->told = 0;
}

void report_preempts(struct scheduler *s, struct task *task, uint32_t victims)
{
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;

	if (task->nominated)
		strbuf_addf(&why,
			    "preemption: waiting for %u victim%s to leave, for a place on %s",
			    victims, victims == 1 ? "" : "s", task->nominated);
	else
		strbuf_addf(&why, "a place is reserved, which it has when %u other pod%s ended",
			    victims, victims == 1 ? " has" : "s have");
	if (!why.len)
		return;
	claims_waits(s->claims, task->uid, why.s, false);
	/* The node is told with it: another one is no mere figure. */
	refuse_all(s, task, why.s, hash_bytes(why.s, why.len, 2));
}

/* It begins as kube-scheduler's, to the space after the node: there are tools that read it. */
void report_bound(struct scheduler *s, const struct task *task, const char *node, const char *gpus)
{
	struct strbuf note CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&note, "Successfully assigned %s to %s%s%s", task->key, node,
		    gpus ? " with " : "", gpus ? gpus : "");
	add_event(s, task, false, "Scheduled", "Binding", note.s);
}

/* An event alone: its status, if that were written, would make another version of the pod, and so be
 * the end of a Binding that may still land. */
void report_in_doubt(struct scheduler *s, const struct task *task, const char *node,
		     const char *why)
{
	struct strbuf note CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&note, "cannot be bound to %s yet: %s", node, why);
	if (note.failed)
		return;
	log_warn(s->log, "binding not accepted", LOG_STR("pod", task->key), LOG_STR("node", node),
		 LOG_STR("why", why));
	add_event(s, task, true, "FailedScheduling", "Binding", note.s);
}

void report_unsay(struct scheduler *s, struct task *task)
{
	if (!task->next || task->due_ms)
		return; /* other figures are told later, and not to who has a place by then */
	leave_ring(s, task);
	task->told = 0; /* said again when it waits again */
}

void report_forget(struct scheduler *s, struct task *task)
{
	leave_ring(s, task);
	if (!task->telling)
		return;
	kube_write_cancel(task->telling);
	task->telling = NULL;
	s->telling--;
}

/* It was due while its status was being written. */
static void come_back(struct scheduler *s, struct task *task, struct pending_item *item)
{
	if (task->stale && !task->gang)
		pending_placed(s->pending, item); /* the cache will bring it back */
	else
		pending_again(s->pending, item);
}

/* Versions are opaque but for their order, and here it is only a matter of waiting. */
static bool is_older(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);

	return a_len != b_len ? a_len < b_len : strcmp(a, b) < 0;
}

/* What was written makes another version of the pod: decided on when the cache has it, for a
 * Binding of the one before would be refused. */
static void await_version(struct scheduler *s, struct task *task, const struct json *written)
{
	const struct kube_object *pod = kube_cache_get(s->pods, task->namespace, task->name);
	const char *version = json_str(written, "metadata", "resourceVersion");

	if (pod && version && strcmp(pod->uid, task->uid) == 0 && is_older(pod->version, version))
		task->stale = true;
}

/* What was written stands there, unless something else was said meanwhile; if it was refused it
 * goes again after a while, for nothing need happen that has the pod refused once more. */
static void written(struct scheduler *s, struct task *task, bool done)
{
	if (!done)
		task->said = 0;
	if (task->next)
		return;
	if (task->message && task->told && task->told != task->writing) {
		join_ring(&s->untold, task);
	} else if (!done) {
		tell_later(s, task);
	} else {
		free(task->message);
		task->message = NULL;
	}
}

static void told(void *context, const struct kube_write_result *result)
{
	struct task *task = context;
	struct scheduler *s = task->scheduler;
	struct pending_item *item = task_item(task);
	enum kube_reason reason = result->reply->reason;

	task->telling = NULL;
	s->telling--;
	if (reason == KUBE_OK) {
		await_version(s, task, result->reply->body);
		task->nomination_told =
			json_str(result->reply->body, "status", "nominatedNodeName") != NULL;
	} else if (reason != KUBE_NOT_FOUND) {
		log_warn(s->log, "a pod cannot be told why it waits", LOG_STR("pod", task->key),
			 LOG_STR("why", result->reply->message));
	}
	written(s, task, reason == KUBE_OK || reason == KUBE_NOT_FOUND);
	if (task->again && item->added && item->place == PENDING_OUT)
		come_back(s, task, item);
	task->again = false;
	scheduler_kick(s);
}

/* What stands there now: lastTransitionTime changes only with the status. */
static bool is_false_already(const struct scheduler *s, const struct task *task,
			     int64_t *generation)
{
	const struct kube_object *pod = kube_cache_get(s->pods, task->namespace, task->name);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct pod_view view;

	*generation = 0;
	if (!pod || kube_object_parse(pod, &doc) < 0 ||
	    pod_view_read(json_root(doc), &view, NULL) < 0)
		return false;
	*generation = view.meta.generation;
	return view.scheduled == VIEW_FALSE;
}

static void put_condition(const struct scheduler *s, const struct task *task,
			  struct json_writer *w)
{
	char now[KUBE_TIME_MAX];
	int64_t generation;
	bool same = is_false_already(s, task, &generation);

	json_open_object(w);
	json_add_key(w, "type");
	json_add_str(w, "PodScheduled");
	json_add_key(w, "status");
	json_add_str(w, "False");
	json_add_key(w, "reason");
	json_add_str(w, task->message_is_error ? "SchedulerError" : "Unschedulable");
	json_add_key(w, "message");
	json_add_str(w, task->message);
	if (!same) {
		json_add_key(w, "lastTransitionTime");
		json_add_str(w, kube_time_format(clock_wall_ns(s->clock), now));
	}
	if (generation > 0) {
		json_add_key(w, "observedGeneration");
		json_add_i64(w, generation);
	}
	json_close_object(w);
}

static void put_status(const struct scheduler *s, const struct task *task, struct strbuf *out)
{
	struct json_writer w = JSON_WRITER_INIT(out);

	json_open_object(&w);
	json_add_key(&w, "metadata");
	json_open_object(&w);
	json_add_key(&w, "uid");
	json_add_str(&w, task->uid);
	json_close_object(&w);
	json_add_key(&w, "status");
	json_open_object(&w);
	if (task->nominated || task->nomination_told) {
		json_add_key(&w, "nominatedNodeName");
		json_add_str(&w, task->nominated); /* null takes it back */
	}
	json_add_key(&w, "conditions");
	json_open_array(&w);
	put_condition(s, task, &w);
	json_close_array(&w);
	json_close_object(&w);
	json_close_object(&w);
}

static void tell(struct scheduler *s, struct task *task)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;

	put_status(s, task, &body);
	struct kube_write write = { .verb = KUBE_STRATEGIC_PATCH,
				    .kind = &kube_kinds[KUBE_POD],
				    .namespace = task->namespace,
				    .name = task->name,
				    .subresource = "status",
				    .body = body.s,
				    .body_len = body.len,
				    .background = true,
				    .done = told,
				    .context = task };
	task->writing = task->told;
	task->nomination_told = task->nomination_told || task->nominated;
	if (kube_write(s->client, &write, &task->telling, &err) == 0) {
		s->telling++;
		return;
	}
	task->telling = NULL;
	task->told = 0;
	log_warn(s->log, "a pod cannot be told why it waits", LOG_STR("pod", task->key),
		 LOG_STR("why", err.text));
}

void report_tick(struct scheduler *s)
{
	tell_due(s);
	while (s->untold && s->telling < TELLING_MAX) {
		struct task *task = s->untold;

		leave_ring(s, task);
		if (may_tell(s, task))
			tell(s, task);
		else
			task->told = 0; /* said again when it waits again */
	}
}
