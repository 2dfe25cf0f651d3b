/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

/* splitmix64: spreads a seed with few bits over the whole state, never all zero. */
static uint64_t spread(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

void rng_seed(struct rng *rng, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		rng->s[i] = spread(&seed);
}

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

/* xoshiro256** 1.0 by Blackman and Vigna. */
uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotate(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

/* Lemire's multiplication, drawing again where the last part would be uneven. */
uint32_t rng_below(struct rng *rng, uint32_t n)
{
	if (n == 0)
		return 0;
	uint32_t uneven = -n % n; /* 2^32 mod n */
	uint64_t product;
	do {
		product = (rng_next(rng) >> 32) * n;
	} while ((uint32_t)product < uneven);
	return (uint32_t)(product >> 32);
}

bool rng_chance(struct rng *rng, uint32_t times, uint32_t of)
{
	return rng_below(rng, of) < times;
}
