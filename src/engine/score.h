/* SPDX-License-Identifier: Apache-2.0 */
/* score.h - how good a placement is.
 *
 * score = local(node's state, request) + offset(node's domain and GPU model), absolute
 * integers.  Nothing is normalised over the other nodes that fit, so a change at one
 * node leaves the scores of all others as they are.  What is learned of the work to come
 * changes in epochs: `epoch` moves when local scores are others, `prices_epoch` when only
 * offsets are.
 */
#ifndef GS_ENGINE_SCORE_H
#define GS_ENGINE_SCORE_H

#include "engine/engine.h"

struct scorer {
	const struct policy *policy;
	const struct cluster *cluster;
	struct weights weights;
	void *tables;	/* of the policy, see policy->learn */
	uint32_t epoch; /* of the tables */
	uint32_t prices_epoch;
	uint64_t seed;
};

/* The part of the score that depends on the node's own state only; parts may be NULL. */
int32_t score_local(const struct scorer *s, const struct request *r, const struct node *n,
		    const struct assignment *a, struct parts *parts);

/* The part that all nodes of one domain and one GPU model share. */
int32_t score_offset(const struct scorer *s, const struct request *r, uint32_t domain,
		     uint16_t model, struct parts *parts);

/* The card for a share, by the policy. */
uint32_t scorer_pick_share(const struct scorer *s, const struct request *r, const struct ask *a,
			   const struct node *n, uint32_t usable);

#endif
