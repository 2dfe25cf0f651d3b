/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_units.h - everything in the cluster that may be evicted, the cheapest first.
 *
 * For preempt_gang.c.  A unit is a pod, or all pods of a gang.  The order: those that
 * violate no disruption budget; the lower priority; then by leaves, the one with most free
 * GPU first, and inside a leaf by nodes, so that what is taken away in this order
 * makes room side by side.
 */
#ifndef GS_ENGINE_PREEMPT_UNITS_H
#define GS_ENGINE_PREEMPT_UNITS_H

#include "base/vec.h"
#include "engine/victims.h"

struct gang_spec;

/* What is evicted together, on all nodes. */
struct preempt_unit {
	struct preempt_cost cost;
	uint64_t leaf_free_milli; /* all four: where its first pod is */
	uint64_t rank;
	uint32_t leaf, idle_gpus;
	const char *uid;
	uint32_t first, count; /* its pods in preempt_units.pods */
};

/* Zero is empty. */
struct preempt_units {
	VEC(uint32_t) pods; /* by unit */
	VEC(struct preempt_unit) list;
};

/* The pods that v->priority may evict and that could help a member.  0 or -ENOMEM. */
int preempt_units_find(struct preempt_units *u, struct victims *v, const struct gang_spec *spec);
void preempt_units_done(struct preempt_units *u);

/* Sorts pods so that those of a gang are side by side. */
void preempt_units_sort(const struct cluster *c, uint32_t *pods, size_t count);

#endif
