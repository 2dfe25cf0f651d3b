/* SPDX-License-Identifier: Apache-2.0 */
/* asked.h - what parked pods ask for, kept once for all that ask for the same.
 *
 * A request takes 2.4 KiB and holds its rules in the cluster; ten thousand replicas that wait
 * share one.
 */
#ifndef GS_SCHEDULER_ASKED_H
#define GS_SCHEDULER_ASKED_H

#include "base/map.h"
#include "engine/request.h"

struct cluster;

struct asked {
	struct request request; /* holds its rules and its subject */
	uint64_t hash;		/* never 0 */
	uint32_t users;
};

struct asked_set {
	struct cluster *cluster;
	uint64_t seed;
	struct map by_hash;
};

void asked_init(struct asked_set *set, struct cluster *cluster, uint64_t seed);
void asked_done(struct asked_set *set);

/* A hash of what is asked, the same for equal requests. */
uint64_t asked_hash(const struct asked_set *set, const struct request *r);
/* Counted once more; NULL: out of memory. */
struct asked *asked_take(struct asked_set *set, const struct request *r);
void asked_release(struct asked_set *set, struct asked *asked); /* NULL is fine */

#endif
