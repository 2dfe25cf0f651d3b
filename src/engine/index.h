/* SPDX-License-Identifier: Apache-2.0 */
/* index.h - the best node for each class of requests, kept up to date by what changed.
 *
 * Requests that are equal form a class.  For a class the index keeps the score of every
 * bucket (state of a node) it has met, the best node of every block, and a tournament
 * over the blocks.  A query first reads the cluster's change log from where the class
 * left off: each changed node costs one look at its bucket's score, computed only if no
 * node was in that state before, and at most one scan of its block.  So a decision
 * costs what changed since this class was last asked, whatever the number of nodes.
 *
 * Classes are kept in a fixed amount of memory; the one that was asked longest ago goes.
 * No allocation except for a new class or when the cluster has grown.
 */
#ifndef GS_ENGINE_INDEX_H
#define GS_ENGINE_INDEX_H

#include "engine/score.h"

struct index;

struct index *index_new(const struct scorer *s, uint64_t max_bytes); /* NULL: out of memory */
void index_free(struct index *ix);

/* The best node that fits and its score; or NODE_NONE with the nearest miss.
 * -ENOMEM: the caller decides without the index. */
int index_best(struct index *ix, const struct request *r, uint32_t *node, int32_t *score,
	       enum verdict *miss);

/* The best nodes that fit, the best first, at most INDEX_FEW: how many, or -ENOMEM.  Costs a
 * decision, and for each of them a little more. */
#define INDEX_FEW 32
struct index_choice {
	uint32_t node;
	int32_t score;
};
int index_few(struct index *ix, const struct request *r, uint32_t max, struct index_choice *ret);

/* What index_best() compares: the score of a node, negative (verdict - VERDICT_COUNT) for a
 * refusal.  Computed afresh. */
int32_t index_value(const struct scorer *s, const struct request *r, uint32_t node);

struct index_stats {
	uint32_t classes;
	uint64_t bytes;
	uint64_t evaluations; /* scores computed */
	uint64_t rebuilds;    /* classes brought up to date from nothing */
	uint64_t evictions;
};
void index_stats(const struct index *ix, struct index_stats *ret);

#endif
