/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h - random numbers from a seed (xoshiro256**).
 *
 * The same seed gives the same numbers on every machine and in every release.
 * Not for secrets.  A plain value: a copy continues independently from the same
 * point.
 */
#ifndef GS_BASE_RNG_H
#define GS_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);

/* Even over 0..n-1, without bias; 0 if n is 0. */
uint32_t rng_below(struct rng *rng, uint32_t n);

/* True `times` out of `of` times: rng_chance(&r, 1, 3) for a third. */
bool rng_chance(struct rng *rng, uint32_t times, uint32_t of);

#endif
