/* SPDX-License-Identifier: Apache-2.0 */
/* cycle.c - the decisions: what waits is tried, one unit after the other.
 *
 * A turn ends after some milliseconds, so that answers and events are heard in between, and
 * pauses while as many decisions are on their way as may be. */
#include <errno.h>

#include "base/err.h"
#include "base/log.h"
#include "dialect/dialect.h"
#include "engine/engine.h"
#include "scheduler/meters.h"
#include "scheduler/preempt.h"

#define TURN_NS	    UINT64_C(4000000)
#define TURN_UNITS  256
#define FLIGHTS_MAX 512
/* After a restart, locks of pods that are gone are collected by then: one that is there still is
 * somebody's. */
#define GUEST_MS 15000

void task_spec(const struct task *task, const struct wish *wish, struct pod_spec *ret)
{
	*ret = (struct pod_spec){ .uid = task->uid,
				  .name = task->key,
				  .priority = wish->priority,
				  .gang = task->gang ? task->gang->number : 0,
				  .started = UINT64_MAX };
}

/* It would wake itself by what it leaves: so it pauses, and is not parked; unless its own
 * annotations leave no room for the decision, which only it, or another node, can mend. */
static void cannot_start(struct scheduler *s, struct task *task, int rc, const struct err *err)
{
	task_unassume(s, task);
	if (rc == -E2BIG) {
		refuse_wrong(s, task, rc, err, false);
		return;
	}
	report_waits(s, task, err->text, rc == -ENOMEM);
	pending_failed(s->pending, &task->unit.item, now_ms(s));
}

/* Books it and sends it on its way. */
static void launch(struct scheduler *s, struct task *task, const struct wish *wish,
		   const struct decision *d, const char *version)
{
	struct err err = ERR_INIT;
	struct pod_spec spec;
	uint32_t number;

	task_spec(task, wish, &spec);
	if (engine_place(s->engine, &spec, &wish->request, d, &number) < 0) {
		/* The lock of another of this very pod is booked, or memory is short. */
		pending_failed(s->pending, &task->unit.item, now_ms(s));
		return;
	}
	s->epoch++;
	struct flight *f = flight_new(s, task, wish, d, version, &err);
	if (!f) {
		cannot_start(s, task, -err.code, &err);
		return;
	}
	unit_waits_no_more(s, &task->unit);
	pending_placed(s->pending, &task->unit.item);
	flight_start(f);
}

void unit_waits(struct scheduler *s, struct unit *unit)
{
	if (!unit->waits_ms)
		unit->waits_ms = now_ms(s);
	turns_join(&s->turns, unit, now_ms(s));
}

void unit_waits_no_more(struct scheduler *s, struct unit *unit)
{
	unit->waits_ms = unit->reserved_ms = 0;
	turns_leave(&s->turns, unit);
}

bool unit_is_patient(const struct scheduler *s, const struct unit *unit)
{
	return unit->waits_ms && now_ms(s) - unit->waits_ms >= s->reserve_after_ms;
}

static void room_is_made(struct scheduler *s, struct task *task, enum preempting how)
{
	if (how == PREEMPT_ROOM)
		pending_follow(s->pending, &task->unit.item);
	else if (how == PREEMPT_AGAIN)
		pending_again(s->pending, &task->unit.item);
	else
		pending_failed(s->pending, &task->unit.item, now_ms(s));
}

static void make_room(struct scheduler *s, struct task *task, const struct wish *wish)
{
	enum preempting how = preempt_for_task(s, task, wish, false);

	if (how == PREEMPT_NOBODY && unit_is_patient(s, &task->unit))
		how = preempt_for_task(s, task, wish, true);
	if (how != PREEMPT_NOBODY) {
		room_is_made(s, task, how);
		return;
	}
	unit_waits(s, &task->unit);
	refuse_request(s, task, wish);
}

/* The node for which it was nominated before we began is tried first, and if those who were
 * asked to go are still there, it waits for them.  False: it is decided as any other. */
static bool decide_as_before(struct scheduler *s, struct task *task, const struct wish *wish,
			     const char *version)
{
	uint32_t node = preempt_nominated(s, task);
	enum preempting how;
	struct decision d;

	task->nominated_before = false;
	if (node == NODE_NONE)
		return false;
	if (engine_score(s->engine, &wish->request, node, &d, NULL) == FITS) {
		launch(s, task, wish, &d, version);
		return true;
	}
	how = preempt_resume(s, task, wish, node);
	if (how == PREEMPT_NOBODY && preempt_has_guest(s, node) &&
	    now_ms(s) < s->lead_ms + GUEST_MS) {
		task->nominated_before = true;
		pending_refused(s->pending, &task->unit.item, 0,
				WAKE_LOCK | WAKE_POD_LEFT | WAKE_POD_CAME, now_ms(s));
		return true;
	}
	task->nominated_before = how == PREEMPT_LATER || how == PREEMPT_AGAIN;
	if (how != PREEMPT_NOBODY)
		room_is_made(s, task, how);
	return how != PREEMPT_NOBODY;
}

/* Where it fits as things are, or why not; takes the wish over. */
static void decide(struct scheduler *s, struct task *task, struct wish *wish, const char *version)
{
	uint64_t begun_ns = clock_monotonic_ns(s->clock);
	struct decision d;

	if (!task->learned)
		engine_arrived(s->engine, &wish->request);
	task->learned = true;
	if (task_take_index(s, task, wish) < 0) {
		pending_failed(s->pending, &task->unit.item, now_ms(s));
		wish_release(s->cluster, wish);
		return;
	}
	if (task->nominated_before && decide_as_before(s, task, wish, version)) {
		wish_release(s->cluster, wish);
		return;
	}
	bool fits = engine_decide(s->engine, &wish->request, &d) == FITS;
	meters_decided(s->meters, NULL, fits ? METERS_SCHEDULED : METERS_UNSCHEDULABLE,
		       fits ? d.node : NODE_NONE,
		       (double)(clock_monotonic_ns(s->clock) - begun_ns) / 1e9);
	if (fits)
		launch(s, task, wish, &d, version);
	else
		make_room(s, task, wish);
	wish_release(s->cluster, wish);
}

/* Another has locked GPUs for this very pod, or did before it died: until that lock is gone
 * none of ours would hold, and when it is the pod comes before those behind it. */
static bool is_taken(struct scheduler *s, struct task *task)
{
	if (!locks_has_guest(s->locks, task->uid))
		return false;
	log_debug(s->log, "pod is locked by another", LOG_STR("pod", task->key));
	pending_refused(s->pending, &task->unit.item, 0, WAKE_LOCK, now_ms(s));
	return true;
}

/* A node or GPU of its line that is not there may come; its siblings have other lines.  One for
 * whom there is no line has the index behind the last: it is the first to move up. */
static bool wrong_index(struct scheduler *s, struct task *task, int rc, const struct wish *wish)
{
	if ((rc == -ENOENT || rc == -ENOSPC) && task_take_index(s, task, wish) == 0)
		return wish->index_chosen;
	task_drop_index(s, task);
	return false;
}

static void decide_task(struct scheduler *s, struct task *task)
{
	struct err err = ERR_INIT;
	const char *version;
	struct wish wish;

	arena_reset(&s->arena);
	int rc = task_read(s, task, &wish, &version, &err);
	if (rc < 0 ? rc != -ENOMEM : !wish.gang.name)
		task_set_unsorted(&s->tasks, task, false);
	if (preempt_keeps(s, task, rc == 0 && !wish.gang.name ? &wish.request : NULL)) {
		wish_release(s->cluster, &wish);
		return;
	}
	if (rc == -ENOENT && !err.text[0]) {
		pending_remove(s->pending, &task->unit.item); /* its end will be told */
		return;
	}
	if (rc < 0) {
		meters_wrong(s->meters, rc == -ENOMEM ? METERS_ERROR : METERS_UNSCHEDULABLE);
		refuse_wrong(s, task, rc, &err, wrong_index(s, task, rc, &wish));
		return;
	}
	task->unit.item.priority = wish.priority;
	if (wish.gang.name) {
		struct gang *gang = gangs_get(s, wish.gang.name);

		unit_waits_no_more(s, &task->unit);
		task_drop_index(s, task);
		if (!gang || gang_join(s, gang, task, &wish) < 0)
			pending_failed(s->pending, &task->unit.item, now_ms(s));
	} else if (!is_taken(s, task)) {
		decide(s, task, &wish, version);
		return;
	}
	wish_release(s->cluster, &wish);
}

/* While its status is being written its version is about to change: after that. */
static bool is_being_told(struct task *task)
{
	task->again = task->telling != NULL;
	return task->again;
}

void cycle_decide_unit(struct scheduler *s, struct unit *unit)
{
	if (unit->is_gang)
		gang_decide(s, (struct gang *)unit);
	else if (!is_being_told(task_of(unit)))
		decide_task(s, task_of(unit));
}

void cycle_run(struct scheduler *s)
{
	uint64_t end_ns = clock_monotonic_ns(s->clock) + TURN_NS;
	uint32_t most = s->options.max_flights ? s->options.max_flights : FLIGHTS_MAX;

	for (unsigned i = 0; i < TURN_UNITS && s->flights < most; i++) {
		struct pending_item *item = pending_pop(s->pending, now_ms(s));

		if (!item)
			return;
		cycle_decide_unit(s, unit_of(item));
		if (clock_monotonic_ns(s->clock) > end_ns)
			break;
	}
	if (s->flights < most)
		scheduler_kick(s);
}
