/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h - who has waited for longest, so that each gets a reservation in its turn.
 *
 * A unit joins when there is no room for it, and has its turn so many milliseconds later; if that
 * was of no use, again as many later, behind those who came meanwhile.  So the one whose turn is
 * next is always the first, and joining and leaving are O(1), however many wait.  Where it is the
 * turn of several, the one of the highest priority takes it.
 *
 * Pure: time is an argument and never goes back.  Units are borrowed: who frees one has it leave.
 */
#ifndef GS_SCHEDULER_TURNS_H
#define GS_SCHEDULER_TURNS_H

#include <stdint.h>

struct unit;

#define TURNS_MS       100  /* from one turn to the next, at least: each is a look at all nodes */
#define TURNS_LOOK_MAX 4096 /* of those whose turn it is, so many are compared */

/* Zero is empty. */
struct turns {
	struct unit *first, *last;
	uint64_t next_ms; /* no turn before */
};

/* Fine if it is there already, or is not. */
void turns_join(struct turns *turns, struct unit *unit, uint64_t now_ms);
void turns_leave(struct turns *turns, struct unit *unit);

/* In how many ms the first one has its turn, if each has waited for `after_ms` then (which may
 * be another from call to call); UINT64_MAX: nobody waits. */
uint64_t turns_due_ms(const struct turns *turns, uint64_t after_ms, uint64_t now_ms);
/* Who takes a turn now, or NULL.  It is the last one then. */
struct unit *turns_take(struct turns *turns, uint64_t after_ms, uint64_t now_ms);

#endif
