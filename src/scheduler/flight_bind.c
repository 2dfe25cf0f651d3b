/* SPDX-License-Identifier: Apache-2.0 */
/* flight_bind.c - the Binding, and what became of it. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "dialect/keys.h"
#include "kube/bind.h"
#include "kube/cache.h"
#include "kube/check.h"
#include "kube/object.h"
#include "kube/reply.h"
#include "scheduler/flight.h"
#include "scheduler/meters.h"
#include "wire/json.h"

#define RESEND_MS    250 /* doubled with every one, up to: */
#define RESEND_MAX   8000
#define RESENDS_TOLD 3 /* after so many people are told */

static void wait_until(struct flight *f, uint64_t due_ms)
{
	struct scheduler *s = f->scheduler;

	f->stage = FLIGHT_PAUSED;
	f->due_ms = due_ms;
	f->next = s->paused;
	s->paused = f;
	scheduler_kick(s);
}

/* From the loop, because who has just started the flight is not done with the queue. */
void flight_fail(struct flight *f, const char *why)
{
	f->failed = true;
	report_waits(f->scheduler, f->task, why, true);
	wait_until(f, 0);
}

/* The same Binding again, later: it is refused if the pod has changed meanwhile. */
static void pause_flight(struct flight *f)
{
	uint64_t wait_ms = RESEND_MS;

	for (uint32_t i = 0; i < f->resends && wait_ms < RESEND_MAX; i++)
		wait_ms *= 2;
	f->resends++;
	wait_until(f, now_ms(f->scheduler) + wait_ms);
}

/* It may be bound by now, and only the cache has shown that. */
static void resend(struct flight *f)
{
	const char *why = f->task->bound ? NULL : flight_spoilt(f);

	if (why)
		flight_decide_again(f, why, true);
	else
		flight_bind(f);
}

void flights_tick(struct scheduler *s, uint64_t now)
{
	struct flight **at = &s->paused;

	while (*at) {
		struct flight *f = *at;

		if (f->due_ms > now) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		f->next = NULL;
		if (f->failed)
			flight_abort_ring(f, true);
		else
			resend(f);
		at = &s->paused;
	}
}

static double seconds_since(const struct scheduler *s, uint64_t ns)
{
	return (double)(clock_monotonic_ns(s->clock) - ns) / 1e9;
}

static void succeeded(struct flight *f)
{
	struct scheduler *s = f->scheduler;
	struct task *task = f->task;

	log_info(s->log, "pod bound", LOG_STR("pod", task->key), LOG_STR("node", f->node),
		 LOG_STR("gpus", f->gpus_text ? f->gpus_text : "none"),
		 LOG_U64("attempt_id", f->attempt));
	if (f->lock)
		lock_bound(f->lock);
	f->lock = NULL;
	meters_bound(s->meters, (double)(now_ms(s) - task->seen_ms) / 1e3);
	report_bound(s, task, f->node, f->gpus_text);
	flight_end(f);
	task_landed(s, task);
	/* The cache will tell nothing new of it, but who waits to be near it may go there now. */
	pending_event(s->pending, WAKE_POD_CAME, now_ms(s), NULL, NULL);
}

/* Refused for the state that the pod is in: it will be seen to when that changes. */
static bool is_held(const struct json *pod)
{
	const struct json *gates = json_get(pod, "spec", "schedulingGates");

	return json_get(pod, "metadata", "deletionTimestamp") || (gates && json_len(gates) > 0);
}

bool flight_is_cached(const struct flight *f)
{
	const struct kube_object *pod =
		kube_cache_get(f->scheduler->pods, f->task->namespace, f->task->name);

	return pod && strcmp(pod->uid, f->task->uid) == 0 && strcmp(pod->version, f->version) == 0;
}

/* The pod is another one now; the cache will say so, or has said so already. */
static void moved(struct flight *f)
{
	struct scheduler *s = f->scheduler;
	struct task *task = f->task;
	bool behind = flight_is_cached(f);

	log_debug(s->log, "pod changed while it was decided on", LOG_STR("pod", task->key));
	flight_abort(f);
	task->stale = behind;
	task_requeue(s, task, false);
}

static void refused(struct flight *f, const char *message)
{
	struct scheduler *s = f->scheduler;
	struct task *task = f->task;

	log_warn(s->log, "binding refused", LOG_STR("pod", task->key), LOG_STR("node", f->node),
		 LOG_STR("why", message));
	flight_abort(f);
	report_waits(s, task, message, true);
	task_requeue(s, task, true);
}

/* Bound by another, or deleted: the cache shows it soon, if it has not yet. */
static void overtaken(struct flight *f, const char *how)
{
	struct scheduler *s = f->scheduler;
	struct task *task = f->task;

	log_info(s->log, "pod was taken from us", LOG_STR("pod", task->key), LOG_STR("how", how));
	flight_abort(f);
	task_landed(s, task);
}

/* Neither done nor refused: people hear of it if that goes on, and it goes again. */
static void in_doubt(struct flight *f, const char *why)
{
	if (f->resends >= RESENDS_TOLD)
		report_in_doubt(f->scheduler, f->task, f->node, why);
	pause_flight(f);
}

static void answered(void *context, const struct kube_bind_result *result)
{
	struct flight *f = context;

	f->binding = NULL;
	meters_binding(f->scheduler->meters, kube_bind_outcome_name(result->outcome),
		       seconds_since(f->scheduler, f->sent_ns));
	switch (result->outcome) {
	case KUBE_BIND_DONE:
		succeeded(f);
		break;
	case KUBE_BIND_SAME:
	case KUBE_BIND_UNSENT:
	case KUBE_BIND_UNKNOWN:
		if (result->pod && is_held(result->pod))
			moved(f);
		else
			in_doubt(f, result->reply->message);
		break;
	case KUBE_BIND_MOVED:
		moved(f);
		break;
	case KUBE_BIND_ELSEWHERE:
	case KUBE_BIND_GONE:
		overtaken(f, kube_bind_outcome_name(result->outcome));
		break;
	case KUBE_BIND_REFUSED:
		refused(f, result->reply->message);
		break;
	}
}

static void send_binding(struct flight *f)
{
	const struct annotations *list = f->annotations;
	struct kube_pair pairs[ANNOTATIONS_MAX];
	struct kube_bind bind = { .namespace = f->task->namespace,
				  .pod = f->task->name,
				  .uid = f->task->uid,
				  .version = f->version,
				  .node = f->node,
				  .annotations = pairs,
				  .annotations_count = list->count,
				  .attempt_key = KEY_DECISION,
				  .done = answered,
				  .context = f };
	struct err err = ERR_INIT;

	for (uint32_t i = 0; i < list->count; i++)
		pairs[i] = (struct kube_pair){ list->items[i].key, list->items[i].value };
	f->sent_ns = clock_monotonic_ns(f->scheduler->clock);
	if (kube_bind(f->scheduler->client, &bind, &f->binding, &err) < 0) {
		f->binding = NULL;
		flight_fail(f, err.text);
	}
}

void flight_bind(struct flight *f)
{
	f->stage = FLIGHT_BINDING;
	send_binding(f);
}

void flight_seen(struct flight *f, const struct json *pod)
{
	const char *node = json_str(pod, "spec", "nodeName");
	const char *decision = json_str(pod, "metadata", "annotations", KEY_DECISION);

	f->superseded = !node || strcmp(node, f->node) != 0 || !decision ||
			strcmp(decision, f->decision) != 0;
}
