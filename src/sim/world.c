/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "engine/gang.h"
#include "sim/fleet.h"
#include "sim/manifest.h"
#include "sim/world_private.h"
#include "wire/json.h"

#define ARENA_MAX   ((size_t)2 << 30)
#define SCRATCH_MAX ((size_t)64 << 20)

static const struct json *find_object(void *context, const char *kind, const char *namespace,
				      const char *name)
{
	struct world *w = context;
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&key, "%s/%s/%s", kind, namespace, name);
	return map_get(&w->objects, key.s, key.len);
}

static bool index_taken(void *context, const char *workload, uint32_t index)
{
	return world_index_taken(context, workload, index);
}

static int add_nodes(struct world *w, struct err *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < fleet_count(w->fleet) && rc == 0; i++)
		rc = fleet_add(w->fleet, i, engine_cluster(w->engine), err);
	return rc;
}

int world_new(const struct fleet *fleet, const struct world_config *config, struct world **ret,
	      struct err *err)
{
	const struct fleet_limits *limits = fleet_limits(fleet);
	struct engine_config engine_config = {
		.cluster.seats = (uint16_t)limits->max_pods_per_shared_gpu,
		.policy = config->policy,
		.max_nodes_per_leaf = limits->max_nodes_per_leaf,
		.max_gpus_per_leaf = limits->max_gpus_per_leaf,
		.seed = config->seed,
	};
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(err, ENOMEM, "out of memory");
	w->fleet = fleet;
	w->config = *config;
	w->lookup = (struct dialect_lookup){ .context = w,
					     .find = find_object,
					     .index_taken = index_taken };
	arena_init(&w->arena, ARENA_MAX);
	arena_init(&w->scratch, SCRATCH_MAX);
	w->engine = engine_new(&engine_config);
	w->planner = w->engine ? gang_planner_new(w->engine) : NULL;
	int rc = w->planner ? add_nodes(w, err) : err_set(err, ENOMEM, "out of memory");
	if (rc < 0) {
		world_free(w);
		return rc;
	}
	*ret = w;
	return 0;
}

void world_free(struct world *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->pods.len; i++) {
		free(w->pods.items[i]->text);
		free(w->pods.items[i]);
	}
	for (size_t i = 0; i < w->gangs.len; i++)
		vec_done(&w->gangs.items[i]->members);
	vec_done(&w->pods);
	vec_done(&w->gangs);
	map_done(&w->gang_names);
	map_done(&w->owners);
	map_done(&w->taken);
	map_done(&w->by_key);
	map_done(&w->objects);
	gang_planner_free(w->planner);
	engine_free(w->engine);
	arena_done(&w->arena);
	arena_done(&w->scratch);
	free(w);
}

void world_freep(struct world **w)
{
	world_free(*w);
}

static int register_one(struct world *w, const struct manifest *m, struct err *err)
{
	char *key = world_printf(w, "%s/%s/%s", m->kind, m->namespace, m->name);
	int rc = world_kind(m->kind, m->name, m->object, err);

	if (rc < 0)
		return rc;
	if (!key || map_put(&w->objects, key, strlen(key), (void *)(uintptr_t)m->object) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

/* First all that may be looked up, then who owns whose pods, then the pods. */
static int submit_one(struct world *w, const struct manifest *m, int pass, struct err *err)
{
	if (pass == 0)
		return register_one(w, m, err);
	if (pass == 1)
		return world_note_owners(w, m->object, err);
	return world_expand(w, m->kind, m->namespace, m->name, m->object, err);
}

int world_submit(struct world *w, const struct manifests *m, size_t from, struct err *err)
{
	int rc = 0;

	w->generation++;
	for (int pass = 0; pass < 3 && rc == 0; pass++) {
		for (size_t i = from; i < m->items.len && rc == 0; i++) {
			rc = submit_one(w, &m->items.items[i], pass, err);
			if (rc < 0)
				manifest_prefix(&m->items.items[i], err);
		}
	}
	return rc;
}

static void remove_pod(struct world *w, struct world_pod *pod)
{
	if (pod->state == WORLD_PLACED)
		engine_remove(w->engine, pod->number);
	pod->state = WORLD_GONE;
	world_drop_index(w, pod);
	map_del(&w->by_key, pod->key, strlen(pod->key));
}

int world_delete(struct world *w, const char *name, struct err *err)
{
	bool found = false;

	for (size_t i = 0; i < w->pods.len; i++) {
		struct world_pod *pod = w->pods.items[i];

		if (pod->state == WORLD_GONE ||
		    (strcmp(pod->name, name) != 0 && strcmp(pod->key, name) != 0 &&
		     strcmp(pod->workload, name) != 0))
			continue;
		remove_pod(w, pod);
		found = true;
	}
	w->generation++;
	return found ? 0 : err_set(err, ENOENT, "there is no pod or workload %s", name);
}

static int node_number(const struct world *w, const char *name, uint32_t *ret, struct err *err)
{
	*ret = cluster_node_find(world_cluster(w), name);
	return *ret == NODE_NONE ? err_set(err, ENOENT, "there is no node %s", name) : 0;
}

/* Every pod on the node, or only those on one GPU of it, waits again. */
static void unplace_on(struct world *w, uint32_t node, uint32_t gpus)
{
	for (size_t i = 0; i < w->pods.len; i++) {
		struct world_pod *pod = w->pods.items[i];

		if (pod->state == WORLD_PLACED && pod->decision.node == node &&
		    (gpus == UINT32_MAX || (pod->decision.assignment.gpus & gpus)))
			world_unplace(w, pod, WORLD_EVENT_LOST);
	}
	w->generation++;
}

int world_fail_node(struct world *w, const char *node, struct err *err)
{
	uint32_t number;
	int rc = node_number(w, node, &number, err);

	if (rc < 0)
		return rc;
	unplace_on(w, number, UINT32_MAX);
	cluster_node_remove(world_cluster(w), number);
	return 0;
}

int world_recover_node(struct world *w, const char *node, struct err *err)
{
	uint32_t i = fleet_find(w->fleet, node);

	if (i == UINT32_MAX)
		return err_set(err, ENOENT, "there is no node %s", node);
	w->generation++;
	return fleet_add(w->fleet, i, world_cluster(w), err);
}

static int set_health(struct world *w, const char *node, int64_t gpu, bool healthy,
		      struct err *err)
{
	uint32_t number;
	int rc = node_number(w, node, &number, err);

	if (rc < 0)
		return rc;
	if (gpu < 0 || gpu >= cluster_node(world_cluster(w), number)->gpus_count)
		return err_set(err, ENOENT, "node %s has no GPU %lld", node, (long long)gpu);
	if (!healthy)
		unplace_on(w, number, gpuset_one((unsigned)gpu));
	w->generation++;
	cluster_gpu_health(world_cluster(w), number, (uint8_t)gpu, healthy);
	return 0;
}

int world_fail_gpu(struct world *w, const char *node, int64_t gpu, struct err *err)
{
	return set_health(w, node, gpu, false, err);
}

int world_recover_gpu(struct world *w, const char *node, int64_t gpu, struct err *err)
{
	return set_health(w, node, gpu, true, err);
}

int world_cordon(struct world *w, const char *node, bool cordoned, struct err *err)
{
	uint32_t i = fleet_find(w->fleet, node);

	if (i == UINT32_MAX)
		return err_set(err, ENOENT, "there is no node %s", node);
	return fleet_cordon(w->fleet, i, world_cluster(w), cordoned, err);
}

struct engine *world_engine(const struct world *w)
{
	return w->engine;
}

struct cluster *world_cluster(const struct world *w)
{
	return engine_cluster(w->engine);
}

uint32_t world_pods(const struct world *w)
{
	return (uint32_t)w->pods.len;
}

const struct world_pod *world_pod(const struct world *w, uint32_t i)
{
	return w->pods.items[i];
}

const struct world_pod *world_pod_of(const struct world *w, const struct pod *pod)
{
	return map_get(&w->by_key, pod->uid, strlen(pod->uid));
}
