/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/explain.h"
#include "engine/links.h"
#include "engine/machine.h"
#include "engine/pick.h"

static char text[4096];

static const char *kept(struct strbuf *buf)
{
	CHECK(!buf->failed);
	snprintf(text, sizeof(text), "%s", buf->s);
	strbuf_done(buf);
	return text;
}

static const char *refusal(struct engine *e, struct request r)
{
	struct strbuf buf = STRBUF_INIT;
	struct explanation x;

	explain_request(e, &r, &x);
	explain_refusal(e, &r, &x, &buf);
	return kept(&buf);
}

static const char *miss(struct engine *e, struct request r)
{
	struct strbuf buf = STRBUF_INIT;
	struct explanation x;

	CHECK(explain_request(e, &r, &x) != FITS);
	explain_miss(e, &x, &buf);
	return kept(&buf);
}

static const char *why(struct engine *e, struct request r)
{
	struct strbuf buf = STRBUF_INIT;
	struct explanation x;

	CHECK(explain_request(e, &r, &x) == FITS);
	explain_why(e, &r, &x, &buf);
	return kept(&buf);
}

static const char *node_reason(struct engine *e, struct request r, const char *node)
{
	struct strbuf buf = STRBUF_INIT;

	explain_node(e, &r, cluster_node_find(engine_cluster(e), node), &buf);
	return kept(&buf);
}

static const char *assigned(struct engine *e, struct request r)
{
	struct strbuf buf = STRBUF_INIT;
	struct decision d;

	CHECK(engine_decide(e, &r, &d) == FITS);
	explain_assignment(e, d.node, &d.assignment, &buf);
	return kept(&buf);
}

static void add_nodes(struct engine *e, const char *prefix, int count, struct fleet_node n)
{
	for (int i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s-%d", prefix, i);
		fleet_node(e, name, n);
	}
}

TEST(a_cluster_without_nodes_says_so)
{
	struct engine *e = fleet_new();

	CHECK_STR(refusal(e, whole(1)), "no nodes available to schedule pods");
	CHECK_STR(miss(e, whole(1)), "");
	engine_free(e);
}

TEST(refusals_are_grouped_counted_and_sorted_as_text)
{
	struct engine *e = fleet_new();
	struct request r = share(100, 8000);

	add_nodes(e, "small", 5, (struct fleet_node){ .gpus = 1, .mem_mib = 4000 });
	add_nodes(e, "tainted", 3, (struct fleet_node){ .gpus = 1, .taint = "dedicated" });
	add_nodes(e, "cordoned", 10, (struct fleet_node){ .gpus = 1, .unschedulable = true });
	add_nodes(e, "plain", 2, (struct fleet_node){ 0 });
	CHECK_STR(refusal(e, r), "0/20 nodes are available: 10 node(s) were unschedulable, "
				 "2 node(s) had too few GPUs (asked for 1, none there), "
				 "3 node(s) had untolerated taint(s), "
				 "5 Insufficient GPU memory (asked for 8000 MiB, at most "
				 "4000 MiB free on one GPU).");
	engine_free(e);
}

TEST(too_few_gpus_come_with_figures)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct request r = whole(6), core = share(600, 0);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 8, .model = "H100" });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 8, .model = "H100" });
	fleet_node(e, "c", (struct fleet_node){ .gpus = 4, .model = "V100" });
	fleet_node(e, "cpu", (struct fleet_node){ 0 });
	fleet_pod(e, "p", "a", whole(3), (struct pod_spec){ 0 });
	fleet_pod(e, "q", "b", whole(5), (struct pod_spec){ 0 });
	CHECK_STR(refusal(e, r),
		  "0/4 nodes are available: "
		  "2 Insufficient free GPUs (asked for 6, at most 5 free on one node), "
		  "2 node(s) had too few GPUs (asked for 6, at most 4 on one node).");
	/* What one node has beyond the best changes nothing. */
	fleet_pod(e, "s", "b", whole(1), (struct pod_spec){ 0 });
	CHECK(strstr(refusal(e, r), "(asked for 6, at most 5 free on one node)"));
	modelset_add(&r.asks[0].models, cluster_model(c, "V100"));
	r.asks[0].count = 5;
	CHECK(strstr(refusal(e, r), "2 node(s) had too few GPUs of the requested model (asked for "
				    "5 of V100, none there)"));
	/* Two containers together. */
	r = whole(4);
	*request_add_ask(&r, ASK_WHOLE, 2) = r.asks[0];
	r.asks[1].count = 2;
	CHECK(strstr(refusal(e, r), "(asked for 6, at most 5 free on one node)"));
	fleet_pod(e, "t", "a", whole(5), (struct pod_spec){ 0 });
	fleet_pod(e, "u", "b", whole(2), (struct pod_spec){ 0 });
	fleet_pod(e, "v", "c", whole(3), (struct pod_spec){ 0 });
	CHECK(strstr(refusal(e, whole(2)), "3 Insufficient free GPUs (asked for 2, at most 1 "
					   "free on one node)"));
	fleet_pod(e, "w", "c", share(500, 0), (struct pod_spec){ 0 });
	CHECK(strstr(refusal(e, whole(2)), "3 Insufficient free GPUs (asked for 2, none free)"));
	CHECK(strstr(refusal(e, core), "1 Insufficient GPU core (asked for 60%, at most 50% free "
				       "on one GPU)"));
	engine_free(e);
}

TEST(a_bandwidth_refusal_carries_its_figure)
{
	struct engine *e = fleet_new();
	struct links *links CLEANUP(links_freep) = NULL;
	struct request r = whole(2);

	CHECK(machine_links(machine_find("l40s-4"), &links, NULL) == 0);
	add_nodes(e, "pcie", 4, (struct fleet_node){ .gpus = 4, .links = links });
	r.asks[0].min_gbps = 400;
	r.asks[0].bandwidth_mode = PICK_REQUIRED;
	CHECK_STR(refusal(e, r), "0/4 nodes are available: 4 NVLink bandwidth below 400 GB/s.");
	CHECK(strncmp(miss(e, r), "pcie-0 has free GPUs with links of ", 35) == 0);
	engine_free(e);
}

TEST(other_resources_are_named)
{
	struct engine *e = fleet_new();
	uint32_t hca = cluster_resource(engine_cluster(e), "rdma/hca");
	struct request r;

	request_init(&r);
	r.extended[r.extended_count++] = (struct extended){ .resource = hca, .amount = 2 };
	add_nodes(e, "bare", 2, (struct fleet_node){ 0 });
	fleet_node(e, "one", (struct fleet_node){ .extended = { .resource = hca, .amount = 1 } });
	CHECK_STR(refusal(e, r), "0/3 nodes are available: 3 Insufficient rdma/hca.");
	CHECK_STR(miss(e, r), "one lacks 1 of rdma/hca");
	CHECK_STR(node_reason(e, r, "bare-1"), "Insufficient rdma/hca (asked for 2, lacks 2)");
	engine_free(e);
}

TEST(the_nearest_miss_is_the_one_that_lacks_the_least)
{
	struct engine *e = fleet_new();
	struct request r = cpu(10000);

	fleet_node(e, "far", (struct fleet_node){ .cpu_milli = 4000 });
	fleet_node(e, "near", (struct fleet_node){ .cpu_milli = 8000 });
	fleet_node(e, "off", (struct fleet_node){ .cpu_milli = 9000, .unschedulable = true });
	CHECK_STR(miss(e, r), "near lacks 2000 milli CPU");
	CHECK_STR(node_reason(e, r, "far"), "Insufficient cpu (asked for 10000, lacks 6000)");
	CHECK_STR(node_reason(e, r, "off"), "node(s) were unschedulable");
	engine_free(e);
}

TEST(a_miss_is_near_only_if_nothing_else_is_in_the_way)
{
	struct engine *e = fleet_new();
	struct request r = whole(2);

	r.needs.cpu_milli = 10000;
	fleet_node(e, "both", (struct fleet_node){ .gpus = 1, .cpu_milli = 9000 });
	CHECK_STR(miss(e, r), "");
	fleet_node(e, "one", (struct fleet_node){ .gpus = 2, .cpu_milli = 1000 });
	CHECK_STR(miss(e, r), "one lacks 9000 milli CPU");
	engine_free(e);
}

TEST(misses_of_every_kind_have_words)
{
	struct engine *e = fleet_new();
	struct request r = whole(4);

	fleet_node(e, "a",
		   (struct fleet_node){
			   .gpus = 4, .mem_mib = 1000, .pods = 2, .mem_bytes = INT64_C(1) << 30 });
	fleet_pod(e, "p", "a", share(400, 600), (struct pod_spec){ 0 });
	CHECK_STR(miss(e, r), "a lacks 1 free GPU");
	CHECK_STR(node_reason(e, r, "a"), "Insufficient free GPUs (asked for 4, lacks 1)");
	CHECK_STR(miss(e, share(0, 1200)), "a lacks 200 MiB of GPU memory");
	CHECK_STR(miss(e, on_gpus(share(700, 0), 1)), "");
	r = whole(1);
	r.needs.mem_bytes = (INT64_C(1) << 30) + 1;
	CHECK_STR(miss(e, r), "a lacks 1 MiB of memory");
	r = whole(1);
	r.min_network_gbps = 100;
	CHECK_STR(miss(e, r), "a does not say its network bandwidth");
	fleet_pod(e, "q", "a", whole(3), (struct pod_spec){ 0 });
	CHECK_STR(miss(e, whole(1)), "");
	engine_free(e);
}

TEST(rules_that_are_in_the_way_are_named)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct request r = whole(1);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1, .taint = "dedicated", .leaf = "l1" });
	CHECK_STR(miss(e, r), "a would fit but for its taints");
	r.tolerations[r.tolerations_count++] = (struct toleration){ .op = TOLERATE_EXISTS };
	r.selector[r.selector_count++] =
		(struct label){ cluster_intern(c, "disk"), cluster_intern(c, "ssd") };
	CHECK_STR(miss(e, r), "a would fit but for its labels");
	r.selector_count = 0;
	modelset_add(&r.asks[0].models, cluster_model(c, "another"));
	CHECK_STR(miss(e, r), "a would fit but for the model of its GPUs");
	engine_free(e);
}

TEST(a_share_that_misses_core_says_how_much)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });
	fleet_pod(e, "p", "a", on_gpus(share(400, 0), 1), (struct pod_spec){ 0 });
	fleet_pod(e, "q", "a", on_gpus(share(300, 0), 2), (struct pod_spec){ 0 });
	CHECK_STR(miss(e, share(800, 0)), "a lacks 10% of a GPU");
	engine_free(e);
}

TEST(the_winner_is_what_the_engine_decides_and_says_why)
{
	struct engine *e = fleet_new();
	struct links *links CLEANUP(links_freep) = NULL;
	struct request r = whole(4);
	struct explanation x;
	struct decision d;
	const char *words;

	CHECK(machine_links(machine_find("dgx-h100"), &links, NULL) == 0);
	add_nodes(e, "node", 6,
		  (struct fleet_node){ .gpus = 8, .links = links, .leaf = "leaf-3" });
	fleet_node(e, "cordoned", (struct fleet_node){ .gpus = 8, .unschedulable = true });
	fleet_pod(e, "p", "node-4", whole(4), (struct pod_spec){ 0 });
	CHECK(engine_decide(e, &r, &d) == FITS);
	CHECK(explain_request(e, &r, &x) == FITS);
	CHECK_INT(x.top_count, EXPLAIN_TOP);
	CHECK_INT(x.top[0].decision.node, d.node);
	CHECK_INT(x.top[0].decision.score, d.score);
	CHECK_INT(x.by_verdict[FITS], 6);
	for (uint32_t i = 1; i < x.top_count; i++)
		CHECK(x.top[i].decision.score <= x.top[i - 1].decision.score);
	words = why(e, r);
	CHECKF(strstr(words, ": best of 6 nodes that fit; 4 GPUs joined by NVLink at 900 GB/s; "
			     "in leaf-3; leaves "),
	       "%s", words);
	engine_free(e);
}

TEST(equal_nodes_are_told_apart_by_their_order)
{
	struct engine *e = fleet_new();

	add_nodes(e, "node", 3, (struct fleet_node){ .gpus = 2 });
	CHECK_STR(why(e, whole(1)), "node-0, GPU 0: best of 3 nodes that fit; leaves 1 of 2 GPUs "
				    "idle; as good as node-1 and before it in order");
	engine_free(e);
}

TEST(the_only_node_is_called_that)
{
	struct engine *e = fleet_new();

	add_nodes(e, "node", 2, (struct fleet_node){ .gpus = 1 });
	fleet_node(e, "big", (struct fleet_node){ .gpus = 2 });
	CHECK_STR(why(e, whole(2)),
		  "big, GPUs 0-1: the only one of 3 nodes that fits; leaves 0 of 2 GPUs idle");
	CHECK_STR(refusal(e, whole(2)), "1/3 nodes are available: 2 node(s) had too few GPUs "
					"(asked for 2, at most 1 on one node).");
	engine_free(e);
}

TEST(a_node_without_rivals_is_no_winner)
{
	struct engine *e = fleet_new();
	struct request r = whole(1);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });
	CHECK_STR(why(e, r), "a, GPU 0: the only node; leaves 1 of 2 GPUs idle");
	fleet_node(e, "b", (struct fleet_node){ .gpus = 2 });
	r.node = cluster_node_find(engine_cluster(e), "b");
	CHECK_STR(why(e, r), "b, GPU 0: pinned to this node; leaves 1 of 2 GPUs idle");
	engine_free(e);
}

TEST(cards_in_mig_mode_are_neither_idle_nor_busy)
{
	struct engine *e = fleet_new();
	const struct mig_geometry *mig = mig_geometry_find("a100-40gb");

	fleet_node(e, "sliced", (struct fleet_node){ .gpus = 2, .mig = mig });
	CHECK_STR(miss(e, whole(1)), "sliced lacks 1 free GPU, with 2 of its 2 GPUs in MIG mode");
	CHECK_STR(why(e, slice("1g.5gb")), "sliced, 1g.5gb of GPU 0 at slice 6: the only node");
	fleet_node(e, "mixed", (struct fleet_node){ .gpus = 4, .mig = mig, .whole = 0xe });
	CHECK_STR(why(e, whole(1)), "mixed, GPU 1: the only one of 2 nodes that fits; leaves 2 of "
				    "3 whole GPUs idle");
	engine_free(e);
}

TEST(the_node_that_the_pod_selects_is_nearer_than_another)
{
	struct engine *e = fleet_new();
	struct label label = { cluster_intern(engine_cluster(e), "pool"),
			       cluster_intern(engine_cluster(e), "b") };
	struct request r = whole(1);

	r.selector[r.selector_count++] = label;
	fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });
	fleet_node(e, "b",
		   (struct fleet_node){
			   .gpus = 2, .mig = mig_geometry_find("a100-40gb"), .label = label });
	CHECK_STR(miss(e, r), "b lacks 1 free GPU, with 2 of its 2 GPUs in MIG mode");
	engine_free(e);
}

TEST(networks_are_in_gigabits)
{
	struct engine *e = fleet_new();
	struct request r = whole(1);

	r.min_network_gbps = 800;
	fleet_node(e, "a", (struct fleet_node){ .gpus = 1, .network_gbps = 400 });
	CHECK_STR(miss(e, r), "a has a network of 400 Gbit/s where 800 are asked for");
	engine_free(e);
}

TEST(choices_are_listed_with_their_parts)
{
	struct engine *e = fleet_new();
	struct request r = whole(1);
	struct strbuf buf = STRBUF_INIT;
	struct explanation x;

	add_nodes(e, "node", 6, (struct fleet_node){ .gpus = 2 });
	explain_request(e, &r, &x);
	explain_choices(e, &r, &x, &buf);
	kept(&buf);
	CHECKF(strstr(text, "\n1. node-0, GPU 0: availability "), "%s", text);
	CHECKF(strstr(text, "\n4. node-3, GPU 0: availability "), "%s", text);
	CHECKF(strstr(text, " of 40, alignment 30.00 of 30, utilization "), "%s", text);
	CHECKF(strstr(text, ", performance 10.00 of 10\n"), "%s", text);
	CHECK(!strstr(text, "\n5. "));
	engine_free(e);
}

TEST(assignments_are_written_as_people_read_them)
{
	struct engine *e = fleet_new();
	struct request r = whole(3);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 4 });
	CHECK_STR(assigned(e, cpu(100)), "no GPU");
	CHECK_STR(assigned(e, on_gpus(r, 0xb)), "GPUs 0-1,3");
	CHECK_STR(assigned(e, share(500, 0)), "50% of GPU 0");
	CHECK_STR(assigned(e, share(500, 100)), "50% and 100 MiB of GPU 0");
	CHECK_STR(assigned(e, share(0, 100)), "100 MiB of GPU 0");
	CHECK_STR(assigned(e, share(0, 0)), "a place on GPU 0");
	fleet_node(e, "m",
		   (struct fleet_node){ .gpus = 1, .mig = mig_geometry_find("a100-40gb") });
	CHECK_STR(assigned(e, slice("1g.5gb")), "1g.5gb of GPU 0 at slice 6");
	engine_free(e);
}

TEST_MAIN()
