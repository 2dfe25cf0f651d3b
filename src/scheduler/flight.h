/* SPDX-License-Identifier: Apache-2.0 */
/* flight.h - shared by flight.c (locking) and flight_bind.c (binding). */
#ifndef GS_SCHEDULER_FLIGHT_H
#define GS_SCHEDULER_FLIGHT_H

#include "scheduler/scheduler_private.h"

#define LOST_AT_ONCE 3 /* lost locks in a row after which it pauses */
#define LOST_TOLD    6 /* ... and after which people are told */

/* The lock is held, and so are those of its gang: sends the Binding. */
void flight_bind(struct flight *f);
/* It cannot go on: given up soon, and its pod is told why. */
void flight_fail(struct flight *f, const char *why);
/* Whether the cache still has the pod as it was when it was decided on. */
bool flight_is_cached(const struct flight *f);
/* Frees it; what it holds has been seen to. */
void flight_end(struct flight *f);
/* It and all of its ring wait again, after a pause or at once. */
void flight_abort_ring(struct flight *f, bool pause);

#endif
