/* SPDX-License-Identifier: Apache-2.0 */
/* pending_queue.h - queues for the tests of pending.h. */
#ifndef GS_TESTS_UNIT_PENDING_QUEUE_H
#define GS_TESTS_UNIT_PENDING_QUEUE_H

#include "base/attr.h"
#include "scheduler/pending.h"

static inline void freep(struct pending **q)
{
	pending_free(*q);
}

static inline struct pending *queue(void)
{
	struct pending *q = pending_new(&(struct pending_options){ .seed = 7 });

	CHECK(q);
	return q;
}

/* Adds `count` items of one priority, in the order of the array. */
static inline void add_all(struct pending *q, struct pending_item *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		items[i].arrival = i + 1;
		CHECK_INT(pending_add(q, &items[i], 0), 0);
	}
}

/* Pops each of them, in order, and has it refused. */
static inline void refuse_all(struct pending *q, struct pending_item *items, uint32_t count,
			      uint64_t class, uint32_t wakes)
{
	for (uint32_t i = 0; i < count; i++) {
		CHECK(pending_pop(q, 0) == &items[i]);
		CHECK_INT(pending_refused(q, &items[i], class, wakes, 0), 0);
	}
}

#endif
