/* SPDX-License-Identifier: Apache-2.0 */
/* Classes and events: who wakes for what. */
#include "test.h"

#include "pending_queue.h"

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
	refuse_all(q, items, 3, 0, WAKE_LOCK);
	pending_event(q, WAKE_LOCK, 0, NULL, NULL);
	CHECK_INT(pending_count(q, PENDING_READY), 3);
	CHECK(pending_pop(q, 0) == &items[0]);
	CHECK_INT(pending_refused(q, &items[0], 0, WAKE_LOCK, 0), 0);
	CHECK_INT(items[0].place, PENDING_PARKED);
	pending_event(q, WAKE_LOCK, 0, NULL, NULL);
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

TEST_MAIN()
