/* SPDX-License-Identifier: Apache-2.0 */
/* pick.h - which whole GPUs of a node a container gets.
 *
 * The answer is the best of all sets of `count` free GPUs, never a greedy guess.
 * "Best" is decided by the first of these that differs:
 *
 *   1. the minimum bandwidth (mode Required: sets with a slower pair are no
 *      answer; Preferred: they come after those without; Ignore: not looked at)
 *   2. the policy
 *        contiguous  ids that follow each other inside one island, before others
 *        spread      as evenly as possible over the islands, which is over as many
 *                    as possible (least sum of squares of the members of each), then
 *                    in the same way over NUMA nodes
 *        prefer      as many as possible of the preferred ids; of these the
 *                    earlier in the list
 *        bandwidth   nothing
 *   3. greatest total bandwidth over all pairs of the set (not in mode Ignore)
 *   4. the best remainder: links_rest() of the GPUs that stay free
 *   5. lowest ids, as words in a dictionary: {0,5} before {1,2}
 *
 * Modes speak of the minimum: without one, Required and Preferred are the same.
 * Mode Ignore drops contiguity and bandwidth, for both are topology; a spread or
 * preferred ids that somebody asked for still hold.
 *
 * Cost: no memory; at most one step per state of the machine that has `count`
 * members: 9 on a machine of 16 equal GPUs, 70 for eight unlike ones, 12,870 for
 * sixteen unlike ones.  The median over all presets' picks is about 0.1 us.
 * Machines whose states are not tabulated (links.h; more than 16 GPUs of irregular
 * links) are searched by branch and bound in at most PICK_STEPS_MAX steps, some 2 ms;
 * `exact` tells whether the proof was finished, and rules 4 and 5 then decide only
 * between the candidates of a greedy start.
 *
 * Pinned ids are not picked: the caller checks that they are free.
 */
#ifndef GS_ENGINE_PICK_H
#define GS_ENGINE_PICK_H

#include "engine/links.h"

#include <stdbool.h>
#include <stdint.h>

#define PICK_STEPS_MAX 16384

enum pick_policy {
	PICK_CONTIGUOUS, /* the default */
	PICK_SPREAD,
	PICK_PREFER,
	PICK_BANDWIDTH,
};

enum pick_mode {
	PICK_PREFERRED, /* the default */
	PICK_REQUIRED,
	PICK_IGNORE,
};

enum pick_verdict {
	PICK_OK,
	PICK_TOO_FEW,  /* fewer free GPUs than asked for */
	PICK_TOO_SLOW, /* enough, but no set reaches min_gbps (mode Required) */
};

struct pick_query {
	const struct links *links;
	uint32_t free; /* GPUs to choose from; bits past links->count
					   are ignored */
	uint8_t count; /* how many */
	enum pick_policy policy;
	enum pick_mode mode;
	uint16_t min_gbps;	   /* every pair; 0: any.  One GPU always passes */
	const uint8_t *prefer_ids; /* PICK_PREFER: most wanted first, any length;
					   repeated or unknown ids do no harm */
	uint32_t prefer_len;
};

struct pick {
	uint32_t gpus;	       /* the set */
	uint32_t total_gbps;   /* over all its pairs */
	uint16_t weakest_gbps; /* LINKS_NO_PAIR below two GPUs */
	bool reaches_minimum;  /* every pair has min_gbps; always with Required */
	bool exact;	       /* proven best, see above */
};

/* `ret` is written if the verdict is PICK_OK.  A count of 0 is met by no GPUs. */
enum pick_verdict pick_gpus(const struct pick_query *query, struct pick *ret);

#endif
