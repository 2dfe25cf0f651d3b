/* SPDX-License-Identifier: Apache-2.0 */
/* Which cards: shares by policy, links, preferences, and several containers of one pod. */
#include "engine_fixture.h"

#include "engine/pick.h"

static struct request by(struct request r, enum share_policy policy)
{
	r.asks[0].share_policy = (uint8_t)policy;
	return r;
}

static uint32_t prefer(struct engine *e, uint32_t node, struct request r, uint8_t first,
		       uint8_t second)
{
	r.asks[0].policy = PICK_PREFER;
	r.asks[0].prefer[0] = first;
	r.asks[0].prefer[1] = second;
	r.asks[0].prefer_count = 2;
	return gpus_on(e, r, node);
}

TEST(each_share_policy_takes_its_card)
{
	struct engine *e = fleet_new();
	uint32_t node = box_add(e, &(struct box)BOX("a", 5));

	/* Core free: 1000, 400, 700, 400 with less memory, 200. */
	put(e, "1", node, on_gpus(share(600, 0), 2));
	put(e, "2", node, on_gpus(share(300, 0), 4));
	put(e, "3", node, on_gpus(share(600, 1000), 8));
	put(e, "4", node, on_gpus(share(800, 0), 16));
	CHECK_INT(gpus_on(e, by(share(200, 0), SHARE_BINPACK), node), 16);
	CHECK_INT(gpus_on(e, by(share(300, 0), SHARE_BINPACK), node), 8);
	CHECK_INT(gpus_on(e, by(share(300, 16000), SHARE_BINPACK), node), 2);
	CHECK_INT(gpus_on(e, by(share(500, 0), SHARE_BINPACK), node), 4);
	CHECK_INT(gpus_on(e, by(share(200, 0), SHARE_SPREAD), node), 1);
	/* Without a scorer the least fragmentation is the fullest card. */
	CHECK_INT(gpus_on(e, by(share(300, 0), SHARE_LEASTFRAG), node), 8);
	engine_free(e);
}

TEST(several_shares_of_one_ask_lie_on_different_cards)
{
	struct engine *e = fleet_new();
	uint32_t node = box_add(e, &(struct box)BOX("a", 3));
	struct request r = by(share(300, 0), SHARE_BINPACK);

	put(e, "1", node, on_gpus(share(500, 0), 2));
	r.asks[0].count = 2;
	CHECK_INT(gpus_on(e, r, node), 3);
	r.asks[0].share_policy = SHARE_SPREAD;
	CHECK_INT(gpus_on(e, r, node), 5);
	r.asks[0].count = 3;
	r.asks[0].core_milli = 500;
	CHECK_INT(gpus_on(e, r, node), 7);
	r.asks[0].core_milli = 501;
	CHECK_VERDICT(verdict_on(e, r, node), NO_GPU_CORE);
	r.asks[0].count = 4;
	CHECK_VERDICT(verdict_on(e, r, node), NO_GPU);
	engine_free(e);
}

TEST(a_random_share_is_the_same_for_a_seed_and_reaches_every_card)
{
	struct engine *e = fleet_new();
	uint32_t node = box_add(e, &(struct box)BOX("a", 4)), seen = 0;
	struct request r = by(share(100, 0), SHARE_RANDOM);

	put(e, "1", node, on_gpus(share(950, 0), 4));
	for (r.asks[0].prefer_seed = 0; r.asks[0].prefer_seed < 64; r.asks[0].prefer_seed++) {
		uint32_t gpus = gpus_on(e, r, node);

		CHECK_INT(gpus, gpus_on(e, r, node));
		seen |= gpus;
	}
	CHECK_INT(seen, 0xb);
	engine_free(e);
}

TEST(of_cards_with_equal_room_the_one_with_tenants_takes_the_next)
{
	struct engine *e = fleet_new();
	uint32_t node = box_add(e, &(struct box)BOX("a", 3));

	put(e, "seat", node, on_gpus(share(0, 0), 2));
	CHECK_INT(gpus_on(e, by(share(0, 0), SHARE_BINPACK), node), 2);
	CHECK_INT(gpus_on(e, by(share(500, 0), SHARE_BINPACK), node), 2);
	CHECK_INT(gpus_on(e, by(share(0, 0), SHARE_SPREAD), node), 1);
	engine_free(e);
}

TEST(without_links_whole_cards_are_preferred_then_adjacent_then_lowest)
{
	struct engine *e = fleet_new();
	uint32_t node = box_add(e, &(struct box)BOX("a", 6));
	struct request r = whole(2);

	put(e, "1", node, on_gpus(whole(1), 2));
	put(e, "2", node, on_gpus(whole(1), 8));
	/* Idle are 0, 2, 4 and 5. */
	CHECK_INT(gpus_on(e, r, node), 0x30);
	CHECK_INT(gpus_on(e, whole(3), node), 0x15);
	CHECK_INT(gpus_on(e, whole(1), node), 1);
	r.asks[0].policy = PICK_BANDWIDTH;
	CHECK_INT(gpus_on(e, r, node), 5);
	r.asks[0].policy = PICK_CONTIGUOUS;
	r.asks[0].bandwidth_mode = PICK_IGNORE;
	CHECK_INT(gpus_on(e, r, node), 5);
	CHECK_INT(prefer(e, node, whole(2), 5, 3), 0x21);
	CHECK_INT(prefer(e, node, whole(1), 4, 5), 0x10);
	CHECK_INT(prefer(e, node, whole(2), 200, 2), 5);
	CHECK_INT(prefer(e, node, share(10, 0), 3, 5), 0x20);
	engine_free(e);
}

TEST(required_bandwidth_is_met_or_refused_even_on_pinned_cards)
{
	struct engine *e = fleet_new();
	static const uint16_t gbps[9] = { 0, 50, 400, 50, 0, 50, 400, 50, 0 };
	struct links *links;
	struct box b = BOX("a", 3);
	struct request r = whole(2);
	uint32_t node, unlinked = box_add(e, &(struct box)BOX("b", 3));
	struct assignment a;

	CHECK(links_new(&(struct links_input){ .count = 3, .gbps = gbps }, &links, NULL) == 0);
	b.spec.links = links;
	node = box_add(e, &b);
	r.asks[0].min_gbps = 400;
	r.asks[0].bandwidth_mode = PICK_REQUIRED;
	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	CHECK_INT(a.gpus, 5);
	CHECK_INT(a.weakest_gbps, 400);
	CHECK_VERDICT(verdict_on(e, r, unlinked), NO_BANDWIDTH);
	CHECK_VERDICT(verdict_on(e, on_gpus(r, 5), node), FITS);
	CHECK_VERDICT(verdict_on(e, on_gpus(r, 3), node), NO_BANDWIDTH);
	CHECK_VERDICT(verdict_on(e, on_gpus(r, 3), unlinked), NO_BANDWIDTH);
	r.asks[0].min_gbps = 401;
	CHECK_VERDICT(verdict_on(e, r, node), NO_BANDWIDTH);
	r.asks[0].bandwidth_mode = PICK_PREFERRED;
	r.asks[0].policy = PICK_BANDWIDTH;
	CHECK_INT(gpus_on(e, r, node), 5);
	CHECK_VERDICT(verdict_on(e, on_gpus(r, 3), node), FITS);
	CHECK_VERDICT(verdict_on(e, r, unlinked), FITS);
	/* One card has no pair. */
	r.asks[0].bandwidth_mode = PICK_REQUIRED;
	r.asks[0].count = 1;
	CHECK_VERDICT(verdict_on(e, r, unlinked), FITS);
	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	CHECK_INT(a.weakest_gbps, UINT32_MAX);
	engine_free(e);
	links_free(links);
}

TEST(containers_of_one_pod_may_share_a_card_or_be_kept_apart)
{
	struct engine *e = fleet_new();
	uint32_t one = box_add(e, &(struct box)BOX("one", 1)),
		 two = box_add(e, &(struct box)BOX("two", 2));
	struct request small = both(share(300, 0), share(600, 0));

	CHECK_INT(gpus_on(e, small, two), 1);
	CHECK_INT(gpus_on(e, small, one), 1);
	CHECK_INT(gpus_on(e, both(share(500, 0), share(600, 0)), two), 3);
	CHECK_VERDICT(verdict_on(e, both(share(500, 0), share(600, 0)), one), NO_GPU_CORE);
	CHECK_INT(gpus_on(e, both(apart(share(300, 0)), share(600, 0)), two), 3);
	CHECK_INT(gpus_on(e, both(share(300, 0), apart(share(600, 0))), two), 3);
	CHECK_VERDICT(verdict_on(e, both(apart(share(300, 0)), share(600, 0)), one), NO_FREE_GPU);
	CHECK_INT(gpus_on(e, both(whole(1), share(1000, 0)), two), 3);
	CHECK_VERDICT(verdict_on(e, both(whole(1), share(1, 0)), one), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, both(whole(1), apart(whole(1))), one), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, both(whole(1), whole(2)), two), NO_FREE_GPU);
	/* Nothing was said of models, so they are not what is wrong. */
	CHECK_VERDICT(verdict_on(e, both(apart(whole(2)), share(1, 0)), two), NO_FREE_GPU);
	engine_free(e);
}

TEST(each_container_gets_its_own_holds)
{
	struct engine *e = fleet_new();
	uint32_t node = box_add(e, &(struct box)BOX("a", 4));
	struct request r = both(share(250, 10), whole(2));
	struct assignment a;

	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	CHECK_INT(a.count, 3);
	CHECK_INT(assignment_gpus(&a, 0), 4);
	CHECK_INT(assignment_gpus(&a, 1), 3);
	CHECK_INT(assignment_gpus(&a, 2), 0);
	/* Pinned ones first, whatever their place in the pod. */
	r = both(whole(2), on_gpus(share(10, 0), 1));
	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	CHECK_INT(assignment_gpus(&a, 0), 6);
	CHECK_INT(assignment_gpus(&a, 1), 1);
	engine_free(e);
}

/* Two cards; only the second is of the model that the smaller share needs. */
TEST(an_earlier_container_does_not_take_the_only_card_of_a_later_one)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 2);
	struct request r;
	struct assignment a;
	uint32_t node;

	b.gpus[0].model = "scarce";
	node = box_add(e, &b);
	r = both(share(600, 0), of_model(e, share(500, 0), "scarce"));
	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	CHECK_INT(assignment_gpus(&a, 0), 2);
	CHECK_INT(assignment_gpus(&a, 1), 1);
	r = both(whole(1), of_model(e, whole(1), "scarce"));
	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	CHECK_INT(assignment_gpus(&a, 1), 1);
	CHECK_INT(a.gpus, 3);
	engine_free(e);
}

TEST(a_card_like_one_that_the_pod_may_not_use_is_tried_all_the_same)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 4);
	struct request r;
	struct assignment a;
	uint32_t node;

	/* One by one, the third container takes the scarce card 2 from the fourth.  So all ways
	 * are searched; then the first leaves card 0, which it keeps for itself, in just the
	 * state that card 1 is in, which one of the others must have. */
	b.gpus[2].model = "scarce";
	node = box_add(e, &b);
	put(e, "other", node, on_gpus(share(500, 0), 2));
	put(e, "third", node, on_gpus(share(300, 0), 4));
	r = both(apart(on_gpus(share(500, 0), 1)), apart(share(450, 0)));
	r = both(r, share(440, 0));
	r = both(r, of_model(e, share(430, 0), "scarce"));
	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	CHECK_INT(assignment_gpus(&a, 0), 1);
	CHECK_INT(assignment_gpus(&a, 1) | assignment_gpus(&a, 2), 0xa);
	CHECK_INT(assignment_gpus(&a, 3), 4);
	engine_free(e);
}

/* The pod would rather have the slow pair 0-1, but its other container needs card 0. */
/* Card 0 has no seat left, card 1 differs from it by that alone. */
TEST(cards_that_differ_by_their_seats_are_tried_each)
{
	struct engine *e = engine_with((struct engine_config){ .cluster.seats = 2 });
	struct box b = BOX("a", 4);
	struct request r;
	uint32_t a;

	b.gpus[2].model = "scarce";
	b.gpus[3].model = "other";
	a = box_add(e, &b);
	put(e, "p0", a, on_gpus(share(0, 0), 1));
	put(e, "p1", a, on_gpus(share(0, 0), 1));
	put(e, "p2", a, on_gpus(share(0, 0), 2));
	/* Taken one after the other the first gets the card that the second needs. */
	r = both(whole(1), of_model(e, whole(1), "scarce"));
	r = both(r, of_model(e, share(0, 0), "model"));
	CHECK_INT(gpus_on(e, r, a), 0xe);
	engine_free(e);
}

TEST(after_a_search_the_weakest_link_is_that_of_what_was_found)
{
	struct engine *e = fleet_new();
	static const uint16_t gbps[9] = { 0, 50, 50, 50, 0, 300, 50, 300, 0 };
	struct links *links;
	struct box b = BOX("a", 3);
	struct request r;
	struct assignment a;
	uint32_t node;

	CHECK(links_new(&(struct links_input){ .count = 3, .gbps = gbps }, &links, NULL) == 0);
	b.spec.links = links;
	b.gpus[0].model = "scarce";
	node = box_add(e, &b);
	r = both(whole(2), of_model(e, whole(1), "scarce"));
	r.asks[0].policy = PICK_PREFER;
	r.asks[0].prefer[0] = 0;
	r.asks[0].prefer_count = 1;
	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	CHECK_INT(assignment_gpus(&a, 0), 6);
	CHECK_INT(assignment_gpus(&a, 1), 1);
	CHECK_INT(a.weakest_gbps, 300);
	engine_free(e);
	links_free(links);
}

TEST(more_holds_than_an_assignment_has_are_refused)
{
	struct engine *e = fleet_new();
	uint32_t node = box_add(e, &(struct box)BOX("a", 5));
	struct request r = share(10, 0);

	r.asks[0].count = 5;
	for (int i = 1; i < 12; i++)
		r = both(r, r);
	CHECK_VERDICT(verdict_on(e, r, node), FITS);
	r = both(r, r);
	CHECK_VERDICT(verdict_on(e, r, node), NO_GPU);
	engine_free(e);
}

TEST_MAIN()
