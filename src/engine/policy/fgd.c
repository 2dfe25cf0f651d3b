/* SPDX-License-Identifier: Apache-2.0 */
/* fgd.c - the published FGD (Weng et al., ATC 2023): the node whose expected fragmentation
 * grows least.
 *
 * Fragmentation of a node is the free GPU that a random task of the known mix cannot use
 * there: all of it if the task does not fit the node or needs no GPU, else what lies on
 * cards that are each too small for it.  The mix is the most frequent kinds that cover
 * 95 % of the list. */
#include "engine/mix.h"
#include "engine/policy/policy.h"
#include "engine/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COVERED 0.95

struct task {
	int64_t cpu_milli;
	struct modelset models;
	uint32_t gpus, share_milli;
	double probability;
};

struct tables {
	uint32_t count;
	struct task tasks[MIX_KINDS];
};

static int by_probability(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	if (x->probability != y->probability)
		return x->probability > y->probability ? -1 : 1;
	return memcmp(x, y, offsetof(struct task, probability));
}

/* Kinds that differ in memory only are one task here. */
static void merge(struct tables *t, const struct mix_kind *kind, double probability)
{
	struct task *task = t->tasks;

	while (task < t->tasks + t->count &&
	       (task->cpu_milli != kind->cpu_milli || task->gpus != kind->gpus ||
		task->share_milli != kind->share_milli ||
		memcmp(&task->models, &kind->models, sizeof(task->models))))
		task++;
	if (task == t->tasks + t->count) {
		t->count++;
		*task = (struct task){
			.cpu_milli = kind->cpu_milli,
			.models = kind->models,
			.gpus = kind->gpus,
			.share_milli = kind->share_milli,
		};
	}
	task->probability += probability;
}

static void learn(void *tables, const struct cluster *c, const struct mix *mix)
{
	struct tables *t = tables;
	const struct mix_kind *kinds;
	double total, covered = 0;
	uint32_t count, used = 0;

	(void)c;
	t->count = 0;
	kinds = mix_kinds(mix, &count, &total);
	for (uint32_t i = 0; i < count; i++)
		merge(t, &kinds[i], kinds[i].weight / total);
	qsort(t->tasks, t->count, sizeof(*t->tasks), by_probability);
	while (used < t->count && covered < COVERED)
		covered += t->tasks[used++].probability;
	t->count = used;
	for (uint32_t i = 0; i < used; i++)
		t->tasks[i].probability /= covered;
}

/* A node as it would be: what is free on each card, and CPU. */
struct view {
	int64_t cpu_milli;
	uint32_t free_milli;
	uint32_t count;
	uint32_t free[GPU_MAX];
	uint16_t model;
};

static double fragmentation(const struct tables *t, const struct view *v)
{
	double sum = 0;

	for (uint32_t k = 0; k < t->count; k++) {
		const struct task *task = &t->tasks[k];
		uint32_t fit = 0, small = 0;

		if (task->gpus && task->cpu_milli <= v->cpu_milli &&
		    modelset_has(&task->models, v->model)) {
			for (uint32_t i = 0; i < v->count; i++) {
				bool fits = v->free[i] >= task->share_milli;

				fit += fits;
				small += fits ? 0 : v->free[i];
			}
		}
		sum += task->probability *
		       (task->gpus && fit >= task->gpus ? small : v->free_milli);
	}
	return sum / CORE_WHOLE;
}

static void view_node(const struct node *n, struct view *v)
{
	v->cpu_milli = n->free.cpu_milli;
	v->free_milli = n->free_milli;
	v->count = n->gpus_count;
	v->model = n->gpus_count ? n->gpus[0].model : 0;
	for (uint32_t i = 0; i < v->count; i++)
		v->free[i] = n->gpus[i].healthy ? n->gpus[i].core_free_milli : 0;
}

static void view_take(struct view *v, uint32_t gpu, uint32_t milli)
{
	v->free[gpu] -= milli;
	v->free_milli -= milli;
}

static int32_t gradient(double before, double after)
{
	return (int32_t)(100.0 / (1.0 + exp(after - before)));
}

static int32_t score(const struct scorer *s, const struct request *r, const struct node *n,
		     const struct assignment *a)
{
	const struct tables *t = s->tables;
	struct view v;
	double before;

	view_node(n, &v);
	before = fragmentation(t, &v);
	v.cpu_milli -= r->needs.cpu_milli;
	for (uint16_t i = 0; i < a->count; i++)
		view_take(&v, a->holds[i].gpu,
			  a->holds[i].kind == ASK_WHOLE ? CORE_WHOLE : a->holds[i].core_milli);
	return gradient(before, fragmentation(t, &v));
}

static uint32_t pick_share(const struct scorer *s, const struct request *r, const struct ask *a,
			   const struct node *n, uint32_t usable)
{
	const struct tables *t = s->tables;
	uint32_t best = gpuset_first(usable);
	int32_t best_score = -1;
	struct view v;
	double before;

	view_node(n, &v);
	before = fragmentation(t, &v);
	v.cpu_milli -= r->needs.cpu_milli;
	gpuset_each(gpu, usable) {
		int32_t value;

		view_take(&v, gpu, a->core_milli);
		value = gradient(before, fragmentation(t, &v));
		view_take(&v, gpu, -(uint32_t)a->core_milli);
		if (value > best_score) {
			best_score = value;
			best = gpu;
		}
	}
	return best;
}

const struct policy policy_fgd = {
	.name = "fgd",
	.summary = "published: fragmentation gradient descent, told the mix in advance",
	.score = score,
	.pick_share = pick_share,
	.tables_size = sizeof(struct tables),
	.learn = learn,
	.bare = true,
	.knows_mix = true,
	.shuffled = true,
};
