/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_private.h - shared by the files of preempt.h. */
#ifndef GS_SCHEDULER_PREEMPT_PRIVATE_H
#define GS_SCHEDULER_PREEMPT_PRIVATE_H

#include "engine/preempt.h"
#include "scheduler/preempt.h"

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

#endif
