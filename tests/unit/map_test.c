/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/attr.h"
#include "base/hash.h"
#include "base/rng.h"
#include "test.h"

#include <errno.h>

TEST(an_empty_map_has_nothing)
{
	struct map map = { 0 };
	uint32_t value, at = 0;
	struct map_entry entry;
	CHECK(!map_get(&map, "a", 1));
	CHECK(!map_get_u32(&map, "a", 1, &value));
	CHECK(!map_del(&map, "a", 1));
	CHECK(!map_next(&map, &at, &entry));
	map_done(&map);
	map_done(NULL);
}

TEST(what_is_put_is_found_replaced_and_deleted)
{
	struct map map CLEANUP(map_done);
	map_init(&map, 42);
	int one = 1, two = 2;
	CHECK(map_put(&map, "a", 1, &one) == 0);
	CHECK(map_put(&map, "ab", 2, &two) == 0);
	CHECK(map_put(&map, "", 0, &two) == 0);
	CHECK(map_get(&map, "abc", 1) == &one);
	CHECK(map_get(&map, "abc", 2) == &two);
	CHECK(map_get(&map, "abc", 3) == NULL);
	CHECK(map_get(&map, "", 0) == &two);
	CHECK(map_put(&map, "a", 1, &two) == 0);
	CHECK(map_get(&map, "a", 1) == &two);
	CHECK_INT(map.len, 3);
	CHECK(map_del(&map, "a", 1));
	CHECK(!map_del(&map, "a", 1));
	CHECK_INT(map.len, 2);
}

TEST(numbers_include_zero)
{
	struct map map CLEANUP(map_done);
	map_init(&map, 1);
	uint32_t value = 7;
	CHECK(map_put_u32(&map, "zero", 4, 0) == 0);
	CHECK(map_put_u32(&map, "max", 3, UINT32_MAX) == 0);
	CHECK(map_get_u32(&map, "zero", 4, &value) && value == 0);
	CHECK(map_get_u32(&map, "max", 3, &value) && value == UINT32_MAX);
	value = 7;
	CHECK(!map_get_u32(&map, "none", 4, &value) && value == 7);
}

TEST(keys_may_hold_nul_bytes)
{
	struct map map CLEANUP(map_done);
	map_init(&map, 1);
	CHECK(map_put_u32(&map, "a\0b", 3, 1) == 0);
	CHECK(map_put_u32(&map, "a\0c", 3, 2) == 0);
	uint32_t value = 0;
	CHECK(map_get_u32(&map, "a\0c", 3, &value) && value == 2);
	CHECK(!map_get_u32(&map, "a", 1, &value));
}

#define MODEL_KEYS 3000

/* Puts and deletes at random beside a plain array that says what must be there. */
static void compare_with_model(uint64_t seed)
{
	static char names[MODEL_KEYS][12];
	static bool present[MODEL_KEYS];
	memset(present, 0, sizeof(present));
	struct map map CLEANUP(map_done);
	map_init(&map, seed);
	struct rng rng;
	rng_seed(&rng, seed);
	uint32_t count = 0;
	for (int step = 0; step < 40000; step++) {
		uint32_t i = rng_below(&rng, MODEL_KEYS);
		size_t len = (size_t)snprintf(names[i], sizeof(names[i]), "key-%u", i);
		/* grows first, then shrinks */
		if (rng_chance(&rng, step < 20000 ? 2 : 1, 3)) {
			CHECK(map_put_u32(&map, names[i], len, i) == 0);
			count += !present[i];
			present[i] = true;
		} else {
			CHECKF(map_del(&map, names[i], len) == present[i], "seed %" PRIu64, seed);
			count -= present[i];
			present[i] = false;
		}
		CHECK(map.len == count);
	}
	for (uint32_t i = 0; i < MODEL_KEYS; i++) {
		uint32_t value;
		bool found = map_get_u32(&map, names[i], strlen(names[i]), &value);
		CHECKF(found == present[i], "seed %" PRIu64, seed);
		CHECK(!found || value == i);
	}
	struct map_entry entry;
	for (uint32_t at = 0; map_next(&map, &at, &entry); count--) {
		CHECK(present[entry.u32]);
		CHECK(strncmp(entry.key, names[entry.u32], entry.len) == 0);
		present[entry.u32] = false; /* each only once */
	}
	CHECK(count == 0);
}

TEST(a_map_does_what_a_plain_array_does)
{
	for (uint64_t seed = 0; seed < 10; seed++)
		compare_with_model(seed);
}

TEST(reserved_room_is_enough)
{
	struct map map CLEANUP(map_done);
	map_init(&map, 3);
	CHECK(map_reserve(&map, 1000) == 0);
	struct map_slot *slots = map.slots;
	static char names[1000][8];
	for (uint32_t i = 0; i < 1000; i++) {
		int len = snprintf(names[i], sizeof(names[i]), "%u", i);
		CHECK(map_put_u32(&map, names[i], (size_t)len, i) == 0);
	}
	CHECK(map.slots == slots);
	CHECK_INT(map_reserve(&map, UINT32_MAX), -ENOMEM);
	CHECK_INT(map.len, 1000);
}

TEST(the_hash_is_xxh3_with_a_seed)
{
	CHECK(hash_bytes("", 0, 0) == 0x2d06800538d394c2u);
	CHECK(hash_bytes("gpu", 3, 1) != hash_bytes("gpu", 3, 2));
	CHECK(hash_bytes("gpu", 3, 1) == hash_bytes("gpus", 3, 1));
}

TEST(a_sentence_is_the_same_with_other_figures)
{
	uint64_t hash = hash_sentence("3 of 8 fit, after 10 ms", 1);

	CHECK(hash == hash_sentence("11 of 16 fit, after 0 ms", 1));
	CHECK(hash != hash_sentence("3 of 8 fit, after 10 s", 1));
	CHECK(hash != hash_sentence("3 of 8 fit, after ms", 1));
	CHECK(hash != hash_sentence("3 of 8 fit, after 10 ms", 2));
	CHECK(hash_sentence("", 1) != hash_sentence("8", 1));
}

TEST_MAIN()
