/* SPDX-License-Identifier: Apache-2.0 */
/* Random streams of everything that can happen to a cluster.  After every step the
 * records must add up, and the incremental answer must be the one computed afresh. */
#include "random_cluster.h"
#include "test.h"

#include "base/vec.h"
#include "engine/plan.h"
#include "engine/policy/policy.h"

#define SEEDS 120
#define STEPS 400

struct world {
	struct engine *engine;
	struct cluster *cluster;
	struct rng rng;
	uint64_t seed;
	VEC(uint32_t) pods;
	uint32_t next_pod, next_node;
	bool reconfigured; /* now and then */
};

static void broken(const struct world *w, const char *what)
{
	fail_msg("seed %llu, policy %s: %s", (unsigned long long)w->seed,
		 engine_config(w->engine)->policy->name, what);
}

static void node_add(struct world *w)
{
	struct random_node n;
	struct err err = ERR_INIT;
	uint32_t node;

	random_node(w->cluster, &w->rng, w->next_node++, &n);
	if (cluster_node_add(w->cluster, &n.spec, &node, &err) < 0)
		broken(w, err.text);
}

static uint32_t any_node(struct world *w)
{
	uint32_t end = cluster_nodes_end(w->cluster), node;

	if (!cluster_nodes_count(w->cluster))
		return NODE_NONE;
	do
		node = rng_below(&w->rng, end);
	while (!cluster_node(w->cluster, node)->name);
	return node;
}

/* The same machine reports again: GPUs in another order, one gone, another health. */
static void node_change(struct world *w)
{
	uint32_t node = any_node(w), number;
	struct random_node n;
	struct err err = ERR_INIT;

	if (node == NODE_NONE)
		return;
	sscanf(cluster_node(w->cluster, node)->name, "node-%u", &number);
	random_node(w->cluster, &w->rng, number, &n);
	if (n.spec.gpus_count > 1 && !n.spec.links) {
		struct gpu_spec swap = n.gpus[0];

		n.gpus[0] = n.gpus[n.spec.gpus_count - 1];
		n.gpus[n.spec.gpus_count - 1] = swap;
	}
	if (cluster_node_change(w->cluster, node, &n.spec, &err) < 0)
		broken(w, err.text);
}

/* Pods on a node that goes are gone: drop their numbers. */
static void forget_gone(struct world *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->pods.len; i++)
		if (cluster_pod(w->cluster, w->pods.items[i]))
			w->pods.items[kept++] = w->pods.items[i];
	w->pods.len = kept;
}

static void check_decision(struct world *w, const struct request *r, enum verdict v,
			   const struct decision *d)
{
	struct decision afresh;
	enum verdict v2 = engine_decide_afresh(w->engine, r, &afresh);

	if (r->node != NODE_NONE) {
		if (v == FITS && d->node != r->node)
			broken(w, "a pinned pod went elsewhere");
		return;
	}
	if (v != v2)
		broken(w, "another verdict than afresh");
	if (v == FITS && (d->node != afresh.node || d->score != afresh.score ||
			  d->assignment.count != afresh.assignment.count ||
			  memcmp(d->assignment.holds, afresh.assignment.holds,
				 d->assignment.count * sizeof(struct hold))))
		broken(w, "another decision than afresh");
}

static void submit(struct world *w)
{
	struct request r;
	struct decision d;
	enum verdict v;
	char uid[32];
	uint32_t pod;

	random_request(w->cluster, &w->rng, &r);
	engine_arrived(w->engine, &r);
	v = engine_decide(w->engine, &r, &d);
	check_decision(w, &r, v, &d);
	if (v != FITS)
		return;
	snprintf(uid, sizeof(uid), "pod-%u", w->next_pod++);
	if (engine_place(w->engine, &(struct pod_spec){ .uid = uid, .name = uid }, &r, &d, &pod) <
	    0)
		broken(w, "a decision could not be booked");
	if (vec_push(&w->pods, pod) < 0)
		broken(w, "out of memory");
}

static void finish(struct world *w)
{
	uint32_t i;

	if (!w->pods.len)
		return;
	i = rng_below(&w->rng, (uint32_t)w->pods.len);
	engine_remove(w->engine, w->pods.items[i]);
	w->pods.items[i] = w->pods.items[--w->pods.len];
}

/* Places and removes a lot, then takes it all back. */
static void plan_and_undo(struct world *w)
{
	uint64_t before = cluster_digest(w->cluster);
	struct plan *p = plan_begin(w->engine);

	for (uint32_t i = 0; i < 12; i++) {
		struct request r;
		struct decision d;
		char uid[32];
		uint32_t pod;

		if (w->pods.len && rng_chance(&w->rng, 1, 3)) {
			pod = w->pods.items[rng_below(&w->rng, (uint32_t)w->pods.len)];
			if (cluster_pod(w->cluster, pod) && plan_remove(p, pod) < 0)
				broken(w, "plan_remove");
			continue;
		}
		random_request(w->cluster, &w->rng, &r);
		snprintf(uid, sizeof(uid), "plan-%u", i);
		if (engine_decide(w->engine, &r, &d) == FITS &&
		    plan_place(p, &(struct pod_spec){ .uid = uid, .name = uid }, &r, &d, &pod) < 0)
			broken(w, "plan_place");
	}
	plan_rollback(p);
	if (cluster_digest(w->cluster) != before)
		broken(w, "rollback left something behind");
	for (size_t i = 0; i < w->pods.len; i++)
		if (!cluster_pod(w->cluster, w->pods.items[i]))
			broken(w, "rollback changed a pod's number");
}

static void flip_health(struct world *w)
{
	uint32_t node = any_node(w);
	const struct node *n;
	uint8_t gpu;

	if (node == NODE_NONE)
		return;
	n = cluster_node(w->cluster, node);
	gpu = (uint8_t)rng_below(&w->rng, n->gpus_count);
	cluster_gpu_health(w->cluster, node, gpu, !n->gpus[gpu].healthy);
}

/* Pods of a kind that was decided on before. */
static void decide_again(struct world *w, const struct request *requests, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct decision d;

		check_decision(w, &requests[i], engine_decide(w->engine, &requests[i], &d), &d);
	}
}

/* Other weights, limits, policy and memory: nothing of the cluster may change. */
static void configure(struct world *w)
{
	struct request known[4];
	static const struct policy *const policies[] = { &policy_default, &policy_binpack,
							 &policy_spread };
	struct engine_config config = {
		.cluster = { .seats = (uint16_t)rng_below(&w->rng, 4) },
		.policy = policies[rng_below(&w->rng, 3)],
		.weights = { rng_below(&w->rng, 5), rng_below(&w->rng, 5), rng_below(&w->rng, 5),
			     rng_below(&w->rng, 5) },
		.max_nodes_per_leaf = rng_below(&w->rng, 4),
		.index_bytes = rng_chance(&w->rng, 1, 4), /* hardly any, or the default */
	};
	uint64_t before = cluster_digest(w->cluster);

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		random_request(w->cluster, &w->rng, &known[i]);
		known[i].node = NODE_NONE;
	}
	decide_again(w, known, ARRAY_SIZE(known));
	if (engine_configure(w->engine, &config) < 0)
		broken(w, "engine_configure");
	if (cluster_digest(w->cluster) != before)
		broken(w, "a configuration has changed the cluster");
	decide_again(w, known, ARRAY_SIZE(known));
}

static void step(struct world *w)
{
	uint32_t dice = rng_below(&w->rng, 100);
	uint32_t node;

	if (w->reconfigured && rng_chance(&w->rng, 1, 12))
		configure(w);
	if (dice < 60)
		submit(w);
	else if (dice < 80)
		finish(w);
	else if (dice < 85)
		node_add(w);
	else if (dice < 90)
		node_change(w);
	else if (dice < 94)
		flip_health(w);
	else if (dice < 96)
		plan_and_undo(w);
	else if ((node = any_node(w)) != NODE_NONE)
		cluster_node_remove(w->cluster, node);
	forget_gone(w);
}

/* The digest after a whole run. */
static uint64_t run_world(uint64_t seed, const struct policy *policy, uint64_t index_bytes,
			  bool reconfigured)
{
	struct engine_config config = {
		.cluster = { .seats = (uint16_t)(seed % 4) }, /* 0: the default */
		.policy = policy,
		.seed = seed,
		.index_bytes = index_bytes,
	};
	struct world w = { .seed = seed, .reconfigured = reconfigured };
	uint64_t digest;

	rng_seed(&w.rng, seed);
	w.engine = engine_new(&config);
	CHECK(w.engine != NULL);
	w.cluster = engine_cluster(w.engine);
	for (uint32_t i = 0; i < 6; i++)
		node_add(&w);
	for (uint32_t i = 0; i < STEPS; i++) {
		const char *wrong;

		step(&w);
		wrong = cluster_check(w.cluster);
		if (wrong)
			broken(&w, wrong);
	}
	digest = cluster_digest(w.cluster);
	vec_done(&w.pods);
	engine_free(w.engine);
	random_links_free();
	return digest;
}

static uint64_t run(uint64_t seed, const struct policy *policy, uint64_t index_bytes)
{
	return run_world(seed, policy, index_bytes, false);
}

TEST(the_incremental_answer_is_the_one_computed_afresh_under_every_policy)
{
	const struct policy *policy;

	for (size_t i = 0; (policy = policy_at(i)); i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++)
			run(seed, policy, 0);
}

TEST(it_still_is_while_weights_limits_and_policies_change)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run_world(seed, &policy_default, 0, true);
}

TEST(an_index_with_hardly_any_memory_decides_the_same)
{
	for (uint64_t seed = 100; seed < 104; seed++)
		CHECK(run(seed, &policy_default, 1) == run(seed, &policy_default, 0));
}

TEST(the_same_seed_gives_the_same_cluster)
{
	for (uint64_t seed = 200; seed < 204; seed++)
		CHECK(run(seed, &policy_default, 0) == run(seed, &policy_default, 0));
}

TEST_MAIN()
