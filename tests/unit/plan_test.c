/* SPDX-License-Identifier: Apache-2.0 */
#include "engine_fixture.h"

#include <errno.h>

#include "engine/plan.h"

static int plan_put(struct plan *p, struct engine *e, const char *uid, const char *node,
		    struct request r, uint32_t *pod)
{
	struct decision d;

	r.node = cluster_node_find(engine_cluster(e), node);
	CHECK_VERDICT(engine_decide(e, &r, &d), FITS);
	return plan_place(p, &(struct pod_spec){ .uid = uid, .name = uid }, &r, &d, pod);
}

TEST(rollback_restores_every_figure_and_every_number)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	static const char *const uids[] = { "x", "y", "z" };
	uint32_t a = box_add(e, &(struct box)BOX("a", 4)), pods[3], pod;
	struct plan *p;
	uint64_t before;

	box_add(e, &(struct box)BOX("b", 4));
	pods[0] = put(e, "x", a, whole(1));
	pods[1] = put(e, "y", a, share(500, 100));
	pods[2] = put(e, "z", a, cpu(3000));
	before = cluster_digest(c);
	p = plan_begin(e);
	CHECK_INT(plan_put(p, e, "new-1", "b", whole(4), &pod), 0);
	CHECK_INT(plan_remove(p, pods[1]), 0);
	CHECK_INT(plan_put(p, e, "new-2", "a", whole(3), &pod), 0);
	CHECK_INT(pod, pods[1]); /* the number is used while y is away */
	CHECK_INT(plan_remove(p, pods[0]), 0);
	CHECK_INT(plan_remove(p, pods[2]), 0);
	CHECK_INT(plan_remove(p, pod), 0); /* one of the plan's own */
	CHECK_INT(plan_put(p, e, "new-3", "a", whole(4), &pod), 0);
	CHECK_SOUND(e);
	CHECK(cluster_digest(c) != before);
	plan_rollback(p);
	CHECK_SOUND(e);
	CHECK(cluster_digest(c) == before);
	CHECK_INT(cluster_pods_count(c), 3);
	for (int i = 0; i < 3; i++) {
		CHECK_STR(cluster_pod(c, pods[i])->uid, uids[i]);
		CHECK_INT(cluster_pod_find(c, uids[i]), pods[i]);
	}
	engine_free(e);
}

TEST(commit_keeps_what_was_done)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 1)), victim = put(e, "victim", a, whole(1)),
		 pod;
	struct plan *p = plan_begin(e);
	uint64_t planned;

	CHECK_STR(choice(e, whole(1)), "no-free-gpu");
	CHECK_INT(plan_remove(p, victim), 0);
	/* Later steps see what the earlier ones left. */
	CHECK_STR(choice(e, whole(1)), "a");
	CHECK_INT(plan_put(p, e, "preemptor", "a", whole(1), &pod), 0);
	planned = cluster_digest(c);
	plan_commit(p);
	CHECK(cluster_digest(c) == planned);
	CHECK_INT(cluster_pod_find(c, "victim"), POD_NONE);
	CHECK_INT(cluster_pod_find(c, "preemptor"), pod);
	CHECK_STR(choice(e, whole(1)), "no-free-gpu");
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(the_same_pod_can_leave_and_take_its_place_again)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 2)), pod = put(e, "pod", a, whole(1)), again;
	uint64_t before = cluster_digest(c);

	for (int commit = 0; commit < 2; commit++) {
		struct plan *p = plan_begin(e);

		CHECK_INT(plan_remove(p, pod), 0);
		CHECK_INT(plan_put(p, e, "pod", "a", whole(1), &again), 0);
		CHECK_INT(again, pod);
		CHECK(cluster_digest(c) == before);
		if (commit)
			plan_commit(p);
		else
			plan_rollback(p);
		CHECK(cluster_digest(c) == before);
		CHECK_INT(cluster_pod_find(c, "pod"), pod);
	}
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(a_step_that_fails_leaves_the_plan_as_it_was)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	uint32_t a = box_add(e, &(struct box)BOX("a", 3)), old = put(e, "old", a, whole(1)), pod;
	uint64_t before = cluster_digest(c), planned;
	struct request r = whole(1);
	struct plan *p = plan_begin(e);
	struct decision stale;

	CHECK_VERDICT(engine_decide(e, &r, &stale), FITS);
	CHECK_INT(plan_put(p, e, "new", "a", whole(1), &pod), 0);
	planned = cluster_digest(c);
	CHECK_INT(plan_put(p, e, "new", "a", whole(1), &pod), -EEXIST);
	CHECK_INT(plan_put(p, e, "old", "a", whole(1), &pod), -EEXIST);
	CHECK_INT(plan_place(p, &(struct pod_spec){ .uid = "late" }, &r, &stale, &pod), -ENOSPC);
	stale.node = 77;
	CHECK_INT(plan_place(p, &(struct pod_spec){ .uid = "late" }, &r, &stale, &pod), -ENOENT);
	CHECK(cluster_digest(c) == planned);
	CHECK_INT(plan_remove(p, old), 0);
	CHECK_INT(plan_put(p, e, "old", "a", on_gpus(whole(1), 4), &pod), 0);
	plan_rollback(p);
	CHECK(cluster_digest(c) == before);
	CHECK_INT(cluster_pod_find(c, "old"), old);
	CHECK_INT(cluster_pods_count(c), 1);
	CHECK_SOUND(e);
	engine_free(e);
}

/* More shares than seats have joined the card since it took its seat. */
TEST(a_pod_on_a_seat_gets_its_seat_back)
{
	struct engine *e = engine_with((struct engine_config){ .cluster.seats = 2 });
	uint32_t a = box_add(e, &(struct box)BOX("a", 1)), seat = put(e, "seat", a, share(0, 0));
	struct plan *p = plan_begin(e);
	uint64_t before;

	put(e, "1", a, share(100, 0));
	put(e, "2", a, share(100, 0));
	before = cluster_digest(engine_cluster(e));
	CHECK_INT(plan_remove(p, seat), 0);
	plan_rollback(p);
	CHECK(cluster_digest(engine_cluster(e)) == before);
	CHECK_SOUND(e);
	engine_free(e);
}

/* More is held than the card has by now: who was there comes back all the same. */
TEST(a_pod_on_a_card_that_reports_less_memory_comes_back)
{
	struct engine *e = fleet_new();
	struct cluster *c = engine_cluster(e);
	struct box b = BOX("a", 1);
	uint32_t a = box_add(e, &b), pod = put(e, "1", a, share(500, 9000));
	struct plan *p;
	uint64_t before;

	put(e, "2", a, share(100, 7000));
	b.gpus[0].mem_mib = 12000;
	box_change(e, a, &b);
	before = cluster_digest(c);
	p = plan_begin(e);
	CHECK_INT(plan_remove(p, pod), 0);
	plan_rollback(p);
	CHECK(cluster_digest(c) == before);
	CHECK_SOUND(e);
	engine_free(e);
}

TEST(an_empty_plan_and_none_are_nothing)
{
	struct engine *e = fleet_new();
	uint64_t before = cluster_digest(engine_cluster(e));

	plan_rollback(plan_begin(e));
	plan_commit(plan_begin(e));
	plan_rollback(NULL);
	plan_commit(NULL);
	CHECK(cluster_digest(engine_cluster(e)) == before);
	engine_free(e);
}

TEST_MAIN()
