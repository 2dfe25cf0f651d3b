/* SPDX-License-Identifier: Apache-2.0 */
/* prices.c - how much each GPU model is needed by work that cannot run on others. */
#include "base/attr.h"
#include "engine/mix.h"
#include "engine/policy/outlook.h"

#include <math.h>
#include <string.h>

#define SETS   64	    /* different sets of acceptable models that are told apart */
#define ROUNDS 64	    /* of spreading demand from loaded models to others */
#define LITTLE (1.0 / 1024) /* a change of load that is not worth new prices */
#define SMALL  1e-6	    /* GPU, against division by zero */

/* Work that accepts exactly these models. */
struct demand {
	struct modelset models;
	double arrivals;
	double gpu;	      /* of all of them */
	double on[MODEL_MAX]; /* where it is expected to go */
};

struct market {
	uint32_t models, sets_count;
	double free_gpu[MODEL_MAX], all_free;
	double load[MODEL_MAX];
	struct demand sets[SETS];
};

static struct demand *market_set(struct market *m, const struct modelset *models)
{
	struct demand *set = m->sets;

	while (set < m->sets + m->sets_count && memcmp(&set->models, models, sizeof(*models)))
		set++;
	if (set == m->sets + m->sets_count) {
		if (m->sets_count == SETS)
			return NULL;
		m->sets_count++;
		*set = (struct demand){ .models = *models };
	}
	return set;
}

/* Work that accepts every model of the cluster is not constrained. */
static bool constrained(uint32_t all, const struct modelset *models)
{
	for (uint32_t i = 0; i < all && !modelset_any(models); i++)
		if (!modelset_has(models, (uint16_t)i))
			return true;
	return false;
}

/* Demand by set; returns the GPU of all arrivals. */
static double collect(struct market *m, const struct mix *mix)
{
	uint32_t count;
	double total, all = 0;
	const struct mix_kind *kinds = mix_kinds(mix, &count, &total);

	for (uint32_t i = 0; i < count; i++) {
		const struct mix_kind *k = &kinds[i];
		double gpu = k->weight * k->gpus * k->share_milli / CORE_WHOLE;
		struct demand *set;

		all += gpu;
		if (!k->gpus || !constrained(m->models, &k->models))
			continue;
		set = market_set(m, &k->models);
		if (!set)
			continue;
		set->arrivals += k->weight;
		set->gpu += gpu;
	}
	return all;
}

/* Few arrivals are a poor guess: one deviation more of each, and, where anybody is
 * particular at all, one arrival for every single model. */
static void be_careful(struct market *m)
{
	uint32_t seen = m->sets_count;
	double arrivals = 0, gpu = 0;

	for (uint32_t i = 0; i < seen; i++) {
		struct demand *set = &m->sets[i];

		arrivals += set->arrivals;
		gpu += set->gpu;
		set->gpu += set->gpu / sqrt(set->arrivals);
	}
	for (uint32_t i = 0; i < m->models && seen; i++) {
		struct modelset one = { 0 };
		struct demand *set;

		modelset_add(&one, (uint16_t)i);
		set = market_set(m, &one);
		if (set)
			set->gpu += gpu / arrivals;
	}
}

/* First by what is free, as if nobody else came. */
static void spread_evenly(struct market *m, struct demand *set)
{
	double sum = 0;

	for (uint32_t i = 0; i < m->models; i++)
		sum += modelset_has(&set->models, (uint16_t)i) ? m->free_gpu[i] + SMALL : 0;
	for (uint32_t i = 0; i < m->models; i++)
		set->on[i] = modelset_has(&set->models, (uint16_t)i)
				     ? set->gpu * (m->free_gpu[i] + SMALL) / sum
				     : 0;
}

static void add_loads(struct market *m)
{
	for (uint32_t i = 0; i < m->models; i++) {
		double sum = 0;

		for (uint32_t j = 0; j < m->sets_count; j++)
			sum += m->sets[j].on[i];
		m->load[i] = sum / (m->free_gpu[i] + SMALL);
	}
}

/* Moves demand from models with more load to models with less, half the way each round. */
static void move_away(const struct market *m, struct demand *set)
{
	double sum = 0;

	for (uint32_t i = 0; i < m->models; i++) {
		set->on[i] /= sqrt(m->load[i] + 1e-9);
		sum += set->on[i];
	}
	for (uint32_t i = 0; i < m->models && sum > 0; i++)
		set->on[i] *= set->gpu / sum;
}

static void balance(struct market *m)
{
	for (uint32_t j = 0; j < m->sets_count; j++)
		spread_evenly(m, &m->sets[j]);
	add_loads(m);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t j = 0; j < m->sets_count; j++)
			move_away(m, &m->sets[j]);
		add_loads(m);
	}
}

/* Whether there is any work that not every model of the cluster would do for. */
static bool anybody_particular(const struct mix *mix, uint32_t models)
{
	uint32_t count;
	double total;
	const struct mix_kind *kinds = mix_kinds(mix, &count, &total);

	for (uint32_t i = 0; i < count; i++)
		if (kinds[i].gpus && constrained(models, &kinds[i].models))
			return true;
	return false;
}

static void find_loads(struct market *m, const struct outlook *o, const struct cluster *c,
		       const struct mix *mix)
{
	double all = collect(m, mix);

	be_careful(m);
	for (uint32_t i = 0; i < m->models; i++) {
		m->free_gpu[i] = (double)cluster_model_free_milli(c, (uint16_t)i) / CORE_WHOLE *
				 o->model[i].usable_share;
		m->all_free += m->free_gpu[i];
	}
	for (uint32_t j = 0; j < m->sets_count; j++)
		m->sets[j].gpu *= m->all_free / all;
	balance(m);
}

/* Takes the loads as prices if they differ enough from the present ones. */
static bool take_loads(struct outlook *o, const double *load, uint32_t models)
{
	bool changed = false;

	for (uint32_t i = 0; i < models; i++)
		changed |= fabs(MIN(load[i], 1.0) - o->model[i].load) > LITTLE;
	for (uint32_t i = 0; i < models && changed; i++)
		o->model[i].load = MIN(load[i], 1.0);
	return changed;
}

static bool reprice_particular(struct outlook *o, const struct cluster *c, const struct mix *mix,
			       uint32_t models)
{
	struct market m = { .models = models };

	find_loads(&m, o, c, mix);
	return take_loads(o, m.load, models);
}

bool outlook_reprice(struct outlook *o, const struct cluster *c, const struct mix *mix)
{
	static const double nothing[MODEL_MAX];
	uint32_t models = MIN(o->models, cluster_models(c));

	if (!anybody_particular(mix, models))
		return take_loads(o, nothing, models);
	return reprice_particular(o, c, mix, models);
}
