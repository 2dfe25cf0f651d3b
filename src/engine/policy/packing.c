/* SPDX-License-Identifier: Apache-2.0 */
/* packing.c - the published GpuPacking: GPUs in use, then idle GPUs of used nodes, then
 * unused nodes. */
#include "base/attr.h"
#include "engine/policy/policy.h"

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	int32_t opened = 0, room = 0;

	(void)s;
	if (!r->asks_count)
		return 0;
	for (uint16_t i = 0; i < a->count; i++) {
		const struct gpu *g = &n->gpus[a->holds[i].gpu];

		if (g->use == GPU_IDLE)
			opened++;
		else
			room += g->core_free_milli;
	}
	if (!opened)
		return MAX(100 - room / 10, 0);
	return MAX(n->free_milli < n->total_milli ? 50 - opened : 33 - n->gpus_count, 0);
}

const struct policy policy_packing = {
	.name = "packing",
	.summary = "published: GPUs in use before idle ones, used nodes before unused ones",
	.score = score,
	.bare = true,
	.shuffled = true,
};
