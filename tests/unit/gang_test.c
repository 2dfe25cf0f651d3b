/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs over a small fabric: each rule of gang.h by an example. */
#include "gang_fabric.h"

TEST(two_nodes_go_into_one_leaf)
{
	FABRIC(f, 2, 4, 4);
	PLACED(&f, 2);
	CHECK_STR(leaves_of(&f), "s1/l1");
	CHECK_INT(f.result.nodes_count, 2);
	CHECK_STR(node_of(&f, 0), "s1-l1-n1");
	CHECK_STR(node_of(&f, 1), "s1-l1-n2");
	CHECK(f.result.adjacent);
	CHECK(cluster_check(f.cluster) == NULL);
}

TEST(four_nodes_take_a_complete_leaf)
{
	FABRIC(f, 2, 4, 4);
	occupy(&f, "s1-l1-n1", 1);
	PLACED(&f, 4, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(leaves_of(&f), "s1/l4"); /* two adjacent ones stay */
	CHECK_INT(f.result.nodes_count, 4);
}

TEST(eight_nodes_take_two_adjacent_leaves)
{
	FABRIC(f, 2, 4, 4);
	occupy(&f, "s1-l2-n3", 1);
	PLACED(&f, 8, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(leaves_of(&f), "s1/l3 s1/l4");
	CHECK(f.result.adjacent);
}

TEST(sixteen_nodes_take_four_adjacent_leaves)
{
	FABRIC(f, 2, 6, 4);
	occupy(&f, "s1-l3-n1", 8);
	occupy(&f, "s2-l1-n1", 8);
	PLACED(&f, 16, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(leaves_of(&f), "s2/l3 s2/l4 s2/l5 s2/l6");
	CHECK_INT(f.result.members_count, 16);
}

TEST(leaf_names_are_adjacent_by_number_not_by_letters)
{
	FABRIC(f, 1, 12, 4);
	for (uint32_t l = 1; l <= 12; l++)
		if (l != 9 && l != 10)
			occupy_leaf(&f, 1, l, 4);
	PLACED(&f, 8, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(leaves_of(&f), "s1/l9 s1/l10");
}

TEST(the_fullest_leaf_that_fits_goes_first)
{
	FABRIC(f, 2, 4, 4);
	occupy_leaf(&f, 2, 3, 2);
	PLACED(&f, 2);
	CHECK_STR(leaves_of(&f), "s2/l3");
	PLACED(&f, 1);
	CHECK_STR(leaves_of(&f), "s2/l3");
	PLACED(&f, 3);
	CHECK_STR(leaves_of(&f), "s2/l4"); /* the fuller spine, beside the full leaf */
}

TEST(a_leaf_alone_goes_before_one_of_a_pair)
{
	FABRIC(f, 1, 4, 4);
	occupy_leaf(&f, 1, 3, 4);
	PLACED(&f, 4);
	CHECK_STR(leaves_of(&f), "s1/l4");
}

TEST(required_rules_refuse_scattered_nodes_and_say_what_is_missing)
{
	FABRIC(f, 2, 2, 4);
	for (uint32_t s = 1; s <= 2; s++)
		for (uint32_t l = 1; l <= 2; l++)
			occupy_leaf(&f, s, l, l);
	REFUSED(&f, 8, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(f.result.reason,
		  "gang of 8 needs 8 nodes in 2 adjacent leaves; the best spine, s1, has 5 nodes "
		  "with 8 free GPUs in adjacent leaves");
	REFUSED(&f, 4, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(f.result.reason,
		  "gang of 4 needs 4 nodes in one leaf; the best spine, s1, has 3 "
		  "nodes with 8 free GPUs in one leaf");
	PLACED(&f, 3, .leaf_rules = GANG_REQUIRED);
}

TEST(preferred_rules_take_more_adjacent_leaves_then_scattered_ones)
{
	FABRIC(f, 2, 4, 4);
	for (uint32_t l = 1; l <= 4; l++) {
		occupy_leaf(&f, 1, l, 2);
		occupy_leaf(&f, 2, l, 4);
	}
	PLACED(&f, 4);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2");
	occupy(&f, "s1-l2-n3", 8);
	occupy(&f, "s1-l2-n4", 8);
	occupy(&f, "s1-l4-n3", 8);
	occupy(&f, "s1-l4-n4", 8);
	PLACED(&f, 4);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l3");
	CHECK(!f.result.adjacent);
	REFUSED(&f, 5);
	CHECK_STR(f.result.reason,
		  "gang of 5 needs 5 nodes with 8 free GPUs each; there are only 4 nodes");
	CHECK_INT(f.result.by_verdict[FITS], 4);
	CHECK_INT(f.result.by_verdict[NO_FREE_GPU], 28);
	occupy(&f, "s1-l1-n3", 8);
	occupy(&f, "s1-l1-n4", 8);
	occupy(&f, "s1-l3-n3", 8);
	REFUSED(&f, 2);
	CHECK_STR(f.result.reason,
		  "gang of 2 needs 2 nodes with 8 free GPUs each; there is only 1 node");
}

TEST(a_leaf_in_between_is_used_so_that_leaves_stay_adjacent)
{
	FABRIC(f, 1, 3, 4);
	occupy_leaf(&f, 1, 1, 1);
	occupy_leaf(&f, 1, 2, 3);
	occupy_leaf(&f, 1, 3, 1);
	PLACED(&f, 6);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2 s1/l3");
	CHECK(f.result.adjacent);
}

TEST(a_gang_over_spines_takes_adjacent_ones)
{
	FABRIC(f, 4, 2, 4);
	occupy_leaf(&f, 2, 1, 4);
	PLACED(&f, 16);
	CHECK_STR(leaves_of(&f), "s3/l1 s3/l2 s4/l1 s4/l2");
	CHECK(f.result.common == 0);
	PLACED(&f, 16, .leaf_rules = GANG_REQUIRED); /* no spine could hold it */
	PLACED(&f, 28);
	occupy(&f, "s3-l1-n1", 8);
	occupy(&f, "s1-l1-n1", 8);
	REFUSED(&f, 16, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(f.result.reason,
		  "gang of 16 needs 16 nodes in 2 adjacent spines; the best of the "
		  "fabric has 15 nodes with 8 free GPUs in adjacent spines");
	PLACED(&f, 16);
}

TEST(a_spine_that_could_hold_it_must_under_required_rules)
{
	FABRIC(f, 2, 2, 4);
	occupy(&f, "s1-l1-n1", 8);
	occupy(&f, "s2-l1-n1", 8);
	REFUSED(&f, 8, .leaf_rules = GANG_REQUIRED);
	PLACED(&f, 8);
	CHECK_INT(f.result.nodes_count, 8);
}

TEST(max_nodes_per_leaf_bounds_what_a_gang_takes)
{
	FABRIC(f, 1, 4, 4, .max_nodes_per_leaf = 2);
	PLACED(&f, 4, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2");
	CHECK_INT(members_in(&f, "l1-"), 2);
	PLACED(&f, 8);
	CHECK_INT(f.result.leaves_count, 4);
	REFUSED(&f, 9);
	CHECK_STR(f.result.reason,
		  "gang of 9 needs 9 nodes with 8 free GPUs each; the limits per "
		  "leaf allow 8 nodes; it would not fit even if nothing else ran");
	occupy_leaf(&f, 1, 1, 4);
	occupy_leaf(&f, 1, 2, 4);
	REFUSED(&f, 10);
	CHECK_STR(f.result.reason,
		  "gang of 10 needs 10 nodes with 8 free GPUs each; there are only 8 nodes, of "
		  "which the limits per leaf allow 4 nodes; even if nothing else ran there would "
		  "be only 8 nodes");
}

TEST(a_reason_says_what_no_node_has)
{
	FABRIC(f, 1, 2, 4);
	occupy_leaf(&f, 1, 1, 4);
	f.request.min_network_gbps = 800;
	REFUSED(&f, 2);
	CHECK_STR(f.result.reason,
		  "gang of 2: no node could hold a member even if nothing ran there: network "
		  "bandwidth unknown or below 800 Gbit/s (label "
		  "topology.scheduler/network-bandwidth) on 8 nodes");
	f.request.min_network_gbps = 0;
	f.request.asks[0].count = 9;
	REFUSED(&f, 2);
	CHECK_STR(f.result.reason, "gang of 2: no node could hold a member even if nothing ran "
				   "there: 8 node(s) had too few GPUs (asked for 9, at most 8 "
				   "on one node)");
	f.request.asks[0].count = 8;
	f.request.domain = cluster_domain_find(f.cluster, (const char *[]){ "s1", "l2" }, 2);
	f.request.needs.cpu_milli = 65000;
	REFUSED(&f, 2);
	CHECK_STR(f.result.reason,
		  "gang of 2: no node could hold a member even if nothing ran there: 4 node(s) "
		  "were outside the required domain, Insufficient cpu on 4 nodes");
}

TEST(a_reason_says_whether_waiting_helps)
{
	FABRIC(f, 1, 2, 4);
	REFUSED(&f, 9);
	CHECK_STR(f.result.reason, "gang of 9 needs 9 nodes with 8 free GPUs each; there are only "
				   "8 nodes; it would not fit even if nothing else ran");
	REFUSED(&f, 5, .level = 2, .level_mode = GANG_REQUIRED);
	CHECK_STR(f.result.reason,
		  "gang of 5 needs 5 nodes with 8 free GPUs each in one domain of level 2; the "
		  "best, l1, has 4 nodes; none could hold it even if nothing else ran");
	occupy_leaf(&f, 1, 1, 4);
	REFUSED(&f, 9);
	CHECK_STR(f.result.reason,
		  "gang of 9 needs 9 nodes with 8 free GPUs each; there are only "
		  "4 nodes; even if nothing else ran there would be only 8 nodes");
	occupy_leaf(&f, 1, 2, 4);
	REFUSED(&f, 2);
	CHECK_STR(f.result.reason,
		  "gang of 2 needs 2 nodes with 8 free GPUs each; there are none");
}

TEST(a_fabric_without_nodes_says_so)
{
	FABRIC(f, 0, 0, 0);
	REFUSED(&f, 2);
	CHECK_STR(f.result.reason, "gang of 2: there are no nodes");
}

/* A class that has no room alone is refused before anything is placed. */
TEST(a_class_that_fits_nowhere_is_named)
{
	FABRIC(f, 1, 2, 4);
	struct request worker;
	static struct pod_spec workers[60000];
	static char uids[60000][16];
	struct gang_class classes[] = { { &f.request, f.pods, 1 }, { &worker, workers, 60000 } };
	struct gang_spec spec = { .classes = classes, .classes_count = 2 };

	request_init(&worker);
	worker.needs.cpu_milli = 1000;
	name_pods(&f);
	for (uint32_t i = 0; i < ARRAY_SIZE(workers); i++) {
		snprintf(uids[i], sizeof(uids[i]), "worker-%u", i);
		workers[i] = (struct pod_spec){ .uid = uids[i] };
	}
	classes[1].count = 300;
	spec.leaf_rules = GANG_REQUIRED;
	CHECK(gang_plan(f.planner, &spec, &f.result, NULL) == 0);
	CHECK_STR(f.result.reason, "gang of 301: its largest members would fit in one leaf, but "
				   "not all its kinds of members together");
	classes[1].count = 60000;
	CHECK(gang_plan(f.planner, &spec, &f.result, NULL) == 0);
	CHECK(!f.result.placed);
	CHECK_INT(f.result.refused_class, 1);
	CHECK_STR(f.result.reason,
		  "gang of 60001 needs room for 60000 members; there is only room for 512 "
		  "members; it would not fit even if nothing else ran");
}

TEST(max_gpus_per_leaf_bounds_what_a_gang_takes)
{
	FABRIC(f, 1, 4, 4, .max_gpus_per_leaf = 12);
	f.request.asks[0].count = 4;
	PLACED(&f, 6);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2");
	CHECK_INT(members_in(&f, "l1-"), 3);
	CHECK_INT(f.result.nodes_count, 4);
}

TEST(several_members_share_the_fewest_nodes)
{
	FABRIC(f, 1, 2, 4);
	f.request.asks[0].count = 1;
	PLACED(&f, 8);
	CHECK_INT(f.result.nodes_count, 1);
	PLACED(&f, 12);
	CHECK_INT(f.result.nodes_count, 2);
	occupy(&f, "s1-l2-n3", 4);
	PLACED(&f, 4);
	CHECK_STR(node_of(&f, 0), "s1-l2-n3"); /* the tightest node */
	PLACED(&f, 12);
	CHECK_STR(leaves_of(&f), "s1/l2");
	CHECK_STR(node_of(&f, 11), "s1-l2-n3");
	for (uint32_t n = 1; n <= 4; n++) {
		char name[32];

		snprintf(name, sizeof(name), "s1-l1-n%u", n);
		occupy(&f, name, 6);
	}
	PLACED(&f, 8);
	CHECK_STR(leaves_of(&f), "s1/l2"); /* one node instead of four */
	CHECK_INT(f.result.nodes_count, 1);
}

TEST(members_of_one_node_need_one_leaf)
{
	FABRIC(f, 1, 2, 1);
	f.request.asks[0].count = 1;
	occupy(&f, "s1-l1-n1", 4);
	occupy(&f, "s1-l2-n1", 4);
	REFUSED(&f, 8, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(f.result.reason,
		  "gang of 8 needs room for 8 members in one leaf; the best spine, "
		  "s1, has room for 4 members with 1 free GPU in one leaf");
	PLACED(&f, 8);
}

TEST(distributed_takes_as_many_leaves_as_possible)
{
	FABRIC(f, 2, 3, 4);
	PLACED(&f, 4, .strategy = STRATEGY_DISTRIBUTED, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2 s2/l1 s2/l2");
	PLACED(&f, 15, .strategy = STRATEGY_DISTRIBUTED);
	CHECK_INT(f.result.leaves_count, 6);
	CHECK_INT(members_in(&f, "s1-l1-"), 3);
	CHECK_INT(members_in(&f, "s2-l3-"), 2);
	occupy_leaf(&f, 1, 1, 4);
	PLACED(&f, 3, .strategy = STRATEGY_DISTRIBUTED);
	CHECK_STR(leaves_of(&f), "s1/l2 s2/l1 s2/l2"); /* the emptier spine gives two */
	PLACED(&f, 3, .strategy = STRATEGY_DISTRIBUTED, .latency_sensitive = true);
	CHECK_INT(f.result.leaves_count, 1);
}

TEST(distributed_members_take_different_nodes_in_a_leaf)
{
	FABRIC(f, 1, 2, 4);
	f.request.asks[0].count = 1;
	PLACED(&f, 8, .strategy = STRATEGY_DISTRIBUTED);
	CHECK_INT(f.result.nodes_count, 8);
}

TEST(balanced_is_even_over_the_fewest_leaves)
{
	FABRIC(f, 1, 4, 4);
	PLACED(&f, 6, .strategy = STRATEGY_BALANCED);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2");
	CHECK_INT(members_in(&f, "l1-"), 3);
	CHECK_INT(members_in(&f, "l2-"), 3);
	PLACED(&f, 6, .strategy = STRATEGY_CONSOLIDATED);
	CHECK_INT(members_in(&f, "l1-"), 4);
}

TEST(a_required_level_holds_all_members_or_none)
{
	FABRIC(f, 2, 4, 4);
	for (uint32_t l = 1; l <= 4; l++) {
		occupy_leaf(&f, 1, l, 2);
		occupy_leaf(&f, 2, l, 1);
	}
	PLACED(&f, 12, .level = 1, .level_mode = GANG_REQUIRED);
	REFUSED(&f, 13, .level = 1, .level_mode = GANG_REQUIRED);
	CHECK_STR(f.result.reason,
		  "gang of 13 needs 13 nodes with 8 free GPUs each in one domain of "
		  "level 1; the best, s2, has 12 nodes");
	PLACED(&f, 13, .level = 1);
	PLACED(&f, 3, .level = 2, .level_mode = GANG_REQUIRED);
	REFUSED(&f, 4, .level = 2, .level_mode = GANG_REQUIRED);
	PLACED(&f, 4, .level = 2);
	REFUSED(&f, 1, .level = 3, .level_mode = GANG_REQUIRED);
	CHECK_STR(f.result.reason,
		  "gang of 1 must stay in one domain of level 3; the fabric has none");
}

TEST(a_distributed_gang_keeps_its_level_while_it_can)
{
	FABRIC(f, 2, 4, 4);
	occupy(&f, "s1-l1-n1", 8);
	PLACED(&f, 8, .strategy = STRATEGY_DISTRIBUTED, .level = 1);
	CHECK_STR(leaves_of(&f), "s2/l1 s2/l2 s2/l3 s2/l4");
	PLACED(&f, 17, .strategy = STRATEGY_DISTRIBUTED, .level = 1);
	CHECK_INT(f.result.leaves_count, 8);
	REFUSED(&f, 17, .strategy = STRATEGY_DISTRIBUTED, .level = 1, .level_mode = GANG_REQUIRED);
}

TEST(the_preferred_and_the_required_domain_hold)
{
	FABRIC(f, 2, 4, 4);
	occupy_leaf(&f, 1, 1, 3);
	f.request.prefer_domain = cluster_domain_named(f.cluster, "s2");
	PLACED(&f, 1);
	CHECK_STR(leaves_of(&f), "s2/l1");
	f.request.prefer_domain = DOMAIN_NONE;
	f.request.domain = cluster_domain_find(f.cluster, (const char *[]){ "s2", "l3" }, 2);
	PLACED(&f, 4, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(leaves_of(&f), "s2/l3");
	REFUSED(&f, 5);
	CHECK_STR(
		f.result.reason,
		"gang of 5 needs 5 nodes with 8 free GPUs each in l3; there are only 4 nodes; it "
		"would not fit even if nothing else ran");
}

TEST(a_flat_cluster_is_one_leaf)
{
	FABRIC(f, 0, 0, 0);
	for (uint32_t i = 0; i < 40; i++) {
		char name[16];

		snprintf(name, sizeof(name), "node-%02u", i);
		add_node(&f, name, NULL, 0);
	}
	PLACED(&f, 16, .leaf_rules = GANG_REQUIRED);
	CHECK_INT(f.result.leaves_count, 1);
	CHECK_STR(node_of(&f, 0), "node-00");
	PLACED(&f, 40, .strategy = STRATEGY_DISTRIBUTED);
	REFUSED(&f, 41);
}

TEST(nodes_in_no_leaf_serve_last)
{
	FABRIC(f, 1, 2, 2);
	for (uint32_t i = 0; i < 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "a-stray-%u", i);
		add_node(&f, name, NULL, 0);
	}
	PLACED(&f, 4);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2");
	PLACED(&f, 6);
	CHECK_INT(members_in(&f, "s1-"), 4);
	PLACED(&f, 6, .strategy = STRATEGY_DISTRIBUTED);
	CHECK_INT(members_in(&f, "stray"), 2);
	REFUSED(&f, 6, .leaf_rules = GANG_REQUIRED);
}

TEST(an_nvlink_domain_is_an_innermost_level)
{
	FABRIC(f, 0, 0, 0);
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t t = 0; t < 18; t++) {
			char clique[16], name[32];
			const char *path[] = { "s1", "l1", clique };

			snprintf(clique, sizeof(clique), "clique-%u", k);
			snprintf(name, sizeof(name), "tray-%u-%02u", k, t);
			add_node(&f, name, path, 3);
		}
	occupy(&f, "tray-0-00", 8);
	PLACED(&f, 18, .leaf_rules = GANG_REQUIRED);
	CHECK_STR(leaves_of(&f), "l1/clique-2");
	PLACED(&f, 36);
	CHECK_STR(leaves_of(&f), "l1/clique-1 l1/clique-2");
}

TEST(classes_of_members_go_into_the_same_leaves)
{
	FABRIC(f, 1, 3, 4);
	struct request launcher;
	struct gang_class classes[] = {
		{ &launcher, f.pods, 1 },
		{ &f.request, f.pods + 1, 4 },
	};
	struct gang_spec spec = { .classes = classes,
				  .classes_count = 2,
				  .leaf_rules = GANG_REQUIRED };
	struct err err = ERR_INIT;

	request_init(&launcher);
	launcher.needs.cpu_milli = 4000;
	name_pods(&f);
	occupy(&f, "s1-l1-n1", 1);
	CHECK(gang_plan(f.planner, &spec, &f.result, &err) == 0);
	CHECKF(f.result.placed, "%s", f.result.reason);
	CHECK_INT(f.result.members_count, 5);
	CHECK_STR(leaves_of(&f), "s1/l3");
	CHECK_INT(f.result.nodes_count, 4);
	CHECK_INT(f.result.members[0].class_index, 0);
	CHECK_INT(f.result.members[4].class_index, 1);
	CHECK_INT(f.result.members[4].index, 3);
}

TEST(a_second_class_of_full_nodes_makes_the_gang_larger)
{
	FABRIC(f, 1, 4, 4);
	struct request other;
	struct gang_class classes[] = {
		{ &f.request, f.pods, 4 },
		{ &other, f.pods + 4, 4 },
	};
	struct gang_spec spec = { .classes = classes,
				  .classes_count = 2,
				  .leaf_rules = GANG_REQUIRED };
	struct err err = ERR_INIT;
	uint64_t before;

	request_init(&other);
	request_add_ask(&other, ASK_WHOLE, 8);
	other.needs.cpu_milli = 1000;
	name_pods(&f);
	CHECK(gang_plan(f.planner, &spec, &f.result, &err) == 0);
	CHECKF(f.result.placed, "%s", f.result.reason);
	CHECK_STR(leaves_of(&f), "s1/l1 s1/l2");
	rollback(&f);
	other.needs.cpu_milli = 65000;
	before = cluster_digest(f.cluster);
	CHECK(gang_plan(f.planner, &spec, &f.result, &err) == 0);
	CHECK(!f.result.placed);
	CHECK(f.result.reason[0]);
	CHECK(cluster_digest(f.cluster) == before);
}

TEST(shares_fill_cards_of_the_fewest_nodes)
{
	FABRIC(f, 1, 2, 2);
	request_init(&f.request);
	request_add_ask(&f.request, ASK_SHARE, 1)->core_milli = 500;
	PLACED(&f, 16);
	CHECK_INT(f.result.nodes_count, 1);
	PLACED(&f, 17);
	CHECK_INT(f.result.nodes_count, 2);
	CHECK_INT(f.result.leaves_count, 1);
	PLACED(&f, 64);
	REFUSED(&f, 64, .level = 2, .level_mode = GANG_REQUIRED);
	CHECK(strstr(f.result.reason, "50% of a GPU") != NULL);
}

TEST(members_without_gpus_are_placed_too)
{
	FABRIC(f, 1, 2, 2);
	request_init(&f.request);
	f.request.needs.cpu_milli = 16000;
	PLACED(&f, 8);
	CHECK_INT(f.result.nodes_count, 2);
	CHECK_INT(f.result.leaves_count, 1);
	PLACED(&f, 16);
	REFUSED(&f, 17);
}

TEST(rollback_restores_and_commit_keeps)
{
	FABRIC(f, 2, 4, 4);
	uint64_t before = cluster_digest(f.cluster);
	PLACED(&f, 8);
	CHECK(cluster_digest(f.cluster) != before);
	rollback(&f);
	CHECK(cluster_digest(f.cluster) == before);
	PLACED(&f, 8);
	commit(&f);
	CHECK_INT(cluster_pods_count(f.cluster), 8);
	CHECK(cluster_check(f.cluster) == NULL);
}

TEST(a_gang_that_is_placed_already_is_an_error)
{
	FABRIC(f, 1, 2, 2);
	struct gang_class class = { &f.request, f.pods, 2 };
	struct gang_spec spec = { .classes = &class, .classes_count = 1 };
	struct gang_spec none = { 0 };
	struct err err = ERR_INIT;

	PLACED(&f, 2);
	commit(&f);
	CHECK(gang_plan(f.planner, &spec, &f.result, &err) == -EEXIST);
	CHECK_STR(err.text, "gang member member-0 is placed already");
	CHECK(gang_plan(f.planner, &none, &f.result, &err) == -EINVAL);
}

TEST_MAIN()
