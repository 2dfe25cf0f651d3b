/* SPDX-License-Identifier: Apache-2.0 */
/* gang_fabric.h - a small fabric and gangs on it, for the tests of gangs. */
#ifndef GS_TESTS_UNIT_GANG_FABRIC_H
#define GS_TESTS_UNIT_GANG_FABRIC_H

#include "test.h"

#include <errno.h>

#include "base/attr.h"
#include "base/err.h"
#include "engine/gang.h"

#define GPUS	 8
#define GANG_MAX 64

struct fabric {
	struct engine *engine;
	struct cluster *cluster;
	struct gang_planner *planner;
	struct gang_result result;
	struct request request;
	struct pod_spec pods[GANG_MAX];
	char uids[GANG_MAX][32];
	uint32_t fillers;
};

static inline void fabric_done(struct fabric *f)
{
	plan_rollback(f->result.plan);
	gang_result_done(&f->result);
	gang_planner_free(f->planner);
	engine_free(f->engine);
}

static inline void add_node(struct fabric *f, const char *name, const char *const *path,
			    uint32_t depth)
{
	char uuids[GPUS][48];
	struct gpu_spec gpus[GPUS];
	struct node_spec spec = {
		.name = name,
		.allocatable = { 64000, INT64_C(1) << 40, INT64_C(1) << 40, 110 },
		.gpus = gpus,
		.gpus_count = GPUS,
		.domains = path,
		.domains_count = depth,
	};
	uint32_t node;

	for (uint32_t i = 0; i < GPUS; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%s-%u", name, i);
		gpus[i] = (struct gpu_spec){ .uuid = uuids[i], .model = "H100", .mem_mib = 81920 };
	}
	CHECK(cluster_node_add(f->cluster, &spec, &node, NULL) == 0);
}

struct shape {
	uint32_t spines;
	uint32_t leaves; /* of a spine */
	uint32_t nodes;	 /* of a leaf */
	uint32_t max_nodes_per_leaf, max_gpus_per_leaf;
};

/* Spines s1, s2 ..., each with leaves l1, l2 ..., each with nodes s1-l1-n1 ... */
static inline struct fabric fabric_new(struct shape shape)
{
	struct engine_config config = {
		.max_nodes_per_leaf = shape.max_nodes_per_leaf,
		.max_gpus_per_leaf = shape.max_gpus_per_leaf,
	};
	struct fabric f = { 0 };

	f.engine = engine_new(&config);
	CHECK(f.engine != NULL);
	f.cluster = engine_cluster(f.engine);
	f.planner = gang_planner_new(f.engine);
	CHECK(f.planner != NULL);
	for (uint32_t s = 1; s <= shape.spines; s++)
		for (uint32_t l = 1; l <= shape.leaves; l++)
			for (uint32_t n = 1; n <= shape.nodes; n++) {
				char spine[16], leaf[16], name[32];
				const char *path[] = { spine, leaf };

				snprintf(spine, sizeof(spine), "s%u", s);
				snprintf(leaf, sizeof(leaf), "l%u", l);
				snprintf(name, sizeof(name), "s%u-l%u-n%u", s, l, n);
				add_node(&f, name, path, 2);
			}
	request_init(&f.request);
	request_add_ask(&f.request, ASK_WHOLE, GPUS);
	return f;
}

/* The uids point into the fabric: set once it lies where it stays. */
static inline void name_pods(struct fabric *f)
{
	for (uint32_t i = 0; i < GANG_MAX; i++) {
		snprintf(f->uids[i], sizeof(f->uids[i]), "member-%u", i);
		f->pods[i] = (struct pod_spec){ .uid = f->uids[i], .name = f->uids[i] };
	}
}

static inline uint32_t node_named(const struct fabric *f, const char *name)
{
	uint32_t node = cluster_node_find(f->cluster, name);

	CHECKF(node != NODE_NONE, "%s", name);
	return node;
}

static inline void rollback(struct fabric *f)
{
	plan_rollback(f->result.plan);
	f->result.plan = NULL;
}

/* Takes some GPUs of a node; a gang that was only planned is gone. */
static inline void occupy(struct fabric *f, const char *name, uint8_t gpus)
{
	struct request r;
	struct decision d;
	struct parts parts;
	char uid[32];
	struct pod_spec pod = { .uid = uid };
	uint32_t number, node = node_named(f, name);

	rollback(f);
	snprintf(uid, sizeof(uid), "filler-%u", f->fillers++);
	request_init(&r);
	request_add_ask(&r, ASK_WHOLE, gpus);
	CHECK(engine_score(f->engine, &r, node, &d, &parts) == FITS);
	d.node = node;
	CHECK(engine_place(f->engine, &pod, &r, &d, &number) == 0);
}

static inline void occupy_leaf(struct fabric *f, uint32_t spine, uint32_t leaf, uint32_t nodes)
{
	for (uint32_t n = 1; n <= nodes; n++) {
		char name[32];

		snprintf(name, sizeof(name), "s%u-l%u-n%u", spine, leaf, n);
		occupy(f, name, GPUS);
	}
}

struct rules {
	uint32_t count; /* members */
	enum strategy strategy;
	enum gang_mode leaf_rules;
	bool latency_sensitive;
	uint8_t level;
	enum gang_mode level_mode;
};

static inline bool plan_gang(struct fabric *f, struct rules rules)
{
	struct gang_class class = { &f->request, f->pods, rules.count };
	struct gang_spec spec = {
		.classes = &class,
		.classes_count = 1,
		.strategy = (uint8_t)rules.strategy,
		.leaf_rules = (uint8_t)rules.leaf_rules,
		.latency_sensitive = rules.latency_sensitive,
		.level = rules.level,
		.level_mode = (uint8_t)rules.level_mode,
	};
	struct err err = ERR_INIT;
	uint64_t before;

	name_pods(f);
	rollback(f);
	before = cluster_digest(f->cluster);
	CHECKF(gang_plan(f->planner, &spec, &f->result, &err) == 0, "%s", err.text);
	CHECK(f->result.placed == (f->result.plan != NULL));
	CHECK(f->result.placed == !f->result.reason[0]);
	if (!f->result.placed)
		CHECK(cluster_digest(f->cluster) == before);
	return f->result.placed;
}

#define PLACED(f, ...) \
	CHECKF(plan_gang(f, (struct rules){ .count = __VA_ARGS__ }), "%s", (f)->result.reason)
#define REFUSED(f, ...) CHECK(!plan_gang(f, (struct rules){ .count = __VA_ARGS__ }))

static inline void commit(struct fabric *f)
{
	plan_commit(f->result.plan);
	f->result.plan = NULL;
}

/* "s1/l2 s1/l3" */
static inline const char *leaves_of(const struct fabric *f)
{
	static char text[512];
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < f->result.leaves_count; i++) {
		const struct domain *d = cluster_domain(f->cluster, f->result.leaves[i]);
		const char *above = d->parent == DOMAIN_NONE
					    ? ""
					    : cluster_domain(f->cluster, d->parent)->name;

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s/%s", i ? " " : "",
					above, d->name);
	}
	return text;
}

static inline uint32_t members_in(const struct fabric *f, const char *leaf)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->result.members_count; i++) {
		uint32_t node = f->result.members[i].decision.node;

		count += strstr(cluster_node(f->cluster, node)->name, leaf) != NULL;
	}
	return count;
}

static inline const char *node_of(const struct fabric *f, uint32_t member)
{
	return cluster_node(f->cluster, f->result.members[member].decision.node)->name;
}

#define FABRIC(f, spine_count, leaf_count, ...)                           \
	struct fabric f CLEANUP(fabric_done) = fabric_new((struct shape){ \
		.spines = spine_count, .leaves = leaf_count, .nodes = __VA_ARGS__ })

#endif
