/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - decisions. */
#include "engine/engine.h"
#include "engine/cluster_private.h"
#include "engine/index.h"
#include "engine/mix.h"
#include "engine/policy/policy.h"
#include "engine/prefer.h"
#include "engine/soft.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define INDEX_BYTES_DEFAULT (UINT64_C(192) << 20) /* 300 classes at 100,000 nodes */

struct engine {
	struct engine_config config;
	struct cluster *cluster;
	struct scorer scorer;
	struct mix *mix;
	struct index *index;
	bool mix_changed, prices_due; /* and the policy has not looked yet */
	uint32_t learned_nodes, learned_models;
};

/* The weights in thousandths that add up to 1000, or less by rounding. */
static struct weights weights_normal(struct weights w)
{
	uint64_t sum = (uint64_t)w.availability + w.alignment + w.utilization + w.performance;

	if (!sum)
		return (struct weights)WEIGHTS_DEFAULT;
	w.availability = (uint32_t)(w.availability * UINT64_C(1000) / sum);
	w.alignment = (uint32_t)(w.alignment * UINT64_C(1000) / sum);
	w.utilization = (uint32_t)(w.utilization * UINT64_C(1000) / sum);
	w.performance = (uint32_t)(w.performance * UINT64_C(1000) / sum);
	return w;
}

struct engine *engine_new(const struct engine_config *config)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->config = *config;
	if (!e->config.policy)
		e->config.policy = &policy_default;
	e->config.weights = weights_normal(e->config.weights);
	if (!e->config.index_bytes)
		e->config.index_bytes = INDEX_BYTES_DEFAULT;
	if (e->config.policy->shuffled && !e->config.cluster.shuffle)
		e->config.cluster.shuffle = e->config.seed + 1;
	e->cluster = cluster_new(&e->config.cluster);
	e->scorer.policy = e->config.policy;
	e->scorer.cluster = e->cluster;
	e->scorer.weights = e->config.weights;
	e->scorer.seed = e->config.seed;
	e->scorer.epoch = 1;
	e->scorer.tables = calloc(1, e->config.policy->tables_size + 1);
	e->mix = mix_new();
	e->mix_changed = true;
	if (e->cluster)
		e->index = index_new(&e->scorer, e->config.index_bytes);
	if (!e->cluster || !e->scorer.tables || !e->mix || !e->index) {
		engine_free(e);
		return NULL;
	}
	return e;
}

/* Of the policy, so that it can begin to learn. */
static int replace_tables(struct engine *e, const struct policy *policy)
{
	void *tables = calloc(1, policy->tables_size + 1);

	if (!tables)
		return -ENOMEM;
	free(e->scorer.tables);
	e->scorer.tables = tables;
	e->scorer.policy = e->config.policy = policy;
	return 0;
}

int engine_configure(struct engine *e, const struct engine_config *config)
{
	const struct policy *policy = config->policy ? config->policy : &policy_default;
	uint64_t bytes = config->index_bytes ? config->index_bytes : INDEX_BYTES_DEFAULT;
	struct index *index;

	if (policy != e->config.policy && (policy->shuffled || policy->knows_mix))
		return -EINVAL;
	index = index_new(&e->scorer, bytes);
	if (!index || replace_tables(e, policy) < 0) {
		index_free(index);
		return -ENOMEM;
	}
	index_free(e->index);
	e->index = index;
	e->config.index_bytes = bytes;
	e->config.weights = e->scorer.weights = weights_normal(config->weights);
	e->config.max_nodes_per_leaf = config->max_nodes_per_leaf;
	e->config.max_gpus_per_leaf = config->max_gpus_per_leaf;
	e->config.cluster.seats = config->cluster.seats;
	cluster_set_seats(e->cluster, config->cluster.seats);
	e->scorer.epoch++;
	e->scorer.prices_epoch++;
	e->mix_changed = true;
	return 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	index_free(e->index);
	mix_free(e->mix);
	free(e->scorer.tables);
	cluster_free(e->cluster);
	free(e);
}

struct cluster *engine_cluster(struct engine *e)
{
	return e->cluster;
}

const struct engine_config *engine_config(const struct engine *e)
{
	return &e->config;
}

const struct scorer *engine_scorer(const struct engine *e)
{
	return &e->scorer;
}

const struct index *engine_index(const struct engine *e)
{
	return e->index;
}

/* A GPU model that the policy has not seen, or half as many nodes again or fewer: what it
 * has learned is of another cluster. */
static bool cluster_is_another(const struct engine *e)
{
	uint32_t nodes = cluster_nodes_count(e->cluster);

	return cluster_models(e->cluster) != e->learned_models ||
	       nodes > e->learned_nodes + e->learned_nodes / 2 ||
	       nodes < e->learned_nodes - e->learned_nodes / 2;
}

/* A new epoch: the policy looks at the mix, and every score is another. */
static void refresh(struct engine *e)
{
	const struct policy *policy = e->config.policy;

	e->mix_changed |= cluster_is_another(e);
	if (e->mix_changed) {
		e->learned_nodes = cluster_nodes_count(e->cluster);
		e->learned_models = cluster_models(e->cluster);
	}
	if (e->mix_changed && policy->learn) {
		policy->learn(e->scorer.tables, e->cluster, e->mix);
		e->scorer.epoch++;
	}
	if ((e->mix_changed || e->prices_due) && policy->reprice &&
	    policy->reprice(e->scorer.tables, e->cluster, e->mix))
		e->scorer.prices_epoch++;
	e->mix_changed = false;
	e->prices_due = false;
}

void engine_arrived(struct engine *e, const struct request *r)
{
	if (e->config.policy->knows_mix)
		return;
	mix_arrived(e->mix, r);
	e->mix_changed |= mix_epoch(e->mix, cluster_nodes_count(e->cluster));
	e->prices_due |= mix_prices_due(e->mix);
	refresh(e);
}

void engine_mix_add(struct engine *e, const struct request *r)
{
	if (!e->config.policy->knows_mix)
		return;
	mix_add(e->mix, r);
	e->mix_changed = true;
}

/* The decision for a node that was chosen. */
static enum verdict decide_on(struct engine *e, const struct request *r, uint32_t node,
			      struct decision *ret)
{
	ret->node = node;
	return assign_node(e->cluster, &e->scorer, r, node, &ret->assignment);
}

/* One node fits at least, and a preference may tell several apart. */
static enum verdict decide_preferred(struct engine *e, struct index *ix, const struct request *r,
				     struct decision *ret)
{
	struct preferred few[PREFER_FEW];
	int count = prefer_few(&e->scorer, ix, r, few);

	if (count < 0)
		return engine_decide_afresh(e, r, ret);
	assert(count);
	ret->score = few[0].score;
	return decide_on(e, r, few[0].node, ret);
}

/* One node with such a taint concerns every pod, so this must not cost much: where nothing else
 * tells nodes apart, those without have all the points, and the best of them is the answer. */
static bool best_undiscouraged(struct engine *e, const struct request *r, struct index_choice *ret)
{
	struct request trial;

	if (!soft_taints_alone(e->cluster, r))
		return false;
	trial = *r;
	trial.demand = DEMAND_TAINTS;
	return index_few(e->index, &trial, 1, ret) == 1;
}

enum verdict engine_decide(struct engine *e, const struct request *r, struct decision *ret)
{
	struct index_choice best;
	enum verdict miss;
	uint32_t node;

	refresh(e);
	/* A pinned request has one candidate: no index is worth building for it. */
	if (r->node != NODE_NONE)
		return engine_score(e, r, r->node, ret, NULL);
	if (index_best(e->index, r, &node, &ret->score, &miss) < 0)
		return engine_decide_afresh(e, r, ret);
	if (node == NODE_NONE)
		return miss;
	if (!soft_matters(e->cluster, r))
		return decide_on(e, r, node, ret);
	if (best_undiscouraged(e, r, &best)) {
		ret->score = best.score;
		return decide_on(e, r, best.node, ret);
	}
	return decide_preferred(e, e->index, r, ret);
}

enum verdict engine_decide_afresh(struct engine *e, const struct request *r, struct decision *ret)
{
	const struct cluster *c = e->cluster;
	int32_t best = NODE_GONE - VERDICT_COUNT;
	uint32_t winner = NODE_NONE;

	refresh(e);
	if (e->config.policy->forget)
		e->config.policy->forget(e->scorer.tables);
	if (r->node != NODE_NONE)
		return engine_score(e, r, r->node, ret, NULL);
	for (uint32_t i = 0; i < c->by_name.len; i++) {
		uint32_t node = c->by_name.items[i];
		int32_t value = index_value(&e->scorer, r, node);

		if (value < best || (value == best && winner != NODE_NONE &&
				     c->nodes.items[node].rank > c->nodes.items[winner].rank))
			continue;
		best = value;
		winner = node;
	}
	if (best < 0)
		return (enum verdict)(best + VERDICT_COUNT);
	if (soft_matters(c, r))
		return decide_preferred(e, NULL, r, ret);
	ret->score = best;
	return decide_on(e, r, winner, ret);
}

uint32_t engine_preferred(struct engine *e, const struct request *r, struct preferred *ret)
{
	int count;

	refresh(e);
	if (r->node != NODE_NONE || !soft_matters(e->cluster, r))
		return 0;
	count = prefer_few(&e->scorer, e->index, r, ret);
	if (count < 0)
		count = prefer_few(&e->scorer, NULL, r, ret);
	return (uint32_t)count;
}

enum verdict engine_score(struct engine *e, const struct request *r, uint32_t node,
			  struct decision *ret, struct parts *parts)
{
	const struct node *n;
	enum verdict v;

	refresh(e);
	if (node >= cluster_nodes_end(e->cluster))
		return NODE_GONE;
	v = decide_on(e, r, node, ret);
	if (v != FITS)
		return v;
	n = cluster_node(e->cluster, node);
	ret->score = score_local(&e->scorer, r, n, &ret->assignment, parts);
	ret->score += score_offset(&e->scorer, r, n->domain, node_model(n), parts);
	return FITS;
}

int engine_place(struct engine *e, const struct pod_spec *pod, const struct request *r,
		 const struct decision *d, uint32_t *ret)
{
	return cluster_pod_place(e->cluster, pod, r, d->node, &d->assignment, ret);
}

void engine_remove(struct engine *e, uint32_t pod)
{
	cluster_pod_remove(e->cluster, pod);
}
