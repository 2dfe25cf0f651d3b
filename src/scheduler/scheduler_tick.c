/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler_tick.c - when it works: it leads, everything is known, nobody has told it to end. */
#include "scheduler/scheduler.h"

#include "base/attr.h"
#include "base/log.h"
#include "engine/cluster.h"
#include "kube/events.h"
#include "kube/ready.h"
#include "scheduler/claims.h"
#include "scheduler/closed.h"
#include "scheduler/config.h"
#include "scheduler/evict.h"
#include "scheduler/meters.h"
#include "scheduler/preempt.h"
#include "scheduler/residents.h"
#include "scheduler/scheduler_private.h"
#include "scheduler/stalled.h"

#define COLLECT_MS 60000
#define WAKING_MS  50 /* how often it is asked whether everything is known */
#define IDLE_MS	   1000
#define EVENTS_MS  2000 /* for those that have not been sent at the end */

static void tick(struct scheduler *s);

static void timer_due(uv_timer_t *timer)
{
	tick(timer->data);
}

static void set_timer(struct scheduler *s, uint64_t ms)
{
	uv_timer_start(s->timer, timer_due, ms, 0);
}

static void go_on(uv_idle_t *idle)
{
	uv_idle_stop(idle);
	tick(idle->data);
}

/* A timer of 0 ms that is started by itself runs for ever in libuv before 1.45, and nothing is heard
 * meanwhile: a turn that follows on another comes after the loop has looked around. */
void scheduler_kick(struct scheduler *s)
{
	if (s->freeing)
		return;
	if (s->ticking)
		uv_idle_start(s->idle, go_on);
	else
		set_timer(s, 0);
}

/* Everything is known and it leads: from now on it decides. */
static void activate(struct scheduler *s)
{
	s->active = true;
	meters_leader(s->meters, true);
	meters_recovered(s->meters, (double)(now_ms(s) - s->lead_ms) / 1e3);
	claims_activate(s->claims, true);
	residents_know(s->residents);
	pods_require_locks(s);
	preempt_restore(s);
	log_info(s->log, "scheduling", LOG_U64("nodes", cluster_nodes_count(s->cluster)),
		 LOG_U64("pods", cluster_pods_count(s->cluster)),
		 LOG_U64("waiting", s->tasks.by_uid.len));
}

/* Locks of the other mode are given up by who leads alone, and only then are they ready. */
static void wake_up(struct scheduler *s)
{
	if (s->active || !s->leading || s->draining || !kube_caches_synced(s->caches))
		return;
	locks_activate(s->locks, true);
	if (!*locks_why_not(s->locks))
		activate(s);
}

static bool is_any_asked_to_go(const struct scheduler *s)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->victims, &at, &entry);)
		for (const struct victim *victim = entry.value; victim; victim = victim->twin)
			if (victim->writing)
				return true;
	return false;
}

/* What claims do not say yet they are told by who leads next; and for events, which are for people
 * alone, that one does not wait for long. */
static bool is_busy(struct scheduler *s, uint64_t now)
{
	if (s->flights || s->telling || locks_in_flight(s->locks) || is_any_asked_to_go(s))
		return true;
	claims_activate(s->claims, false);
	return claims_in_flight(s->claims) ||
	       (kube_events_unsent(s->events) && now < s->drain_events_by_ms);
}

static void check_drained(struct scheduler *s, uint64_t now)
{
	void (*drained)(void *context) = s->drained;

	if (!drained || (now < s->drain_by_ms && is_busy(s, now)))
		return;
	s->drained = NULL;
	drained(s->drained_context);
}

static void look_after_gangs(struct scheduler *s, uint64_t now)
{
	gangs_tell(s, now);
	if (now < s->collect_ms)
		return;
	s->collect_ms = now + COLLECT_MS;
	gangs_collect(s);
}

/* In how many ms somebody has waited for so long that he may have a reservation; there is one
 * at a time. */
static uint64_t turn_due_ms(const struct scheduler *s, uint64_t now)
{
	if (!s->active || s->draining || preempt_reserves(s))
		return UINT64_MAX;
	return turns_due_ms(&s->turns, s->reserve_after_ms, now);
}

static void give_turn(struct scheduler *s, uint64_t now)
{
	struct unit *unit =
		turn_due_ms(s, now) == 0 ? turns_take(&s->turns, s->reserve_after_ms, now) : NULL;

	if (unit)
		pending_wake_item(s->pending, &unit->item, now);
}

static void tick(struct scheduler *s)
{
	uint64_t now = now_ms(s), wait_ms = IDLE_MS;

	s->ticking = true;
	wake_up(s);
	uint64_t due_ms = pending_tick(s->pending, now);
	if (!s->active || s->draining)
		wait_ms = WAKING_MS;
	if (s->active && !s->draining) {
		preempt_tick(s, now); /* before others take what is free now */
		look_after_gangs(s, now);
		give_turn(s, now);
	}
	set_timer(s, MAX(MIN(wait_ms, MIN(due_ms, turn_due_ms(s, now))), 1));
	if (s->active && !s->draining)
		cycle_run(s);
	flights_tick(s, now);
	closed_tick(s, now);
	stalled_tick(s, now);
	config_tick(s->config);
	report_tick(s);
	s->ticking = false;
	check_drained(s, now);
}

void scheduler_lead(struct scheduler *s, bool lead)
{
	if (lead && !s->leading)
		s->lead_ms = now_ms(s);
	s->leading = lead;
	if (!lead)
		locks_activate(s->locks, false);
	if (!lead && s->active) {
		s->active = false;
		meters_leader(s->meters, false);
		claims_activate(s->claims, false);
	}
	scheduler_kick(s);
}

void scheduler_drain(struct scheduler *s, uint32_t grace_ms, void (*drained)(void *context),
		     void *context)
{
	s->draining = true;
	s->drained = drained;
	s->drained_context = context;
	s->drain_by_ms = now_ms(s) + grace_ms;
	s->drain_events_by_ms = now_ms(s) + EVENTS_MS;
	scheduler_kick(s);
}
