/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "engine/machine.h"
#include "engine/pick.h"

static struct links *links_of(const char *name)
{
	struct links *links = NULL;

	CHECK(machine_links(machine_find(name), &links, NULL) == 0);
	return links;
}

struct row {
	const char *machine;
	uint32_t free;
	uint8_t count;
	uint32_t best;
	uint32_t total_gbps;
};

static void check_rows(const struct row *rows, size_t count, enum pick_policy policy,
		       enum pick_mode mode)
{
	for (size_t i = 0; i < count; i++) {
		struct links *links CLEANUP(links_freep) = links_of(rows[i].machine);
		struct pick pick = { 0 };
		struct pick_query q = { .links = links, .free = rows[i].free };
		q.count = rows[i].count;
		q.policy = policy;
		q.mode = mode;
		CHECKF(pick_gpus(&q, &pick) == PICK_OK, "row %zu", i);
		CHECKF(pick.gpus == rows[i].best, "row %zu: %x", i, pick.gpus);
		CHECKF(pick.total_gbps == rows[i].total_gbps, "row %zu: %u", i, pick.total_gbps);
		CHECK(pick.exact && pick.reaches_minimum);
	}
}

TEST(the_best_sets_of_a_cube_mesh_are_found)
{
	static const struct row rows[] = {
		/* Double links first, and such that the other quad stays whole. */
		{ "dgx-1v", 0xff, 2, 0x09, 100 },
		{ "dgx-1v", 0xf6, 2, 0x06, 100 },
		{ "dgx-1v", 0xf0, 2, 0x90, 100 },
		{ "dgx-1v", 0x60, 2, 0x60, 100 },
		{ "dgx-1v", 0xff, 4, 0x0f, 450 },
		{ "dgx-1v", 0xfe, 4, 0xf0, 450 },
		{ "dgx-1v", 0xf1, 2, 0x11, 100 },
		/* One GPU: the one that is no part of the quad. */
		{ "dgx-1v", 0x1f, 1, 0x10, 0 },
		/* The fastest pair of these, 4-7, is no part of the fastest three. */
		{ "dgx-1v", 0x9e, 3, 0x0e, 250 },
		{ "dgx-1p", 0xff, 2, 0x03, 40 },
		{ "dgx-1p", 0xff, 4, 0x0f, 240 },
		{ "h100-nvl", 0xff, 2, 0x03, 600 },
		{ "h100-nvl", 0xfe, 2, 0x0c, 600 },
		{ "h100-nvl", 0xfe, 1, 0x02, 0 },
		{ "l40s", 0xfe, 4, 0xf0, 288 },
		{ "l40s", 0xfe, 1, 0x02, 0 },
		{ "dgx-2", 0xffff, 8, 0x00ff, 8400 },
	};

	check_rows(rows, ARRAY_SIZE(rows), PICK_BANDWIDTH, PICK_PREFERRED);
}

TEST(contiguous_takes_ids_that_follow_each_other)
{
	static const struct row rows[] = {
		{ "dgx-h100", 0xff, 2, 0x03, 900 },
		{ "dgx-h100", 0xf5, 3, 0x70, 2700 },
		{ "dgx-h100", 0x55, 2, 0x05, 900 }, /* none: bandwidth, ids */
		{ "dgx-1v", 0xff, 2, 0x06, 100 },   /* the fastest run */
		{ "dgx-1v", 0x99, 2, 0x18, 12 },    /* 3-4 is the only run */
		{ "l40s", 0x3c, 2, 0x0c, 48 },
		{ "l40s", 0x18, 2, 0x18, 32 },	    /* ids follow, but islands differ */
		{ "h100-nvl", 0xf6, 2, 0x30, 600 }, /* 1-2 are in different islands */
		{ "l40s", 0xff, 5, 0x1f, 416 },	    /* no island has five */
	};

	check_rows(rows, ARRAY_SIZE(rows), PICK_CONTIGUOUS, PICK_PREFERRED);
}

TEST(a_run_is_taken_even_if_another_set_is_faster)
{
	struct links *links CLEANUP(links_freep) = links_of("dgx-1v");
	struct pick pick = { 0 };
	struct pick_query q = { .links = links, .free = 0x99, .count = 2 };

	/* 3-4 have no NVLink but belong to the island that the mesh is. */
	CHECK(pick_gpus(&q, &pick) == PICK_OK);
	CHECK_INT(pick.gpus, 0x18);
	q.min_gbps = 50;
	CHECK(pick_gpus(&q, &pick) == PICK_OK);
	CHECK_INT(pick.gpus, 0x09);
	q.policy = PICK_BANDWIDTH;
	q.min_gbps = 0;
	CHECK(pick_gpus(&q, &pick) == PICK_OK);
	CHECK_INT(pick.total_gbps, 100);
}

TEST(spread_goes_over_islands_then_sockets)
{
	static const struct row rows[] = {
		{ "l40s", 0xff, 2, 0x11, 32 },	     { "l40s", 0xff, 4, 0x33, 224 },
		{ "l40s", 0x0f, 2, 0x03, 48 },	     { "h100-nvl", 0xff, 4, 0x55, 368 },
		{ "h100-nvl", 0xf3, 4, 0x53, 872 },  { "dgx-h100", 0xff, 2, 0x11, 900 },
		{ "dgx-h100", 0xff, 4, 0x33, 5400 },
	};

	check_rows(rows, ARRAY_SIZE(rows), PICK_SPREAD, PICK_PREFERRED);
}

TEST(ignoring_topology_takes_low_ids_and_keeps_the_remainder)
{
	static const struct row rows[] = {
		{ "dgx-h100", 0xff, 3, 0x07, 2700 },
		{ "dgx-h100", 0xaa, 2, 0x0a, 900 },
		{ "h100-nvl", 0xf6, 2, 0x06, 96 }, /* the pairs stay whole */
		{ "l40s", 0x1f, 1, 0x10, 0 },
	};

	check_rows(rows, ARRAY_SIZE(rows), PICK_CONTIGUOUS, PICK_IGNORE);
	check_rows(rows, ARRAY_SIZE(rows), PICK_BANDWIDTH, PICK_IGNORE);
}

static uint32_t prefer(const struct links *links, uint32_t free, unsigned count,
		       const uint8_t *ids, uint32_t len)
{
	struct pick pick = { 0 };
	struct pick_query q = { .links = links, .free = free, .policy = PICK_PREFER };

	q.count = (uint8_t)count;
	q.prefer_ids = ids;
	q.prefer_len = len;
	CHECK(pick_gpus(&q, &pick) == PICK_OK);
	return pick.gpus;
}

TEST(preferred_ids_come_first_and_the_rest_is_the_fastest)
{
	struct links *links CLEANUP(links_freep) = links_of("dgx-1v");
	const uint8_t ids[] = { 6, 200, 6, 1, 5 };
	uint8_t many[1000];

	CHECK_INT(prefer(links, 0xff, 1, ids, 5), 0x40);
	CHECK_INT(prefer(links, 0xff, 2, ids, 5), 0x42);
	CHECK_INT(prefer(links, 0xff, 3, ids, 5), 0x62);
	CHECK_INT(prefer(links, 0xbf, 1, ids, 5), 0x02);
	CHECK_INT(prefer(links, 0x9d, 2, ids, 5), 0x09);
	CHECK_INT(prefer(links, 0xff, 2, ids, 1), 0x60);
	CHECK_INT(prefer(links, 0xff, 2, NULL, 0), 0x09);
	for (unsigned i = 0; i < sizeof(many); i++)
		many[i] = (uint8_t)(255 - i % 256);
	CHECK_INT(prefer(links, 0xff, 2, many, sizeof(many)), 0xc0);
}

TEST(a_required_minimum_is_met_or_refused)
{
	struct links *links CLEANUP(links_freep) = links_of("dgx-1v");
	struct pick pick = { 0 };
	struct pick_query q = { .links = links, .free = 0xff, .mode = PICK_REQUIRED };

	q.min_gbps = 100;
	q.count = 2;
	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.weakest_gbps == 100);
	q.count = 3;
	CHECK(pick_gpus(&q, &pick) == PICK_TOO_SLOW);
	q.min_gbps = 50;
	q.count = 4;
	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.gpus == 0x0f);
	q.free = 0xe7;
	CHECK(pick_gpus(&q, &pick) == PICK_TOO_SLOW);
	q.min_gbps = UINT16_MAX;
	q.count = 1;
	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.weakest_gbps == LINKS_NO_PAIR);
}

TEST(a_preferred_minimum_is_met_if_it_can_be)
{
	struct links *links CLEANUP(links_freep) = links_of("dgx-1v");
	struct pick pick = { 0 };
	struct pick_query q = { .links = links, .free = 0xe7, .count = 4, .min_gbps = 50 };

	CHECK(pick_gpus(&q, &pick) == PICK_OK && !pick.reaches_minimum);
	q.count = 3;
	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.reaches_minimum);
}

TEST(counts_at_the_edges_are_answered)
{
	struct links *links CLEANUP(links_freep) = links_of("dgx-h100");
	struct pick pick = { 0 };
	struct pick_query q = { .links = links, .free = UINT32_MAX, .count = 8 };

	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.gpus == 0xff);
	q.count = 9;
	CHECK(pick_gpus(&q, &pick) == PICK_TOO_FEW);
	q.count = 0;
	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.gpus == 0 && pick.total_gbps == 0);
	q.free = 0;
	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.gpus == 0);
	q.count = 255;
	CHECK(pick_gpus(&q, &pick) == PICK_TOO_FEW);
}

/* 32 GPUs behind eight switches: too many states for a table, but built of equal parts. */
TEST(a_wide_machine_is_bounded_and_sensible)
{
	uint16_t gbps[32 * 32];
	struct links *links CLEANUP(links_freep) = NULL;
	struct pick pick = { 0 };

	for (unsigned a = 0; a < 32; a++)
		for (unsigned b = 0; b < 32; b++)
			gbps[a * 32 + b] = a == b ? 0 : a / 4 == b / 4 ? 48 : 32;
	struct links_input input = { 32, gbps, NULL, NULL };
	CHECK(links_new(&input, &links, NULL) == 0);
	CHECK_INT(links->state_count, 0);
	struct pick_query q = { .links = links, .free = 0xfffffffe, .count = 8 };
	q.policy = PICK_BANDWIDTH;
	CHECK(pick_gpus(&q, &pick) == PICK_OK);
	CHECK_INT(pick.total_gbps, 2 * 6 * 48 + 16 * 32);
	q.mode = PICK_REQUIRED;
	q.min_gbps = 48;
	CHECK(pick_gpus(&q, &pick) == PICK_TOO_SLOW);
	q.count = 4;
	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.weakest_gbps == 48);
	q.mode = PICK_PREFERRED;
	q.policy = PICK_CONTIGUOUS;
	q.count = 8;
	CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.gpus == 0x00000ff0);
}

TEST_MAIN()
