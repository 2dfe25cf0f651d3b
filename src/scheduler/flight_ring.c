/* SPDX-License-Identifier: Apache-2.0 */
/* flight_ring.c - the flights of a gang, all or none; one that is alone is a ring of itself.
 *
 * All are locked before a volume is bound for one, and have their volumes before the first
 * Binding is sent.  What goes wrong before that is the end of the whole ring; after it each goes
 * its own way. */
#include "base/log.h"
#include "engine/cluster.h"
#include "engine/gpuset.h"
#include "scheduler/flight.h"
#include "scheduler/residents.h"
#include "scheduler/volume_bind.h"

void flight_join(struct flight *a, struct flight *b)
{
	b->before = a;
	b->peer = a->peer;
	b->peer->before = a->peer = b;
}

void flight_leave_ring(struct flight *f)
{
	f->before->peer = f->peer;
	f->peer->before = f->before;
	f->peer = f->before = f;
}

/* They are fenced as the gang that they are; short of memory, one by one: slower, as safe. */
static void release_locks(struct flight *f)
{
	VEC(struct lock *) held CLEANUP(vec_cleanup) = { 0 };
	struct flight *at = f;

	do {
		flight_await_fence(at);
		if (at->lock && vec_push(&held, at->lock) == 0)
			at->lock = NULL;
		at = at->peer;
	} while (at != f);
	if (held.len)
		locks_release(f->scheduler->locks, held.items, (uint32_t)held.len);
}

/* All of them are told `why`, unless it is NULL. */
static void abort_ring(struct flight *f, bool pause, const char *why)
{
	struct scheduler *s = f->scheduler;
	bool last = false;

	release_locks(f);
	while (!last) {
		struct flight *other = f->peer;
		struct task *task = other->task;

		last = other == f;
		flight_abort(other);
		if (why)
			report_waits(s, task, why, false);
		task_requeue(s, task, pause);
	}
}

void flight_abort_ring(struct flight *f, bool pause)
{
	abort_ring(f, pause, NULL);
}

void flight_decide_again(struct flight *f, const char *why, bool pause)
{
	log_info(f->scheduler->log, "what was decided does not hold any more",
		 LOG_STR("pod", f->task->key), LOG_STR("node", f->node), LOG_STR("why", why));
	flight_abort_ring(f, pause);
}

/* Who shares a card is not alone on it; and who has slices is seen on all of it. */
static uint32_t whole_cards(const struct pod *pod)
{
	uint32_t gpus = 0;

	for (uint16_t i = 0; i < pod->holds_count; i++)
		if (pod->holds[i].kind == ASK_WHOLE)
			gpus |= gpuset_one(pod->holds[i].gpu);
	return gpus;
}

const char *flight_spoilt(const struct flight *f)
{
	const struct scheduler *s = f->scheduler;
	uint32_t number = cluster_pod_find(s->cluster, f->task->uid), gpus = 0;

	/* The server would bind it all the same; the engine has forgotten it with its node. */
	if (number == POD_NONE)
		return "the node is gone";
	const struct pod *pod = cluster_pod(s->cluster, number);
	const struct node *node = cluster_node(s->cluster, pod->node);

	for (uint16_t i = 0; i < pod->holds_count; i++) {
		if (!node->gpus[pod->holds[i].gpu].healthy)
			return "a GPU is not healthy any more";
		gpus |= gpuset_one(pod->holds[i].gpu);
	}
	if (gpus != f->gpus)
		return "the GPUs have other indexes";
	if (whole_cards(pod) & residents_unbooked(s->residents, f->node))
		return "a GPU is in use by another pod";
	return NULL;
}

/* Whether all is as it was decided, of every one: volumes may have taken minutes. */
static bool is_ring_good(struct flight *lead)
{
	struct flight *at = lead;

	do {
		bool same = flight_is_cached(at);
		const char *why = same ? flight_spoilt(at) : "the pod has changed";

		/* One that another has bound is not our business any more. */
		if (why && !at->superseded) {
			flight_decide_again(at, why, same);
			return false;
		}
		at = at->peer;
	} while (at != lead);
	return true;
}

static void bind_ring(struct flight *lead)
{
	struct gang *gang = lead->task->gang;
	struct scheduler *s = lead->scheduler;

	if (!is_ring_good(lead))
		return;
	while (lead->peer != lead) {
		struct flight *other = lead->peer;

		flight_leave_ring(other);
		flight_bind(other);
	}
	flight_bind(lead);
	if (gang)
		gang_wake(s, gang); /* members beyond those it needs may follow */
}

static void volumes_failed(struct flight *f, const char *why)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	log_info(f->scheduler->log, "volumes not bound", LOG_STR("pod", f->task->key),
		 LOG_STR("why", why));
	if (f->peer != f)
		strbuf_addf(&text, "its gang lacks volumes of %s: ", f->task->name);
	strbuf_puts(&text, why);
	abort_ring(f, true, text.failed ? NULL : text.s);
}

static void volumes_bound(void *context, bool ok, const char *why)
{
	struct flight *f = context;

	volume_binding_free(f->volumes);
	f->volumes = NULL;
	if (!ok)
		volumes_failed(f, why);
	else if (--f->lead->awaited == 0)
		bind_ring(f->lead);
}

static void bind_volumes(struct flight *lead)
{
	struct flight *at = lead;

	do {
		if (at->volumes) {
			lead->awaited++;
			volume_bind(at->volumes, volumes_bound, at);
		}
		at = at->peer;
	} while (at != lead);
	if (!lead->awaited)
		bind_ring(lead);
}

void flight_locked(struct flight *f)
{
	f->stage = FLIGHT_LOCKED;
	if (--f->lead->awaited == 0)
		bind_volumes(f->lead);
}

/* What needs no lock waits for who does, too. */
void flight_start(struct flight *f)
{
	struct flight *at = f;

	do {
		at->lead = f;
		f->awaited += at->entry != NULL;
		at->stage = FLIGHT_LOCKED;
		at = at->peer;
	} while (at != f);
	if (!f->awaited) {
		bind_volumes(f);
		return;
	}
	do {
		if (at->entry)
			flight_lock(at);
		at = at->peer;
	} while (at != f);
}
