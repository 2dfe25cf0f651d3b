/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory that is freed all at once.
 *
 * For what lives as long as one cycle, one request or one document.  Nothing is
 * freed singly.  Reset keeps the memory, gathered into one block, so that a
 * cycle that repeats itself stops asking the system for any.
 *
 * The zero value is an arena that gives nothing (max_bytes 0).  One thread at a
 * time.
 */
#ifndef GS_BASE_ARENA_H
#define GS_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks; /* newest first; only the newest has room */
	size_t used_bytes;	    /* given out since the last reset, rounded up to 16 each */
	size_t max_bytes;	    /* used_bytes never exceeds this */
	size_t kept_bytes;	    /* size of the first block after a reset */
};

/* Takes no memory yet. */
void arena_init(struct arena *arena, size_t max_bytes);

/* Zeroed and aligned to 16; a size of 0 gives a unique pointer.
 * NULL past max_bytes or out of memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* Like arena_alloc for an array; NULL also if count * size overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* A copy of n bytes with a NUL after them; NULL as above. */
char *arena_strndup(struct arena *arena, const char *s, size_t n);

/* All that was given out is invalid; the memory stays for the next round. */
void arena_reset(struct arena *arena);

/* Returns all memory; the arena can be used again. */
void arena_done(struct arena *arena);

#endif
