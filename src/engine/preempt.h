/* SPDX-License-Identifier: Apache-2.0 */
/* preempt.h - whom to evict so that a request, or a gang, fits.
 *
 * The answer is the cheapest set of pods of strictly lower priority without which the
 * request fits on some node, with all its rules kept: GPUs, links, domain and network are
 * part of every trial.  Sets are compared, as kube-scheduler compares nodes, by the
 * first of these that differs:
 *
 *   1. fewest pods that are more than their PodDisruptionBudget allows to go
 *   2. lowest priority of the most important victim
 *   3. smallest sum of (priority + 2^31)
 *   4. fewest victims
 *   5. latest start of the earliest among the victims of the highest priority
 *   6. fewest pods that are being deleted
 *   7. the node that comes first in the order of names
 *   8. on one node: the set that spares the most important pod in which they differ
 *
 * (A pod is more important with a higher priority, then an earlier start, then by its
 * uid.)  Those that are being deleted are going anyway: they have to be waited for, and
 * count in point 6 alone.  Adding a victim to a set always makes it dearer.
 *
 * Gangs.  A gang that loses one member is broken, so its pods are evicted together or
 * not at all: all of them, on all nodes, are victims and count as such; none is if one
 * of them has a priority that is not lower.
 *
 * How exact.  Kube-scheduler samples nodes and puts victims back one by one.  Here all
 * nodes are looked at.  A node is a candidate if the request fits there without any
 * evictable pod.  Candidates are searched in the order of a lower bound of their cost,
 * until no bound is below the best found; on a node with up to PREEMPT_EXACT evictable
 * pods (gangs count once, pods that cannot help not at all) every set that could be
 * better is tried.  So the answer is the cheapest there is, but for two limits: on fuller
 * nodes victims are put back one by one, in two orders (most important first; smallest
 * first within a priority), of which the cheaper is taken; and after PREEMPT_NODES
 * candidates the best so far is the answer, if there is one.  A solution is always found
 * if there is one.
 *
 * What pods would rather have (soft.h) does not enter: whom it costs decides.
 *
 * Nothing is changed.  Cost: a walk over all pods, then per candidate at most
 * 2^PREEMPT_EXACT trials of a microsecond or two, nearly all of them cut off by the
 * bound.  Measured, on full nodes of 8 pods: 1,000 nodes 4-7 ms, 100,000 nodes 0.2 s; a
 * gang of 256 nodes 20 ms and 2.5 s.
 */
#ifndef GS_ENGINE_PREEMPT_H
#define GS_ENGINE_PREEMPT_H

#include "engine/engine.h"

#define PREEMPT_EXACT 12
#define PREEMPT_NODES 1024

/* A priority above all others.  Nobody is evicted with it: room is kept until enough of the
 * victims have ended.  So those are spared, in the place of those with a budget, that never end
 * by themselves. */
#define PREEMPT_AWAITS INT32_MAX

struct gang_planner;
struct gang_spec;

/* What evicting a set of pods costs; in the order of comparison. */
struct preempt_cost {
	uint32_t violations; /* of disruption budgets; of those that never end, if awaited */
	uint32_t victims;    /* without those that are going anyway */
	int32_t highest;     /* priority; INT32_MIN without victims */
	uint64_t priorities; /* sum of (priority + 2^31) */
	uint64_t started;    /* the earliest of highest priority; UINT64_MAX without victims */
	uint32_t ending;     /* how many are going anyway */
};
#define PREEMPT_COST_NONE                                   \
	{                                                   \
		.highest = INT32_MIN, .started = UINT64_MAX \
	}

struct preemption {
	struct decision *decisions; /* one per member, as if the victims were gone */
	uint32_t decisions_count;
	uint32_t *victims;	/* pod numbers, the most important first */
	uint32_t victims_count; /* 0: it fits as it is */
	uint32_t gangs;		/* how many gangs are evicted, all their pods */
	struct preempt_cost cost;
};

/* Adds one set to another that has no pod in common with it. */
void preempt_cost_add(struct preempt_cost *to, const struct preempt_cost *more);
/* Below 0: `a` is cheaper.  0: alike in points 1 to 6. */
int preempt_cost_compare(const struct preempt_cost *a, const struct preempt_cost *b);

/* For one pod of that priority.
 * 0; -ENOENT: no eviction helps; -ENOMEM.  `*ret` is written on success only; free it with
 * preemption_done().  Pod numbers are valid until the cluster changes. */
int preempt_find(struct engine *e, const struct request *r, int32_t priority,
		 struct preemption *ret);

/* On this node, where it does not fit as things are, by waiting alone: as few as suffice of the
 * pods there that are being deleted and are of lower priority, the most important left out first.
 * 0 as above; -ENOENT: all of them are not enough; -ENOMEM. */
int preempt_await(struct engine *e, const struct request *r, int32_t priority, uint32_t node,
		  struct preemption *ret);

/* For a gang, all or nothing, by the rules of gang.h.  Pods are taken away in the order of
 * their cost (budgets, then priority; within these the leaves with most free GPU first)
 * until the gang fits; then, on each node that it uses, only the cheapest set that makes
 * room for its members there is kept.  So no priority is evicted that is higher than
 * need be; the number of victims is the least for the nodes that were chosen, which is
 * not always the least there is.  Pods that have the number of its own gang stay.
 * 0 as above, with decisions in the order of the spec; -ENOENT: no eviction helps;
 * -EINVAL or -EEXIST: the spec is not one that gang_plan() takes; -ENOMEM. */
int preempt_gang(struct engine *e, struct gang_planner *g, const struct gang_spec *spec,
		 int32_t priority, struct preemption *ret, struct err *err);

void preemption_done(struct preemption *p); /* leaves it empty; NULL is fine */

#endif
