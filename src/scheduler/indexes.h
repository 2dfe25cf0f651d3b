/* SPDX-License-Identifier: Apache-2.0 */
/* indexes.h - which live pod has which index of a map.
 *
 * A pod has one at most.  Nothing is searched: an index is looked up by its workload and number,
 * a pod's by its uid.  Two pods may have the same one for a while: one that goes and the one
 * that replaces it, or two that different schedulers chose it for.
 */
#ifndef GS_SCHEDULER_INDEXES_H
#define GS_SCHEDULER_INDEXES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

#define INDEXES_NONE UINT32_MAX

struct indexes {
	struct map by_key; /* "index workload" -> the first of those that have it */
	struct map by_uid; /* -> struct index_entry */
	/* May be NULL.  A pod has the index no more. */
	void (*freed)(void *context, const char *workload, uint32_t index);
	void *context;
};

void indexes_init(struct indexes *set, uint64_t seed);
void indexes_done(struct indexes *set);

/* The pod has that index of the workload from now on, and no other.  0 (also if it has it),
 * -ENOMEM (it has none). */
int indexes_take(struct indexes *set, const char *workload, uint32_t index, const char *uid);
/* The pod has none.  Fine if it had none. */
void indexes_drop(struct indexes *set, const char *uid);
/* Whether a pod other than `reader` (NULL: any pod) has it. */
bool indexes_taken(const struct indexes *set, const char *workload, uint32_t index,
		   const char *reader);
/* The pod's index of that workload, or INDEXES_NONE. */
uint32_t indexes_of(const struct indexes *set, const char *workload, const char *uid);

#endif
