/* SPDX-License-Identifier: Apache-2.0 */
/* flight.c - a decision on its way: what is written for it, and its lock.
 *
 * The engine has the pod placed from before the flight begins until it ends badly; so the
 * next decision sees it.  flight_ring.c is what follows when it is locked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "dialect/keys.h"
#include "engine/engine.h"
#include "engine/explain.h"
#include "kube/bind.h"
#include "kube/cache.h"
#include "kube/object.h"
#include "scheduler/claims.h"
#include "scheduler/closed.h"
#include "scheduler/flight.h"
#include "scheduler/inventory.h"
#include "scheduler/lookup.h"
#include "scheduler/volume_bind.h"
#include "wire/json.h"

#define FLIGHT_ARENA_MAX ((size_t)512 << 10)
#define SPARES_MAX	 1024

static struct flight *flight_get(struct scheduler *s)
{
	struct flight *f = s->spare;
	struct arena arena;

	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f)
			arena_init(&f->arena, FLIGHT_ARENA_MAX);
		return f;
	}
	s->spare = f->next;
	s->spares--;
	arena = f->arena;
	*f = (struct flight){ .arena = arena };
	return f;
}

static void flight_put(struct scheduler *s, struct flight *f)
{
	arena_reset(&f->arena);
	if (s->spares == SPARES_MAX) {
		arena_done(&f->arena);
		free(f);
		return;
	}
	f->next = s->spare;
	s->spare = f;
	s->spares++;
}

static void put_hold(const struct scheduler *s, const struct node *node, const struct hold *h,
		     struct lock_hold *ret)
{
	const struct gpu *gpu = &node->gpus[h->gpu];

	*ret = (struct lock_hold){ .uuid = cluster_string(s->cluster, gpu->uuid) };
	if (h->kind == ASK_MIG) {
		ret->mig_profile = node->mig->profiles[h->mig_profile].name;
		ret->mig_start = h->mig_start;
	} else if (h->kind == ASK_WHOLE) {
		ret->core_milli = CORE_WHOLE;
		ret->mem_mib = gpu->mem_mib;
	} else {
		ret->core_milli = h->core_milli;
		ret->mem_mib = h->mem_mib;
	}
}

/* Others may choose the same index of the map for another pod: the lock says whose it is. */
static int put_map(struct flight *f, const struct wish *wish, struct err *err)
{
	char map[LOOKUP_MAP_MAX];

	if (!wish->workload || !wish->index_chosen)
		return 0;
	lookup_map_name(wish->workload, map);
	f->entry->map = arena_strndup(&f->arena, map, strlen(map));
	f->entry->map_index = wish->index;
	return f->entry->map ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int make_entry(struct flight *f, const struct wish *wish, const struct decision *d,
		      struct err *err)
{
	const struct scheduler *s = f->scheduler;
	const struct assignment *a = &d->assignment;
	struct lock_hold *holds = arena_array(&f->arena, a->count, sizeof(*holds));
	const char *gang = wish->gang.name ? strchr(wish->gang.name, '/') : NULL;

	f->entry = arena_alloc(&f->arena, sizeof(*f->entry));
	if (!holds || !f->entry)
		return err_set(err, ENOMEM, "out of memory");
	for (uint16_t i = 0; i < a->count; i++)
		put_hold(s, cluster_node(s->cluster, d->node), &a->holds[i], &holds[i]);
	*f->entry = (struct lock_entry){ .uid = f->task->uid,
					 .namespace = f->task->namespace,
					 .name = f->task->name,
					 .version = f->version,
					 .attempt = f->attempt,
					 .holds = holds,
					 .holds_count = a->count };
	int rc = put_map(f, wish, err);
	if (rc < 0 || !gang || !f->task->gang)
		return rc;
	f->entry->gang = arena_strndup(&f->arena, gang + 1, strlen(gang + 1));
	f->entry->gang_members = wish->gang.members;
	return f->entry->gang ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* A pod without GPUs carries no more than how to know our Binding again. */
static void drop_unneeded(struct annotations *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].key, KEY_DECISION) == 0)
			list->items[0] = list->items[i];
	list->count = 1;
}

/* Keys of ours that a user has written, and that are not written now: a Binding cannot remove
 * them, but they shall say nothing. */
static int empty_forged(struct flight *f, struct err *err)
{
	const struct kube_object *pod =
		kube_cache_get(f->scheduler->pods, f->task->namespace, f->task->name);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct annotations *list = f->annotations;

	if (!pod || kube_object_parse(pod, &doc) < 0)
		return 0;
	struct json_iter iter = json_members(json_root(doc), "metadata", "annotations");
	for (struct json_member m; json_next_member(&iter, &m);) {
		char *key;

		if (!annotation_is_decision(m.key) || annotations_find(list, m.key))
			continue;
		if (list->count == ANNOTATIONS_MAX)
			return err_set(err, E2BIG,
				       "the pod has too many annotations that only the scheduler "
				       "writes, %s among them: leave them out",
				       m.key);
		key = arena_strndup(&f->arena, m.key, strlen(m.key));
		if (!key)
			return err_set(err, ENOMEM, "out of memory");
		list->items[list->count++] = (struct annotation){ key, "" };
	}
	return 0;
}

static const char *slice_uuid(void *context, uint32_t node, const struct hold *hold)
{
	struct flight *f = context;
	const struct node *n = cluster_node(f->scheduler->cluster, node);

	return inventory_slice(f->scheduler->inventory, n->name, hold->gpu,
			       n->mig->profiles[hold->mig_profile].name, hold->mig_start,
			       &f->arena);
}

static int make_annotations(struct flight *f, const struct wish *wish, const struct decision *d,
			    struct err *err)
{
	const struct scheduler *s = f->scheduler;
	const struct kube_object *pod = kube_cache_get(s->pods, f->task->namespace, f->task->name);
	struct annotations_input input = {
		.cluster = s->cluster,
		.wish = wish,
		.decision = d,
		.scheduler = wish->scheduler,
		.pod_uid = f->task->uid,
		.attempt = f->attempt,
		.visibility = inventory_visibility(s->inventory, f->node),
		.mps = inventory_mps(s->inventory, f->node),
		.existing_bytes = pod ? pod->annotations_bytes : 0,
		.slice_uuid = slice_uuid,
		.context = f,
	};

	f->annotations = arena_alloc(&f->arena, sizeof(*f->annotations));
	if (!f->annotations)
		return err_set(err, ENOMEM, "out of memory");
	int rc = annotations_make(&input, &f->arena, f->annotations, err);
	if (rc < 0)
		return rc;
	if (!d->assignment.count)
		drop_unneeded(f->annotations);
	f->decision = annotations_find(f->annotations, KEY_DECISION);
	return empty_forged(f, err);
}

/* What people are told that it has. */
static int make_text(struct flight *f, const struct decision *d, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	explain_assignment(f->scheduler->engine, d->node, &d->assignment, &text);
	f->gpus_text = text.failed ? NULL : arena_strndup(&f->arena, text.s, text.len);
	return f->gpus_text ? 0 : err_set(err, ENOMEM, "out of memory");
}

struct flight *flight_new(struct scheduler *s, struct task *task, const struct wish *wish,
			  const struct decision *d, const char *version, struct err *err)
{
	const char *node = cluster_node(s->cluster, d->node)->name;
	struct flight *f = flight_get(s);
	int rc = 0;

	if (!f) {
		err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	f->scheduler = s;
	f->task = task;
	f->peer = f->before = f;
	f->attempt = task_attempt(rng_next(&s->rng));
	f->node = arena_strndup(&f->arena, node, strlen(node));
	f->version = arena_strndup(&f->arena, version, strlen(version));
	f->gpus = d->assignment.gpus;
	if (!f->node || !f->version)
		rc = err_set(err, ENOMEM, "out of memory");
	if (rc == 0)
		rc = make_annotations(f, wish, d, err);
	if (rc == 0 && d->assignment.count)
		rc = make_entry(f, wish, d, err);
	if (rc == 0 && d->assignment.count)
		rc = make_text(f, d, err);
	if (rc == 0 && wish->volumes_wait)
		rc = volume_reserve(s->volumes,
				    kube_cache_get(s->pods, task->namespace, task->name), f->node,
				    &f->volumes, err);
	if (rc < 0) {
		flight_put(s, f);
		return NULL;
	}
	task->flight = f;
	if (task->gang)
		task->gang->flying++;
	s->flights++;
	return f;
}

static void unpause(struct scheduler *s, struct flight *f)
{
	struct flight **at = &s->paused;

	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	f->next = NULL;
}

void flight_drop(struct flight *f)
{
	f->scheduler->flights--;
	flight_leave_ring(f);
	if (f->stage == FLIGHT_PAUSED)
		unpause(f->scheduler, f);
	if (f->binding)
		kube_bind_cancel(f->binding);
	volume_binding_free(f->volumes);
	f->task->flight = NULL;
	if (f->task->gang)
		f->task->gang->flying--;
	flight_put(f->scheduler, f);
}

void flight_end(struct flight *f)
{
	struct scheduler *s = f->scheduler;

	flight_drop(f);
	scheduler_kick(s);
}

/* Giving up a lock that is held makes another version of the pod: decided on when the cache has
 * that. */
void flight_await_fence(struct flight *f)
{
	if (f->lock && f->stage != FLIGHT_LOCKING && flight_is_cached(f))
		f->task->stale = true;
}

void flight_abort(struct flight *f)
{
	struct scheduler *s = f->scheduler;
	struct task *task = f->task;

	flight_await_fence(f);
	if (f->lock)
		locks_release(s->locks, &f->lock, 1);
	f->lock = NULL;
	if (!f->superseded)
		task_unassume(s, task);
	claims_waits(s->claims, task->uid, "", false);
	flight_end(f);
}

/* Somebody else was faster; what they hold is known by now.  Again at once, but not for ever:
 * it may be that this node cannot be locked at all for a while. */
static void lost(struct flight *f, const char *why)
{
	struct strbuf message CLEANUP(strbuf_done) = STRBUF_INIT;
	struct task *task = f->task;

	log_debug(f->scheduler->log, "lock lost", LOG_STR("pod", task->key),
		  LOG_STR("node", f->node), LOG_STR("why", why));
	strbuf_addf(&message, "%s cannot be locked: %s", f->node, why);
	if (++task->lost >= LOST_TOLD && !message.failed)
		report_waits(f->scheduler, task, message.s, true);
	flight_abort_ring(f, task->lost > LOST_AT_ONCE);
}

/* Nobody can lock anything there for now: all go elsewhere. */
static void closed(struct flight *f, const char *why)
{
	closed_add(f->scheduler, f->node, why);
	flight_abort_ring(f, ++f->task->lost > LOST_AT_ONCE);
}

/* Another scheduler is at this pod, or was: it waits until that lock is gone. */
static void busy(struct flight *f, const char *why)
{
	struct scheduler *s = f->scheduler;

	log_debug(s->log, "pod is locked by another", LOG_STR("pod", f->task->key),
		  LOG_STR("why", why));
	flight_abort_ring(f, true);
}

static void taken(void *context, enum lock_outcome outcome, const char *why)
{
	struct flight *f = context;
	struct scheduler *s = f->scheduler;

	if (outcome == LOCK_TAKEN) {
		f->task->lost = 0;
		claims_reserved(s->claims, f->task->uid, f->node, f->gpus);
		flight_locked(f);
		return;
	}
	f->lock = NULL;
	if (outcome == LOCK_LOST) {
		lost(f, why);
	} else if (outcome == LOCK_BUSY) {
		busy(f, why);
	} else if (outcome == LOCK_CLOSED) {
		closed(f, why);
	} else {
		report_waits(s, f->task, why, true);
		flight_abort_ring(f, true);
	}
}

void flight_lock(struct flight *f)
{
	struct err err = ERR_INIT;

	f->stage = FLIGHT_LOCKING;
	if (locks_take(f->scheduler->locks, f->node, f->entry, taken, f, &f->lock, &err) < 0) {
		f->lock = NULL;
		flight_fail(f, err.text);
	}
}

void flights_done(struct scheduler *s)
{
	while (s->spare) {
		struct flight *f = s->spare;

		s->spare = f->next;
		arena_done(&f->arena);
		free(f);
	}
}
