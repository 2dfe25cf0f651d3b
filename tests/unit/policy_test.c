/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of the policies on nodes that can be worked out by hand. */
#include "engine_fixture.h"

static struct engine *engine_of(const struct policy *policy)
{
	return engine_with((struct engine_config){ .policy = policy });
}

/* The policy's own part. */
static int32_t score_on(struct engine *e, struct request r, uint32_t node)
{
	struct decision d;
	struct parts p;

	CHECK_VERDICT(engine_score(e, &r, node, &d, &p), FITS);
	if (engine_config(e)->policy->bare)
		CHECK_INT(d.score, p.availability);
	return p.availability;
}

/* The card that a share gets there. */
static uint32_t card_on(struct engine *e, struct request r, uint32_t node)
{
	struct decision d;

	CHECK_VERDICT(engine_score(e, &r, node, &d, NULL), FITS);
	return d.assignment.gpus;
}

static uint32_t node_of(struct engine *e, const char *name, uint32_t gpus, int64_t cpu_milli)
{
	struct box b = BOX(name, gpus);

	b.spec.allocatable.cpu_milli = cpu_milli;
	return box_add(e, &b);
}

TEST(policies_are_found_by_name)
{
	const struct policy *policy;
	size_t count = 0;

	for (; (policy = policy_at(count)); count++) {
		CHECK(policy_find(policy->name) == policy);
		CHECK(policy->summary && *policy->summary);
	}
	CHECK_INT(count, 8);
	CHECK(policy_find("default") == policy_at(0));
	CHECK(policy_find("best") == NULL);
}

TEST(bestfit_is_what_is_left_of_128_cores_and_8_gpus)
{
	struct engine *e = engine_of(&policy_bestfit);
	uint32_t node = node_of(e, "a", 8, 104000);

	put(e, "1", node, with_cpu(whole(2), 8000));
	/* 100 (1 - (88/128 + 5/8) / 2) = 34.375 */
	CHECK_INT(score_on(e, with_cpu(whole(1), 8000), node), 34);
	/* 100 (1 - (96/128 + 5.5/8) / 2) = 28.125 */
	CHECK_INT(score_on(e, share(500, 0), node), 28);
	CHECK_INT(score_on(e, with_cpu(whole(6), 96000), node), 100);
	engine_free(e);
}

TEST(dotprod_is_the_overlap_of_what_is_free_and_asked)
{
	struct engine *e = engine_of(&policy_dotprod);
	uint32_t node = node_of(e, "a", 6, 96000);

	/* 100 (1 - (96/128 * 8/128 + 6/8 * 1/8) / 2) = 92.97 */
	CHECK_INT(score_on(e, with_cpu(whole(1), 8000), node), 92);
	CHECK_INT(score_on(e, cpu(0), node), 100);
	/* 100 (1 - (0 + 6/8 * 0.25/8) / 2) = 98.83 */
	CHECK_INT(score_on(e, share(250, 0), node), 98);
	engine_free(e);
}

TEST(packing_goes_from_used_gpus_to_used_nodes_to_unused_ones)
{
	struct engine *e = engine_of(&policy_packing);
	uint32_t used = node_of(e, "used", 4, 64000), unused = node_of(e, "unused", 4, 64000);
	struct request two = share(200, 0);

	put(e, "1", used, on_gpus(share(300, 0), 1));
	put(e, "2", used, on_gpus(share(600, 0), 2));
	CHECK_INT(score_on(e, share(200, 0), used), 100 - 40);
	CHECK_INT(card_on(e, share(200, 0), used), 2);
	CHECK_INT(score_on(e, share(500, 0), used), 100 - 70);
	CHECK_INT(score_on(e, share(800, 0), used), 50 - 1);
	CHECK_INT(score_on(e, whole(2), used), 50 - 2);
	CHECK_INT(score_on(e, whole(1), unused), 33 - 4);
	CHECK_INT(score_on(e, share(200, 0), unused), 33 - 4);
	CHECK_INT(score_on(e, cpu(1000), used), 0);
	/* Two used cards with 700 and 400 of room: 100 - 110 is no score, but it does fit. */
	two.asks[0].count = 2;
	CHECK_INT(score_on(e, two, used), 0);
	engine_free(e);
}

/* Nodes of 2026 have more than the 128 cores and 8 GPUs that the formulas know. */
TEST(a_node_beyond_the_published_scale_still_fits)
{
	const struct policy *policy;

	for (size_t i = 0; (policy = policy_at(i)); i++) {
		struct engine *e = engine_of(policy);

		node_of(e, "huge", 16, 512000);
		CHECK_STR(choice(e, with_cpu(whole(1), 1000)), "huge");
		CHECK_STR(choice(e, with_cpu(whole(16), 512000)), "huge");
		CHECK_STR(choice(e, cpu(1000)), "huge");
		engine_free(e);
	}
}

TEST(fgd_is_how_the_free_gpu_that_the_mix_cannot_use_grows)
{
	struct engine *e = engine_of(&policy_fgd);
	struct request known = with_cpu(whole(1), 4000);
	uint32_t node = node_of(e, "a", 2, 64000), half = node_of(e, "b", 2, 64000);

	engine_mix_add(e, &known);
	/* Idle cards: nothing is lost.  Half a card is: 100 / (1 + e^0.5) = 37.75 */
	CHECK_INT(score_on(e, share(500, 0), node), 37);
	CHECK_INT(score_on(e, whole(1), node), 50);
	/* The other half of it is regained: 100 / (1 + e^-0.5) = 62.25 */
	put(e, "1", half, on_gpus(share(500, 0), 2));
	CHECK_INT(score_on(e, share(500, 0), half), 62);
	CHECK_INT(card_on(e, share(500, 0), half), 2);
	/* Without CPU for the known task both cards are lost: 100 / (1 + e^2) = 11.92 */
	CHECK_INT(score_on(e, cpu(61000), node), 11);
	engine_free(e);
}

TEST(fgd_counts_all_that_is_free_for_tasks_that_cannot_come)
{
	struct engine *e = engine_of(&policy_fgd);
	struct request known = whole(1), none = cpu(1000), other = of_model(e, whole(1), "other");
	uint32_t node = node_of(e, "a", 2, 64000);

	engine_mix_add(e, &known);
	engine_mix_add(e, &none);
	engine_mix_add(e, &other);
	/* Two thirds of the tasks use none of it: F falls by 2/3: 100 / (1 + e^(-2/3)) = 66.08 */
	CHECK_INT(score_on(e, whole(1), node), 66);
	/* A third loses 0.5 more, two thirds 0.5 less: 100 / (1 + e^(-1/6)) = 54.16 */
	CHECK_INT(score_on(e, share(500, 0), node), 54);
	engine_free(e);
}

TEST(fgd_looks_at_the_most_frequent_95_percent)
{
	for (int rare = 4; rare <= 6; rare++) {
		struct engine *e = engine_of(&policy_fgd);
		struct request often = whole(1), seldom = whole(2);
		uint32_t node = node_of(e, "a", 2, 64000);

		for (int i = 0; i < 100; i++)
			engine_mix_add(e, i < rare ? &seldom : &often);
		/* One card of two goes: to the rare task the other one is lost as well.
		 * 6 % of 1 GPU: 100 / (1 + e^0.06) = 48.50 */
		CHECK_INT(score_on(e, whole(1), node), rare > 5 ? 48 : 50);
		/* Half a card: 94 % lose 0.5 and 6 % lose 1.5, or all lose 0.5. */
		CHECK_INT(score_on(e, share(500, 0), node), rare > 5 ? 36 : 37);
		engine_free(e);
	}
}

TEST(binpack_and_spread_are_opposites)
{
	struct engine *pack = engine_of(&policy_binpack), *spread = engine_of(&policy_spread);
	uint32_t a = node_of(pack, "a", 4, 64000), b = node_of(spread, "a", 4, 64000), plain;

	plain = node_of(pack, "plain", 0, 64000);
	CHECK_INT(score_on(pack, whole(1), a), PART_MAX / 4);
	CHECK_INT(score_on(pack, whole(4), a), PART_MAX);
	CHECK_INT(score_on(pack, cpu(1000), plain), PART_MAX);
	CHECK_INT(score_on(pack, cpu(1000), a), 0);
	CHECK_INT(score_on(spread, whole(1), b), PART_MAX / 4 * 3);
	put(pack, "1", a, on_gpus(share(500, 0), 2));
	put(spread, "1", b, on_gpus(share(500, 0), 1));
	CHECK_INT(card_on(pack, share(100, 0), a), 2);
	CHECK_INT(card_on(spread, share(100, 0), b), 2);
	CHECK_INT(score_on(pack, share(500, 0), a), PART_MAX / 4);
	/* The nodes likewise. */
	node_of(pack, "b", 4, 64000);
	node_of(spread, "b", 4, 64000);
	CHECK_STR(choice(pack, whole(1)), "a");
	CHECK_STR(choice(spread, whole(1)), "b");
	engine_free(pack);
	engine_free(spread);
}

TEST(random_is_decided_by_its_seed_and_reaches_all)
{
	uint32_t nodes = 0, cards = 0;

	for (uint64_t seed = 0; seed < 64; seed++) {
		const char *first = NULL;

		for (int again = 0; again < 2; again++) {
			struct engine *e = engine_with(
				(struct engine_config){ .policy = &policy_random, .seed = seed });
			const char *name;

			for (int i = 0; i < 4; i++)
				node_of(e, (const char *[]){ "a", "b", "c", "d" }[i], 2,
					64000 + i);
			name = choice(e, share(100, 0));
			nodes |= 1u << (name[0] - 'a');
			cards |= card_on(e, share(100, 0), 0);
			CHECK(!again || name[0] == *first);
			first = (const char *[]){ "a", "b", "c", "d" }[name[0] - 'a'];
			engine_free(e);
		}
	}
	CHECK_INT(nodes, 0xf);
	CHECK_INT(cards, 0x3);
}

TEST(published_policies_break_ties_by_the_seed)
{
	uint32_t nodes = 0;

	for (uint64_t seed = 0; seed < 64; seed++) {
		struct engine *e = engine_with(
			(struct engine_config){ .policy = &policy_bestfit, .seed = seed });

		for (int i = 0; i < 4; i++)
			node_of(e, (const char *[]){ "a", "b", "c", "d" }[i], 2, 64000);
		nodes |= 1u << (choice(e, whole(1))[0] - 'a');
		engine_free(e);
	}
	CHECK_INT(nodes, 0xf);
}

TEST(the_default_takes_the_lowest_of_equal_cards_and_the_begun_one_before_others)
{
	struct engine *e = engine_of(&policy_default);
	uint32_t node = node_of(e, "a", 4, 64000);

	CHECK_INT(card_on(e, share(500, 0), node), 1);
	put(e, "1", node, on_gpus(share(500, 0), 4));
	CHECK_INT(card_on(e, share(500, 0), node), 4);
	CHECK_INT(card_on(e, share(600, 0), node), 1);
	engine_free(e);
}

/* What counts is what the card is left with. */
TEST(to_the_default_two_containers_on_one_card_are_one_share)
{
	struct engine *e = engine_of(&policy_default);
	struct request third = with_cpu(share(300, 0), 100);
	uint32_t node = node_of(e, "a", 1, 64000);

	for (int i = 0; i < 16; i++)
		engine_arrived(e, &third);
	CHECK_INT(score_on(e, both(share(300, 0), share(600, 0)), node),
		  score_on(e, share(900, 0), node));
	CHECK(score_on(e, share(600, 0), node) > score_on(e, share(900, 0), node));
	engine_free(e);
}

TEST(what_the_default_picked_is_forgotten_when_it_learns)
{
	struct engine *e = engine_of(&policy_default);
	struct request half = with_cpu(share(500, 0), 100);
	uint32_t a = node_of(e, "a", 2, 64000), b = node_of(e, "b", 3, 64000);
	int32_t first;

	put(e, "1", a, on_gpus(share(500, 0), 2));
	CHECK_INT(card_on(e, half, a), 2);
	for (int i = 0; i < 16; i++)
		engine_arrived(e, &half);
	/* The pinned card needs no choice, so nothing overwrites what was picked before. */
	first = score_on(e, on_gpus(half, 2), a);
	score_on(e, half, b);
	CHECK_INT(score_on(e, on_gpus(half, 2), a), first);
	engine_free(e);
}

TEST(only_a_policy_that_is_told_the_mix_takes_a_list)
{
	struct engine *e = engine_of(&policy_fgd), *d = engine_of(&policy_default);
	struct request half = share(500, 0), one = whole(1);
	uint32_t node = node_of(e, "a", 1, 64000);
	struct decision before, after;

	engine_mix_add(e, &one);
	CHECK_INT(score_on(e, half, node), 37);
	for (int i = 0; i < 100; i++)
		engine_arrived(e, &half); /* it does not learn */
	CHECK_INT(score_on(e, half, node), 37);
	node_of(d, "a", 2, 64000);
	CHECK_VERDICT(engine_decide(d, &half, &before), FITS);
	for (int i = 0; i < 100; i++)
		engine_mix_add(d, &half); /* nor this one know */
	CHECK_VERDICT(engine_decide(d, &half, &after), FITS);
	CHECK_INT(before.score, after.score);
	for (int i = 0; i < 100; i++)
		engine_arrived(d, &half);
	CHECK_VERDICT(engine_decide(d, &half, &after), FITS);
	CHECK(before.score != after.score);
	engine_free(e);
	engine_free(d);
}

TEST_MAIN()
