/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - from a request to a decision.
 *
 * An engine is a cluster together with a policy, what was learned about the mix of
 * work, and the per-class indexes that make a decision cost what changed instead of a
 * walk over the nodes.  Pure: the caller passes time and randomness.  One thread.
 *
 *	engine_arrived(e, &r);                     learn that such work exists
 *	verdict = engine_decide(e, &r, &d);        where would it go?  changes nothing
 *	engine_place(e, &pod, &r, &d, &number);    book it
 *	engine_remove(e, number);
 *
 * The gang, preemption and explain calls are in gang.h, preempt.h and explain.h.
 */
#ifndef GS_ENGINE_ENGINE_H
#define GS_ENGINE_ENGINE_H

#include "engine/assign.h"

struct engine;
struct index;
struct policy;
struct scorer;

/* Shares of the four parts in a score.  Only their proportions count. */
struct weights {
	uint32_t availability; /* what stays usable for the work that is known to come */
	uint32_t alignment;    /* links and NUMA inside the node */
	uint32_t utilization;  /* of the node's domains */
	uint32_t performance;  /* how the node did before */
};
#define WEIGHTS_DEFAULT            \
	{                          \
		400, 300, 200, 100 \
	}

struct engine_config {
	struct cluster_config cluster;
	const struct policy *policy; /* NULL: the default */
	struct weights weights;	     /* all 0: the defaults */
	uint32_t max_nodes_per_leaf; /* 0: as the fabric has them */
	uint32_t max_gpus_per_leaf;
	uint64_t index_bytes; /* memory for class indexes; 0: 192 MiB */
	uint64_t seed;	      /* of the random policy */
};

/* The parts of a score, each 0..PART_MAX, before weighing.  The price of the node's GPU
 * model, 0..PRICE_MAX, is taken off the availability. */
#define PART_MAX  100000000
#define PRICE_MAX (4 * PART_MAX)
struct parts {
	int32_t availability, alignment, utilization, performance;
	int32_t price;
};

struct decision {
	uint32_t node;
	int32_t score;
	struct assignment assignment;
};

struct engine *engine_new(const struct engine_config *config); /* NULL: out of memory */
void engine_free(struct engine *e);
struct cluster *engine_cluster(struct engine *e);
const struct engine_config *engine_config(const struct engine *e);

/* Other weights, policy, limits of leaves and seats from now on; the cluster, all placements
 * and the learned mix stay.  Costs what new indexes do.  The seeds and the order of ties stay
 * as they were given to engine_new().  0; -EINVAL the policy is one that must be there from
 * the first node on (shuffled, knows_mix) and is not the one that is; -ENOMEM: nothing has
 * changed. */
int engine_configure(struct engine *e, const struct engine_config *config);

const struct scorer *engine_scorer(const struct engine *e);
const struct index *engine_index(const struct engine *e); /* for its statistics */

/* Counts one arrival of such work towards the learned mix. */
void engine_arrived(struct engine *e, const struct request *r);
/* For policies that are told the mix in advance (policy->knows_mix): call it for every pod
 * of the list first.  Others ignore it. */
void engine_mix_add(struct engine *e, const struct request *r);

/* The best node and its GPUs, or the nearest miss of all nodes (NODE_GONE if there are
 * none).  Best is what the pod would rather have (prefer.h), then the score.  Changes nothing but caches, and learns anew of a cluster that has become another
 * one.  Equal to engine_decide_afresh() always. */
enum verdict engine_decide(struct engine *e, const struct request *r, struct decision *ret);
/* The same answer by visiting every node; the oracle of the tests. */
enum verdict engine_decide_afresh(struct engine *e, const struct request *r, struct decision *ret);

/* The nodes that engine_decide() compared because some preference could tell them apart, at most
 * PREFER_FEW, the one it chose first: see prefer.h.  How many; 0 if there was none to compare. */
struct preferred;
uint32_t engine_preferred(struct engine *e, const struct request *r, struct preferred *ret);

/* The score of this node for the request, with its parts; the verdict if it does not fit. */
enum verdict engine_score(struct engine *e, const struct request *r, uint32_t node,
			  struct decision *ret, struct parts *parts);

/* 0, -EEXIST the pod is placed already, -ENOENT the node is gone, -ENOSPC it has changed and
 * has no room, -ENOMEM. */
int engine_place(struct engine *e, const struct pod_spec *pod, const struct request *r,
		 const struct decision *d, uint32_t *ret);
void engine_remove(struct engine *e, uint32_t pod);

#endif
