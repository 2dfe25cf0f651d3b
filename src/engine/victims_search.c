/* SPDX-License-Identifier: Apache-2.0 */
/* victims_search.c - trials without some units, and the cheapest set that helps. */
#include "engine/cluster_private.h"
#include "engine/victims.h"

#include <stdlib.h>
#include <string.h>

static void trial_idle(struct victims *v)
{
	v->trial.idle = 0;
	for (uint32_t i = 0; i < v->trial.gpus_count; i++)
		if (v->gpus[i].healthy && !v->gpus[i].mig_mode && v->gpus[i].use == GPU_IDLE)
			v->trial.idle |= gpuset_one(i);
}

static void trial_release(struct victims *v, uint32_t first)
{
	for (uint32_t i = first; i != VICTIMS_END; i = v->pods.items[i].next) {
		const struct pod *pod = cluster_pod(v->cluster, v->pods.items[i].pod);

		v->without.items[v->without.len++] = v->pods.items[i].pod;
		for (uint32_t h = 0; h < pod->holds_count; h++)
			hold_release(&v->trial, &pod->holds[h]);
		resources_take(&v->trial.free, &pod->needs, -1);
		extended_take(&v->trial, pod->extended, pod->extended_count, -1);
	}
}

static void trial_begin(struct victims *v)
{
	const struct node *n = cluster_node(v->cluster, v->node);

	v->trial = *n;
	v->without.len = 0;
	v->trial.gpus = memcpy(v->gpus, n->gpus, n->gpus_count * sizeof(*n->gpus));
	v->trial.extended = v->extended.items;
	if (n->extended_count)
		memcpy(v->extended.items, n->extended, n->extended_count * sizeof(*n->extended));
	trial_release(v, v->gone);
	for (size_t i = 0; i < v->units.len; i++)
		if (v->units.items[i].taken)
			trial_release(v, v->units.items[i].first);
	trial_idle(v);
}

/* So that the next member finds what is left. */
static bool trial_book(struct victims *v, const struct request *r, const struct assignment *a)
{
	for (uint32_t i = 0; i < a->count; i++)
		if (!hold_book(&v->trial, &a->holds[i], v->cluster->config.seats))
			return false;
	resources_take(&v->trial.free, &r->needs, 1);
	extended_take(&v->trial, r->extended, r->extended_count, 1);
	trial_idle(v);
	return true;
}

bool victims_fit(struct victims *v)
{
	struct assignment a;

	trial_begin(v);
	for (uint32_t i = 0; i < v->members_count; i++) {
		const struct request *r = v->members[i];

		if (fit_identity(v->cluster, r, v->node) != FITS ||
		    assign_state(v->cluster, NULL, r, &v->trial, &a) != FITS ||
		    rules_fit_pods(v->cluster, r->rules, r->subject, v->node, v->without.items,
				   (uint32_t)v->without.len) != FITS)
			return false;
		if (i + 1 < v->members_count && !trial_book(v, r, &a))
			return false;
	}
	return true;
}

static void take_mask(struct victims *v, uint32_t mask)
{
	for (size_t i = 0; i < v->units.len; i++)
		v->units.items[i].taken = mask >> i & 1;
}

/* What one unit leaves of a budget, another may spend: so violations are counted together. */
static uint32_t violations_of_taken(struct victims *v)
{
	uint32_t violations = 0;

	for (size_t i = 0; i < v->units.len; i++)
		if (v->units.items[i].taken)
			violations += victims_spend(v, &v->units.items[i]);
	for (size_t i = 0; i < v->units.len; i++)
		if (v->units.items[i].taken)
			victims_unspend(v, &v->units.items[i]);
	return violations;
}

static struct preempt_cost cost_of_taken(struct victims *v)
{
	struct preempt_cost cost = PREEMPT_COST_NONE;

	for (size_t i = 0; i < v->units.len; i++)
		if (v->units.items[i].taken)
			preempt_cost_add(&cost, &v->units.items[i].cost);
	if (v->by_budgets)
		cost.violations = violations_of_taken(v);
	return cost;
}

/* Every set that is cheaper than the best so far.  Ascending masks: of equals, the one
 * that spares the more important unit comes first. */
static bool search_exactly(struct victims *v, struct preempt_cost limit, bool or_equal,
			   struct preempt_cost *ret)
{
	uint32_t best = 0, end = UINT32_C(1) << v->units.len;
	bool found = false;

	for (uint32_t mask = 0; mask < end; mask++) {
		struct preempt_cost cost;
		int order;

		take_mask(v, mask);
		cost = cost_of_taken(v);
		order = preempt_cost_compare(&cost, &limit);
		if (order > 0 || (order == 0 && !or_equal) || !victims_fit(v))
			continue;
		found = true;
		best = mask;
		limit = cost;
		or_equal = false;
	}
	take_mask(v, best);
	*ret = limit;
	return found;
}

/* Those that are guarded are spared first, then the most important. */
static int spare_important(const void *a, const void *b)
{
	const struct victims_unit *x = *(struct victims_unit *const *)a;
	const struct victims_unit *y = *(struct victims_unit *const *)b;
	int order = VICTIMS_ORDER(y->guarded, x->guarded);

	return order ? order : victims_unit_compare(y, x);
}

/* The same, but within a priority the smallest, so that few large ones remain. */
static int spare_small(const void *a, const void *b)
{
	const struct victims_unit *x = *(struct victims_unit *const *)a;
	const struct victims_unit *y = *(struct victims_unit *const *)b;

	if (x->guarded != y->guarded || x->cost.highest != y->cost.highest)
		return spare_important(a, b);
	if (x->core_milli != y->core_milli)
		return VICTIMS_ORDER(x->core_milli, y->core_milli);
	if (x->frees[FREES_CPU] != y->frees[FREES_CPU])
		return VICTIMS_ORDER(x->frees[FREES_CPU], y->frees[FREES_CPU]);
	return victims_unit_compare(y, x);
}

/* From all taken, puts back whatever can be spared.  Twice, because what assign_state()
 * chooses for one ask may stand in the way of another, so that a unit which was needed
 * at first is not needed in the end. */
static struct preempt_cost put_back(struct victims *v, int (*order)(const void *, const void *))
{
	v->order.len = 0;
	for (size_t i = 0; i < v->units.len; i++) {
		v->units.items[i].taken = true;
		v->order.items[v->order.len++] = &v->units.items[i];
	}
	qsort(v->order.items, v->order.len, sizeof(*v->order.items), order);
	for (size_t i = 0; i < 2 * v->order.len; i++) {
		struct victims_unit *unit = v->order.items[i % v->order.len];

		if (!unit->taken)
			continue;
		unit->taken = false;
		unit->taken = !victims_fit(v);
	}
	return cost_of_taken(v);
}

/* The cheaper of both orders. */
static struct preempt_cost put_back_well(struct victims *v)
{
	struct preempt_cost small = put_back(v, spare_small);
	struct preempt_cost cost = put_back(v, spare_important);

	return preempt_cost_compare(&small, &cost) < 0 ? put_back(v, spare_small) : cost;
}

static void guard_violating(struct victims *v)
{
	for (size_t i = 0; i < v->units.len; i++)
		v->units.items[i].guarded = v->units.items[i].cost.violations > 0;
}

/* Who is guarded: at first those that violate a budget by themselves, then also those of whom
 * it allows some to go, but not all. */
static bool search_greedily(struct victims *v, const struct preempt_cost *limit, bool or_equal,
			    struct preempt_cost *ret)
{
	struct preempt_cost cost;
	int order;

	guard_violating(v);
	*ret = put_back_well(v);
	if (ret->violations && victims_guard(v)) {
		cost = put_back_well(v);
		if (preempt_cost_compare(&cost, ret) > 0) {
			guard_violating(v);
			cost = put_back_well(v);
		}
		*ret = cost;
	}
	order = preempt_cost_compare(ret, limit);
	return order < 0 || (order == 0 && or_equal);
}

bool victims_search(struct victims *v, const struct preempt_cost *limit, bool or_equal,
		    struct preempt_cost *ret)
{
	for (size_t i = 0; i < v->units.len; i++)
		v->units.items[i].taken = true;
	if (!victims_fit(v))
		return false;
	if (v->units.len <= PREEMPT_EXACT)
		return search_exactly(v, *limit, or_equal, ret);
	return search_greedily(v, limit, or_equal, ret);
}
