/* SPDX-License-Identifier: Apache-2.0 */
/* pending.h - what waits for a decision: single pods and gangs.
 *
 * An item is in exactly one place: ready (by priority, then arrival), backing off (until a
 * deadline), parked (until something happens that could help it), or out (popped, being
 * decided, locked and bound).
 *
 * Parked items are kept by class: items that ask for the same are helped by the same, so an
 * event is judged once for a class, and only its first item becomes ready.  If that is
 * placed the next follows it; if it is refused again, the class sleeps on.  So a freed GPU
 * wakes one pod, not ten thousand that wait for one.  A woken item that leaves the question
 * open (it is removed, asks for something else now, or fails twice in a row) has the next
 * follow too.  A class waits for all that its items were refused for since it was last empty:
 * what would help one of them would help the others.
 *
 * An event that arrives while an item is out is not lost: an item that is refused for
 * something that happened since it was popped is tried again.
 *
 * Pure: time is an argument, and never goes back.  Expect tens of thousands parked, tens
 * ready; parking is O(1) for items that come in their order (else O(log n)), an event costs
 * one look at each class that waits for its kind.
 */
#ifndef GS_SCHEDULER_PENDING_H
#define GS_SCHEDULER_PENDING_H

#include <stdbool.h>
#include <stdint.h>

struct pending;

/* What can help: a mask. */
enum pending_wake {
	WAKE_POD_LEFT = 1 << 0, /* a placed pod is gone, smaller, or its port is free */
	WAKE_POD_CAME = 1 << 1, /* a pod is placed, or its labels changed: affinity, spread */
	WAKE_NODE = 1 << 2,	/* a node came, grew, or its labels or taints changed */
	WAKE_GPU = 1 << 3,	/* a GPU came or is well again */
	WAKE_VOLUME = 1 << 4,	/* PVC, PV, StorageClass, CSI objects */
	WAKE_OBJECT = 1 << 5,	/* a claim, owner, PodGroup, Namespace, PriorityClass */
	WAKE_SELF = 1 << 6,	/* the pod itself changed */
	WAKE_LOCK = 1 << 7,	/* an entry of somebody else is gone */
	WAKE_CONFIG = 1 << 8,
	WAKE_INDEX =
		1 << 9, /* an index of a map is free, or another has it too: for pods only, and
				one at a time (pending_each()) */
	WAKE_ALL = (1 << 10) - 1,
};
#define WAKES 10

enum pending_place { PENDING_OUT, PENDING_READY, PENDING_BACKOFF, PENDING_PARKED };

/* Embedded in what waits; the fields above the line are the caller's. */
struct pending_item {
	int32_t priority;
	uint64_t arrival; /* the smaller goes first */
	uint32_t members; /* of a gang, whose longest backoff grows with its root; 0 or 1: a pod */
	/* -- */
	uint8_t place; /* enum pending_place */
	uint8_t added;
	uint8_t placed;			      /* it has left as such */
	uint8_t changed;		      /* out: it has, since it was popped */
	uint32_t wakes;			      /* parked: what helps */
	uint32_t refusals;		      /* so far; pending_wake_item() clears them */
	uint32_t failures;		      /* in a row */
	uint32_t position;		      /* in the heap of its place */
	uint32_t early;			      /* backing off: in the heap of what comes early */
	uint64_t until_ms;		      /* of its backoff */
	uint64_t popped;		      /* number of the last event then */
	uint64_t parked_ms;		      /* since when */
	struct pending_class *class;	      /* parked in it, or woken from it */
	struct pending_item *next, *previous; /* parked: by time */
};

struct pending_options {
	uint32_t max_items;	 /* 0: 1,000,000 */
	uint32_t backoff_ms;	 /* 0: 1 s, doubled with every refusal */
	uint32_t backoff_max_ms; /* 0: 10 s */
	uint32_t patience_ms;	 /* parked at most so long; 0: 5 min */
	uint64_t seed;		 /* of the hash of classes */
};

struct pending *pending_new(const struct pending_options *options); /* NULL: out of memory */
void pending_free(struct pending *q); /* items are the caller's; NULL is fine */
/* Other times from the next refusal on; 0 as above. */
void pending_set_backoff(struct pending *q, uint32_t backoff_ms, uint32_t backoff_max_ms);

/* Ready at once.  The item is zero but for the caller's fields, or was removed.  0, -EEXIST,
 * -ENOSPC at max_items, -ENOMEM. */
int pending_add(struct pending *q, struct pending_item *item, uint64_t now_ms);
/* Out of the queue for good, wherever it is.  Fine if it was never added. */
void pending_remove(struct pending *q, struct pending_item *item);

/* The next to decide on, or NULL.  It is out until one of the next four, which do nothing
 * when it has been removed meanwhile.  When nothing is ready, what backs off comes early, by
 * priority and arrival; but what failed waits for its time. */
struct pending_item *pending_pop(struct pending *q, uint64_t now_ms);

/* It is placed: leaves the queue; the next of its class follows. */
void pending_placed(struct pending *q, struct pending_item *item);
/* It does not fit, or is wrong in itself: parked until one of `wakes`, or, if one of these
 * happened since it was popped, backing off.  `class`: equal for items that ask for the same
 * (a hash of the request); 0: like no other.  0, -ENOMEM (then it has failed). */
int pending_refused(struct pending *q, struct pending_item *item, uint64_t class, uint32_t wakes,
		    uint64_t now_ms);
/* Something failed that is not its fault (a lost lock, an error): backs off, the longer the
 * more often in a row.  Also for an item that is ready; and for one that has left as placed:
 * it comes back.  One that backs off or is parked stays as it is.  0; -ENOSPC, -ENOMEM if it
 * cannot come back. */
int pending_failed(struct pending *q, struct pending_item *item, uint64_t now_ms);
/* Decide again at once, without counting it. */
void pending_again(struct pending *q, struct pending_item *item);
/* It has a place, and stays out while it is bound, which takes a while: the next of its class
 * follows already, instead of with pending_placed(). */
void pending_follow(struct pending *q, struct pending_item *item);

/* Its priority or arrival has changed; or anything of it has: then it is ready again, in its new
 * order, or, if it is out, backs off when it is refused. */
void pending_moved(struct pending *q, struct pending_item *item);
void pending_wake_item(struct pending *q, struct pending_item *item, uint64_t now_ms);

/* Something happened (one kind, or several at once).  Of each class that waits for it, `helps`
 * (NULL: yes) is asked once, with its first item, whether it could.  It leaves the queue as it
 * is. */
void pending_event(struct pending *q, enum pending_wake wake, uint64_t now_ms,
		   bool (*helps)(void *context, struct pending_item *item), void *context);

/* The first of each class that waits for such an event.  It must leave the queue as it is. */
void pending_each(const struct pending *q, enum pending_wake wake,
		  void (*each)(void *context, struct pending_item *item), void *context);

/* Moves what is due; returns in how many ms the next one is (UINT64_MAX: never). */
uint64_t pending_tick(struct pending *q, uint64_t now_ms);

uint32_t pending_count(const struct pending *q, enum pending_place place);
bool pending_has_ready(const struct pending *q); /* pending_pop() has one, at any time */

#endif
