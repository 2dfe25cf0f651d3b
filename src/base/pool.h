/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - small pieces of memory that come and go all the time.
 *
 * Freed pieces are kept by size (in steps of 16 bytes up to POOL_PIECE_MAX) and given
 * out again, so a process that reached its steady state asks the system for nothing.
 * Larger pieces go straight to malloc.  The caller remembers the size.  One thread.
 */
#ifndef GS_BASE_POOL_H
#define GS_BASE_POOL_H

#include <stddef.h>

#define POOL_PIECE_MAX 2048
#define POOL_CLASSES   (POOL_PIECE_MAX / 16)

struct pool_chunk;

struct pool {
	void *free[POOL_CLASSES]; /* by size, linked through their first word */
	struct pool_chunk *chunks;
	char *next; /* unused rest of the newest chunk */
	size_t left;
	size_t bytes; /* asked from the system */
};

/* Not zeroed, aligned to 16; NULL: out of memory.  The zero value is an empty pool. */
void *pool_alloc(struct pool *pool, size_t size);
void pool_free(struct pool *pool, void *piece, size_t size); /* NULL is fine */
/* Frees every chunk; pieces over POOL_PIECE_MAX must have been freed. */
void pool_done(struct pool *pool);

#endif
