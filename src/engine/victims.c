/* SPDX-License-Identifier: Apache-2.0 */
/* victims.c - what can be evicted from a node, and what that costs at least. */
#include "engine/victims.h"
#include "base/attr.h"
#include "base/num.h"
#include "engine/rules.h"

#include <stdlib.h>
#include <string.h>

#define GANGS_BYTES_MAX ((size_t)256 << 20)

const struct preempt_cost victims_no_limit = {
	.violations = UINT32_MAX,
	.victims = UINT32_MAX,
	.highest = INT32_MAX,
	.priorities = UINT64_MAX,
};

struct preempt_cost victims_pod_cost(const struct pod *pod)
{
	if (pod->ending)
		return (struct preempt_cost){ .ending = 1,
					      .highest = INT32_MIN,
					      .started = UINT64_MAX };
	return (struct preempt_cost){
		.victims = 1,
		.highest = pod->priority,
		.priorities = (uint64_t)((int64_t)pod->priority - INT32_MIN),
		.started = pod->started,
	};
}

void preempt_cost_add(struct preempt_cost *to, const struct preempt_cost *more)
{
	to->ending += more->ending;
	if (!more->victims)
		return;
	if (!to->victims || more->highest > to->highest) {
		to->highest = more->highest;
		to->started = more->started;
	} else if (more->highest == to->highest && more->started < to->started) {
		to->started = more->started;
	}
	to->violations += more->violations;
	to->victims += more->victims;
	to->priorities += more->priorities;
}

int preempt_cost_compare(const struct preempt_cost *a, const struct preempt_cost *b)
{
	if (a->violations != b->violations)
		return VICTIMS_ORDER(a->violations, b->violations);
	if (a->highest != b->highest)
		return VICTIMS_ORDER(a->highest, b->highest);
	if (a->priorities != b->priorities)
		return VICTIMS_ORDER(a->priorities, b->priorities);
	if (a->victims != b->victims)
		return VICTIMS_ORDER(a->victims, b->victims);
	if (a->started != b->started)
		return VICTIMS_ORDER(b->started, a->started);
	return VICTIMS_ORDER(a->ending, b->ending);
}

struct victims_gang *victims_gang_of(const struct victims *v, const struct pod *pod)
{
	return map_get(&v->gangs, (const char *)&pod->gang, sizeof(pod->gang));
}

static int gang_note_budget(struct victims *v, struct victims_gang *gang, const struct pod *pod)
{
	uint32_t budget = victims_budget_of(v, pod);
	struct victims_spent *spent = budget ? arena_alloc(&v->arena, sizeof(*spent)) : NULL;

	if (!budget)
		return 0;
	if (!spent)
		return -ENOMEM;
	*spent = (struct victims_spent){ budget, gang->spent };
	gang->spent = spent;
	return 0;
}

static int gang_count(struct victims *v, const struct pod *pod)
{
	struct victims_gang *gang = victims_gang_of(v, pod);
	struct preempt_cost cost = victims_pod_cost(pod);

	if (!gang) {
		gang = arena_alloc(&v->arena, sizeof(*gang));
		if (!gang)
			return -ENOMEM;
		gang->gang = pod->gang;
		gang->cost = (struct preempt_cost)PREEMPT_COST_NONE;
		if (map_put(&v->gangs, (const char *)&gang->gang, sizeof(gang->gang), gang) < 0)
			return -ENOMEM;
	}
	preempt_cost_add(&gang->cost, &cost);
	if (pod->priority >= v->priority)
		gang->kept = true;
	return gang_note_budget(v, gang, pod);
}

int victims_init(struct victims *v, const struct cluster *c, int32_t priority)
{
	memset(v, 0, sizeof(*v));
	v->cluster = c;
	v->priority = priority;
	arena_init(&v->arena, GANGS_BYTES_MAX);
	map_init(&v->gangs, 0);
	if (victims_budgets_init(v) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < cluster_pods_end(c); i++) {
		const struct pod *pod = cluster_pod(c, i);

		if (pod && pod->gang && gang_count(v, pod) < 0)
			return -ENOMEM;
	}
	return 0;
}

void victims_keep(struct victims *v, uint32_t gang)
{
	struct victims_gang *own = map_get(&v->gangs, (const char *)&gang, sizeof(gang));

	if (own)
		own->kept = true;
}

void victims_done(struct victims *v)
{
	if (!v)
		return;
	vec_done(&v->pods);
	vec_done(&v->units);
	vec_done(&v->extended);
	vec_done(&v->order);
	vec_done(&v->without);
	vec_done(&v->spent);
	map_done(&v->gangs);
	arena_done(&v->arena);
}

/* What is missing if so much more is needed; never above INT64_MAX / 2. */
static void lack_add(int64_t *lacks, int64_t need)
{
	if (need > 0 && (ADD_OVERFLOW(*lacks, need, lacks) || *lacks > INT64_MAX / 2))
		*lacks = INT64_MAX / 2;
}

/* A resource that is not asked for is not short, even where it is overbooked. */
static void find_lacks(struct victims *v, const struct node *n)
{
	const int64_t left[FREES_COUNT] = {
		[FREES_GPUS] = n->idle_gpus,	    [FREES_CPU] = n->free.cpu_milli,
		[FREES_MEMORY] = n->free.mem_bytes, [FREES_EPHEMERAL] = n->free.ephemeral_bytes,
		[FREES_PODS] = n->free.pods,
	};

	memset(v->lacks, 0, sizeof(v->lacks));
	for (uint32_t m = 0; m < v->members_count; m++) {
		const struct request *r = v->members[m];

		for (uint32_t i = 0; i < r->asks_count; i++)
			if (r->asks[i].kind == ASK_WHOLE)
				v->lacks[FREES_GPUS] += r->asks[i].count;
		lack_add(&v->lacks[FREES_CPU], r->needs.cpu_milli);
		lack_add(&v->lacks[FREES_MEMORY], r->needs.mem_bytes);
		lack_add(&v->lacks[FREES_EPHEMERAL], r->needs.ephemeral_bytes);
		lack_add(&v->lacks[FREES_PODS], r->needs.pods);
	}
	for (int i = 0; i < FREES_COUNT; i++)
		if (v->lacks[i] > 0 && SUB_OVERFLOW(v->lacks[i], left[i], &v->lacks[i]))
			v->lacks[i] = INT64_MAX / 2;
}

static uint64_t hold_core(const struct hold *h)
{
	return h->kind == ASK_SHARE ? h->core_milli : CORE_WHOLE;
}

/* Whether a member asks for GPUs, or for any of the pod's other resources. */
static bool competes(const struct victims *v, const struct pod *pod)
{
	for (uint32_t m = 0; m < v->members_count; m++) {
		const struct request *r = v->members[m];

		if (r->asks_count && pod->holds_count)
			return true;
		for (uint32_t i = 0; i < r->extended_count; i++)
			for (uint32_t j = 0; j < pod->extended_count; j++)
				if (r->extended[i].resource == pod->extended[j].resource)
					return true;
	}
	return false;
}

/* A unit that holds nothing of what is short is in no cheapest set. */
static void unit_weigh(struct victims *v, struct victims_unit *unit, const struct pod *pod)
{
	int64_t frees[FREES_COUNT] = {
		[FREES_CPU] = pod->needs.cpu_milli,
		[FREES_MEMORY] = pod->needs.mem_bytes,
		[FREES_EPHEMERAL] = pod->needs.ephemeral_bytes,
		[FREES_PODS] = pod->needs.pods,
	};
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < pod->holds_count; i++) {
		gpus |= gpuset_one(pod->holds[i].gpu);
		unit->core_milli += hold_core(&pod->holds[i]);
	}
	frees[FREES_GPUS] = gpuset_count(gpus);
	for (int i = 0; i < FREES_COUNT; i++) {
		unit->frees[i] += frees[i];
		if (frees[i] > 0 && v->lacks[i] > 0)
			unit->helps = true;
	}
	if (v->by_pods || competes(v, pod))
		unit->helps = true;
}

static struct victims_unit *unit_of_gang(struct victims *v, const struct victims_gang *gang)
{
	for (size_t i = 0; gang && i < v->units.len; i++)
		if (v->units.items[i].gang == gang)
			return &v->units.items[i];
	return NULL;
}

static int unit_add_pod(struct victims *v, uint32_t number, struct victims_gang *gang)
{
	const struct pod *pod = cluster_pod(v->cluster, number);
	struct victims_unit *unit = unit_of_gang(v, gang);

	if (!unit) {
		struct victims_unit fresh = {
			.cost = gang ? gang->cost : victims_pod_cost(pod),
			.gang = gang,
			.budget = gang ? 0 : victims_budget_of(v, pod),
			.uid = pod->uid,
			.first = VICTIMS_END,
		};

		fresh.cost.violations = victims_spend(v, &fresh);
		victims_unspend(v, &fresh);
		v->by_budgets |= fresh.budget || (gang && gang->spent);
		if (vec_push(&v->units, fresh) < 0)
			return -ENOMEM;
		unit = &v->units.items[v->units.len - 1];
	}
	if (strcmp(pod->uid, unit->uid) < 0)
		unit->uid = pod->uid;
	unit_weigh(v, unit, pod);
	if (vec_push(&v->pods, ((struct victims_pod){ number, unit->first })) < 0)
		return -ENOMEM;
	unit->first = (uint32_t)v->pods.len - 1;
	return 0;
}

static int load_pod(struct victims *v, uint32_t number)
{
	const struct pod *pod = cluster_pod(v->cluster, number);
	struct victims_gang *gang = pod->gang ? victims_gang_of(v, pod) : NULL;

	if (pod->priority >= v->priority || (gang && gang->kept))
		return 0;
	if (!gang || !gang->evicted)
		return unit_add_pod(v, number, gang);
	if (vec_push(&v->pods, ((struct victims_pod){ number, v->gone })) < 0)
		return -ENOMEM;
	v->gone = (uint32_t)v->pods.len - 1;
	return 0;
}

int victims_unit_compare(const void *a, const void *b)
{
	const struct victims_unit *x = a, *y = b;

	if (x->cost.highest != y->cost.highest)
		return VICTIMS_ORDER(x->cost.highest, y->cost.highest);
	if (x->cost.started != y->cost.started)
		return VICTIMS_ORDER(y->cost.started, x->cost.started);
	return strcmp(y->uid, x->uid);
}

static void drop_useless(struct victims *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->units.len; i++)
		if (v->units.items[i].helps)
			v->units.items[kept++] = v->units.items[i];
	v->units.len = kept;
}

int victims_load(struct victims *v, uint32_t node, const struct request *const *members,
		 uint32_t members_count)
{
	const struct node *n = cluster_node(v->cluster, node);

	v->node = node;
	v->members = members;
	v->members_count = members_count;
	v->pods.len = 0;
	v->units.len = 0;
	v->gone = VICTIMS_END;
	if (vec_reserve(&v->extended, n->extended_count) < 0)
		return -ENOMEM;
	find_lacks(v, n);
	v->by_pods = v->by_budgets = false;
	for (uint32_t i = 0; i < members_count; i++)
		v->by_pods |= rules_of_pods(v->cluster, members[i]->rules) ||
			      subject_matters(v->cluster, members[i]->subject);
	for (uint32_t i = n->first_pod; i != POD_NONE; i = cluster_pod(v->cluster, i)->next)
		if (load_pod(v, i) < 0)
			return -ENOMEM;
	drop_useless(v);
	if (v->units.len)
		qsort(v->units.items, v->units.len, sizeof(*v->units.items), victims_unit_compare);
	return vec_reserve(&v->order, v->units.len) < 0 ? -ENOMEM
							: vec_reserve(&v->without, v->pods.len);
}

/* Adds up what the units give; true once nothing is short any more. */
static bool relieve(int64_t lacks[FREES_COUNT], const struct victims_unit *unit)
{
	bool enough = true;

	for (int i = 0; i < FREES_COUNT; i++) {
		lacks[i] -= unit->frees[i];
		enough = enough && lacks[i] <= 0;
	}
	return enough;
}

/* The first unit, in order of priority, with which nothing is short any more, or NULL.
 * With `spare`, among the units that violate no budget. */
static const struct victims_unit *relieving_unit(const struct victims *v, bool spare)
{
	int64_t lacks[FREES_COUNT];

	memcpy(lacks, v->lacks, sizeof(lacks));
	for (size_t i = 0; i < v->units.len; i++) {
		const struct victims_unit *unit = &v->units.items[i];

		if (!(spare && unit->cost.violations) && relieve(lacks, unit))
			return unit;
	}
	return NULL;
}

/* At least so many units are needed, going by the most that one of them gives. */
static uint32_t units_needed(const struct victims *v)
{
	int64_t most = 1;

	for (int kind = 0; kind < FREES_COUNT; kind++) {
		int64_t largest = 0;

		for (size_t i = 0; i < v->units.len; i++)
			largest = MAX(largest, v->units.items[i].frees[kind]);
		if (v->lacks[kind] > 0 && largest > 0)
			most = MAX(most, (v->lacks[kind] + largest - 1) / largest);
	}
	return (uint32_t)MIN(most, (int64_t)v->units.len);
}

bool victims_bound(const struct victims *v, struct preempt_cost *ret)
{
	const struct victims_unit *last = relieving_unit(v, false);
	uint32_t violations = UINT32_MAX, needed;
	uint64_t priorities = UINT64_MAX, started = 0;

	if (!last)
		return false;
	needed = units_needed(v);
	for (size_t i = 0; i < v->units.len; i++) {
		const struct preempt_cost *cost = &v->units.items[i].cost;

		violations = MIN(violations, cost->violations ? cost->violations : UINT32_MAX);
		if (cost->victims) {
			priorities = MIN(priorities, cost->priorities);
			started = MAX(started, cost->started);
		} else if (needed) {
			needed--; /* it is going already */
		}
	}
	if (!last->cost.victims) {
		*ret = (struct preempt_cost)PREEMPT_COST_NONE;
		return true;
	}
	*ret = (struct preempt_cost){
		.violations = relieving_unit(v, true) ? 0 : violations,
		.victims = MAX(needed, 1),
		.highest = last->cost.highest,
		.priorities = MAX(needed * priorities,
				  (uint64_t)((int64_t)last->cost.highest - INT32_MIN)),
		.started = started,
	};
	return true;
}
