/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - how many pods of some sort there are for each value of a label.
 *
 * One cell for each value that a counted node or pod has, found by hashing; and, for even
 * spread, how many values have how many pods, so that the smallest number is at hand
 * without a look at all values.
 */
#ifndef GS_ENGINE_TALLY_H
#define GS_ENGINE_TALLY_H

#include <stdint.h>

struct tally_cell {
	uint32_t used;
	uint32_t value; /* cluster_intern() */
	uint32_t pods;
	uint32_t nodes; /* that have the value and are counted */
};

struct tally {
	struct tally_cell *cells;
	uint32_t len, cap;	  /* cap: a power of two or 0 */
	uint32_t *values_by_pods; /* of values with nodes: how many have exactly n pods */
	uint32_t by_pods_room;
	uint32_t domains; /* values with nodes */
	uint32_t least;	  /* no value with nodes has fewer pods; exact after tally_least() */
	uint32_t most;	  /* no value has more pods */
	uint64_t pods;	  /* of all values */
};

void tally_done(struct tally *t);

/* Adds to a value's pods and nodes (either may be negative).  0, or -ENOMEM and nothing has
 * changed; never fails when both are <= 0. */
int tally_add(struct tally *t, uint32_t value, int32_t pods, int32_t nodes);

/* Room for one value more and for so many pods more: 0 or -ENOMEM. */
int tally_reserve(struct tally *t, uint32_t pods);

/* Pods of that value; 0 if it is unknown. */
uint32_t tally_pods(const struct tally *t, uint32_t value);

/* The smallest number of pods of a value that has nodes; 0 if there is none. */
uint32_t tally_least(struct tally *t);

#endif
