/* SPDX-License-Identifier: Apache-2.0 */
/* locks_collect.c - entries that nobody has taken along, Leases of nodes that are no more, and
 * other tries.
 *
 * Five lists, each in the order in which its items are due, since each has one pause for all:
 * a tick costs what is due, not what there is.  Orphans, dead entries and Leases are collected
 * only while we are active; what we gave up ourselves is seen to in any case. */
#include "scheduler/locks_private.h"

#include "base/attr.h"

#include <string.h>

#define VACANT_BATCH 1000 /* that one tick looks at: it is a matter of minutes */

static void put_due(struct record *record, struct link *ring, uint64_t pause_ms)
{
	record->due_ms = locks_now_ms(record->cell->locks) + pause_ms;
	link_append(ring, &record->due);
	collect_arm(record->cell->locks);
}

void collect_orphan(struct record *record)
{
	struct locks *locks = record->cell->locks;

	put_due(record, &locks->orphans, locks->options.orphan_ms);
}

void collect_retry(struct record *record)
{
	put_due(record, &record->cell->locks->retry_judged, LOCKS_RETRY_MS);
}

void collect_retry_cell(struct cell *cell)
{
	struct locks *locks = cell->locks;

	cell->retry_ms = locks_now_ms(locks) + LOCKS_RETRY_MS;
	link_append(&locks->retry_cells, &cell->retry);
	collect_arm(locks);
}

void collect_vacant(struct cell *cell)
{
	struct locks *locks = cell->locks;

	cell->vacant_ms = locks_now_ms(locks) + locks->options.vacant_ms;
	link_append(&locks->vacant, &cell->vacant);
	collect_arm(locks);
}

static void drop_soon(struct record *record)
{
	record->cell->must_drop = true;
	cell_touch(record->cell);
}

/* Of a gang the last that is fenced lets all of them go, and whoever is left without a lock of
 * ours is seen to. */
static void look_at_gang(struct record *record)
{
	struct record *mate = records_of(record->cell->locks, BY_GANG, record->key[BY_GANG]);
	bool can_go = record_can_go(record);

	while (mate) {
		struct record *next = mate->next[BY_GANG];

		if (mate->dead && can_go)
			drop_soon(mate);
		else if (!mate->dead && !mate->bound && !mate->claim && !mate->judging &&
			 mate->serial < record->dead_serial)
			fence_record(mate);
		mate = next;
	}
}

void collect_dead(struct record *record, bool hurry)
{
	struct locks *locks = record->cell->locks;

	record_set_dead(record);
	put_due(record, &locks->dead, locks->options.collect_ms);
	if (!hurry)
		return;
	if (record->key[BY_GANG])
		look_at_gang(record);
	else
		drop_soon(record);
}

static void retry_due(struct record *record)
{
	link_leave(&record->due);
	fence_record(record);
}

static void orphan_due(struct record *record)
{
	link_leave(&record->due);
	switch (record_pod(record)) {
	case LOCK_POD_BOUND:
		record->bound = true;
		break;
	case LOCK_POD_OVER:
		collect_dead(record, true);
		break;
	default:
		if (record->bound)
			fence_verify(record);
		else
			fence_record(record);
	}
}

static void dead_due(struct record *record)
{
	struct locks *locks = record->cell->locks;

	put_due(record, &locks->dead, locks->options.collect_ms);
	if (record_can_go(record))
		drop_soon(record);
	else
		look_at_gang(record);
}

static bool is_due(const struct link *ring, uint64_t now_ms)
{
	return !link_is_empty(ring) && LINK_OF(ring->next, struct record, due)->due_ms <= now_ms;
}

static void run(struct link *ring, uint64_t now_ms, void (*due)(struct record *record))
{
	while (is_due(ring, now_ms))
		due(LINK_OF(ring->next, struct record, due));
}

static void run_cells(struct locks *locks, uint64_t now_ms)
{
	while (!link_is_empty(&locks->retry_cells)) {
		struct cell *cell = LINK_OF(locks->retry_cells.next, struct cell, retry);

		if (cell->retry_ms > now_ms)
			return;
		link_leave(&cell->retry);
		cell_touch(cell);
	}
}

static void vacant_due(struct cell *cell)
{
	const struct locks_options *options = &cell->locks->options;
	bool homeless = options->node && !options->node(options->context, cell->node);
	bool idle = !cell->writing && !cell->claims && !cell->deleting && !cell->unreadable;

	if (homeless && cell->homeless && idle && cell->locks->ready)
		cell_remove(cell);
	cell->homeless = homeless;
	collect_vacant(cell);
}

static void run_vacant(struct locks *locks, uint64_t now_ms)
{
	for (int i = 0; i < VACANT_BATCH && !link_is_empty(&locks->vacant); i++) {
		struct cell *cell = LINK_OF(locks->vacant.next, struct cell, vacant);

		if (cell->vacant_ms > now_ms)
			return;
		vacant_due(cell);
	}
}

void collect_tick(uv_timer_t *timer)
{
	struct locks *locks = timer->data;
	uint64_t now_ms = locks_now_ms(locks);

	run(&locks->retry_judged, now_ms, retry_due);
	run_cells(locks, now_ms);
	mates_tick(locks, now_ms);
	if (locks->active) {
		run(&locks->orphans, now_ms, orphan_due);
		run(&locks->dead, now_ms, dead_due);
		run_vacant(locks, now_ms);
	}
	mode_look(locks);
	collect_arm(locks);
}

static void sooner(uint64_t *due_ms, const struct link *ring)
{
	if (!link_is_empty(ring))
		*due_ms = MIN(*due_ms, LINK_OF(ring->next, struct record, due)->due_ms);
}

void collect_arm(struct locks *locks)
{
	uint64_t due_ms = UINT64_MAX, now_ms = locks_now_ms(locks);

	if (locks->closing)
		return;
	sooner(&due_ms, &locks->retry_judged);
	if (locks->active) {
		sooner(&due_ms, &locks->orphans);
		sooner(&due_ms, &locks->dead);
	}
	if (locks->active && !link_is_empty(&locks->vacant))
		due_ms = MIN(due_ms, LINK_OF(locks->vacant.next, struct cell, vacant)->vacant_ms);
	if (!link_is_empty(&locks->retry_cells))
		due_ms = MIN(due_ms,
			     LINK_OF(locks->retry_cells.next, struct cell, retry)->retry_ms);
	due_ms = MIN(due_ms, mates_due_ms(locks));
	if (locks->mode.retry_ms)
		due_ms = MIN(due_ms, locks->mode.retry_ms);
	if (due_ms == UINT64_MAX)
		uv_timer_stop(&locks->tick);
	else
		uv_timer_start(&locks->tick, collect_tick, due_ms > now_ms ? due_ms - now_ms : 0,
			       0);
}
