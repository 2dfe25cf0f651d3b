/* SPDX-License-Identifier: Apache-2.0 */
/* Locks by node: one writer for each Lease, and what it does when things go wrong. */
#include "locks_stage.h"
#include <assert.h>

#define ENTRY(pod, rv, attempt, gpu)                                                     \
	"{\"pod\":\"u-" pod "\",\"ns\":\"ml\",\"name\":\"" pod "\",\"rv\":\"" rv         \
	"\",\"attempt\":" attempt ",\"gpus\":[{\"uuid\":\"" gpu "\",\"coreMilli\":1000," \
	"\"memoryMiB\":1000}]}"
#define GANG_ENTRY(pod, rv, attempt, gpu)                                               \
	"{\"pod\":\"u-" pod "\",\"ns\":\"ml\",\"name\":\"" pod "\",\"rv\":\"" rv        \
	"\",\"attempt\":" attempt ",\"gang\":{\"name\":\"g\",\"members\":2},\"gpus\":[" \
	"{\"uuid\":\"" gpu "\",\"coreMilli\":1000,\"memoryMiB\":1000}]}"

TEST(the_mode_is_recorded_before_the_first_lock)
{
	fake_start();
	stage_run(LOCKS_BY_NODE);
	struct lock_hold hold = { .uuid = "GPU-0", .core_milli = 1 };
	struct lock_entry entry = { .uid = "u",
				    .namespace = "ml",
				    .name = "a",
				    .version = "1",
				    .attempt = 1,
				    .holds = &hold,
				    .holds_count = 1 };
	struct lock *lock;
	CHECK_INT(locks_take(stage.locks, "n1", &entry, stage_done, NULL, &lock, NULL), -EAGAIN);
	stage_begin();
	CHECK_STR(fake.lines.s, "POST lock-mode ");
	CHECK_STR(fake_lease("lock-mode")->holder, "node");
	entry.attempt = 0;
	CHECK_INT(locks_take(stage.locks, "n1", &entry, stage_done, NULL, &lock, NULL), -EINVAL);
	stage_close();
}

TEST(the_other_mode_is_wrong_while_there_are_locks_and_changed_otherwise)
{
	for (int locked = 0; locked < 2; locked++) {
		fake_start();
		struct fake_lease *mode = fake_put("lock-mode", "", NULL);
		snprintf(mode->holder, sizeof(mode->holder), "gpu");
		fake_put("gpu-n1-0", "n1", locked ? "[" ENTRY("a", "7", "1", "GPU-0") "]" : "[]");
		stage_run(LOCKS_BY_NODE);
		while (!stage.ready && !stage.wrong[0])
			uv_run(&s.loop, UV_RUN_ONCE);
		CHECK_INT(stage.ready, !locked);
		CHECK(!locked || strstr(stage.wrong, "--locks=gpu"));
		CHECK_STR(mode->holder, locked ? "gpu" : "node");
		stage_close();
	}
}

TEST(the_other_mode_is_wrong_also_where_its_record_was_deleted)
{
	fake_start();
	fake_put("gpu-n1-0", "n1", "[" ENTRY("a", "7", "1", "GPU-0") "]");
	stage_run(LOCKS_BY_NODE);
	while (!stage.wrong[0])
		uv_run(&s.loop, UV_RUN_ONCE);
	CHECK(strstr(stage.wrong, "--locks=gpu and 1 of its leases"));
	CHECK(!fake_lease("lock-mode"));
	stage_close();
}

TEST(a_mode_whose_record_was_deleted_is_recorded_again)
{
	fake_start();
	fake_put("gpus-n1", "n1", "[" ENTRY("a", "7", "1", "GPU-0") "]");
	stage_run(LOCKS_BY_NODE);
	stage_begin();
	CHECK_STR(fake_lease("lock-mode")->holder, "node");
	stage_close();
}

TEST(what_is_decided_together_goes_in_one_write)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	struct taken *b = stage_take("n1", "b", "GPU-1,GPU-2");
	struct taken *c = stage_take("n2", "c", "GPU-0");
	struct taken *d = stage_take("n1", "d", "GPU-0");
	stage_settle();
	CHECK(a->done && b->done && c->done && d->done);
	CHECK_INT(a->outcome, LOCK_TAKEN);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK_INT(c->outcome, LOCK_TAKEN);
	CHECK_INT(d->outcome, LOCK_LOST);
	CHECK(strstr(d->why, "ml/a"));
	CHECK_INT(fake_count(fake.lines.s, "gpus-n1"), 1);
	CHECK_INT(fake.most_entries, 2);
	CHECK(fake_lease("gpus-n1")->finalizer);
	CHECK_STR(fake_lease("gpus-n1")->node, "n1");
	CHECK_STR(stage.guests.s, "");
	CHECK(locks_has(stage.locks, "u-a") && !locks_has(stage.locks, "u-d"));
	CHECK(!locks_has_guest(stage.locks, "u-a"));
	stage_close();
}

TEST(what_comes_while_a_write_is_on_its_way_goes_with_the_next)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	while (!locks_in_flight(stage.locks))
		uv_run(&s.loop, UV_RUN_NOWAIT);
	stage_take("n1", "b", "GPU-1");
	stage_take("n1", "c", "GPU-2");
	stage_settle();
	CHECK(a->done);
	CHECK_STR(fake.lines.s, "POST gpus-n1 PUT gpus-n1 ");
	CHECK_INT(fake_count(stage_entries("gpus-n1"), "\"pod\""), 3);
	stage_close();
}

static void rival_takes_0(void)
{
	fake_put("gpus-n1", "n1", "[" ENTRY("x", "9", "77", "GPU-0") "]");
}

TEST(after_a_conflict_each_is_judged_on_what_is_there)
{
	stage_open(LOCKS_BY_NODE);
	fake_pod_add("x", 9);
	fake_put("gpus-n1", "n1", "[]");
	fake.before_put = rival_takes_0;
	struct taken *a = stage_take("n1", "a", "GPU-0");
	struct taken *b = stage_take("n1", "b", "GPU-1");
	stage_wait(a);
	stage_wait(b);
	CHECK_INT(a->outcome, LOCK_LOST);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK(!fake.overbooked);
	CHECK(strstr(stage_entries("gpus-n1"), "\"u-x\""));
	CHECK(strstr(stage.guests.s, "+n1/u-x:1 ") && locks_has_guest(stage.locks, "u-x"));
	CHECK(metric_value(metrics_find(s.metrics, "gpu_scheduler_lock_conflicts_total"),
			   METRIC_NO_LABELS) >= 1);
	stage_close();
}

TEST(a_lost_answer_is_looked_up)
{
	static const enum fake_fault faults[] = { FAKE_LOST, FAKE_UNDONE };
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		for (int exists = 0; exists < 2; exists++) {
			fake_start();
			if (exists)
				fake_put("gpus-n1", "n1", "[]");
			stage_run(LOCKS_BY_NODE);
			stage_begin();
			strbuf_reset(&fake.lines);
			fake.fault = faults[i];
			struct taken *a = stage_take("n1", "a", "GPU-0");
			stage_settle();
			CHECK_INT(a->outcome, LOCK_TAKEN);
			CHECK_INT(fake_count(stage_entries("gpus-n1"), "u-a"), 1);
			CHECK_INT(fake_count(fake.lines.s, "GET gpus-n1"), 1);
			/* Won is won: only what was not done is sent again. */
			CHECK_INT(fake_count(fake.lines.s, "P"), faults[i] == FAKE_LOST ? 1 : 2);
			CHECK_STR(stage.guests.s, "");
			stage_close();
		}
	}
}

TEST(a_pod_is_fenced_before_its_lock_goes)
{
	static const enum lock_pod known[] = { LOCK_POD_UNBOUND, LOCK_POD_UNKNOWN };
	static const char *const lines[] = { "POST gpus-n1 PATCH a PUT gpus-n1 ",
					     "POST gpus-n1 GET a PATCH a PUT gpus-n1 " };
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		stage_open(LOCKS_BY_NODE);
		struct taken *a = stage_take("n1", "a", "GPU-0");
		stage_wait(a);
		stage.states[0] = known[i];
		locks_release(stage.locks, &a->lock, 1);
		CHECK_INT(locks_doomed(stage.locks), 1);
		stage_settle();
		CHECK_STR(fake.lines.s, lines[i]);
		CHECK(fake_pod("a")->version != 7);
		CHECK_STR(stage_entries("gpus-n1"), "[]");
		CHECK(!locks_has(stage.locks, "u-a"));
		stage_close();
	}
}

TEST(whether_a_pod_is_dead_is_read_from_the_server)
{
	static const struct {
		const char *what;
		bool gone, other, finished;
		unsigned version, attempt;
		const char *node;
		bool stays;
	} cases[] = {
		{ "gone", true, false, false, 7, 0, "", false },
		{ "another of that name", false, true, false, 7, 0, "", false },
		{ "finished", false, false, true, 8, 1, "n1", false },
		{ "changed", false, false, false, 8, 0, "", false },
		{ "bound elsewhere", false, false, false, 8, 1, "n2", false },
		{ "bound by another attempt", false, false, false, 8, 2, "n1", false },
		{ "bound by nobody of ours", false, false, false, 8, 0, "n1", false },
		{ "bound by it", false, false, false, 8, 1, "n1", true },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int unbound = 0; unbound < 2; unbound++) {
			stage_open(LOCKS_BY_NODE);
			struct taken *a = stage_take("n1", "a", "GPU-0");
			stage_wait(a);
			struct fake_pod *pod = fake_pod("a");
			/* What the cache says may be old. */
			stage.states[0] = unbound ? LOCK_POD_UNBOUND : LOCK_POD_UNKNOWN;
			pod->exists = !cases[i].gone;
			pod->version = cases[i].version;
			pod->attempt = cases[i].attempt;
			fake_copy(pod->node, sizeof(pod->node), cases[i].node);
			if (cases[i].other)
				fake_copy(pod->uid, sizeof(pod->uid), "other");
			if (cases[i].finished)
				fake_copy(pod->phase, sizeof(pod->phase), "Succeeded");
			unsigned version = pod->version;
			locks_release(stage.locks, &a->lock, 1);
			stage_settle();
			CHECKF(pod->version == version, "%s: it was changed", cases[i].what);
			bool there = strstr(stage_entries("gpus-n1"), "u-a") != NULL;
			CHECKF(there == cases[i].stays, "%s: %s", cases[i].what, fake.lines.s);
			stage_close();
		}
	}
}

TEST(of_a_gang_all_are_fenced_before_one_lock_goes)
{
	stage_open(LOCKS_BY_NODE);
	fake_pod_add("a", 7);
	fake_pod_add("b", 7);
	stage.states[0] = stage.states[1] = LOCK_POD_UNBOUND;
	struct taken *a = stage_take_as("n1", "a", "GPU-0", "g");
	struct taken *b = stage_take_as("n2", "b", "GPU-0", "g");
	stage_settle();
	CHECK(a->outcome == LOCK_TAKEN && b->outcome == LOCK_TAKEN);
	strbuf_reset(&fake.lines);
	locks_release(stage.locks, (struct lock *[]){ a->lock, b->lock }, 2);
	stage_settle();
	const char *put = strstr(fake.lines.s, "PUT");
	CHECK(put && strstr(fake.lines.s, "PATCH a") < put &&
	      strstr(fake.lines.s, "PATCH b") < put);
	CHECK_STR(stage_entries("gpus-n1"), "[]");
	CHECK_STR(stage_entries("gpus-n2"), "[]");
	stage_close();
}

TEST(a_dead_one_of_a_gang_stays_until_the_others_are_bound)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take_as("n1", "a", "GPU-0", "g");
	struct taken *b = stage_take_as("n1", "b", "GPU-1", "g");
	stage_settle();
	fake_pod("a")->exists = false;
	lock_bound(a->lock);
	locks_pod_over(stage.locks, "u-a");
	struct taken *c = stage_take("n1", "c", "GPU-0");
	stage_wait(c);
	CHECK_INT(c->outcome, LOCK_LOST);
	CHECK(strstr(stage_entries("gpus-n1"), "u-a"));
	lock_bound(b->lock);
	struct taken *d = stage_take("n1", "d", "GPU-0");
	stage_wait(d);
	CHECK_INT(d->outcome, LOCK_TAKEN);
	CHECK(!strstr(stage_entries("gpus-n1"), "u-a"));
	CHECK(!fake.overbooked);
	stage_close();
}

TEST(what_a_gang_gave_up_does_not_wait_for_its_next_try)
{
	stage_open(LOCKS_BY_NODE);
	fake_pod_add("a", 7);
	fake_pod_add("b", 7);
	stage.states[0] = stage.states[1] = LOCK_POD_UNBOUND;
	struct taken *a = stage_take_as("n1", "a", "GPU-0", "g");
	stage_wait(a);
	/* The other one got no lock; the next try comes before this one could be fenced. */
	fake.forbidden_pods = true;
	locks_release(stage.locks, &a->lock, 1);
	struct taken *b = stage_take_as("n2", "b", "GPU-0", "g");
	stage_wait(b);
	struct taken *again = stage_take_as("n1", "a", "GPU-0", "g");
	fake.forbidden_pods = false;
	stage_wait(again);
	CHECK(b->outcome == LOCK_TAKEN && again->outcome == LOCK_TAKEN);
	CHECK_INT(fake_count(stage_entries("gpus-n1"), "u-a"), 1);
	CHECK(!fake.overbooked);
	stage_close();
}

TEST(entries_of_others_are_shown_and_collected_if_nobody_binds_them)
{
	fake_start();
	fake_pod_add("a", 7);
	fake_pod_add("b", 8);
	fake_pod_add("c", 8);
	snprintf(fake_pod("c")->node, 64, "n1");
	fake_pod("c")->attempt = 3;
	fake_put("gpus-n1", "n1",
		 "[" ENTRY("a", "7", "1", "GPU-0") "," ENTRY("b", "7", "2", "GPU-1") "," ENTRY(
			 "c", "7", "3", "GPU-2") "," ENTRY("gone", "7", "4", "GPU-3") "]");
	stage_run(LOCKS_BY_NODE);
	stage.states[2] = LOCK_POD_BOUND;
	stage_begin();
	CHECK(strstr(stage.guests.s, "+n1/u-a:1 ") && strstr(stage.guests.s, "+n1/u-gone:1 "));
	stage_until(&stage.guests, "-n1/u-a ");
	stage_until(&stage.guests, "-n1/u-b ");
	stage_until(&stage.guests, "-n1/u-gone ");
	/* The one that was alive and unbound was changed, the others were not. */
	CHECK_INT(fake_count(fake.lines.s, "PATCH"), 1);
	CHECK(strstr(fake.lines.s, "PATCH a "));
	CHECK_STR(stage_entries("gpus-n1"), "[" ENTRY("c", "7", "3", "GPU-2") "]");
	CHECK(!strstr(stage.guests.s, "-n1/u-c"));
	stage_close();
}

TEST(a_half_locked_gang_of_another_is_fenced_whole)
{
	fake_start();
	fake_pod_add("a", 7);
	fake_pod_add("b", 7);
	fake_put("gpus-n1", "n1", "[" GANG_ENTRY("a", "7", "1", "GPU-0") "]");
	fake_put("gpus-n2", "n2", "[" GANG_ENTRY("b", "7", "2", "GPU-0") "]");
	stage_run(LOCKS_BY_NODE);
	stage_until(&stage.guests, "-n1/u-a ");
	stage_until(&stage.guests, "-n2/u-b ");
	const char *put = strstr(fake.lines.s, "PUT gpus");
	CHECK(put && strstr(fake.lines.s, "PATCH a") < put &&
	      strstr(fake.lines.s, "PATCH b") < put);
	stage_close();
}

/* Who locks it may come to the last one while the first is being taken away. */
TEST(of_a_half_locked_gang_those_without_a_lock_are_fenced_before_one_goes)
{
	for (int refused = 0; refused < 2; refused++) {
		fake_start();
		fake_pod_add("x", 7);
		fake_pod_add("y", 8);
		fake_put("gpus-n1", "n1", "[" GANG_ENTRY("x", "7", "4", "GPU-0") "]");
		stage_run(LOCKS_BY_NODE);
		stage_begin();
		fake.forbidden_pods = refused;
		if (refused)
			stage_until(&fake.lines, "PATCH x ");
		fake.forbidden_pods = false;
		stage_until(&stage.guests, "-n1/u-x ");
		CHECK(fake_pod("x")->version != 7 && fake_pod("y")->version != 8);
		const char *y = strstr(fake.lines.s, "GET y PATCH y ");
		CHECK(y && strstr(y, "PUT gpus-n1 "));
		CHECK(y && strstr(fake.lines.s, "PUT gpus-n1 ") > y);
		stage_close();
	}
}

/* After a takeover pods are read one by one. */
TEST(a_half_locked_gang_stays_until_it_is_known_who_is_in_it)
{
	fake_start();
	fake_pod_add("x", 7);
	fake_pod_add("y", 8);
	fake_put("gpus-n1", "n1", "[" GANG_ENTRY("x", "7", "4", "GPU-0") "]");
	stage_run(LOCKS_BY_NODE);
	stage.unsorted = true;
	while (stage.mates_asked < 3)
		uv_run(&s.loop, UV_RUN_ONCE);
	CHECK(fake_pod("x")->version != 7);
	CHECK(strstr(stage_entries("gpus-n1"), "u-x"));
	stage.unsorted = false;
	stage_until(&stage.guests, "-n1/u-x ");
	const char *y = strstr(fake.lines.s, "GET y PATCH y ");
	CHECK(y && strstr(fake.lines.s, "PUT gpus-n1 ") > y);
	stage_close();
}

TEST(who_is_not_active_collects_nothing)
{
	fake_start();
	fake_put("gpus-n1", "n1", "[" ENTRY("gone", "7", "4", "GPU-3") "]");
	stage_run(LOCKS_BY_NODE);
	locks_activate(stage.locks, false);
	stage_begin();
	uv_timer_t timer;
	uv_timer_init(&s.loop, &timer);
	uv_timer_start(&timer, (uv_timer_cb)uv_stop, 0, 0);
	uv_run(&s.loop, UV_RUN_NOWAIT);
	uv_close((uv_handle_t *)&timer, NULL);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	CHECK(strstr(stage_entries("gpus-n1"), "u-gone"));
	CHECK(!strstr(fake.lines.s, "GET gone"));
	locks_activate(stage.locks, true);
	stage_until(&stage.guests, "-n1/u-gone ");
	stage_close();
}

TEST(a_dead_entry_goes_with_the_next_write_or_after_a_while)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	lock_bound(a->lock);
	locks_pod_over(stage.locks, "u-a");
	struct taken *b = stage_take("n1", "b", "GPU-0");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK_STR(fake.lines.s, "POST gpus-n1 PUT gpus-n1 ");
	lock_bound(b->lock);
	locks_pod_over(stage.locks, "u-b");
	CHECK_INT(locks_doomed(stage.locks), 1);
	stage_settle();
	CHECK_STR(stage_entries("gpus-n1"), "[]");
	CHECK_STR(stage.guests.s, "");
	stage_close();
}

TEST(the_entry_of_a_bound_pod_stays)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	struct fake_pod *pod = fake_pod("a");
	assert(pod);
	snprintf(pod->node, sizeof(pod->node), "n1");
	pod->attempt = 1;
	pod->version = 8;
	stage.states[0] = LOCK_POD_BOUND;
	lock_bound(a->lock);
	/* Said to be over, but the caches say that it is bound: the server is asked. */
	locks_pod_over(stage.locks, "u-a");
	stage_settle();
	CHECK(strstr(fake.lines.s, "GET a "));
	struct taken *b = stage_take("n1", "b", "GPU-0");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_LOST);
	stage_close();
}

TEST(a_bound_pod_without_entry_gets_one_whatever_else_is_there)
{
	stage_open(LOCKS_BY_NODE);
	struct fake_pod *pod = fake_pod_add("r", 8);
	snprintf(pod->node, sizeof(pod->node), "n1");
	pod->attempt = 5;
	stage.states[0] = LOCK_POD_BOUND;
	struct lock_hold hold = { .uuid = "GPU-0", .core_milli = 1000, .mem_mib = 1000 };
	struct lock_entry entry = { .uid = "u-r",
				    .namespace = "ml",
				    .name = "r",
				    .version = "7",
				    .attempt = 5,
				    .holds = &hold,
				    .holds_count = 1 };
	CHECK_INT(locks_require(stage.locks, "n1", &entry, NULL), 0);
	CHECK_INT(locks_require(stage.locks, "n1", &entry, NULL), 0);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	struct taken *b = stage_take("n1", "b", "GPU-1");
	stage_settle();
	CHECK_INT(a->outcome, LOCK_LOST);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK_STR(fake.lines.s, "GET r GET r POST gpus-n1 ");
	CHECK_INT(fake_count(stage_entries("gpus-n1"), "u-r"), 1);
	CHECK_INT(locks_require(stage.locks, "n1", &entry, NULL), 0);
	stage_settle();
	CHECK_STR(fake.lines.s, "GET r GET r POST gpus-n1 ");
	stage_close();
}

TEST(a_required_entry_of_a_pod_that_is_gone_meanwhile_is_not_written)
{
	stage_open(LOCKS_BY_NODE);
	struct lock_hold hold = { .uuid = "GPU-0", .core_milli = 1000, .mem_mib = 1000 };
	struct lock_entry entry = { .uid = "u-r",
				    .namespace = "ml",
				    .name = "r",
				    .version = "7",
				    .attempt = 5,
				    .holds = &hold,
				    .holds_count = 1 };
	CHECK_INT(locks_require(stage.locks, "n1", &entry, NULL), 0);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_settle();
	CHECK_INT(a->outcome, LOCK_TAKEN);
	CHECK_INT(fake_count(stage_entries("gpus-n1"), "u-r"), 0);
	stage_close();
}

TEST(a_second_lock_of_a_pod_waits_for_the_first_to_go_or_is_busy)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	struct taken *busy = stage_take("n1", "a", "GPU-1");
	stage_wait(busy);
	CHECK_INT(busy->outcome, LOCK_BUSY);
	fake_pod("a")->version = 9;
	locks_release(stage.locks, &a->lock, 1);
	struct taken *again = stage_take("n1", "a", "GPU-1");
	stage_wait(again);
	CHECK_INT(again->outcome, LOCK_TAKEN);
	CHECK_INT(fake_count(stage_entries("gpus-n1"), "u-a"), 1);
	CHECK(strstr(stage_entries("gpus-n1"), "\"rv\":\"9\""));
	stage_close();
}

TEST(a_lease_that_is_being_deleted_is_used_until_it_is_empty)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	fake_mark_deleting(fake_lease("gpus-n1"));
	struct taken *b = stage_take("n1", "b", "GPU-1");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK(fake_lease("gpus-n1")->finalizer);
	fake_pod("a")->exists = fake_pod("b")->exists = false;
	locks_release(stage.locks, (struct lock *[]){ a->lock, b->lock }, 2);
	stage_settle();
	while (fake_lease("gpus-n1"))
		uv_run(&s.loop, UV_RUN_ONCE);
	CHECK(!fake.hasty);
	struct taken *c = stage_take("n1", "c", "GPU-0");
	stage_wait(c);
	CHECK_INT(c->outcome, LOCK_TAKEN);
	CHECK(strstr(fake.lines.s + strlen("POST gpus-n1 "), "POST gpus-n1 "));
	stage_close();
}

TEST(a_lease_that_is_taken_away_with_its_locks_is_written_again)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	struct fake_pod *pod = fake_pod("a");
	assert(pod);
	snprintf(pod->node, sizeof(pod->node), "n1");
	pod->attempt = 1;
	lock_bound(a->lock);
	/* Once the watch is through with what we made. */
	fake_put("gpus-n2", "n2", "[" ENTRY("x", "7", "9", "GPU-0") "]");
	stage_until(&stage.guests, "+n2/u-x:1 ");
	fake_remove(fake_lease("gpus-n1"));
	stage_until(&stage.guests, "+n1/u-a:1 ");
	CHECK(strstr(stage_entries("gpus-n1"), "u-a"));
	stage_close();
}

TEST(a_lease_that_another_has_emptied_and_so_removed_does_not_come_back)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	lock_bound(a->lock);
	fake_pod("a")->exists = false;
	fake_mark_deleting(fake_lease("gpus-n1"));
	fake_remove(fake_lease("gpus-n1"));
	stage_until(&fake.lines, "GET a ");
	struct taken *b = stage_take("n1", "b", "GPU-0");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK(!strstr(stage_entries("gpus-n1"), "u-a"));
	CHECK(!locks_has(stage.locks, "u-a"));
	stage_close();
}

TEST(of_a_lease_that_vanished_who_waits_is_fenced_before_anything_is_taken)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	fake_remove(fake_lease("gpus-n1"));
	stage_until(&fake.lines, "GET a ");
	struct taken *b = stage_take("n1", "b", "GPU-0");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	CHECK(strstr(fake.lines.s, "GET a PATCH a POST gpus-n1 "));
	CHECK(fake_pod("a")->version != 7);
	locks_release(stage.locks, &a->lock, 1);
	stage_settle();
	CHECK(strstr(stage_entries("gpus-n1"), "u-b"));
	stage_close();
}

TEST(a_lease_that_cannot_be_read_is_left_alone)
{
	fake_start();
	fake_put("gpus-n1", "n1", "[{\"pod\":1}]");
	stage_run(LOCKS_BY_NODE);
	stage_begin();
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	CHECK_INT(a->outcome, LOCK_CLOSED);
	CHECK(!locks_can_take(stage.locks, "n1"));
	CHECK(locks_can_take(stage.locks, "n2"));
	CHECK(strstr(a->why, "\"pod\""));
	CHECK_STR(stage_entries("gpus-n1"), "[{\"pod\":1}]");
	stage_close();
}

/* Of pods that nobody has, each with a place on a card that books nothing. */
static void fill(struct strbuf *entries, size_t bytes)
{
	strbuf_putc(entries, '[');
	for (unsigned i = 0; entries->len < bytes; i++)
		strbuf_addf(entries,
			    "%s{\"pod\":\"u-%u\",\"ns\":\"ml\",\"name\":\"%0200u\",\"rv\":\"7\","
			    "\"attempt\":1,\"gpus\":[{\"uuid\":\"GPU-0\",\"coreMilli\":0,"
			    "\"memoryMiB\":0}]}",
			    i ? "," : "", i, i);
	strbuf_putc(entries, ']');
}

TEST(a_node_whose_lease_is_full_is_closed_until_one_of_its_entries_goes)
{
	struct strbuf entries CLEANUP(strbuf_done) = STRBUF_INIT;
	fake_start();
	fill(&entries, ENTRIES_BYTES_MAX - 2048);
	fake_put("gpus-n1", "n1", entries.s);
	stage_run(LOCKS_BY_NODE);
	locks_activate(stage.locks, false);
	stage_begin();
	CHECK(locks_can_take(stage.locks, "n1"));
	struct taken *a = stage_take("n1", "a", "GPU-1");
	stage_wait(a);
	CHECK_INT(a->outcome, LOCK_CLOSED);
	CHECK(strstr(a->why, "no room"));
	CHECK(!locks_can_take(stage.locks, "n1"));
	locks_activate(stage.locks, true);
	while (!locks_can_take(stage.locks, "n1"))
		uv_run(&s.loop, UV_RUN_ONCE);
	struct taken *b = stage_take("n1", "b", "GPU-1");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	stage_close();
}

TEST(what_the_server_refuses_is_said)
{
	stage_open(LOCKS_BY_NODE);
	fake.fault = FAKE_FORBIDDEN;
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	CHECK_INT(a->outcome, LOCK_REFUSED);
	CHECK(strstr(a->why, "may not be written"));
	fake.fault = FAKE_NO_NAMESPACE;
	struct taken *b = stage_take("n2", "b", "GPU-0");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_REFUSED);
	CHECK(strstr(b->why, "namespace locks is missing"));
	stage_close();
}

TEST(why_no_lock_can_be_taken_is_known_until_one_can)
{
	fake_start();
	fake.fault = FAKE_NO_NAMESPACE;
	stage_run(LOCKS_BY_NODE);
	CHECK(strstr(locks_why_not(stage.locks), "not known yet"));
	CHECK(!locks_is_troubled(stage.locks));
	while (!locks_is_troubled(stage.locks))
		uv_run(&s.loop, UV_RUN_ONCE);
	CHECK(strstr(locks_why_not(stage.locks), "namespace locks is missing"));
	fake.fault = FAKE_FINE;
	stage_begin();
	CHECK_STR(locks_why_not(stage.locks), "");
	CHECK(!locks_is_troubled(stage.locks));
	stage_close();
}

/* The namespace is being deleted: the mode went at once, and the rest must be able to. */
TEST(what_is_dead_goes_while_the_mode_cannot_be_recorded)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	fake.fault = FAKE_TERMINATING;
	fake_mark_deleting(fake_lease("gpus-n1"));
	fake_remove(fake_lease("lock-mode"));
	while (!locks_is_troubled(stage.locks))
		uv_run(&s.loop, UV_RUN_ONCE);
	CHECK(strstr(locks_why_not(stage.locks), "may not be written"));
	fake_pod("a")->exists = false;
	locks_release(stage.locks, &a->lock, 1);
	while (fake_lease("gpus-n1"))
		uv_run(&s.loop, UV_RUN_ONCE);
	CHECK(!fake.hasty);
	/* And is there again. */
	fake.fault = FAKE_FINE;
	stage.ready = false;
	wait_for(&stage.ready);
	struct taken *b = stage_take("n1", "b", "GPU-0");
	stage_wait(b);
	CHECK_INT(b->outcome, LOCK_TAKEN);
	stage_close();
}

TEST(who_waits_to_lock_is_told_when_the_mode_cannot_be_recorded_any_more)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	stage_wait(a);
	/* The first one cannot be fenced, and the second waits for it to go. */
	fake.forbidden_pods = true;
	locks_release(stage.locks, &a->lock, 1);
	struct taken *again = stage_take("n1", "a", "GPU-1");
	stage_until(&fake.lines, "PATCH a ");
	CHECK(!again->done);
	fake.fault = FAKE_TERMINATING;
	fake_remove(fake_lease("lock-mode"));
	stage_wait(again);
	CHECK_INT(again->outcome, LOCK_REFUSED);
	CHECK(*again->why);
	stage_close();
}

TEST(a_take_that_is_given_up_while_on_its_way_leaves_nothing)
{
	stage_open(LOCKS_BY_NODE);
	struct taken *a = stage_take("n1", "a", "GPU-0");
	while (!locks_in_flight(stage.locks))
		uv_run(&s.loop, UV_RUN_NOWAIT);
	struct taken *b = stage_take("n1", "b", "GPU-1");
	locks_release(stage.locks, (struct lock *[]){ a->lock, b->lock }, 2);
	stage_until(&fake.lines, "PUT gpus-n1");
	stage_settle();
	CHECK(!a->done && !b->done);
	CHECK_STR(stage_entries("gpus-n1"), "[]");
	CHECK_STR(stage.guests.s, "");
	stage_close();
}

TEST(names_that_are_too_long_are_hashed)
{
	char node[254];
	memset(node, 'n', 253);
	node[253] = '\0';
	memcpy(node + 215, "-.-.-", 5);
	stage_open(LOCKS_BY_NODE);
	stage_take(node, "a", "GPU-0");
	stage_until(&fake.lines, "POST gpus-nnn");
	const char *name = strstr(fake.lines.s, "gpus-");
	size_t len = strcspn(name, " ");
	CHECK_INT(len, strlen("gpus-") + 215 + 1 + 16);
	stage_close();
}

TEST_MAIN()
