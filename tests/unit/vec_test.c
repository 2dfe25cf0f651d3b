/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include "base/attr.h"
#include "test.h"

TEST(items_come_back_in_the_order_in_which_they_were_pushed)
{
	VEC(uint32_t) v CLEANUP(vec_cleanup) = { 0 };
	for (uint32_t i = 0; i < 10000; i++)
		CHECK(vec_push(&v, i * 3) == 0);
	CHECK_INT(v.len, 10000);
	CHECK(v.cap >= v.len);
	for (uint32_t i = 0; i < 10000; i++)
		CHECK(v.items[i] == i * 3);
}

TEST(structs_fit_too)
{
	struct pair {
		int a;
		const char *b;
	} first = { 1, "one" };
	VEC(struct pair) v = { 0 };
	CHECK(vec_push(&v, first) == 0);
	CHECK(vec_push(&v, ((struct pair){ 2, "two" })) == 0);
	CHECK_STR(v.items[1].b, "two");
	vec_done(&v);
	CHECK(v.len == 0 && v.cap == 0 && !v.items);
	vec_done(&v);
}

TEST(reserved_room_is_there_and_no_push_moves_the_items)
{
	VEC(int) v CLEANUP(vec_cleanup) = { 0 };
	CHECK(vec_reserve(&v, 100) == 0);
	int *items = v.items;
	for (int i = 0; i < 100; i++)
		CHECK(vec_push(&v, i) == 0);
	CHECK(v.items == items);
	CHECK(vec_reserve(&v, 5) == 0);
	CHECK(v.cap >= 100);
}

TEST(a_size_that_overflows_is_out_of_memory_and_changes_nothing)
{
	VEC(uint64_t) v CLEANUP(vec_cleanup) = { 0 };
	CHECK(vec_push(&v, 1) == 0);
	CHECK_INT(vec_reserve(&v, SIZE_MAX), -ENOMEM);
	CHECK_INT(vec_reserve(&v, SIZE_MAX / 8 + 1), -ENOMEM);
	CHECK(v.len == 1 && v.items[0] == 1);
}

TEST_MAIN()
