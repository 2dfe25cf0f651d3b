/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - a simulated cluster with its pods: what arrives, fails, leaves and waits.
 *
 * Stands in for the API server and the scheduler's queue around the engine.  Objects
 * are submitted; Jobs, Deployments, ReplicaSets and StatefulSets become their pods,
 * unless pods that they own are submitted with them; world_settle() then tries every waiting pod, by priority and arrival, gangs when they
 * are complete, until nothing more can be done.  A pod that is evicted or whose node or
 * GPU fails waits again, as if its controller had made it anew.
 *
 * A pod that is wrong in itself stays pending with the sentence that says so, and is
 * read again whenever anything changes.
 */
#ifndef GS_SIM_WORLD_H
#define GS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "dialect/dialect.h"
#include "engine/engine.h"

struct err;
struct fleet;
struct manifests;
struct policy;
struct world;

#define WORLD_PODS_MAX 200000

struct world_gang;
struct world_template;

enum world_state {
	WORLD_PENDING,
	WORLD_PLACED,
	WORLD_GONE,
};

struct world_pod {
	const char *key; /* "namespace/name" */
	const char *name;
	const char *workload; /* the name of its owner, or its own */
	struct pod_source source;
	const struct wish *wish; /* NULL: it is wrong in itself, see text */
	enum world_state state;
	uint32_t number;	  /* in the cluster, if placed */
	struct decision decision; /* if placed */
	char *text;		  /* why it is there, or why it waits */
	const char *evicted_by;	  /* the pod that took its place, until it is placed again */
	uint32_t arrival;
	uint32_t generation; /* of the world when it was read */
	uint32_t leaf;	     /* where it is or was; DOMAIN_NONE */
	bool learned;	     /* the engine knows of its arrival */
	bool refused;	     /* in this round; why is found out at its end */
	uint32_t round;	     /* in which its gang was tried last */
	struct world_gang *gang;
	struct world_template *template; /* that its workload makes pods of; or NULL */
	struct wish *memory;		 /* what it was read into last, if nobody shares it */
	const char *index_key;		 /* in world.taken, or NULL */
};

enum world_event {
	WORLD_EVENT_PLACED,
	WORLD_EVENT_WAITS,
	WORLD_EVENT_EVICTED,
	WORLD_EVENT_LOST, /* its node or GPU failed */
};

struct world_config {
	const struct policy *policy; /* NULL: the default */
	uint64_t seed;
	bool no_preemption;
	void (*on_event)(void *context, enum world_event event, const struct world_pod *pod);
	void *context;
};

/* The fleet is borrowed.  0, -EINVAL, -ENOMEM. */
int world_new(const struct fleet *fleet, const struct world_config *config, struct world **ret,
	      struct err *err);
void world_free(struct world *w);
void world_freep(struct world **w);

/* Takes in the objects from the `from`-th on, in whatever order they refer to each other;
 * they are borrowed.  An object that is there already is replaced, its pods stay.  0,
 * -EINVAL (a kind that is not understood, a pod of that name is there, too many pods) with
 * file and line, -ENOMEM. */
int world_submit(struct world *w, const struct manifests *m, size_t from, struct err *err);

/* -EINVAL for a GpuClaim that is wrong in itself and that no pod names: of one that is
 * named, its pods say so. */
int world_check_claims(struct world *w, const struct manifests *m, struct err *err);

/* Tries to place what waits. */
int world_settle(struct world *w, struct err *err);

/* A pod, or all pods of a workload, by name.  -ENOENT. */
int world_delete(struct world *w, const char *name, struct err *err);

/* -ENOENT when there is no such node or GPU. */
int world_fail_node(struct world *w, const char *node, struct err *err);
int world_recover_node(struct world *w, const char *node, struct err *err);
int world_fail_gpu(struct world *w, const char *node, int64_t gpu, struct err *err);
int world_recover_gpu(struct world *w, const char *node, int64_t gpu, struct err *err);
int world_cordon(struct world *w, const char *node, bool cordoned, struct err *err);

struct engine *world_engine(const struct world *w);
struct cluster *world_cluster(const struct world *w);
uint32_t world_pods(const struct world *w);
const struct world_pod *world_pod(const struct world *w, uint32_t i);
/* The pod with that uid in the cluster, or NULL. */
const struct world_pod *world_pod_of(const struct world *w, const struct pod *pod);

#endif
