/* SPDX-License-Identifier: Apache-2.0 */
/* binpack.c - prefer the node that is left with the least free GPU. */
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
		return PART_MAX; /* work without GPUs goes to nodes without GPUs first */
	return (int32_t)(PART_MAX - PART_MAX * MAX(left, 0) / n->total_milli);
}

const struct policy policy_binpack = {
	.name = "binpack",
	.summary = "the node that is left with the least free GPU",
	.score = score,
};
