/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/rng.h"
#include "kube/backoff.h"

TEST(pauses_double_with_as_much_again_by_chance_up_to_half_a_minute)
{
	static const uint32_t least_ms[] = { 800, 1600, 3200, 6400, 12800, 15000, 15000, 15000 };
	struct rng rng;
	rng_seed(&rng, 1);
	for (int round = 0; round < 200; round++) {
		struct backoff backoff = BACKOFF_INIT;
		uint64_t now_ms = 5;
		for (size_t i = 0; i < sizeof(least_ms) / sizeof(least_ms[0]); i++) {
			uint32_t pause_ms = backoff_fail(&backoff, now_ms, &rng);
			CHECKF(pause_ms >= least_ms[i] && pause_ms <= 2 * least_ms[i],
			       "pause %zu is %u ms", i, pause_ms);
			CHECK(pause_ms <= 30000);
			now_ms += pause_ms + 10;
		}
	}
}

TEST(those_who_failed_together_do_not_come_back_together)
{
	uint32_t different = 0, last_ms = 0;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct backoff backoff = BACKOFF_INIT;
		struct rng rng;
		rng_seed(&rng, seed);
		for (int i = 0; i < 20; i++)
			backoff_fail(&backoff, 0, &rng);
		uint32_t pause_ms = backoff_fail(&backoff, 0, &rng);
		different += pause_ms != last_ms;
		last_ms = pause_ms;
	}
	CHECK(different >= 45);
}

TEST(two_calm_minutes_forget_all_failures)
{
	struct backoff backoff = BACKOFF_INIT;
	struct rng rng;
	rng_seed(&rng, 3);
	for (int i = 0; i < 10; i++)
		backoff_fail(&backoff, 1000, &rng);
	CHECK(backoff_fail(&backoff, backoff.until_ms + 119999, &rng) >= 15000);
	CHECK(backoff_fail(&backoff, backoff.until_ms + 120000, &rng) <= 1600);
	CHECK(backoff_fail(&backoff, backoff.until_ms, &rng) >= 1600);
}

TEST(failures_without_end_do_not_overflow)
{
	struct backoff backoff = BACKOFF_INIT;
	struct rng rng;
	rng_seed(&rng, 4);
	backoff.failures = UINT32_MAX;
	CHECK(backoff_fail(&backoff, 0, &rng) <= 30000);
	CHECK_INT(backoff.failures, UINT32_MAX);
}

TEST_MAIN()
