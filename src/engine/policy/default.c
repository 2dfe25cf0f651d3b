/* SPDX-License-Identifier: Apache-2.0 */
/* default.c - prefer the node that is left with the least free GPU and CPU. */
#include "base/attr.h"
#include "engine/engine.h"
#include "engine/policy/policy.h"

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	int64_t gpu = (int64_t)n->free_milli - request_gpu_milli(r);
	int64_t cpu = n->free.cpu_milli - r->needs.cpu_milli;

	(void)s;
	(void)a;
	return (int32_t)(PART_MAX - MIN(MAX(gpu, 0) * 20 + MAX(cpu, 0), PART_MAX));
}

const struct policy policy_default = {
	.name = "default",
	.summary = "keeps the most GPU usable for the work that is known to come",
	.score = score,
};
