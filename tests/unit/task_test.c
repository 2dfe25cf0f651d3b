/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler remembers of pods that wait. */
#include <stdio.h>
#include <string.h>

#include "engine/cluster.h"
#include "engine/rules.h"
#include "scheduler/asked.h"
#include "scheduler/scheduler_private.h"
#include "scheduler/task.h"
#include "test.h"

TEST(tasks_are_found_by_uid)
{
	struct tasks tasks;

	tasks_init(&tasks, 7);
	struct task *a = tasks_add(&tasks, "uid-a", "ml", "train-0");
	struct task *b = tasks_add(&tasks, "uid-b", "ml", "train-0");
	CHECK(a && b && a != b);
	CHECK(tasks_find(&tasks, "uid-a") == a);
	CHECK(tasks_find(&tasks, "uid-b") == b);
	CHECK(!tasks_find(&tasks, "uid-c"));
	CHECK_STR(a->key, "ml/train-0");
	CHECK_STR(a->namespace, "ml");
	CHECK_STR(a->name, "train-0");
	tasks_remove(&tasks, a);
	CHECK(!tasks_find(&tasks, "uid-a"));
	CHECK(tasks_find(&tasks, "uid-b") == b);
	tasks_done(&tasks);
}

TEST(tasks_that_were_not_read_are_counted)
{
	struct tasks tasks;

	tasks_init(&tasks, 7);
	struct task *a = tasks_add(&tasks, "uid-a", "ml", "a");
	struct task *b = tasks_add(&tasks, "uid-b", "ml", "b");
	task_set_unsorted(&tasks, a, true);
	task_set_unsorted(&tasks, a, true);
	task_set_unsorted(&tasks, b, true);
	CHECK_INT(tasks.unsorted, 2);
	task_set_unsorted(&tasks, b, false);
	task_set_unsorted(&tasks, b, false);
	CHECK_INT(tasks.unsorted, 1);
	tasks_remove(&tasks, a);
	CHECK_INT(tasks.unsorted, 0);
	tasks_done(&tasks);
}

TEST(an_attempt_is_never_nothing)
{
	CHECK(task_attempt(0) != 0);
	CHECK(task_attempt(UINT64_C(0x1234567812345678)) != 0); /* both halves alike */
	CHECK(task_attempt(1) != task_attempt(2));
}

TEST(equal_requests_are_kept_once)
{
	struct cluster *c = cluster_new(&(struct cluster_config){ .seed = 1 });
	struct asked_set set;
	struct request r, other;

	asked_init(&set, c, 3);
	request_init(&r);
	r.needs.cpu_milli = 1000;
	other = r;
	other.needs.cpu_milli = 2000;
	struct asked *first = asked_take(&set, &r);
	struct asked *again = asked_take(&set, &r);
	struct asked *different = asked_take(&set, &other);
	CHECK(first && first == again);
	CHECK(different != first);
	CHECK_INT(first->users, 2);
	CHECK(asked_hash(&set, &r) == first->hash && first->hash != 0);
	asked_release(&set, first);
	CHECK_INT(set.by_hash.len, 2);
	asked_release(&set, again);
	CHECK_INT(set.by_hash.len, 1);
	asked_done(&set); /* frees the one that is left */
	cluster_free(c);
}

TEST(what_is_kept_holds_its_rules)
{
	struct cluster *c = cluster_new(&(struct cluster_config){ .seed = 1 });
	struct host_port port = { .ip = "", .protocol = PORT_TCP, .port = 80 };
	struct rules_spec spec = { .ports = &port, .ports_count = 1, .namespace = "ml" };
	struct asked_set set;
	struct request r;

	asked_init(&set, c, 3);
	request_init(&r);
	CHECK(rules_take(c, &spec, &r.rules) == 0 && r.rules != 0);
	uint64_t serial = rules_serial(c, r.rules);
	struct asked *asked = asked_take(&set, &r);
	rules_release(c, r.rules); /* the reader's */
	CHECK(rules_serial(c, asked->request.rules) == serial);
	CHECK(rules_of_pods(c, asked->request.rules));
	asked_release(&set, asked);
	asked_done(&set);
	cluster_free(c);
}

/* A pod that leaves could help, so it must wake who waits. */
TEST(what_pods_can_cure_wakes_when_one_leaves)
{
	for (unsigned v = FITS + 1; v < VERDICT_COUNT; v++) {
		CHECKF(!verdict_curable(v) || (refuse_wakes(v) & WAKE_POD_LEFT), "%s",
		       verdict_name(v));
		CHECKF(refuse_wakes(v) != 0, "%s", verdict_name(v));
	}
	CHECK(!(refuse_wakes(TAINTED) & WAKE_POD_LEFT));
	CHECK(refuse_wakes(UNHEALTHY_GPU) & WAKE_GPU);
	CHECK(refuse_wakes(NO_LOCK) & WAKE_NODE);
	CHECK(refuse_wakes(NOT_NEAR) & WAKE_POD_CAME);
	CHECK(refuse_wakes(NO_VOLUME) & WAKE_VOLUME);
}

TEST_MAIN()
