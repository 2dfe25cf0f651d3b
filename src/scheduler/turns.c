/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/turns.h"

#include "base/attr.h"
#include "scheduler/task.h"

static void append(struct turns *turns, struct unit *unit, uint64_t now_ms)
{
	unit->turn_ms = now_ms;
	unit->is_in_turn = true;
	unit->turn_next = NULL;
	unit->turn_previous = turns->last;
	*(turns->last ? &turns->last->turn_next : &turns->first) = unit;
	turns->last = unit;
}

void turns_join(struct turns *turns, struct unit *unit, uint64_t now_ms)
{
	if (!unit->is_in_turn)
		append(turns, unit, now_ms);
}

void turns_leave(struct turns *turns, struct unit *unit)
{
	if (!unit->is_in_turn)
		return;
	*(unit->turn_previous ? &unit->turn_previous->turn_next : &turns->first) = unit->turn_next;
	*(unit->turn_next ? &unit->turn_next->turn_previous : &turns->last) = unit->turn_previous;
	unit->turn_next = unit->turn_previous = NULL;
	unit->is_in_turn = false;
}

uint64_t turns_due_ms(const struct turns *turns, uint64_t after_ms, uint64_t now_ms)
{
	const struct unit *first = turns->first;

	if (!first)
		return UINT64_MAX;
	uint64_t at = MAX(first->turn_ms + after_ms, turns->next_ms);
	return at > now_ms ? at - now_ms : 0;
}

/* Of those whose turn it is, the one of the highest priority, then the one who came first. */
static struct unit *most_important(const struct turns *turns, uint64_t after_ms, uint64_t now_ms)
{
	struct unit *best = turns->first, *at = best;

	for (unsigned i = 0; at && at->turn_ms + after_ms <= now_ms && i < TURNS_LOOK_MAX; i++) {
		if (at->item.priority > best->item.priority)
			best = at;
		at = at->turn_next;
	}
	return best;
}

struct unit *turns_take(struct turns *turns, uint64_t after_ms, uint64_t now_ms)
{
	struct unit *unit;

	if (turns_due_ms(turns, after_ms, now_ms) > 0)
		return NULL;
	unit = most_important(turns, after_ms, now_ms);
	turns_leave(turns, unit);
	append(turns, unit, now_ms);
	turns->next_ms = now_ms + TURNS_MS;
	return unit;
}
