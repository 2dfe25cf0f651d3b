/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_units.c - what may be evicted, in order. */
#include "engine/preempt_units.h"
#include "engine/gang_private.h"

#include <stdlib.h>
#include <string.h>

/* Whether evictions on the node could make room for a member. */
static bool node_relevant(const struct cluster *c, const struct gang_spec *spec, uint32_t node)
{
	for (uint32_t i = 0; i < spec->classes_count; i++) {
		const struct request *r = spec->classes[i].request;
		enum verdict v = fit_node(c, r, node);

		if (v == FITS || victims_may_help(r, v))
			return true;
	}
	return false;
}

static int pod_by_gang(const void *a, const void *b, void *cluster)
{
	const struct pod *x = cluster_pod(cluster, *(const uint32_t *)a);
	const struct pod *y = cluster_pod(cluster, *(const uint32_t *)b);

	if (x->gang != y->gang)
		return VICTIMS_ORDER(x->gang, y->gang);
	return strcmp(x->uid, y->uid);
}

void preempt_units_sort(const struct cluster *c, uint32_t *pods, size_t count)
{
	if (count)
		qsort_r(pods, count, sizeof(*pods), pod_by_gang, (void *)c);
}

/* Every pod that may go, those of a gang side by side. */
static int find_pods(struct preempt_units *u, const struct victims *v,
		     const struct gang_spec *spec)
{
	for (uint32_t i = 0; i < cluster_pods_end(v->cluster); i++) {
		const struct pod *pod = cluster_pod(v->cluster, i);
		const struct victims_gang *gang;

		if (!pod || pod->priority >= v->priority)
			continue;
		gang = pod->gang ? victims_gang_of(v, pod) : NULL;
		if (gang ? gang->kept : !node_relevant(v->cluster, spec, pod->node))
			continue;
		if (vec_push(&u->pods, i) < 0)
			return -ENOMEM;
	}
	preempt_units_sort(v->cluster, u->pods.items, u->pods.len);
	return 0;
}

static void unit_describe(struct victims *v, const struct preempt_units *u,
			  struct preempt_unit *unit)
{
	const struct cluster *c = v->cluster;
	const struct pod *pod = cluster_pod(c, u->pods.items[unit->first]);
	const struct node *n = cluster_node(c, pod->node);

	unit->cost = (struct preempt_cost)PREEMPT_COST_NONE;
	for (uint32_t i = 0; i < unit->count; i++) {
		const struct pod *one = cluster_pod(c, u->pods.items[unit->first + i]);
		struct preempt_cost cost = victims_pod_cost(one);

		preempt_cost_add(&unit->cost, &cost);
	}
	unit->cost.violations = victims_violations(v, u->pods.items + unit->first, unit->count);
	unit->leaf = n->domain;
	unit->leaf_free_milli = cluster_domain(c, n->domain)->free_milli;
	unit->idle_gpus = n->idle_gpus;
	unit->rank = n->rank;
	unit->uid = pod->uid;
}

static int unit_compare(const void *a, const void *b, void *cluster)
{
	const struct preempt_unit *x = a, *y = b;

	if ((x->cost.violations > 0) != (y->cost.violations > 0))
		return VICTIMS_ORDER(x->cost.violations > 0, y->cost.violations > 0);
	if (x->cost.highest != y->cost.highest)
		return VICTIMS_ORDER(x->cost.highest, y->cost.highest);
	if (x->leaf_free_milli != y->leaf_free_milli)
		return VICTIMS_ORDER(y->leaf_free_milli, x->leaf_free_milli);
	if (x->leaf != y->leaf)
		return gang_domain_before(cluster, x->leaf, y->leaf) ? -1 : 1;
	if (x->idle_gpus != y->idle_gpus)
		return VICTIMS_ORDER(y->idle_gpus, x->idle_gpus);
	if (x->rank != y->rank)
		return VICTIMS_ORDER(x->rank, y->rank);
	return strcmp(x->uid, y->uid);
}

int preempt_units_find(struct preempt_units *u, struct victims *v, const struct gang_spec *spec)
{
	uint32_t last_gang = 0;

	if (find_pods(u, v, spec) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < u->pods.len; i++) {
		uint32_t gang = cluster_pod(v->cluster, u->pods.items[i])->gang;

		if (gang && gang == last_gang) {
			u->list.items[u->list.len - 1].count++;
			continue;
		}
		last_gang = gang;
		if (vec_push(&u->list, ((struct preempt_unit){ .first = i, .count = 1 })) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < u->list.len; i++)
		unit_describe(v, u, &u->list.items[i]);
	if (u->list.len)
		qsort_r(u->list.items, u->list.len, sizeof(*u->list.items), unit_compare,
			(void *)v->cluster);
	return 0;
}

void preempt_units_done(struct preempt_units *u)
{
	vec_done(&u->pods);
	vec_done(&u->list);
}
