/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_fixture.h"

#include <errno.h>

#include "engine/cluster_private.h"
#include "engine/index.h"
#include "engine/pick.h"
#include "engine/policy/policy.h"

static uint32_t node_in(struct engine *e, const char *name, const char *leaf, uint32_t gpus)
{
	struct box b = BOX(name, gpus);

	b.path[0] = leaf;
	return box_add(e, &b);
}

static struct request strategy(struct request r, enum strategy s)
{
	r.strategy = (uint8_t)s;
	return r;
}

static struct index_stats stats(const struct engine *e)
{
	struct index_stats s;

	index_stats(engine_index(e), &s);
	return s;
}

TEST(an_empty_cluster_has_no_node_to_miss)
{
	struct engine *e = fleet_new();

	CHECK_STR(choice(e, whole(1)), "node-gone");
	cluster_node_remove(engine_cluster(e), box_add(e, &(struct box)BOX("a", 1)));
	CHECK_STR(choice(e, whole(1)), "node-gone");
	engine_free(e);
}

TEST(equals_go_by_name_whatever_came_first)
{
	static const char *const orders[][3] = {
		{ "a", "b", "c" }, { "c", "a", "b" }, { "b", "c", "a" }, { "c", "b", "a" }
	};

	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		struct engine *e = fleet_new();

		for (int j = 0; j < 3; j++)
			box_add(e, &(struct box)BOX(orders[i][j], 2));
		CHECK_STR(choice(e, whole(2)), "a");
		put(e, "1", cluster_node_find(engine_cluster(e), "a"), whole(1));
		CHECK_STR(choice(e, whole(2)), "b");
		cluster_node_remove(engine_cluster(e), cluster_node_find(engine_cluster(e), "b"));
		CHECK_STR(choice(e, whole(2)), "c");
		box_add(e, &(struct box)BOX("b", 2));
		CHECK_STR(choice(e, whole(2)), "b");
		engine_free(e);
	}
}

TEST(when_nothing_fits_the_nearest_miss_is_told)
{
	struct engine *e = fleet_new();
	struct box cordoned = BOX("cordoned", 4);
	uint32_t full;

	cordoned.spec.unschedulable = true;
	box_add(e, &cordoned);
	CHECK_STR(choice(e, whole(2)), "unschedulable");
	box_add(e, &(struct box)BOX("plain", 0));
	CHECK_STR(choice(e, whole(2)), "no-gpu");
	CHECK_STR(choice(e, with_cpu(whole(2), 100000)), "no-cpu");
	full = box_add(e, &(struct box)BOX("full", 2));
	put(e, "1", full, whole(1));
	CHECK_STR(choice(e, whole(2)), "no-free-gpu");
	CHECK_STR(choice(e, whole(3)), "no-gpu");
	cluster_node_remove(engine_cluster(e), full);
	CHECK_STR(choice(e, whole(2)), "no-gpu");
	engine_free(e);
}

TEST(a_pinned_request_goes_there_or_says_why_not)
{
	struct engine *e = fleet_new();
	struct box cordoned = BOX("cordoned", 4);
	struct request r = whole(1);
	uint32_t a = box_add(e, &(struct box)BOX("a", 1));

	box_add(e, &(struct box)BOX("b", 1));
	r.node = cluster_node_find(engine_cluster(e), "b");
	CHECK_STR(choice(e, r), "b");
	put(e, "1", r.node, whole(1));
	CHECK_STR(choice(e, r), "no-free-gpu");
	cordoned.spec.unschedulable = true;
	r.node = box_add(e, &cordoned);
	CHECK_STR(choice(e, r), "unschedulable");
	cluster_node_remove(engine_cluster(e), r.node);
	CHECK_STR(choice(e, r), "node-gone");
	r.node = 1000;
	CHECK_STR(choice(e, r), "node-gone");
	r.node = a;
	CHECK_STR(choice(e, r), "a");
	CHECK_INT(stats(e).classes, 0);
	engine_free(e);
}

TEST(labels_and_domains_are_followed_when_they_change)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct label ssd = { cluster_intern(c, "disk"), cluster_intern(c, "ssd") };
	struct box a = BOX("a", 1), b = BOX("b", 1);
	struct request labelled = whole(1), below = whole(1);
	uint32_t na, nb;

	a.path[0] = "x";
	b.path[0] = "y";
	b.label = ssd;
	na = box_add(e, &a);
	nb = box_add(e, &b);
	labelled.selector[labelled.selector_count++] = ssd;
	below.domain = cluster_domain_named(c, "y");
	CHECK_STR(choice(e, labelled), "b");
	CHECK_STR(choice(e, below), "b");
	a.label = ssd;
	a.path[0] = "y";
	box_change(e, na, &a);
	CHECK_STR(choice(e, labelled), "a");
	CHECK_STR(choice(e, below), "a");
	a.label.key = 0;
	box_change(e, na, &a);
	CHECK_STR(choice(e, labelled), "b");
	cluster_node_remove(c, nb);
	CHECK_STR(choice(e, labelled), "wrong-labels");
	a.path[0] = "x";
	box_change(e, na, &a);
	CHECK_STR(choice(e, below), "wrong-domain");
	engine_free(e);
}

/* Both nodes have half a card free, or a card with a tenant; only one may be shared. */
TEST(nodes_are_told_apart_by_groups_and_by_tenants)
{
	struct engine *e = engine_with((struct engine_config){ .cluster.seats = 2 });
	uint32_t a = box_add(e, &(struct box)BOX("a", 1)),
		 b = box_add(e, &(struct box)BOX("b", 1));
	uint64_t before = cluster_digest(engine_cluster(e));
	struct request grouped = share(500, 0);
	uint32_t pods[3];

	grouped.asks[0].group = cluster_group(engine_cluster(e), 1);
	pods[0] = put(e, "1", a, grouped);
	pods[1] = put(e, "2", b, share(500, 0));
	CHECK_STR(choice(e, share(500, 0)), "b");
	CHECK_STR(choice(e, grouped), "a");
	engine_remove(e, pods[0]);
	engine_remove(e, pods[1]);
	CHECK(cluster_digest(engine_cluster(e)) == before);
	pods[0] = put(e, "1", a, share(0, 0));
	pods[1] = put(e, "2", a, share(0, 0));
	pods[2] = put(e, "3", b, share(0, 0));
	put(e, "4", b, cpu(0)); /* as many pods as on a */
	CHECK_STR(choice(e, share(0, 0)), "b");
	engine_free(e);
}

/* The lower name would win if both were taken for one state. */
TEST(nodes_are_told_apart_by_network_and_by_taints)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct box slow = BOX("a", 1), fast = BOX("b", 1), mine = BOX("c", 1);
	struct request r = whole(1);

	slow.spec.network_gbps = 100;
	fast.spec.network_gbps = 400;
	slow.taint = fast.taint = mine.taint = (struct taint){
		.key = cluster_intern(c, "team"),
		.value = cluster_intern(c, "other"),
		.effect = EFFECT_NO_SCHEDULE,
	};
	mine.spec.network_gbps = 400;
	mine.taint.value = cluster_intern(c, "mine");
	box_add(e, &slow);
	box_add(e, &fast);
	box_add(e, &mine);
	r.tolerations[r.tolerations_count++] = (struct toleration){ .op = TOLERATE_EXISTS };
	r.min_network_gbps = 200;
	CHECK_STR(choice(e, r), "b");
	r.tolerations[0] = (struct toleration){ .key = mine.taint.key, .value = mine.taint.value };
	CHECK_STR(choice(e, r), "c");
	engine_free(e);
}

TEST(an_adapter_that_is_preferred_decides_and_excludes_nobody)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct box plain = BOX("a", 2), one = BOX("b", 2), other = BOX("c", 2);
	struct request r = whole(1);

	one.spec.hcas = UINT64_C(1) << cluster_hca(c, "mlx5_0");
	other.spec.hcas = UINT64_C(1) << cluster_hca(c, "mlx5_1");
	box_add(e, &plain);
	box_add(e, &one);
	box_add(e, &other);
	CHECK_STR(choice(e, r), "a");
	r.prefer_hcas = UINT64_C(1) << cluster_hca_find(c, "mlx5_1");
	CHECK_STR(choice(e, r), "c");
	r.prefer_hcas |= UINT64_C(1) << cluster_hca_find(c, "mlx5_0");
	CHECK_STR(choice(e, r), "b");
	put(e, "first", cluster_node_find(c, "b"), whole(2));
	CHECK_STR(choice(e, r), "c");
	put(e, "second", cluster_node_find(c, "c"), whole(2));
	CHECK_STR(choice(e, r), "a");
	engine_free(e);
}

TEST(adapters_beyond_the_last_number_cannot_be_preferred)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	char name[16];

	for (unsigned i = 0; i < HCA_MAX + 2; i++) {
		snprintf(name, sizeof(name), "hca%u", i);
		CHECK_INT(cluster_hca(c, name), i < HCA_MAX ? i : UINT8_MAX);
	}
	CHECK_INT(cluster_hca_find(c, "hca7"), 7);
	CHECK_INT(cluster_hca_find(c, "hca65"), UINT8_MAX);
	engine_free(e);
}

TEST(nodes_are_told_apart_by_their_media_extensions)
{
	struct engine *e = fleet_new();
	struct fleet_node n = { .gpus = 1, .mig = mig_geometry_find("a100-40gb") };
	uint32_t a = fleet_node(e, "a", n), b = fleet_node(e, "b", n);

	put(e, "media", a, slice("1g.5gb+me"));
	put(e, "plain", b, slice("1g.5gb"));
	CHECK_INT(cluster_node(engine_cluster(e), a)->gpus[0].mig.used,
		  cluster_node(engine_cluster(e), b)->gpus[0].mig.used);
	CHECK_STR(choice(e, slice("1g.5gb+me")), "b");
	engine_free(e);
}

TEST(a_node_that_moves_leaves_nothing_behind_in_its_leaf)
{
	struct engine *e = fleet_new();
	struct box b = BOX("b", 1);
	struct request r = whole(1);
	uint32_t node;

	b.path[0] = "x";
	node = box_add(e, &b);
	node_in(e, "a", "y", 1);
	r.prefer_domain = cluster_domain_named(engine_cluster(e), "x");
	CHECK_STR(choice(e, r), "b");
	b.path[0] = "y";
	box_change(e, node, &b);
	CHECK_STR(choice(e, r), "a");
	cluster_node_remove(engine_cluster(e), node);
	CHECK_STR(choice(e, r), "a");
	engine_free(e);
}

/* 40 nodes are two blocks; each step changes one of them. */
TEST(the_answer_stays_right_while_nodes_fill_empty_fail_and_go)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	const struct request asks[] = { whole(1), whole(4), share(300, 2000), cpu(9000) };
	char name[24], uid[24];

	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "node-%02u", i);
		node_in(e, name, i % 3 ? "leaf-1" : "leaf-2", i % 5 ? 4 : 8);
	}
	for (unsigned i = 0; i < 300; i++) {
		struct request r = asks[i % ARRAY_SIZE(asks)];
		struct decision d;
		uint32_t pod;

		engine_arrived(e, &r); /* epochs begin on the way */
		choice(e, r);
		snprintf(uid, sizeof(uid), "pod-%u", i);
		if (engine_decide(e, &r, &d) == FITS)
			CHECK(engine_place(e, &(struct pod_spec){ .uid = uid }, &r, &d, &pod) ==
			      0);
		snprintf(uid, sizeof(uid), "pod-%u", i * 7 % 300);
		pod = cluster_pod_find(c, uid);
		if (i % 3 == 0 && pod != POD_NONE)
			engine_remove(e, pod);
		if (i % 11 == 0)
			cluster_gpu_health(c, i % 40, (uint8_t)(i % 4), i % 2);
		if (i == 150)
			cluster_node_remove(c, 17);
		for (size_t j = 0; j < ARRAY_SIZE(asks); j++)
			choice(e, asks[j]);
	}
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_class_that_missed_more_changes_than_the_log_holds_starts_afresh)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 2)),
		 b = box_add(e, &(struct box)BOX("b", 2));
	uint64_t before;

	CHECK_STR(choice(e, whole(2)), "a");
	put(e, "1", a, whole(1));
	before = stats(e).rebuilds;
	CHECK_STR(choice(e, whole(2)), "b");
	CHECK_INT(stats(e).rebuilds, before);
	/* The change of b is the oldest entry; then the log goes round. */
	cluster_gpu_health(c, b, 0, false);
	for (uint64_t head = c->log_head; c->log_head <= head + LOG_SIZE;)
		cluster_gpu_health(c, a, 0, !cluster_node(c, a)->gpus[0].healthy);
	CHECK_STR(choice(e, whole(2)), "no-free-gpu");
	CHECK_INT(stats(e).rebuilds, before + 1);
	engine_free(e);
}

TEST(classes_beyond_the_memory_go_and_come_back)
{
	struct engine *e = engine_with((struct engine_config){ .index_bytes = 1 });

	for (unsigned i = 0; i < 8; i++) {
		char name[24];

		snprintf(name, sizeof(name), "node-%u", i);
		box_add(e, &(struct box)BOX(name, i));
	}
	for (int round = 0; round < 2; round++)
		for (uint8_t i = 1; i < 8; i++) {
			char name[24];

			snprintf(name, sizeof(name), "node-%u", i);
			engine_decide(e, &(struct request){ .node = 0 }, &(struct decision){ 0 });
			CHECK_STR(choice(e, of_model(e, whole(i), "model")), choice(e, whole(i)));
			CHECK_INT(stats(e).classes, 1);
		}
	CHECK_INT(stats(e).evictions, 27);
	CHECK(stats(e).bytes > 0);
	engine_free(e);
}

TEST(what_was_asked_longest_ago_goes_first)
{
	struct engine *e = fleet_new();
	struct engine *small;
	uint64_t one;

	box_add(e, &(struct box)BOX("a", 4));
	choice(e, whole(1));
	one = stats(e).bytes;
	engine_free(e);
	small = engine_with((struct engine_config){ .index_bytes = one * 5 / 2 });
	box_add(small, &(struct box)BOX("a", 4));
	choice(small, whole(1));
	choice(small, whole(2));
	choice(small, whole(1));
	choice(small, whole(3)); /* whole(2) goes */
	CHECK_INT(stats(small).evictions, 1);
	CHECK_INT(stats(small).rebuilds, 3);
	choice(small, whole(1));
	CHECK_INT(stats(small).rebuilds, 3);
	choice(small, whole(2));
	CHECK_INT(stats(small).rebuilds, 4);
	engine_free(small);
}

/* Leaf a is empty, b is half full, c three quarters; the mean is 5/12.  Whatever fits, fits
 * on nodes that are in the same state. */
static struct engine *three_leaves(struct weights weights)
{
	static const struct {
		const char *leaf;
		int full;
	} leaves[] = { { "leaf-a", 0 }, { "leaf-b", 2 }, { "leaf-c", 3 } };
	struct engine *e = engine_with((struct engine_config){ .weights = weights });

	for (size_t i = 0; i < ARRAY_SIZE(leaves); i++)
		for (int j = 0; j < 4; j++) {
			char name[24];
			uint32_t node;

			snprintf(name, sizeof(name), "%s-%d", leaves[i].leaf, j);
			node = node_in(e, name, leaves[i].leaf, 2);
			if (j < leaves[i].full)
				put(e, name, node, whole(2));
		}
	return e;
}

TEST(strategies_choose_the_full_the_empty_or_the_mean_leaf)
{
	static const struct weights all[] = { WEIGHTS_DEFAULT, { 0, 0, 1, 0 }, { 5, 0, 1, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct engine *e = three_leaves(all[i]);

		CHECK_STR(choice(e, strategy(whole(1), STRATEGY_CONSOLIDATED)), "leaf-c-3");
		CHECK_STR(choice(e, strategy(whole(1), STRATEGY_DISTRIBUTED)), "leaf-a-0");
		CHECK_STR(choice(e, strategy(whole(1), STRATEGY_BALANCED)), "leaf-b-2");
		engine_free(e);
	}
}

TEST(a_preferred_domain_is_worth_more_than_how_full_it_is)
{
	struct engine *e = three_leaves((struct weights)WEIGHTS_DEFAULT);
	struct cluster *c = engine_cluster(e);
	struct request r = whole(1);

	r.prefer_domain = cluster_domain_named(c, "leaf-a");
	CHECK_STR(choice(e, r), "leaf-a-0");
	r.strategy = STRATEGY_DISTRIBUTED;
	r.prefer_domain = cluster_domain_named(c, "leaf-c");
	CHECK_STR(choice(e, r), "leaf-c-3");
	/* It is a wish: what does not fit there goes elsewhere. */
	put(e, "last", cluster_node_find(c, "leaf-c-3"), whole(2));
	CHECK_STR(choice(e, r), "leaf-a-0");
	engine_free(e);
}

TEST(the_index_hears_of_leaves_that_filled_up_elsewhere)
{
	struct engine *e = three_leaves((struct weights)WEIGHTS_DEFAULT);
	struct cluster *c = engine_cluster(e);

	CHECK_STR(choice(e, whole(1)), "leaf-c-3");
	CHECK_STR(choice(e, strategy(whole(1), STRATEGY_BALANCED)), "leaf-b-2");
	for (int i = 0; i < 3; i++)
		cluster_pod_remove(c, cluster_pod_find(c, (const char *[]){ "leaf-c-0", "leaf-c-1",
									    "leaf-c-2" }[i]));
	CHECK_STR(choice(e, whole(1)), "leaf-b-2");
	/* The mean has moved: balanced depends on the root. */
	CHECK_STR(choice(e, strategy(whole(1), STRATEGY_BALANCED)), "leaf-a-0");
	engine_free(e);
}

TEST(the_best_of_many_leaves_is_found_again_when_it_falls)
{
	struct engine *e = engine_with((struct engine_config){ .weights = { 0, 0, 0, 1 } });
	char name[24], leaf[24];

	for (unsigned i = 0; i < 11; i++) {
		snprintf(name, sizeof(name), "node-%02u", i);
		snprintf(leaf, sizeof(leaf), "leaf-%u", i);
		node_in(e, name, leaf, 1);
	}
	for (unsigned i = 0; i < 11; i++) {
		snprintf(name, sizeof(name), "node-%02u", i);
		CHECK_STR(choice(e, whole(1)), name);
		put(e, name, cluster_node_find(engine_cluster(e), name), whole(1));
	}
	CHECK_STR(choice(e, whole(1)), "no-free-gpu");
	for (unsigned i = 11; i--;) {
		snprintf(name, sizeof(name), "node-%02u", i);
		engine_remove(e, cluster_pod_find(engine_cluster(e), name));
		CHECK_STR(choice(e, whole(1)), name);
	}
	/* It may fall and still fit. */
	for (unsigned i = 0; i < 11; i++) {
		struct box b = BOX(name, 1);

		snprintf(leaf, sizeof(leaf), "leaf-%u", i);
		snprintf(name, sizeof(name), "node-%02u", i);
		CHECK_STR(choice(e, whole(1)), name);
		b.path[0] = leaf;
		b.spec.performance_milli = (uint16_t)(900 - i);
		box_change(e, cluster_node_find(engine_cluster(e), name), &b);
	}
	CHECK_STR(choice(e, whole(1)), "node-00");
	engine_free(e);
}

TEST(a_refusal_stays_one_in_the_best_of_domains)
{
	struct engine *e = engine_with((struct engine_config){ .weights = { 0, 1, 1, 0 } });
	struct box b = BOX("a", 1);
	struct request r = whole(1);

	b.path[0] = "x";
	b.taint = (struct taint){ .key = cluster_intern(engine_cluster(e), "k"),
				  .effect = EFFECT_NO_SCHEDULE };
	box_add(e, &b);
	node_in(e, "b", "y", 1);
	r.prefer_domain = cluster_domain_named(engine_cluster(e), "x");
	CHECK_STR(choice(e, r), "b");
	engine_free(e);
}

/* Nodes that come between a and b use up the gap between their ranks. */
TEST(ties_go_by_name_after_all_ranks_were_given_anew)
{
	struct engine *e = fleet_new();
	uint32_t y1 = node_in(e, "y1", "leaf-1", 1);
	char name[24];

	node_in(e, "y2", "leaf-2", 1);
	node_in(e, "a", "leaf-3", 0);
	node_in(e, "b-99", "leaf-4", 0);
	CHECK_STR(choice(e, whole(1)), "y1");
	for (unsigned i = 50; i--;) {
		snprintf(name, sizeof(name), "b-%02u", i);
		node_in(e, name, i % 2 ? "leaf-3" : "leaf-4", 0);
	}
	/* y1 is looked at again, and y2 is not. */
	cluster_gpu_health(engine_cluster(e), y1, 0, false);
	cluster_gpu_health(engine_cluster(e), y1, 0, true);
	CHECK_STR(choice(e, whole(1)), "y1");
	engine_free(e);
}

/* Each new node stands right behind the first, which cannot be used, and before all others:
 * so the order of the known ones is needed while new ranks are given. */
TEST(ranks_that_are_given_anew_reach_the_index)
{
	struct engine *e = fleet_new();
	char name[64] = "ab";

	fleet_node(e, "a", (struct fleet_node){ .unschedulable = true });
	for (int i = 0; i < 40; i++) {
		fleet_node(e, name, (struct fleet_node){ .gpus = 1 });
		CHECK_STR(choice(e, whole(1)), name);
		memmove(name + 1, name, strlen(name) + 1);
	}
	engine_free(e);
}

TEST(a_weight_of_zero_takes_the_part_out)
{
	static const struct {
		struct weights weights;
		const char *choice;
	} rows[] = {
		{ { 0, 0, 0, 1 }, "b-fast" }, { { 0, 0, 0, 0 }, "b-fast" },
		{ { 4, 3, 2, 0 }, "a-slow" }, { { 0, 1, 0, 0 }, "a-slow" },
		{ { 0, 0, 1, 0 }, "a-slow" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct engine *e =
			engine_with((struct engine_config){ .weights = rows[i].weights });
		struct box slow = BOX("a-slow", 1), fast = BOX("b-fast", 1);

		slow.spec.performance_milli = 900;
		box_add(e, &slow);
		box_add(e, &fast);
		CHECKF(!strcmp(choice(e, whole(1)), rows[i].choice), "row %zu", i);
		engine_free(e);
	}
}

TEST(only_the_proportions_of_weights_count)
{
	static const struct weights alike[] = {
		{ 0, 0, 0, 0 }, { 4, 3, 2, 1 }, { 4000000000, 3000000000, 2000000000, 1000000000 }
	};
	struct decision first = { 0 }, d;

	for (size_t i = 0; i < ARRAY_SIZE(alike); i++) {
		struct engine *e = three_leaves(alike[i]);
		struct request r = whole(1);

		CHECK_VERDICT(engine_decide(e, &r, &d), FITS);
		first = i ? first : d;
		CHECK_INT(d.score, first.score);
		engine_free(e);
	}
}

TEST(an_engine_takes_other_weights_and_keeps_its_pods)
{
	struct engine *e = fleet_new();
	struct engine_config config = *engine_config(e);
	struct box slow = BOX("a-slow", 4), fast = BOX("b-fast", 4);
	uint32_t pod;

	slow.spec.performance_milli = 900;
	box_add(e, &slow);
	box_add(e, &fast);
	pod = put(e, "there", cluster_node_find(engine_cluster(e), "a-slow"), whole(1));
	config.weights = (struct weights){ 0, 0, 0, 1 };
	CHECK_STR(choice(e, whole(1)), "a-slow");
	CHECK(engine_configure(e, &config) == 0);
	CHECK_STR(choice(e, whole(1)), "b-fast");
	CHECK_STR(cluster_pod(engine_cluster(e), pod)->uid, "there");
	CHECK_INT(engine_config(e)->weights.performance, 1000);
	config.weights = (struct weights){ 1, 0, 0, 0 };
	config.policy = &policy_spread;
	CHECK(engine_configure(e, &config) == 0);
	CHECK_STR(choice(e, whole(1)), "b-fast");
	config.policy = &policy_binpack;
	config.max_nodes_per_leaf = 3;
	config.max_gpus_per_leaf = 24;
	CHECK(engine_configure(e, &config) == 0);
	CHECK_STR(choice(e, whole(1)), "a-slow");
	CHECK_INT(engine_config(e)->max_nodes_per_leaf, 3);
	CHECK_INT(engine_config(e)->max_gpus_per_leaf, 24);
	engine_free(e);
}

TEST(a_policy_that_must_know_all_from_the_beginning_cannot_come_later)
{
	struct engine *e = fleet_new();
	struct engine_config config = { .policy = &policy_fgd };

	CHECK_INT(engine_configure(e, &config), -EINVAL);
	CHECK(engine_config(e)->policy == &policy_default);
	engine_free(e);
	e = engine_with((struct engine_config){ .policy = &policy_random });
	config.policy = &policy_random;
	CHECK_INT(engine_configure(e, &config), 0);
	engine_free(e);
}

TEST(seats_can_be_more_or_less_from_now_on)
{
	struct engine *e = engine_with((struct engine_config){ .cluster = { .seats = 2 } });
	struct engine_config config = *engine_config(e);
	struct box b = BOX("a", 1);
	struct request seat;
	uint32_t node = box_add(e, &b);

	request_init(&seat);
	request_add_ask(&seat, ASK_SHARE, 1);
	put(e, "one", node, seat);
	put(e, "two", node, seat);
	CHECK_VERDICT(verdict_on(e, seat, node), NO_SHARED_SEAT);
	config.cluster.seats = 3;
	CHECK(engine_configure(e, &config) == 0);
	CHECK_VERDICT(verdict_on(e, seat, node), FITS);
	config.cluster.seats = 1;
	CHECK(engine_configure(e, &config) == 0);
	CHECK_VERDICT(verdict_on(e, seat, node), NO_SHARED_SEAT);
	CHECK_INT(cluster_pods_count(engine_cluster(e)), 2);
	engine_free(e);
}

TEST(a_score_is_the_weighted_sum_of_its_parts)
{
	struct engine *e = three_leaves((struct weights)WEIGHTS_DEFAULT);
	uint32_t node = cluster_node_find(engine_cluster(e), "leaf-c-3");
	struct request r = whole(1);
	struct decision d;
	struct parts p;

	CHECK_VERDICT(engine_score(e, &r, node, &d, &p), FITS);
	CHECK_INT(p.alignment, PART_MAX);
	CHECK_INT(p.performance, PART_MAX);
	CHECK_INT(p.utilization, PART_MAX / 4 * 3);
	CHECK_INT(p.price, 0);
	CHECK(p.availability > 0 && p.availability <= PART_MAX);
	CHECK_INT(d.score, (int64_t)(p.availability + (int64_t)PRICE_MAX) * 400 / 1000 +
				   PART_MAX / 10 * 3 + p.utilization / 10 * 2 + PART_MAX / 10);
	r.asks[0].count = 3;
	CHECK_VERDICT(engine_score(e, &r, node, &d, &p), NO_GPU);
	engine_free(e);
}

TEST(alignment_is_measured_against_the_best_of_the_machine)
{
	struct engine *e = engine_with((struct engine_config){ .weights = { 0, 1, 0, 0 } });
	static const uint16_t gbps[9] = { 0, 50, 200, 50, 0, 100, 200, 100, 0 };
	struct links *links;
	struct box a = BOX("a", 3), b = BOX("b", 3);
	struct request r = whole(2);
	struct decision d;
	struct parts p;
	uint32_t na;

	r.asks[0].policy = PICK_BANDWIDTH;
	CHECK(links_new(&(struct links_input){ .count = 3, .gbps = gbps }, &links, NULL) == 0);
	a.spec.links = b.spec.links = links;
	na = box_add(e, &a);
	box_add(e, &b);
	CHECK_STR(choice(e, r), "a");
	put(e, "1", na, on_gpus(whole(1), 1));
	CHECK_VERDICT(engine_score(e, &r, na, &d, &p), FITS);
	CHECK_INT(p.alignment, PART_MAX / 2);
	CHECK_STR(choice(e, r), "b");
	r = whole(1);
	CHECK_VERDICT(engine_score(e, &r, na, &d, &p), FITS);
	CHECK_INT(p.alignment, PART_MAX);
	engine_free(e);
	links_free(links);
}

TEST(a_model_that_nobody_has_seen_is_learned_before_it_is_used)
{
	struct engine *e = fleet_new();
	struct request r = whole(1);
	struct parts known, unknown;
	struct decision d;
	uint32_t node;

	fleet_node(e, "a", (struct fleet_node){ .gpus = 4, .model = "old" });
	CHECK(engine_decide(e, &r, &d) == FITS);
	node = fleet_node(e, "b", (struct fleet_node){ .gpus = 4, .model = "new" });
	CHECK(engine_score(e, &r, cluster_node_find(engine_cluster(e), "a"), &d, &known) == FITS);
	CHECK(engine_score(e, &r, node, &d, &unknown) == FITS);
	/* Its GPUs are worth as much as those of the model that was there. */
	CHECK_INT(unknown.availability, known.availability);
	CHECK(known.availability < PART_MAX);
	engine_free(e);
}

TEST(a_domain_of_many_nodes_is_heard_of_without_a_word_for_each)
{
	struct engine *e = fleet_new();
	struct request r = strategy(whole(1), STRATEGY_DISTRIBUTED);
	uint64_t entries;
	char name[16];

	for (uint32_t i = 0; i <= LOGGED_NODES; i++) {
		snprintf(name, sizeof(name), "many-%04u", i);
		node_in(e, name, "many", 1);
	}
	node_in(e, "few-0", "few", 2);
	node_in(e, "few-1", "few", 2);
	put(e, "in few", cluster_node_find(engine_cluster(e), "few-0"), whole(1));
	/* The many are the emptier: until a quarter of them is taken too. */
	CHECK_STR(choice(e, r), "many-0000");
	entries = engine_cluster(e)->log_head;
	for (uint32_t i = 0; i <= LOGGED_NODES / 2; i++) {
		snprintf(name, sizeof(name), "many-%04u", LOGGED_NODES - i);
		put(e, name, cluster_node_find(engine_cluster(e), name), whole(1));
	}
	CHECK_INT(engine_cluster(e)->log_head - entries, LOGGED_NODES / 2 + 1);
	CHECK_STR(choice(e, r), "few-0");
	engine_free(e);
}

TEST_MAIN()
