/* SPDX-License-Identifier: Apache-2.0 */
/* pick_search.h - inside of pick: the best set so far, and what makes one better.
 *
 * Shared by pick.c, which looks at every state of a machine, and pick_wide.c, for
 * machines that have too many.  Nobody else includes it.
 */
#ifndef GS_ENGINE_PICK_SEARCH_H
#define GS_ENGINE_PICK_SEARCH_H

#include "engine/pick.h"

/* The policy as a number.  The mark for the preferred minimum stands above all; below
 * it a run, or how even the spread is, or how many wanted GPUs there are and which. */
#define POLICY_REACHES (UINT64_C(1) << 63)
#define POLICY_RUN     (UINT64_C(1) << 62)

/* Free twins.  Whatever else is chosen, of a group only the number matters, so the
 * first m members are as good as any m. */
struct group {
	uint32_t members[GPU_MAX + 1]; /* by m: the first m, most wanted first */
	uint32_t stride;	       /* what one member adds to the state */
	uint8_t size;
	uint8_t room; /* members of this group and of all behind it */
	uint8_t gpu;  /* one of them, to look up bandwidths */
};

struct search {
	const struct links *links;
	const struct pick_query *query;
	uint32_t free;	     /* only GPUs that exist */
	uint32_t free_state; /* of links->states, if there are */
	uint16_t floor_gbps; /* sets with a slower pair are no answer */

	uint32_t rank[GPU_MAX]; /* by GPU: 0, or a bit; more wanted, higher bit */
	unsigned group_count;
	struct group *groups; /* one more, which is empty, behind the last */

	bool found;
	uint32_t gpus; /* the best so far, and its worth */
	uint64_t policy;
	uint32_t total_gbps, rest_gbps;
};

/* Remembers the set if it is better than the best so far.  `run`: it was found as
 * ids that follow each other inside one island. */
void search_offer_set(struct search *s, uint32_t gpus, bool run);

/* How well the set serves the policy, without POLICY_REACHES. */
uint64_t search_policy(const struct search *s, uint32_t gpus, bool run);

/* Whether the answer's total bandwidth matters. */
static inline bool search_by_bandwidth(const struct search *s)
{
	return s->query->mode != PICK_IGNORE;
}

/* Branch and bound over the groups.  False if the steps ran out before the best was
 * proven. */
bool pick_wide(struct search *s);

#endif
