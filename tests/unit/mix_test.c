/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_fixture.h"

#include <math.h>

#include "engine/mix.h"

static void mix_freep(struct mix **m)
{
	mix_free(*m);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * (1 + fabs(b));
}

static const struct mix_kind *find(const struct mix *m, struct request r)
{
	uint32_t count;
	double total;
	const struct mix_kind *kinds = mix_kinds(m, &count, &total);
	struct mix_kind kind;

	mix_kind_of(&r, &kind);
	for (uint32_t i = 0; i < count; i++)
		if (!memcmp(&kinds[i], &kind, offsetof(struct mix_kind, weight)))
			return &kinds[i];
	return NULL;
}

/* The sum of all weights, which must be the total. */
static double total_of(const struct mix *m, uint32_t *count)
{
	double total, sum = 0;
	const struct mix_kind *kinds = mix_kinds(m, count, &total);

	for (uint32_t i = 0; i < *count; i++)
		sum += kinds[i].weight;
	CHECK(near(sum, total));
	return total;
}

TEST(a_kind_is_what_the_pod_takes_of_cards_and_of_the_node)
{
	struct request two = both(share(300, 1000), share(700, 10)), shares = share(250, 0);
	const struct {
		struct request request;
		uint16_t gpus, share_milli;
	} rows[] = {
		{ cpu(500), 0, 0 },
		{ whole(4), 4, 1000 },
		{ share(250, 0), 1, 250 },
		{ share(0, 4000), 0, 0 }, /* memory only, and a seat */
		{ share(0, 0), 0, 0 },
		{ slice("1g.5gb"), 0, 0 }, /* from other cards than these */
		{ two, 2, 700 },
		{ both(whole(1), whole(2)), 3, 1000 },
		{ both(share(300, 0), whole(2)), 2, 1000 },
		{ both(slice("1g.5gb"), share(300, 0)), 1, 300 },
	};
	struct mix_kind kind;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		mix_kind_of(&rows[i].request, &kind);
		CHECKF(kind.gpus == rows[i].gpus && kind.share_milli == rows[i].share_milli,
		       "row %zu: %u x %u", i, kind.gpus, kind.share_milli);
	}
	shares.asks[0].count = 3;
	shares.needs = (struct resources){ 4000, 5, 6, 1 };
	modelset_add(&shares.asks[0].models, 7);
	mix_kind_of(&shares, &kind);
	CHECK_INT(kind.gpus, 3);
	CHECK_INT(kind.cpu_milli, 4000);
	CHECK_INT(kind.mem_bytes, 5);
	CHECK(modelset_has(&kind.models, 7) && !modelset_has(&kind.models, 8));
	CHECK(kind.weight == 0);
}

TEST(arrivals_of_one_kind_are_counted_together)
{
	struct mix *m CLEANUP(mix_freep) = mix_new();
	struct request labelled = whole(1), prefers = whole(1);
	uint32_t count;

	labelled.selector_count = 1;
	prefers.asks[0].prefer_count = 1;
	mix_arrived(m, &labelled);
	mix_arrived(m, &prefers);
	mix_arrived(m, &(struct request){ 0 });
	mix_add(m, &labelled);
	CHECK(near(total_of(m, &count), 4));
	CHECK_INT(count, 2);
	CHECK(near(find(m, whole(1))->weight, 3));
	CHECK(find(m, whole(2)) == NULL);
}

TEST(epochs_begin_at_16_32_64_and_then_evenly)
{
	static const struct {
		uint32_t nodes;
		uint32_t epochs[10];
	} rows[] = {
		{ 0, { 16, 32, 64, 128, 256, 512, 1024, 1536, 2048, 2560 } },
		{ 256, { 16, 32, 64, 128, 256, 512, 1024, 1536, 2048, 2560 } },
		{ 500, { 16, 32, 64, 128, 256, 512, 1024, 2024, 3024, 4024 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct mix *m CLEANUP(mix_freep) = mix_new();
		struct request r = whole(1);
		uint32_t at = 0;

		CHECK(!mix_epoch(m, rows[i].nodes));
		for (uint32_t arrivals = 1; at < 10; arrivals++) {
			mix_arrived(m, &r);
			CHECK_INT(mix_prices_due(m), arrivals % MIX_PRICES == 0);
			if (!mix_epoch(m, rows[i].nodes))
				continue;
			CHECK_INT(arrivals, rows[i].epochs[at++]);
			CHECK(!mix_epoch(m, rows[i].nodes));
		}
	}
}

TEST(what_came_long_ago_counts_less)
{
	struct mix *m CLEANUP(mix_freep) = mix_new();
	struct request old = whole(1), new = whole(2);
	double before;
	uint32_t count, epochs = 0;

	for (int i = 0; i < 16; i++)
		mix_arrived(m, &old);
	CHECK(mix_epoch(m, 0));
	/* 16 arrivals of the 2048 after which half is left. */
	CHECK(near(find(m, old)->weight, 16 * exp2(-16.0 / 2048)));
	before = find(m, old)->weight;
	for (int i = 16; i < 2048; i++) {
		mix_arrived(m, &new);
		epochs += mix_epoch(m, 0);
	}
	CHECK_INT(epochs, 8);
	CHECK(near(find(m, old)->weight, before * exp2(-2032.0 / 2048)));
	CHECK(find(m, new)->weight < 2032 && find(m, new)->weight > 1000);
	total_of(m, &count);
	CHECK_INT(count, 2);
}

TEST(a_list_that_is_known_begins_no_epoch)
{
	struct mix *m CLEANUP(mix_freep) = mix_new();
	struct request r = whole(1);
	uint32_t count;

	for (int i = 0; i < 100; i++)
		mix_add(m, &r);
	CHECK(!mix_epoch(m, 0));
	CHECK(near(total_of(m, &count), 100));
}

TEST(a_new_kind_beyond_the_bound_displaces_rare_ones_only)
{
	struct mix *m CLEANUP(mix_freep) = mix_new();
	struct request r = whole(8);
	uint32_t count;

	for (int i = 0; i < 50; i++)
		mix_arrived(m, &r);
	for (int i = 1; i < MIX_KINDS; i++)
		mix_arrived(m, &(struct request){ .needs.cpu_milli = i });
	CHECK(near(total_of(m, &count), 50 + MIX_KINDS - 1));
	CHECK_INT(count, MIX_KINDS);
	for (int i = 0; i < 3 * MIX_KINDS; i++) {
		struct request new = { .needs.cpu_milli = MIX_KINDS + i };

		mix_arrived(m, &new);
		CHECK(near(find(m, new)->weight, 1));
		CHECK(near(find(m, r)->weight, 50));
		total_of(m, &count);
		CHECKF(count > MIX_KINDS / 3 && count <= MIX_KINDS, "%u kinds are left", count);
	}
	/* Those that are left are still found: they count on. */
	mix_arrived(m, &r);
	CHECK(near(find(m, r)->weight, 51));
}

TEST_MAIN()
