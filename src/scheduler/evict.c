/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/evict.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "engine/cluster.h"
#include "kube/events.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/time.h"
#include "kube/write.h"
#include "scheduler/residents.h"
#include "scheduler/scheduler_private.h"
#include "wire/json_write.h"

struct victim *victim_find(const struct scheduler *s, const char *uid)
{
	return map_get(&s->victims, uid, strlen(uid));
}

/* Several may wait for the same pod: they are a list, of which the map has the first. */
static int enlist(struct scheduler *s, struct victim *victim)
{
	size_t len = strlen(victim->uid);
	struct victim *first = victim_find(s, victim->uid);

	if (first) {
		victim->twin = first->twin;
		first->twin = victim;
		return 0;
	}
	return map_put(&s->victims, victim->uid, len, victim);
}

static void unlist(struct scheduler *s, struct victim *victim)
{
	struct victim *one = victim->uid ? victim_find(s, victim->uid) : NULL;

	if (one == victim) {
		map_del(&s->victims, victim->uid, strlen(victim->uid));
		if (victim->twin) /* there is room for it now */
			map_put(&s->victims, victim->twin->uid, strlen(victim->uid), victim->twin);
		return;
	}
	while (one && one->twin != victim)
		one = one->twin;
	if (one)
		one->twin = victim->twin;
}

void victim_free(struct victim *victim)
{
	if (!victim)
		return;
	unlist(victim->scheduler, victim);
	if (victim->writing)
		kube_write_cancel(victim->writing);
	free(victim->uid);
	free(victim->namespace);
	free(victim->name);
	free(victim->preemptor.uid);
	free(victim->preemptor.namespace);
	free(victim->preemptor.name);
	free(victim);
}

struct victim *victim_new(struct scheduler *s, const struct pod *pod, const struct task *preemptor)
{
	const struct kube_object *object = residents_find(s->residents, pod->uid);
	struct victim *victim = object ? calloc(1, sizeof(*victim)) : NULL;

	if (!victim)
		return NULL;
	victim->scheduler = s;
	victim->ending = pod->ending;
	victim->uid = strdup(pod->uid);
	victim->namespace = strdup(object->namespace);
	victim->name = strdup(object->name);
	victim->preemptor.uid = strdup(preemptor->uid);
	victim->preemptor.namespace = strdup(preemptor->namespace);
	victim->preemptor.name = strdup(preemptor->name);
	if (victim->uid && victim->namespace && victim->name && victim->preemptor.uid &&
	    victim->preemptor.namespace && victim->preemptor.name && enlist(s, victim) == 0)
		return victim;
	victim_free(victim);
	return NULL;
}

static void tell(const struct victim *victim)
{
	struct scheduler *s = victim->scheduler;
	struct strbuf by CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf note CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	struct kube_object_ref preemptor = { .api_version = "v1",
					     .kind = "Pod",
					     .namespace = victim->preemptor.namespace,
					     .name = victim->preemptor.name,
					     .uid = victim->preemptor.uid };
	struct kube_event event = { .regarding = { .api_version = "v1",
						   .kind = "Pod",
						   .namespace = victim->namespace,
						   .name = victim->name,
						   .uid = victim->uid },
				    .related = &preemptor,
				    .reason = "Preempted",
				    .action = "Preempting" };

	strbuf_addf(&by, "%s/%s", preemptor.namespace, preemptor.name);
	strbuf_addf(&note, "Preempted by pod %s", by.s);
	event.note = note.s;
	if (kube_events_add(s->events, &event, &err) < 0)
		log_warn(s->log, "an event cannot be sent", LOG_STR("why", err.text));
	log_info(s->log, "pod preempted", LOG_STR("namespace", victim->namespace),
		 LOG_STR("pod", victim->name), LOG_STR("by", by.s));
}

static bool is_gone(const struct kube_write_result *result)
{
	return result->reply->reason == KUBE_NOT_FOUND ||
	       (result->current && result->current->reason == KUBE_NOT_FOUND);
}

/* The cache tells when it is gone; a refusal for its uid means that it is. */
static void deleted(void *context, const struct kube_write_result *result)
{
	struct victim *victim = context;

	victim->writing = NULL;
	victim->deleting = false;
	if (result->reply->reason == KUBE_OK || result->reply->reason == KUBE_CONFLICT ||
	    is_gone(result)) {
		victim->marked = false; /* it goes */
		tell(victim);
		return;
	}
	victim->failed(victim->nomination, result->reply->message);
}

static void delete_pod(struct victim *victim)
{
	struct kube_write write = { .verb = KUBE_DELETE,
				    .kind = &kube_kinds[KUBE_POD],
				    .namespace = victim->namespace,
				    .name = victim->name,
				    .uid = victim->uid,
				    .done = deleted,
				    .context = victim };
	struct err err = ERR_INIT;

	victim->deleting =
		kube_write(victim->scheduler->client, &write, &victim->writing, &err) == 0;
	if (!victim->deleting)
		victim->failed(victim->nomination, err.text);
}

void victim_gone(struct victim *victim)
{
	if (victim->deleting)
		tell(victim);
	victim->deleting = false;
}

/* What cannot be said is no reason to let it stay. */
static void marked(void *context, const struct kube_write_result *result)
{
	struct victim *victim = context;

	victim->writing = NULL;
	if (!is_gone(result))
		delete_pod(victim);
}

static void put_mark(const struct victim *victim, bool goes, struct strbuf *out)
{
	struct scheduler *s = victim->scheduler;
	char now[KUBE_TIME_MAX];
	struct strbuf message CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&message, "%s: %s", s->names[0],
		    goes ? "preempting to accommodate a higher priority pod"
			 : "the room that it has is not needed any more");
	strbuf_puts(out, "{\"metadata\":{\"uid\":");
	strbuf_add_json(out, victim->uid, strlen(victim->uid));
	strbuf_addf(out,
		    "},\"status\":{\"conditions\":[{\"type\":\"DisruptionTarget\","
		    "\"status\":\"%s\",\"reason\":\"PreemptionByScheduler\",\"message\":",
		    goes ? "True" : "False");
	strbuf_add_json(out, message.s, message.len);
	strbuf_addf(out, ",\"lastTransitionTime\":\"%s\"}]}}",
		    kube_time_format(clock_wall_ns(s->clock), now));
}

/* Its status says that it goes, or that it does not. */
static int write_mark(struct victim *victim, bool goes, struct kube_writing **ret,
		      void (*done)(void *context, const struct kube_write_result *result),
		      void *context)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;

	put_mark(victim, goes, &body);
	struct kube_write write = { .verb = KUBE_STRATEGIC_PATCH,
				    .kind = &kube_kinds[KUBE_POD],
				    .namespace = victim->namespace,
				    .name = victim->name,
				    .subresource = "status",
				    .body = body.s,
				    .body_len = body.len,
				    .done = done,
				    .context = context };
	int rc = kube_write(victim->scheduler->client, &write, ret, &err);
	if (rc < 0)
		log_warn(victim->scheduler->log, "the status of a victim cannot be written",
			 LOG_STR("why", err.text));
	return rc;
}

int victim_ask(struct victim *victim)
{
	if (victim->ending)
		return 0;
	int rc = write_mark(victim, true, &victim->writing, marked, victim);

	victim->marked = rc == 0;
	return rc;
}

/* If that fails too, it only bears a mark. */
static void unmarked(void *context, const struct kube_write_result *result)
{
	(void)context, (void)result;
}

void victim_spare(struct victim *victim)
{
	if (!victim->marked || victim->deleting)
		return;
	if (victim->writing)
		kube_write_cancel(victim->writing);
	victim->writing = NULL;
	victim->marked = false;
	write_mark(victim, false, NULL, unmarked, NULL);
}
