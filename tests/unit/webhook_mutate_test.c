/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook_stage.h"

#include "dialect/annotations.h"

/* "main slot: CUDA_VISIBLE_DEVICES=@elasticgpu.io/container-main A=b; ..." */
static void put_env(struct strbuf *out, const struct json *container)
{
	struct json_iter iter = json_items(container, "env");

	for (const struct json *e; (e = json_next(&iter));) {
		const char *path = json_str(e, "valueFrom", "fieldRef", "fieldPath");
		const char *value = json_str(e, "value");

		strbuf_addf(out, " %s=", json_str(e, "name"));
		if (path && strncmp(path, "metadata.annotations['", 22) == 0)
			strbuf_addf(out, "@%.*s", (int)strlen(path) - 24, path + 22);
		else
			strbuf_puts(out, path ? path : value ? value : "?");
	}
}

static void put_list(struct strbuf *out, const struct json *pod, const char *list)
{
	struct json_iter iter = json_items(pod, "spec", list);

	for (const struct json *c; (c = json_next(&iter));) {
		const struct json *slot =
			json_get(c, "resources", "limits", "gpu.scheduling/slot");
		const struct json *asked =
			json_get(c, "resources", "requests", "gpu.scheduling/slot");

		strbuf_addf(out, "%s%s", json_str(c, "name"), slot ? " slot" : "");
		CHECK(!slot || strcmp(json_str(slot), "1") == 0);
		CHECK(slot ? json_equal(slot, asked) : !asked);
		strbuf_puts(out, ":");
		put_env(out, c);
		strbuf_puts(out, "\n");
	}
}

static void describe(struct strbuf *out, const struct json *pod)
{
	struct json_iter iter = json_members(pod, "metadata", "annotations");
	const char *scheduler = json_str(pod, "spec", "schedulerName");
	const char *runtime = json_str(pod, "spec", "runtimeClassName");
	struct json_member m;

	strbuf_reset(out);
	if (scheduler)
		strbuf_addf(out, "by %s\n", scheduler);
	if (runtime)
		strbuf_addf(out, "in %s\n", runtime);
	while (json_next_member(&iter, &m))
		if (strncmp(m.key, "topology", 8) == 0)
			strbuf_addf(out, "%s=%s\n", m.key, json_str(m.value));
	put_list(out, pod, "initContainers");
	put_list(out, pod, "containers");
}

/* The pod afterwards, which a second review leaves alone. */
static const char *mutated(struct stage *s, const char *pod, struct strbuf *out)
{
	struct strbuf again CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(&again);
	int rc = stage_run(s, WEBHOOK_MUTATE, &(struct stage_review){ .object = pod });

	CHECKF(rc >= 0 && rc != WEBHOOK_REFUSED, "%s: %s", pod, s->err.text);
	if (rc == WEBHOOK_UNTOUCHED)
		return "untouched";
	describe(out, json_root(s->patched));
	json_add_value(&w, json_root(s->patched));
	rc = stage_run(s, WEBHOOK_MUTATE, &(struct stage_review){ .object = again.s });
	CHECKF(rc == WEBHOOK_UNTOUCHED, "a second time: %s", s->patch.s);
	return out->s;
}

struct row {
	const char *pod, *expected;
};

static void check_rows(struct stage *s, const struct row *rows, size_t count)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	for (size_t i = 0; i < count; i++) {
		const char *after = mutated(s, rows[i].pod, &text);

		CHECKF(strcmp(after, rows[i].expected) == 0,
		       "row %zu, %s\nexpected\n%s\nfound\n%s", i, rows[i].pod, rows[i].expected,
		       after);
	}
}

#define OURS(spec)   "{metadata: {name: p}, spec: {schedulerName: gpu-scheduler, " spec "}}"
#define LIMITS(list) "resources: {limits: {" list "}}"
#define GPU	     LIMITS("nvidia.com/gpu: 1")
#define ANNOTATED(key, value, spec) \
	"{metadata: {name: p, annotations: {" key ": \"" value "\"}}, spec: {" spec "}}"
#define TWO	    "containers: [{name: a}, {name: b}]"
#define VISIBLE(of) "CUDA_VISIBLE_DEVICES=@elasticgpu.io/container-" of
#define ORDER	    "CUDA_DEVICE_ORDER=PCI_BUS_ID"

/* Every way to ask, where every container sees every GPU. */
TEST(containers_that_get_gpus_have_the_variable)
{
	static const struct row rows[] = {
		{ OURS("containers: [{name: a}]"), "untouched" },
		{ OURS("containers: [{name: a, " LIMITS("cpu: 1") "}]"), "untouched" },
		{ OURS("containers: [{name: a, " LIMITS("nvidia.com/gpu: 0") "}]"), "untouched" },
		{ OURS("containers: [{name: a, " GPU "}, {name: b}]"),
		  "by gpu-scheduler\na: " VISIBLE("a") " " ORDER "\nb:\n" },
		{ OURS("initContainers: [{name: i, " GPU "}, {name: j}],"
		       "containers: [{name: a, " GPU "}]"),
		  "by gpu-scheduler\ni: " VISIBLE("i") " " ORDER "\nj:\na: " VISIBLE("a") " " ORDER
											  "\n" },
		{ OURS("containers: [{name: a, " LIMITS("nvidia.com/mig-1g.5gb: 2") "}]"),
		  "by gpu-scheduler\na: " VISIBLE("a") " " ORDER "\n" },
		/* Other schedulers. */
		{ "{spec: {containers: [{name: a, " GPU "}]}}", "untouched" },
		{ "{spec: {schedulerName: default-scheduler, containers: [{name: a, " GPU "}]}}",
		  "untouched" },
		{ "{spec: {containers: [{name: a, " LIMITS(
			  "elasticgpu.io/gpu-core: 50") "}, {name: b, " GPU "}, {name: c}]}}",
		  "a: " VISIBLE("a") " " ORDER "\nb: " VISIBLE("b") " " ORDER "\nc:\n" },
		{ "{spec: {containers: [{name: a, " LIMITS("elasticgpu.io/gpu-core: \"0\"") "}]}}",
		  "untouched" },
		/* Claim, map and topology without limits are for all. */
		{ ANNOTATED("gpu.scheduling/claim", "c", TWO),
		  "a: " VISIBLE("a") " " ORDER "\nb: " VISIBLE("b") " " ORDER "\n" },
		{ ANNOTATED("gpu-scheduling-map", "0=n:0", TWO),
		  "a: " VISIBLE("a") " " ORDER "\nb: " VISIBLE("b") " " ORDER "\n" },
		{ ANNOTATED("gpu.scheduling/claim", "c",
			    "containers: [{name: a}, {name: b, " GPU "}]"),
		  "a:\nb: " VISIBLE("b") " " ORDER "\n" },
		{ ANNOTATED("topology.scheduler/gpu-count", "2", TWO), "untouched" },
		{ ANNOTATED("topology.scheduler/gpu-count", "2",
			    "schedulerName: topology-aware-scheduler, " TWO),
		  "by topology-aware-scheduler\ntopology.scheduler/gpu-count=2\n"
		  "a: " VISIBLE("a") " " ORDER "\nb: " VISIBLE("b") " " ORDER "\n" },
		{ ANNOTATED("topology.scheduler/preferred-domain", "leaf-1",
			    "schedulerName: gpu-scheduler, " TWO),
		  "untouched" },
		/* A pod that is still to be named. */
		{ "{metadata: {generateName: p-}, spec: {schedulerName: gpu-scheduler,"
		  " containers: [{name: a, " GPU "}]}}",
		  "by gpu-scheduler\na: " VISIBLE("a") " " ORDER "\n" },
	};
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	check_rows(&s, rows, ARRAY_SIZE(rows));
	stage_done(&s);
}

#define WITH_ENV(env) OURS("containers: [{name: a, env: " env ", " GPU "}]")
#define RESULT(env)   "by gpu-scheduler\na: " env "\n"

TEST(the_variable_goes_into_any_env_list)
{
	static const char entry[] = "{name: CUDA_VISIBLE_DEVICES, valueFrom: {fieldRef: "
				    "{apiVersion: v1, fieldPath: "
				    "\"metadata.annotations['elasticgpu.io/container-a']\"}}}";
	static const struct row rows[] = {
		{ WITH_ENV("[]"), RESULT(VISIBLE("a") " " ORDER) },
		{ WITH_ENV("null"), RESULT(VISIBLE("a") " " ORDER) },
		{ WITH_ENV("[{name: X, value: v}]"), RESULT(VISIBLE("a") " " ORDER " X=v") },
		{ WITH_ENV("[{name: X, value: v}, {name: CUDA_VISIBLE_DEVICES, value: \"3\"}]"),
		  RESULT(ORDER " X=v " VISIBLE("a")) },
		{ WITH_ENV("[{name: CUDA_VISIBLE_DEVICES}, {name: X, value: v},"
			   " {name: CUDA_VISIBLE_DEVICES, value: \"1\"},"
			   " {name: Z, value: w}, {name: CUDA_VISIBLE_DEVICES, value: \"2\"},"
			   " {name: CUDA_DEVICE_ORDER, value: FASTEST_FIRST}]"),
		  RESULT(VISIBLE("a") " X=v Z=w " ORDER) },
		{ WITH_ENV("[{name: CUDA_VISIBLE_DEVICES, valueFrom: {configMapKeyRef:"
			   " {name: c, key: k}}}]"),
		  RESULT(ORDER " " VISIBLE("a")) },
		{ WITH_ENV("[{name: CUDA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath:"
			   " \"metadata.annotations['elasticgpu.io/container-b']\"}}}]"),
		  RESULT(ORDER " " VISIBLE("a")) },
	};
	struct stage s;
	struct strbuf pod CLEANUP(strbuf_done) = STRBUF_INIT;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	check_rows(&s, rows, ARRAY_SIZE(rows));
	strbuf_addf(&pod, WITH_ENV("[{name: CUDA_DEVICE_ORDER, value: PCI_BUS_ID}, %s]"), entry);
	CHECK_INT(stage_run(&s, WEBHOOK_MUTATE, &(struct stage_review){ .object = pod.s }),
		  WEBHOOK_UNTOUCHED);
	stage_done(&s);
}

TEST(a_value_that_is_replaced_is_a_warning)
{
	struct stage s;
	const char *theirs = WITH_ENV("[{name: CUDA_VISIBLE_DEVICES, value: \"0,1\"}]");
	const char *sourced = WITH_ENV("[{name: CUDA_VISIBLE_DEVICES, valueFrom: {secretKeyRef:"
				       " {name: c, key: k}}}]");

	stage_init(&s);
	CHECK_INT(stage_run(&s, WEBHOOK_MUTATE, &(struct stage_review){ .object = theirs }),
		  WEBHOOK_PATCHED);
	CHECK_STR(stage_warning(&s), "container a: CUDA_VISIBLE_DEVICES is set by gpu-scheduler, "
				     "\"0,1\" was replaced");
	CHECK_INT(stage_run(&s, WEBHOOK_MUTATE, &(struct stage_review){ .object = sourced }),
		  WEBHOOK_PATCHED);
	CHECK_STR(stage_warning(&s), "container a: CUDA_VISIBLE_DEVICES is set by gpu-scheduler, "
				     "its source was replaced");
	CHECK_INT(
		stage_run(&s, WEBHOOK_MUTATE, &(struct stage_review){ .object = WITH_ENV("[]") }),
		WEBHOOK_PATCHED);
	CHECK(!stage_warning(&s));
	stage_done(&s);
}

TEST(a_long_name_has_the_key_that_the_scheduler_writes)
{
	static const char name[] =
		"a-container-with-a-name-of-sixty-three-characters-as-allowed-63";
	struct strbuf pod CLEANUP(strbuf_done) = STRBUF_INIT,
			  text CLEANUP(strbuf_done) = STRBUF_INIT;
	char key[ANNOTATION_KEY_MAX], expected[512];
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	CHECK_INT(strlen(name), 63);
	strbuf_addf(&pod, OURS("containers: [{name: %s, " GPU "}]"), name);
	snprintf(expected, sizeof(expected),
		 "by gpu-scheduler\n%s: CUDA_VISIBLE_DEVICES=@%s " ORDER "\n", name,
		 annotation_container_key(name, key));
	CHECK(annotation_key_check(key, NULL) == 0);
	CHECK_STR(mutated(&s, pod.s, &text), expected);
	stage_done(&s);
}

TEST(who_asks_in_our_words_and_names_another_scheduler_is_warned)
{
	static const struct {
		const char *pod, *warning;
	} rows[] = {
		{ "{metadata: {name: p, annotations: {gpu.scheduling/claim: c}}, spec: "
		  "{containers: "
		  "[{name: a}]}}",
		  "gpu.scheduling/claim asks for GPUs, but scheduler default-scheduler gives "
		  "none: "
		  "set spec.schedulerName to gpu-scheduler" },
		{ "{metadata: {name: p, annotations: {gpu-scheduling-map: 0=n:1}}, spec: "
		  "{schedulerName: other, containers: [{name: a}]}}",
		  "gpu-scheduling-map asks for GPUs, but scheduler other gives none: set "
		  "spec.schedulerName to gpu-scheduler" },
		{ "{metadata: {name: p, annotations: {topology.scheduler/gpu-count: \"1\"}}, "
		  "spec: "
		  "{containers: [{name: a}]}}",
		  "topology.scheduler/gpu-count asks for GPUs, but scheduler default-scheduler "
		  "gives none: set spec.schedulerName to gpu-scheduler" },
		{ "{metadata: {name: p, annotations: {gpu.scheduling/claim: c}}, spec: "
		  "{schedulerName: topology-aware-scheduler, containers: [{name: a}]}}",
		  NULL },
		{ "{metadata: {name: p}, spec: {containers: [{name: a, " GPU "}]}}", NULL },
	};
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct stage s;

	stage_init(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		mutated(&s, rows[i].pod, &text);
		const char *warning = stage_warning(&s);

		CHECKF(!warning == !rows[i].warning, "row %u: %s", i, warning);
		if (warning && rows[i].warning)
			CHECK_STR(warning, rows[i].warning);
	}
	s.options.set_scheduler = "gpu-scheduler";
	mutated(&s, rows[0].pod, &text);
	CHECK(!stage_warning(&s));
	s.options.set_scheduler = NULL;
	s.options.other_schedulers = true;
	mutated(&s, rows[0].pod, &text);
	CHECK(!stage_warning(&s));
	stage_done(&s);
}

/* Nodes have an agent, and so slots, only where somebody says that they do: a pod with one
 * would wait for ever elsewhere. */
TEST(unless_told_otherwise_containers_have_no_slot)
{
	static const struct row rows[] = {
		{ OURS("containers: [{name: a, " GPU "}]"),
		  "by gpu-scheduler\na: " VISIBLE("a") " " ORDER "\n" },
	};
	struct stage s;

	stage_init(&s);
	check_rows(&s, rows, ARRAY_SIZE(rows));
	stage_done(&s);
}

TEST(in_mode_cdi_such_containers_have_one_slot)
{
	static const struct row rows[] = {
		{ OURS("containers: [{name: a, " GPU "}, {name: b}]"),
		  "by gpu-scheduler\na slot: " VISIBLE("a") " " ORDER "\nb:\n" },
		{ ANNOTATED("gpu.scheduling/claim", "c", "containers: [{name: a}]"),
		  "a slot: " VISIBLE("a") " " ORDER "\n" },
		{ ANNOTATED("gpu.scheduling/claim", "c",
			    "containers: [{name: a, resources: {}}, {name: b, resources: "
			    "{requests: {cpu: 1}}}]"),
		  "a slot: " VISIBLE("a") " " ORDER "\nb slot: " VISIBLE("b") " " ORDER "\n" },
		{ OURS("containers: [{name: a, " LIMITS(
			  "nvidia.com/gpu: 1, gpu.scheduling/slot: 5") "}]"),
		  "by gpu-scheduler\na slot: " VISIBLE("a") " " ORDER "\n" },
		/* As we had it, before another webhook added the second container. */
		{ ANNOTATED("gpu.scheduling/claim", "c",
			    "containers: [{name: a, resources: {limits: {gpu.scheduling/slot: "
			    "\"1\"}, requests: {gpu.scheduling/slot: \"1\"}}}, {name: b, " GPU
			    "}]"),
		  "a:\nb slot: " VISIBLE("b") " " ORDER "\n" },
	};
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_CDI;
	check_rows(&s, rows, ARRAY_SIZE(rows));
	stage_done(&s);
}

#define MAP(name, text, spec)                                                            \
	"{metadata: {" name ", annotations: {gpu-scheduling-map: \"" text "\"}}, spec: " \
	"{schedulerName: gpu-scheduler, " spec "}}"
#define LINES "0=n:1\\n1=n:3,2\\n"
#define ONE   "containers: [{name: a}]"

TEST(ids_of_a_map_are_literal_only_where_every_gpu_is_visible)
{
	static const char filled[] = "by gpu-scheduler\na: CUDA_VISIBLE_DEVICES=2,3 " ORDER "\n";
	static const char referred[] = RESULT(VISIBLE("a") " " ORDER);
	static const struct row rows[] = {
		{ MAP("name: w-1", LINES, ONE), filled },
		{ MAP("generateName: w-, labels: {batch.kubernetes.io/job-completion-index: "
		      "\"1\"}",
		      LINES, ONE),
		  filled },
		{ MAP("name: x, labels: {apps.kubernetes.io/pod-index: \"1\"}", LINES, ONE),
		  filled },
		/* No index, a random one, none in the map, a map that is wrong. */
		{ MAP("name: w", LINES, ONE), referred },
		{ MAP("name: w-1, labels: {pod-template-hash: abc}", LINES, ONE), referred },
		{ MAP("name: w-7", LINES, ONE), referred },
		{ MAP("name: w-1", "1=n", ONE), referred },
		/* Limits and claims deal the ids out. */
		{ MAP("name: w-1", LINES, "containers: [{name: a, " GPU "}]"), referred },
		/* We gave them before another webhook added a container; and 7 we did not. */
		{ MAP("name: w-1", LINES,
		      "containers: [{name: a, env: [{name: CUDA_VISIBLE_DEVICES, value: "
		      "\"2,3\"}]}, "
		      "{name: b, " GPU "}]"),
		  "by gpu-scheduler\na: " VISIBLE("a") "\nb: " VISIBLE("b") " " ORDER "\n" },
		{ MAP("name: w-1", LINES,
		      "containers: [{name: a, env: [{name: CUDA_VISIBLE_DEVICES, value: \"7\"}]}, "
		      "{name: b, " GPU "}]"),
		  "by gpu-scheduler\na: CUDA_VISIBLE_DEVICES=7\nb: " VISIBLE("b") " " ORDER "\n" },
	};
	static const enum injection_mode others[] = { INJECTION_UNKNOWN, INJECTION_CDI,
						      INJECTION_ENV, INJECTION_EXTERNAL };
	struct stage s;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	check_rows(&s, rows, ARRAY_SIZE(rows));
	/* Another scheduler places the pod where it likes. */
	CHECK_STR(mutated(&s, ANNOTATED("gpu-scheduling-map", "0=n:1", ONE), &text),
		  "a: " VISIBLE("a") " " ORDER "\n");
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
		s.options.injection = others[i];
		CHECK(strstr(mutated(&s, MAP("name: w-1", LINES, ONE), &text), VISIBLE("a")));
	}
	stage_done(&s);
}

TEST(the_nvidia_variable_follows_the_mode)
{
	const char *pod = OURS("containers: [{name: a, " GPU "}, {name: b, env: [{name: "
			       "NVIDIA_VISIBLE_DEVICES, value: all}]}]");
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_ENV;
	CHECK_STR(mutated(&s, pod, &text),
		  "by gpu-scheduler\na: " VISIBLE(
			  "a") " " ORDER " NVIDIA_VISIBLE_DEVICES=@elasticgpu.io/container-a\n"
			       "b: NVIDIA_VISIBLE_DEVICES=void\n");
	s.options.injection = INJECTION_CDI;
	CHECK_STR(mutated(&s, pod, &text),
		  "by gpu-scheduler\na slot: " VISIBLE("a") " " ORDER
							    "\nb: NVIDIA_VISIBLE_DEVICES=all\n");
	CHECK(webhook_inject_add(&s.options, "nvidia", &s.err) == 0);
	CHECK(webhook_inject_add(&s.options, "runtimeclass=nvidia", &s.err) == 0);
	CHECK_STR(mutated(&s, pod, &text), "by gpu-scheduler\nin nvidia\na slot: " VISIBLE(
						   "a") " " ORDER " NVIDIA_VISIBLE_DEVICES=void\n"
							"b: NVIDIA_VISIBLE_DEVICES=void\n");
	CHECK_STR(mutated(&s, OURS("containers: [{name: a}]"), &text), "untouched");
	CHECK_STR(mutated(&s, OURS("runtimeClassName: own, containers: [{name: a, " GPU "}]"),
			  &text),
		  "by gpu-scheduler\nin own\na slot: " VISIBLE(
			  "a") " " ORDER " NVIDIA_VISIBLE_DEVICES=void\n");
	stage_done(&s);
}

#define MPS(rest) VISIBLE("a") " " ORDER " CUDA_MPS_PIPE_DIRECTORY=/run/mps" rest

TEST(shares_have_the_limits_of_mps)
{
	static const struct row rows[] = {
		{ OURS("containers: [{name: a, " LIMITS(
			  "elasticgpu.io/gpu-core: 30, elasticgpu.io/gpu-memory: 4000") "}]"),
		  RESULT(MPS(" CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30"
			     " CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4000M")) },
		{ OURS("containers: [{name: a, " LIMITS("elasticgpu.io/qgpu-core: 30") "}]"),
		  RESULT(MPS(" CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30")) },
		{ OURS("containers: [{name: a, " LIMITS("elasticgpu.io/gpu-memory: 512") "}]"),
		  RESULT(MPS(" CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=512M")) },
		/* Whole cards. */
		{ OURS("containers: [{name: a, " LIMITS("elasticgpu.io/gpu-core: 200") "}]"),
		  RESULT(VISIBLE("a") " " ORDER) },
		{ OURS("containers: [{name: a, " GPU "}]"), RESULT(VISIBLE("a") " " ORDER) },
		{ ANNOTATED("gpu.scheduling/claim", "shared", ONE),
		  "a: " MPS(" CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25") "\n" },
	};
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	CHECK(webhook_inject_add(&s.options, "mps=/run/mps", &s.err) == 0);
	stage_around(&s, "{kind: GpuClaim, metadata: {name: shared}, spec: {devices: {count: 1,"
			 " exclusivity: Shared, core: 25}}}");
	check_rows(&s, rows, ARRAY_SIZE(rows));
	stage_done(&s);
}

TEST(a_claim_whose_limits_are_not_known_is_a_warning)
{
	const struct stage_review claimed = { .object = ANNOTATED("gpu.scheduling/claim", "shared",
								  ONE) };
	const struct stage_review limited = { .object = ANNOTATED("gpu.scheduling/claim", "shared",
								  "containers: [{name: a, " GPU
								  "}]") };
	struct stage s;

	stage_init(&s);
	s.options.other_schedulers = true;
	stage_run(&s, WEBHOOK_MUTATE, &claimed);
	CHECK(!stage_warning(&s));
	CHECK(webhook_inject_add(&s.options, "mps", &s.err) == 0);
	stage_run(&s, WEBHOOK_MUTATE, &claimed);
	CHECK_STR(stage_warning(&s), "GpuClaim shared is not known to the webhook, not yet or for "
				     "want of --claims: if it is a share, containers are not "
				     "kept to it by MPS");
	stage_run(&s, WEBHOOK_MUTATE, &limited);
	CHECK(!stage_warning(&s));
	stage_around(&s, "{kind: GpuClaim, metadata: {name: shared}, spec: {}}");
	stage_run(&s, WEBHOOK_MUTATE, &claimed);
	CHECK(!stage_warning(&s));
	stage_done(&s);
}

TEST(what_a_claim_asks_of_network_and_storage_is_told_to_the_libraries)
{
	static const struct row rows[] = {
		{ ANNOTATED("gpu.scheduling/claim", "rdma", ONE),
		  "a: " VISIBLE("a") " " ORDER
				     " NCCL_IB_HCA=mlx5_0,mlx5_1 NCCL_NET_GDR_LEVEL=PHB\n" },
		{ ANNOTATED("gpu.scheduling/claim", "files", ONE),
		  "a: " VISIBLE("a") " " ORDER " CUFILE_ENV_PATH=/etc/cufile.json "
				     "CUFILE_ENV_PATH_JSON=/etc/cufile.json\n" },
		{ ANNOTATED("gpu.scheduling/claim", "plain", ONE),
		  "a: " VISIBLE("a") " " ORDER "\n" },
		{ ANNOTATED("gpu.scheduling/claim", "nobody", ONE),
		  "a: " VISIBLE("a") " " ORDER "\n" },
		/* Who sets it knows better. */
		{ ANNOTATED("gpu.scheduling/claim", "rdma",
			    "containers: [{name: a, env: [{name: NCCL_IB_HCA, value: mlx5_7}]}]"),
		  "a: " VISIBLE("a") " " ORDER " NCCL_NET_GDR_LEVEL=PHB NCCL_IB_HCA=mlx5_7\n" },
	};
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	stage_around(&s,
		     "{kind: GpuClaim, metadata: {name: rdma}, spec: {network: {rdmaRequired: "
		     "true, preferredHcas: [mlx5_0, mlx5_1]}}}\n---\n"
		     "{kind: GpuClaim, metadata: {name: files}, spec: {storage: {cuFile: true}}}"
		     "\n---\n{kind: GpuClaim, metadata: {name: plain}, spec: {network: "
		     "{rdmaRequired: false}}}\n");
	check_rows(&s, rows, ARRAY_SIZE(rows));
	stage_done(&s);
}

TEST(the_scheduler_is_set_for_pods_that_ask_for_gpus_and_name_none)
{
	static const struct row rows[] = {
		{ "{spec: {" ONE "}}", "untouched" },
		{ "{spec: {containers: [{name: a, " GPU "}]}}",
		  "by gpu-scheduler\na: " VISIBLE("a") " " ORDER "\n" },
		{ "{spec: {schedulerName: default-scheduler, containers: [{name: a, " GPU "}]}}",
		  "by gpu-scheduler\na: " VISIBLE("a") " " ORDER "\n" },
		{ "{spec: {schedulerName: volcano, containers: [{name: a, " GPU "}]}}",
		  "untouched" },
		{ ANNOTATED("topology.scheduler/gpu-count", "1", ONE),
		  "by gpu-scheduler\ntopology.scheduler/gpu-count=1\na: " VISIBLE("a") " " ORDER
										       "\n" },
		{ OURS("containers: [{name: a, " GPU "}]"), RESULT(VISIBLE("a") " " ORDER) },
	};
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	s.options.set_scheduler = "gpu-scheduler";
	check_rows(&s, rows, ARRAY_SIZE(rows));
	stage_done(&s);
}

TEST(pods_of_other_schedulers_are_completed_only_when_told)
{
	const char *pod =
		"{spec: {schedulerName: default-scheduler, containers: [{name: a, " GPU "}]}}";
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	CHECK_STR(mutated(&s, pod, &text), "untouched");
	s.options.other_schedulers = true;
	CHECK_STR(mutated(&s, pod, &text),
		  "by default-scheduler\na: " VISIBLE("a") " " ORDER "\n");
	stage_done(&s);
}

#define OWNED(kind, name, more)                                                   \
	"{metadata: {generateName: p-, ownerReferences: [{apiVersion: batch/v1, " \
	"kind: " kind ", name: " name ", controller: true}]" more "}, spec: "     \
	"{schedulerName: gpu-scheduler, " ONE "}}"
#define JOB(name, count)                                                                        \
	"{apiVersion: batch/v1, kind: Job, metadata: {name: " name ", annotations: "            \
	"{topology.scheduler/gpu-count: \"" count "\", topology.scheduler/placement-strategy: " \
	"consolidated}}, spec: {parallelism: 4}}\n---\n"

TEST(annotations_of_owners_are_copied_when_told)
{
	static const struct row rows[] = {
		{ OWNED("Job", "even", ""),
		  "by gpu-scheduler\ntopology.scheduler/gpu-count=2\n"
		  "topology.scheduler/placement-strategy=consolidated\na: " VISIBLE("a") " " ORDER
											 "\n" },
		{ OWNED("Job", "even",
			", annotations: {topology.scheduler/gpu-count: \"1\", x: \"y\"}"),
		  "by gpu-scheduler\ntopology.scheduler/gpu-count=1\n"
		  "topology.scheduler/placement-strategy=consolidated\na: " VISIBLE("a") " " ORDER
											 "\n" },
		{ OWNED("Job", "odd", ""),
		  "by "
		  "gpu-scheduler\ntopology.scheduler/placement-strategy=consolidated\na: " VISIBLE(
			  "a") " " ORDER "\n" },
		{ OWNED("Job", "unknown", ""), RESULT(VISIBLE("a") " " ORDER) },
		{ OWNED("ReplicaSet", "even", ""), "untouched" },
	};
	struct stage s;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	stage_around(&s, JOB("even", "8") JOB("odd", "7"));
	/* Not copied, but seen. */
	CHECK_STR(mutated(&s, OWNED("Job", "even", ""), &text), RESULT(VISIBLE("a") " " ORDER));
	s.options.copy_owner_annotations = true;
	check_rows(&s, rows, ARRAY_SIZE(rows));
	CHECK_INT(stage_run(&s, WEBHOOK_MUTATE,
			    &(struct stage_review){ .object = OWNED("Job", "odd", "") }),
		  WEBHOOK_PATCHED);
	CHECK_STR(stage_warning(&s), "topology.scheduler/gpu-count of the Job does not divide "
				     "evenly among its pods");
	stage_done(&s);
}

#define OWNED_BY(version, kind, scheduler)                                    \
	"{metadata: {ownerReferences: [{apiVersion: " version ", kind: " kind \
	", name: plain, controller: true}]}, spec: {schedulerName: " scheduler ", " ONE "}}"

/* It may do so as long as the pod is not bound, and the scheduler reads it then. */
TEST(pods_of_ours_whose_owner_may_ask_for_gpus_have_the_variable)
{
	static const struct row rows[] = {
		{ OWNED_BY("batch/v1", "Job", "gpu-scheduler"), RESULT(VISIBLE("a") " " ORDER) },
		{ OWNED_BY("apps/v1", "ReplicaSet", "gpu-scheduler"),
		  RESULT(VISIBLE("a") " " ORDER) },
		{ OWNED_BY("apps/v1", "StatefulSet", "gpu-scheduler"),
		  RESULT(VISIBLE("a") " " ORDER) },
		{ OWNED_BY("apps/v1", "DaemonSet", "gpu-scheduler"), "untouched" },
		{ OWNED_BY("kubeflow.org/v1", "Job", "gpu-scheduler"), "untouched" },
		{ OWNED_BY("batch/v1", "Job", "default-scheduler"), "untouched" },
		{ "{metadata: {ownerReferences: [{apiVersion: batch/v1, kind: Job, name: "
		  "plain}]}, "
		  "spec: {schedulerName: gpu-scheduler, " ONE "}}",
		  "untouched" },
	};
	struct stage s;

	stage_init(&s);
	check_rows(&s, rows, ARRAY_SIZE(rows));
	stage_around(&s, "{apiVersion: batch/v1, kind: Job, metadata: {name: plain}}");
	check_rows(&s, rows, ARRAY_SIZE(rows));
	stage_done(&s);
}

/* They could keep it from starting if it gets no GPU after all. */
TEST(a_slot_and_a_runtime_class_are_not_guessed)
{
	const struct stage_review review = { .object = OWNED_BY("batch/v1", "Job",
								"gpu-scheduler") };
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_CDI;
	CHECK(webhook_inject_add(&s.options, "runtimeclass=nvidia", &s.err) == 0);
	CHECK_STR(mutated(&s, review.object, &text), RESULT(VISIBLE("a") " " ORDER));
	stage_run(&s, WEBHOOK_MUTATE, &review);
	CHECK_STR(stage_warning(&s), "what owns the pod is not known to the webhook: if it asks "
				     "for GPUs, ask for them in its pod template, or containers "
				     "get no gpu.scheduling/slot");
	stage_around(&s, "{apiVersion: batch/v1, kind: Job, metadata: {name: plain}}");
	stage_run(&s, WEBHOOK_MUTATE, &review);
	CHECK(!stage_warning(&s));
	stage_done(&s);
}

TEST(a_patch_is_tied_to_the_names_it_was_made_for)
{
	struct stage s;

	stage_init(&s);
	s.options.injection = INJECTION_ALL;
	CHECK_INT(stage_run(&s, WEBHOOK_MUTATE,
			    &(struct stage_review){
				    .object = OURS("containers: [{name: b}, {name: a, env: "
						   "[{name: CUDA_DEVICE_ORDER, value: x}], " GPU
						   "}]") }),
		  WEBHOOK_PATCHED);
	CHECK_STR(s.patch.s,
		  "[{\"op\":\"test\",\"path\":\"/spec/containers/1/name\",\"value\":\"a\"},"
		  "{\"op\":\"test\",\"path\":\"/spec/containers/1/env/0/name\","
		  "\"value\":\"CUDA_DEVICE_ORDER\"},"
		  "{\"op\":\"replace\",\"path\":\"/spec/containers/1/env/0\",\"value\":"
		  "{\"name\":\"CUDA_DEVICE_ORDER\",\"value\":\"PCI_BUS_ID\"}},"
		  "{\"op\":\"add\",\"path\":\"/spec/containers/1/env/0\",\"value\":"
		  "{\"name\":\"CUDA_VISIBLE_DEVICES\",\"valueFrom\":{\"fieldRef\":"
		  "{\"apiVersion\":\"v1\",\"fieldPath\":"
		  "\"metadata.annotations['elasticgpu.io/container-a']\"}}}}]");
	stage_done(&s);
}

TEST(only_pods_that_are_created_are_changed)
{
	static const struct stage_review reviews[] = {
		{ .operation = "UPDATE", .object = OURS("containers: [{name: a, " GPU "}]") },
		{ .resource = "deployments",
		  .group = "apps",
		  .object = OURS("containers: [{name: a, " GPU "}]") },
		{ .subresource = "binding", .object = OURS("containers: [{name: a, " GPU "}]") },
		{ .operation = "DELETE" },
	};
	struct stage s;

	stage_init(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(reviews); i++)
		CHECK_INT(stage_run(&s, WEBHOOK_MUTATE, &reviews[i]), WEBHOOK_UNTOUCHED);
	stage_done(&s);
}

TEST(options_that_contradict_each_other_are_refused)
{
	struct webhook_options options = webhook_options_default;
	struct err err = ERR_INIT;

	CHECK(webhook_options_check(&options, &err) == 0);
	CHECK(webhook_inject_add(&options, "nvidia", &err) == 0);
	CHECK(webhook_options_check(&options, &err) == -EINVAL);
	CHECK(webhook_injection_parse("cdi", &options.injection, &err) == 0);
	CHECK(webhook_options_check(&options, &err) == 0);
	CHECK(webhook_injection_parse("all", &options.injection, &err) == 0);
	CHECK(webhook_options_check(&options, &err) == -EINVAL);
	CHECK(webhook_injection_parse("env", &options.injection, &err) == 0);
	CHECK(webhook_inject_add(&options, "mps", &err) == 0);
	CHECK(webhook_options_check(&options, &err) == 0);
	CHECK(webhook_injection_parse("cdi", &options.injection, &err) == 0);
	CHECK(webhook_options_check(&options, &err) == -EINVAL);
	options = webhook_options_default;
	options.copy_owner_annotations = true;
	CHECK(webhook_options_check(&options, &err) == -EINVAL);
	options = webhook_options_default;
	options.set_scheduler = "topology-aware-scheduler";
	CHECK(webhook_options_check(&options, &err) == 0);
	options.set_scheduler = "gpu-schedular";
	CHECK(webhook_options_check(&options, &err) == -EINVAL);
	CHECK(strstr(err.text, "--set-scheduler=gpu-schedular is none of"));
	options.other_schedulers = true;
	CHECK(webhook_options_check(&options, &err) == 0);
	CHECK(webhook_inject_add(&options, "runtimeclass=", &err) == -EINVAL);
	CHECK(webhook_inject_add(&options, "everything", &err) == -EINVAL);
	CHECK(webhook_injection_parse("unknown", &options.injection, &err) == -EINVAL);
}

TEST(what_is_no_review_gets_no_answer)
{
	static const struct {
		const char *body;
		int rc, status;
	} rows[] = {
		{ "", -EINVAL, 400 },
		{ "{", -EINVAL, 400 },
		{ "[]", -EINVAL, 400 },
		{ "{\"kind\":\"Pod\"}", -EINVAL, 400 },
		{ "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\","
		  "\"request\":{\"uid\":\"x\"}}",
		  -EINVAL, 400 },
		{ "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\"}", -EINVAL,
		  400 },
		{ "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
		  "\"request\":{\"uid\":\"\"}}",
		  -EINVAL, 400 },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
		  "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
		  -E2BIG, 413 },
	};
	struct stage s;

	stage_init(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		int rc = webhook_review(&s.options, WEBHOOK_MUTATE, rows[i].body,
					strlen(rows[i].body), &s.answer, &s.err);

		CHECKF(rc == rows[i].rc, "row %u: %d", i, rc);
		CHECK_INT(webhook_http_status(rc), rows[i].status);
		CHECK(s.answer.len == 0 && s.err.text[0]);
	}
	stage_done(&s);
}

TEST_MAIN()
