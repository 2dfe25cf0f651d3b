/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/attr.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGN	16
#define BLOCK_MIN_BYTES ((size_t)4 << 10)
#define BLOCK_MAX_BYTES ((size_t)1 << 20) /* larger only for a single large piece */

struct arena_block {
	struct arena_block *next;
	size_t size, used; /* of data */
	alignas(ARENA_ALIGN) char data[];
};

void arena_init(struct arena *arena, size_t max_bytes)
{
	*arena = (struct arena){ .max_bytes = max_bytes };
}

/* Blocks double, so that a large arena has few of them. */
static size_t next_block_bytes(const struct arena *arena, size_t need)
{
	size_t size = arena->kept_bytes;
	if (arena->blocks)
		size = MIN(arena->blocks->size, BLOCK_MAX_BYTES / 2) * 2;
	return MAX(MAX(size, BLOCK_MIN_BYTES), need);
}

static struct arena_block *add_block(struct arena *arena, size_t need)
{
	size_t size = next_block_bytes(arena, need);
	struct arena_block *block = malloc(sizeof(*block) + size);
	if (!block)
		return NULL;
	block->next = arena->blocks;
	block->size = size;
	block->used = 0;
	arena->blocks = block;
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	if (size > arena->max_bytes)
		return NULL;
	/* cannot overflow: malloc never gave out anything near SIZE_MAX */
	size_t need = (MAX(size, 1) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	if (need < size || need > arena->max_bytes - arena->used_bytes)
		return NULL;
	struct arena_block *block = arena->blocks;
	if (!block || block->size - block->used < need)
		block = add_block(arena, need);
	if (!block)
		return NULL;
	char *piece = block->data + block->used;
	block->used += need;
	arena->used_bytes += need;
	return memset(piece, 0, need);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		return NULL;
	return arena_alloc(arena, bytes);
}

char *arena_strndup(struct arena *arena, const char *s, size_t n)
{
	if (n >= arena->max_bytes)
		return NULL;
	char *copy = arena_alloc(arena, n + 1);
	if (copy && n)
		memcpy(copy, s, n);
	return copy;
}

static size_t free_blocks(struct arena *arena)
{
	size_t total = 0;
	while (arena->blocks) {
		struct arena_block *block = arena->blocks;
		arena->blocks = block->next;
		total += block->size;
		free(block);
	}
	return total;
}

void arena_reset(struct arena *arena)
{
	arena->used_bytes = 0;
	if (!arena->blocks)
		return;
	if (!arena->blocks->next)
		arena->blocks->used = 0;
	else
		arena->kept_bytes = free_blocks(arena);
}

void arena_done(struct arena *arena)
{
	if (!arena)
		return;
	free_blocks(arena);
	arena_init(arena, arena->max_bytes);
}
