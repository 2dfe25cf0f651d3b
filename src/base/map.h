/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - a hash map from bytes to a pointer or a number.
 *
 * Keys are borrowed: they must stay where they are until the entry is deleted,
 * which is natural when the key is the name inside the value.  A map holds
 * either pointers or uint32_t, whichever the caller puts in; it does not
 * remember which.
 *
 * Open addressing with linear probing, 24 bytes a slot, at most 3/4 full, no
 * tombstones.  Up to 2^30 entries.  One writer, or any number of readers.
 *
 * The order of iteration depends on the seed and the history: sort before
 * anything visible is derived from it.
 */
#ifndef GS_BASE_MAP_H
#define GS_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot;

struct map {
	struct map_slot *slots;
	uint32_t len; /* entries */
	uint32_t cap; /* slots, a power of two or 0 */
	uint64_t seed;
};

struct map_entry {
	const char *key;
	size_t len;
	void *value;  /* of map_put */
	uint32_t u32; /* of map_put_u32 */
};

/* Takes no memory yet.  The zero value is an empty map with seed 0. */
void map_init(struct map *map, uint64_t seed);
void map_done(struct map *map);

/* Room for n entries without another allocation: 0 or -ENOMEM. */
int map_reserve(struct map *map, uint32_t n);

/* The value, or NULL if the key is not there. */
void *map_get(const struct map *map, const char *key, size_t len);
bool map_get_u32(const struct map *map, const char *key, size_t len, uint32_t *ret);

/* Adds the entry or replaces the value of the key that is there (which keeps the
 * old key's memory in use).  0, or -ENOMEM and nothing has changed. */
int map_put(struct map *map, const char *key, size_t len, void *value);
int map_put_u32(struct map *map, const char *key, size_t len, uint32_t value);

/* Whether the key was there. */
bool map_del(struct map *map, const char *key, size_t len);

/* Every entry once, if the map does not change meanwhile:
 *
 *	struct map_entry entry;
 *	for (uint32_t at = 0; map_next(map, &at, &entry);)
 *		use(entry.key, entry.len, entry.value);
 */
bool map_next(const struct map *map, uint32_t *at, struct map_entry *ret);

#endif
