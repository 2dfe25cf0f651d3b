/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for the version of its pod that a fence makes.  The cache is answered for here. */
#include "test.h"

#include "scheduler/flight.h"

static bool is_cached;

bool flight_is_cached(const struct flight *f)
{
	(void)f;
	return is_cached;
}

/* The rest of flight_bind.c, which is not called. */
void flight_bind(struct flight *f)
{
	(void)f;
}

void flight_fail(struct flight *f, const char *why)
{
	(void)f;
	(void)why;
}

void flight_seen(struct flight *f, const struct json *pod)
{
	(void)f;
	(void)pod;
}

void flights_tick(struct scheduler *s, uint64_t now_ms)
{
	(void)s;
	(void)now_ms;
}

/* What stands for a lock: nobody looks into it. */
struct lock {
	bool unused;
};

static bool waits_for_fence(enum flight_stage stage, bool has_lock)
{
	static struct lock lock;
	struct task task = { 0 };
	struct flight f = { .task = &task, .stage = stage, .lock = has_lock ? &lock : NULL };

	flight_await_fence(&f);
	return task.stale;
}

TEST(who_gives_up_a_lock_that_it_holds_waits_for_the_fence)
{
	is_cached = true;
	CHECK(waits_for_fence(FLIGHT_LOCKED, true));
	CHECK(waits_for_fence(FLIGHT_BINDING, true));
	CHECK(waits_for_fence(FLIGHT_PAUSED, true));
}

TEST(who_holds_no_lock_is_not_fenced)
{
	is_cached = true;
	CHECK(!waits_for_fence(FLIGHT_LOCKING, true)); /* it may never be taken */
	CHECK(!waits_for_fence(FLIGHT_LOCKING, false));
	CHECK(!waits_for_fence(FLIGHT_LOCKED, false));
}

TEST(who_has_changed_already_waits_for_nothing)
{
	is_cached = false;
	CHECK(!waits_for_fence(FLIGHT_LOCKED, true));
}

TEST_MAIN()
