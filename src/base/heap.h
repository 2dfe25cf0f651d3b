/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - a binary heap whose items can be changed and removed anywhere.
 *
 * Items are pointers or indexes, as the caller likes.  The heap tells each item
 * its position whenever that changes; with that position heap_fix() and
 * heap_remove() take O(log n).  The order of items that are equal depends on the
 * history: compare by a unique last key where it matters.
 */
#ifndef GS_BASE_HEAP_H
#define GS_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define HEAP_NONE UINT32_MAX /* the position of an item that has left */

union heap_item {
	void *ptr;
	uint32_t index;
};

/* Whether a comes out before b: a strict order. */
typedef bool (*heap_before_fn)(union heap_item a, union heap_item b, void *context);

/* The item is now at this position (HEAP_NONE: it has left). */
typedef void (*heap_moved_fn)(union heap_item item, uint32_t position, void *context);

struct heap {
	union heap_item *items; /* items[0] comes out next */
	uint32_t len, cap;
	heap_before_fn before;
	heap_moved_fn moved;
	void *context;
};

/* `moved` may be NULL if nothing is ever fixed or removed by position. */
void heap_init(struct heap *heap, heap_before_fn before, heap_moved_fn moved, void *context);

/* Does not touch the items. */
void heap_done(struct heap *heap);

/* 0, or -ENOMEM and nothing has changed. */
int heap_push(struct heap *heap, union heap_item item);

/* The first item; false if the heap is empty. */
bool heap_peek(const struct heap *heap, union heap_item *ret);
bool heap_pop(struct heap *heap, union heap_item *ret);

/* After the key of the item at that position has changed, either way. */
void heap_fix(struct heap *heap, uint32_t position);

/* Takes the item at that position out.  position < heap->len. */
union heap_item heap_remove(struct heap *heap, uint32_t position);

#endif
