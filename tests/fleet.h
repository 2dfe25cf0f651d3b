/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.h - small clusters for scenarios, in a line a node and a line a pod.
 *
 *	struct engine *e = fleet_new();
 *	fleet_node(e, "a", (struct fleet_node){ .gpus = 4 });
 *	fleet_pod(e, "low", "a", whole(2), (struct pod_spec){ .priority = 1 });
 *	engine_free(e);
 *
 * What is not said of a node is ample.
 */
#ifndef GS_TESTS_FLEET_H
#define GS_TESTS_FLEET_H

#include "test.h"

#include "base/err.h"
#include "engine/engine.h"
#include "engine/policy/policy.h"

struct fleet_node {
	uint32_t gpus;
	const char *model; /* NULL: "model" */
	uint32_t mem_mib;  /* of a GPU; 0: 16384 */
	int64_t cpu_milli; /* 0: 64000 */
	int64_t mem_bytes; /* 0: 256 GiB */
	int64_t pods;	   /* 0: 110 */
	const char *leaf;  /* NULL: directly in the root */
	const struct links *links;
	const struct mig_geometry *mig; /* its GPUs are in MIG mode */
	uint32_t whole;			/* set of those that are not */
	const char *taint;
	uint8_t effect; /* of the taint; 0: NoSchedule */
	struct label label;
	struct extended extended;
	uint32_t network_gbps;
	bool unschedulable;
};

static inline struct engine *fleet_new(void)
{
	struct engine_config config = { .policy = &policy_default };
	struct engine *e = engine_new(&config);

	CHECK(e != NULL);
	return e;
}

static inline uint32_t fleet_node(struct engine *e, const char *name, struct fleet_node n)
{
	struct cluster *c = engine_cluster(e);
	struct gpu_spec gpus[GPU_MAX];
	char uuids[GPU_MAX][64];
	struct taint taint = { .effect = n.effect ? n.effect : EFFECT_NO_SCHEDULE };
	struct err err = ERR_INIT;
	uint32_t node;

	for (uint32_t i = 0; i < n.gpus; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "%s-%u", name, (unsigned)i);
		gpus[i] = (struct gpu_spec){
			.uuid = uuids[i],
			.model = n.model ? n.model : "model",
			.mem_mib = n.mem_mib ? n.mem_mib : 16384,
			.mig_mode = n.mig && !(n.whole >> i & 1),
		};
	}
	if (n.taint)
		taint.key = cluster_intern(c, n.taint);
	CHECKF(cluster_node_add(c,
				&(struct node_spec){
					.name = name,
					.allocatable = {
						.cpu_milli = n.cpu_milli ? n.cpu_milli : 64000,
						.mem_bytes = n.mem_bytes ? n.mem_bytes
									 : INT64_C(256) << 30,
						.ephemeral_bytes = INT64_C(1) << 40,
						.pods = n.pods ? n.pods : 110,
					},
					.extended = &n.extended,
					.extended_count = n.extended.resource != 0,
					.gpus = gpus,
					.gpus_count = n.gpus,
					.links = n.links,
					.mig = n.mig,
					.domains = &n.leaf,
					.domains_count = n.leaf != NULL,
					.labels = &n.label,
					.labels_count = n.label.key != 0,
					.taints = &taint,
					.taints_count = n.taint != NULL,
					.network_gbps = n.network_gbps,
					.unschedulable = n.unschedulable,
				},
				&node, &err) == 0,
	       "%s", err.text);
	return node;
}

static inline struct request whole(uint8_t count)
{
	struct request r;

	request_init(&r);
	request_add_ask(&r, ASK_WHOLE, count);
	return r;
}

static inline struct request share(uint16_t core_milli, uint32_t mem_mib)
{
	struct request r;
	struct ask *ask;

	request_init(&r);
	ask = request_add_ask(&r, ASK_SHARE, 1);
	ask->core_milli = core_milli;
	ask->mem_mib = mem_mib;
	return r;
}

static inline struct request slice(const char *profile)
{
	struct request r;
	struct ask *ask;

	request_init(&r);
	ask = request_add_ask(&r, ASK_MIG, 1);
	snprintf(ask->mig_profile, sizeof(ask->mig_profile), "%s", profile);
	return r;
}

static inline struct request cpu(int64_t cpu_milli)
{
	struct request r;

	request_init(&r);
	r.needs.cpu_milli = cpu_milli;
	return r;
}

/* The same request, on exactly these GPUs. */
static inline struct request on_gpus(struct request r, uint32_t gpus)
{
	r.asks[0].pinned = gpus;
	return r;
}

/* Places the pod on that node; its name is its uid. */
static inline uint32_t fleet_pod(struct engine *e, const char *uid, const char *node,
				 struct request r, struct pod_spec spec)
{
	struct decision d;
	uint32_t pod;

	r.node = cluster_node_find(engine_cluster(e), node);
	spec.uid = uid;
	spec.name = uid;
	CHECKF(engine_score(e, &r, r.node, &d, NULL) == FITS, "%s does not fit", uid);
	CHECK(engine_place(e, &spec, &r, &d, &pod) == 0);
	return pod;
}

#endif
