/* SPDX-License-Identifier: Apache-2.0 */
/* Preemption on random small clusters, against all sets of victims there are. */
#include "random_cluster.h"
#include "test.h"

#include <errno.h>

#include "engine/gang.h"
#include "engine/preempt.h"

#define SEEDS	      1000
#define NODE_PODS_MAX 8
#define PODS_MAX      64
#define BUDGETS	      3

struct world {
	struct engine *engine;
	struct cluster *cluster;
	struct rng rng;
	uint64_t seed;
};

/* The oracle's own idea of a set and what it costs. */
struct outcome {
	bool found;
	uint32_t node;
	uint32_t violations, victims;
	int64_t highest;
	uint64_t priorities, started;
	uint32_t ending;
};

static void fill_nodes(struct world *w)
{
	uint32_t nodes = 1 + rng_below(&w->rng, 6);

	for (uint32_t i = 0; i < nodes; i++) {
		struct random_node n;
		struct err err = ERR_INIT;
		uint32_t node;

		random_node(w->cluster, &w->rng, i, &n);
		CHECKF(cluster_node_add(w->cluster, &n.spec, &node, &err) == 0, "%s", err.text);
	}
}

static uint32_t pods_on(const struct cluster *c, uint32_t node)
{
	uint32_t count = 0;

	for (uint32_t p = cluster_node(c, node)->first_pod; p != POD_NONE;
	     p = cluster_pod(c, p)->next)
		count++;
	return count;
}

static void fill_pods(struct world *w)
{
	for (uint32_t i = 0; i < PODS_MAX; i++) {
		struct request r;
		struct decision d;
		char uid[32];
		uint32_t pod;
		struct pod_spec spec = {
			.uid = uid,
			.priority = (int32_t)rng_below(&w->rng, 4) * 10,
			.gang = rng_chance(&w->rng, 1, 4) ? 1 + rng_below(&w->rng, 4) : 0,
			.started = rng_below(&w->rng, 5),
			.budget = rng_chance(&w->rng, 1, 2) ? 1 + rng_below(&w->rng, BUDGETS) : 0,
			.ending = rng_chance(&w->rng, 1, 6),
		};

		snprintf(uid, sizeof(uid), "pod-%u", (unsigned)i);
		random_request(w->cluster, &w->rng, &r);
		if (engine_decide(w->engine, &r, &d) != FITS ||
		    pods_on(w->cluster, d.node) >= NODE_PODS_MAX)
			continue;
		CHECK(engine_place(w->engine, &spec, &r, &d, &pod) == 0);
	}
}

/* Adds every pod of the gang of a pod that is in the set; false if one may not go. */
static bool close_over_gangs(const struct cluster *c, int32_t priority, bool *in)
{
	uint32_t end = cluster_pods_end(c);

	for (uint32_t i = 0; i < end; i++) {
		if (!in[i] || !cluster_pod(c, i)->gang)
			continue;
		for (uint32_t j = 0; j < end; j++)
			if (cluster_pod(c, j) &&
			    cluster_pod(c, j)->gang == cluster_pod(c, i)->gang)
				in[j] = true;
	}
	for (uint32_t i = 0; i < end; i++)
		if (in[i] && cluster_pod(c, i)->priority >= priority)
			return false;
	return true;
}

static void weigh(const struct cluster *c, const bool *in, struct outcome *o)
{
	uint32_t removed[BUDGETS + 1] = { 0 };

	o->violations = o->victims = o->ending = 0;
	o->highest = INT32_MIN;
	o->priorities = 0;
	o->started = UINT64_MAX;
	for (uint32_t i = 0; i < cluster_pods_end(c); i++) {
		const struct pod *pod = in[i] ? cluster_pod(c, i) : NULL;

		if (!pod)
			continue;
		o->ending += pod->ending;
		if (pod->ending)
			continue;
		removed[pod->budget]++;
		o->victims++;
		o->priorities += (uint64_t)(pod->priority + INT64_C(2147483648));
		o->highest = MAX(o->highest, pod->priority);
	}
	for (uint32_t b = 1; b <= BUDGETS; b++)
		if (removed[b] > cluster_budget_allowed(c, b))
			o->violations += removed[b] - cluster_budget_allowed(c, b);
	for (uint32_t i = 0; i < cluster_pods_end(c); i++)
		if (in[i] && cluster_pod(c, i)->priority == o->highest &&
		    !cluster_pod(c, i)->ending)
			o->started = MIN(o->started, cluster_pod(c, i)->started);
}

static bool cheaper(const struct cluster *c, const struct outcome *a, const struct outcome *b)
{
	if (!b->found)
		return true;
	if (a->violations != b->violations)
		return a->violations < b->violations;
	if (a->highest != b->highest)
		return a->highest < b->highest;
	if (a->priorities != b->priorities)
		return a->priorities < b->priorities;
	if (a->victims != b->victims)
		return a->victims < b->victims;
	if (a->started != b->started)
		return a->started > b->started;
	if (a->ending != b->ending)
		return a->ending < b->ending;
	return cluster_node(c, a->node)->rank < cluster_node(c, b->node)->rank;
}

/* Whether the request fits on the node in a cluster without these pods. */
static bool fits_without(struct world *w, const struct request *r, uint32_t node, const bool *in)
{
	struct plan *plan = plan_begin(w->engine);
	bool fits;

	CHECK(plan != NULL);
	for (uint32_t i = 0; i < PODS_MAX; i++)
		if (in[i])
			CHECK(plan_remove(plan, i) == 0);
	fits = fit_node(w->cluster, r, node) == FITS;
	plan_rollback(plan);
	return fits;
}

static void oracle_node(struct world *w, const struct request *r, int32_t priority, uint32_t node,
			struct outcome *best)
{
	uint32_t pods[NODE_PODS_MAX], count = 0;
	bool all[PODS_MAX] = { false };

	for (uint32_t p = cluster_node(w->cluster, node)->first_pod; p != POD_NONE;
	     p = cluster_pod(w->cluster, p)->next) {
		bool one[PODS_MAX] = { false };

		one[p] = true;
		if (!close_over_gangs(w->cluster, priority, one))
			continue;
		pods[count++] = p;
		for (uint32_t i = 0; i < PODS_MAX; i++)
			all[i] = all[i] || one[i];
	}
	/* As documented, a node is a candidate if it fits without all of them. */
	if (!fits_without(w, r, node, all))
		return;
	for (uint32_t mask = 1; mask < 1u << count; mask++) {
		struct outcome here = { .found = true, .node = node };
		bool in[PODS_MAX] = { false };

		for (uint32_t i = 0; i < count; i++)
			in[pods[i]] = mask >> i & 1;
		CHECK(close_over_gangs(w->cluster, priority, in));
		weigh(w->cluster, in, &here);
		if (cheaper(w->cluster, &here, best) && fits_without(w, r, node, in))
			*best = here;
	}
}

static struct outcome oracle(struct world *w, const struct request *r, int32_t priority)
{
	struct outcome best = { .found = false };

	for (uint32_t i = 0; i < cluster_nodes_end(w->cluster); i++)
		oracle_node(w, r, priority, i, &best);
	return best;
}

/* Nobody is there twice, all may go, gangs are whole, the figures are theirs. */
static void check_victims(struct world *w, const struct preemption *p, int32_t priority)
{
	bool in[PODS_MAX] = { false }, closed[PODS_MAX];
	struct outcome o = { .found = true };

	for (uint32_t i = 0; i < p->victims_count; i++) {
		CHECK(p->victims[i] < PODS_MAX && cluster_pod(w->cluster, p->victims[i]));
		CHECKF(!in[p->victims[i]], "seed %" PRIu64, w->seed);
		in[p->victims[i]] = true;
	}
	memcpy(closed, in, sizeof(in));
	CHECKF(close_over_gangs(w->cluster, priority, closed), "seed %" PRIu64, w->seed);
	CHECKF(memcmp(closed, in, sizeof(in)) == 0, "seed %" PRIu64, w->seed);
	weigh(w->cluster, in, &o);
	CHECK_INT(p->cost.victims, o.victims);
	CHECK_INT(p->cost.violations, o.violations);
	CHECK_INT(p->cost.priorities, o.priorities);
	CHECK_INT(p->cost.started, o.started);
	CHECK(p->cost.highest == o.highest);
	CHECK_INT(p->cost.ending, o.ending);
}

/* Without the victims the decision can be booked. */
static void check_applied(struct world *w, const struct request *r, const struct preemption *p)
{
	struct plan *plan = plan_begin(w->engine);
	uint32_t pod;

	CHECK(plan != NULL);
	CHECK_INT(p->decisions_count, 1);
	for (uint32_t i = 0; i < p->victims_count; i++)
		CHECK(plan_remove(plan, p->victims[i]) == 0);
	CHECKF(plan_place(plan, &(struct pod_spec){ .uid = "preemptor" }, r, &p->decisions[0],
			  &pod) == 0,
	       "seed %" PRIu64, w->seed);
	CHECK(cluster_check(w->cluster) == NULL);
	plan_rollback(plan);
}

static bool check_preempt(struct world *w)
{
	int32_t priority = (int32_t)rng_below(&w->rng, 5) * 10;
	uint64_t before = cluster_digest(w->cluster);
	struct preemption p = { 0 };
	struct outcome expect;
	struct request r;
	struct decision d;
	int rc;

	random_request(w->cluster, &w->rng, &r);
	if (engine_decide(w->engine, &r, &d) == FITS)
		return false;
	rc = preempt_find(w->engine, &r, priority, &p);
	CHECKF(cluster_digest(w->cluster) == before, "seed %" PRIu64, w->seed);
	expect = oracle(w, &r, priority);
	CHECKF(rc == (expect.found ? 0 : -ENOENT), "seed %" PRIu64 ": %d", w->seed, rc);
	if (rc < 0)
		return false;
	check_victims(w, &p, priority);
	check_applied(w, &r, &p);
	CHECKF(p.cost.violations == expect.violations && p.cost.highest == expect.highest &&
		       p.cost.priorities == expect.priorities &&
		       p.cost.victims == expect.victims && p.cost.started == expect.started &&
		       p.cost.ending == expect.ending && p.decisions[0].node == expect.node,
	       "seed %" PRIu64 ": node %u with %u victims, expected %u with %u", w->seed,
	       (unsigned)p.decisions[0].node, (unsigned)p.cost.victims, (unsigned)expect.node,
	       (unsigned)expect.victims);
	preemption_done(&p);
	return true;
}

/* A world of its own for each seed. */
static void world_open(struct world *w, uint64_t seed)
{
	struct engine_config config = { .seed = seed };

	w->seed = seed;
	w->engine = engine_new(&config);
	CHECK(w->engine != NULL);
	w->cluster = engine_cluster(w->engine);
	rng_seed(&w->rng, seed);
	fill_nodes(w);
	fill_pods(w);
	for (uint32_t b = 1; b <= BUDGETS; b++)
		CHECK(cluster_budget_allow(w->cluster, b, rng_below(&w->rng, 4)) == 0);
}

TEST(the_victims_are_the_cheapest_of_all_sets)
{
	uint32_t found = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world w;

		world_open(&w, seed);
		for (int i = 0; i < 8; i++)
			found += check_preempt(&w);
		engine_free(w.engine);
	}
	random_links_free();
	/* Else the property says nothing. */
	CHECKF(found > SEEDS / 2, "only %u requests needed victims", (unsigned)found);
}

/* Without these pods, is there a plan for the gang? */
static bool gang_fits_without(struct world *w, struct gang_planner *g,
			      const struct gang_spec *spec, const bool *in)
{
	struct plan *plan = plan_begin(w->engine);
	struct gang_result result = { 0 };
	bool fits;

	for (uint32_t i = 0; i < PODS_MAX; i++)
		if (in[i])
			CHECK(plan_remove(plan, i) == 0);
	CHECK(gang_plan(g, spec, &result, NULL) == 0);
	fits = result.placed;
	plan_rollback(result.plan);
	plan_rollback(plan);
	gang_result_done(&result);
	return fits;
}

/* Everybody who may be evicted. */
static void evictable(struct world *w, int32_t priority, bool *all)
{
	memset(all, 0, PODS_MAX * sizeof(*all));
	for (uint32_t i = 0; i < cluster_pods_end(w->cluster); i++) {
		bool one[PODS_MAX] = { false };

		one[i] = cluster_pod(w->cluster, i) != NULL;
		if (one[i] && close_over_gangs(w->cluster, priority, one))
			all[i] = true;
	}
}

static bool check_gang(struct world *w, struct gang_planner *g, const struct gang_spec *spec)
{
	int32_t priority = (int32_t)rng_below(&w->rng, 5) * 10;
	uint64_t before = cluster_digest(w->cluster);
	bool in[PODS_MAX] = { false };
	struct preemption p = { 0 };
	bool needed;
	int rc;

	rc = preempt_gang(w->engine, g, spec, priority, &p, NULL);
	CHECKF(cluster_digest(w->cluster) == before, "seed %" PRIu64, w->seed);
	CHECK(cluster_check(w->cluster) == NULL);
	evictable(w, priority, in);
	if (rc < 0) {
		CHECK_INT(rc, -ENOENT);
		CHECKF(!gang_fits_without(w, g, spec, in), "seed %" PRIu64, w->seed);
		return false;
	}
	check_victims(w, &p, priority);
	memset(in, 0, sizeof(in));
	for (uint32_t i = 0; i < p.victims_count; i++)
		in[p.victims[i]] = true;
	CHECKF(gang_fits_without(w, g, spec, in), "seed %" PRIu64, w->seed);
	CHECK_INT(p.decisions_count, spec->classes[0].count);
	needed = p.victims_count > 0;
	preemption_done(&p);
	return needed;
}

TEST(the_victims_of_a_gang_make_room_for_all_of_it)
{
	static const struct pod_spec pods[4] = {
		{ .uid = "m0" }, { .uid = "m1" }, { .uid = "m2" }, { .uid = "m3" }
	};
	uint32_t found = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world w;
		struct request r;
		struct gang_planner *g;
		struct gang_class members = { &r, pods, 0 };
		struct gang_spec spec = { .classes = &members, .classes_count = 1 };

		world_open(&w, seed);
		g = gang_planner_new(w.engine);
		CHECK(g != NULL);
		for (int i = 0; i < 4; i++) {
			random_request(w.cluster, &w.rng, &r);
			members.count = 1 + rng_below(&w.rng, 4);
			spec.strategy = r.strategy;
			spec.leaf_rules = (uint8_t)rng_below(&w.rng, 2);
			found += check_gang(&w, g, &spec);
		}
		gang_planner_free(g);
		engine_free(w.engine);
	}
	random_links_free();
	CHECKF(found > SEEDS / 4, "only %u gangs needed victims", (unsigned)found);
}

TEST_MAIN()
