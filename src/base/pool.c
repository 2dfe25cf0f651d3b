/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64 * 1024)

struct pool_chunk {
	struct pool_chunk *next;
	size_t unused; /* keeps the pieces aligned to 16 */
};

static size_t class_of(size_t size)
{
	return size ? (size - 1) / 16 : 0;
}

static int pool_grow(struct pool *pool)
{
	struct pool_chunk *chunk = malloc(CHUNK_BYTES);

	if (!chunk)
		return -1;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->next = (char *)(chunk + 1);
	pool->left = CHUNK_BYTES - sizeof(*chunk);
	pool->bytes += CHUNK_BYTES;
	return 0;
}

void *pool_alloc(struct pool *pool, size_t size)
{
	size_t class = class_of(size);
	size_t bytes = (class + 1) * 16;
	void *piece;

	if (size > POOL_PIECE_MAX)
		return malloc(size);
	piece = pool->free[class];
	if (piece) {
		memcpy(&pool->free[class], piece, sizeof(void *));
		return piece;
	}
	if (pool->left < bytes && pool_grow(pool) < 0)
		return NULL;
	piece = pool->next;
	pool->next += bytes;
	pool->left -= bytes;
	return piece;
}

void pool_free(struct pool *pool, void *piece, size_t size)
{
	size_t class = class_of(size);

	if (!piece)
		return;
	if (size > POOL_PIECE_MAX) {
		free(piece);
		return;
	}
	memcpy(piece, &pool->free[class], sizeof(void *));
	pool->free[class] = piece;
}

void pool_done(struct pool *pool)
{
	while (pool->chunks) {
		struct pool_chunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		free(chunk);
	}
	*pool = (struct pool){ 0 };
}
