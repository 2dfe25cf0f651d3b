/* SPDX-License-Identifier: Apache-2.0 */
/* linkset.h - how the GPUs of machines are linked, equal machines only once.
 *
 * Most nodes of a cluster are of a few kinds, and nodes of one kind share one struct links:
 * it saves memory, and the engine takes them for alike.  Used by one thread.
 */
#ifndef GS_SCHEDULER_LINKSET_H
#define GS_SCHEDULER_LINKSET_H

#include "base/map.h"

struct err;
struct links;
struct links_input;

struct linkset {
	struct map by_input;
	struct map by_links; /* the address of the struct links */
};

void linkset_init(struct linkset *set, uint64_t seed);
/* Frees all of them, used or not. */
void linkset_done(struct linkset *set);

/* The links that the input describes, used once more.  NULL with what is wrong with it. */
const struct links *linkset_get(struct linkset *set, const struct links_input *input,
				struct err *err);
/* The same that somebody has already, used once more. */
void linkset_hold(struct linkset *set, const struct links *links);
/* Used once less; freed after the last.  NULL is fine. */
void linkset_release(struct linkset *set, const struct links *links);

#endif
