/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "scheduler/pending.h"

#include <errno.h>

static void freep(struct pending **q)
{
	pending_free(*q);
}

static struct pending *queue(void)
{
	struct pending *q = pending_new(&(struct pending_options){ .seed = 7 });

	CHECK(q);
	return q;
}

/* Adds `count` items of one priority, in the order of the array. */
static void add_all(struct pending *q, struct pending_item *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		items[i].arrival = i + 1;
		CHECK_INT(pending_add(q, &items[i], 0), 0);
	}
}

/* Pops each of them, in order, and has it refused. */
static void refuse_all(struct pending *q, struct pending_item *items, uint32_t count,
		       uint64_t class, uint32_t wakes)
{
	for (uint32_t i = 0; i < count; i++) {
		CHECK(pending_pop(q, 0) == &items[i]);
		CHECK_INT(pending_refused(q, &items[i], class, wakes, 0), 0);
	}
}

static bool helps_if(void *context, struct pending_item *item)
{
	(void)item;
	return *(bool *)context;
}

struct asked {
	struct pending_item *items[8];
	uint32_t count;
};

static bool note_asked(void *context, struct pending_item *item)
{
	struct asked *asked = context;

	asked->items[asked->count++] = item;
	return false;
}

TEST(an_empty_queue_has_nothing)
{
	struct pending *q CLEANUP(freep) = queue();

	CHECK(pending_pop(q, 0) == NULL);
	CHECK(!pending_has_ready(q));
	CHECK(pending_tick(q, 0) == UINT64_MAX);
	pending_event(q, WAKE_ALL, 0, NULL, NULL);
	pending_free(NULL);
}

TEST(what_is_ready_goes_by_priority_and_then_by_arrival)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item low = { .priority = -5, .arrival = 1 };
	struct pending_item late = { .priority = 10, .arrival = 4 };
	struct pending_item high = { .priority = 2000000000, .arrival = 3 };
	struct pending_item soon = { .priority = 10, .arrival = 2 };

	CHECK_INT(pending_add(q, &low, 0), 0);
	CHECK_INT(pending_add(q, &late, 0), 0);
	CHECK_INT(pending_add(q, &high, 0), 0);
	CHECK_INT(pending_add(q, &soon, 0), 0);
	CHECK(pending_has_ready(q));
	CHECK_INT(pending_count(q, PENDING_READY), 4);
	CHECK(pending_pop(q, 0) == &high);
	CHECK(pending_pop(q, 0) == &soon);
	CHECK(pending_pop(q, 0) == &late);
	CHECK(pending_pop(q, 0) == &low);
	CHECK_INT(pending_count(q, PENDING_OUT), 4);
	CHECK(pending_pop(q, 0) == NULL);
}

TEST(an_item_is_added_once_and_only_so_many_are)
{
	struct pending *q CLEANUP(freep) =
		pending_new(&(struct pending_options){ .max_items = 2 });
	struct pending_item items[3] = { 0 };

	CHECK_INT(pending_add(q, &items[0], 0), 0);
	CHECK_INT(pending_add(q, &items[0], 0), -EEXIST);
	CHECK(pending_pop(q, 0) == &items[0]);
	CHECK_INT(pending_add(q, &items[0], 0), -EEXIST);
	CHECK_INT(pending_add(q, &items[1], 0), 0);
	CHECK_INT(pending_add(q, &items[2], 0), -ENOSPC);
	pending_placed(q, &items[0]);
	CHECK_INT(pending_add(q, &items[2], 0), 0);
}

TEST(a_placed_item_has_left_and_can_come_again)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };

	add_all(q, &item, 1);
	CHECK(pending_pop(q, 0) == &item);
	pending_failed(q, &item, 0);
	CHECK(pending_pop(q, 1000) == &item);
	pending_placed(q, &item);
	for (int place = PENDING_OUT; place <= PENDING_PARKED; place++)
		CHECK_INT(pending_count(q, place), 0);
	CHECK_INT(pending_add(q, &item, 1000), 0);
	CHECK_INT(item.failures, 0);
	CHECK(pending_pop(q, 1000) == &item);
}

TEST(a_parked_item_wakes_only_for_what_helps_it)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };
	bool helps = false;

	add_all(q, &item, 1);
	refuse_all(q, &item, 1, 1, WAKE_NODE | WAKE_GPU);
	CHECK_INT(pending_count(q, PENDING_PARKED), 1);
	CHECK(pending_pop(q, 0) == NULL);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	CHECK_INT(item.place, PENDING_PARKED);
	pending_event(q, WAKE_GPU, 0, helps_if, &helps);
	CHECK_INT(item.place, PENDING_PARKED);
	helps = true;
	pending_event(q, WAKE_GPU, 0, helps_if, &helps);
	CHECK_INT(item.place, PENDING_READY);
	CHECK(pending_pop(q, 0) == &item);
}

TEST(an_event_wakes_the_first_of_a_class_alone)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[4] = { 0 };

	add_all(q, items, 4);
	refuse_all(q, items, 4, 9, WAKE_POD_LEFT);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	CHECK_INT(pending_count(q, PENDING_READY), 1);
	CHECK_INT(pending_count(q, PENDING_PARKED), 3);
	CHECK_INT(items[0].place, PENDING_READY);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	CHECK_INT(items[1].place, PENDING_READY);
	CHECK_INT(pending_count(q, PENDING_PARKED), 2);
}

TEST(the_first_of_a_class_is_the_first_by_priority_and_arrival)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[3] = { { .priority = 1 }, { .priority = 1 }, { .priority = 1 } };
	struct pending_item urgent = { .priority = 2, .arrival = 50 };

	add_all(q, items, 3);
	refuse_all(q, items, 3, 9, WAKE_NODE);
	CHECK_INT(pending_add(q, &urgent, 0), 0);
	refuse_all(q, &urgent, 1, 9, WAKE_NODE);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &urgent);
	CHECK_INT(pending_refused(q, &urgent, 9, WAKE_NODE, 0), 0);
	/* The first that is refused again stays the first. */
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &urgent);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[0]);
}

TEST(the_next_of_a_class_follows_one_that_is_placed)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[4] = { 0 };

	add_all(q, items, 4);
	refuse_all(q, items, 4, 9, WAKE_POD_LEFT);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(pending_pop(q, 0) == &items[i]);
		CHECK(pending_pop(q, 0) == NULL);
		pending_placed(q, &items[i]);
	}
	CHECK(pending_pop(q, 0) == &items[3]);
	CHECK_INT(pending_refused(q, &items[3], 9, WAKE_POD_LEFT, 0), 0);
	CHECK(pending_pop(q, 0) == NULL);
	CHECK_INT(pending_count(q, PENDING_PARKED), 1);
}

TEST(a_class_sleeps_on_when_the_first_is_refused_again)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[3] = { 0 };

	add_all(q, items, 3);
	refuse_all(q, items, 3, 9, WAKE_POD_LEFT);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[0]);
	CHECK_INT(pending_refused(q, &items[0], 9, WAKE_POD_LEFT, 0), 0);
	CHECK(!pending_has_ready(q));
	CHECK_INT(pending_count(q, PENDING_PARKED), 3);
}

TEST(the_next_may_follow_before_the_first_is_bound)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[3] = { 0 };

	add_all(q, items, 3);
	refuse_all(q, items, 3, 9, WAKE_POD_LEFT);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[0]);
	pending_follow(q, &items[0]);
	pending_follow(q, &items[0]);
	CHECK_INT(pending_count(q, PENDING_READY), 1);
	CHECK(pending_pop(q, 0) == &items[1]);
	pending_placed(q, &items[0]);
	CHECK(pending_pop(q, 0) == NULL);
	CHECK_INT(items[2].place, PENDING_PARKED);
}

TEST(the_next_follows_a_woken_one_that_is_removed)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[3] = { 0 };

	add_all(q, items, 3);
	refuse_all(q, items, 3, 9, WAKE_POD_LEFT);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	pending_remove(q, &items[0]); /* while it is ready */
	CHECK(pending_pop(q, 0) == &items[1]);
	pending_remove(q, &items[1]); /* while it is out */
	CHECK(pending_pop(q, 0) == &items[2]);
}

TEST(the_next_follows_a_woken_one_that_asks_for_something_else_now)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[2] = { 0 };

	add_all(q, items, 2);
	refuse_all(q, items, 2, 9, WAKE_POD_LEFT);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[0]);
	CHECK_INT(pending_refused(q, &items[0], 10, WAKE_NODE, 0), 0);
	CHECK(pending_pop(q, 0) == &items[1]);
}

TEST(the_next_follows_a_woken_one_that_fails_twice)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[3] = { 0 };

	add_all(q, items, 3);
	refuse_all(q, items, 3, 9, WAKE_POD_LEFT);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[0]);
	pending_failed(q, &items[0], 0);
	CHECK(!pending_has_ready(q));
	CHECK(pending_pop(q, 1000) == &items[0]);
	pending_failed(q, &items[0], 1000);
	CHECK(pending_pop(q, 1000) == &items[1]);
	/* And nobody follows for it a second time. */
	CHECK(pending_pop(q, 3000) == &items[0]);
	pending_placed(q, &items[0]);
	CHECK(!pending_has_ready(q));
}

TEST(what_helps_one_of_a_class_helps_the_others)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[2] = { 0 };

	add_all(q, items, 2);
	refuse_all(q, items, 1, 9, WAKE_LOCK);
	CHECK(pending_pop(q, 0) == &items[1]);
	CHECK_INT(pending_refused(q, &items[1], 9, WAKE_POD_LEFT, 0), 0);
	/* What the second was refused for is known to help, though that one is gone. */
	pending_remove(q, &items[1]);
	pending_event(q, WAKE_POD_LEFT, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[0]);
}

TEST(a_class_forgets_what_helps_when_it_is_empty)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };

	add_all(q, &item, 1);
	refuse_all(q, &item, 1, 9, WAKE_LOCK);
	pending_event(q, WAKE_LOCK, 0, NULL, NULL);
	refuse_all(q, &item, 1, 9, WAKE_NODE);
	pending_event(q, WAKE_LOCK, 0, NULL, NULL);
	CHECK_INT(item.place, PENDING_PARKED);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK_INT(item.place, PENDING_READY);
}

TEST(items_without_a_class_are_each_their_own)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[3] = { 0 };

	add_all(q, items, 3);
	refuse_all(q, items, 3, 0, WAKE_MEMBER);
	pending_event(q, WAKE_MEMBER, 0, NULL, NULL);
	CHECK_INT(pending_count(q, PENDING_READY), 3);
	CHECK(pending_pop(q, 0) == &items[0]);
	CHECK_INT(pending_refused(q, &items[0], 0, WAKE_MEMBER, 0), 0);
	CHECK_INT(items[0].place, PENDING_PARKED);
	pending_event(q, WAKE_MEMBER, 0, NULL, NULL);
	CHECK_INT(items[0].place, PENDING_READY);
}

TEST(an_event_asks_once_for_each_class_that_waits_for_it)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[6] = { 0 };
	struct asked asked = { 0 };

	add_all(q, items, 6);
	refuse_all(q, items, 2, 1, WAKE_NODE | WAKE_GPU);
	refuse_all(q, items + 2, 2, 2, WAKE_NODE);
	refuse_all(q, items + 4, 2, 3, WAKE_GPU);
	pending_event(q, WAKE_NODE, 0, note_asked, &asked);
	CHECK_INT(asked.count, 2);
	CHECK(asked.items[0] != asked.items[1]);
	for (uint32_t i = 0; i < asked.count; i++)
		CHECK(asked.items[i] == &items[0] || asked.items[i] == &items[2]);
	asked.count = 0;
	pending_event(q, WAKE_NODE | WAKE_GPU, 0, note_asked, &asked);
	CHECK_INT(asked.count, 3);
	CHECK_INT(pending_count(q, PENDING_PARKED), 6);
}

TEST(an_event_wakes_every_class_that_it_helps)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[6] = { 0 };

	/* Classes of one item leave the list while it is walked. */
	add_all(q, items, 6);
	refuse_all(q, items, 2, 1, WAKE_NODE);
	for (uint32_t i = 2; i < 6; i++)
		refuse_all(q, items + i, 1, i, WAKE_NODE);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK_INT(pending_count(q, PENDING_READY), 5);
	CHECK_INT(items[1].place, PENDING_PARKED);
}

TEST(an_event_while_an_item_is_out_is_not_lost)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };

	add_all(q, &item, 1);
	pending_event(q, WAKE_NODE, 0, NULL, NULL); /* before: it was decided with that */
	CHECK(pending_pop(q, 0) == &item);
	pending_event(q, WAKE_GPU, 0, NULL, NULL); /* does not help */
	CHECK_INT(pending_refused(q, &item, 9, WAKE_NODE, 0), 0);
	CHECK_INT(item.place, PENDING_PARKED);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &item);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK_INT(pending_refused(q, &item, 9, WAKE_NODE, 0), 0);
	CHECK_INT(item.place, PENDING_BACKOFF);
	CHECK(pending_pop(q, 0) == &item);
	CHECK_INT(pending_refused(q, &item, 9, WAKE_NODE, 0), 0);
	CHECK_INT(item.place, PENDING_PARKED);
}

TEST(a_change_while_an_item_is_out_is_not_lost)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };

	add_all(q, &item, 1);
	CHECK(pending_pop(q, 0) == &item);
	pending_wake_item(q, &item, 0);
	CHECK_INT(item.place, PENDING_OUT);
	CHECK_INT(pending_refused(q, &item, 9, WAKE_NODE, 0), 0);
	CHECK_INT(item.place, PENDING_BACKOFF);
	CHECK(pending_pop(q, 0) == &item);
	CHECK_INT(pending_refused(q, &item, 9, WAKE_NODE, 0), 0);
	CHECK_INT(item.place, PENDING_PARKED);
}

/* How long it backs off when it fails at that time. */
static uint64_t backoff_of(struct pending *q, struct pending_item *item, uint64_t *now_ms)
{
	CHECK(pending_pop(q, *now_ms) == item);
	pending_failed(q, item, *now_ms);
	CHECK_INT(item->place, PENDING_BACKOFF);
	uint64_t wait_ms = pending_tick(q, *now_ms);
	*now_ms += wait_ms;
	CHECK(pending_tick(q, *now_ms - 1) == 1);
	CHECK(pending_pop(q, *now_ms - 1) == NULL);
	return wait_ms;
}

TEST(backoff_doubles_up_to_its_longest)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };
	const uint64_t expected_ms[] = { 1000, 2000, 4000, 8000, 10000, 10000 };
	uint64_t now_ms = 5;

	add_all(q, &item, 1);
	for (uint32_t i = 0; i < ARRAY_SIZE(expected_ms); i++)
		CHECK_INT(backoff_of(q, &item, &now_ms), expected_ms[i]);
	item.failures = UINT32_MAX; /* no overflow */
	CHECK_INT(backoff_of(q, &item, &now_ms), 10000);
}

TEST(the_longest_backoff_of_a_gang_grows_with_the_root_of_its_members)
{
	const struct {
		uint32_t members;
		uint64_t longest_ms;
	} rows[] = { { 0, 10000 }, { 1, 10000 }, { 2, 14142 }, { 4, 20000 }, { 100, 100000 } };

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pending *q CLEANUP(freep) = queue();
		struct pending_item gang = { .members = rows[i].members };
		uint64_t now_ms = 0, wait_ms = 0;

		add_all(q, &gang, 1);
		for (uint32_t failures = 0; failures < 12; failures++)
			wait_ms = backoff_of(q, &gang, &now_ms);
		CHECK_INT(wait_ms, rows[i].longest_ms);
		CHECK_INT(pending_count(q, PENDING_BACKOFF), 1);
	}
}

TEST(a_gang_of_any_size_has_a_longest_backoff)
{
	struct pending *q CLEANUP(freep) = pending_new(&(struct pending_options){
		.backoff_ms = UINT32_MAX, .backoff_max_ms = UINT32_MAX });
	struct pending_item gang = { .members = UINT32_MAX };

	add_all(q, &gang, 1);
	for (uint32_t i = 0; i < 40; i++) {
		CHECK(pending_pop(q, UINT64_MAX / 2) == &gang);
		pending_failed(q, &gang, 0);
		CHECK(gang.until_ms >= 1 && gang.until_ms <= UINT32_MAX);
	}
}

TEST(refusals_back_off_longer_each_time)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };
	const uint64_t expected_ms[] = { 1000, 2000, 4000, 8000, 10000 };

	add_all(q, &item, 1);
	for (uint32_t i = 0; i < ARRAY_SIZE(expected_ms); i++) {
		CHECK(pending_pop(q, 0) == &item);
		pending_event(q, WAKE_NODE, 0, NULL, NULL);
		CHECK_INT(pending_refused(q, &item, 1, WAKE_NODE, 0), 0);
		CHECK_INT(pending_tick(q, 0), expected_ms[i]);
	}
	/* The first failure begins anew; a refusal ends the row of failures. */
	CHECK(pending_pop(q, 0) == &item);
	pending_failed(q, &item, 0);
	CHECK_INT(pending_tick(q, 0), 1000);
	CHECK(pending_pop(q, 1000) == &item);
	CHECK_INT(pending_refused(q, &item, 1, WAKE_NODE, 1000), 0);
	CHECK_INT(item.failures, 0);
}

TEST(what_backs_off_comes_early_when_nothing_is_ready)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item first = { .priority = 1, .arrival = 2 };
	struct pending_item second = { .priority = 5, .arrival = 1 };
	struct pending_item fresh = { .priority = 0, .arrival = 3 };

	CHECK_INT(pending_add(q, &second, 0), 0);
	CHECK_INT(pending_add(q, &first, 0), 0);
	CHECK(pending_pop(q, 0) == &second);
	CHECK(pending_pop(q, 0) == &first);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK_INT(pending_refused(q, &first, 0, WAKE_NODE, 0), 0);
	CHECK_INT(pending_refused(q, &second, 0, WAKE_NODE, 10), 0);
	CHECK_INT(pending_add(q, &fresh, 0), 0);
	CHECK(pending_pop(q, 20) == &fresh);
	CHECK_INT(pending_count(q, PENDING_READY), 0);
	CHECK(pending_has_ready(q));
	/* By priority, though the other is due before. */
	CHECK(pending_pop(q, 20) == &second);
	CHECK(pending_pop(q, 20) == &first);
}

TEST(what_failed_does_not_come_early)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };

	add_all(q, &item, 1);
	CHECK(pending_pop(q, 0) == &item);
	pending_failed(q, &item, 0);
	CHECK(!pending_has_ready(q));
	CHECK(pending_pop(q, 999) == NULL);
	CHECK(pending_pop(q, 1000) == &item);
}

TEST(patience_ends_a_wait)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[2] = { 0 };

	add_all(q, items, 2);
	CHECK(pending_pop(q, 0) == &items[0]);
	CHECK_INT(pending_refused(q, &items[0], 1, WAKE_NODE, 0), 0);
	CHECK(pending_pop(q, 700) == &items[1]);
	CHECK_INT(pending_refused(q, &items[1], 1, 0, 700), 0);
	CHECK_INT(pending_tick(q, 700), 299300);
	CHECK_INT(pending_tick(q, 299999), 1);
	CHECK_INT(pending_count(q, PENDING_READY), 0);
	CHECK_INT(pending_tick(q, 300000), 700);
	CHECK_INT(items[0].place, PENDING_READY);
	CHECK(pending_tick(q, 300700) == UINT64_MAX);
	CHECK_INT(items[1].place, PENDING_READY);
}

TEST(a_tick_tells_what_is_due_next)
{
	struct pending *q CLEANUP(freep) =
		pending_new(&(struct pending_options){ .backoff_ms = 400, .patience_ms = 300 });
	struct pending_item items[2] = { 0 };

	add_all(q, items, 2);
	CHECK(pending_pop(q, 0) == &items[0]);
	pending_failed(q, &items[0], 0);
	CHECK_INT(pending_tick(q, 0), 400);
	CHECK(pending_pop(q, 0) == &items[1]);
	CHECK_INT(pending_refused(q, &items[1], 1, WAKE_NODE, 0), 0);
	CHECK_INT(pending_tick(q, 0), 300);
	CHECK_INT(pending_tick(q, 300), 100);
	CHECK(pending_tick(q, 400) == UINT64_MAX);
	CHECK_INT(pending_count(q, PENDING_READY), 2);
}

TEST(an_item_can_be_removed_from_every_place)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item never = { 0 }, items[5] = { 0 };

	pending_remove(q, &never);
	add_all(q, items, 5);
	refuse_all(q, items, 2, 9, WAKE_NODE);
	CHECK(pending_pop(q, 0) == &items[2]);
	pending_failed(q, &items[2], 0);
	CHECK(pending_pop(q, 0) == &items[3]);
	pending_remove(q, &items[0]); /* parked */
	pending_remove(q, &items[2]); /* backing off */
	pending_remove(q, &items[3]); /* out */
	pending_remove(q, &items[4]); /* ready */
	pending_remove(q, &items[4]); /* gone */
	CHECK_INT(pending_count(q, PENDING_PARKED), 1);
	CHECK_INT(pending_count(q, PENDING_READY) + pending_count(q, PENDING_BACKOFF) +
			  pending_count(q, PENDING_OUT),
		  0);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[1]);
	CHECK(pending_pop(q, 100000) == NULL);
}

TEST(an_answer_for_a_removed_item_does_nothing)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };

	add_all(q, &item, 1);
	CHECK(pending_pop(q, 0) == &item);
	pending_remove(q, &item);
	pending_placed(q, &item);
	pending_follow(q, &item);
	CHECK_INT(pending_refused(q, &item, 1, WAKE_NODE, 0), 0);
	pending_failed(q, &item, 0);
	pending_again(q, &item);
	pending_moved(q, &item);
	pending_wake_item(q, &item, 0);
	for (int place = PENDING_OUT; place <= PENDING_PARKED; place++)
		CHECK_INT(pending_count(q, place), 0);
}

TEST(again_is_at_once_and_does_not_count)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };

	add_all(q, &item, 1);
	CHECK(pending_pop(q, 0) == &item);
	pending_again(q, &item);
	CHECK_INT(item.place, PENDING_READY);
	CHECK_INT(item.refusals, 0);
	CHECK_INT(item.failures, 0);
	CHECK(pending_pop(q, 0) == &item);
}

TEST(a_moved_item_is_in_its_new_order_wherever_it_is)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[3] = { 0 };

	add_all(q, items, 3);
	items[2].priority = 1;
	pending_moved(q, &items[2]);
	CHECK(pending_pop(q, 0) == &items[2]);
	pending_again(q, &items[2]);
	items[2].priority = 0;
	pending_moved(q, &items[2]);
	refuse_all(q, items, 3, 4, WAKE_NODE);
	items[1].arrival = 0;
	pending_moved(q, &items[1]);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[1]);
	items[1].arrival = 9; /* out: nothing to move */
	pending_moved(q, &items[1]);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK(pending_pop(q, 0) == &items[0]);
	pending_event(q, WAKE_NODE, 0, NULL, NULL);
	CHECK_INT(pending_refused(q, &items[0], 4, WAKE_NODE, 0), 0);
	CHECK_INT(pending_refused(q, &items[1], 4, WAKE_NODE, 0), 0);
	CHECK(pending_pop(q, 0) == &items[2]);
	items[1].priority = 3;
	pending_moved(q, &items[1]);
	CHECK(pending_pop(q, 0) == &items[1]);
	CHECK(pending_pop(q, 0) == &items[0]);
}

TEST(a_changed_item_is_ready_from_every_place)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[2] = { 0 };

	add_all(q, items, 2);
	refuse_all(q, items, 1, 4, 0);
	CHECK(pending_pop(q, 0) == &items[1]);
	pending_failed(q, &items[1], 0);
	pending_wake_item(q, &items[0], 0);
	pending_wake_item(q, &items[1], 0);
	CHECK_INT(pending_count(q, PENDING_READY), 2);
	CHECK_INT(items[0].refusals, 0);
	CHECK_INT(items[1].failures, 0);
	pending_wake_item(q, &items[0], 0);
	CHECK_INT(pending_count(q, PENDING_READY), 2);
	CHECK(pending_pop(q, 0) == &items[0]);
	CHECK(pending_pop(q, 0) == &items[1]);
}

TEST_MAIN()
