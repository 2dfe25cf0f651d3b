/* SPDX-License-Identifier: Apache-2.0 */
/* spread.c - prefer the node that is left with the most free GPU. */
#include "base/attr.h"
#include "engine/engine.h"
#include "engine/policy/policy.h"

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	int64_t left = (int64_t)n->free_milli - request_gpu_milli(r);

	(void)s;
	(void)a;
	if (!n->total_milli)
		return PART_MAX;
	return (int32_t)(PART_MAX * MAX(left, 0) / n->total_milli);
}

static uint32_t pick_share(const struct scorer *s, const struct request *r, const struct ask *a,
			   const struct node *n, uint32_t usable)
{
	uint32_t best = gpuset_first(usable);

	(void)s;
	(void)r;
	(void)a;
	gpuset_each(gpu, usable)
		if (n->gpus[gpu].core_free_milli > n->gpus[best].core_free_milli)
			best = gpu;
	return best;
}

const struct policy policy_spread = {
	.name = "spread",
	.summary = "the node and the card that are left with the most free GPU",
	.score = score,
	.pick_share = pick_share,
};
