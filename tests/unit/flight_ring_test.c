/* SPDX-License-Identifier: Apache-2.0 */
/* Flights of a gang: all or none, whatever happens before the first Binding.  What they ask of
 * others is answered here, and remembered in `seen`. */
#include "test.h"

#include "base/log.h"
#include "engine_fixture.h"
#include "scheduler/flight.h"
#include "scheduler/residents.h"
#include "scheduler/volume_bind.h"

#define MEMBERS	 3
#define MANY	 60000
#define SEEN_MAX 256

/* What stands for volumes that wait. */
struct volume_binding {
	void (*done)(void *context, bool ok, const char *why);
	void *context;
};

/* What stands for a lock, taken or asked for. */
struct lock {
	const char *whose;
	bool is_awaited; /* flight_await_fence() came while the flight had it */
};

static struct engine *engine;
static struct scheduler scheduler;
static struct box boxes[MEMBERS];
static uint32_t nodes[MEMBERS];
static struct task tasks[MEMBERS];
static struct flight flights[MEMBERS];
static struct lock_entry some_gpus;
static struct lock their_locks[MEMBERS];
static struct volume_binding volumes[MEMBERS];
static char seen[SEEN_MAX];
static uint32_t stranger_on; /* GPUs of the first node */
static uint32_t count;	     /* of what is called, where there are many */
static bool is_changed[MEMBERS], quiet;

static void note(const char *what, const char *whose)
{
	size_t len = strlen(seen);

	count++;
	if (!quiet)
		snprintf(seen + len, sizeof(seen) - len, "%s%s %s", len ? ", " : "", what, whose);
}

void flight_lock(struct flight *f)
{
	f->stage = FLIGHT_LOCKING;
	f->lock = &their_locks[f->task->name[0] - 'a'];
	note("lock", f->task->name);
}

void flight_await_fence(struct flight *f)
{
	if (f->lock)
		f->lock->is_awaited = true;
}

/* Like the real one, it gives up by itself a lock that it still has. */
void flight_abort(struct flight *f)
{
	flight_await_fence(f);
	if (f->lock)
		locks_release(f->scheduler->locks, &f->lock, 1);
	note("abort", f->task->name);
	flight_leave_ring(f);
	f->task->flight = NULL;
}

void flight_bind(struct flight *f)
{
	note("bind", f->task->name);
}

bool flight_is_cached(const struct flight *f)
{
	return f < flights || f >= flights + MEMBERS || !is_changed[f - flights];
}

/* Those of one call are noted together: "release a b". */
void locks_release(struct locks *locks, struct lock **list, uint32_t locks_count)
{
	char whose[2 * MEMBERS + 1] = "";

	(void)locks;
	for (uint32_t i = 0; i < locks_count; i++) {
		size_t len = strlen(whose);

		CHECK(list[i]->is_awaited);
		if (!quiet)
			snprintf(whose + len, sizeof(whose) - len, "%s%s", len ? " " : "",
				 list[i]->whose);
	}
	note("release", whose);
}

void report_waits(struct scheduler *s, struct task *task, const char *why, bool is_error)
{
	(void)s;
	CHECK(!is_error);
	note(task->name, why);
}

void task_requeue(struct scheduler *s, struct task *task, bool pause)
{
	(void)s;
	CHECK(!task->flight);
	note(pause ? "later" : "again", task->name);
}

void gang_wake(struct scheduler *s, struct gang *gang)
{
	(void)s;
	(void)gang;
}

void volume_bind(struct volume_binding *binding,
		 void (*done)(void *context, bool ok, const char *why), void *context)
{
	const struct flight *f = context;

	*binding = (struct volume_binding){ done, context };
	note("volumes", f->task->name);
}

void volume_binding_free(struct volume_binding *binding)
{
	(void)binding;
}

uint32_t residents_unbooked(const struct residents *residents, const char *node)
{
	(void)residents;
	return strcmp(node, "n0") == 0 ? stranger_on : 0;
}

/* Three members, each booked with the two cards of a node of its own. */
static void begin(void)
{
	static const char *const names[] = { "a", "b", "c" };
	static const char *const places[] = { "n0", "n1", "n2" };
	static const struct log silence = { .fd = -1, .level = LOG_ERROR };

	engine = engine_new(&(struct engine_config){ 0 });
	scheduler = (struct scheduler){ .engine = engine, .log = &silence };
	scheduler.cluster = engine_cluster(engine);
	seen[0] = '\0';
	stranger_on = count = 0;
	quiet = false;
	for (uint32_t i = 0; i < MEMBERS; i++) {
		struct flight *f = &flights[i];

		boxes[i] = (struct box)BOX(places[i], 2);
		nodes[i] = box_add(engine, &boxes[i]);
		put(engine, names[i], nodes[i], whole(2));
		tasks[i] = (struct task){ .uid = names[i], .name = names[i], .key = names[i] };
		*f = (struct flight){ .scheduler = &scheduler, .task = &tasks[i], .gpus = 3 };
		f->peer = f->before = f;
		f->node = places[i];
		f->entry = &some_gpus;
		tasks[i].flight = f;
		their_locks[i] = (struct lock){ .whose = names[i] };
		is_changed[i] = false;
		if (i)
			flight_join(&flights[i - 1], f);
	}
}

static void end(void)
{
	engine_free(engine);
}

/* What has happened since the last time. */
#define CHECK_SEEN(expected)               \
	do {                               \
		CHECK_STR(seen, expected); \
		seen[0] = '\0';            \
	} while (0)

static void start_and_lock(void)
{
	flight_start(&flights[0]);
	CHECK_SEEN("lock a, lock b, lock c");
	flight_locked(&flights[1]);
	flight_locked(&flights[2]);
	CHECK_SEEN("");
}

static void bring_volumes(uint32_t member, bool ok)
{
	volumes[member].done(volumes[member].context, ok, "there is no disk");
}

TEST(all_are_locked_before_one_is_bound)
{
	begin();
	start_and_lock();
	flight_locked(&flights[0]);
	CHECK_SEEN("bind b, bind c, bind a");
	for (uint32_t i = 0; i < MEMBERS; i++)
		CHECK(flights[i].peer == &flights[i]);
	end();
}

TEST(one_that_needs_no_gpu_waits_for_those_who_do)
{
	begin();
	flights[1].entry = NULL;
	flight_start(&flights[0]);
	CHECK_SEEN("lock a, lock c");
	flight_locked(&flights[2]);
	CHECK_SEEN("");
	flight_locked(&flights[0]);
	CHECK_SEEN("bind b, bind c, bind a");
	end();
}

TEST(where_nobody_needs_a_gpu_all_are_bound_at_once)
{
	begin();
	for (uint32_t i = 0; i < MEMBERS; i++)
		flights[i].entry = NULL;
	flight_start(&flights[0]);
	CHECK_SEEN("bind b, bind c, bind a");
	end();
}

TEST(all_have_their_volumes_before_one_is_bound)
{
	begin();
	flights[0].volumes = &volumes[0];
	flights[2].volumes = &volumes[2];
	start_and_lock();
	flight_locked(&flights[0]);
	CHECK_SEEN("volumes a, volumes c");
	bring_volumes(2, true);
	CHECK_SEEN("");
	bring_volumes(0, true);
	CHECK_SEEN("bind b, bind c, bind a");
	end();
}

TEST(of_a_gang_that_lacks_a_volume_nobody_is_bound_and_all_are_told)
{
	begin();
	flights[0].volumes = &volumes[0];
	flights[2].volumes = &volumes[2];
	start_and_lock();
	flight_locked(&flights[0]);
	bring_volumes(0, true);
	seen[0] = '\0';
	bring_volumes(2, false);
	CHECK_SEEN("release c a b, "
		   "abort a, a its gang lacks volumes of c: there is no disk, later a, "
		   "abort b, b its gang lacks volumes of c: there is no disk, later b, "
		   "abort c, c its gang lacks volumes of c: there is no disk, later c");
	end();
}

TEST(one_that_is_alone_is_told_of_its_own_volumes)
{
	begin();
	flight_leave_ring(&flights[1]);
	flights[1].volumes = &volumes[1];
	flight_start(&flights[1]);
	flight_locked(&flights[1]);
	CHECK_SEEN("lock b, volumes b");
	bring_volumes(1, false);
	CHECK_SEEN("release b, abort b, b there is no disk, later b");
	CHECK(flights[0].peer == &flights[2] && flights[2].peer == &flights[0]);
	end();
}

TEST(a_gang_gives_up_its_locks_together_before_one_is_given_up)
{
	begin();
	start_and_lock();
	flight_abort_ring(&flights[1], false);
	CHECK_SEEN("release b c a, abort c, again c, abort a, again a, abort b, again b");
	end();
}

TEST(one_that_is_alone_gives_up_its_own_lock)
{
	begin();
	start_and_lock();
	flight_leave_ring(&flights[1]);
	flight_abort_ring(&flights[1], false);
	CHECK_SEEN("release b, abort b, again b");
	CHECK(flights[0].lock && flights[2].lock);
	CHECK(!their_locks[0].is_awaited && !their_locks[2].is_awaited);
	end();
}

TEST(a_lock_that_is_being_taken_is_given_up_with_those_that_are_held)
{
	begin();
	flight_start(&flights[0]);
	flight_locked(&flights[0]);
	CHECK_SEEN("lock a, lock b, lock c");
	flights[1].lock = NULL; /* another was faster */
	flight_abort_ring(&flights[1], false);
	CHECK_SEEN("release c a, abort c, again c, abort a, again a, abort b, again b");
	end();
}

TEST(who_needs_no_gpu_has_no_lock_to_give_up)
{
	begin();
	flights[1].entry = NULL;
	flight_start(&flights[0]);
	CHECK_SEEN("lock a, lock c");
	flight_abort_ring(&flights[1], false);
	CHECK_SEEN("release c a, abort c, again c, abort a, again a, abort b, again b");
	end();
}

TEST(where_nobody_has_a_lock_none_is_given_up)
{
	begin();
	for (uint32_t i = 0; i < MEMBERS; i++)
		flights[i].entry = NULL;
	flights[0].volumes = &volumes[0];
	flight_start(&flights[0]);
	CHECK_SEEN("volumes a");
	flight_abort_ring(&flights[0], false);
	CHECK_SEEN("abort b, again b, abort c, again c, abort a, again a");
	end();
}

/* What has changed of the second member, or of its node, while its gang was being locked. */
static void check_spoilt(const char *expected)
{
	flight_locked(&flights[0]);
	CHECK_SEEN(expected);
	end();
}

TEST(of_a_gang_that_has_lost_a_node_nobody_is_bound)
{
	begin();
	start_and_lock();
	cluster_node_remove(engine_cluster(engine), nodes[1]);
	check_spoilt("release b c a, abort c, later c, abort a, later a, abort b, later b");
}

TEST(a_node_that_has_come_back_is_another)
{
	begin();
	start_and_lock();
	cluster_node_remove(engine_cluster(engine), nodes[1]);
	nodes[1] = box_add(engine, &boxes[1]);
	check_spoilt("release b c a, abort c, later c, abort a, later a, abort b, later b");
}

TEST(nobody_is_bound_to_a_gpu_that_is_not_healthy_any_more)
{
	begin();
	start_and_lock();
	cluster_gpu_health(engine_cluster(engine), nodes[1], 1, false);
	check_spoilt("release b c a, abort c, later c, abort a, later a, abort b, later b");
}

TEST(nobody_is_bound_by_indexes_of_before)
{
	begin();
	start_and_lock();
	boxes[1].spec.gpus_count = 3;
	boxes[1].gpus[2].uuid = "n1-1";
	boxes[1].gpus[1].uuid = "new";
	box_change(engine, nodes[1], &boxes[1]);
	check_spoilt("release b c a, abort c, later c, abort a, later a, abort b, later b");
}

TEST(nobody_is_bound_to_a_gpu_that_another_uses)
{
	begin();
	start_and_lock();
	stranger_on = 2;
	check_spoilt("release a b c, abort b, later b, abort c, later c, abort a, later a");
}

TEST(of_a_gang_with_a_pod_that_has_changed_nobody_is_bound_and_all_go_again)
{
	begin();
	start_and_lock();
	is_changed[1] = true;
	check_spoilt("release b c a, abort c, again c, abort a, again a, abort b, again b");
}

TEST(one_that_another_has_bound_is_not_looked_at)
{
	begin();
	start_and_lock();
	is_changed[1] = flights[1].superseded = true;
	cluster_node_remove(engine_cluster(engine), nodes[1]);
	check_spoilt("bind b, bind c, bind a");
}

/* It would take minutes if each cost a walk around the ring. */
TEST(a_gang_may_be_large)
{
	struct flight *many = calloc(MANY, sizeof(*many));
	struct task *theirs = calloc(MANY, sizeof(*theirs));

	begin();
	quiet = true;
	CHECK(many && theirs);
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			theirs[i] = (struct task){ .uid = "a", .name = "a", .key = "a" };
			many[i] = flights[0];
			many[i].task = &theirs[i];
			many[i].peer = many[i].before = &many[i];
			if (i)
				flight_join(&many[i - 1], &many[i]);
		}
		flight_start(&many[0]);
		for (uint32_t i = MANY; i-- > round;)
			flight_locked(&many[i]);
		if (round)
			flight_abort_ring(&many[0], false);
		/* Locked and bound; locked, released in one go, given up and waiting again. */
		CHECK_INT(count, round ? 3 * MANY + 1 : 2 * MANY);
		count = 0;
	}
	free(many);
	free(theirs);
	end();
}

TEST_MAIN()
