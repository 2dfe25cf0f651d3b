/* SPDX-License-Identifier: Apache-2.0 */
/* soft_score.c - how much a node is preferred, in kube-scheduler's figures. */
#include "base/attr.h"
#include "engine/cluster_private.h"
#include "engine/rules_private.h"
#include "engine/soft.h"

#include <math.h>

#define FULL 100 /* each of the four scores, before weighing */
enum { WEIGHT_TAINTS = 3, WEIGHT_AFFINITY = 2, WEIGHT_SPREAD = 2, WEIGHT_PODS = 2 };

static const struct soft *soft_of(const struct cluster *c, const struct request *r)
{
	return &c->rules.softs.items[r->soft];
}

/* Whether pods that are there would rather have such a pod near, or far. */
static bool subject_leaned(const struct cluster *c, uint32_t subject)
{
	const struct subject *s = &c->rules.subjects.items[subject];

	for (size_t i = 0; i < s->selectors.len; i++)
		if (c->rules.selectors.items[s->selectors.items[i]].leaning)
			return true;
	return false;
}

bool soft_matters(const struct cluster *c, const struct request *r)
{
	return r->soft || c->rules.shunned || subject_leaned(c, r->subject);
}

bool soft_taints_alone(const struct cluster *c, const struct request *r)
{
	return !r->soft && !subject_leaned(c, r->subject);
}

/* Pods of the counter in the node's domain; none if the node lacks the label. */
static int64_t pods_near(const struct cluster *c, const struct counter *k, const struct node *n)
{
	uint32_t value;

	return counter_value(c, k, n, &value) ? tally_pods(&k->tally, value) : 0;
}

/* What those who are there think of it. */
static int64_t leanings(const struct cluster *c, uint32_t subject, const struct node *n)
{
	const struct subject *s = &c->rules.subjects.items[subject];
	int64_t sum = 0;

	for (size_t i = 0; i < s->selectors.len; i++) {
		const struct selector *sel = &c->rules.selectors.items[s->selectors.items[i]];

		for (size_t j = 0; sel->leaning && j < sel->counters.len; j++) {
			const struct counter *k = &c->rules.counters.items[sel->counters.items[j]];

			if (k->kind == COUNT_LEANING)
				sum += k->lean * pods_near(c, k, n);
		}
	}
	return sum;
}

/* A domain weighs the more, the more of them there are. */
static int64_t spread_mark(const struct cluster *c, const struct rules *r, const struct node *n)
{
	double sum = 0;

	for (size_t i = 0; i < r->spread.len; i++) {
		const struct spread_state *s = &r->spread.items[i];
		const struct counter *k = &c->rules.counters.items[s->counter];
		uint32_t value;

		if (!counter_value(c, k, n, &value))
			return -1;
		sum += tally_pods(&k->tally, value) * log((double)k->tally.domains + 2) +
		       (s->max_skew - 1);
	}
	return llround(sum);
}

static void term_mark(const struct cluster *c, const struct soft_term *t, uint32_t node,
		      struct soft_mark *ret)
{
	const struct node *n = cluster_node(c, node);
	const struct rules *r = &c->rules.rules.items[t->rules];

	switch ((enum soft_kind)t->kind) {
	case SOFT_NODE:
		if (rules_fit_node(c, t->rules, node) == FITS)
			ret->affinity += t->weight;
		break;
	case SOFT_NEAR:
		ret->pods +=
			t->weight * pods_near(c, &c->rules.counters.items[r->near.items[0]], n);
		break;
	case SOFT_APART:
		ret->pods -=
			t->weight * pods_near(c, &c->rules.counters.items[r->apart.items[0]], n);
		break;
	case SOFT_SPREAD:
		ret->spread = spread_mark(c, r, n);
		break;
	case SOFT_DRAWN:
		break;
	}
}

void soft_mark(const struct cluster *c, const struct request *r, uint32_t node,
	       struct soft_mark *ret)
{
	const struct node *n = cluster_node(c, node);
	const struct soft *s = soft_of(c, r);

	*ret = (struct soft_mark){
		.taints = taints_discouraging(r->tolerations, r->tolerations_count, n),
		.pods = leanings(c, r->subject, n),
	};
	for (size_t i = 0; i < s->terms.len; i++)
		term_mark(c, &s->terms.items[i], node, ret);
}

static bool has_spread(const struct soft *s)
{
	for (size_t i = 0; i < s->terms.len; i++)
		if (s->terms.items[i].kind == SOFT_SPREAD)
			return true;
	return false;
}

struct extremes {
	uint32_t taints, affinity;	   /* the most */
	int64_t spread_least, spread_most; /* of nodes that have the labels */
	int64_t pods_least, pods_most;
};

static struct extremes extremes_of(const struct soft_mark *marks, uint32_t count)
{
	struct extremes x = { .spread_least = INT64_MAX,
			      .pods_least = INT64_MAX,
			      .pods_most = INT64_MIN };

	for (uint32_t i = 0; i < count; i++) {
		const struct soft_mark *m = &marks[i];

		x.taints = MAX(x.taints, m->taints);
		x.affinity = MAX(x.affinity, m->affinity);
		x.pods_least = MIN(x.pods_least, m->pods);
		x.pods_most = MAX(x.pods_most, m->pods);
		if (m->spread < 0)
			continue;
		x.spread_least = MIN(x.spread_least, m->spread);
		x.spread_most = MAX(x.spread_most, m->spread);
	}
	return x;
}

static int64_t spread_points(const struct soft_mark *m, const struct extremes *x)
{
	if (m->spread < 0)
		return 0;
	if (!x->spread_most)
		return FULL;
	return FULL * (x->spread_most + x->spread_least - m->spread) / x->spread_most;
}

void soft_points(const struct cluster *c, const struct request *r, const struct soft_mark *marks,
		 uint32_t count, int32_t *ret)
{
	struct extremes x = extremes_of(marks, count);
	bool spread = has_spread(soft_of(c, r));

	for (uint32_t i = 0; i < count; i++) {
		const struct soft_mark *m = &marks[i];
		int64_t sum = WEIGHT_TAINTS * FULL;

		if (x.taints)
			sum = WEIGHT_TAINTS * (FULL - (int64_t)FULL * m->taints / x.taints);
		if (x.affinity)
			sum += WEIGHT_AFFINITY * ((int64_t)FULL * m->affinity / x.affinity);
		if (spread)
			sum += WEIGHT_SPREAD * spread_points(m, &x);
		if (x.pods_most > x.pods_least)
			sum += WEIGHT_PODS *
			       (FULL * (m->pods - x.pods_least) / (x.pods_most - x.pods_least));
		ret[i] = (int32_t)sum;
	}
}
