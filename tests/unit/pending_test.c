/* SPDX-License-Identifier: Apache-2.0 */
/* Order, places and time. */
#include "test.h"

#include "pending_queue.h"

#include <errno.h>

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

TEST(other_backoffs_hold_from_the_next_refusal_on)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item item = { 0 };
	const uint64_t expected_ms[] = { 30, 60, 70, 70 };

	add_all(q, &item, 1);
	pending_set_backoff(q, 30, 70);
	for (uint32_t i = 0; i < ARRAY_SIZE(expected_ms); i++) {
		CHECK(pending_pop(q, 0) == &item);
		pending_event(q, WAKE_NODE, 0, NULL, NULL);
		CHECK_INT(pending_refused(q, &item, 1, WAKE_NODE, 0), 0);
		CHECK_INT(pending_tick(q, 0), expected_ms[i]);
	}
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

TEST(a_placed_item_that_fails_comes_back_and_backs_off)
{
	struct pending *q CLEANUP(freep) =
		pending_new(&(struct pending_options){ .max_items = 1 });
	struct pending_item items[2] = { 0 };

	add_all(q, items, 1);
	CHECK(pending_pop(q, 0) == &items[0]);
	pending_placed(q, &items[0]);
	CHECK_INT(pending_failed(q, &items[0], 0), 0);
	CHECK_INT(items[0].place, PENDING_BACKOFF);
	CHECK_INT(pending_tick(q, 0), 1000);
	CHECK_INT(pending_failed(q, &items[0], 500), 0); /* the same failure, told twice */
	CHECK_INT(pending_tick(q, 500), 500);
	/* It may fail in a row though it was placed in between. */
	CHECK(pending_pop(q, 1000) == &items[0]);
	pending_placed(q, &items[0]);
	CHECK_INT(pending_failed(q, &items[0], 1000), 0);
	CHECK_INT(pending_tick(q, 1000), 2000);
	CHECK(pending_pop(q, 3000) == &items[0]);
	pending_placed(q, &items[0]);
	CHECK_INT(pending_add(q, &items[1], 3000), 0);
	CHECK_INT(pending_failed(q, &items[0], 3000), -ENOSPC);
	pending_remove(q, &items[1]);
	/* What is removed after it was placed does not come back. */
	pending_remove(q, &items[0]);
	CHECK_INT(pending_failed(q, &items[0], 3000), 0);
	CHECK(pending_tick(q, 3000) == UINT64_MAX);
}

TEST(a_failure_takes_what_is_ready_and_leaves_what_is_parked)
{
	struct pending *q CLEANUP(freep) = queue();
	struct pending_item items[2] = { 0 };

	add_all(q, items, 2);
	refuse_all(q, items, 1, 1, WAKE_NODE);
	CHECK_INT(pending_failed(q, &items[0], 0), 0);
	CHECK_INT(items[0].place, PENDING_PARKED);
	CHECK_INT(pending_failed(q, &items[1], 0), 0);
	CHECK_INT(items[1].place, PENDING_BACKOFF);
	CHECK_INT(pending_count(q, PENDING_READY), 0);
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
	items[1].priority = 7;
	pending_wake_item(q, &items[1], 0);
	CHECK_INT(pending_count(q, PENDING_READY), 2);
	CHECK(pending_pop(q, 0) == &items[1]);
	CHECK(pending_pop(q, 0) == &items[0]);
}

TEST_MAIN()
