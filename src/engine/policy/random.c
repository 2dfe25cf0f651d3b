/* SPDX-License-Identifier: Apache-2.0 */
/* random.c - any node that fits and any card that fits, from a seed.
 *
 * The number is drawn from the node's state and the request, so that it stays what it
 * was until the node changes, as every score must. */
#include "base/hash.h"
#include "engine/policy/policy.h"
#include "engine/score.h"

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	uint64_t state[4] = { s->seed, n->profile, (uint64_t)n->free.cpu_milli,
			      (uint64_t)n->free.mem_bytes + n->free_milli };

	(void)r;
	(void)a;
	return (int32_t)(hash_bytes(state, sizeof(state), s->seed) % PART_MAX);
}

static uint32_t pick_share(const struct scorer *s, const struct request *r, const struct ask *a,
			   const struct node *n, uint32_t usable)
{
	uint64_t state[2] = { (uint64_t)n->free.cpu_milli, n->free_milli };
	uint64_t nth = hash_bytes(state, sizeof(state), s->seed) % gpuset_count(usable);

	(void)r;
	(void)a;
	while (nth--)
		usable &= usable - 1;
	return gpuset_first(usable);
}

const struct policy policy_random = {
	.name = "random",
	.summary = "any node and any card that fit, from the seed",
	.score = score,
	.pick_share = pick_share,
	.bare = true,
	.shuffled = true,
};
