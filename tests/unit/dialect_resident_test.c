/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that are on nodes already: their decision read back, and what they take. */
#include "dialect_bench.h"

#include "dialect/annotations.h"
#include "dialect/decided.h"
#include "engine/engine.h"
#include "engine/rules.h"

/* Reads the first of the documents as a pod that is there; the complaint is in b->err. */
static int resident(struct bench *b, const char *yaml, int64_t index)
{
	struct pod_source source;
	struct err err = ERR_INIT;

	yaml_done(&b->objects);
	b->objects = (struct yaml)YAML_INIT;
	CHECKF(yaml_parse("test", yaml, strlen(yaml), NULL, &b->objects, &err) == 0, "%s",
	       err.text);
	CHECK(pod_source_read(json_root(b->objects.items[0].doc), &b->lookup, &source, &err) == 0);
	if (index >= 0)
		source.index = index;
	return dialect_read_resident(b->cluster, &b->lookup, &source, &b->arena, &b->wish,
				     &b->err);
}

TEST(gates_a_missing_node_and_a_missing_claim_do_not_hide_what_a_pod_takes)
{
	struct bench b;

	bench_init(&b);
	CHECK(resident(&b,
		       "kind: Pod\nmetadata: {name: p, uid: u, labels: {app: web},"
		       " annotations: {gpu.scheduling/claim: nowhere}}\n"
		       "spec: {nodeName: unknown, schedulingGates: [{name: g}], priority: 7,"
		       " resourceClaims: [{name: g, resourceClaimName: g}],"
		       " containers: [{name: c, ports: [{hostPort: 80}], resources:"
		       " {requests: {cpu: 2, memory: 1Gi}, limits: {nvidia.com/gpu: 2}}}]}\n",
		       -1) == 0);
	CHECK(strstr(b.err.text, "nowhere") != NULL);
	CHECK_INT(b.wish.priority, 7);
	CHECK_INT(b.wish.request.needs.cpu_milli, 2000);
	CHECK_INT(b.wish.request.needs.mem_bytes, 1 << 30);
	CHECK_INT(b.wish.request.asks_count, 1);
	CHECK_INT(b.wish.request.asks[0].count, 2);
	CHECK(b.wish.request.subject != 0);
	CHECK(b.wish.request.rules != 0);
	wish_release(b.cluster, &b.wish);
	bench_done(&b);
}

TEST(what_one_part_says_wrongly_leaves_the_others)
{
	struct bench b;

	bench_init(&b);
	CHECK(resident(&b,
		       "kind: Pod\nmetadata: {name: p, uid: u, labels: {app: web}}\n"
		       "spec: {affinity: {podAntiAffinity:"
		       " {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone,"
		       " labelSelector: {matchExpressions: [{key: a, operator: Near}]}}]}},"
		       " containers: [{name: a, ports: [{hostPort: 80}], resources:"
		       " {requests: {cpu: 1, memory: much},"
		       " limits: {elasticgpu.io/gpu-core: 150}}},"
		       " {name: b, resources: {limits: {nvidia.com/gpu: 1}}}]}\n",
		       -1) == 0);
	CHECK(b.err.code != 0);
	CHECK_INT(b.wish.request.needs.cpu_milli, 1000);
	CHECK_INT(b.wish.request.needs.mem_bytes, 0);
	CHECK_INT(b.wish.request.asks_count, 1);
	CHECK(b.wish.request.subject != 0);
	CHECK(b.wish.request.rules != 0); /* its port */
	wish_release(b.cluster, &b.wish);
	bench_done(&b);
}

TEST(what_can_be_read_is_the_same_as_of_one_that_waits)
{
	static const char pod[] =
		"kind: Pod\nmetadata: {name: p, uid: u, labels: {app: web}}\n"
		"spec: {affinity: {podAntiAffinity:"
		" {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone,"
		" labelSelector: {matchLabels: {app: web}}}]}},"
		" topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone,"
		" whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor,"
		" labelSelector: {matchLabels: {app: web}}}],"
		" tolerations: [{operator: Exists}], containers: [{name: a}]}\n";
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, pod) == 0);
	struct wish waiting = b.wish;
	CHECK(resident(&b, pod, -1) == 0);
	CHECK_INT(b.err.code, 0);
	CHECK(b.wish.request.rules != 0);
	CHECK_INT(b.wish.request.rules, waiting.request.rules);
	CHECK_INT(b.wish.request.subject, waiting.request.subject);
	wish_release(b.cluster, &b.wish);
	wish_release(b.cluster, &waiting);
	bench_done(&b);
}

TEST(amounts_that_nobody_has_can_still_be_added_up)
{
	struct bench b;

	bench_init(&b);
	CHECK(resident(&b,
		       "kind: Pod\nmetadata: {name: p, uid: u}\nspec: {containers: [{name: a,"
		       " resources: {requests: {cpu: 9E, memory: 9E, example.com/x: 9E}}}]}\n",
		       -1) == 0);
	CHECK_INT(b.wish.request.needs.cpu_milli, INT64_C(1) << 48);
	CHECK_INT(b.wish.request.needs.mem_bytes, INT64_C(1) << 48);
	CHECK_INT(b.wish.request.extended[0].amount, INT64_C(1) << 48);
	wish_release(b.cluster, &b.wish);
	bench_done(&b);
}

TEST(during_a_resize_a_pod_takes_the_most_of_what_it_asks_for_and_has)
{
	static const struct {
		const char *spec, *status;
		int64_t cpu_milli, mem_mib;
	} rows[] = {
		/* Grows: it is asked for, not granted yet. */
		{ "{cpu: 4, memory: 4Mi}",
		  "containerStatuses: [{name: a, resources: {requests: {cpu: 2, memory: 4Mi}},"
		  " allocatedResources: {cpu: 2, memory: 4Mi}}]",
		  4000, 4 },
		/* Shrinks: it still has it. */
		{ "{cpu: 1, memory: 1Mi}",
		  "containerStatuses: [{name: a, resources: {requests: {cpu: 3, memory: 1Mi}},"
		  " allocatedResources: {cpu: 2, memory: 9Mi}}]",
		  3000, 9 },
		/* What can never be does not count. */
		{ "{cpu: 400, memory: 1Mi}",
		  "conditions: [{type: PodResizePending, reason: Infeasible}],"
		  " containerStatuses: [{name: a, resources: {requests: {cpu: 3, memory: 1Mi}},"
		  " allocatedResources: {cpu: 2, memory: 1Mi}}]",
		  3000, 1 },
		{ "{cpu: 400, memory: 1Mi}",
		  "conditions: [{type: PodResizePending, reason: Deferred}],"
		  " containerStatuses: [{name: a, resources: {requests: {cpu: 3}}}]",
		  400000, 1 },
		{ "{cpu: 1, memory: 1Mi}",
		  "containerStatuses: [{name: other, resources: {requests: {cpu: 3}}}]", 1000, 1 },
		{ "{cpu: 1, memory: 1Mi}", "containerStatuses: [{name: a}]", 1000, 1 },
	};
	struct bench b;

	bench_init(&b);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char yaml[1024];

		snprintf(yaml, sizeof(yaml),
			 "kind: Pod\nmetadata: {name: p, uid: u}\nspec: {containers: [{name: a,"
			 " resources: {requests: %s}}]}\nstatus: {%s}\n",
			 rows[i].spec, rows[i].status);
		CHECK(resident(&b, yaml, -1) == 0);
		CHECKF(b.wish.request.needs.cpu_milli == rows[i].cpu_milli, "row %u", i);
		CHECKF(b.wish.request.needs.mem_bytes == rows[i].mem_mib << 20, "row %u", i);
		wish_release(b.cluster, &b.wish);
	}
	bench_done(&b);
}

#define MAP_POD                                                                          \
	"kind: Pod\nmetadata: {name: web-x, uid: u, generateName: web-, annotations:"    \
	" {gpu-scheduling-map: \"0=alpha:0\\n1=alpha:0\\n2=beta:1\"}}\nspec: {nodeName:" \
	" alpha, containers: [{name: a}]}\n"

TEST(a_map_counts_only_with_an_index_that_is_known)
{
	struct bench b;

	bench_init(&b);
	CHECK(resident(&b, MAP_POD, -1) == 0);
	CHECK(b.wish.workload != NULL);
	CHECK(b.wish.index == WISH_INDEX_NONE);
	CHECK_INT(b.wish.request.asks_count, 0);
	wish_release(b.cluster, &b.wish);
	CHECK(resident(&b, MAP_POD, 1) == 0);
	CHECK_INT(b.wish.index, 1);
	CHECK_INT(b.wish.request.asks_count, 1);
	CHECK(b.wish.request.asks[0].group != 0);
	wish_release(b.cluster, &b.wish);
	bench_done(&b);
}

/* A pod on alpha with that decision. */
static int decided(struct bench *b, const char *decision, struct decided *ret)
{
	struct err err = ERR_INIT;
	char yaml[4096];

	yaml_done(&b->objects);
	b->objects = (struct yaml)YAML_INIT;
	snprintf(yaml, sizeof(yaml),
		 "kind: Pod\nmetadata: {name: p, uid: u, annotations: {gpu.scheduling/decision:"
		 " '%s'}}\nspec: {nodeName: alpha}\n",
		 decision);
	CHECKF(yaml_parse("test", yaml, strlen(yaml), NULL, &b->objects, &err) == 0, "%s",
	       err.text);
	b->err = (struct err)ERR_INIT;
	return decided_read(json_root(b->objects.items[0].doc), &b->arena, ret, &b->err);
}

TEST(a_decision_is_read_back_as_it_was_written)
{
	struct bench b;
	struct annotations list;
	struct decided back;

	bench_init(&b);
	CHECK(bench_read(&b, MAP_POD) == 0);
	struct decision d = { .node = cluster_node_find(b.cluster, "alpha") };
	d.assignment.count = 1;
	d.assignment.holds[0] = (struct hold){
		.gpu = 3, .ask = 0, .kind = ASK_SHARE, .core_milli = 500, .mem_mib = 7
	};
	struct annotations_input in = { .cluster = b.cluster,
					.wish = &b.wish,
					.decision = &d,
					.scheduler = "s",
					.attempt = 4294967295 };
	CHECK(annotations_make(&in, &b.arena, &list, NULL) == 0);
	CHECK(decided(&b, annotations_find(&list, "gpu.scheduling/decision"), &back) == 0);
	CHECK_STR(back.node, "alpha");
	CHECK_INT(back.attempt, 4294967295);
	CHECK_INT(back.index, 0);
	CHECK_INT(back.holds_count, 1);
	CHECK_STR(back.holds[0].uuid, "GPU-alpha-3");
	CHECK_INT(back.holds[0].core_milli, 500);
	CHECK_INT(back.holds[0].mem_mib, 7);
	CHECK(back.holds[0].mig_profile == NULL);
	wish_release(b.cluster, &b.wish);
	bench_done(&b);
}

TEST(slices_have_their_profile_and_place)
{
	struct bench b;
	struct decided back;

	bench_init(&b);
	CHECK(decided(&b,
		      "{\"node\":\"alpha\",\"attempt\":9,\"gpus\":[{\"uuid\":\"GPU-1\",\"mig\":"
		      "{\"profile\":\"1g.10gb\",\"start\":4},\"ask\":2}]}",
		      &back) == 0);
	CHECK_STR(back.holds[0].mig_profile, "1g.10gb");
	CHECK_INT(back.holds[0].mig_start, 4);
	CHECK_INT(back.holds[0].ask, 2);
	CHECK(back.index == DECIDED_INDEX_NONE);
	bench_done(&b);
}

TEST(decisions_that_cannot_be_are_refused)
{
	static const char *const wrong[] = {
		"",
		"no",
		"[]",
		"{}",
		"{\"node\":\"alpha\",\"attempt\":1}",
		"{\"node\":\"alpha\",\"attempt\":0,\"gpus\":[]}",
		"{\"node\":\"alpha\",\"attempt\":4294967296,\"gpus\":[]}",
		"{\"node\":\"beta\",\"attempt\":1,\"gpus\":[]}",
		"{\"node\":\"alpha\",\"attempt\":1,\"index\":-1,\"gpus\":[]}",
		"{\"node\":\"alpha\",\"attempt\":1,\"gpus\":[{}]}",
		"{\"node\":\"alpha\",\"attempt\":1,\"gpus\":[{\"uuid\":\"x\"}]}",
		"{\"node\":\"alpha\",\"attempt\":1,\"gpus\":[{\"uuid\":\"x\",\"coreMilli\":1001,"
		"\"memoryMiB\":1}]}",
		"{\"node\":\"alpha\",\"attempt\":1,\"gpus\":[{\"uuid\":\"x\",\"coreMilli\":1,"
		"\"memoryMiB\":-1}]}",
		"{\"node\":\"alpha\",\"attempt\":1,\"gpus\":[{\"uuid\":\"x\",\"mig\":{\"profile\":"
		"\"1g.5gb\",\"start\":8}}]}",
		"{\"node\":\"alpha\",\"attempt\":1,\"gpus\":[{\"uuid\":\"x\",\"mig\":{}}]}",
		"{\"node\":\"alpha\",\"attempt\":1,\"gpus\":[{\"uuid\":\"x\",\"coreMilli\":1,"
		"\"memoryMiB\":1,\"ask\":16}]}",
	};
	struct bench b;
	struct decided back;

	bench_init(&b);
	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		CHECKF(decided(&b, wrong[i], &back) == -EINVAL, "%s", wrong[i]);
		CHECK(b.err.text[0] != '\0');
	}
	CHECK(decided_read(NULL, &b.arena, &back, NULL) == -ENOENT);
	bench_done(&b);
}

TEST(a_decision_that_names_another_pod_is_none)
{
	struct bench b;
	struct decided back;

	bench_init(&b);
	CHECK(decided(&b, "{\"node\":\"alpha\",\"attempt\":7,\"gpus\":[],\"pod\":\"u\"}", &back) ==
	      0);
	CHECK(decided(&b, "{\"node\":\"alpha\",\"attempt\":7,\"gpus\":[],\"pod\":\"w\"}", &back) ==
	      -EINVAL);
	CHECK_STR(b.err.text, "gpu.scheduling/decision: was made for another pod");
	bench_done(&b);
}

TEST_MAIN()
