/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include <errno.h>

#include "base/attr.h"
#include "engine/links.h"
#include "engine/pick.h"
#include "engine/preempt.h"

#define PRIORITY(n) ((struct pod_spec){ .priority = (n) })

/* The victims by name, most important first, then the node: "a b > node". */
static const char *outcome(struct engine *e, struct request r, int32_t priority)
{
	static char text[512];
	struct cluster *c = engine_cluster(e);
	uint64_t before = cluster_digest(c);
	struct preemption p;
	int rc = preempt_find(e, &r, priority, &p);

	CHECK(cluster_digest(c) == before);
	CHECK(cluster_check(c) == NULL);
	if (rc < 0)
		return rc == -ENOENT ? "none" : "error";
	text[0] = '\0';
	for (uint32_t i = 0; i < p.victims_count; i++) {
		strcat(text, cluster_pod(c, p.victims[i])->uid);
		strcat(text, " ");
	}
	strcat(text, "> ");
	strcat(text, cluster_node(c, p.decisions[0].node)->name);
	CHECK_INT(p.cost.victims + p.cost.ending, p.victims_count);
	preemption_done(&p);
	CHECK(p.victims == NULL);
	return text;
}

TEST(what_fits_needs_no_victims)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });
	fleet_pod(e, "low", "a", whole(1), PRIORITY(0));
	CHECK_STR(outcome(e, whole(1), 10), "> a");
	engine_free(e);
}

TEST(equal_priority_is_not_evicted)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1 });
	fleet_pod(e, "equal", "a", whole(1), PRIORITY(10));
	CHECK_STR(outcome(e, whole(1), 10), "none");
	CHECK_STR(outcome(e, whole(1), 11), "equal > a");
	engine_free(e);
}

TEST(no_more_are_evicted_than_needed)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 4 });
	fleet_pod(e, "p1", "a", whole(1), PRIORITY(1));
	fleet_pod(e, "p2", "a", whole(1), PRIORITY(2));
	fleet_pod(e, "p3", "a", whole(1), PRIORITY(3));
	fleet_pod(e, "p4", "a", whole(1), PRIORITY(4));
	CHECK_STR(outcome(e, whole(1), 10), "p1 > a");
	CHECK_STR(outcome(e, whole(2), 10), "p2 p1 > a");
	CHECK_STR(outcome(e, whole(4), 10), "p4 p3 p2 p1 > a");
	CHECK_STR(outcome(e, whole(4), 4), "none");
	CHECK_STR(outcome(e, whole(5), 10), "none");
	engine_free(e);
}

/* Putting back the oldest first, as kube-scheduler does, would evict the four. */
TEST(one_large_victim_is_cheaper_than_four_small_ones)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 8 });
	fleet_pod(e, "large", "a", whole(4), (struct pod_spec){ .started = 1 });
	for (int i = 0; i < 4; i++) {
		char uid[32];

		snprintf(uid, sizeof(uid), "small-%d", i);
		fleet_pod(e, uid, "a", whole(1), (struct pod_spec){ .started = 2 });
	}
	CHECK_STR(outcome(e, whole(4), 10), "large > a");
	engine_free(e);
}

TEST(a_low_priority_goes_before_few_victims)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 4 });
	fleet_pod(e, "high", "a", whole(2), PRIORITY(5));
	fleet_pod(e, "low-1", "a", whole(1), PRIORITY(1));
	fleet_pod(e, "low-2", "a", whole(1), PRIORITY(1));
	CHECK_STR(outcome(e, whole(2), 10), "low-1 low-2 > a");
	engine_free(e);
}

TEST(a_disruption_budget_goes_before_everything)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1 });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 2 });
	fleet_pod(e, "guarded", "a", whole(1), (struct pod_spec){ .budget = 1 });
	fleet_pod(e, "high-1", "b", whole(1), PRIORITY(9));
	fleet_pod(e, "high-2", "b", whole(1), PRIORITY(9));
	CHECK_STR(outcome(e, whole(1), 10), "high-2 > b");
	CHECK_STR(outcome(e, whole(1), 9), "guarded > a");
	engine_free(e);
}

TEST(a_budget_that_allows_some_is_violated_by_more)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 2 });
	fleet_pod(e, "web-1", "a", whole(1), (struct pod_spec){ .budget = 3 });
	fleet_pod(e, "web-2", "a", whole(1), (struct pod_spec){ .budget = 3 });
	fleet_pod(e, "dear-1", "b", whole(1), PRIORITY(5));
	fleet_pod(e, "dear-2", "b", whole(1), PRIORITY(5));
	CHECK_INT(cluster_budget_allow(c, 3, 1), 0);
	CHECK_STR(outcome(e, whole(1), 10), "web-2 > a");
	CHECK_STR(outcome(e, whole(2), 10), "dear-1 dear-2 > b");
	CHECK_INT(cluster_budget_allow(c, 3, 2), 0);
	CHECK_STR(outcome(e, whole(2), 10), "web-1 web-2 > a");
	CHECK_INT(cluster_budget_allow(c, 3, 0), 0);
	CHECK_STR(outcome(e, whole(1), 10), "dear-2 > b");
	engine_free(e);
}

/* There are more than are searched exactly. */
TEST(on_a_full_node_too_some_of_a_budget_may_go)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct preemption p;

	fleet_node(e, "a", (struct fleet_node){ .gpus = 16 });
	for (int i = 0; i < 16; i++) {
		struct pod_spec guarded = { .budget = 1 }, free = PRIORITY(5);
		char uid[32];

		snprintf(uid, sizeof(uid), "pod-%d", i);
		fleet_pod(e, uid, "a", whole(1), i < 10 ? guarded : free);
	}
	for (uint32_t allowed = 1; allowed <= 3; allowed++) {
		struct request r = whole(4);

		CHECK_INT(cluster_budget_allow(c, 1, allowed), 0);
		CHECK_INT(preempt_find(e, &r, 10, &p), 0);
		CHECK_INT(p.cost.violations, 0);
		CHECK_INT(p.cost.victims, 4);
		uint32_t guarded = 0;
		for (uint32_t i = 0; i < p.victims_count; i++)
			guarded += cluster_pod(c, p.victims[i])->budget;
		CHECKF(guarded <= allowed, "%u", (unsigned)guarded);
		preemption_done(&p);
	}
	engine_free(e);
}

TEST(who_never_ends_is_not_waited_for_where_that_can_be)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1 });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 1 });
	fleet_pod(e, "service", "a", whole(1), (struct pod_spec){ .endless = 1 });
	fleet_pod(e, "job", "b", whole(1), (struct pod_spec){ .priority = 5, .budget = 1 });
	CHECK_STR(outcome(e, whole(1), PREEMPT_AWAITS), "job > b");
	CHECK_STR(outcome(e, whole(1), 10), "service > a");
	/* One that is being deleted ends. */
	cluster_pod_ending(c, cluster_pod_find(c, "service"));
	CHECK_STR(outcome(e, whole(1), PREEMPT_AWAITS), "service > a");
	/* And if there is nobody else. */
	cluster_pod_remove(c, cluster_pod_find(c, "job"));
	fleet_pod(e, "server", "b", whole(1), (struct pod_spec){ .priority = 5, .endless = 1 });
	cluster_pod_remove(c, cluster_pod_find(c, "service"));
	fleet_pod(e, "other", "a", whole(1), (struct pod_spec){ .priority = 4, .endless = 1 });
	CHECK_STR(outcome(e, whole(1), PREEMPT_AWAITS), "other > a");
	engine_free(e);
}

TEST(who_is_going_anyway_costs_nothing_more)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 4 });
	fleet_pod(e, "low", "a", whole(2), PRIORITY(0));
	fleet_pod(e, "one", "b", whole(1), (struct pod_spec){ .priority = 8, .budget = 1 });
	fleet_pod(e, "two", "b", whole(1), PRIORITY(9));
	fleet_pod(e, "wide", "b", whole(2), PRIORITY(9));
	CHECK_STR(outcome(e, whole(2), 10), "low > a");
	cluster_pod_ending(c, cluster_pod_find(c, "one"));
	CHECK_STR(outcome(e, whole(2), 10), "low > a");
	CHECK_STR(outcome(e, whole(1), 10), "one > b");
	cluster_pod_ending(c, cluster_pod_find(c, "two"));
	CHECK_STR(outcome(e, whole(2), 10), "two one > b");
	/* As few as suffice. */
	cluster_pod_ending(c, cluster_pod_find(c, "wide"));
	CHECK_STR(outcome(e, whole(2), 10), "wide > b");
	/* Equals are not waited for. */
	CHECK_STR(outcome(e, whole(2), 9), "low > a");
	engine_free(e);
}

TEST(facts_about_a_pod_may_change_while_it_is_there)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });
	fleet_pod(e, "one", "a", whole(1), (struct pod_spec){ .started = 5 });
	fleet_pod(e, "two", "a", whole(1), (struct pod_spec){ .started = 6 });
	CHECK_STR(outcome(e, whole(1), 10), "two > a");
	cluster_pod_started(c, cluster_pod_find(c, "one"), 7);
	CHECK_STR(outcome(e, whole(1), 10), "one > a");
	cluster_pod_budget(c, cluster_pod_find(c, "one"), 1);
	CHECK_STR(outcome(e, whole(1), 10), "two > a");
	cluster_pod_budget(c, cluster_pod_find(c, "one"), 0);
	CHECK_STR(outcome(e, whole(1), 10), "one > a");
	engine_free(e);
}

TEST(the_youngest_goes_and_then_the_first_node)
{
	struct engine *e = fleet_new();

	fleet_node(e, "c", (struct fleet_node){ .gpus = 1 });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 1 });
	fleet_node(e, "a", (struct fleet_node){ .gpus = 1 });
	fleet_pod(e, "on-a", "a", whole(1), (struct pod_spec){ .started = 5 });
	fleet_pod(e, "on-b", "b", whole(1), (struct pod_spec){ .started = 7 });
	fleet_pod(e, "on-c", "c", whole(1), (struct pod_spec){ .started = 7 });
	CHECK_STR(outcome(e, whole(1), 1), "on-b > b");
	engine_free(e);
}

TEST(a_gang_goes_whole_and_counts_whole)
{
	struct engine *e = fleet_new();
	struct request r = whole(1);
	struct preemption p;

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1 });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 1 });
	fleet_node(e, "c", (struct fleet_node){ .gpus = 1 });
	fleet_pod(e, "gang-a", "a", whole(1), (struct pod_spec){ .gang = 7 });
	fleet_pod(e, "gang-b", "b", whole(1), (struct pod_spec){ .gang = 7 });
	fleet_pod(e, "alone", "c", whole(1), PRIORITY(1));
	/* Its priority is lower, so it goes first although it is two pods. */
	CHECK_STR(outcome(e, whole(1), 10), "gang-a gang-b > a");
	CHECK(preempt_find(e, &r, 10, &p) == 0);
	CHECK_INT(p.gangs, 1);
	preemption_done(&p);
	/* At the same priority the single pod is cheaper. */
	engine_remove(e, cluster_pod_find(engine_cluster(e), "alone"));
	fleet_pod(e, "alone", "c", whole(1), PRIORITY(0));
	CHECK_STR(outcome(e, whole(1), 10), "alone > c");
	engine_free(e);
}

TEST(a_gang_with_one_important_pod_is_left_alone)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1 });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 1 });
	fleet_pod(e, "gang-a", "a", whole(1), (struct pod_spec){ .gang = 7 });
	fleet_pod(e, "gang-b", "b", whole(1), (struct pod_spec){ .gang = 7, .priority = 10 });
	CHECK_STR(outcome(e, whole(1), 10), "none");
	CHECK_STR(outcome(e, whole(1), 11), "gang-b gang-a > a");
	engine_free(e);
}

TEST(shares_are_freed_card_by_card)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 2 });
	fleet_pod(e, "half-1", "a", on_gpus(share(500, 0), 1), PRIORITY(1));
	fleet_pod(e, "half-2", "a", on_gpus(share(500, 0), 1), PRIORITY(1));
	fleet_pod(e, "most", "a", on_gpus(share(700, 0), 2), PRIORITY(1));
	fleet_pod(e, "rest", "a", on_gpus(share(300, 0), 2), PRIORITY(1));
	CHECK_STR(outcome(e, share(600, 0), 10), "most > a");
	CHECK_STR(outcome(e, share(500, 0), 10), "most > a");
	/* A whole card needs both of one card, not any two. */
	CHECK_STR(outcome(e, whole(1), 10), "most rest > a");
	engine_free(e);
}

TEST(gpu_memory_alone_can_be_what_is_freed)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1, .mem_mib = 1000 });
	fleet_pod(e, "core", "a", share(600, 0), PRIORITY(1));
	fleet_pod(e, "memory", "a", share(0, 800), PRIORITY(2));
	CHECK_STR(outcome(e, share(0, 500), 10), "memory > a");
	CHECK_STR(outcome(e, share(500, 0), 10), "core > a");
	CHECK_STR(outcome(e, share(500, 500), 10), "memory core > a");
	engine_free(e);
}

TEST(mig_slices_are_freed_where_the_profile_may_begin)
{
	struct engine *e = fleet_new();
	const struct mig_geometry *geometry = mig_geometry_find("a100-40gb");
	const struct cluster *c = engine_cluster(e);
	struct request r = slice("4g.20gb");
	struct preemption p;

	CHECK(geometry != NULL);
	fleet_node(e, "a", (struct fleet_node){ .gpus = 1, .mig = geometry });
	fleet_pod(e, "three-1", "a", slice("3g.20gb"), PRIORITY(1));
	fleet_pod(e, "three-2", "a", slice("3g.20gb"), PRIORITY(1));
	CHECK(preempt_find(e, &r, 10, &p) == 0);
	CHECK_INT(p.victims_count, 1);
	/* 4g begins at slice 0 alone: the victim is the one that sits there. */
	CHECK_INT(cluster_pod(c, p.victims[0])->holds[0].mig_start, 0);
	CHECK_INT(p.decisions[0].assignment.holds[0].mig_start, 0);
	preemption_done(&p);
	CHECK_STR(outcome(e, slice("7g.40gb"), 10), "three-1 three-2 > a");
	CHECK_STR(outcome(e, slice("7g.40gb"), 1), "none");
	engine_free(e);
}

/* GPUs 0-1 and 2-3 are fast pairs; everything else is slow. */
static struct links *two_pairs(void)
{
	static const uint16_t gbps[16] = { 0,  600, 20, 20,  600, 0,  20,  20,
					   20, 20,  0,	600, 20,  20, 600, 0 };
	static const uint32_t nvlink[4] = { 2, 1, 8, 4 };
	struct links *links;

	CHECK(links_new(&(struct links_input){ .count = 4, .gbps = gbps, .nvlink = nvlink },
			&links, NULL) == 0);
	return links;
}

TEST(two_free_gpus_are_not_enough_if_they_are_far_apart)
{
	struct engine *e = fleet_new();
	struct links *links CLEANUP(links_freep) = two_pairs();
	struct request r = whole(2);
	struct preemption p;

	fleet_node(e, "a", (struct fleet_node){ .gpus = 4, .links = links });
	fleet_pod(e, "on-0", "a", on_gpus(whole(1), 1), PRIORITY(2));
	fleet_pod(e, "on-2", "a", on_gpus(whole(1), 4), PRIORITY(1));
	r.asks[0].min_gbps = 400;
	r.asks[0].bandwidth_mode = PICK_REQUIRED;
	CHECK_STR(outcome(e, r, 10), "on-2 > a");
	CHECK(preempt_find(e, &r, 10, &p) == 0);
	CHECK_INT(p.decisions[0].assignment.gpus, 0xc);
	preemption_done(&p);
	CHECK_STR(outcome(e, r, 1), "none");
	r.asks[0].min_gbps = 700;
	CHECK_STR(outcome(e, r, 10), "none");
	engine_free(e);
}

TEST(pods_without_gpus_are_spared_when_gpus_are_short)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1, .cpu_milli = 4000 });
	fleet_pod(e, "web", "a", cpu(2000), PRIORITY(0));
	fleet_pod(e, "train", "a", whole(1), PRIORITY(5));
	CHECK_STR(outcome(e, whole(1), 10), "train > a");
	CHECK_STR(outcome(e, cpu(3000), 10), "web > a");
	engine_free(e);
}

TEST(the_required_domain_is_kept)
{
	struct engine *e = fleet_new();
	struct request r = whole(1);

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1, .leaf = "leaf-1" });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 1, .leaf = "leaf-2" });
	fleet_pod(e, "cheap", "a", whole(1), PRIORITY(0));
	fleet_pod(e, "dear", "b", whole(1), PRIORITY(9));
	r.domain = cluster_domain_named(engine_cluster(e), "leaf-2");
	CHECK_STR(outcome(e, r, 10), "dear > b");
	CHECK_STR(outcome(e, r, 9), "none");
	engine_free(e);
}

TEST(what_no_eviction_cures_is_not_tried)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 1, .taint = "dedicated" });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 1, .unschedulable = true });
	CHECK_STR(outcome(e, whole(1), 10), "none");
	CHECK_STR(outcome(e, cpu(1000000), 10), "none");
	engine_free(e);
}

TEST(a_full_node_is_searched_greedily_and_well)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 16 });
	for (int i = 0; i < 4; i++) {
		char uid[32];

		snprintf(uid, sizeof(uid), "guarded-%d", i);
		fleet_pod(e, uid, "a", whole(1), (struct pod_spec){ .budget = 1 });
	}
	for (int i = 0; i < 10; i++) {
		char uid[32];

		snprintf(uid, sizeof(uid), "pod-%d", i);
		fleet_pod(e, uid, "a", whole(1), (struct pod_spec){ .started = (uint64_t)i });
	}
	fleet_pod(e, "pair", "a", whole(2), (struct pod_spec){ .started = 0 });
	CHECK_STR(outcome(e, whole(1), 10), "pod-9 > a");
	CHECK_STR(outcome(e, whole(2), 10), "pair > a");
	CHECK_STR(outcome(e, whole(3), 10), "pair pod-9 > a");
	engine_free(e);
}

/* The bounds promise room on every node; only the last of them has the links. */
TEST(a_solution_is_found_however_far_down_the_list_it_is)
{
	struct engine *e = fleet_new();
	struct links *links CLEANUP(links_freep) = two_pairs();
	struct request r = whole(2);

	for (unsigned i = 0; i <= PREEMPT_NODES + 8; i++) {
		char name[32], uid[32];
		bool last = i == PREEMPT_NODES + 8;

		snprintf(name, sizeof(name), "node-%05u", i);
		snprintf(uid, sizeof(uid), "pod-%05u", i);
		fleet_node(e, name,
			   (struct fleet_node){ .gpus = 4, .links = last ? links : NULL });
		fleet_pod(e, uid, name, whole(4), PRIORITY(0));
	}
	r.asks[0].min_gbps = 400;
	r.asks[0].bandwidth_mode = PICK_REQUIRED;
	CHECK_STR(outcome(e, r, 10), "pod-01032 > node-01032");
	engine_free(e);
}

TEST(costs_compare_part_by_part)
{
	const struct preempt_cost base = { 1, 2, 3, 4, 5, 6 };
	struct preempt_cost none = PREEMPT_COST_NONE, sum = PREEMPT_COST_NONE, c;

	CHECK(preempt_cost_compare(&none, &base) < 0);
	c = base, c.violations--;
	CHECK(preempt_cost_compare(&c, &base) < 0);
	c = base, c.highest++;
	CHECK(preempt_cost_compare(&c, &base) > 0);
	c = base, c.priorities++;
	CHECK(preempt_cost_compare(&c, &base) > 0);
	c = base, c.ending++;
	CHECK(preempt_cost_compare(&c, &base) > 0);
	c = base, c.started++;
	CHECK(preempt_cost_compare(&c, &base) < 0);
	CHECK(preempt_cost_compare(&base, &base) == 0);
	preempt_cost_add(&sum, &base);
	CHECK(preempt_cost_compare(&sum, &base) == 0);
	preempt_cost_add(&sum, &(struct preempt_cost){ 0, 1, 3, 9, 2, 0 });
	CHECK_INT(sum.started, 2);
	preempt_cost_add(&sum, &(struct preempt_cost){ 0, 1, 4, 9, 8, 1 });
	CHECK_INT(sum.started, 8);
	CHECK_INT(sum.victims, 4);
	CHECK_INT(sum.ending, 7);
}

/* As outcome(), of waiting on the node alone. */
static const char *awaited(struct engine *e, struct request r, int32_t priority, const char *node)
{
	static char text[512];
	struct cluster *c = engine_cluster(e);
	uint64_t before = cluster_digest(c);
	struct preemption p;
	int rc = preempt_await(e, &r, priority, cluster_node_find(c, node), &p);

	CHECK(cluster_digest(c) == before);
	if (rc < 0)
		return rc == -ENOENT ? "none" : "error";
	text[0] = '\0';
	for (uint32_t i = 0; i < p.victims_count; i++) {
		strcat(text, cluster_pod(c, p.victims[i])->uid);
		strcat(text, " ");
	}
	CHECK_INT(p.cost.victims + p.cost.ending, p.victims_count);
	CHECK_STR(cluster_node(c, p.decisions[0].node)->name, node);
	preemption_done(&p);
	return text;
}

TEST(those_who_are_going_anyway_are_awaited)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 8 });
	fleet_node(e, "b", (struct fleet_node){ .gpus = 8 });
	fleet_pod(e, "stays", "a", whole(2), PRIORITY(1));
	fleet_pod(e, "one", "a", whole(1), ((struct pod_spec){ .priority = 1, .ending = 1 }));
	fleet_pod(e, "two", "a", whole(2), ((struct pod_spec){ .priority = 2, .ending = 1 }));
	fleet_pod(e, "three", "a", whole(3), ((struct pod_spec){ .priority = 5, .ending = 1 }));
	fleet_pod(e, "other", "b", whole(8), PRIORITY(0));
	CHECK_STR(awaited(e, whole(1), 10, "a"), "one ");
	CHECK_STR(awaited(e, whole(3), 10, "a"), "two one ");
	CHECK_STR(awaited(e, whole(4), 10, "a"), "three one ");
	CHECK_STR(awaited(e, whole(6), 10, "a"), "three two one ");
	/* Nobody else is asked to go, and whom it may not preempt it does not wait for. */
	CHECK_STR(awaited(e, whole(7), 10, "a"), "none");
	CHECK_STR(awaited(e, whole(4), 5, "a"), "none");
	CHECK_STR(awaited(e, whole(3), 5, "a"), "two one ");
	CHECK_STR(awaited(e, whole(1), 10, "b"), "none");
	engine_free(e);
}

TEST_MAIN()
