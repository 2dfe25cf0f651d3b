/* SPDX-License-Identifier: Apache-2.0 */
/* engine_fixture.h - what the tests of the engine's core add to fleet.h.
 *
 * A box is a node as a value: describe it, alter it, report it again.
 *
 *	struct box b = BOX("a", 4);
 *	b.gpus[2].unhealthy = 1;
 *	uint32_t a = box_add(e, &b);
 *	CHECK_VERDICT(verdict_on(e, whole(4), a), UNHEALTHY_GPU);
 */
#ifndef GS_TESTS_UNIT_ENGINE_FIXTURE_H
#define GS_TESTS_UNIT_ENGINE_FIXTURE_H

#include "fleet.h"

#include "base/attr.h"
#include "engine/links.h"

#define GIB (INT64_C(1) << 30)

struct box {
	struct node_spec spec; /* what lies below is put into it by box_spec() */
	struct gpu_spec gpus[GPU_MAX + 1];
	char uuids[GPU_MAX + 1][32]; /* "<name>-<id>", where gpus[] has none */
	const char *path[DOMAIN_LEVELS_MAX + 1];
	struct label label;
	struct taint taint;
	struct extended extended;
};

/* A node of ample resources with so many GPUs of 16 GiB. */
#define BOX(box_name, gpu_count)                                              \
	{                                                                     \
		.spec = {                                                     \
			.name = (box_name),                                   \
			.gpus_count = (gpu_count),                            \
			.allocatable = { 64000, 256 * GIB, 1024 * GIB, 110 }, \
		},                                                            \
	}

static inline const struct node_spec *box_spec(struct box *b)
{
	for (uint32_t i = 0; i < b->spec.gpus_count && i <= GPU_MAX; i++) {
		struct gpu_spec *g = &b->gpus[i];

		snprintf(b->uuids[i], sizeof(b->uuids[i]), "%s-%u", b->spec.name, (unsigned)i);
		g->uuid = g->uuid ? g->uuid : b->uuids[i];
		g->model = g->model ? g->model : "model";
		g->mem_mib = g->mem_mib ? g->mem_mib : 16384;
	}
	b->spec.gpus = b->gpus;
	b->spec.domains = b->path;
	while (b->spec.domains_count < ARRAY_SIZE(b->path) && b->path[b->spec.domains_count])
		b->spec.domains_count++;
	b->spec.labels = &b->label;
	b->spec.labels_count = b->label.key != 0;
	b->spec.taints = &b->taint;
	b->spec.taints_count = b->taint.effect != 0;
	b->spec.extended = &b->extended;
	b->spec.extended_count = b->extended.resource != 0;
	return &b->spec;
}

static inline uint32_t box_add(struct engine *e, struct box *b)
{
	struct err err = ERR_INIT;
	uint32_t node = NODE_NONE;

	CHECKF(cluster_node_add(engine_cluster(e), box_spec(b), &node, &err) == 0, "%s", err.text);
	return node;
}

static inline void box_change(struct engine *e, uint32_t node, struct box *b)
{
	struct err err = ERR_INIT;

	CHECKF(cluster_node_change(engine_cluster(e), node, box_spec(b), &err) == 0, "%s",
	       err.text);
}

/* Every figure of the cluster adds up. */
#define CHECK_SOUND(e) CHECK_STR(cluster_check(engine_cluster(e)), NULL)

#define CHECK_VERDICT(actual, expected) CHECK_STR(verdict_name(actual), verdict_name(expected))

static inline enum verdict verdict_on(struct engine *e, struct request r, uint32_t node)
{
	struct assignment a;

	return assign_node(engine_cluster(e), engine_scorer(e), &r, node, &a);
}

/* The set of GPUs that the request would get there. */
static inline uint32_t gpus_on(struct engine *e, struct request r, uint32_t node)
{
	struct assignment a = { .gpus = 0 };

	CHECK_VERDICT(assign_node(engine_cluster(e), NULL, &r, node, &a), FITS);
	return a.gpus;
}

/* Places it there; the cluster's own figures are checked. */
static inline uint32_t put(struct engine *e, const char *uid, uint32_t node, struct request r)
{
	const char *name = cluster_node(engine_cluster(e), node)->name;
	uint32_t pod = fleet_pod(e, uid, name, r, (struct pod_spec){ .uid = uid });

	CHECK_SOUND(e);
	return pod;
}

/* The node that is chosen, or the name of the verdict.  The answer of the index must be
 * the one computed afresh. */
static inline const char *choice(struct engine *e, struct request r)
{
	struct decision d, afresh;
	enum verdict v = engine_decide(e, &r, &d), v2 = engine_decide_afresh(e, &r, &afresh);

	CHECK_VERDICT(v, v2);
	if (v != FITS)
		return verdict_name(v);
	CHECK_INT(d.node, afresh.node);
	CHECK_INT(d.score, afresh.score);
	CHECK_INT(d.assignment.count, afresh.assignment.count);
	CHECK(!memcmp(d.assignment.holds, afresh.assignment.holds,
		      d.assignment.count * sizeof(struct hold)));
	return cluster_node(engine_cluster(e), d.node)->name;
}

static inline struct engine *engine_with(struct engine_config config)
{
	struct engine *e = engine_new(&config);

	CHECK(e != NULL);
	return e;
}

static inline struct request with_cpu(struct request r, int64_t cpu_milli)
{
	r.needs.cpu_milli = cpu_milli;
	return r;
}

static inline struct request of_model(struct engine *e, struct request r, const char *model)
{
	modelset_add(&r.asks[0].models, cluster_model(engine_cluster(e), model));
	return r;
}

/* Both asks in one pod: two containers. */
static inline struct request both(struct request r, struct request other)
{
	*request_add_ask(&r, ASK_WHOLE, 1) = other.asks[0];
	return r;
}

static inline struct request apart(struct request r)
{
	r.asks[0].apart = 1;
	return r;
}

#endif
