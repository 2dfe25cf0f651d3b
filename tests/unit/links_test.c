/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "engine/links.h"

#include <errno.h>

/* Four GPUs: NVLink 0-3 and 1-2, sockets {0,1} and {2,3}. */
static const uint16_t bridged[] = {
	0, 40, 20, 600, 40, 0, 600, 20, 20, 600, 0, 40, 600, 20, 40, 0,
};
static const uint32_t bridges[] = { 0x8, 0x4, 0x2, 0x1 };
static const int8_t sockets[] = { 0, 0, 1, 1 };

static struct links *new_links(unsigned count, const uint16_t *gbps, const uint32_t *nvlink,
			       const int8_t *numa)
{
	struct links_input input = { count, gbps, nvlink, numa };
	struct links *links = NULL;

	CHECK(links_new(&input, &links, NULL) == 0);
	return links;
}

TEST(sets_are_counted_listed_and_ordered)
{
	unsigned seen = 0;

	CHECK_INT(gpuset_count(0), 0);
	CHECK_INT(gpuset_count(UINT32_MAX), 32);
	CHECK_INT(gpuset_first(0x30), 4);
	CHECK_INT(gpuset_range(2, 3), 0x1c);
	CHECK_INT(gpuset_range(0, 32), UINT32_MAX);
	CHECK_INT(gpuset_range(31, 1), 0x80000000);
	CHECK_INT(gpuset_range(5, 0), 0);
	CHECK_INT(gpuset_lowest(0xf0, 2), 0x30);
	CHECK_INT(gpuset_lowest(0xf0, 9), 0xf0);
	CHECK(gpuset_has(0x2, 1) && !gpuset_has(0x2, 0) && !gpuset_has(0x2, 64));
	CHECK(gpuset_before(0x21, 0x06) && !gpuset_before(0x06, 0x21));
	CHECK(gpuset_before(0x06, 0x0a) && !gpuset_before(0x06, 0x06));
	gpuset_each(gpu, 0x80000005)
		seen = seen * 100 + gpu;
	CHECK_INT(seen, 231);
}

TEST(nvlink_makes_islands_across_sockets)
{
	struct links *links CLEANUP(links_freep) = new_links(4, bridged, bridges, sockets);

	CHECK_INT(links->island_count, 2);
	CHECK_INT(links->island_gpus[0], 0x9);
	CHECK_INT(links->island_gpus[1], 0x6);
	CHECK_INT(links->island[3], 0);
	CHECK_INT(links->numa_count, 2);
	CHECK(links_is_run(links, 0x6));
	CHECK(!links_is_run(links, 0x3) && !links_is_run(links, 0x9) && !links_is_run(links, 0));
}

TEST(without_nvlink_sockets_are_the_islands)
{
	struct links *links CLEANUP(links_freep) = new_links(4, bridged, NULL, sockets);
	struct links *unknown CLEANUP(links_freep) = new_links(4, bridged, NULL, NULL);

	CHECK_INT(links->island_count, 2);
	CHECK_INT(links->island_gpus[0], 0x3);
	CHECK_INT(links->island_gpus[1], 0xc);
	CHECK_INT(unknown->island_count, 1);
	CHECK_INT(unknown->numa[0], -1);
}

TEST(gpus_beside_a_bridge_keep_to_their_socket)
{
	const uint32_t one_bridge[] = { 0x2, 0x1, 0, 0 };
	struct links *links CLEANUP(links_freep) = new_links(4, bridged, one_bridge, NULL);

	CHECK_INT(links->island_count, 2);
	CHECK_INT(links->island_gpus[0], 0x3);
	CHECK_INT(links->island_gpus[1], 0xc);
}

TEST(totals_weakest_pairs_and_remainders_are_known)
{
	struct links *links CLEANUP(links_freep) = new_links(4, bridged, bridges, sockets);

	CHECK_INT(links_total(links, 0x9), 600);
	CHECK_INT(links_total(links, 0xf), 1320);
	CHECK_INT(links_total(links, 0x1), 0);
	CHECK_INT(links_weakest(links, 0xf), 20);
	CHECK_INT(links_weakest(links, 0x4), LINKS_NO_PAIR);
	CHECK_INT(links_weakest(links, 0), LINKS_NO_PAIR);
	CHECK_INT(links_rest(links, 0xf), 600 + 1320);
	CHECK_INT(links_rest(links, 0x7), 600);
	CHECK_INT(links_rest(links, 0x1), 0);
	CHECK_INT(links->best_gbps[2], 600);
	CHECK_INT(links->best_gbps[4], 1320);
}

TEST(equal_gpus_are_one_class)
{
	uint16_t gbps[32 * 32];
	uint32_t nvlink[32];

	for (unsigned a = 0; a < 32; a++) {
		nvlink[a] = ~gpuset_one(a);
		for (unsigned b = 0; b < 32; b++)
			gbps[a * 32 + b] = a == b ? 0 : UINT16_MAX;
	}
	struct links *links CLEANUP(links_freep) = new_links(32, gbps, nvlink, NULL);
	CHECK_INT(links->class_count, 1);
	CHECK_INT(links->state_count, 33);
	CHECK_INT(links_all(links), UINT32_MAX);
	CHECK_INT(links_total(links, UINT32_MAX), 496U * UINT16_MAX);
	CHECK_INT(links_rest(links, UINT32_MAX), (1U + 6 + 28 + 120 + 496) * UINT16_MAX);
}

TEST(many_unlike_gpus_have_no_table_but_the_same_answers)
{
	uint16_t gbps[20 * 20] = { 0 };

	for (unsigned a = 0; a < 20; a++)
		for (unsigned b = 0; b < a; b++)
			gbps[a * 20 + b] = gbps[b * 20 + a] = (uint16_t)(a * 31 + b + 1);
	struct links *links CLEANUP(links_freep) = new_links(20, gbps, NULL, NULL);
	CHECK_INT(links->state_count, 0);
	CHECK_INT(links_total(links, 0x80003), gbps[1] + gbps[19] + gbps[20 + 19]);
	CHECK_INT(links_weakest(links, 0x80003), gbps[1]);
	CHECK_INT(links_rest(links, 0x80003), links_total(links, 0x80003));
	CHECK_INT(links->best_gbps[2], gbps[18 * 20 + 19]);
	CHECK(links->best_gbps[20] == links_total(links, links_all(links)));
}

static void check_refused(const struct links_input *input, const char *sentence)
{
	struct links *links = NULL;
	struct err err = ERR_INIT;

	CHECK_INT(links_new(input, &links, &err), -EINVAL);
	CHECK_STR(err.text, sentence);
	CHECK(links == NULL);
}

TEST(matrices_that_cannot_be_are_refused)
{
	uint16_t gbps[] = { 0, 50, 0, 50, 0, 0, 0, 0, 0 };
	uint32_t nvlink[] = { 0x2, 0x1, 0 };
	int8_t numa[] = { 0, 0, -2 };
	struct links_input input = { 3, gbps, nvlink, NULL };

	input.count = 0;
	check_refused(&input, "0 GPUs in a node, from 1 to 32 are possible");
	input.count = 33;
	check_refused(&input, "33 GPUs in a node, from 1 to 32 are possible");
	input.count = 3;
	gbps[1] = 49;
	check_refused(&input, "link between GPU 0 and 1 has 49 GB/s one way and 50 the other");
	gbps[1] = 50;
	gbps[8] = 1;
	check_refused(&input, "GPU 2 has a link to itself");
	gbps[8] = 0;
	nvlink[1] = 0;
	check_refused(&input, "NVLink between GPU 0 and 1 is there one way only");
	nvlink[1] = 0x5;
	nvlink[2] = 0x2;
	check_refused(&input, "NVLink between GPU 1 and 2 has no bandwidth");
	nvlink[1] = 0x9;
	check_refused(&input, "GPU 1 has an NVLink to a GPU that is not there");
	nvlink[1] = 0x3;
	check_refused(&input, "GPU 1 has an NVLink to itself");
	nvlink[1] = 0x1;
	nvlink[2] = 0;
	input.numa = numa;
	check_refused(&input, "GPU 2 is on NUMA node -2");
}

TEST(renumbering_there_and_back_is_the_same_machine)
{
	const uint8_t to[] = { 2, 0, 3, 1 }, back[] = { 1, 3, 0, 2 }, wrong[] = { 0, 0, 1, 2 };
	const uint8_t outside[] = { 0, 1, 2, 4 };
	struct links *links CLEANUP(links_freep) = new_links(4, bridged, bridges, sockets);
	struct links *moved CLEANUP(links_freep) = NULL;
	struct links *again CLEANUP(links_freep) = NULL;
	struct err err = ERR_INIT;

	CHECK(links_permute(links, to, &moved, NULL) == 0);
	CHECK(!links_equal(links, moved));
	CHECK_INT(moved->gbps[to[0]][to[3]], 600);
	CHECK_INT(moved->nvlink[to[1]], 1U << to[2]);
	CHECK_INT(moved->numa[to[3]], 1);
	CHECK(links_permute(moved, back, &again, NULL) == 0);
	CHECK(links_equal(links, again));
	CHECK_INT(links_permute(links, wrong, &moved, &err), -EINVAL);
	CHECK_INT(links_permute(links, outside, &moved, &err), -EINVAL);
}

TEST(freeing_nothing_is_fine)
{
	links_free(NULL);
}

TEST_MAIN()
