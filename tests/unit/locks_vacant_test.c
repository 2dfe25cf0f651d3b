/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of nodes that are no more: they go when they have no entry, whoever else wants them. */
#include "locks_stage.h"
#include "scheduler/locks_private.h"
#include <assert.h>

#define ENTRY                                                                        \
	"[{\"pod\":\"u-x\",\"ns\":\"ml\",\"name\":\"x\",\"rv\":\"7\",\"attempt\":9," \
	"\"gpus\":[{\"uuid\":\"GPU-0\",\"coreMilli\":1000,\"memoryMiB\":1000}]}]"

/* With the Lease of a node on which there was a pod. */
static void open_vacant(void)
{
	fake_start();
	fake_put("gpus-n1", "n1", "[]");
	stage_run(LOCKS_BY_NODE);
	stage_begin();
	strbuf_reset(&fake.lines);
}

/* Until it has been looked for nodes so many times more: there is one Lease. */
static void look(unsigned times)
{
	unsigned until = stage.nodes_asked + times;

	while (stage.nodes_asked < until || locks_in_flight(stage.locks))
		uv_run(&s.loop, UV_RUN_ONCE);
}

static void until_gone(const char *lease)
{
	while (fake_lease(lease))
		uv_run(&s.loop, UV_RUN_ONCE);
}

TEST(a_lease_goes_after_its_node)
{
	open_vacant();
	stage.nodeless = true;
	until_gone("gpus-n1");
	stage_settle();
	CHECK_STR(fake.lines.s, "DELETE gpus-n1 GET gpus-n1 PUT gpus-n1 PUT gpus-n1 ");
	CHECK(!fake.hasty);
	while (stage.locks->cells.len) /* the watch hears of it, and it is forgotten */
		uv_run(&s.loop, UV_RUN_ONCE);
	stage_close();
}

TEST(a_lease_stays_with_its_node)
{
	open_vacant();
	look(5);
	CHECK_STR(fake.lines.s, "");
	stage_close();
}

TEST(a_node_that_is_missing_once_keeps_its_lease)
{
	open_vacant();
	stage.flickering = true;
	look(6);
	CHECK_STR(fake.lines.s, "");
	stage_close();
}

TEST(a_lease_that_holds_something_outlives_its_node)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	struct fake_pod *pod = fake_pod("a");
	assert(pod);
	snprintf(pod->node, sizeof(pod->node), "n1");
	pod->attempt = 1;
	lock_bound(a->lock);
	fake_put("gpus-n2", "n2", "[]");
	stage.nodeless = true;
	until_gone("gpus-n2");
	CHECK(strstr(stage_entries("gpus-n1"), "u-a"));
	CHECK(!fake_lease("gpus-n1")->deleting);
	/* The pod goes last. */
	pod->exists = false;
	locks_pod_over(stage.locks, "u-a");
	until_gone("gpus-n1");
	CHECK(!fake.hasty);
	stage_close();
}

TEST(who_is_not_active_deletes_nothing)
{
	open_vacant();
	locks_activate(stage.locks, false);
	stage.nodeless = true;
	uv_sleep(50); /* it would have been due by then */
	stage_wait(stage_take("n2", "a", "GPU-0"));
	CHECK_STR(fake.lines.s, "POST gpus-n2 ");
	locks_activate(stage.locks, true);
	until_gone("gpus-n1");
	stage_close();
}

static void rival_locks(void)
{
	fake_pod_add("x", 7);
	fake_put("gpus-n1", "n1", ENTRY);
}

TEST(a_lock_that_another_has_taken_meanwhile_stays)
{
	open_vacant();
	fake.before_delete = rival_locks;
	stage.nodeless = true;
	stage_until(&stage.guests, "+n1/u-x:1 ");
	CHECK(!fake_lease("gpus-n1")->deleting);
	CHECK_STR(stage_entries("gpus-n1"), ENTRY);
	stage_close();
}

TEST(a_lock_that_another_has_taken_after_the_deletion_began_stays)
{
	open_vacant();
	fake.before_put = rival_locks;
	stage.nodeless = true;
	stage_until(&stage.guests, "+n1/u-x:1 ");
	CHECK(fake_lease("gpus-n1")->deleting && fake_lease("gpus-n1")->finalizer);
	CHECK_STR(stage_entries("gpus-n1"), ENTRY);
	stage_close();
}

/* Whoever deletes it, us or another: one that has come back is locked, at whatever moment. */
TEST(a_node_that_comes_back_is_locked_in_whatever_is_there)
{
	static const char *const moments[] = { "DELETE gpus-n1 ", "GET gpus-n1 ", "PUT gpus-n1 ",
					       "PUT gpus-n1 PUT gpus-n1 " };

	for (size_t i = 0; i < ARRAY_SIZE(moments); i++) {
		open_vacant();
		stage.nodeless = true;
		stage_until(&fake.lines, moments[i]);
		stage.nodeless = false;
		struct taken *a = stage_take("n1", "a", "GPU-0");
		stage_wait(a);
		CHECK_INT(a->outcome, LOCK_TAKEN);
		stage_settle();
		CHECK(strstr(stage_entries("gpus-n1"), "u-a"));
		CHECK(fake_lease("gpus-n1")->finalizer);
		CHECK(!fake.hasty && !fake.overbooked);
		stage_close();
	}
}

TEST(a_deletion_that_is_refused_is_tried_again)
{
	open_vacant();
	fake.fault = FAKE_FORBIDDEN;
	stage.nodeless = true;
	stage_until(&fake.lines, "DELETE gpus-n1 GET gpus-n1 DELETE gpus-n1 ");
	fake.fault = FAKE_FINE;
	until_gone("gpus-n1");
	stage_close();
}

TEST(every_lease_of_a_card_goes_after_its_node)
{
	stage_open(LOCKS_BY_GPU);
	struct taken *a = stage_take("n1", "a", "GPU-1");
	stage_wait(a);
	fake_pod("a")->exists = false;
	locks_release(stage.locks, &a->lock, 1);
	stage_settle();
	stage.nodeless = true;
	for (int i = 0; i < STAGE_CARDS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "gpu-n1-%d", i);
		until_gone(name);
	}
	stage_settle();
	stage.nodeless = false;
	struct taken *b = stage_take("n1", "b", "GPU-1,GPU-2");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK(!fake.hasty && !fake.overbooked);
	stage_close();
}

TEST_MAIN()
