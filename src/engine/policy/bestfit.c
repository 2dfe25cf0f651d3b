/* SPDX-License-Identifier: Apache-2.0 */
/* bestfit.c - the published BestFit: least CPU and GPU left, in parts of 128 cores and 8 GPUs.
 * Nodes with far more than that are all at the end of the scale. */
#include "base/attr.h"
#include "engine/policy/policy.h"

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	double cpu = (double)(n->free.cpu_milli - r->needs.cpu_milli) / 128000.0;
	double gpu = ((double)n->free_milli - request_gpu_milli(r)) / 8000.0;

	(void)s;
	(void)a;
	return (int32_t)MAX(100.0 * (1.0 - (cpu + gpu) / 2.0), 0.0);
}

const struct policy policy_bestfit = {
	.name = "bestfit",
	.summary = "published: least CPU and GPU left",
	.score = score,
	.bare = true,
	.shuffled = true,
};
