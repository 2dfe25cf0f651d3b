/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_fixture.h"

#include "engine/mig.h"

static uint32_t node_in(struct engine *e, const char *name, const char *spine, const char *leaf,
			uint32_t gpus)
{
	struct box b = BOX(name, gpus);

	b.path[0] = spine;
	b.path[1] = leaf;
	return box_add(e, &b);
}

static const struct domain *named(struct engine *e, const char *name)
{
	uint32_t domain = cluster_domain_named(engine_cluster(e), name);

	CHECKF(domain != DOMAIN_NONE, "%s", name);
	return cluster_domain(engine_cluster(e), domain);
}

TEST(domains_stand_in_natural_order_however_they_come)
{
	static const char *const ordered[] = {
		"leaf",	  "leaf-01", "leaf-1",	  "leaf-1a",	"leaf-02b",
		"leaf-3", "leaf-10", "leaf-10-2", "leaf-10-11", "leaf-18446744073709551616",
		"leaf-a", "leaf-a0", "leaf-a00",  "leaf-b",
	};
	enum { COUNT = ARRAY_SIZE(ordered) };

	/* Strides that reach all of them: forwards, backwards, and mixed. */
	for (uint32_t stride = 1; stride < COUNT; stride += 2) {
		struct engine *e = fleet_new();
		const struct cluster *c = engine_cluster(e);
		uint32_t at, position = 0;

		if (stride == 7) {
			engine_free(e);
			continue; /* divides their number */
		}
		for (uint32_t i = 0; i < COUNT; i++) {
			const char *leaf = ordered[i * stride % COUNT];

			node_in(e, leaf, "spine", leaf, 0);
		}
		at = named(e, "spine")->first_child;
		for (; at != DOMAIN_NONE; at = cluster_domain(c, at)->next_sibling) {
			CHECK_STR(cluster_domain(c, at)->name, ordered[position]);
			CHECK_INT(cluster_domain(c, at)->position, position);
			position++;
		}
		CHECK_INT(position, COUNT);
		CHECK_STR(cluster_domain(c, named(e, "spine")->last_child)->name, "leaf-b");
		engine_free(e);
	}
}

TEST(domains_are_found_by_path_and_by_a_name_that_is_the_only_one)
{
	struct engine *e = fleet_new();
	const struct cluster *c = engine_cluster(e);
	uint32_t a = node_in(e, "a", "s1", "leaf", 1), b = node_in(e, "b", "s2", "leaf", 1);
	uint32_t s1 = cluster_domain_find(c, (const char *[]){ "s1" }, 1);
	uint32_t leaf = cluster_domain_find(c, (const char *[]){ "s1", "leaf" }, 2);

	node_in(e, "c", "s1", "own", 1);
	CHECK_INT(cluster_node(c, a)->domain, leaf);
	CHECK(cluster_node(c, b)->domain != leaf);
	CHECK_INT(cluster_domain_find(c, NULL, 0), 0);
	CHECK_INT(cluster_domain_find(c, (const char *[]){ "leaf" }, 1), DOMAIN_NONE);
	CHECK_INT(cluster_domain_find(c, (const char *[]){ "s1", "none" }, 2), DOMAIN_NONE);
	CHECK_INT(cluster_domain_named(c, "s1"), s1);
	CHECK_INT(cluster_domain_named(c, "leaf"), DOMAIN_NONE);
	CHECK_INT(cluster_domain_named(c, "none"), DOMAIN_NONE);
	CHECK_INT(named(e, "own")->level, 2);
	CHECK_INT(named(e, "own")->parent, s1);
	CHECK(cluster_below(c, leaf, s1));
	CHECK(cluster_below(c, leaf, leaf));
	CHECK(cluster_below(c, leaf, 0));
	CHECK(!cluster_below(c, s1, leaf));
	CHECK(!cluster_below(c, cluster_node(c, b)->domain, s1));
	engine_free(e);
}

TEST(nodes_are_counted_by_idle_gpus_at_every_level)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = node_in(e, "a", "s", "l1", 4), pod;
	struct box cordoned = BOX("cordoned", 4), sliced = BOX("sliced", 4);

	node_in(e, "b", "s", "l1", 2);
	node_in(e, "c", "s", "l2", 0);
	cordoned.spec.unschedulable = true;
	cordoned.path[0] = "s";
	box_add(e, &cordoned);
	sliced.spec.mig = &mig_a100_40gb;
	sliced.gpus[0].mig_mode = 1;
	sliced.gpus[1].unhealthy = 1;
	box_add(e, &sliced);
	pod = put(e, "pod", a, share(0, 100));
	CHECK_INT(named(e, "l1")->nodes_by_idle[3], 1);
	CHECK_INT(named(e, "l1")->nodes_by_idle[2], 1);
	CHECK_INT(named(e, "l1")->nodes_by_idle[4], 0);
	CHECK_INT(named(e, "s")->nodes, 4);
	CHECK_INT(named(e, "s")->gpus, 10);
	CHECK_INT(named(e, "s")->total_milli, 10000);
	CHECK_INT(named(e, "s")->free_milli, 10000);
	CHECK_INT(cluster_domain(c, 0)->nodes_by_idle[2], 2);
	CHECK_INT(cluster_domain(c, 0)->total_milli, 13000);
	CHECK_INT(cluster_nodes_with(c, 0, 0), 4);
	CHECK_INT(cluster_nodes_with(c, 0, 2), 3);
	CHECK_INT(cluster_nodes_with(c, 0, 4), 0);
	CHECK_INT(cluster_nodes_with(c, 0, GPU_MAX + 1), 0);
	engine_remove(e, pod);
	CHECK_INT(cluster_nodes_with(c, cluster_domain_named(c, "l1"), 4), 1);
	cluster_node_remove(c, a);
	CHECK_INT(cluster_nodes_with(c, 0, 3), 0);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(utilisation_goes_in_sixteenths_rounded_down)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = node_in(e, "a", "s", "l1", 8), pod;
	static const struct {
		uint16_t core_milli;
		uint32_t leaf, spine;
	} steps[] = { { 499, 0, 0 }, { 1, 1, 0 }, { 500, 2, 1 }, { 999, 3, 1 }, { 1, 4, 2 } };

	node_in(e, "b", "s", "l2", 8);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		char uid[24];

		snprintf(uid, sizeof(uid), "%zu", i);
		put(e, uid, a, on_gpus(share(steps[i].core_milli, 0), i < 3 ? 1 : 2));
		CHECK_INT(named(e, "l1")->step, steps[i].leaf);
		CHECK_INT(named(e, "s")->step, steps[i].spine);
	}
	pod = put(e, "all", a, whole(6));
	CHECK_INT(named(e, "l1")->step, 16);
	CHECK_INT(named(e, "l2")->step, 0);
	engine_remove(e, pod);
	CHECK_INT(named(e, "l1")->step, 4);
	/* Cards that fail are no room, and a leaf without any room is not full. */
	for (uint8_t i = 2; i < 8; i++)
		cluster_gpu_health(c, a, i, false);
	CHECK_INT(named(e, "l1")->step, 16);
	cluster_node_remove(c, a);
	CHECK_INT(named(e, "l1")->step, 0);
	/* A leaf grows fuller when an idle node leaves it. */
	put(e, "b", cluster_node_find(c, "b"), whole(8));
	a = node_in(e, "a", "s", "l2", 8);
	CHECK_INT(named(e, "l2")->step, 8);
	cluster_node_remove(c, a);
	CHECK_INT(named(e, "l2")->step, 16);
	engine_free(e);
}

/* Both leaf and spine fill up: the other leaf of the spine is worth more for it. */
TEST(a_spine_that_fills_up_is_news_to_all_its_leaves)
{
	struct engine *e = fleet_new();
	uint32_t busy;

	node_in(e, "a", "s1", "l1", 4);
	node_in(e, "b", "s2", "l1", 4);
	busy = node_in(e, "c", "s2", "l2", 4);
	CHECK_STR(choice(e, whole(4)), "a");
	put(e, "p", busy, whole(4));
	CHECK_STR(choice(e, whole(4)), "b");
	engine_free(e);
}

TEST(a_leaf_has_blocks_by_model_and_a_node_that_goes_leaves_a_hole)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t nodes = 0, second;
	char name[24];

	for (unsigned i = 0; i < BLOCK_NODES + 1; i++) {
		snprintf(name, sizeof(name), "node-%u", i);
		node_in(e, name, "s", "l", 1);
	}
	CHECK_INT(named(e, "l")->blocks_count, 2);
	node_in(e, "plain", "s", "l", 0);
	CHECK_INT(named(e, "l")->blocks_count, 3);
	second = named(e, "l")->blocks[1];
	CHECK_STR(cluster_node(c, cluster_block_node(c, second, 0))->name, "node-32");
	CHECK_INT(cluster_block_node(c, second, 1), NODE_NONE);
	cluster_node_remove(c, cluster_node_find(c, "node-3"));
	CHECK_INT(cluster_block_node(c, named(e, "l")->blocks[0], 3), NODE_NONE);
	for (uint32_t b = 0; b < 3; b++)
		for (uint32_t i = 0; i < BLOCK_NODES; i++)
			nodes += cluster_block_node(c, named(e, "l")->blocks[b], i) != NODE_NONE;
	CHECK_INT(nodes, BLOCK_NODES + 1);
	CHECK_INT(named(e, "s")->blocks_count, 0);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST_MAIN()
