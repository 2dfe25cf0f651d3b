/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_fixture.h"

#include <errno.h>

#include "engine/mig.h"

static int add(struct engine *e, struct box *b, struct err *err)
{
	uint32_t node;

	return cluster_node_add(engine_cluster(e), box_spec(b), &node, err);
}

TEST(a_node_that_cannot_be_is_refused_in_words_and_changes_nothing)
{
	struct engine *e = fleet_new();
	struct links *links;
	uint16_t gbps[4] = { 0, 50, 50, 0 };
	struct box there = BOX("there", 2);
	uint64_t before;

	CHECK(links_new(&(struct links_input){ .count = 2, .gbps = gbps }, &links, NULL) == 0);
	box_add(e, &there);
	before = cluster_digest(engine_cluster(e));
	struct {
		struct box box;
		int code;
		const char *text;
	} rows[] = {
		{ BOX("", 1), EINVAL, "a node has no name" },
		{ BOX("there", 0), EEXIST, "node there is there twice" },
		{ BOX("big", GPU_MAX + 1), EINVAL, "node big: 33 GPUs, at most 32 are supported" },
		{ BOX("linked", 3), EINVAL, "node linked: links for 2 GPUs, but it has 3" },
		{ BOX("twins", 2), EEXIST, "node twins: GPU UUID x comes twice" },
		{ BOX("thief", 1), EEXIST, "GPU there-1 is reported by nodes there and thief" },
		{ BOX("nameless", 2), EINVAL, "node nameless: GPU 1 has no UUID" },
		{ BOX("deep", 1), EINVAL,
		  "node deep: 9 topology levels, at most 8 are supported" },
	};
	rows[3].box.spec.links = links;
	rows[4].box.gpus[0].uuid = rows[4].box.gpus[1].uuid = "x";
	rows[5].box.gpus[0].uuid = "there-1";
	rows[6].box.gpus[1].uuid = "";
	for (int i = 0; i < DOMAIN_LEVELS_MAX + 1; i++)
		rows[7].box.path[i] = "level";

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;

		CHECK_INT(add(e, &rows[i].box, &err), -rows[i].code);
		CHECK_STR(err.text, rows[i].text);
		CHECK_INT(add(e, &rows[i].box, NULL), -rows[i].code);
		CHECK(cluster_digest(engine_cluster(e)) == before);
		CHECK_SOUND(e);
	}
	engine_free(e);
	links_free(links);
}

TEST(a_change_that_cannot_be_leaves_the_node_as_it_was)
{
	struct engine *e = fleet_new();
	struct box a = BOX("a", 2), b = BOX("b", 2), renamed = BOX("c", 2), thief = BOX("a", 2),
		   twins = BOX("a", 2);
	uint32_t node = box_add(e, &a);
	struct err err = ERR_INIT;
	uint64_t before;

	box_add(e, &b);
	put(e, "pod", node, whole(1));
	before = cluster_digest(engine_cluster(e));
	CHECK_INT(cluster_node_change(engine_cluster(e), node, box_spec(&renamed), &err), -EINVAL);
	CHECK_STR(err.text, "node a cannot be renamed to c");
	thief.gpus[1].uuid = "b-0";
	CHECK_INT(cluster_node_change(engine_cluster(e), node, box_spec(&thief), &err), -EEXIST);
	CHECK_STR(err.text, "GPU b-0 is reported by nodes b and a");
	twins.gpus[0].uuid = twins.gpus[1].uuid = "a-0";
	CHECK_INT(cluster_node_change(engine_cluster(e), node, box_spec(&twins), &err), -EEXIST);
	CHECK(cluster_digest(engine_cluster(e)) == before);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(nodes_and_gpus_are_found_by_name_and_uuid)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 2)), node = 7;
	uint8_t gpu = 7;

	CHECK_INT(cluster_node_find(c, "a"), a);
	CHECK_INT(cluster_node_find(c, "b"), NODE_NONE);
	CHECK(cluster_gpu_find(c, "a-1", &node, &gpu));
	CHECK_INT(node, a);
	CHECK_INT(gpu, 1);
	CHECK(!cluster_gpu_find(c, "a-2", &node, &gpu));
	cluster_node_remove(c, a);
	CHECK_INT(cluster_node_find(c, "a"), NODE_NONE);
	CHECK(!cluster_gpu_find(c, "a-1", &node, &gpu));
	CHECK_INT(cluster_nodes_count(c), 0);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_removed_node_takes_its_pods_along_and_its_number_serves_again)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 2));
	uint32_t b = box_add(e, &(struct box)BOX("b", 2));
	uint32_t kept = put(e, "kept", b, whole(1));

	put(e, "one", a, whole(1));
	put(e, "two", a, share(500, 0));
	cluster_node_remove(c, a);
	CHECK_SOUND(e);
	CHECK_INT(cluster_pods_count(c), 1);
	CHECK_INT(cluster_pod_find(c, "one"), POD_NONE);
	CHECK_INT(cluster_pod_find(c, "kept"), kept);
	CHECK_VERDICT(verdict_on(e, whole(1), a), NODE_GONE);
	CHECK_INT(box_add(e, &(struct box)BOX("z", 1)), a);
	CHECK_INT(cluster_nodes_end(c), 2);
	CHECK_INT(cluster_nodes_count(c), 2);
	CHECK_VERDICT(verdict_on(e, whole(1), a), FITS);
	/* The UUIDs of the node that is gone are free for another. */
	CHECK_INT(box_add(e, &(struct box)BOX("a", 2)), 2);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(holds_follow_the_uuid_when_gpus_are_renumbered)
{
	struct engine *e = fleet_new();
	const struct cluster *c = engine_cluster(e);
	struct box b = BOX("a", 3);
	uint32_t a = box_add(e, &b), pod, node;
	uint8_t gpu;

	put(e, "whole", a, on_gpus(whole(1), 1));
	pod = put(e, "share", a, on_gpus(share(300, 1000), 4));
	b.gpus[0].uuid = "a-2";
	b.gpus[2].uuid = "a-0";
	box_change(e, a, &b);
	CHECK_SOUND(e);
	CHECK_INT(cluster_pod(c, pod)->holds[0].gpu, 0);
	CHECK_INT(cluster_node(c, a)->gpus[0].core_free_milli, 700);
	CHECK_INT(cluster_node(c, a)->gpus[0].mem_free_mib, 15384);
	CHECK_INT(cluster_node(c, a)->gpus[2].use, GPU_WHOLE);
	CHECK_INT(cluster_node(c, a)->idle, 2);
	CHECK(cluster_gpu_find(c, "a-0", &node, &gpu));
	CHECK_INT(gpu, 2);
	engine_remove(e, pod);
	CHECK_INT(cluster_node(c, a)->idle, 3);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_gpu_that_vanishes_in_use_stays_unhealthy_until_its_pod_is_gone)
{
	struct engine *e = fleet_new();
	const struct cluster *c = engine_cluster(e);
	struct box b = BOX("a", 3);
	uint32_t a = box_add(e, &b), pod = put(e, "pod", a, with_cpu(whole(3), 4000)), node;
	uint8_t gpu;

	b.gpus[1] = b.gpus[2];
	b.spec.gpus_count = 2;
	box_change(e, a, &b);
	CHECK_SOUND(e);
	CHECK_INT(cluster_pod(c, pod)->holds_count, 3);
	CHECK_INT(cluster_node(c, a)->gpus_count, 3);
	CHECK(cluster_gpu_find(c, "a-1", &node, &gpu));
	CHECK_INT(gpu, 2);
	CHECK_INT(cluster_node(c, a)->gpus[2].healthy, 0);
	/* It is back: nobody else can have had it meanwhile. */
	b = (struct box)BOX("a", 3);
	box_change(e, a, &b);
	CHECK_SOUND(e);
	CHECK_INT(cluster_node(c, a)->idle, 0);
	/* It vanishes again; with its pod it is gone at the next report. */
	b.spec.gpus_count = 2;
	box_change(e, a, &b);
	engine_remove(e, pod);
	box_change(e, a, &b);
	CHECK_INT(cluster_node(c, a)->gpus_count, 2);
	CHECK_INT(cluster_node(c, a)->idle, 3);
	CHECK(!cluster_gpu_find(c, "a-2", &node, &gpu));
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_card_that_reports_less_memory_keeps_its_holders)
{
	struct engine *e = fleet_new();
	const struct cluster *c = engine_cluster(e);
	struct box b = BOX("a", 1);
	uint32_t a = box_add(e, &b), first = put(e, "1", a, share(500, 16000)),
		 second = put(e, "2", a, share(100, 384));

	b.gpus[0].mem_mib = 10;
	box_change(e, a, &b);
	CHECK_SOUND(e);
	CHECK_INT(cluster_node(c, a)->gpus[0].mem_free_mib, 10 - 16384);
	CHECK_VERDICT(verdict_on(e, whole(1), a), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, share(100, 1), a), NO_GPU_MEMORY);
	/* A glitch: the memory is back, and nobody has lost any of his. */
	b.gpus[0].mem_mib = 16384;
	box_change(e, a, &b);
	CHECK_SOUND(e);
	CHECK_INT(cluster_node(c, a)->gpus[0].mem_free_mib, 0);
	CHECK_VERDICT(verdict_on(e, share(100, 1), a), NO_GPU_MEMORY);
	engine_remove(e, first);
	engine_remove(e, second);
	CHECK_INT(cluster_node(c, a)->gpus[0].mem_free_mib, 16384);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(slices_keep_their_geometry_while_they_are_in_use)
{
	struct engine *e = fleet_new();
	const struct cluster *c = engine_cluster(e);
	struct box b = BOX("a", 1);
	uint32_t a, pod;

	b.spec.mig = &mig_a100_40gb;
	b.gpus[0].mig_mode = 1;
	a = box_add(e, &b);
	pod = put(e, "slice", a, slice("3g.20gb"));
	b.spec.mig = &mig_a100_80gb;
	box_change(e, a, &b);
	CHECK_SOUND(e);
	CHECK_INT(cluster_pod(c, pod)->holds_count, 1);
	CHECK(cluster_node(c, a)->mig == &mig_a100_40gb);
	CHECK_INT(cluster_node(c, a)->gpus[0].core_free_milli, 1000 - 1000 * 3 / 7);
	engine_remove(e, pod);
	box_change(e, a, &b);
	CHECK(cluster_node(c, a)->mig == &mig_a100_80gb);
	CHECK_INT(cluster_node(c, a)->gpus[0].core_free_milli, 1000);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_card_in_use_keeps_its_mode_whatever_is_reported)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 2);
	uint32_t a, pod;

	b.spec.mig = &mig_a100_40gb;
	a = box_add(e, &b);
	pod = put(e, "whole", a, whole(1));
	b.gpus[0].mig_mode = 1;
	b.gpus[1].mig_mode = 1;
	box_change(e, a, &b);
	CHECK_SOUND(e);
	CHECK_INT(cluster_pod(engine_cluster(e), pod)->holds_count, 1);
	CHECK_INT(cluster_node(engine_cluster(e), a)->gpus[0].mig_mode, 0);
	CHECK_INT(cluster_node(engine_cluster(e), a)->gpus[1].mig_mode, 1);
	engine_remove(e, pod);
	box_change(e, a, &b);
	CHECK_INT(cluster_node(engine_cluster(e), a)->gpus[0].mig_mode, 1);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_node_with_pods_may_move_to_another_leaf_and_get_another_model)
{
	struct engine *e = fleet_new();
	const struct cluster *c = engine_cluster(e);
	struct box b = BOX("a", 2), other = BOX("b", 2);
	uint32_t a, here, there;

	b.path[0] = "here";
	other.path[0] = "there";
	a = box_add(e, &b);
	box_add(e, &other);
	here = cluster_domain_named(c, "here");
	there = cluster_domain_named(c, "there");
	put(e, "pod", a, whole(1));
	CHECK_STR(choice(e, of_model(e, whole(1), "model")), "a");
	b.path[0] = "there";
	b.gpus[0].model = b.gpus[1].model = "finer";
	box_change(e, a, &b);
	CHECK_SOUND(e);
	CHECK_INT(cluster_domain(c, here)->nodes, 0);
	CHECK_INT(cluster_domain(c, here)->step, 0);
	CHECK_INT(cluster_domain(c, there)->nodes, 2);
	CHECK_INT(cluster_domain(c, there)->free_milli, 3000);
	CHECK_INT(cluster_domain(c, there)->step, 4);
	CHECK_INT(cluster_model_free_milli(c, cluster_model_find(c, "finer")), 1000);
	CHECK_INT(cluster_model_free_milli(c, cluster_model_find(c, "model")), 2000);
	CHECK_STR(choice(e, of_model(e, whole(1), "finer")), "a");
	CHECK_STR(choice(e, of_model(e, whole(1), "model")), "b");
	engine_free(e);
}

TEST(health_decides_what_counts_as_there)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 2));
	const struct node *n = cluster_node(c, a);
	uint32_t pod = put(e, "pod", a, on_gpus(share(400, 0), 2));

	cluster_gpu_health(c, a, 1, false);
	CHECK_SOUND(e);
	CHECK_INT(n->total_milli, 1000);
	CHECK_INT(n->free_milli, 1000);
	CHECK_INT(n->idle, 1);
	engine_remove(e, pod);
	CHECK_SOUND(e);
	CHECK_INT(n->free_milli, 1000);
	cluster_gpu_health(c, a, 1, true);
	cluster_gpu_health(c, a, 1, true);
	cluster_gpu_health(c, a, 9, false);
	CHECK_INT(n->idle, 3);
	CHECK_INT(n->free_milli, 2000);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_pod_is_placed_once_and_what_does_not_fit_is_not_booked)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 2)), pod = put(e, "pod", a, whole(1)), other;
	struct request r = both(whole(1), share(500, 0));
	struct pod_spec spec = { .uid = "pod" }, second = { .uid = "second" };
	struct assignment at;
	uint64_t before;

	CHECK_VERDICT(assign_node(c, NULL,
				  &(struct request){ .node = NODE_NONE, .domain = DOMAIN_NONE }, a,
				  &at),
		      FITS);
	CHECK_INT(cluster_pod_place(c, &spec, &r, a, &at, &other), -EEXIST);
	/* The second of two holds has no room: the first is given back. */
	before = cluster_digest(c);
	at = (struct assignment){ .count = 2,
				  .holds = { { .gpu = 1, .kind = ASK_WHOLE },
					     { .gpu = 0, .kind = ASK_SHARE, .core_milli = 1 } } };
	CHECK_INT(cluster_pod_place(c, &second, &r, a, &at, &other), -ENOSPC);
	at.holds[1].gpu = 2;
	CHECK_INT(cluster_pod_place(c, &second, &r, a, &at, &other), -ENOSPC);
	at.holds[0] = (struct hold){ .gpu = 1, .kind = ASK_SHARE, .group = 1 };
	at.holds[1] = (struct hold){ .gpu = 1, .kind = ASK_SHARE, .group = 2 };
	CHECK_INT(cluster_pod_place(c, &second, &r, a, &at, &other), -ENOSPC);
	CHECK(cluster_digest(c) == before);
	CHECK_INT(cluster_pods_count(c), 1);
	CHECK_INT(cluster_pod_find(c, "pod"), pod);
	CHECK_INT(cluster_pod_find(c, "second"), POD_NONE);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_decision_for_a_node_that_is_gone_is_not_booked)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 1)), pod;
	struct request none = cpu(1000), one = whole(1);
	struct decision d, d2;

	box_add(e, &(struct box)BOX("b", 1));
	none.node = one.node = a;
	CHECK_VERDICT(engine_decide(e, &none, &d), FITS);
	CHECK_VERDICT(engine_decide(e, &one, &d2), FITS);
	cluster_node_remove(c, a);
	CHECK_INT(engine_place(e, &(struct pod_spec){ .uid = "x" }, &none, &d, &pod), -ENOENT);
	CHECK_INT(engine_place(e, &(struct pod_spec){ .uid = "y" }, &one, &d2, &pod), -ENOENT);
	CHECK_SOUND(e);
	CHECK_INT(cluster_pods_count(c), 0);
	engine_free(e);
}

TEST(a_detached_pod_comes_back_with_its_number_unless_it_was_placed_again)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 2)), pod = put(e, "pod", a, whole(1)), again;
	uint64_t before = cluster_digest(c);
	struct pod *record = cluster_pod_detach(c, pod);

	CHECK_SOUND(e);
	CHECK_INT(cluster_pods_count(c), 0);
	CHECK(cluster_pod(c, pod) == NULL);
	CHECK_INT(cluster_pod_attach(c, record, &again), 0);
	CHECK_INT(again, pod);
	CHECK(cluster_digest(c) == before);
	record = cluster_pod_detach(c, pod);
	again = put(e, "pod", a, on_gpus(whole(1), 2));
	CHECK_INT(cluster_pod_attach(c, record, &pod), -EEXIST);
	CHECK_INT(cluster_pods_count(c), 1);
	cluster_pod_discard(c, record);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(numbers_of_pods_are_used_again_and_lists_stay_whole)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 4)), pods[3], seen = 0;

	for (int i = 0; i < 3; i++)
		pods[i] = put(e, (const char *[]){ "x", "y", "z" }[i], a, whole(1));
	engine_remove(e, pods[1]);
	CHECK_INT(put(e, "w", a, whole(1)), pods[1]);
	CHECK_INT(cluster_pods_end(c), 3);
	for (uint32_t p = cluster_node(c, a)->first_pod; p != POD_NONE;
	     p = cluster_pod(c, p)->next)
		seen++;
	CHECK_INT(seen, 3);
	CHECK_STR(cluster_pod(c, pods[1])->name, "w");
	engine_free(e);
}

static uint32_t put_member(struct engine *e, const char *uid, uint32_t node, uint32_t gang)
{
	struct request r = cpu(1);
	struct decision d;
	uint32_t pod;

	r.node = node;
	CHECK_VERDICT(engine_decide(e, &r, &d), FITS);
	CHECK_INT(engine_place(e, &(struct pod_spec){ .uid = uid, .gang = gang }, &r, &d, &pod),
		  0);
	return pod;
}

static uint32_t count_members(const struct cluster *c, uint32_t gang)
{
	uint32_t count = 0;

	for (uint32_t p = cluster_gang_first(c, gang); p != POD_NONE;
	     p = cluster_pod(c, p)->gang_next)
		count += cluster_pod(c, p)->gang == gang;
	return count;
}

TEST(the_pods_of_a_gang_are_found_by_it_in_whatever_order_they_go)
{
	static const uint8_t orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 } };
	static const char *const uids[] = { "x", "y", "z" };
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 4)),
		 b = box_add(e, &(struct box)BOX("b", 4));
	uint32_t other = put_member(e, "other", a, 8), pods[3];

	put_member(e, "alone", a, 0);
	for (size_t i = 0; i < 4; i++) {
		for (int j = 0; j < 3; j++)
			pods[j] = put_member(e, uids[j], j ? a : b, 7);
		for (uint32_t j = 0; j < 3; j++) {
			CHECK_INT(count_members(c, 7), 3 - j);
			CHECK_SOUND(e);
			engine_remove(e, pods[orders[i][j]]);
		}
		CHECK_INT(cluster_gang_first(c, 7), POD_NONE);
		CHECK_INT(cluster_gang_first(c, 8), other);
	}
	put_member(e, "x", b, 7);
	put_member(e, "y", a, 7);
	cluster_node_remove(c, b);
	CHECK_INT(count_members(c, 7), 1);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(strings_and_models_have_numbers)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t key = cluster_intern(c, "key");
	char name[24];

	CHECK_INT(cluster_intern(c, ""), 0);
	CHECK_INT(cluster_intern(c, "key"), key);
	CHECK_STR(cluster_string(c, key), "key");
	CHECK_STR(cluster_string(c, 12345), "");
	CHECK_INT(cluster_model_find(c, "key"), UINT16_MAX);
	for (unsigned i = 0; i < MODEL_MAX; i++) {
		snprintf(name, sizeof(name), "model-%u", i);
		CHECK_INT(cluster_model(c, name), i);
	}
	CHECK_INT(cluster_model(c, "one-more"), UINT16_MAX);
	CHECK_INT(cluster_model(c, "model-7"), 7);
	CHECK_STR(cluster_model_name(c, 255), "model-255");
	CHECK(cluster_group(c, 1) && cluster_group(c, 1) != cluster_group(c, 2));
	CHECK_STR(cluster_model_name(c, MODEL_NONE), "");
	CHECK_INT(cluster_model_free_milli(c, MODEL_NONE), 0);
	engine_free(e);
}

TEST(names_order_nodes_however_many_come_in_front)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	char name[24];

	/* Each new node comes first: the gap between ranks is used up several times. */
	for (unsigned i = 200; i--;) {
		struct box b = BOX(name, 0);

		snprintf(name, sizeof(name), "node-%03u", i);
		box_add(e, &b);
	}
	for (unsigned i = 1; i < 200; i++) {
		uint32_t before, after;

		snprintf(name, sizeof(name), "node-%03u", i - 1);
		before = cluster_node_find(c, name);
		snprintf(name, sizeof(name), "node-%03u", i);
		after = cluster_node_find(c, name);
		CHECK(cluster_node(c, before)->rank < cluster_node(c, after)->rank);
	}
	CHECK_SOUND(e);
	CHECK_STR(choice(e, cpu(1000)), "node-000");
	engine_free(e);
}

/* Two nodes each are to be in one state, among many states that come and go. */
TEST(nodes_in_one_state_share_its_number_whatever_came_and_went)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	enum { PAIRS = 101, NODES = 2 * PAIRS };
	char name[24];

	for (unsigned i = 0; i < NODES; i++) {
		struct box b = BOX(name, 1);

		snprintf(name, sizeof(name), "%u", i);
		box_add(e, &b);
	}
	for (unsigned round = 1; round <= 8; round++)
		for (unsigned i = 0; i < NODES; i++) {
			uint32_t node = i % 2 * PAIRS + i / 2 * 7 * round % PAIRS;
			uint32_t twin = (node + PAIRS) % NODES, old;

			snprintf(name, sizeof(name), "%u", node);
			old = cluster_pod_find(c, name);
			if (old != POD_NONE)
				engine_remove(e, old);
			fleet_pod(e, name, name, cpu(1000 * round + node % PAIRS),
				  (struct pod_spec){ .priority = 0 });
			CHECK_INT(cluster_node(c, node)->free.cpu_milli ==
					  cluster_node(c, twin)->free.cpu_milli,
				  i % 2);
			CHECK_INT(cluster_node(c, node)->state == cluster_node(c, twin)->state,
				  i % 2);
		}
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(the_digest_tells_states_apart)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 2)), pod;
	uint64_t empty = cluster_digest(c), one;

	pod = put(e, "pod", a, on_gpus(whole(1), 1));
	one = cluster_digest(c);
	CHECK(one != empty);
	engine_remove(e, pod);
	CHECK(cluster_digest(c) == empty);
	pod = put(e, "pod", a, on_gpus(whole(1), 2));
	CHECK(cluster_digest(c) != one);
	engine_remove(e, pod);
	cluster_gpu_health(c, a, 0, false);
	CHECK(cluster_digest(c) != empty);
	engine_free(e);
}

TEST_MAIN()
