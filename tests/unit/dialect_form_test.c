/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#define T		    "topology.scheduler/"
#define POD(metadata, spec) "kind: Pod\nmetadata: {name: p" metadata "}\nspec: " spec "\n"
#define SPEC(spec)	    POD("", spec)
#define NOTED(annotations)  POD(", annotations: {" annotations "}", "{containers: [{name: a}]}")
#define CONTAINER(fields)   SPEC("{containers: [{name: a, " fields "}]}")
#define QUOTES		    " must be a string: put it in quotes"
#define NAME_RULE                                                                       \
	": a name has at most 63 lower-case letters, digits and '-', none of these at " \
	"either end"
#define LONGEST "23456789012345678901234567890123456789012345678901234567890123"
#define LONG	"a234567890123456789012345678901234567890123456789012345678901234"

TEST(values_that_are_no_strings_are_refused)
{
	static const struct bad_pod rows[] = {
		{ NOTED(T "gpu-count: 16"), "metadata.annotations " T "gpu-count" QUOTES, 0 },
		{ NOTED("gpu.scheduling/claim: 5"),
		  "metadata.annotations gpu.scheduling/claim" QUOTES, 0 },
		{ NOTED(T "latency-sensitive: true"),
		  "metadata.annotations " T "latency-sensitive" QUOTES, 0 },
		{ NOTED(T "gpu-count: "), "metadata.annotations " T "gpu-count" QUOTES, 0 },
		{ NOTED("gpu-scheduling-map: "), "metadata.annotations gpu-scheduling-map" QUOTES,
		  0 },
		{ NOTED("example.com/size: 3"), "metadata.annotations example.com/size" QUOTES,
		  0 },
		{ POD(", labels: {scheduling.x-k8s.io/pod-group: 7}", "{containers: [{name: a}]}"),
		  "metadata.labels scheduling.x-k8s.io/pod-group" QUOTES, 0 },
		{ POD(", annotations: [a]", "{containers: [{name: a}]}"),
		  "metadata.annotations must be a mapping", 0 },
		{ POD(", ownerReferences: [{kind: Job, name: j, controller: true}]",
		      "{containers: [{name: a}]}") "---\nkind: Job\nmetadata: {name: j,"
						   " annotations: {" T "gpu-count: 4}}\n",
		  "Job j: metadata.annotations " T "gpu-count" QUOTES, 0 },
		{ SPEC("{containers: [{name: a}, {name: y}]}"), "spec.containers[1].name" QUOTES,
		  0 },
		{ SPEC("{initContainers: [{name: 1}], containers: [{name: a}]}"),
		  "spec.initContainers[0].name" QUOTES, 0 },
		{ "kind: Pod\nmetadata: {name: 7}\n", "metadata.name" QUOTES, 0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST(slips_in_our_own_keys_are_refused)
{
	static const struct bad_pod rows[] = {
		{ NOTED(T "gpu-cuont: '4'"),
		  "metadata.annotations " T "gpu-cuont: did you mean " T "gpu-count?", 0 },
		{ NOTED("gpu.scheduling/clam: c"),
		  "metadata.annotations gpu.scheduling/clam: did you mean gpu.scheduling/claim?",
		  0 },
		{ NOTED(T "colour: red"), "metadata.annotations " T "colour is unknown", 0 },
		{ NOTED("elasticgpu.io/gpu-core: '5'"),
		  "metadata.annotations elasticgpu.io/gpu-core is unknown", 0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST(parts_of_the_wrong_type_are_refused)
{
	static const struct bad_pod rows[] = {
		{ "kind: Pod\nmetadata: {name: p}\n", "the pod has no spec", 0 },
		{ "kind: Pod\nmetadata: {}\n", "a pod has no metadata.name", 0 },
		{ SPEC("{}"), "the pod has no containers", 0 },
		{ SPEC("{containers: []}"), "the pod has no containers", 0 },
		{ SPEC("{initContainers: [{name: a}]}"), "the pod has no containers", 0 },
		{ SPEC("{containers: {name: a}}"), "spec.containers must be a list", 0 },
		{ SPEC("{containers: [{name: a}], initContainers: x}"),
		  "spec.initContainers must be a list", 0 },
		{ SPEC("{containers: [a]}"), "spec.containers[0] must be a mapping", 0 },
		{ CONTAINER("resources: 4"), "container a: resources must be a mapping", 0 },
		{ CONTAINER("resources: {limits: [nvidia.com/gpu]}"),
		  "container a: limits must be a mapping", 0 },
		{ CONTAINER("resources: {requests: 1}"), "container a: requests must be a mapping",
		  0 },
		{ SPEC("{containers: [{name: a}], overhead: 3}"),
		  "spec: overhead must be a mapping", 0 },
		{ SPEC("{containers: [{name: a}], resources: {requests: 3}}"),
		  "spec: requests must be a mapping", 0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST(fields_that_nobody_knows_are_refused)
{
	static const struct bad_pod rows[] = {
		{ SPEC("{contianers: [{name: a}]}"),
		  "spec: unknown field contianers, did you mean containers?", 0 },
		{ CONTAINER("resource: {limits: {nvidia.com/gpu: 1}}"),
		  "container a: unknown field resource, did you mean resources?", 0 },
		{ CONTAINER("resources: {limit: {nvidia.com/gpu: 1}}"),
		  "container a: unknown field limit, did you mean limits?", 0 },
		{ CONTAINER("gpus: 1"), "container a: unknown field gpus", 0 },
		{ SPEC("{gpus: 3, containers: [{name: a}]}"), "spec: unknown field gpus", 0 },
	};
	struct bench b;

	bench_check_bad(rows, ARRAY_SIZE(rows));
	/* What the API server let in may be of a later release. */
	bench_init(&b);
	CHECK(bench_read(&b, POD(", uid: u", "{gpus: 3, containers: [{name: a}]}")) == 0);
	bench_done(&b);
}

TEST(names_of_containers_are_labels_and_each_is_there_once)
{
	static const struct bad_pod rows[] = {
		{ SPEC("{containers: [{image: x}]}"), "a container has no name", 0 },
		{ SPEC("{containers: [{name: ''}]}"), "a container has no name", 0 },
		{ SPEC("{containers: [{name: Main}]}"), "container Main" NAME_RULE, 0 },
		{ SPEC("{containers: [{name: a.b}]}"), "container a.b" NAME_RULE, 0 },
		{ SPEC("{containers: [{name: -a}]}"), "container -a" NAME_RULE, 0 },
		{ SPEC("{containers: [{name: a-}]}"), "container a-" NAME_RULE, 0 },
		{ SPEC("{containers: [{name: " LONG "}]}"), "container " LONG NAME_RULE, 0 },
		{ SPEC("{containers: [{name: \"a\\e[2J\"}]}"), "container a?[2J" NAME_RULE, 0 },
		{ SPEC("{containers: [{name: a}, {name: a}]}"), "two containers are named a", 0 },
		{ SPEC("{initContainers: [{name: a}], containers: [{name: a}]}"),
		  "two containers are named a", 0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST(messages_never_carry_control_characters)
{
	static const struct bad_pod rows[] = {
		{ NOTED("gpu.scheduling/claim: \"c\\e[31m\\n\""),
		  "GpuClaim c?[31m? does not exist in namespace default", ENOENT },
		{ NOTED("gpu-scheduling-map: \"0=\\x1b:0\""),
		  "gpu-scheduling-map line 1: node ? does not exist", ENOENT },
		{ SPEC("{priorityClassName: \"\\x9bc\\u00fc\", containers: [{name: a}]}"),
		  "PriorityClass ??c\u00fc does not exist", ENOENT },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST(what_is_well_formed_passes)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, NOTED("example.com/note: , elasticgpu.io/container-a: '0',"
				   " elasticgpu.io/assumed: 'true'")) == 0);
	CHECK(bench_read(&b, SPEC("{initContainers: , overhead: , containers: [{name: 'y',"
				  " image: x, resources: {limits: , claims: []}}]}")) == 0);
	/* As long as it may be. */
	CHECK(bench_read(&b, SPEC("{containers: [{name: b" LONGEST "}]}")) == 0);
	bench_done(&b);
}

TEST_MAIN()
