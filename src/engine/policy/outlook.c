/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.c - what nodes offer to the work to come. */
#include "engine/policy/outlook.h"
#include "base/attr.h"
#include "engine/mix.h"

#include <stdlib.h>
#include <string.h>

/* Pods granted to a node in multiples of what its CPU feeds when filled with one kind. */
#define FEED 2.0

/* What a card offers: the lesser of core and memory.  A card in use is no whole card, and
 * one that belongs to a group or is cut into slices offers nothing. */
uint16_t outlook_level(const struct gpu *g)
{
	uint32_t level = g->core_free_milli;

	if (!g->healthy || g->mig_mode || g->group)
		return 0;
	if (g->mem_mib)
		level = MIN(level, (uint32_t)((uint64_t)g->mem_free_mib * CORE_WHOLE / g->mem_mib));
	return (uint16_t)(g->use == GPU_IDLE ? level : MIN(level, CORE_WHOLE - 1));
}

static void add_cards(struct outlook_view *v, uint16_t level)
{
	uint8_t i = 0;

	if (!level)
		return;
	while (i < v->count && v->level[i] != level)
		i++;
	if (i == v->count) {
		v->level[i] = level;
		v->cards[i] = 0;
		v->count++;
	}
	v->cards[i]++;
}

void outlook_view(const struct node *n, struct outlook_view *v)
{
	v->cpu_milli = (double)n->free.cpu_milli;
	v->model = n->gpus_count ? n->gpus[0].model : MODEL_NONE;
	v->count = 0;
	for (uint32_t i = 0; i < n->gpus_count; i++)
		add_cards(v, outlook_level(&n->gpus[i]));
}

void outlook_move(struct outlook_view *v, uint16_t from, uint16_t to)
{
	for (uint8_t i = 0; i < v->count && from; i++) {
		if (v->level[i] != from)
			continue;
		if (--v->cards[i] == 0) {
			v->count--;
			v->level[i] = v->level[v->count];
			v->cards[i] = v->cards[v->count];
		}
		break;
	}
	add_cards(v, to);
}

uint16_t outlook_level_after(const struct gpu *g, const struct hold *h)
{
	struct gpu after = *g;

	if (h->kind == ASK_WHOLE)
		return 0;
	after.use = GPU_SHARED;
	after.group = h->group;
	after.core_free_milli = (uint16_t)(g->core_free_milli - h->core_milli);
	after.mem_free_mib = g->mem_mib ? g->mem_free_mib - h->mem_mib : 0;
	return outlook_level(&after);
}

/* One shape's part of U. */
static double shape_usable(const struct outlook_model *m, const struct outlook_shape *h,
			   const struct outlook_view *v)
{
	const struct outlook_kind *k = &m->kinds[h->first], *end = &m->kinds[h->end];
	double weight = 0, rate = 0, rest, limit, fed = FEED * v->cpu_milli * h->size_milli;
	uint32_t fit = 0, room = 0;

	for (uint8_t i = 0; i < v->count; i++) {
		uint32_t cards = v->level[i] >= h->share_milli ? v->cards[i] : 0;

		fit += cards;
		room += cards * v->level[i];
	}
	if (fit < h->gpus || k->cpu_milli > v->cpu_milli)
		return 0;
	/* Up to `limit` the room is what binds, beyond it the CPU. */
	limit = fed < room * v->cpu_milli ? fed / room : v->cpu_milli;
	for (; k < end && k->cpu_milli <= limit; k++) {
		weight = k->weight;
		rate = k->rate;
	}
	for (rest = rate; k < end && k->cpu_milli <= v->cpu_milli; k++)
		rest = k->rate;
	return weight * room + (rest - rate) * fed;
}

double outlook_usable(const struct outlook *o, const struct outlook_view *v)
{
	const struct outlook_model *m;
	double sum = 0;

	if (v->model >= o->models || !v->count)
		return 0;
	m = &o->model[v->model];
	for (uint32_t i = 0; i < m->shapes_count; i++)
		sum += shape_usable(m, &m->shapes[i], v);
	return sum;
}

/* The GPU of a node that work of one GPU or less can use, as a share of all such work. */
static double usable_by_small(const struct outlook *o, const struct outlook_view *v,
			      double free_milli)
{
	const struct outlook_model *m = &o->model[v->model < o->models ? v->model : 0];
	double sum = 0, weight = 0;

	for (uint32_t i = 0; v->model < o->models && i < m->shapes_count; i++) {
		const struct outlook_shape *h = &m->shapes[i];

		if (h->gpus > 1)
			continue;
		sum += shape_usable(m, h, v);
		weight += m->kinds[h->end - 1].weight;
	}
	return weight > 0 ? sum / weight : free_milli;
}

/* A kind while the tables are made. */
struct draft {
	struct mix_kind kind;
	double weight;                   /* W of the header */
	bool prior;                      /* not seen: assumed once */
};

struct drafts {
	struct draft items[OUTLOOK_KINDS];
	uint32_t count;
	double arrivals;                 /* priors included */
	double gpu_milli;                /* of all arrivals, without priors */
};

static int by_weight(const void *a, const void *b)
{
	const struct mix_kind *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return memcmp(x, y, offsetof(struct mix_kind, weight));
}

static void drafts_add(struct drafts *d, const struct mix_kind *kind, bool prior)
{
	if (d->count < OUTLOOK_KINDS)
		d->items[d->count++] = (struct draft){ .kind = *kind, .prior = prior };
	d->arrivals += kind->weight;
	if (!prior)
		d->gpu_milli += kind->weight * kind->gpus * kind->share_milli;
}

/* For every kind of node, a pod that needs all of it is assumed to have come once: a
 * cluster that never keeps a node whole could not place the first one. */
static void drafts_priors(struct drafts *d, const struct cluster *c)
{
	uint32_t first = d->count;

	for (uint32_t i = 0; i < cluster_nodes_end(c) && d->count < first + OUTLOOK_SHAPES; i++) {
		const struct node *n = cluster_node(c, i);
		struct mix_kind kind;
		uint32_t at = first;

		if (!n->name || !n->gpus_count)
			continue;
		memset(&kind, 0, sizeof(kind));
		kind.cpu_milli = n->allocatable.cpu_milli;
		kind.mem_bytes = n->allocatable.mem_bytes;
		kind.gpus = n->gpus_count;
		kind.share_milli = CORE_WHOLE;
		kind.weight = 1;
		while (at < d->count && memcmp(&d->items[at].kind, &kind, sizeof(kind)))
			at++;
		if (at == d->count)
			drafts_add(d, &kind, true);
	}
}

static void drafts_collect(struct drafts *d, const struct cluster *c, const struct mix *mix)
{
	struct mix_kind sorted[MIX_KINDS];
	const struct mix_kind *kinds;
	uint32_t count;
	double total;

	kinds = mix_kinds(mix, &count, &total);
	memcpy(sorted, kinds, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_weight);
	d->count = 0;
	d->arrivals = 0;
	d->gpu_milli = 0;
	for (uint32_t i = 0; i < MIN(count, OUTLOOK_KINDS - OUTLOOK_SHAPES); i++)
		drafts_add(d, &sorted[i], false);
	drafts_priors(d, c);
}

static bool subset(const struct modelset *a, const struct modelset *of)
{
	bool inside = true;

	if (modelset_any(of))
		return true;
	for (uint32_t i = 0; i < MODEL_MAX / 64; i++)
		inside &= !(a->bits[i] & ~of->bits[i]);
	return inside && !modelset_any(a);
}

/* Whether every node that takes `a` could take `b` as well: `a` competes for b's slots. */
static bool harder(const struct mix_kind *a, const struct mix_kind *b)
{
	return a->gpus >= b->gpus && (a->cpu_milli >= b->cpu_milli || a->gpus > b->gpus) &&
	       subset(&a->models, &b->models);
}

/* How many pods of a kind the cluster could take now, one node's CPU aside. */
static double slots(const struct cluster *c, const struct mix_kind *kind)
{
	double sum = 0;

	for (uint32_t i = 0; i < cluster_nodes_end(c); i++) {
		const struct node *n = cluster_node(c, i);

		if (n->name && n->idle_gpus >= kind->gpus &&
		    n->free.cpu_milli >= kind->cpu_milli && n->free.mem_bytes >= kind->mem_bytes &&
		    modelset_has(&kind->models, n->gpus[0].model))
			sum += n->idle_gpus / kind->gpus;
	}
	return sum;
}

/* The chance that slots for several GPUs run out, shared between those who need them.
 * The cube keeps it near nothing until there are hardly more slots than pods. */
static double scarcity(const struct drafts *d, const struct cluster *c, const struct draft *own,
		       double pods)
{
	double demand = 0, part = own->kind.weight / d->arrivals * pods, ratio;

	for (uint32_t i = 0; i < d->count; i++) {
		const struct mix_kind *k = &d->items[i].kind;

		if (k->gpus > 1 && harder(k, &own->kind))
			demand += k->weight / d->arrivals * pods * k->gpus / own->kind.gpus;
	}
	if (demand <= 0)
		return 0;
	ratio = MIN(1.0, demand / (slots(c, &own->kind) + 1e-9));
	return part / demand * ratio * ratio * ratio;
}

/* Pods that are still to come until the GPU that can be used is used. */
static double pods_to_come(const struct outlook *o, const struct drafts *d, const struct cluster *c)
{
	double usable = 0;

	if (d->gpu_milli <= 0)
		return 0;
	for (uint32_t i = 0; i < cluster_nodes_end(c); i++) {
		const struct node *n = cluster_node(c, i);
		struct outlook_view v;

		if (!n->name || !n->gpus_count)
			continue;
		outlook_view(n, &v);
		usable += usable_by_small(o, &v, n->free_milli);
	}
	return usable / d->gpu_milli * d->arrivals;
}

static int by_shape(const void *a, const void *b)
{
	const struct mix_kind *x = &((const struct draft *)a)->kind;
	const struct mix_kind *y = &((const struct draft *)b)->kind;

	if (x->gpus != y->gpus)
		return x->gpus < y->gpus ? -1 : 1;
	if (x->share_milli != y->share_milli)
		return x->share_milli < y->share_milli ? -1 : 1;
	if (x->cpu_milli != y->cpu_milli)
		return x->cpu_milli < y->cpu_milli ? -1 : 1;
	return memcmp(x, y, offsetof(struct mix_kind, weight));
}

/* The drafts, in order of shape and CPU, that nodes of one model can serve. */
static void model_tables(struct outlook_model *m, const struct drafts *d, uint16_t model)
{
	struct outlook_shape *h = NULL;
	uint32_t end = 0;

	m->shapes_count = 0;
	for (uint32_t i = 0; i < d->count; i++) {
		const struct draft *k = &d->items[i];
		double cpu = (double)MAX(k->kind.cpu_milli, 1), weight = 0, rate = 0;

		if (!k->kind.gpus || !modelset_has(&k->kind.models, model))
			continue;
		if (!h || h->gpus != k->kind.gpus || h->share_milli != k->kind.share_milli) {
			if (m->shapes_count == OUTLOOK_SHAPES)
				return;
			h = &m->shapes[m->shapes_count++];
			*h = (struct outlook_shape){
				.gpus = k->kind.gpus,
				.share_milli = k->kind.share_milli,
				.size_milli = (double)k->kind.gpus * k->kind.share_milli,
				.first = end,
				.end = end,
			};
		}
		if (h->end > h->first) {
			weight = m->kinds[end - 1].weight;
			rate = m->kinds[end - 1].rate;
		}
		m->kinds[end++] = (struct outlook_kind){
			.cpu_milli = cpu,
			.weight = weight + k->weight,
			.rate = rate + k->weight / cpu,
		};
		h->end = end;
	}
}

void outlook_learn(struct outlook *o, const struct cluster *c, const struct mix *mix)
{
	struct drafts d;
	double pods;

	drafts_collect(&d, c, mix);
	pods = pods_to_come(o, &d, c);
	for (uint32_t i = 0; i < d.count; i++) {
		struct draft *k = &d.items[i];

		k->weight = k->kind.gpus > 1 ? scarcity(&d, c, k, pods) :
					       k->kind.weight / d.arrivals;
	}
	qsort(d.items, d.count, sizeof(*d.items), by_shape);
	o->models = cluster_models(c);
	for (uint32_t i = 0; i < o->models; i++)
		model_tables(&o->model[i], &d, (uint16_t)i);
}
