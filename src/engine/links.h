/* SPDX-License-Identifier: Apache-2.0 */
/* links.h - how fast the GPUs of one machine reach each other.
 *
 * A value that never changes after links_new(), and that nodes of one kind
 * share: a cluster of 100,000 equal nodes has one.  Whoever made it frees it,
 * after the last node that points to it.  Any number of threads may read it.
 *
 * Bandwidth is in GB/s, both directions together, nominal for NVLink (600 for a
 * pair of an A100 board) and what remains in practice for PCIe and sockets.
 *
 * Islands.  GPUs that NVLink joins, directly or through others, are one island.
 * GPUs without any NVLink form one island per NUMA node: there the socket is
 * what separates near from far, as the edge of the NVLink mesh does elsewhere.
 * GPUs of unknown NUMA node (-1) count as one node.  Islands are numbered by
 * their lowest GPU.
 *
 * Classes.  Two GPUs are twins if swapping them changes nothing: equal links to
 * all others and the same NUMA node.  Twins form classes; all pairs inside a
 * class are equally fast.  What a set of GPUs is worth depends only on how many
 * of each class it holds, so a state (these numbers) stands for all such sets:
 * 81 states instead of 65,536 sets on a DGX-2.  Up to LINKS_STATES_MAX states
 * are tabulated, enough for every machine of 16 GPUs or fewer and for all larger
 * ones that are built of equal parts.
 *
 * Size: 3 KiB and 12 bytes per state (6 KiB for eight unlike GPUs, 800 KiB at most).
 */
#ifndef GS_ENGINE_LINKS_H
#define GS_ENGINE_LINKS_H

#include "engine/gpuset.h"

#include <stdbool.h>
#include <stdint.h>

struct err;

#define LINKS_STATES_MAX 65536
#define LINKS_NO_PAIR	 UINT16_MAX /* the weakest pair of a set without pairs */

struct links_state {
	uint32_t total_gbps;   /* sum over all pairs */
	uint32_t rest_gbps;    /* worth as a remainder, see links_rest() */
	uint16_t weakest_gbps; /* of all pairs; LINKS_NO_PAIR below two GPUs */
};

struct links {
	uint8_t count; /* GPUs, 1..GPU_MAX */
	uint8_t island_count, numa_count, class_count;
	uint8_t island[GPU_MAX];	 /* by GPU */
	int8_t numa[GPU_MAX];		 /* by GPU, -1: unknown */
	uint32_t nvlink[GPU_MAX];	 /* by GPU: its NVLink peers */
	uint16_t gbps[GPU_MAX][GPU_MAX]; /* symmetric, 0 on the diagonal */
	uint32_t island_gpus[GPU_MAX];	 /* by island: its GPUs */
	uint32_t numa_gpus[GPU_MAX];	 /* by NUMA group, in order of lowest GPU */
	uint32_t class_gpus[GPU_MAX];	 /* by class, in order of lowest GPU */
	uint32_t stride[GPU_MAX];	 /* by GPU: a set's state is the sum of these */
	uint32_t best_gbps[GPU_MAX + 1]; /* by k: greatest total that k of all these
						   GPUs reach; an upper bound if !state_count */
	uint32_t state_count;		 /* 0: too many to tabulate */
	struct links_state states[];
};

/* What links_new() reads, in rows of `count`. */
struct links_input {
	unsigned count;
	const uint16_t *gbps;	/* count * count; the diagonal must be 0 */
	const uint32_t *nvlink; /* count: mask of NVLink peers; NULL: no NVLink */
	const int8_t *numa;	/* count: -1 unknown; NULL: all unknown */
};

/* 0; -EINVAL with a sentence in err if the input is not symmetric, names a GPU
 * that does not exist, or has an NVLink without bandwidth; -ENOMEM. */
int links_new(const struct links_input *input, struct links **ret, struct err *err);
void links_free(struct links *links);	/* NULL is fine */
void links_freep(struct links **links); /* for CLEANUP() */

/* The same machine with GPU i renumbered to[i] (indexes may change at a reboot).
 * -EINVAL if `to` is no permutation of 0..count-1; -ENOMEM. */
int links_permute(const struct links *links, const uint8_t *to, struct links **ret,
		  struct err *err);

/* Same number of GPUs, links, NVLinks and NUMA nodes: may be shared. */
bool links_equal(const struct links *a, const struct links *b);

/* Every GPU of the machine. */
static inline uint32_t links_all(const struct links *links)
{
	return gpuset_range(0, links->count);
}

/* Which of the states the set has; only if state_count is not 0. */
static inline uint32_t links_state_of(const struct links *links, uint32_t gpus)
{
	uint32_t state = 0;

	gpuset_each(gpu, gpus)
		state += links->stride[gpu];
	return state;
}

/* Sum of the bandwidths of all pairs in the set; the least of them. */
uint32_t links_total(const struct links *links, uint32_t gpus);
uint16_t links_weakest(const struct links *links, uint32_t gpus);

/* What a set of free GPUs is worth to pods that are still to come: the sum, over
 * k = 2, 4, 8, 16, 32, of the greatest total that k of them reach (nothing for a
 * k that is more than there are).  Where states are not tabulated, the total. */
uint32_t links_rest(const struct links *links, uint32_t gpus);

/* Whether the set lies inside one island and its ids follow each other. */
bool links_is_run(const struct links *links, uint32_t gpus);

#endif
