/* SPDX-License-Identifier: Apache-2.0 */
/* indexes.h - which live pod has which index of a map.
 *
 * Nothing is searched: an index is looked up by its workload and number, a pod's by its uid.
 * Two pods may have the same one for a while: one that goes and the one that replaces it.
 */
#ifndef GS_SCHEDULER_INDEXES_H
#define GS_SCHEDULER_INDEXES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct indexes {
	struct map by_key; /* "index workload" -> the first of those that have it */
	struct map by_uid; /* -> struct index_pod */
};

void indexes_init(struct indexes *set, uint64_t seed);
void indexes_done(struct indexes *set);

/* The pod has that index of the workload from now on.  0 (also if it has it), -ENOMEM. */
int indexes_take(struct indexes *set, const char *workload, uint32_t index, const char *uid);
/* Forgets all of the pod's. */
void indexes_drop(struct indexes *set, const char *uid);
bool indexes_taken(const struct indexes *set, const char *workload, uint32_t index);

#endif
