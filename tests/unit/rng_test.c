/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include "base/attr.h"
#include "test.h"

/* From the authors' reference code, state {1, 2, 3, 4}. */
TEST(the_numbers_are_those_of_xoshiro256starstar)
{
	static const uint64_t expected[] = { 11520u, 0u, 1509978240u, 1215971899390074240u };
	struct rng rng = { { 1, 2, 3, 4 } };
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		CHECK(rng_next(&rng) == expected[i]);
}

TEST(a_seed_fixes_the_numbers)
{
	struct rng a, b, c;
	rng_seed(&a, 0);
	rng_seed(&b, 0);
	rng_seed(&c, 1);
	CHECK(a.s[0] == 0xe220a8397b1dcdafu); /* the first output of splitmix64 from 0 */
	bool differs = false;
	for (int i = 0; i < 100; i++) {
		uint64_t x = rng_next(&a);
		CHECK(x == rng_next(&b));
		differs = differs || x != rng_next(&c);
	}
	CHECK(differs);
}

TEST(numbers_below_n_are_even)
{
	struct rng rng;
	rng_seed(&rng, 3);
	CHECK_INT(rng_below(&rng, 0), 0);
	CHECK_INT(rng_below(&rng, 1), 0);
	uint32_t count[6] = { 0 };
	for (int i = 0; i < 60000; i++)
		count[rng_below(&rng, 6)]++;
	for (size_t i = 0; i < ARRAY_SIZE(count); i++)
		CHECK(count[i] > 9600 && count[i] < 10400);
	/* without drawing again, the lower third would come up half of the time */
	uint32_t low = 0;
	for (int i = 0; i < 60000; i++)
		low += rng_below(&rng, 0xc0000000u) < 0x40000000u;
	CHECK(low > 19500 && low < 20500);
}

TEST(a_chance_is_what_it_says)
{
	struct rng rng;
	rng_seed(&rng, 4);
	int hits = 0;
	for (int i = 0; i < 30000; i++) {
		hits += rng_chance(&rng, 1, 3);
		CHECK(!rng_chance(&rng, 0, 3));
		CHECK(rng_chance(&rng, 3, 3));
	}
	CHECK(hits > 9600 && hits < 10400);
}

TEST_MAIN()
