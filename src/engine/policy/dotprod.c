/* SPDX-License-Identifier: Apache-2.0 */
/* dotprod.c - the published DotProd: the request's shape against the node's free shape, in parts
 * of 128 cores and 8 GPUs. */
#include "base/attr.h"
#include "engine/policy/policy.h"

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	double cpu =
		(double)n->free.cpu_milli / 128000.0 * ((double)r->needs.cpu_milli / 128000.0);
	double gpu = n->free_milli / 8000.0 * (request_gpu_milli(r) / 8000.0);

	(void)s;
	(void)a;
	return (int32_t)MAX(100.0 * (1.0 - (cpu + gpu) / 2.0), 0.0);
}

const struct policy policy_dotprod = {
	.name = "dotprod",
	.summary = "published: least overlap of request and free resources",
	.score = score,
	.bare = true,
	.shuffled = true,
};
