/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a gang whose node failed get a new place near the others. */
#include "gang_fabric.h"

/* Places a gang, loses its first member and puts a new one in its place. */
static void lose_first(struct fabric *f, uint32_t count, struct gang_repair repair, bool expected)
{
	struct gang_failed failed = { .request = &f->request, .pod = &f->pods[0] };
	uint32_t kept[GANG_MAX], lost;
	struct err err = ERR_INIT;
	uint64_t before;

	PLACED(f, count);
	commit(f);
	lost = f->result.members[0].decision.node;
	failed.leaf = cluster_node(f->cluster, lost)->domain;
	for (uint32_t i = 1; i < count; i++)
		kept[i - 1] = f->result.members[i].pod;
	cluster_node_remove(f->cluster, lost);
	repair.kept = kept;
	repair.kept_count = count - 1;
	repair.failed = &failed;
	repair.failed_count = 1;
	before = cluster_digest(f->cluster);
	CHECKF(gang_replace(f->planner, &repair, &f->result, &err) == 0, "%s", err.text);
	CHECKF(f->result.placed == expected, "%s", f->result.reason);
	if (!expected)
		CHECK(cluster_digest(f->cluster) == before);
	else
		CHECK_INT(f->result.members_count, 1);
}

TEST(a_replacement_stays_in_its_leaf_if_there_is_room)
{
	FABRIC(f, 2, 4, 4);
	lose_first(&f, 3, (struct gang_repair){ 0 }, true);
	CHECK_STR(leaves_of(&f), "s1/l1");
	CHECK_STR(node_of(&f, 0), "s1-l1-n4");
}

TEST(a_replacement_goes_to_an_adjacent_leaf_then_anywhere)
{
	FABRIC(f, 2, 4, 4);
	occupy_leaf(&f, 1, 1, 4);
	occupy_leaf(&f, 1, 4, 4);
	occupy(&f, "s1-l3-n1", 8);
	lose_first(&f, 4, (struct gang_repair){ 0 }, true);
	CHECK_STR(leaves_of(&f), "s1/l2 s1/l3");
	CHECK(f.result.adjacent);
}

TEST(a_replacement_goes_to_another_spine_unless_a_level_is_required)
{
	FABRIC(f, 2, 1, 4);
	lose_first(&f, 4, (struct gang_repair){ .level = 1, .level_mode = GANG_REQUIRED }, false);
	CHECK_STR(f.result.reason, "no node in the gang's domain of level 1 has room for member "
				   "member-0, whose place failed");
	CHECK(f.result.plan == NULL);
}

TEST(a_replacement_farther_away_is_better_than_none)
{
	FABRIC(f, 2, 1, 4);
	lose_first(&f, 4, (struct gang_repair){ .level = 1 }, true);
	CHECK_STR(leaves_of(&f), "s1/l1 s2/l1");
	CHECK_STR(node_of(&f, 0), "s2-l1-n1");
}

TEST(replacements_keep_together_and_within_the_limits)
{
	FABRIC(f, 1, 3, 4, .max_nodes_per_leaf = 2);
	struct gang_failed failed[2];
	struct gang_repair repair = { .failed = failed, .failed_count = 2 };
	struct err err = ERR_INIT;
	uint32_t kept;

	PLACED(&f, 3);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2");
	commit(&f);
	kept = f.result.members[0].pod;
	repair.kept = &kept;
	repair.kept_count = 1;
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t node = f.result.members[i + 1].decision.node;

		failed[i] = (struct gang_failed){ &f.request, &f.pods[i + 1],
						  cluster_node(f.cluster, node)->domain };
		cluster_node_remove(f.cluster, node);
	}
	CHECK(gang_replace(f.planner, &repair, &f.result, &err) == 0);
	CHECKF(f.result.placed, "%s", f.result.reason);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2");
	CHECK_INT(f.result.nodes_count, 3);
	CHECK_INT(cluster_pods_count(f.cluster), 3);
	CHECK_STR(cluster_node(f.cluster, cluster_pod(f.cluster, kept)->node)->name, "s1-l1-n1");
}

TEST(a_replacement_of_a_gang_that_is_spread_has_a_leaf_of_its_own)
{
	FABRIC(f, 2, 3, 2);
	struct gang_failed failed = { .request = &f.request,
				      .pod = &f.pods[0],
				      .leaf = DOMAIN_NONE };
	struct gang_repair repair = { .failed = &failed, .failed_count = 1, .kept_count = 3 };
	struct err err = ERR_INIT;
	uint32_t kept[3];

	PLACED(&f, 4, .strategy = STRATEGY_DISTRIBUTED);
	CHECK_INT(f.result.leaves_count, 4);
	commit(&f);
	for (uint32_t i = 1; i < 4; i++)
		kept[i - 1] = f.result.members[i].pod;
	repair.kept = kept;
	engine_remove(f.engine, f.result.members[0].pod);
	f.request.strategy = STRATEGY_DISTRIBUTED;
	CHECK(gang_replace(f.planner, &repair, &f.result, &err) == 0);
	CHECKF(f.result.placed, "%s", f.result.reason);
	CHECK_INT(f.result.leaves_count, 4);
	rollback(&f);
}

TEST(a_replacement_of_a_gang_that_is_spread_has_a_node_of_its_own)
{
	FABRIC(f, 1, 2, 2);
	struct gang_failed failed = { .request = &f.request,
				      .pod = &f.pods[2],
				      .leaf = DOMAIN_NONE };
	struct gang_repair repair = { .failed = &failed, .failed_count = 1, .kept_count = 2 };
	struct err err = ERR_INIT;
	uint32_t kept[2];

	f.request.asks[0].count = 2;
	f.request.strategy = STRATEGY_DISTRIBUTED;
	PLACED(&f, 2, .strategy = STRATEGY_DISTRIBUTED);
	commit(&f);
	for (uint32_t i = 0; i < 2; i++)
		kept[i] = f.result.members[i].pod;
	repair.kept = kept;
	CHECK(gang_replace(f.planner, &repair, &f.result, &err) == 0);
	CHECKF(f.result.placed, "%s", f.result.reason);
	CHECK_INT(f.result.nodes_count, 3);
	rollback(&f);
}

TEST(a_replacement_prefers_a_leaf_that_the_gang_uses)
{
	FABRIC(f, 1, 4, 4);
	struct gang_failed failed;
	struct gang_repair repair = { .failed = &failed, .failed_count = 1 };
	struct err err = ERR_INIT;
	uint32_t kept[6], lost;

	occupy_leaf(&f, 1, 4, 1);
	PLACED(&f, 7);
	CHECK_STR(leaves_of(&f), "s1/l3 s1/l4");
	commit(&f);
	occupy_leaf(&f, 1, 2, 1);
	for (uint32_t i = 1; i < 7; i++)
		kept[i - 1] = f.result.members[i].pod;
	engine_remove(f.engine, kept[5]); /* a place becomes free in l4 */
	repair.kept = kept;
	repair.kept_count = 5;
	lost = f.result.members[0].decision.node;
	failed = (struct gang_failed){ &f.request, &f.pods[0],
				       cluster_node(f.cluster, lost)->domain };
	cluster_node_remove(f.cluster, lost);
	CHECK(gang_replace(f.planner, &repair, &f.result, &err) == 0);
	CHECKF(f.result.placed, "%s", f.result.reason);
	CHECK_STR(leaves_of(&f), "s1/l3 s1/l4");
	repair.failed_count = 0;
	rollback(&f);
	CHECK(gang_replace(f.planner, &repair, &f.result, &err) == -EINVAL);
}

TEST_MAIN()
