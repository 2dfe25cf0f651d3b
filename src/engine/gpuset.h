/* SPDX-License-Identifier: Apache-2.0 */
/* gpuset.h - sets of GPUs of one node, as bits of a uint32_t.
 *
 * Bit i is the GPU with index i.  A node has at most GPU_MAX of them.  The sets
 * are plain numbers, so union, intersection and difference are | & and & ~.
 */
#ifndef GS_ENGINE_GPUSET_H
#define GS_ENGINE_GPUSET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define GPU_MAX 32

/* How many GPUs are in the set. */
static inline unsigned gpuset_count(uint32_t gpus)
{
	return (unsigned)__builtin_popcount(gpus);
}

/* The lowest index in the set, which must not be empty. */
static inline unsigned gpuset_first(uint32_t gpus)
{
	assert(gpus != 0);
	return (unsigned)__builtin_ctz(gpus);
}

static inline uint32_t gpuset_one(unsigned gpu)
{
	assert(gpu < GPU_MAX);
	return UINT32_C(1) << gpu;
}

static inline bool gpuset_has(uint32_t gpus, unsigned gpu)
{
	return gpu < GPU_MAX && (gpus >> gpu & 1);
}

/* The `count` GPUs from `first` on: gpuset_range(2, 3) is {2,3,4}.
 * gpuset_range(0, n) is every GPU of a machine with n. */
static inline uint32_t gpuset_range(unsigned first, unsigned count)
{
	assert(first + count <= GPU_MAX);
	return (uint32_t)(((UINT64_C(1) << count) - 1) << first);
}

/* The `count` lowest members, or all of them if there are fewer. */
static inline uint32_t gpuset_lowest(uint32_t gpus, unsigned count)
{
	uint32_t rest = gpus;

	while (rest && count--)
		rest &= rest - 1;
	return gpus & ~rest;
}

/* Whether `a` comes before `b` when sets are ordered by their lowest ids, as
 * words in a dictionary: {0,5} before {1,2} before {1,3}.  For sets of one size. */
static inline bool gpuset_before(uint32_t a, uint32_t b)
{
	uint32_t differ = a ^ b;

	return (a & differ & (~differ + 1)) != 0;
}

/* Each member in ascending order, as an unsigned `gpu`:
 *	gpuset_each(gpu, node->free) { ... } */
#define gpuset_each(gpu, gpus)                                                  \
	for (unsigned gpu##_left = (gpus), gpu = 0;                             \
	     gpu##_left && ((gpu = (unsigned)__builtin_ctz(gpu##_left)), true); \
	     gpu##_left &= gpu##_left - 1)

#endif
