/* SPDX-License-Identifier: Apache-2.0 */
#include "base/heap.h"

#include "base/vec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void heap_init(struct heap *heap, heap_before_fn before, heap_moved_fn moved, void *context)
{
	*heap = (struct heap){ .before = before, .moved = moved, .context = context };
}

void heap_done(struct heap *heap)
{
	if (!heap)
		return;
	free(heap->items);
	heap_init(heap, heap->before, heap->moved, heap->context);
}

static void place(struct heap *heap, uint32_t position, union heap_item item)
{
	heap->items[position] = item;
	if (heap->moved)
		heap->moved(item, position, heap->context);
}

static bool before(const struct heap *heap, union heap_item a, union heap_item b)
{
	return heap->before(a, b, heap->context);
}

/* Where the item belongs, starting from a hole at `at`, upwards. */
static uint32_t sift_up(struct heap *heap, uint32_t at, union heap_item item)
{
	while (at > 0 && before(heap, item, heap->items[(at - 1) / 2])) {
		place(heap, at, heap->items[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	return at;
}

static uint32_t sift_down(struct heap *heap, uint32_t at, union heap_item item)
{
	for (;;) {
		size_t child = 2 * (size_t)at + 1;
		if (child >= heap->len)
			return at;
		if (child + 1 < heap->len &&
		    before(heap, heap->items[child + 1], heap->items[child]))
			child++;
		if (!before(heap, heap->items[child], item))
			return at;
		place(heap, at, heap->items[child]);
		at = (uint32_t)child;
	}
}

int heap_push(struct heap *heap, union heap_item item)
{
	size_t cap = heap->cap;
	if (heap->len == HEAP_NONE / 2 ||
	    vec_grow(&heap->items, &cap, (size_t)heap->len + 1, sizeof(item)) < 0)
		return -ENOMEM;
	heap->cap = (uint32_t)cap;
	uint32_t at = sift_up(heap, heap->len++, item);
	place(heap, at, item);
	return 0;
}

bool heap_peek(const struct heap *heap, union heap_item *ret)
{
	if (heap->len == 0)
		return false;
	*ret = heap->items[0];
	return true;
}

bool heap_pop(struct heap *heap, union heap_item *ret)
{
	if (heap->len == 0)
		return false;
	*ret = heap_remove(heap, 0);
	return true;
}

void heap_fix(struct heap *heap, uint32_t position)
{
	assert(position < heap->len);
	union heap_item item = heap->items[position];
	uint32_t at = sift_up(heap, position, item);
	if (at == position)
		at = sift_down(heap, position, item);
	place(heap, at, item);
}

union heap_item heap_remove(struct heap *heap, uint32_t position)
{
	assert(position < heap->len);
	union heap_item item = heap->items[position];
	union heap_item last = heap->items[--heap->len];
	if (position < heap->len) {
		heap->items[position] = last;
		heap_fix(heap, position);
	}
	if (heap->moved)
		heap->moved(item, HEAP_NONE, heap->context);
	return item;
}
