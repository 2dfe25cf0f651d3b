/* SPDX-License-Identifier: Apache-2.0 */
/* Every refusal, in the smallest situation that brings it about, and what just fits. */
#include "engine_fixture.h"

#include "engine/mig.h"
#include "engine/pick.h"

TEST(a_node_that_is_gone_cordoned_or_another_does_not_fit)
{
	struct engine *e = fleet_new();
	struct box b = BOX("cordoned", 1);
	struct request r = whole(1);
	uint32_t cordoned, a = box_add(e, &(struct box)BOX("a", 1)),
			   gone = box_add(e, &(struct box)BOX("gone", 1));

	b.spec.unschedulable = true;
	cordoned = box_add(e, &b);
	cluster_node_remove(engine_cluster(e), gone);
	CHECK_VERDICT(verdict_on(e, r, gone), NODE_GONE);
	CHECK_VERDICT(verdict_on(e, r, cordoned), UNSCHEDULABLE);
	CHECK_VERDICT(verdict_on(e, r, a), FITS);
	r.node = cordoned;
	CHECK_VERDICT(verdict_on(e, r, a), WRONG_NODE);
	CHECK_VERDICT(verdict_on(e, r, gone), NODE_GONE);
	r.node = a;
	CHECK_VERDICT(verdict_on(e, r, a), FITS);
	CHECK_VERDICT(fit_node(engine_cluster(e), &r, a), FITS);
	CHECK_VERDICT(fit_node(engine_cluster(e), &r, cordoned), WRONG_NODE);
	engine_free(e);
}

TEST(every_label_of_the_selector_must_be_there_with_its_value)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t key[5], value = cluster_intern(c, "yes"), other = cluster_intern(c, "no"), node;
	struct label labels[5];
	struct box b = BOX("a", 0);
	struct node_spec spec;

	for (int i = 0; i < 5; i++) {
		key[i] = cluster_intern(c, (const char *[]){ "a", "b", "c", "d", "e" }[i]);
		labels[4 - i] = (struct label){ key[i], value }; /* not in order */
	}
	spec = *box_spec(&b);
	spec.labels = labels;
	spec.labels_count = 4; /* without the lowest key */
	CHECK(cluster_node_add(c, &spec, &node, NULL) == 0);
	struct {
		struct label want[2];
		uint8_t count;
		enum verdict verdict;
	} rows[] = {
		{ { { 0, 0 } }, 0, FITS },
		{ { { key[1], value } }, 1, FITS },
		{ { { key[3], value } }, 1, FITS },
		{ { { key[4], value }, { key[2], value } }, 2, FITS },
		{ { { key[0], value } }, 1, WRONG_LABELS },
		{ { { key[4], other } }, 1, WRONG_LABELS },
		{ { { key[4], value }, { key[2], other } }, 2, WRONG_LABELS },
		{ { { cluster_intern(c, "z"), value } }, 1, WRONG_LABELS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request r = cpu(1);

		memcpy(r.selector, rows[i].want, sizeof(rows[i].want));
		r.selector_count = rows[i].count;
		CHECKF(verdict_on(e, r, node) == rows[i].verdict, "row %zu", i);
	}
	engine_free(e);
}

TEST(a_taint_keeps_out_whoever_does_not_tolerate_it)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t key = cluster_intern(c, "gpu"), value = cluster_intern(c, "team-a");
	uint32_t other = cluster_intern(c, "team-b");
	const struct {
		uint8_t taint; /* effect */
		uint8_t count;
		struct toleration tolerations[2];
		enum verdict verdict;
	} rows[] = {
		{ EFFECT_NO_SCHEDULE, 0, { { 0 } }, TAINTED },
		{ EFFECT_NO_EXECUTE, 0, { { 0 } }, TAINTED },
		{ EFFECT_PREFER_NO_SCHEDULE, 0, { { 0 } }, FITS },
		{ EFFECT_NO_SCHEDULE, 1, { { key, value, TOLERATE_EQUAL, 0, 0 } }, FITS },
		{ EFFECT_NO_SCHEDULE, 1, { { key, other, TOLERATE_EQUAL, 0, 0 } }, TAINTED },
		{ EFFECT_NO_SCHEDULE, 1, { { key, 0, TOLERATE_EXISTS, 0, 0 } }, FITS },
		{ EFFECT_NO_SCHEDULE, 1, { { other, 0, TOLERATE_EXISTS, 0, 0 } }, TAINTED },
		{ EFFECT_NO_EXECUTE, 1, { { 0, 0, TOLERATE_EXISTS, 0, 0 } }, FITS },
		/* An empty key goes with Exists only. */
		{ EFFECT_NO_SCHEDULE, 1, { { 0, value, TOLERATE_EQUAL, 0, 0 } }, TAINTED },
		{ EFFECT_NO_SCHEDULE,
		  1,
		  { { key, value, TOLERATE_EQUAL, EFFECT_NO_SCHEDULE, 0 } },
		  FITS },
		{ EFFECT_NO_EXECUTE,
		  1,
		  { { key, value, TOLERATE_EQUAL, EFFECT_NO_SCHEDULE, 0 } },
		  TAINTED },
		{ EFFECT_NO_EXECUTE,
		  1,
		  { { 0, 0, TOLERATE_EXISTS, EFFECT_NO_SCHEDULE, 0 } },
		  TAINTED },
		{ EFFECT_NO_EXECUTE,
		  2,
		  { { other, 0, TOLERATE_EXISTS, 0, 0 },
		    { key, 0, TOLERATE_EXISTS, EFFECT_NO_EXECUTE, 0 } },
		  FITS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct box b = BOX("a", 0);
		struct request r = cpu(1);
		uint32_t node;

		b.taint = (struct taint){ .key = key, .value = value, .effect = rows[i].taint };
		node = box_add(e, &b);
		memcpy(r.tolerations, rows[i].tolerations, sizeof(rows[i].tolerations));
		r.tolerations_count = rows[i].count;
		CHECKF(verdict_on(e, r, node) == rows[i].verdict, "row %zu", i);
		cluster_node_remove(c, node);
	}
	engine_free(e);
}

TEST(every_taint_must_be_tolerated)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct taint taints[2] = { { cluster_intern(c, "x"), 0, EFFECT_NO_SCHEDULE, { 0 } },
				   { cluster_intern(c, "y"), 0, EFFECT_NO_SCHEDULE, { 0 } } };
	struct box b = BOX("a", 0);
	struct node_spec spec = *box_spec(&b);
	struct request r = cpu(1);
	uint32_t node;

	spec.taints = taints;
	spec.taints_count = 2;
	CHECK(cluster_node_add(c, &spec, &node, NULL) == 0);
	r.tolerations[r.tolerations_count++] = (struct toleration){ .key = taints[0].key };
	CHECK_VERDICT(verdict_on(e, r, node), TAINTED);
	r.tolerations[r.tolerations_count++] = (struct toleration){ .key = taints[1].key };
	CHECK_VERDICT(verdict_on(e, r, node), FITS);
	engine_free(e);
}

TEST(a_required_domain_and_a_network_must_be_there)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 1), silent = BOX("silent", 1);
	struct request r = whole(1);
	uint32_t a, other;

	b.path[0] = "spine";
	b.path[1] = "leaf";
	b.spec.network_gbps = 400;
	a = box_add(e, &b);
	other = box_add(e, &silent);
	r.domain = cluster_domain_named(engine_cluster(e), "spine");
	CHECK_VERDICT(verdict_on(e, r, a), FITS);
	CHECK_VERDICT(verdict_on(e, r, other), WRONG_DOMAIN);
	r.domain = DOMAIN_NONE;
	r.min_network_gbps = 400;
	CHECK_VERDICT(verdict_on(e, r, a), FITS);
	CHECK_VERDICT(verdict_on(e, r, other), NO_NETWORK);
	r.min_network_gbps = 401;
	CHECK_VERDICT(verdict_on(e, r, a), NO_NETWORK);
	engine_free(e);
}

TEST(rdma_ports_and_storage_are_what_the_node_has)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 1), silent = BOX("silent", 1);
	struct request r = whole(1);
	uint32_t a, other;

	b.spec.rdma_ports = 2;
	b.spec.cufile = true;
	a = box_add(e, &b);
	other = box_add(e, &silent);
	r.min_rdma_ports = 2;
	CHECK_VERDICT(verdict_on(e, r, a), FITS);
	CHECK_VERDICT(verdict_on(e, r, other), NO_RDMA);
	r.min_rdma_ports = 3;
	CHECK_VERDICT(verdict_on(e, r, a), NO_RDMA);
	r.min_rdma_ports = 0;
	r.cufile = 1;
	CHECK_VERDICT(verdict_on(e, r, a), FITS);
	CHECK_VERDICT(verdict_on(e, r, other), NO_CUFILE);
	engine_free(e);
}

TEST(where_nothing_can_be_locked_only_pods_without_gpus_go)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 2);
	struct request plain;
	uint32_t a;

	request_init(&plain);
	b.spec.gpus_closed = true;
	a = box_add(e, &b);
	CHECK_VERDICT(verdict_on(e, whole(1), a), NO_LOCK);
	CHECK_VERDICT(verdict_on(e, plain, a), FITS);
	CHECK_INT(cluster_nodes_with(engine_cluster(e), 0, 1), 0);
	b.spec.gpus_closed = false;
	CHECK_INT(cluster_node_change(engine_cluster(e), a, &b.spec, NULL), 0);
	CHECK_VERDICT(verdict_on(e, whole(1), a), FITS);
	CHECK_INT(cluster_nodes_with(engine_cluster(e), 0, 1), 1);
	CHECK(cluster_check(engine_cluster(e)) == NULL);
	engine_free(e);
}

TEST(each_resource_of_the_node_fits_to_the_last_bit)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct box b = BOX("a", 0);
	uint32_t hca = cluster_resource(c, "rdma/hca"), nic = cluster_resource(c, "nic"), node;

	b.spec.allocatable = (struct resources){ 1000, 2000, 3000, 2 };
	b.extended = (struct extended){ .resource = hca, .amount = 4 };
	node = box_add(e, &b);
	const struct {
		struct resources needs;
		struct extended extended;
		enum verdict verdict;
	} rows[] = {
		{ { 1000, 2000, 3000, 1 }, { hca, 0, 4 }, FITS },
		{ { 1001, 0, 0, 1 }, { 0 }, NO_CPU },
		{ { 0, 2001, 0, 1 }, { 0 }, NO_MEMORY },
		{ { 0, 0, 3001, 1 }, { 0 }, NO_EPHEMERAL },
		{ { 0, 0, 0, 3 }, { 0 }, TOO_MANY_PODS },
		{ { 0, 0, 0, 1 }, { hca, 0, 5 }, NO_EXTENDED },
		{ { 0, 0, 0, 1 }, { nic, 0, 1 }, NO_EXTENDED },
		{ { 0, 0, 0, 1 }, { nic, 0, 0 }, FITS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request r = cpu(0);

		r.needs = rows[i].needs;
		r.extended[0] = rows[i].extended;
		r.extended_count = r.extended[0].resource != 0;
		CHECKF(verdict_on(e, r, node) == rows[i].verdict, "row %zu", i);
	}
	engine_free(e);
}

TEST(what_is_overbooked_hinders_nobody_who_does_not_ask_for_it)
{
	struct engine *e = fleet_new();
	uint32_t hca = cluster_resource(engine_cluster(e), "rdma/hca"), node;
	struct box b = BOX("a", 2);
	struct request r = with_cpu(whole(1), 4000), none = whole(1);

	b.spec.allocatable = (struct resources){ 4000, 0, 0, 2 };
	b.extended = (struct extended){ .resource = hca, .amount = 4 };
	node = box_add(e, &b);
	r.extended[r.extended_count++] = (struct extended){ .resource = hca, .amount = 4 };
	put(e, "pod", node, r);
	b.spec.allocatable.cpu_milli = 3000;
	b.extended.amount = 2;
	box_change(e, node, &b);
	CHECK_INT(cluster_node(engine_cluster(e), node)->free.cpu_milli, -1000);
	CHECK_INT(cluster_node(engine_cluster(e), node)->extended[0].amount, -2);
	none.extended[none.extended_count++] = (struct extended){ .resource = hca };
	CHECK_VERDICT(verdict_on(e, none, node), FITS);
	CHECK_VERDICT(verdict_on(e, with_cpu(none, 1), node), NO_CPU);
	none.extended[0].amount = 1;
	CHECK_VERDICT(verdict_on(e, none, node), NO_EXTENDED);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(whole_cards_must_be_there_of_the_model_well_and_idle)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 4);
	uint32_t node;

	b.gpus[3].model = "other";
	b.gpus[2].unhealthy = 1;
	node = box_add(e, &b);
	const struct {
		uint8_t count;
		const char *model;
		enum verdict verdict;
	} rows[] = {
		{ 3, NULL, FITS },	     { 5, NULL, NO_GPU },
		{ 4, NULL, UNHEALTHY_GPU },  { 3, "model", UNHEALTHY_GPU },
		{ 4, "model", WRONG_MODEL }, { 1, "other", FITS },
		{ 2, "other", WRONG_MODEL }, { 1, "third", WRONG_MODEL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request r = whole(rows[i].count);

		if (rows[i].model)
			r = of_model(e, r, rows[i].model);
		CHECKF(verdict_on(e, r, node) == rows[i].verdict, "row %zu", i);
	}
	put(e, "pod", node, on_gpus(whole(1), 1));
	CHECK_VERDICT(verdict_on(e, whole(4), node), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, of_model(e, whole(2), "model"), node), UNHEALTHY_GPU);
	put(e, "pod-2", node, on_gpus(share(1, 0), 8));
	CHECK_VERDICT(verdict_on(e, of_model(e, whole(1), "other"), node), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, whole(1), box_add(e, &(struct box)BOX("plain", 0))), NO_GPU);
	engine_free(e);
}

TEST(a_tenant_of_memory_alone_or_of_a_seat_blocks_the_whole_card)
{
	struct engine *e = fleet_new();
	uint32_t node = box_add(e, &(struct box)BOX("a", 1));
	uint32_t pod = put(e, "memory", node, share(0, 1));

	CHECK_VERDICT(verdict_on(e, whole(1), node), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, share(1000, 16383), node), FITS);
	engine_remove(e, pod);
	pod = put(e, "seat", node, share(0, 0));
	CHECK_VERDICT(verdict_on(e, whole(1), node), NO_FREE_GPU);
	engine_remove(e, pod);
	CHECK_VERDICT(verdict_on(e, whole(1), node), FITS);
	/* And a whole card takes no tenant, not even one that books nothing. */
	put(e, "whole", node, whole(1));
	CHECK_VERDICT(verdict_on(e, share(0, 0), node), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, share(0, 1), node), NO_FREE_GPU);
	engine_free(e);
}

TEST(shares_fit_by_core_and_memory_of_one_card)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 2);
	uint32_t node = box_add(e, &b);

	put(e, "core", node, on_gpus(share(700, 1000), 1));
	put(e, "memory", node, on_gpus(share(100, 16000), 2));
	CHECK_VERDICT(verdict_on(e, share(900, 384), node), FITS);
	CHECK_VERDICT(verdict_on(e, share(900, 385), node), NO_GPU_MEMORY);
	CHECK_VERDICT(verdict_on(e, share(901, 0), node), NO_GPU_CORE);
	CHECK_VERDICT(verdict_on(e, share(300, 15384), node), FITS);
	CHECK_VERDICT(verdict_on(e, share(0, 15385), node), NO_GPU_MEMORY);
	CHECK_VERDICT(verdict_on(e, of_model(e, share(1, 0), "other"), node), WRONG_MODEL);
	cluster_gpu_health(engine_cluster(e), node, 1, false);
	CHECK_VERDICT(verdict_on(e, share(900, 0), node), NO_GPU_CORE);
	cluster_gpu_health(engine_cluster(e), node, 0, false);
	CHECK_VERDICT(verdict_on(e, share(900, 0), node), UNHEALTHY_GPU);
	engine_free(e);
}

TEST(memory_that_nobody_knows_is_no_limit)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 1);
	struct node_spec spec = *box_spec(&b);
	uint32_t node, pod;

	b.gpus[0].mem_mib = 0;
	CHECK(cluster_node_add(engine_cluster(e), &spec, &node, NULL) == 0);
	pod = put(e, "one", node, share(100, 1 << 30));
	CHECK_VERDICT(verdict_on(e, share(900, 1 << 30), node), FITS);
	engine_remove(e, pod);
	CHECK_VERDICT(verdict_on(e, whole(1), node), FITS);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_card_has_so_many_seats_and_shares_that_book_need_none)
{
	struct engine *e = engine_with((struct engine_config){ .cluster.seats = 2 });
	uint32_t node = box_add(e, &(struct box)BOX("a", 1)),
		 first = put(e, "1", node, share(0, 0));
	uint32_t other;

	put(e, "2", node, share(100, 0));
	CHECK_VERDICT(verdict_on(e, share(0, 0), node), NO_SHARED_SEAT);
	put(e, "3", node, share(100, 0));
	put(e, "4", node, share(0, 1000));
	engine_remove(e, first);
	CHECK_VERDICT(verdict_on(e, share(0, 0), node), NO_SHARED_SEAT);
	engine_free(e);

	e = fleet_new();
	node = box_add(e, &(struct box)BOX("a", 1));
	for (int i = 0; i < SEATS_DEFAULT; i++) {
		char uid[24];

		snprintf(uid, sizeof(uid), "%d", i);
		put(e, uid, node, share(0, 0));
	}
	CHECK_VERDICT(verdict_on(e, share(0, 0), node), NO_SHARED_SEAT);
	other = box_add(e, &(struct box)BOX("b", 2));
	CHECK_VERDICT(verdict_on(e, share(0, 0), other), FITS);
	/* A full seat is a nearer miss than a card that is taken, before or behind it. */
	for (uint32_t taken = 1; taken <= 2; taken++) {
		uint32_t whole_pod = put(e, "whole", other, on_gpus(whole(1), taken)), seats[8];

		for (int i = 0; i < SEATS_DEFAULT; i++)
			seats[i] = put(e, (char[]){ (char)('a' + i), 0 }, other, share(0, 0));
		CHECK_VERDICT(verdict_on(e, share(0, 0), other), NO_SHARED_SEAT);
		for (int i = 0; i < SEATS_DEFAULT; i++)
			engine_remove(e, seats[i]);
		engine_remove(e, whole_pod);
	}
	engine_free(e);
}

/* A share of memory only, on a card whose memory is unknown, books nothing. */
TEST(what_fits_can_be_booked_even_if_it_comes_to_nothing)
{
	struct engine *e = engine_with((struct engine_config){ .cluster.seats = 1 });
	struct box b = BOX("a", 1);
	struct node_spec spec = *box_spec(&b);
	struct request r = share(0, 0);
	uint32_t node;

	b.gpus[0].mem_mib = 0;
	CHECK(cluster_node_add(engine_cluster(e), &spec, &node, NULL) == 0);
	r.asks[0].mem_milli = 100;
	put(e, "1", node, r);
	CHECK_VERDICT(verdict_on(e, r, node), NO_SHARED_SEAT);
	engine_free(e);
}

TEST(only_pods_of_the_group_share_a_card_of_the_group)
{
	struct engine *e = engine_with((struct engine_config){ .cluster.seats = 1 });
	uint32_t node = box_add(e, &(struct box)BOX("a", 1)), pods[3];
	struct request third = share(333, 0), other;

	third.asks[0].mem_milli = 333;
	third.asks[0].group = cluster_group(engine_cluster(e), 1);
	other = third;
	other.asks[0].group = cluster_group(engine_cluster(e), 2);
	for (int i = 0; i < 3; i++)
		pods[i] = put(e, (const char *[]){ "1", "2", "3" }[i], node, third);
	CHECK_INT(cluster_pod(engine_cluster(e), pods[0])->holds[0].mem_mib, 16384 * 333 / 1000);
	CHECK_VERDICT(verdict_on(e, third, node), NO_GPU_CORE);
	engine_remove(e, pods[1]);
	CHECK_VERDICT(verdict_on(e, third, node), FITS);
	CHECK_VERDICT(verdict_on(e, other, node), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, share(1, 0), node), NO_FREE_GPU);
	engine_remove(e, pods[0]);
	engine_remove(e, pods[2]);
	CHECK_VERDICT(verdict_on(e, other, node), FITS);
	/* Nor does a group come to a card that everybody shares. */
	put(e, "4", node, share(1, 0));
	CHECK_VERDICT(verdict_on(e, other, node), NO_FREE_GPU);
	engine_free(e);
}

TEST(pinned_ids_are_taken_exactly_or_refused)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 4);
	uint32_t node;

	b.gpus[3].model = "other";
	b.gpus[2].unhealthy = 1;
	node = box_add(e, &b);
	put(e, "busy", node, on_gpus(whole(1), 1));
	CHECK_INT(gpus_on(e, on_gpus(whole(2), 0xa), node), 0xa);
	CHECK_INT(gpus_on(e, on_gpus(share(500, 0), 8), node), 8);
	CHECK_VERDICT(verdict_on(e, on_gpus(whole(1), 0x10), node), NO_SUCH_GPU);
	CHECK_VERDICT(verdict_on(e, on_gpus(whole(2), 0x12), node), NO_SUCH_GPU);
	CHECK_VERDICT(verdict_on(e, on_gpus(whole(1), 1), node), PINNED_GPU_BUSY);
	CHECK_VERDICT(verdict_on(e, on_gpus(whole(1), 4), node), UNHEALTHY_GPU);
	CHECK_VERDICT(verdict_on(e, on_gpus(of_model(e, whole(1), "model"), 8), node),
		      WRONG_MODEL);
	CHECK_VERDICT(verdict_on(e, on_gpus(share(500, 0), 0x10), node), NO_SUCH_GPU);
	CHECK_VERDICT(verdict_on(e, on_gpus(share(500, 0), 1), node), PINNED_GPU_BUSY);
	CHECK_VERDICT(verdict_on(e, on_gpus(share(500, 0), 4), node), UNHEALTHY_GPU);
	engine_free(e);
}

TEST(slices_that_are_made_beforehand_are_all_there_are)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 2);
	struct request r = slice("1g.5gb");
	uint8_t small = (uint8_t)(mig_profile_find(&mig_a100_40gb, "1g.5gb", 6) + 1);
	uint32_t node, pod;

	b.spec.mig = &mig_a100_40gb;
	b.gpus[0].mig_mode = b.gpus[1].mig_mode = MIG_MADE;
	b.gpus[0].mig_made[2] = small;
	b.gpus[1].mig_made[5] = small;
	node = box_add(e, &b);
	r.asks[0].count = 2;
	CHECK_INT(gpus_on(e, r, node), 3);
	r.asks[0].count = 3;
	CHECK_VERDICT(verdict_on(e, r, node), NO_MIG_SLICE);
	CHECK_VERDICT(verdict_on(e, slice("3g.20gb"), node), NO_MIG_SLICE);
	pod = put(e, "0", node, on_gpus(slice("1g.5gb"), 1));
	CHECK_INT(cluster_pod(engine_cluster(e), pod)->holds[0].mig_start, 2);
	CHECK_VERDICT(verdict_on(e, on_gpus(slice("1g.5gb"), 1), node), NO_MIG_SLICE);
	CHECK_INT(gpus_on(e, slice("1g.5gb"), node), 2);
	/* The slice of the pod is gone: it stays booked, and another is there. */
	b.gpus[0].mig_made[2] = 0;
	b.gpus[0].mig_made[6] = small;
	CHECK_INT(cluster_node_change(engine_cluster(e), node, &b.spec, NULL), 0);
	CHECK_INT(cluster_node(engine_cluster(e), node)->gpus[0].mig.used, 1 << 2);
	pod = put(e, "1", node, on_gpus(slice("1g.5gb"), 1));
	CHECK_INT(cluster_pod(engine_cluster(e), pod)->holds[0].mig_start, 6);
	CHECK(cluster_check(engine_cluster(e)) == NULL);
	engine_free(e);
}

TEST(slices_need_the_profile_a_card_in_mig_mode_and_room)
{
	struct engine *e = fleet_new();
	struct box b = BOX("a", 3);
	struct request r = slice("3g.20gb");
	uint32_t node, begun, plain = box_add(e, &(struct box)BOX("plain", 1));

	b.spec.mig = &mig_a100_40gb;
	b.gpus[0].mig_mode = 1;
	b.gpus[1].mig_mode = 1;
	node = box_add(e, &b);
	CHECK_VERDICT(verdict_on(e, slice("3g.40gb"), node), NO_MIG_PROFILE);
	CHECK_VERDICT(verdict_on(e, r, plain), NO_MIG_PROFILE);
	CHECK_VERDICT(verdict_on(e, r, box_add(e, &(struct box)BOX("none", 0))), NO_GPU);
	CHECK_VERDICT(verdict_on(e, of_model(e, r, "other"), node), WRONG_MODEL);
	r.asks[0].count = 4;
	CHECK_VERDICT(verdict_on(e, r, node), FITS);
	r.asks[0].count = 5;
	CHECK_VERDICT(verdict_on(e, r, node), NO_MIG_SLICE);
	/* Cards in MIG mode are no whole cards and take no shares; the others no slices. */
	CHECK_INT(gpus_on(e, whole(1), node), 4);
	CHECK_VERDICT(verdict_on(e, whole(2), node), NO_FREE_GPU);
	CHECK_VERDICT(verdict_on(e, on_gpus(share(100, 0), 1), node), PINNED_GPU_BUSY);
	CHECK_INT(gpus_on(e, on_gpus(slice("7g.40gb"), 2), node), 2);
	CHECK_VERDICT(verdict_on(e, on_gpus(slice("7g.40gb"), 4), node), NO_MIG_PROFILE);
	/* Each slice goes where it costs least: the card that is begun. */
	begun = put(e, "0", node, on_gpus(slice("1g.5gb"), 1));
	CHECK_INT(gpus_on(e, slice("1g.5gb"), node), 1);
	engine_remove(e, begun);
	put(e, "1", node, on_gpus(slice("1g.5gb"), 2));
	CHECK_INT(gpus_on(e, slice("1g.5gb"), node), 2);
	CHECK_INT(gpus_on(e, slice("7g.40gb"), node), 1);
	cluster_gpu_health(engine_cluster(e), node, 0, false);
	CHECK_VERDICT(verdict_on(e, slice("7g.40gb"), node), NO_MIG_SLICE);
	cluster_gpu_health(engine_cluster(e), node, 1, false);
	CHECK_VERDICT(verdict_on(e, slice("1g.5gb"), node), UNHEALTHY_GPU);
	CHECK_VERDICT(verdict_on(e, on_gpus(slice("1g.5gb"), 1), node), UNHEALTHY_GPU);
	engine_free(e);
}

TEST_MAIN()
