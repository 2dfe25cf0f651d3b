/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_gang.c - whom to evict so that a gang fits.
 *
 * Gangs are planned on the real cluster, so pods are really detached here and attached
 * again.  That happens in the order of a stack, which gives them their numbers back.
 */
#include "base/attr.h"
#include "engine/gang.h"
#include "engine/preempt_units.h"
#include "engine/victims.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_STEP 64 /* units that are taken away before the first try */

struct seat { /* a member on a node */
	uint64_t rank;
	uint32_t node;
	const struct request *request;
};

struct eviction {
	struct cluster *cluster;
	struct gang_planner *planner;
	const struct gang_spec *spec;
	struct err *err;
	struct gang_result result;
	struct victims victims;
	struct preempt_units units;
	VEC(struct pod *) detached;	     /* a stack */
	size_t away;			     /* units that are detached */
	VEC(struct seat) seats;		     /* by node */
	VEC(const struct request *) members; /* of one node */
	VEC(uint32_t) chosen;		     /* the victims, by number */
};

static void eviction_done(struct eviction *ev)
{
	gang_result_done(&ev->result);
	victims_done(&ev->victims);
	preempt_units_done(&ev->units);
	vec_done(&ev->detached);
	vec_done(&ev->seats);
	vec_done(&ev->members);
	vec_done(&ev->chosen);
}

static void detach(struct eviction *ev, uint32_t number)
{
	ev->detached.items[ev->detached.len++] = cluster_pod_detach(ev->cluster, number);
}

/* Back to `count` detached pods. */
static void attach_down_to(struct eviction *ev, size_t count)
{
	while (ev->detached.len > count) {
		struct pod *pod = ev->detached.items[--ev->detached.len];
		uint32_t number;

		if (cluster_pod_attach(ev->cluster, pod, &number) < 0)
			abort(); /* its place was free and its memory is there */
	}
}

static void restore(struct eviction *ev)
{
	attach_down_to(ev, 0);
	ev->away = 0;
}

/* Makes the first `count` units be away. */
static void detach_units(struct eviction *ev, size_t count)
{
	while (ev->away > count)
		attach_down_to(ev, ev->detached.len - ev->units.list.items[--ev->away].count);
	while (ev->away < count) {
		const struct preempt_unit *unit = &ev->units.list.items[ev->away++];

		for (uint32_t p = 0; p < unit->count; p++)
			detach(ev, ev->units.pods.items[unit->first + p]);
	}
}

/* 1 if the gang fits as things are, 0 if not.  The result tells where. */
static int try_gang(struct eviction *ev)
{
	int rc = gang_plan(ev->planner, ev->spec, &ev->result, ev->err);

	if (rc < 0)
		return rc;
	if (!ev->result.placed)
		return 0;
	plan_rollback(ev->result.plan);
	ev->result.plan = NULL;
	return 1;
}

static int try_units(struct eviction *ev, size_t count)
{
	detach_units(ev, count);
	return try_gang(ev);
}

/* The smallest number of units without which the gang fits; they are away afterwards. */
static int fewest_units(struct eviction *ev, size_t *ret)
{
	size_t low = 0, high = MIN(FIRST_STEP, ev->units.list.len);
	int rc = high ? try_units(ev, high) : 0;

	while (rc == 0 && high < ev->units.list.len) {
		low = high;
		high = MIN(2 * high, ev->units.list.len);
		rc = try_units(ev, high);
	}
	if (rc <= 0)
		return rc < 0 ? rc : -ENOENT;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		rc = try_units(ev, middle);
		if (rc < 0)
			return rc;
		*(rc ? &high : &low) = middle;
	}
	*ret = high;
	rc = try_units(ev, high);
	return rc < 0 ? rc : rc ? 0 : -ENOENT;
}

static int seat_compare(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->rank != y->rank)
		return VICTIMS_ORDER(x->rank, y->rank);
	return VICTIMS_ORDER(x->node, y->node);
}

static int note_seats(struct eviction *ev)
{
	ev->seats.len = 0;
	for (uint32_t i = 0; i < ev->result.members_count; i++) {
		const struct gang_member *m = &ev->result.members[i];
		struct seat seat = {
			.rank = cluster_node(ev->cluster, m->decision.node)->rank,
			.node = m->decision.node,
			.request = ev->spec->classes[m->class_index].request,
		};

		if (vec_push(&ev->seats, seat) < 0)
			return -ENOMEM;
	}
	qsort(ev->seats.items, ev->seats.len, sizeof(struct seat), seat_compare);
	return 0;
}

static bool node_used(const struct eviction *ev, uint32_t node)
{
	struct seat key = { .rank = cluster_node(ev->cluster, node)->rank, .node = node };

	return bsearch(&key, ev->seats.items, ev->seats.len, sizeof(key), seat_compare) != NULL;
}

/* Chooses what victims_search() took on a node. */
static int choose_taken(struct eviction *ev)
{
	struct victims *v = &ev->victims;

	for (size_t i = 0; i < v->units.len; i++) {
		const struct victims_unit *unit = &v->units.items[i];

		if (!unit->taken)
			continue;
		victims_spend(v, unit); /* for the nodes that follow */
		if (unit->gang) {
			unit->gang->evicted = true;
			continue; /* all of its pods are added in the end */
		}
		for (uint32_t p = unit->first; p != VICTIMS_END; p = v->pods.items[p].next)
			if (vec_push(&ev->chosen, v->pods.items[p].pod) < 0)
				return -ENOMEM;
	}
	return 0;
}

/* The seats of one node, from the i-th on; *ret is where the next node begins. */
static int search_node(struct eviction *ev, size_t i, size_t *ret)
{
	uint32_t node = ev->seats.items[i].node;
	struct preempt_cost cost;

	ev->members.len = 0;
	for (; i < ev->seats.len && ev->seats.items[i].node == node; i++)
		if (vec_push(&ev->members, ev->seats.items[i].request) < 0)
			return -ENOMEM;
	*ret = i;
	if (victims_load(&ev->victims, node, ev->members.items, (uint32_t)ev->members.len) < 0)
		return -ENOMEM;
	/* If they do not fit in this order, everything goes; try_gang() has the last word. */
	victims_search(&ev->victims, &victims_no_limit, true, &cost);
	return choose_taken(ev);
}

static int add_gangs(struct eviction *ev)
{
	for (uint32_t i = 0; i < cluster_pods_end(ev->cluster); i++) {
		const struct pod *pod = cluster_pod(ev->cluster, i);
		const struct victims_gang *gang;

		if (!pod || !pod->gang)
			continue;
		gang = victims_gang_of(&ev->victims, pod);
		if (gang->evicted && vec_push(&ev->chosen, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The cheapest victims for the seats, node by node.  Gangs that had to go for one node are
 * gone for the next. */
static int choose_by_node(struct eviction *ev)
{
	restore(ev);
	ev->chosen.len = 0;
	for (size_t i = 0; i < ev->seats.len;)
		if (search_node(ev, i, &i) < 0)
			return -ENOMEM;
	return add_gangs(ev);
}

/* All units that were away, or those of them with a pod on a node that is used. */
static int choose_units(struct eviction *ev, size_t count, bool used_only)
{
	restore(ev);
	ev->chosen.len = 0;
	for (size_t i = 0; i < count; i++) {
		const struct preempt_unit *unit = &ev->units.list.items[i];
		const uint32_t *pods = ev->units.pods.items + unit->first;
		bool used = !used_only;

		for (uint32_t p = 0; p < unit->count; p++)
			used = used || node_used(ev, cluster_pod(ev->cluster, pods[p])->node);
		for (uint32_t p = 0; used && p < unit->count; p++)
			if (vec_push(&ev->chosen, pods[p]) < 0)
				return -ENOMEM;
	}
	return 0;
}

/* 1 if the gang fits without the chosen pods. */
static int try_chosen(struct eviction *ev)
{
	int rc;

	restore(ev);
	for (size_t i = 0; i < ev->chosen.len; i++)
		detach(ev, ev->chosen.items[i]);
	rc = try_gang(ev);
	restore(ev);
	return rc;
}

/* gang_plan() sees another cluster when fewer pods are away, and may look at its leaves in
 * another order; in the unlikely case that it finds nothing, more have to go. */
static int choose(struct eviction *ev, size_t units)
{
	for (int attempt = 0; attempt < 3; attempt++) {
		int rc = attempt ? choose_units(ev, units, attempt == 1) : choose_by_node(ev);

		if (rc == 0)
			rc = try_chosen(ev);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	return -ENOENT;
}

/* Whether the pod, or one of its gang, makes room on a node that is used. */
static bool still_needed(const struct eviction *ev, uint32_t number)
{
	const struct pod *pod = cluster_pod(ev->cluster, number);

	if (node_used(ev, pod->node))
		return true;
	for (size_t i = 0; pod->gang && i < ev->chosen.len; i++) {
		const struct pod *other = cluster_pod(ev->cluster, ev->chosen.items[i]);

		if (other->gang == pod->gang && node_used(ev, other->node))
			return true;
	}
	return false;
}

/* For the same reason the gang may end on other nodes than was thought: then who is on
 * none of them may stay, if it still fits. */
static int spare_unused(struct eviction *ev)
{
	size_t all = ev->chosen.len, needed = 0;
	int rc = note_seats(ev);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < all; i++) {
		uint32_t keep = ev->chosen.items[i];

		if (!still_needed(ev, keep))
			continue;
		ev->chosen.items[i] = ev->chosen.items[needed];
		ev->chosen.items[needed++] = keep;
	}
	if (needed == all)
		return 0;
	ev->chosen.len = needed;
	rc = try_chosen(ev);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	ev->chosen.len = all;
	rc = try_chosen(ev);
	return rc < 0 ? rc : 0;
}

static uint32_t count_gangs(struct eviction *ev)
{
	uint32_t gangs = 0, last = 0;

	preempt_units_sort(ev->cluster, ev->chosen.items, ev->chosen.len);
	for (size_t i = 0; i < ev->chosen.len; i++) {
		uint32_t gang = cluster_pod(ev->cluster, ev->chosen.items[i])->gang;

		gangs += gang && gang != last;
		last = gang;
	}
	return gangs;
}

static uint32_t count_violations(struct eviction *ev)
{
	if (!ev->chosen.len)
		return 0;
	memset(ev->victims.spent.items, 0, ev->victims.spent.len * sizeof(uint32_t));
	return victims_violations(&ev->victims, ev->chosen.items, ev->chosen.len);
}

static int finish(struct eviction *ev, struct preemption *ret)
{
	uint32_t members = ev->result.members_count, victims = (uint32_t)ev->chosen.len;
	struct preemption p = {
		.decisions = calloc(members, sizeof(struct decision)),
		.decisions_count = members,
		.victims = victims ? calloc(victims, sizeof(uint32_t)) : NULL,
		.victims_count = victims,
		.gangs = count_gangs(ev),
		.cost = PREEMPT_COST_NONE,
	};

	if (!p.decisions || (victims && !p.victims)) {
		preemption_done(&p);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < members; i++)
		p.decisions[i] = ev->result.members[i].decision;
	for (uint32_t i = 0; i < victims; i++) {
		const struct pod *pod = cluster_pod(ev->cluster, ev->chosen.items[i]);
		struct preempt_cost cost = victims_pod_cost(pod);

		p.victims[i] = ev->chosen.items[i];
		preempt_cost_add(&p.cost, &cost);
	}
	preempt_sort_pods(ev->cluster, p.victims, victims);
	p.cost.violations = count_violations(ev);
	*ret = p;
	return 0;
}

static int evict(struct eviction *ev, int32_t priority)
{
	size_t units;
	int rc = try_gang(ev);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = victims_init(&ev->victims, ev->cluster, priority);
	if (rc == 0)
		victims_keep(&ev->victims, ev->spec->classes[0].pods[0].gang);
	if (rc == 0)
		rc = preempt_units_find(&ev->units, &ev->victims, ev->spec);
	if (rc == 0)
		rc = vec_reserve(&ev->detached, cluster_pods_count(ev->cluster));
	if (rc == 0)
		rc = fewest_units(ev, &units);
	if (rc == 0)
		rc = note_seats(ev);
	if (rc == 0)
		rc = choose(ev, units);
	if (rc == 0)
		rc = spare_unused(ev);
	restore(ev);
	return rc;
}

int preempt_gang(struct engine *e, struct gang_planner *g, const struct gang_spec *spec,
		 int32_t priority, struct preemption *ret, struct err *err)
{
	struct eviction ev = {
		.cluster = engine_cluster(e),
		.planner = g,
		.spec = spec,
		.err = err,
	};
	int rc = evict(&ev, priority);

	if (rc == 0)
		rc = finish(&ev, ret);
	eviction_done(&ev);
	return rc;
}
