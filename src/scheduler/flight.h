/* SPDX-License-Identifier: Apache-2.0 */
/* flight.h - shared by flight.c (locking), flight_ring.c (all of a gang or none) and flight_bind.c
 * (binding). */
#ifndef GS_SCHEDULER_FLIGHT_H
#define GS_SCHEDULER_FLIGHT_H

#include "scheduler/scheduler_private.h"

#define LOST_AT_ONCE 3 /* lost locks in a row after which it pauses */
#define LOST_TOLD    6 /* ... and after which people are told */

/* flight.c: takes its lock; flight_locked() follows, or what went wrong is seen to. */
void flight_lock(struct flight *f);
/* Giving up its lock makes another version of the pod, if it is held: decided on when the cache
 * has that. */
void flight_await_fence(struct flight *f);
/* Frees it; what it holds has been seen to. */
void flight_end(struct flight *f);

/* flight_ring.c: it has its lock, or needs none. */
void flight_locked(struct flight *f);
void flight_leave_ring(struct flight *f);
/* It and all of its ring wait again, after a pause or at once. */
void flight_abort_ring(struct flight *f, bool pause);
/* Why its node or its GPUs are not what was decided on any more; NULL: they are. */
const char *flight_spoilt(const struct flight *f);
/* What was decided does not hold: the ring is decided again. */
void flight_decide_again(struct flight *f, const char *why, bool pause);

/* flight_bind.c: all of its ring are ready: sends the Binding. */
void flight_bind(struct flight *f);
/* It cannot go on: given up soon, and its pod is told why. */
void flight_fail(struct flight *f, const char *why);
/* Whether the cache still has the pod as it was when it was decided on. */
bool flight_is_cached(const struct flight *f);

#endif
