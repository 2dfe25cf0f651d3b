/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include <errno.h>

#include "engine/gang.h"
#include "engine/preempt.h"

#define PRIORITY(n) ((struct pod_spec){ .priority = (n) })
#define MEMBERS_MAX 8

struct gang {
	struct request request;
	uint32_t members;
	uint8_t leaf_rules;
};

/* The victims by name, then the nodes of the members: "x y > a b". */
static const char *outcome(struct engine *e, struct gang gang, int32_t priority)
{
	static char text[512];
	static const char *const uids[MEMBERS_MAX] = { "m0", "m1", "m2", "m3",
						       "m4", "m5", "m6", "m7" };
	struct cluster *c = engine_cluster(e);
	struct gang_planner *planner = gang_planner_new(e);
	struct pod_spec pods[MEMBERS_MAX];
	struct gang_class members = { &gang.request, pods, gang.members };
	struct gang_spec spec = {
		.classes = &members,
		.classes_count = 1,
		.leaf_rules = gang.leaf_rules,
	};
	uint64_t before = cluster_digest(c);
	struct err err = ERR_INIT;
	struct preemption p;
	int rc;

	CHECK(planner != NULL);
	for (uint32_t i = 0; i < gang.members; i++)
		pods[i] = (struct pod_spec){ .uid = uids[i], .priority = priority, .gang = 99 };
	rc = preempt_gang(e, planner, &spec, priority, &p, &err);
	CHECK(cluster_digest(c) == before);
	CHECK(cluster_check(c) == NULL);
	gang_planner_free(planner);
	snprintf(text, sizeof(text), "%s", rc == -ENOENT ? "none" : err.text);
	if (rc < 0)
		return text;
	for (uint32_t i = 0; i < p.victims_count; i++) {
		strcat(text, cluster_pod(c, p.victims[i])->uid);
		strcat(text, " ");
	}
	strcat(text, ">");
	for (uint32_t i = 0; i < p.decisions_count; i++) {
		strcat(text, " ");
		strcat(text, cluster_node(c, p.decisions[i].node)->name);
	}
	preemption_done(&p);
	return text;
}

static void leaf_of_two(struct engine *e, const char *leaf, const char *a, const char *b)
{
	fleet_node(e, a, (struct fleet_node){ .gpus = 4, .leaf = leaf });
	fleet_node(e, b, (struct fleet_node){ .gpus = 4, .leaf = leaf });
}

TEST(a_gang_that_fits_needs_no_victims)
{
	struct engine *e = fleet_new();

	leaf_of_two(e, "leaf-1", "a", "b");
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, 0 }, 10), "> a b");
	engine_free(e);
}

TEST(the_leaf_with_the_fewest_victims_is_cleared)
{
	struct engine *e = fleet_new();

	leaf_of_two(e, "leaf-1", "a", "b");
	leaf_of_two(e, "leaf-2", "c", "d");
	fleet_pod(e, "p1", "a", whole(1), PRIORITY(0));
	fleet_pod(e, "p2", "b", whole(2), PRIORITY(0));
	fleet_pod(e, "p3", "c", whole(1), PRIORITY(0));
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, GANG_REQUIRED }, 10), "p3 > c d");
	engine_free(e);
}

TEST(the_leaf_with_the_least_important_victims_is_cleared)
{
	struct engine *e = fleet_new();

	leaf_of_two(e, "leaf-1", "a", "b");
	leaf_of_two(e, "leaf-2", "c", "d");
	fleet_pod(e, "low-1", "a", whole(4), PRIORITY(1));
	fleet_pod(e, "low-2", "b", whole(4), PRIORITY(1));
	fleet_pod(e, "high", "c", whole(1), PRIORITY(5));
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, GANG_REQUIRED }, 10),
		  "low-1 low-2 > a b");
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, GANG_REQUIRED }, 1), "none");
	engine_free(e);
}

TEST(leaves_alike_are_cleared_in_the_order_of_the_fabric)
{
	for (int first = 0; first < 2; first++) {
		struct engine *e = fleet_new();

		leaf_of_two(e, first ? "leaf-2" : "leaf-10", first ? "c" : "a", first ? "d" : "b");
		leaf_of_two(e, first ? "leaf-10" : "leaf-2", first ? "a" : "c", first ? "b" : "d");
		for (char node[] = "a"; *node <= 'd'; ++*node)
			fleet_pod(e, node, node, whole(4), PRIORITY(0));
		CHECK_STR(outcome(e, (struct gang){ whole(4), 2, GANG_REQUIRED }, 10),
			  "c d > c d");
		engine_free(e);
	}
}

TEST(a_gang_waits_for_those_who_are_going_anyway)
{
	struct engine *e = fleet_new();
	struct pod_spec ending = { .priority = 8, .ending = 1 };

	leaf_of_two(e, "leaf-1", "a", "b");
	leaf_of_two(e, "leaf-2", "c", "d");
	fleet_pod(e, "on-a", "a", whole(4), PRIORITY(0));
	fleet_pod(e, "on-b", "b", whole(4), ending);
	fleet_pod(e, "on-c", "c", whole(4), ending);
	fleet_pod(e, "on-d", "d", whole(4), PRIORITY(5));
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, GANG_PREFERRED }, 10), "on-b on-c > b c");
	engine_free(e);
}

TEST(leaf_rules_are_kept)
{
	struct engine *e = fleet_new();

	leaf_of_two(e, "leaf-1", "a", "b");
	leaf_of_two(e, "leaf-2", "c", "d");
	fleet_pod(e, "firm-1", "a", whole(1), PRIORITY(50));
	fleet_pod(e, "firm-2", "c", whole(1), PRIORITY(50));
	fleet_pod(e, "low", "d", whole(1), PRIORITY(0));
	/* One node of each leaf can be cleared, which is not a leaf. */
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, GANG_REQUIRED }, 10), "none");
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, GANG_PREFERRED }, 10), "low > b d");
	engine_free(e);
}

TEST(on_a_shared_node_only_what_is_missing_is_freed)
{
	struct engine *e = fleet_new();

	fleet_node(e, "a", (struct fleet_node){ .gpus = 4, .leaf = "leaf-1" });
	fleet_pod(e, "p1", "a", whole(1), PRIORITY(1));
	fleet_pod(e, "p2", "a", whole(1), PRIORITY(2));
	CHECK_STR(outcome(e, (struct gang){ whole(1), 3, 0 }, 10), "p1 > a a a");
	CHECK_STR(outcome(e, (struct gang){ whole(1), 4, 0 }, 10), "p2 p1 > a a a a");
	CHECK_STR(outcome(e, (struct gang){ whole(1), 5, 0 }, 10), "none");
	engine_free(e);
}

TEST(a_gang_of_victims_is_evicted_whole)
{
	struct engine *e = fleet_new();

	leaf_of_two(e, "leaf-1", "a", "b");
	leaf_of_two(e, "leaf-2", "c", "d");
	fleet_pod(e, "g1", "a", whole(4), (struct pod_spec){ .gang = 3 });
	fleet_pod(e, "g2", "b", whole(4), (struct pod_spec){ .gang = 3 });
	fleet_pod(e, "g3", "c", whole(1), (struct pod_spec){ .gang = 3 });
	fleet_pod(e, "firm", "d", whole(1), PRIORITY(50));
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, GANG_REQUIRED }, 10), "g1 g2 g3 > a b");
	engine_free(e);
}

TEST(no_member_goes_for_another_of_its_gang)
{
	struct engine *e = fleet_new();

	leaf_of_two(e, "leaf-1", "a", "b");
	fleet_pod(e, "own", "a", whole(4), (struct pod_spec){ .gang = 99 });
	fleet_pod(e, "other", "b", whole(4), PRIORITY(5));
	CHECK_STR(outcome(e, (struct gang){ whole(4), 1, 0 }, 10), "other > b");
	CHECK_STR(outcome(e, (struct gang){ whole(4), 2, 0 }, 10), "none");
	engine_free(e);
}

TEST(a_spec_that_cannot_be_planned_is_an_error)
{
	struct engine *e = fleet_new();
	const char *text;

	fleet_node(e, "a", (struct fleet_node){ .gpus = 4 });
	text = outcome(e, (struct gang){ whole(1), 0, 0 }, 10);
	CHECK(strcmp(text, "none") != 0 && !strchr(text, '>'));
	engine_free(e);
}

TEST_MAIN()
