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

/* Whether this is what pick_share() has just weighed. */
static bool was_picked(const struct outlook_picked *p, const struct request *r,
		       const struct node *n, const struct assignment *a)
{
	const struct hold *x = &p->hold, *y = &a->holds[0];

	return a->count == 1 && p->state && p->state == n->state &&
	       p->cpu_milli == r->needs.cpu_milli && p->mem_bytes == r->needs.mem_bytes &&
	       x->gpu == y->gpu && x->kind == y->kind && x->core_milli == y->core_milli &&
	       x->mem_mib == y->mem_mib && x->group == y->group;
}

/* All that the pod takes of one card: containers may share it. */
static struct hold card_hold(const struct assignment *a, uint32_t gpu)
{
	struct hold sum = { 0 };

	for (uint16_t i = 0; i < a->count; i++) {
		const struct hold *h = &a->holds[i];

		if (h->gpu != gpu)
			continue;
		sum.kind = h->kind;
		sum.group = h->group;
		sum.core_milli = (uint16_t)(sum.core_milli + h->core_milli);
		sum.mem_mib += h->mem_mib;
	}
	return sum;
}

/* U of the node with the pod on it. */
static double usable_after(const struct outlook *o, const struct request *r, const struct node *n,
			   const struct assignment *a, struct outlook_view v)
{
	if (was_picked(&o->picked, r, n, a))
		return o->picked.usable;
	v.cpu_milli -= (double)r->needs.cpu_milli;
	v.mem_bytes -= (double)r->needs.mem_bytes;
	gpuset_each(gpu, a->gpus) {
		const struct gpu *g = &n->gpus[gpu];
		struct hold hold = card_hold(a, gpu);

		if (hold.kind != ASK_MIG)
			outlook_move(&v, outlook_level(g), outlook_level_after(g, &hold));
	}
	return outlook_usable(o, &v);
}

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	struct outlook *o = s->tables;
	const struct outlook_seen *seen;
	double lost;

	if (!n->gpus_count)
		return PART_MAX;
	seen = outlook_look(o, n);
	lost = (seen->usable - usable_after(o, r, n, a, seen->view)) / CORE_WHOLE / GPU_MAX;
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

static struct hold share_hold(const struct ask *a, const struct gpu *g, uint32_t gpu)
{
	return (struct hold){
		.gpu = (uint8_t)gpu,
		.kind = ASK_SHARE,
		.core_milli = a->core_milli,
		.mem_mib = ask_mem_mib(a, g),
		.group = a->group,
	};
}

/* The card whose use leaves the best outlook; of equals the lowest. */
static uint32_t pick_share(const struct scorer *s, const struct request *r, const struct ask *a,
			   const struct node *n, uint32_t usable)
{
	struct outlook *o = s->tables;
	uint32_t best = gpuset_first(usable);
	uint16_t tried[GPU_MAX];
	uint8_t tried_count = 0;
	double best_usable = -1;
	struct outlook_view v = outlook_look(o, n)->view;

	v.cpu_milli -= (double)r->needs.cpu_milli;
	v.mem_bytes -= (double)r->needs.mem_bytes;
	gpuset_each(gpu, usable) {
		struct hold hold = share_hold(a, &n->gpus[gpu], gpu);
		uint16_t from = outlook_level(&n->gpus[gpu]);
		uint16_t to = outlook_level_after(&n->gpus[gpu], &hold);
		uint8_t seen = 0;
		double value;

		while (seen < tried_count && tried[seen] != from)
			seen++;
		if (seen < tried_count && !n->gpus[gpu].mem_mib)
			continue; /* a card like this was tried */
		tried[tried_count++] = from;
		outlook_move(&v, from, to);
		value = outlook_usable(o, &v);
		outlook_move(&v, to, from);
		if (value > best_usable) {
			best_usable = value;
			best = gpu;
		}
	}
	o->picked = (struct outlook_picked){
		.usable = best_usable,
		.cpu_milli = r->needs.cpu_milli,
		.mem_bytes = r->needs.mem_bytes,
		.hold = share_hold(a, &n->gpus[best], best),
		.state = n->state,
	};
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

static void forget(void *tables)
{
	outlook_forget(tables);
}

const struct policy policy_default = {
	.name = "default",
	.summary = "keeps the most GPU usable for the work that is known to come",
	.score = score,
	.pick_share = pick_share,
	.tables_size = sizeof(struct outlook),
	.learn = learn,
	.forget = forget,
	.price = price,
	.reprice = reprice,
};
