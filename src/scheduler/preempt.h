/* SPDX-License-Identifier: Apache-2.0 */
/* preempt.h - room that is being made: pods of lower priority are asked to go, and awaited; or
 * it is reserved, and those who are there may end in their own time.
 *
 * From the moment that they are chosen the engine sees who takes their place beside them, so
 * nobody else is given what they leave, however long each of them takes.  On the server
 * nothing is locked for it yet: a GPU is free when its pod is gone.  When the last one is, the
 * unit is decided anew, on what is there then.
 *
 * Reservations keep what is big from being starved by what is small and comes all the time: a
 * unit that has waited for long gets one, the cheapest there is, in its turn (turns.h); all others
 * go on around it (backfill).  There is one at a time, looked at anew every few seconds.
 */
#ifndef GS_SCHEDULER_PREEMPT_H
#define GS_SCHEDULER_PREEMPT_H

#include <stdbool.h>

#include "scheduler/scheduler_private.h"

enum preempting {
	PREEMPT_NOBODY, /* no eviction helps */
	PREEMPT_LATER,	/* it would, but not at this moment */
	PREEMPT_AGAIN,	/* somebody less important has made way, and waits behind it: at once */
	PREEMPT_ROOM,	/* room is being made: the unit is out of the queue until it is there */
};

/* `reserve`: nobody is asked to go, whatever the priorities. */
enum preempting preempt_for_task(struct scheduler *s, struct task *task, const struct wish *wish,
				 bool reserve);
enum preempting preempt_for_gang(struct scheduler *s, struct gang *gang,
				 const struct gang_spec *spec, int32_t priority, bool reserve);

/* Who led before us may have nominated pods, and asked others to go for them.  These go before
 * their equals, so that nobody else is given that room.  To be called before the first decision. */
void preempt_restore(struct scheduler *s);
/* The node for which it was nominated then; NODE_NONE: none that is still there. */
uint32_t preempt_nominated(const struct scheduler *s, const struct task *task);
/* It does not fit there (yet): the room goes on being made.  PREEMPT_NOBODY: none of those who
 * are in its way is going, so that it is decided as any other. */
enum preempting preempt_resume(struct scheduler *s, struct task *task, const struct wish *wish,
			       uint32_t node);

/* Whether somebody has locked GPUs there who is not (or no longer) on the node: that is for
 * seconds, and who left first leaves the lock behind when nobody is there to give it up. */
bool preempt_has_guest(const struct scheduler *s, uint32_t node);

/* A pod is gone: if it was a victim, who waits may be decided. */
void preempt_pod_gone(struct scheduler *s, const char *uid);
/* Something left the node: who waits for room elsewhere and fits there now has its turn, or, with a
 * reservation, is decided anew before others are. */
void preempt_left(struct scheduler *s, uint32_t node);
/* The node has changed, or is gone: the same, and who has lost its place there looks for another. */
void preempt_node(struct scheduler *s, uint32_t node);
/* The task has its turn, and asks for that (NULL: for nothing that could be decided on): whether
 * room is being made for it, and it goes on waiting for that.  If not, it has given that up. */
bool preempt_keeps(struct scheduler *s, struct task *task, const struct request *r);
/* The task will not need the room: its victims count again, as far as they are there. */
void preempt_cancel(struct scheduler *s, struct task *task);
/* Whether room is reserved for somebody. */
bool preempt_reserves(const struct scheduler *s);
void preempt_tick(struct scheduler *s, uint64_t now_ms);
void preempt_done(struct scheduler *s);

#endif
