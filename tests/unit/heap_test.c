/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include "base/attr.h"
#include "base/rng.h"
#include "test.h"

#define ITEMS 500

struct table {
	int64_t key[ITEMS];
	uint32_t position[ITEMS];
};

static bool before(union heap_item a, union heap_item b, void *context)
{
	const struct table *table = context;
	int64_t x = table->key[a.index], y = table->key[b.index];
	return x != y ? x < y : a.index < b.index;
}

static void moved(union heap_item item, uint32_t position, void *context)
{
	struct table *table = context;
	table->position[item.index] = position;
}

static union heap_item item(uint32_t index)
{
	return (union heap_item){ .index = index };
}

TEST(an_empty_heap_has_no_first_item)
{
	struct heap heap CLEANUP(heap_done);
	heap_init(&heap, before, NULL, NULL);
	union heap_item first;
	CHECK(!heap_peek(&heap, &first));
	CHECK(!heap_pop(&heap, &first));
	heap_done(NULL);
}

TEST(items_come_out_in_order)
{
	struct table table = { 0 };
	struct heap heap CLEANUP(heap_done);
	heap_init(&heap, before, NULL, &table);
	struct rng rng;
	rng_seed(&rng, 1);
	for (uint32_t i = 0; i < ITEMS; i++) {
		table.key[i] = rng_below(&rng, 50);
		CHECK(heap_push(&heap, item(i)) == 0);
	}
	union heap_item last, next;
	CHECK(heap_pop(&heap, &last));
	for (uint32_t i = 1; i < ITEMS; i++) {
		CHECK(heap_pop(&heap, &next));
		CHECK(before(last, next, &table));
		last = next;
	}
	CHECK_INT(heap.len, 0);
}

static bool string_before(union heap_item a, union heap_item b, void *context)
{
	(void)context;
	return strcmp(a.ptr, b.ptr) < 0;
}

TEST(items_may_be_pointers)
{
	struct heap heap CLEANUP(heap_done);
	heap_init(&heap, string_before, NULL, NULL);
	char words[][4] = { "two", "one", "six" };
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		CHECK(heap_push(&heap, (union heap_item){ .ptr = words[i] }) == 0);
	union heap_item first;
	CHECK(heap_peek(&heap, &first));
	CHECK_STR(first.ptr, "one");
}

static uint32_t least(const struct table *table)
{
	uint32_t best = HEAP_NONE;
	for (uint32_t i = 0; i < ITEMS; i++) {
		if (table->position[i] == HEAP_NONE)
			continue;
		if (best == HEAP_NONE || before(item(i), item(best), (void *)(uintptr_t)table))
			best = i;
	}
	return best;
}

/* Push, change, remove and pop at random; the least is always on top and every
 * position is right. */
TEST(changed_and_removed_items_leave_a_heap)
{
	struct table table = { 0 };
	memset(table.position, 0xff, sizeof(table.position));
	struct heap heap CLEANUP(heap_done);
	heap_init(&heap, before, moved, &table);
	struct rng rng;
	rng_seed(&rng, 7);
	for (int step = 0; step < 20000; step++) {
		uint32_t i = rng_below(&rng, ITEMS);
		uint32_t position = table.position[i];
		int64_t key = (int64_t)rng_below(&rng, 100);
		if (position == HEAP_NONE) {
			table.key[i] = key;
			CHECK(heap_push(&heap, item(i)) == 0);
		} else if (rng_chance(&rng, 1, 2)) {
			table.key[i] = key;
			heap_fix(&heap, position);
		} else {
			CHECK(heap_remove(&heap, position).index == i);
			CHECK(table.position[i] == HEAP_NONE);
		}
		union heap_item first;
		bool any = heap_peek(&heap, &first);
		CHECK((any ? first.index : HEAP_NONE) == least(&table));
	}
	for (uint32_t i = 0; i < heap.len; i++)
		CHECK(table.position[heap.items[i].index] == i);
}

TEST_MAIN()
