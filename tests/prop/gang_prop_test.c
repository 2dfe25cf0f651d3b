/* SPDX-License-Identifier: Apache-2.0 */
/* Gangs on random fabrics of at most 12 leaves, against answers by brute force. */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/rng.h"
#include "engine/gang.h"

#define SEEDS	    150
#define STEPS	    25
#define SPINES_MAX  4
#define LEAVES_MAX  12 /* in all */
#define NODES_MAX   6  /* of a leaf */
#define GPUS	    8
#define MEMBERS_MAX 64

struct world {
	uint64_t seed;
	struct rng rng;
	struct engine *engine;
	struct cluster *cluster;
	struct gang_planner *planner;
	struct gang_result result, again;
	uint32_t max_nodes, max_gpus;
	bool zone;		 /* one more level, around all spines */
	uint32_t spines, leaves; /* leaves in all */
	uint32_t leaf_spine[LEAVES_MAX], leaf_domain[LEAVES_MAX];
	uint32_t pods_made;
	char uids[MEMBERS_MAX][24];
	struct pod_spec pods[MEMBERS_MAX];
};

static void world_done(struct world *w)
{
	plan_rollback(w->result.plan);
	plan_rollback(w->again.plan);
	gang_result_done(&w->result);
	gang_result_done(&w->again);
	gang_planner_free(w->planner);
	engine_free(w->engine);
}

static void node_add(struct world *w, uint32_t spine, uint32_t leaf, uint32_t n)
{
	char names[3][32], uuids[GPUS][48];
	const char *path[] = { "zone", names[0], names[1] };
	struct gpu_spec gpus[GPUS];
	struct node_spec spec = {
		.name = names[2],
		.allocatable = { 64000, INT64_C(1) << 40, INT64_C(1) << 40, 110 },
		.gpus = gpus,
		.gpus_count = GPUS,
		.domains = w->zone ? path : path + 1,
		.domains_count = w->zone ? 3 : 2,
	};
	uint32_t node;

	snprintf(names[0], sizeof(names[0]), "spine-%u", spine);
	snprintf(names[1], sizeof(names[1]), "leaf-%u", leaf);
	snprintf(names[2], sizeof(names[2]), "node-%u-%u", leaf, n);
	for (uint32_t i = 0; i < GPUS; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "%s-gpu-%u", names[2], i);
		gpus[i] = (struct gpu_spec){ .uuid = uuids[i], .model = "H100", .mem_mib = 81920 };
	}
	CHECK(cluster_node_add(w->cluster, &spec, &node, NULL) == 0);
	w->leaf_domain[leaf] = cluster_node(w->cluster, node)->domain;
}

static void world_init(struct world *w, uint64_t seed, bool limits)
{
	struct engine_config config = { 0 };

	memset(w, 0, sizeof(*w));
	w->seed = seed;
	rng_seed(&w->rng, seed);
	if (limits && rng_chance(&w->rng, 1, 3))
		w->max_nodes = config.max_nodes_per_leaf = 1 + rng_below(&w->rng, 4);
	if (limits && rng_chance(&w->rng, 1, 4))
		w->max_gpus = config.max_gpus_per_leaf = 8 + rng_below(&w->rng, 24);
	w->zone = rng_chance(&w->rng, 1, 3);
	w->engine = engine_new(&config);
	CHECK(w->engine != NULL);
	w->cluster = engine_cluster(w->engine);
	w->planner = gang_planner_new(w->engine);
	CHECK(w->planner != NULL);
	w->spines = 1 + rng_below(&w->rng, SPINES_MAX);
	w->leaves = w->spines + rng_below(&w->rng, LEAVES_MAX - w->spines + 1);
	for (uint32_t l = 0; l < w->leaves; l++) {
		uint32_t nodes = 1 + rng_below(&w->rng, NODES_MAX);

		w->leaf_spine[l] = l < w->spines ? l : rng_below(&w->rng, w->spines);
		for (uint32_t n = 0; n < nodes; n++)
			node_add(w, w->leaf_spine[l], l, n);
	}
}

/* Some GPUs of some nodes are taken, more or less of them from world to world. */
static void occupy(struct world *w)
{
	uint32_t percent = rng_below(&w->rng, 90);

	for (uint32_t node = 0; node < cluster_nodes_end(w->cluster); node++) {
		char uid[32];
		struct pod_spec pod = { .uid = uid };
		struct decision d = { .node = node };
		struct request r;
		uint32_t number;

		if (!rng_chance(&w->rng, percent, 100))
			continue;
		request_init(&r);
		request_add_ask(&r, ASK_WHOLE, (uint8_t)(1 + rng_below(&w->rng, GPUS)));
		snprintf(uid, sizeof(uid), "filler-%u", w->pods_made++);
		if (assign_node(w->cluster, NULL, &r, node, &d.assignment) == FITS)
			CHECK(engine_place(w->engine, &pod, &r, &d, &number) == 0);
	}
}

static void free_some(struct world *w)
{
	for (uint32_t pod = 0; pod < cluster_pods_end(w->cluster); pod++)
		if (cluster_pod(w->cluster, pod) && rng_chance(&w->rng, 1, 3))
			engine_remove(w->engine, pod);
}

/* What brute force knows of the fabric, for members of `gpus` GPUs. */
struct truth {
	uint32_t room[LEAVES_MAX], empty[LEAVES_MAX];
	uint32_t fewest[LEAVES_MAX]; /* nodes that hold the gang in this leaf alone, 0: not */
	uint32_t total;
};

static uint32_t bounded(const struct world *w, uint32_t *rooms, uint32_t count, uint32_t gpus,
			uint32_t need, uint32_t *fewest)
{
	uint32_t most = w->max_gpus ? w->max_gpus / gpus : UINT32_MAX, sum = 0;

	*fewest = 0;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = i + 1; j < count; j++)
			if (rooms[j] > rooms[i]) {
				uint32_t swap = rooms[i];

				rooms[i] = rooms[j];
				rooms[j] = swap;
			}
	for (uint32_t i = 0; i < count && (!w->max_nodes || i < w->max_nodes); i++) {
		sum = MIN(sum + rooms[i], most);
		if (sum >= need && !*fewest)
			*fewest = i + 1;
	}
	return sum;
}

static struct truth truth_of(const struct world *w, uint32_t gpus, uint32_t need)
{
	struct truth t = { 0 };

	for (uint32_t l = 0; l < w->leaves; l++) {
		uint32_t rooms[NODES_MAX], empty[NODES_MAX], count = 0, unused;

		for (uint32_t node = 0; node < cluster_nodes_end(w->cluster); node++) {
			const struct node *n = cluster_node(w->cluster, node);

			if (n->domain != w->leaf_domain[l])
				continue;
			rooms[count] = gpuset_count(n->idle) / gpus;
			empty[count++] = GPUS / gpus;
		}
		t.room[l] = bounded(w, rooms, count, gpus, need, &t.fewest[l]);
		t.empty[l] = bounded(w, empty, count, gpus, need, &unused);
		t.total += t.room[l];
	}
	return t;
}

/* The shortest run of entries, none of them 0, with that sum; 0: there is none. */
static uint32_t shortest_run(const uint32_t *rooms, uint32_t count, uint32_t need)
{
	for (uint32_t length = 1; length <= count; length++)
		for (uint32_t start = 0; start + length <= count; start++) {
			uint32_t sum = 0, gaps = 0;

			for (uint32_t i = start; i < start + length; i++) {
				sum += rooms[i];
				gaps += !rooms[i];
			}
			if (sum >= need && !gaps)
				return length;
		}
	return 0;
}

/* The fewest entries, anywhere, with that sum: all subsets are tried. */
static uint32_t smallest_subset(const uint32_t *rooms, uint32_t count, uint32_t need)
{
	uint32_t best = 0;

	for (uint32_t set = 1; set < 1u << count; set++) {
		uint32_t sum = 0, size = gpuset_count(set);

		for (uint32_t i = 0; i < count; i++)
			sum += set >> i & 1 ? rooms[i] : 0;
		if (sum >= need && (!best || size < best))
			best = size;
	}
	return best;
}

/* The leaves of a spine in the order of their names, or for spine UINT32_MAX the spines. */
static uint32_t family(const struct world *w, const uint32_t *rooms, uint32_t spine, uint32_t *ret)
{
	uint32_t count = 0;

	if (spine == UINT32_MAX) {
		memset(ret, 0, w->spines * sizeof(*ret));
		for (uint32_t l = 0; l < w->leaves; l++)
			ret[w->leaf_spine[l]] += rooms[l];
		return w->spines;
	}
	for (uint32_t l = 0; l < w->leaves; l++)
		if (w->leaf_spine[l] == spine)
			ret[count++] = rooms[l];
	return count;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return !a ? b : !b ? a : MIN(a, b);
}

struct expected {
	bool placed;
	uint32_t leaves; /* 0: not said */
	bool adjacent, below_spine;
	uint32_t spines; /* 0: not said */
	uint32_t nodes;	 /* 0: not said */
};

static struct expected expect_preferred(const struct world *w, const struct truth *t,
					uint32_t need)
{
	struct expected e = { .placed = t->total >= need };
	uint32_t rooms[LEAVES_MAX], count, run = 0, any = 0;

	for (uint32_t s = 0; s < w->spines; s++) {
		count = family(w, t->room, s, rooms);
		run = least(run, shortest_run(rooms, count, need));
		any = least(any, smallest_subset(rooms, count, need));
	}
	count = family(w, t->room, UINT32_MAX, rooms);
	e.adjacent = run > 0;
	e.below_spine = run || any;
	e.leaves = run ? run : any;
	if (run == 1)
		for (uint32_t l = 0; l < w->leaves; l++)
			e.nodes = least(e.nodes, t->fewest[l]);
	if (e.placed && !e.below_spine)
		e.spines = least(shortest_run(rooms, count, need), 0);
	if (e.placed && !e.below_spine && !e.spines)
		e.spines = smallest_subset(rooms, count, need);
	return e;
}

static struct expected expect_required(const struct world *w, const struct truth *t, uint32_t need)
{
	struct expected e = { .adjacent = true, .below_spine = true };
	bool holds = false;

	for (uint32_t s = 0; s <= w->spines; s++) {
		uint32_t spine = s == w->spines ? UINT32_MAX : s, total = 0, run, ideal;
		uint32_t rooms[LEAVES_MAX], empty[LEAVES_MAX];
		uint32_t count = family(w, t->room, spine, rooms);

		if (spine == UINT32_MAX && holds)
			break;
		family(w, t->empty, spine, empty);
		for (uint32_t i = 0; i < count; i++)
			total += empty[i];
		holds |= total >= need;
		run = shortest_run(rooms, count, need);
		ideal = shortest_run(empty, count, need);
		if (!run || run > ideal)
			continue;
		if (spine == UINT32_MAX)
			e = (struct expected){ .placed = true, .spines = run };
		else
			e.leaves = least(e.leaves, run);
		e.placed = true;
	}
	return e;
}

static uint32_t members_in(const struct world *w, uint32_t leaf)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < w->result.members_count; i++) {
		uint32_t node = w->result.members[i].decision.node;

		count += cluster_node(w->cluster, node)->domain == w->leaf_domain[leaf];
	}
	return count;
}

/* What one gang takes of a leaf stays within the limits, whatever else holds. */
static void check_limits(const struct world *w, uint32_t gpus, const struct truth *t)
{
	for (uint32_t l = 0; l < w->leaves; l++)
		CHECKF(members_in(w, l) <= t->room[l], "seed %" PRIu64 " leaf %u gpus %u", w->seed,
		       l, gpus);
}

/* Leaves differ by one member at most, but for those that are full. */
static void check_even(const struct world *w, const struct truth *t)
{
	for (uint32_t a = 0; a < w->leaves; a++)
		for (uint32_t b = 0; b < w->leaves; b++) {
			uint32_t x = members_in(w, a), y = members_in(w, b);

			if (x && y && y < t->room[b])
				CHECKF(x <= y + 1, "seed %" PRIu64, w->seed);
		}
}

static uint32_t spines_used(const struct world *w)
{
	uint32_t set = 0;

	for (uint32_t l = 0; l < w->leaves; l++)
		if (members_in(w, l))
			set |= 1u << w->leaf_spine[l];
	return gpuset_count(set);
}

static void check_answer(const struct world *w, const struct expected *e)
{
	const struct gang_result *ret = &w->result;

	CHECKF(ret->placed == e->placed, "seed %" PRIu64 ": %s", w->seed, ret->reason);
	if (!ret->placed)
		return;
	if (e->leaves)
		CHECKF(ret->leaves_count == e->leaves, "seed %" PRIu64 ": %u leaves, not %u",
		       w->seed, ret->leaves_count, e->leaves);
	if (e->adjacent)
		CHECKF(ret->adjacent, "seed %" PRIu64, w->seed);
	if (e->below_spine)
		CHECKF(spines_used(w) == 1, "seed %" PRIu64, w->seed);
	if (e->spines)
		CHECKF(spines_used(w) == e->spines, "seed %" PRIu64 ": %u spines, not %u", w->seed,
		       spines_used(w), e->spines);
	if (e->nodes)
		CHECKF(ret->nodes_count == e->nodes, "seed %" PRIu64 ": %u nodes, not %u", w->seed,
		       ret->nodes_count, e->nodes);
}

static void name_pods(struct world *w)
{
	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		snprintf(w->uids[i], sizeof(w->uids[i]), "pod-%u", w->pods_made++);
		w->pods[i] = (struct pod_spec){ .uid = w->uids[i] };
	}
}

/* Twice the same, with all undone in between. */
static void plan_twice(struct world *w, const struct gang_spec *spec)
{
	uint64_t before = cluster_digest(w->cluster);
	struct err err = ERR_INIT;

	CHECKF(gang_plan(w->planner, spec, &w->again, &err) == 0, "%s", err.text);
	plan_rollback(w->again.plan);
	w->again.plan = NULL;
	CHECKF(cluster_digest(w->cluster) == before, "seed %" PRIu64, w->seed);
	CHECKF(gang_plan(w->planner, spec, &w->result, &err) == 0, "%s", err.text);
	CHECKF(w->result.placed == w->again.placed, "seed %" PRIu64, w->seed);
	CHECKF(w->result.placed || cluster_digest(w->cluster) == before, "seed %" PRIu64, w->seed);
	CHECKF(w->result.placed == !w->result.reason[0], "seed %" PRIu64, w->seed);
	for (uint32_t i = 0; i < w->result.members_count; i++)
		CHECKF(memcmp(&w->result.members[i].decision.assignment.gpus,
			      &w->again.members[i].decision.assignment.gpus,
			      sizeof(uint32_t)) == 0 &&
			       w->result.members[i].decision.node ==
				       w->again.members[i].decision.node,
		       "seed %" PRIu64, w->seed);
	CHECKF(cluster_check(w->cluster) == NULL, "seed %" PRIu64 ": %s", w->seed,
	       cluster_check(w->cluster));
}

static void finish(struct world *w)
{
	if (rng_chance(&w->rng, 1, 2)) {
		plan_commit(w->result.plan);
	} else {
		plan_rollback(w->result.plan);
	}
	w->result.plan = NULL;
	if (rng_chance(&w->rng, 1, 3))
		free_some(w);
}

static void step(struct world *w)
{
	static const uint8_t sizes[] = { 1, 2, 3, 4, 8, 8 };
	uint32_t gpus = sizes[rng_below(&w->rng, ARRAY_SIZE(sizes))];
	uint32_t need = 1 + rng_below(&w->rng, gpus == 8 ? 24 : MEMBERS_MAX);
	struct request r;
	struct gang_class class = { &r, w->pods, need };
	struct gang_spec spec = {
		.classes = &class,
		.classes_count = 1,
		.strategy = (uint8_t)rng_below(&w->rng, 3),
		.leaf_rules = (uint8_t)rng_below(&w->rng, 2),
	};
	struct truth t = truth_of(w, gpus, need);
	struct expected e = spec.leaf_rules == GANG_REQUIRED ? expect_required(w, &t, need)
							     : expect_preferred(w, &t, need);

	request_init(&r);
	request_add_ask(&r, ASK_WHOLE, (uint8_t)gpus);
	name_pods(w);
	if (spec.strategy == STRATEGY_DISTRIBUTED) {
		e = (struct expected){ .placed = t.total >= need };
		for (uint32_t l = 0; l < w->leaves; l++)
			e.leaves += t.room[l] > 0;
		e.leaves = MIN(e.leaves, need);
	} else if (spec.strategy == STRATEGY_BALANCED) {
		e.nodes = 0;
	}
	plan_twice(w, &spec);
	check_answer(w, &e);
	check_limits(w, gpus, &t);
	if (spec.strategy != STRATEGY_CONSOLIDATED)
		check_even(w, &t);
	finish(w);
}

TEST(leaves_are_as_few_as_brute_force_finds)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world w CLEANUP(world_done);

		world_init(&w, seed, true);
		occupy(&w);
		for (uint32_t i = 0; i < STEPS; i++)
			step(&w);
	}
}

/* Members of the class that fit, one after the other, onto any node. */
static bool greedy_fits(struct world *w, const struct request *r, uint32_t need)
{
	struct plan *plan = plan_begin(w->engine);
	uint32_t placed = 0;

	CHECK(plan != NULL);
	for (uint32_t node = 0; node < cluster_nodes_end(w->cluster) && placed < need; node++) {
		struct decision d = { .node = node };
		uint32_t number;

		while (placed < need &&
		       assign_node(w->cluster, NULL, r, node, &d.assignment) == FITS)
			CHECK(plan_place(plan, &w->pods[placed++], r, &d, &number) == 0);
	}
	plan_rollback(plan);
	return placed == need;
}

TEST(gangs_of_shares_are_placed_exactly_if_there_is_room)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world w CLEANUP(world_done);

		world_init(&w, seed, false);
		occupy(&w);
		for (uint32_t i = 0; i < STEPS; i++) {
			uint32_t need = 1 + rng_below(&w.rng, MEMBERS_MAX);
			struct request r;
			struct gang_class class = { &r, w.pods, need };
			struct gang_spec spec = { .classes = &class,
						  .classes_count = 1,
						  .strategy = (uint8_t)rng_below(&w.rng, 3) };
			struct ask *ask;
			bool fits;

			request_init(&r);
			ask = request_add_ask(&r, ASK_SHARE, (uint8_t)(1 + rng_below(&w.rng, 2)));
			ask->core_milli = (uint16_t)(100 + 50 * rng_below(&w.rng, 17));
			ask->mem_mib = rng_below(&w.rng, 60000);
			r.needs.cpu_milli = rng_below(&w.rng, 12000);
			name_pods(&w);
			fits = greedy_fits(&w, &r, need);
			plan_twice(&w, &spec);
			CHECKF(w.result.placed == fits, "seed %" PRIu64 ": %s", seed,
			       w.result.reason);
			finish(&w);
		}
	}
}

TEST(gangs_of_several_classes_are_whole_or_leave_no_trace)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world w CLEANUP(world_done);

		world_init(&w, seed, true);
		occupy(&w);
		for (uint32_t i = 0; i < STEPS; i++) {
			struct request r[3];
			struct gang_class classes[3];
			struct gang_spec spec = {
				.classes = classes,
				.classes_count = 1 + rng_below(&w.rng, 3),
				.strategy = (uint8_t)rng_below(&w.rng, 3),
				.leaf_rules = (uint8_t)rng_below(&w.rng, 2),
				.latency_sensitive = (uint8_t)rng_below(&w.rng, 2),
				.level = (uint8_t)rng_below(&w.rng, 4),
				.level_mode = (uint8_t)rng_below(&w.rng, 2),
			};
			uint32_t all = 0;

			for (uint32_t k = 0; k < spec.classes_count; k++) {
				uint8_t gpus = (uint8_t)rng_below(&w.rng, 9);

				request_init(&r[k]);
				if (gpus)
					request_add_ask(&r[k], ASK_WHOLE, gpus);
				r[k].needs.cpu_milli = rng_below(&w.rng, 20000);
				classes[k] = (struct gang_class){ &r[k], w.pods + all,
								  1 + rng_below(&w.rng, 8) };
				all += classes[k].count;
			}
			name_pods(&w);
			plan_twice(&w, &spec);
			CHECK(!w.result.placed || w.result.members_count == all);
			if (w.result.placed && spec.level_mode == GANG_REQUIRED)
				CHECKF(cluster_domain(w.cluster, w.result.common)->level >=
					       spec.level,
				       "seed %" PRIu64, seed);
			finish(&w);
		}
	}
}

TEST_MAIN()
