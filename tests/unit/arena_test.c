/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/attr.h"
#include "test.h"

#include <stdbool.h>

static bool is_zero(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != 0)
			return false;
	}
	return true;
}

TEST(pieces_are_zeroed_aligned_and_apart)
{
	struct arena arena CLEANUP(arena_done);
	arena_init(&arena, 1 << 20);
	char *last = NULL;
	for (size_t size = 0; size < 200; size++) {
		char *piece = arena_alloc(&arena, size);
		CHECK(piece && piece != last);
		CHECK((uintptr_t)piece % 16 == 0);
		CHECK(is_zero(piece, size));
		memset(piece, 0xff, size);
		last = piece;
	}
}

TEST(memory_that_is_used_again_is_zeroed_again)
{
	struct arena arena CLEANUP(arena_done);
	arena_init(&arena, 1 << 16);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 100; i++) {
			char *piece = arena_alloc(&arena, 100);
			CHECK(piece && is_zero(piece, 100));
			memset(piece, 0xff, 100);
		}
		arena_reset(&arena);
		CHECK(arena.used_bytes == 0);
	}
}

TEST(the_maximum_holds_to_the_byte)
{
	struct arena arena CLEANUP(arena_done);
	arena_init(&arena, 64);
	CHECK(!arena_alloc(&arena, 65));
	CHECK(!arena_alloc(&arena, SIZE_MAX));
	CHECK(arena_alloc(&arena, 33)); /* takes 48 */
	CHECK(!arena_alloc(&arena, 17));
	CHECK(arena_alloc(&arena, 16));
	CHECK(!arena_alloc(&arena, 0));
	arena_reset(&arena);
	CHECK(arena_alloc(&arena, 64));
}

TEST(the_zero_value_gives_nothing)
{
	struct arena arena = { 0 };
	CHECK(!arena_alloc(&arena, 1));
	CHECK(!arena_strndup(&arena, "", 0));
	arena_reset(&arena);
	arena_done(&arena);
	arena_done(NULL);
}

TEST(a_cycle_that_repeats_itself_takes_one_block)
{
	struct arena arena CLEANUP(arena_done);
	arena_init(&arena, 16 << 20);
	void *first = NULL;
	for (int round = 0; round < 3; round++) {
		void *start = arena_alloc(&arena, 16);
		for (int i = 0; i < 1000; i++)
			CHECK(arena_alloc(&arena, 1000));
		if (round == 2)
			CHECK(start == first);
		first = start;
		arena_reset(&arena);
	}
}

TEST(an_array_too_large_to_count_is_refused)
{
	struct arena arena CLEANUP(arena_done);
	arena_init(&arena, SIZE_MAX);
	CHECK(!arena_array(&arena, SIZE_MAX / 2, 3));
	CHECK(!arena_alloc(&arena, SIZE_MAX));
	CHECK(arena_array(&arena, 10, 3));
}

TEST(a_copy_of_a_string_ends_in_nul)
{
	struct arena arena CLEANUP(arena_done);
	arena_init(&arena, 1 << 12);
	CHECK_STR(arena_strndup(&arena, "node-17", 4), "node");
	CHECK_STR(arena_strndup(&arena, NULL, 0), "");
	CHECK(!arena_strndup(&arena, "x", SIZE_MAX));
}

TEST_MAIN()
