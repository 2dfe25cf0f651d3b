/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "engine/policy/policy.h"
#include "sim/trace.h"

#define MIB_SHIFT      20
#define PODS_UNBOUND   (INT64_C(1) << 40) /* the trace sets no limit to pods of a node */
#define LOAD_MAX       1000000		  /* percent */
#define PROGRESS_STEPS 200
#define UID_MAX	       16

/* A replay while it runs. */
struct run {
	const struct trace *trace;
	const struct replay_config *config;
	struct engine *engine;
	struct request *requests; /* by class */
	uint64_t arrived_milli, allocated_milli;
	struct replay result;
	VEC(struct replay_load) loads;
};

static void run_done(struct run *r)
{
	engine_free(r->engine);
	free(r->requests);
	vec_done(&r->loads);
}

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

static int add_node(struct run *r, const struct trace_node *n, struct err *err)
{
	struct gpu_spec gpus[GPU_MAX] = { 0 };
	char uuids[GPU_MAX][TRACE_NAME_MAX + 16];
	struct node_spec spec = {
		.name = n->name,
		.allocatable = { .cpu_milli = n->cpu_milli,
				 .mem_bytes = n->mem_mib << MIB_SHIFT,
				 .pods = PODS_UNBOUND },
		.gpus = gpus,
		.gpus_count = n->gpus,
	};
	uint32_t number;

	for (uint32_t i = 0; i < n->gpus; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "%s/%u", n->name, i);
		gpus[i] = (struct gpu_spec){ .uuid = uuids[i], .model = n->model };
	}
	r->result.capacity_milli += (uint64_t)n->gpus * CORE_WHOLE;
	return cluster_node_add(engine_cluster(r->engine), &spec, &number, err);
}

static int make_request(struct run *r, const struct trace_class *class, struct request *ret,
			struct err *err)
{
	struct cluster *c = engine_cluster(r->engine);
	const char *models = class->models;
	size_t len;

	request_init(ret);
	ret->needs.cpu_milli = class->cpu_milli;
	ret->needs.mem_bytes = class->mem_mib << MIB_SHIFT;
	if (!class->gpus)
		return 0;
	bool whole = class->gpu_milli == CORE_WHOLE;
	struct ask *ask =
		request_add_ask(ret, whole ? ASK_WHOLE : ASK_SHARE, (uint8_t) class->gpus);
	ask->core_milli = whole ? 0 : (uint16_t) class->gpu_milli;
	for (const char *m; (m = trace_model(&models, &len));) {
		char name[256];

		snprintf(name, sizeof(name), "%.*s", (int)len, m);
		uint16_t model = cluster_model_find(c, name);
		if (model == UINT16_MAX)
			return err_set(err, EINVAL, "there are more than %d GPU models",
				       MODEL_MAX);
		modelset_add(&ask->models, model);
	}
	return 0;
}

static int prepare(struct run *r, struct err *err)
{
	const struct trace *t = r->trace;
	struct engine_config config = { .policy = r->config->policy, .seed = r->config->seed };
	int rc = 0;

	r->engine = engine_new(&config);
	r->requests = calloc(t->classes_count, sizeof(*r->requests));
	if (!r->engine || !r->requests)
		return no_memory(err);
	for (uint32_t i = 0; i < t->nodes_count && rc == 0; i++)
		rc = add_node(r, &t->nodes[i], err);
	for (uint32_t i = 0; i < t->classes_count && rc == 0; i++)
		rc = make_request(r, &t->classes[i], &r->requests[i], err);
	const struct policy *policy = engine_config(r->engine)->policy;
	for (uint32_t i = 0; i < t->pods_count && rc == 0 && policy && policy->knows_mix; i++)
		engine_mix_add(r->engine, &r->requests[t->pods[i].class_index]);
	return rc;
}

static int arrive(struct run *r, uint32_t arrival, struct err *err)
{
	const struct trace_pod *pod = &r->trace->pods[r->trace->order[arrival]];
	const struct trace_class *class = &r->trace->classes[pod->class_index];
	const struct request *request = &r->requests[pod->class_index];
	uint64_t milli = (uint64_t) class->gpus * class->gpu_milli;
	char uid[UID_MAX];
	struct decision decision;
	uint32_t number;

	engine_arrived(r->engine, request);
	r->arrived_milli += milli;
	r->result.decisions++;
	if (engine_decide(r->engine, request, &decision) != FITS) {
		r->result.rejected++;
		r->result.rejected_cpu_only += class->gpus == 0;
		return 0;
	}
	snprintf(uid, sizeof(uid), "%u", arrival);
	struct pod_spec spec = { .uid = uid, .name = pod->name, .started = arrival };
	int rc = engine_place(r->engine, &spec, request, &decision, &number);
	if (rc < 0)
		return err_set(err, -rc, "cannot book pod %.80s", pod->name);
	r->allocated_milli += milli;
	return 0;
}

/* The load this arrival belongs to, and what is allocated at it. */
static int measure(struct run *r, struct err *err)
{
	uint64_t capacity = MAX(r->result.capacity_milli, 1);
	uint64_t load = (r->arrived_milli * 200 + capacity) / (2 * capacity);

	if (load > LOAD_MAX)
		return err_set(err, EINVAL, "the pods ask for more than %d %% of the GPUs",
			       LOAD_MAX);
	while (r->loads.len <= load)
		if (vec_push(&r->loads, (struct replay_load){ 0 }) < 0)
			return no_memory(err);
	r->loads.items[load].allocated_milli += r->allocated_milli;
	r->loads.items[load].arrivals++;
	return 0;
}

static int arrive_all(struct run *r, struct err *err)
{
	uint32_t total = r->trace->order_count;
	uint32_t step = MAX(total / PROGRESS_STEPS, 1);
	uint64_t started = clock_monotonic_ns(r->config->clock), spent = 0;
	int rc = 0;

	for (uint32_t i = 0; i < total && rc == 0; i++) {
		if (i % step == 0 && r->config->progress) {
			spent += clock_monotonic_ns(r->config->clock) - started;
			r->config->progress(r->config->context, i, total);
			started = clock_monotonic_ns(r->config->clock);
		}
		rc = arrive(r, i, err);
		if (rc == 0)
			rc = measure(r, err);
	}
	spent += clock_monotonic_ns(r->config->clock) - started;
	if (rc == 0 && r->config->progress)
		r->config->progress(r->config->context, total, total);
	r->result.seconds = (double)spent / 1e9;
	return rc;
}

int replay_run(const struct trace *trace, const struct replay_config *config, struct replay *ret,
	       struct err *err)
{
	struct run r = { .trace = trace, .config = config };
	int rc = prepare(&r, err);

	if (rc == 0)
		rc = arrive_all(&r, err);
	if (rc == 0) {
		*ret = r.result;
		ret->loads = r.loads.items;
		ret->loads_count = (uint32_t)r.loads.len;
		r.loads.items = NULL;
	}
	run_done(&r);
	return rc;
}

void replay_done(struct replay *r)
{
	if (!r)
		return;
	free(r->loads);
	*r = (struct replay){ 0 };
}
