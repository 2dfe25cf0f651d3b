/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_private.h - shared by the files of preempt.h. */
#ifndef GS_SCHEDULER_PREEMPT_PRIVATE_H
#define GS_SCHEDULER_PREEMPT_PRIVATE_H

#include "base/vec.h"
#include "engine/preempt.h"
#include "scheduler/preempt.h"

struct victim;

/* Members that the engine has placed on what their victims will leave. */
struct nomination {
	struct scheduler *scheduler;
	struct unit *unit;
	VEC(struct victim *) victims; /* that are still there */
	VEC(struct task *) tasks;
	VEC(struct asked *) asked; /* what each of them asks for */
	bool reserves;		   /* nobody is asked to go: it waits for them to end */
	uint64_t since_ms;
	uint64_t again_ms; /* it is looked at anew then */
	struct nomination *next;
};

/* Members, and what they ask for, in the order of what was found for them. */
struct proposal {
	bool reserves;
	struct unit *unit;
	struct task *const *tasks;
	const struct pod_spec *specs;
	const struct request *const *requests;
	uint32_t count;
};

/* preempt.c: has the victims go, or waits for them, and keeps their room until they are gone.
 * Never PREEMPT_NOBODY. */
enum preempting preempt_carry_out(struct scheduler *s, const struct proposal *want,
				  const struct preemption *p);
/* Books the victims beside who takes their place: as much of theirs as is left, so that
 * nobody is given what they still use. */
void preempt_book_victims(const struct nomination *n);
/* Room that is kept for somebody less important is not kept any more: it waits again. */
void preempt_make_way(struct nomination *n);

#endif
