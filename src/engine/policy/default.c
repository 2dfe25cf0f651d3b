/* SPDX-License-Identifier: Apache-2.0 */
/* default.c - keep as much GPU usable for the work to come as possible.
 *
 * The best node is the one whose outlook (outlook.h) loses least, less the price of its
 * GPU model.  One GPU of outlook is 1/GPU_MAX of the scale; a GPU of a model that is
 * wholly needed by others costs PRICE_GPUS of them. */
#include "base/attr.h"
#include "engine/policy/outlook.h"
#include "engine/policy/policy.h"
#include "engine/score.h"

#define PRICE_GPUS 4

static_assert(PRICE_GPUS * PART_MAX <= PRICE_MAX, "a price of GPU_MAX GPUs fits");

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	struct outlook *o = s->tables;
	struct outlook_view v;
	double before, lost;

	outlook_view(n, &v);
	before = outlook_usable_now(o, n, &v);
	v.cpu_milli -= (double)r->needs.cpu_milli;
	v.mem_bytes -= (double)r->needs.mem_bytes;
	for (uint16_t i = 0; i < a->count; i++) {
		const struct gpu *g = &n->gpus[a->holds[i].gpu];

		if (a->holds[i].kind != ASK_MIG)
			outlook_move(&v, outlook_level(g), outlook_level_after(g, &a->holds[i]));
	}
	lost = (before - outlook_usable(o, &v)) / CORE_WHOLE / GPU_MAX;
	return (int32_t)(PART_MAX * (1.0 - MIN(MAX(lost, 0.0), 1.0)));
}

static int32_t price(const struct scorer *s, const struct request *r, uint16_t model)
{
	const struct outlook *o = s->tables;
	double gpus, load;

	if (model >= o->models || o->model[model].load <= 0)
		return 0;
	load = o->model[model].load;
	gpus = MIN(request_gpu_milli(r), GPU_MAX * CORE_WHOLE) / (double)CORE_WHOLE;
	return (int32_t)(PART_MAX * (PRICE_GPUS * load * load * gpus / GPU_MAX));
}

/* The card whose use leaves the best outlook; of equals the lowest. */
static uint32_t pick_share(const struct scorer *s, const struct request *r, const struct ask *a,
			   const struct node *n, uint32_t usable)
{
	const struct outlook *o = s->tables;
	uint32_t best = gpuset_first(usable);
	uint16_t tried[GPU_MAX];
	uint8_t tried_count = 0;
	double best_usable = -1;
	struct outlook_view v;

	outlook_view(n, &v);
	v.cpu_milli -= (double)r->needs.cpu_milli;
	v.mem_bytes -= (double)r->needs.mem_bytes;
	gpuset_each(gpu, usable) {
		struct hold hold = { .kind = ASK_SHARE, .core_milli = a->core_milli,
				     .mem_mib = a->mem_mib, .group = a->group };
		uint16_t from = outlook_level(&n->gpus[gpu]);
		uint16_t to = outlook_level_after(&n->gpus[gpu], &hold);
		uint8_t seen = 0;
		double value;

		while (seen < tried_count && tried[seen] != from)
			seen++;
		if (seen < tried_count && !n->gpus[gpu].mem_mib)
			continue;        /* a card like this was tried */
		tried[tried_count++] = from;
		outlook_move(&v, from, to);
		value = outlook_usable(o, &v);
		outlook_move(&v, to, from);
		if (value > best_usable) {
			best_usable = value;
			best = gpu;
		}
	}
	return best;
}

static void learn(void *tables, const struct cluster *c, const struct mix *mix)
{
	outlook_learn(tables, c, mix);
}

static bool reprice(void *tables, const struct cluster *c, const struct mix *mix)
{
	return outlook_reprice(tables, c, mix);
}

const struct policy policy_default = {
	.name = "default",
	.summary = "keeps the most GPU usable for the work that is known to come",
	.score = score,
	.pick_share = pick_share,
	.tables_size = sizeof(struct outlook),
	.learn = learn,
	.price = price,
	.reprice = reprice,
};
