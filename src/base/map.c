/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAP_MIN 16u
#define LEN_MAX (1u << 30)

struct map_slot {
	const char *key; /* NULL: free */
	uint32_t len;
	uint32_t hash;
	uintptr_t value;
};

void map_init(struct map *map, uint64_t seed)
{
	*map = (struct map){ .seed = seed };
}

void map_done(struct map *map)
{
	if (!map)
		return;
	free(map->slots);
	map_init(map, map->seed);
}

static uint32_t hash_of(const struct map *map, const char *key, size_t len)
{
	return (uint32_t)hash_bytes(key, len, map->seed);
}

static struct map_slot *find(const struct map *map, const char *key, size_t len, uint32_t hash)
{
	if (map->cap == 0)
		return NULL;
	uint32_t mask = map->cap - 1;
	for (uint32_t i = hash & mask; map->slots[i].key; i = (i + 1) & mask) {
		struct map_slot *slot = &map->slots[i];
		if (slot->hash == hash && slot->len == len && memcmp(slot->key, key, len) == 0)
			return slot;
	}
	return NULL;
}

/* The key must not be there and there must be room. */
static void insert(struct map_slot *slots, uint32_t cap, struct map_slot entry)
{
	uint32_t i = entry.hash & (cap - 1);
	while (slots[i].key)
		i = (i + 1) & (cap - 1);
	slots[i] = entry;
}

int map_reserve(struct map *map, uint32_t n)
{
	if (n > LEN_MAX)
		return -ENOMEM;
	uint32_t cap = map->cap ? map->cap : CAP_MIN;
	while (n > cap - cap / 4)
		cap *= 2;
	if (cap == map->cap)
		return 0;
	struct map_slot *slots = calloc(cap, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->cap; i++) {
		if (map->slots[i].key)
			insert(slots, cap, map->slots[i]);
	}
	free(map->slots);
	map->slots = slots;
	map->cap = cap;
	return 0;
}

static int put(struct map *map, const char *key, size_t len, uintptr_t value)
{
	if (len > UINT32_MAX)
		return -ENOMEM;
	uint32_t hash = hash_of(map, key, len);
	struct map_slot *slot = find(map, key, len, hash);
	if (slot) {
		slot->value = value;
		return 0;
	}
	if (map_reserve(map, map->len + 1) < 0)
		return -ENOMEM;
	insert(map->slots, map->cap,
	       (struct map_slot){
		       .key = key, .len = (uint32_t)len, .hash = hash, .value = value });
	map->len++;
	return 0;
}

int map_put(struct map *map, const char *key, size_t len, void *value)
{
	return put(map, key, len, (uintptr_t)value);
}

int map_put_u32(struct map *map, const char *key, size_t len, uint32_t value)
{
	return put(map, key, len, value);
}

void *map_get(const struct map *map, const char *key, size_t len)
{
	const struct map_slot *slot = find(map, key, len, hash_of(map, key, len));
	return slot ? (void *)slot->value : NULL;
}

bool map_get_u32(const struct map *map, const char *key, size_t len, uint32_t *ret)
{
	const struct map_slot *slot = find(map, key, len, hash_of(map, key, len));
	if (slot)
		*ret = (uint32_t)slot->value;
	return slot != NULL;
}

/* Moves later entries of the run back over the hole, so that no probe for them
 * stops early: no tombstones are needed. */
static void close_hole(struct map *map, uint32_t hole)
{
	uint32_t mask = map->cap - 1;
	for (uint32_t i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
		uint32_t home = map->slots[i].hash & mask;
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole] = (struct map_slot){ 0 };
}

bool map_del(struct map *map, const char *key, size_t len)
{
	struct map_slot *slot = find(map, key, len, hash_of(map, key, len));
	if (!slot)
		return false;
	close_hole(map, (uint32_t)(slot - map->slots));
	map->len--;
	return true;
}

bool map_next(const struct map *map, uint32_t *at, struct map_entry *ret)
{
	while (*at < map->cap) {
		const struct map_slot *slot = &map->slots[(*at)++];
		if (!slot->key)
			continue;
		*ret = (struct map_entry){
			.key = slot->key,
			.len = slot->len,
			.value = (void *)slot->value,
			.u32 = (uint32_t)slot->value,
		};
		return true;
	}
	return false;
}
