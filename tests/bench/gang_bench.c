/* SPDX-License-Identifier: Apache-2.0 */
/* gang_bench.c - gangs of whole nodes over 4,096 nodes, empty and half full.
 *
 * Leaves of 16 nodes, spines of 16 leaves, 8 GPUs a node.  One call is gang_plan() with
 * its placements; the rollback is not counted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/rng.h"
#include "engine/gang.h"
#include "engine/links.h"
#include "engine/machine.h"

#define LEAVES	     16 /* of a spine */
#define NODES	     16 /* of a leaf */
#define GPUS	     8
#define MEMBERS_MAX  512
#define CALLS	     101
#define FILL_UID_MAX 48

struct fleet {
	struct engine *engine;
	struct links *links;
	struct gang_planner *planner;
	struct gang_result result;
	struct pod_spec pods[MEMBERS_MAX];
	char uids[MEMBERS_MAX][24];
	struct rng rng;
	uint32_t fillers;
};

struct timing {
	double p50_ms, max_ms;
	uint32_t placed, leaves;
};

static void die(const char *what)
{
	fprintf(stderr, "gang_bench: %s\n", what);
	exit(1);
}

static void node_add(struct fleet *f, uint32_t number)
{
	char spine[24], leaf[24], name[24], uuids[GPUS][40];
	const char *path[] = { spine, leaf };
	struct gpu_spec gpus[GPUS];
	struct node_spec spec = {
		.name = name,
		.allocatable = { 128000, INT64_C(2) << 40, INT64_C(1) << 40, 110 },
		.gpus = gpus,
		.gpus_count = GPUS,
		.links = f->links,
		.domains = path,
		.domains_count = 2,
	};
	uint32_t node;

	snprintf(spine, sizeof(spine), "spine-%u", number / (LEAVES * NODES));
	snprintf(leaf, sizeof(leaf), "leaf-%u", number / NODES);
	snprintf(name, sizeof(name), "node-%05u", number);
	for (uint32_t i = 0; i < GPUS; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%05u-%u", number, i);
		gpus[i] = (struct gpu_spec){ .uuid = uuids[i], .model = "H100", .mem_mib = 81920 };
	}
	if (cluster_node_add(engine_cluster(f->engine), &spec, &node, NULL) < 0)
		die("cannot add a node");
}

static void fleet_init(struct fleet *f, uint32_t nodes)
{
	struct engine_config config = { .seed = 1 };

	memset(f, 0, sizeof(*f));
	rng_seed(&f->rng, 7);
	f->engine = engine_new(&config);
	if (!f->engine || machine_links(machine_find("dgx-h100"), &f->links, NULL) < 0)
		die("out of memory");
	f->planner = gang_planner_new(f->engine);
	for (uint32_t i = 0; i < nodes; i++)
		node_add(f, i);
	for (uint32_t i = 0; i < MEMBERS_MAX; i++) {
		snprintf(f->uids[i], sizeof(f->uids[i]), "member-%u", i);
		f->pods[i].uid = f->pods[i].name = f->uids[i];
	}
}

static void fleet_done(struct fleet *f)
{
	gang_result_done(&f->result);
	gang_planner_free(f->planner);
	engine_free(f->engine);
	links_free(f->links);
}

/* One pod of that many GPUs on the node, if it fits. */
static void occupy(struct fleet *f, uint32_t node, uint8_t gpus)
{
	char uid[FILL_UID_MAX];
	struct pod_spec pod = { .uid = uid };
	struct request r;
	struct parts parts;
	struct decision d;
	uint32_t number;

	snprintf(uid, sizeof(uid), "filler-%u", f->fillers++);
	request_init(&r);
	request_add_ask(&r, ASK_WHOLE, gpus);
	if (engine_score(f->engine, &r, node, &d, &parts) != FITS)
		return;
	d.node = node;
	if (engine_place(f->engine, &pod, &r, &d, &number) < 0)
		die("cannot occupy a node");
}

/* Every other node, at random, has some of its GPUs or all of them taken. */
static void fill_half(struct fleet *f)
{
	static const uint8_t sizes[] = { 1, 2, 4, 8, 8, 8 };

	for (uint32_t i = 0; i < cluster_nodes_end(engine_cluster(f->engine)); i++)
		if (rng_chance(&f->rng, 1, 2))
			occupy(f, i, sizes[rng_below(&f->rng, ARRAY_SIZE(sizes))]);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static struct timing measure(struct fleet *f, const struct gang_spec *spec)
{
	struct timing timing = { 0 };
	double ms[CALLS];

	for (uint32_t i = 0; i < CALLS; i++) {
		uint64_t from = clock_monotonic_ns(&clock_system);

		if (gang_plan(f->planner, spec, &f->result, NULL) < 0)
			die("gang_plan failed");
		ms[i] = (double)(clock_monotonic_ns(&clock_system) - from) / 1e6;
		timing.placed += f->result.placed;
		timing.leaves = f->result.leaves_count;
		plan_rollback(f->result.plan);
	}
	qsort(ms, CALLS, sizeof(*ms), by_value);
	timing.p50_ms = ms[CALLS / 2];
	timing.max_ms = ms[CALLS - 1];
	return timing;
}

static void report(const char *state, const char *what, const struct timing *t)
{
	printf("%-8s %-30s %8.3f %8.3f %7u %7u%%\n", state, what, t->p50_ms, t->max_ms, t->leaves,
	       t->placed * 100 / CALLS);
}

static void bench(struct fleet *f, const char *state)
{
	static const struct {
		const char *name;
		uint32_t members;
		uint8_t gpus, strategy, leaf_rules;
	} rows[] = {
		{ "512 x 8 GPUs", 512, 8, STRATEGY_CONSOLIDATED, GANG_PREFERRED },
		{ "512 x 8 GPUs, distributed", 512, 8, STRATEGY_DISTRIBUTED, GANG_PREFERRED },
		{ "512 x 8 GPUs, required", 512, 8, STRATEGY_CONSOLIDATED, GANG_REQUIRED },
		{ "512 x 1 GPU", 512, 1, STRATEGY_CONSOLIDATED, GANG_PREFERRED },
		{ "16 x 8 GPUs", 16, 8, STRATEGY_CONSOLIDATED, GANG_PREFERRED },
		{ "16 x 8 GPUs, required", 16, 8, STRATEGY_CONSOLIDATED, GANG_REQUIRED },
		{ "2 x 8 GPUs", 2, 8, STRATEGY_CONSOLIDATED, GANG_REQUIRED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request r;
		struct gang_class class = { &r, f->pods, rows[i].members };
		struct gang_spec spec = {
			.classes = &class,
			.classes_count = 1,
			.strategy = rows[i].strategy,
			.leaf_rules = rows[i].leaf_rules,
		};
		struct timing timing;

		request_init(&r);
		r.needs.cpu_milli = 1000;
		request_add_ask(&r, ASK_WHOLE, rows[i].gpus);
		timing = measure(f, &spec);
		report(state, rows[i].name, &timing);
	}
}

int main(int argc, char **argv)
{
	uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 4096;
	static struct fleet fleet;

	if (!nodes || nodes > 1000000)
		die("usage: gang_bench [NODES], 1 to 1000000");
	printf("gangs over %u nodes\n%-8s %-30s %8s %8s %7s %8s\n", nodes, "cluster", "gang",
	       "p50 ms", "max ms", "leaves", "placed");
	fleet_init(&fleet, nodes);
	bench(&fleet, "empty");
	fill_half(&fleet);
	bench(&fleet, "half");
	fleet_done(&fleet);
	return 0;
}
