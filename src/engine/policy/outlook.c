/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.c - what nodes offer to the work to come. */
#include "engine/policy/outlook.h"
#include "base/attr.h"
#include "engine/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pods granted to a node in multiples of what its CPU feeds when filled with one kind. */
#define FEED	   2.0
#define PRIORS_MAX 64

/* What a card offers: the lesser of core and memory.  A card in use is no whole card, and
 * one that belongs to a group or is cut into slices offers nothing. */
uint16_t outlook_level(const struct gpu *g)
{
	int64_t level = g->core_free_milli;

	if (!g->healthy || g->mig_mode || g->group)
		return 0;
	if (g->mem_mib)
		level = MIN(level, (int64_t)g->mem_free_mib * CORE_WHOLE / g->mem_mib);
	level = MAX(level, 0);
	return (uint16_t)(g->use == GPU_IDLE ? level : MIN(level, CORE_WHOLE - 1));
}

static void add_card(struct outlook_view *v, uint16_t level)
{
	uint8_t at = v->count;

	if (!level)
		return;
	while (at && v->level[at - 1] > level)
		at--;
	if (at && v->level[at - 1] == level) {
		v->cards[at - 1]++;
		return;
	}
	for (uint8_t i = v->count; i > at; i--) {
		v->level[i] = v->level[i - 1];
		v->cards[i] = v->cards[i - 1];
	}
	v->level[at] = level;
	v->cards[at] = 1;
	v->count++;
}

static void remove_card(struct outlook_view *v, uint16_t level)
{
	uint8_t at = 0;

	if (!level)
		return;
	while (v->level[at] != level)
		at++;
	if (--v->cards[at])
		return;
	v->count--;
	for (; at < v->count; at++) {
		v->level[at] = v->level[at + 1];
		v->cards[at] = v->cards[at + 1];
	}
}

void outlook_view(const struct node *n, struct outlook_view *v)
{
	v->cpu_milli = (double)n->free.cpu_milli;
	v->mem_bytes = (double)n->free.mem_bytes;
	v->model = n->gpus_count ? n->gpus[0].model : MODEL_NONE;
	v->count = 0;
	for (uint32_t i = 0; i < n->gpus_count; i++)
		add_card(v, outlook_level(&n->gpus[i]));
}

void outlook_move(struct outlook_view *v, uint16_t from, uint16_t to)
{
	remove_card(v, from);
	add_card(v, to);
}

uint16_t outlook_level_after(const struct gpu *g, const struct hold *h)
{
	struct gpu after = *g;

	if (h->kind == ASK_WHOLE)
		return 0;
	after.use = GPU_SHARED;
	after.group = h->group;
	after.core_free_milli = (int16_t)(g->core_free_milli - h->core_milli);
	after.mem_free_mib = g->mem_mib ? g->mem_free_mib - (int32_t)h->mem_mib : 0;
	return outlook_level(&after);
}

/* What the cards that are large enough for a shape offer together. */
struct room {
	uint32_t cards, milli;
};

/* By index of a level: the cards at that level and above. */
static void rooms(const struct outlook_view *v, struct room *from)
{
	from[v->count] = (struct room){ 0 };
	for (uint8_t i = v->count; i--;) {
		from[i].cards = from[i + 1].cards + v->cards[i];
		from[i].milli = from[i + 1].milli + (uint32_t)v->cards[i] * v->level[i];
	}
}

#define FEW 6 /* kinds that are sooner counted than halved */

/* The kinds that need at most so much CPU: how many of `count`. */
static uint32_t kinds_within(const struct outlook_kind *k, uint32_t count, double cpu_milli)
{
	uint32_t low = 0, high = count;

	while (high - low > FEW) {
		uint32_t middle = (low + high) / 2;

		if (k[middle].cpu_milli <= cpu_milli)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < high && k[low].cpu_milli <= cpu_milli)
		low++;
	return low;
}

/* One shape's part of U.  Kinds of little CPU are limited by the room, the others by the
 * CPU that feeds them. */
static double shape_usable(const struct outlook_kind *kinds, const struct outlook_shape *h,
			   double cpu_milli, double room_milli)
{
	const struct outlook_kind *k = &kinds[h->first];
	double fed = FEED * cpu_milli * h->size_milli;
	uint32_t roomy, fitting = h->end - h->first;
	double sum = 0, rate = 0;

	if (h->most_cpu > cpu_milli)
		fitting = kinds_within(k, fitting, cpu_milli);
	roomy = kinds_within(k, fitting, fed / room_milli);
	if (roomy) {
		sum = k[roomy - 1].weight * room_milli;
		rate = k[roomy - 1].rate;
	}
	return sum + (k[fitting - 1].rate - rate) * fed;
}

/* The sum over shapes of at most so many GPUs.  Shapes come in order of GPUs and share,
 * so the cards that are large enough are found by going along. */
static double usable_up_to(const struct outlook_model *m, const struct outlook_view *v,
			   uint32_t most_gpus)
{
	struct room from[GPU_MAX + 1];
	uint32_t share = 0;
	uint8_t at = 0;
	double sum = 0;

	rooms(v, from);
	for (const struct outlook_shape *h = m->shapes; h < m->shapes + m->shapes_count; h++) {
		double cpu_milli;

		if (h->gpus > most_gpus || h->gpus > from[0].cards)
			break;
		if (h->share_milli < share)
			at = 0;
		share = h->share_milli;
		while (at < v->count && v->level[at] < share)
			at++;
		if (from[at].cards < h->gpus)
			continue;
		cpu_milli = v->cpu_milli;
		if (h->cpu_per_byte < INFINITY)
			cpu_milli = MIN(cpu_milli, v->mem_bytes * h->cpu_per_byte);
		if (h->most_cpu <= cpu_milli && h->cpu_per_room * from[at].milli <= cpu_milli)
			sum += h->weight * from[at].milli; /* CPU is no limit to any kind */
		else if (h->least_cpu <= cpu_milli)
			sum += shape_usable(m->kinds, h, cpu_milli, from[at].milli);
	}
	return sum;
}

double outlook_usable(const struct outlook *o, const struct outlook_view *v)
{
	if (v->model >= o->models || !v->count)
		return 0;
	return usable_up_to(&o->model[v->model], v, GPU_MAX);
}

const struct outlook_seen *outlook_look(struct outlook *o, const struct node *n)
{
	struct outlook_seen *seen = n->state ? &o->seen[n->state % OUTLOOK_CACHE] : &o->stranger;

	if (n->state && seen->state == n->state && seen->epoch == o->seen_epoch)
		return seen;
	outlook_view(n, &seen->view);
	seen->usable = outlook_usable(o, &seen->view);
	seen->state = n->state;
	seen->epoch = o->seen_epoch;
	return seen;
}

/* The GPU of a node that work of one GPU or less can use, as a share of all such work. */
static double usable_by_small(const struct outlook *o, const struct outlook_view *v,
			      double free_milli)
{
	const struct outlook_model *m = &o->model[v->model];
	double weight = 0;

	for (uint32_t i = 0; v->model < o->models && i < m->shapes_count; i++)
		weight += m->shapes[i].gpus == 1 ? m->shapes[i].weight : 0;
	return weight > 0 ? usable_up_to(m, v, 1) / weight : free_milli;
}

/* A kind while the tables are made. */
struct draft {
	struct mix_kind kind;
	double weight; /* W of the header */
};

struct drafts {
	struct draft items[OUTLOOK_KINDS];
	uint32_t count;
	double arrivals;
	double gpu_milli; /* of all arrivals */
};

static int by_weight(const void *a, const void *b)
{
	const struct mix_kind *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return memcmp(x, y, offsetof(struct mix_kind, weight));
}

static void drafts_add(struct drafts *d, const struct mix_kind *kind)
{
	if (d->count < OUTLOOK_KINDS)
		d->items[d->count++] = (struct draft){ .kind = *kind };
	d->arrivals += kind->weight;
	d->gpu_milli += kind->weight * kind->gpus * kind->share_milli;
}

/* One pod of so many GPUs that takes its part of a node's CPU and memory. */
static void node_part(const struct node *n, uint16_t gpus, struct mix_kind *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->cpu_milli = n->allocatable.cpu_milli / n->gpus_count * gpus;
	ret->mem_bytes = n->allocatable.mem_bytes / n->gpus_count * gpus;
	ret->gpus = gpus;
	ret->share_milli = CORE_WHOLE;
	ret->weight = 1;
}

/* A cluster that never keeps a node whole could not place the first pod that needs one. */
static void drafts_priors(struct drafts *d, const struct cluster *c)
{
	uint32_t first = d->count, last_profile = UINT32_MAX;

	for (uint32_t i = 0; i < cluster_nodes_end(c) && d->count < first + PRIORS_MAX; i++) {
		const struct node *n = cluster_node(c, i);
		struct mix_kind kind;
		uint32_t at = first;

		if (!n->name || !n->gpus_count || n->profile == last_profile)
			continue;
		last_profile = n->profile;
		node_part(n, n->gpus_count, &kind);
		while (at < d->count &&
		       memcmp(&d->items[at].kind, &kind, offsetof(struct mix_kind, weight)))
			at++;
		if (at < d->count)
			continue;
		drafts_add(d, &kind);
		if (n->gpus_count == 1)
			continue;
		node_part(n, 1, &kind);
		drafts_add(d, &kind);
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
	for (uint32_t i = 0; i < MIN(count, OUTLOOK_KINDS - PRIORS_MAX); i++)
		drafts_add(d, &sorted[i]);
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
	uint64_t sum = 0;

	for (uint32_t i = 0; i < cluster_nodes_end(c); i++) {
		const struct node *n = cluster_node(c, i);

		if (n->name && n->idle_gpus >= kind->gpus &&
		    n->free.cpu_milli >= kind->cpu_milli && n->free.mem_bytes >= kind->mem_bytes &&
		    modelset_has(&kind->models, n->gpus[0].model))
			sum += n->idle_gpus / kind->gpus;
	}
	return (double)sum;
}

/* The chance that slots for several GPUs run out, shared between those who need them.
 * The square keeps it small until there are hardly more slots than pods. */
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
	return part / demand * ratio * ratio;
}

/* The GPU that can be used at all, and its share of what is free by model. */
static double measure_usable(struct outlook *o, const struct cluster *c)
{
	double usable[MODEL_MAX] = { 0 }, sum = 0;

	for (uint32_t i = 0; i < cluster_nodes_end(c); i++) {
		const struct node *n = cluster_node(c, i);
		struct outlook_view v;

		if (!n->name || !n->gpus_count)
			continue;
		outlook_view(n, &v);
		usable[v.model] += usable_by_small(o, &v, n->free_milli);
	}
	for (uint32_t i = 0; i < cluster_models(c); i++) {
		double left = (double)cluster_model_free_milli(c, (uint16_t)i);

		o->model[i].usable_share = left > 0 ? MIN(usable[i] / left, 1.0) : 1;
		sum += usable[i];
	}
	return sum;
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
	double cpu_sum = 0, mem_sum = 0;
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
				.least_cpu = cpu,
				.first = end,
				.end = end,
			};
			cpu_sum = 0;
			mem_sum = 0;
		}
		cpu_sum += k->kind.weight * cpu;
		mem_sum += k->kind.weight * (double)k->kind.mem_bytes;
		h->cpu_per_byte = mem_sum > 0 ? cpu_sum / mem_sum : INFINITY;
		if (h->end > h->first) {
			weight = m->kinds[end - 1].weight;
			rate = m->kinds[end - 1].rate;
			if (m->kinds[end - 1].cpu_milli >= cpu)
				end--; /* kinds of the same CPU count together */
		}
		m->kinds[end++] = (struct outlook_kind){
			.cpu_milli = cpu,
			.weight = weight + k->weight,
			.rate = rate + k->weight / cpu,
		};
		h->most_cpu = cpu;
		h->cpu_per_room = cpu / (FEED * h->size_milli);
		h->weight = weight + k->weight;
		h->end = end;
	}
}

void outlook_forget(struct outlook *o)
{
	o->seen_epoch++;
	o->picked.state = 0;
}

void outlook_learn(struct outlook *o, const struct cluster *c, const struct mix *mix)
{
	struct drafts d;
	double pods; /* to come until what can be used is used */

	drafts_collect(&d, c, mix);
	pods = measure_usable(o, c);
	pods = d.gpu_milli > 0 ? pods / d.gpu_milli * d.arrivals : 0;
	for (uint32_t i = 0; i < d.count; i++) {
		struct draft *k = &d.items[i];

		k->weight =
			k->kind.gpus > 1 ? scarcity(&d, c, k, pods) : k->kind.weight / d.arrivals;
	}
	qsort(d.items, d.count, sizeof(*d.items), by_shape);
	outlook_forget(o);
	o->models = cluster_models(c);
	for (uint32_t i = 0; i < o->models; i++)
		model_tables(&o->model[i], &d, (uint16_t)i);
}
