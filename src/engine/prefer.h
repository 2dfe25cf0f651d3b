/* SPDX-License-Identifier: Apache-2.0 */
/* prefer.h - the best few nodes, and which of them the pod would rather have.
 *
 * Where a preference matters (soft.h), a bounded number of nodes that fit is gathered, and the
 * one with the most points wins; of equal ones the one with the better score, then the first
 * by name.  They are, without repetition:
 *
 *	the best by score of those that keep every preference as if it were a rule;
 *	if there are none: of those that keep as many as go together, the heaviest first, and
 *	the best two for each that does not go with heavier ones;
 *	the best by score of all.
 *
 * So what is preferred is found however bad its score, and where no more than PREFER_FEW nodes
 * fit, all of them are compared.  Only the SOFT_TRIED heaviest terms are tried as rules, and
 * not what others would rather have: they count among the few.  The cost is that of about as many
 * decisions as terms are tried.
 */
#ifndef GS_ENGINE_PREFER_H
#define GS_ENGINE_PREFER_H

#include <stdint.h>

#include "engine/index.h"

#define PREFER_FEW 32

/* A node that was considered. */
struct preferred {
	uint32_t node;
	int32_t score;	/* as index_value() */
	int32_t points; /* soft_points() among all that were considered */
};

/* The considered nodes, the best first, at most PREFER_FEW; 0 if none fits.  ix NULL: afresh, by
 * visiting every node.  How many, or -ENOMEM: the caller decides afresh. */
int prefer_few(const struct scorer *s, struct index *ix, const struct request *r,
	       struct preferred ret[PREFER_FEW]);

#endif
