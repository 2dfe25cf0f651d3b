/* SPDX-License-Identifier: Apache-2.0 */
/* preempt.c - the node where a request fits at the least cost to others. */
#include "engine/plan.h"
#include "engine/victims.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
	struct preempt_cost bound;
	uint64_t rank;
	uint32_t node;
};

/* The best node so far and who has to leave it. */
struct best {
	struct preempt_cost cost;
	uint64_t rank;
	uint32_t node;	     /* NODE_NONE: none yet */
	VEC(uint32_t) pods;  /* on the node */
	VEC(uint32_t) gangs; /* whose other pods have to go too */
};

struct search {
	struct engine *engine;
	const struct request *request;
	struct victims victims;
	VEC(struct candidate) candidates;
	struct best best;
};

static void search_done(struct search *s)
{
	victims_done(&s->victims);
	vec_done(&s->candidates);
	vec_done(&s->best.pods);
	vec_done(&s->best.gangs);
}

static int search_candidates(struct search *s)
{
	const struct cluster *c = s->victims.cluster;

	for (uint32_t i = 0; i < cluster_nodes_end(c); i++) {
		const struct node *n = cluster_node(c, i);
		struct candidate candidate = { .rank = n->rank, .node = i };

		if (!n->name || n->first_pod == POD_NONE ||
		    !victims_may_help(s->request, fit_node(c, s->request, i)))
			continue;
		if (victims_load(&s->victims, i, &s->request, 1) < 0)
			return -ENOMEM;
		if (victims_bound(&s->victims, &candidate.bound) &&
		    vec_push(&s->candidates, candidate) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int candidate_compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = preempt_cost_compare(&x->bound, &y->bound);

	return order ? order : VICTIMS_ORDER(x->rank, y->rank);
}

/* Notes the set that victims_search() took. */
static int best_note(struct search *s, const struct preempt_cost *cost, uint64_t rank)
{
	const struct victims *v = &s->victims;
	struct best *best = &s->best;

	best->cost = *cost;
	best->rank = rank;
	best->node = v->node;
	best->pods.len = 0;
	best->gangs.len = 0;
	for (size_t i = 0; i < v->units.len; i++) {
		const struct victims_unit *unit = &v->units.items[i];

		if (!unit->taken)
			continue;
		if (unit->gang && vec_push(&best->gangs, unit->gang->gang) < 0)
			return -ENOMEM;
		for (uint32_t p = unit->first; p != VICTIMS_END; p = v->pods.items[p].next)
			if (vec_push(&best->pods, v->pods.items[p].pod) < 0)
				return -ENOMEM;
	}
	return 0;
}

/* Whether the bound leaves room for something better than the best. */
static bool worth_a_look(const struct best *best, const struct candidate *candidate)
{
	int order;

	if (best->node == NODE_NONE)
		return true;
	order = preempt_cost_compare(&candidate->bound, &best->cost);
	return order < 0 || (order == 0 && candidate->rank < best->rank);
}

static int search_nodes(struct search *s)
{
	for (size_t i = 0; i < s->candidates.len; i++) {
		const struct candidate *candidate = &s->candidates.items[i];
		bool first = s->best.node == NODE_NONE;
		struct preempt_cost cost;

		if (!first && i >= PREEMPT_NODES)
			break;
		if (!worth_a_look(&s->best, candidate))
			continue;
		if (victims_load(&s->victims, candidate->node, &s->request, 1) < 0)
			return -ENOMEM;
		if (victims_search(&s->victims, first ? &victims_no_limit : &s->best.cost,
				   first || candidate->rank < s->best.rank, &cost) &&
		    best_note(s, &cost, candidate->rank) < 0)
			return -ENOMEM;
	}
	return s->best.node == NODE_NONE ? -ENOENT : 0;
}

static bool listed(const struct best *best, uint32_t gang)
{
	for (size_t i = 0; i < best->gangs.len; i++)
		if (best->gangs.items[i] == gang)
			return true;
	return false;
}

/* The pods of the gangs that are on other nodes. */
static int add_gangs(struct search *s)
{
	const struct cluster *c = s->victims.cluster;

	for (uint32_t i = 0; s->best.gangs.len && i < cluster_pods_end(c); i++) {
		const struct pod *pod = cluster_pod(c, i);

		if (pod && pod->gang && pod->node != s->best.node && listed(&s->best, pod->gang) &&
		    vec_push(&s->best.pods, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int pod_compare(const void *a, const void *b, void *cluster)
{
	const struct pod *x = cluster_pod(cluster, *(const uint32_t *)a);
	const struct pod *y = cluster_pod(cluster, *(const uint32_t *)b);

	if (x->priority != y->priority)
		return VICTIMS_ORDER(y->priority, x->priority);
	if (x->started != y->started)
		return VICTIMS_ORDER(x->started, y->started);
	return strcmp(x->uid, y->uid);
}

void preempt_sort_pods(const struct cluster *c, uint32_t *pods, uint32_t count)
{
	if (count)
		qsort_r(pods, count, sizeof(*pods), pod_compare, (void *)c);
}

/* The rollback gives the pods their numbers back. */
int preempt_decide_without(struct engine *e, const struct request *r, uint32_t node,
			   const uint32_t *pods, size_t count, struct decision *ret)
{
	struct plan *plan = plan_begin(e);
	int rc = plan ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = plan_remove(plan, pods[i]);
	if (rc == 0 && engine_score(e, r, node, ret, NULL) != FITS)
		rc = -ENOENT;
	plan_rollback(plan);
	return rc;
}

/* Hands the set over to the result. */
static int search_result(struct search *s, struct preemption *ret)
{
	struct best *best = &s->best;
	struct decision *decision = calloc(1, sizeof(*decision));
	int rc = decision ? add_gangs(s) : -ENOMEM;

	if (rc == 0)
		rc = preempt_decide_without(s->engine, s->request, best->node, best->pods.items,
					    best->pods.len, decision);
	if (rc < 0) {
		free(decision);
		return rc;
	}
	preempt_sort_pods(s->victims.cluster, best->pods.items, (uint32_t)best->pods.len);
	*ret = (struct preemption){
		.decisions = decision,
		.decisions_count = 1,
		.victims = best->pods.items,
		.victims_count = (uint32_t)best->pods.len,
		.gangs = (uint32_t)best->gangs.len,
		.cost = best->cost,
	};
	best->pods.items = NULL;
	return 0;
}

static int fits_already(const struct decision *d, struct preemption *ret)
{
	struct decision *decision = malloc(sizeof(*decision));

	if (!decision)
		return -ENOMEM;
	*decision = *d;
	*ret = (struct preemption){
		.decisions = decision,
		.decisions_count = 1,
		.cost = PREEMPT_COST_NONE,
	};
	return 0;
}

int preempt_find(struct engine *e, const struct request *r, int32_t priority,
		 struct preemption *ret)
{
	struct search s = { .engine = e, .request = r, .best.node = NODE_NONE };
	struct decision d;
	int rc;

	if (engine_decide(e, r, &d) == FITS)
		return fits_already(&d, ret);
	rc = victims_init(&s.victims, engine_cluster(e), priority);
	if (rc == 0)
		rc = search_candidates(&s);
	if (rc == 0) {
		if (s.candidates.len)
			qsort(s.candidates.items, s.candidates.len, sizeof(struct candidate),
			      candidate_compare);
		rc = search_nodes(&s);
	}
	if (rc == 0)
		rc = search_result(&s, ret);
	search_done(&s);
	return rc;
}

void preemption_done(struct preemption *p)
{
	if (!p)
		return;
	free(p->decisions);
	free(p->victims);
	*p = (struct preemption){ 0 };
}
