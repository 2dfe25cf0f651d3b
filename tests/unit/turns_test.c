/* SPDX-License-Identifier: Apache-2.0 */
#include "base/attr.h"
#include "base/rng.h"
#include "scheduler/task.h"
#include "scheduler/turns.h"
#include "test.h"

#define AFTER_MS 60000

TEST(who_has_waited_for_longest_has_the_first_turn_to_the_millisecond)
{
	struct turns turns = { 0 };
	struct unit a = { 0 }, b = { 0 };

	CHECK(turns_due_ms(&turns, AFTER_MS, 0) == UINT64_MAX);
	CHECK(!turns_take(&turns, AFTER_MS, 0));
	turns_join(&turns, &a, 1000);
	turns_join(&turns, &b, 3000);
	turns_join(&turns, &a, 5000); /* refused again: it has waited since 1000 */
	CHECK_INT(turns_due_ms(&turns, AFTER_MS, 5000), 56000);
	CHECK(!turns_take(&turns, AFTER_MS, 60999));
	CHECK(turns_take(&turns, AFTER_MS, 61000) == &a);
	CHECK_INT(turns_due_ms(&turns, AFTER_MS, 61000), 2000);
	CHECK(!turns_take(&turns, AFTER_MS, 62999));
	CHECK(turns_take(&turns, AFTER_MS, 63000) == &b);
	/* It was of no use: again after as long. */
	CHECK_INT(turns_due_ms(&turns, AFTER_MS, 63000), 58000);
	CHECK(turns_take(&turns, AFTER_MS, 121000) == &a);
	turns_leave(&turns, &b);
	turns_leave(&turns, &b);
	turns_leave(&turns, &a);
	CHECK(turns_due_ms(&turns, AFTER_MS, 200000) == UINT64_MAX);
}

TEST(turns_of_many_are_some_time_apart)
{
	struct turns turns = { 0 };
	struct unit units[50] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		turns_join(&turns, &units[i], 10);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		uint64_t now = 10 + AFTER_MS + i * TURNS_MS;

		CHECK(turns_take(&turns, AFTER_MS, now) == &units[i]);
		CHECK(!turns_take(&turns, AFTER_MS, now));
		if (i + 1 < ARRAY_SIZE(units))
			CHECK_INT(turns_due_ms(&turns, AFTER_MS, now), TURNS_MS);
	}
}

TEST(of_those_whose_turn_it_is_the_most_important_takes_it)
{
	struct turns turns = { 0 };
	struct unit early = { 0 }, important = { .item.priority = 10 },
		    equal = { .item.priority = 10 }, late = { .item.priority = 99 };

	turns_join(&turns, &early, 1000);
	turns_join(&turns, &important, 1010);
	turns_join(&turns, &equal, 1020);
	turns_join(&turns, &late, 9000);
	CHECK(turns_take(&turns, AFTER_MS, 62000) == &important);
	CHECK(turns_take(&turns, AFTER_MS, 62100) == &equal);
	CHECK(turns_take(&turns, AFTER_MS, 62200) == &early);
	CHECK(!turns_take(&turns, AFTER_MS, 62300)); /* it is not the late one's turn */
	CHECK(turns_take(&turns, AFTER_MS, 69000) == &late);
}

/* Whoever comes and goes: nobody who stays waits for longer than those before him take. */
TEST(nobody_is_passed_by)
{
	struct turns turns = { 0 };
	struct unit units[40] = { 0 };
	uint64_t since[40] = { 0 }, now = 1, taken = 0;
	struct rng rng;

	rng_seed(&rng, 11);
	for (int step = 0; step < 20000; step++) {
		uint32_t i = rng_below(&rng, ARRAY_SIZE(units));
		bool stays = i < 4; /* these never leave */
		struct unit *unit;

		now += rng_below(&rng, 300);
		if (!units[i].is_in_turn) {
			turns_join(&turns, &units[i], now);
			since[i] = now;
		} else if (!stays && rng_chance(&rng, 1, 3)) {
			turns_leave(&turns, &units[i]);
		}
		unit = turns_take(&turns, AFTER_MS, now);
		if (!unit)
			continue;
		uint64_t waited = now - since[unit - units];

		CHECKF(waited >= AFTER_MS && waited <= AFTER_MS + 300 * ARRAY_SIZE(units),
		       "%llu ms", (unsigned long long)waited);
		since[unit - units] = now;
		taken++;
	}
	CHECK(taken > 150);
}

TEST_MAIN()
