/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#include "dialect/map.h"

#define POD(name, extra, map, spec)                    \
	"kind: Pod\nmetadata: {name: " name ", " extra \
	" annotations: {gpu-scheduling-map: \"" map "\"}}\nspec: " spec "\n"
#define PLAIN(map) POD("p-0", "", map, "{containers: [{name: a}, {name: b}]}")
#define LIMIT(map, limit) \
	POD("p-0", "", map, "{containers: [{name: a, resources: {limits: {" limit "}}}]}")

TEST(a_map_is_read_line_by_line)
{
	struct arena arena;
	struct placement_map map;

	arena_init(&arena, 1 << 20);
	CHECK(placement_map_parse("2=b:0\n\n# note\n 0 = a : 3 , 1 \r\n1=b:0,4\n", &arena, &map,
				  NULL) == 0);
	CHECK_INT(map.count, 3);
	const struct map_line *line = placement_map_find(&map, 0);
	CHECK(line != NULL);
	CHECK_STR(line->node, "a");
	CHECK_INT(line->gpus, 0xA);
	CHECK_INT(line->line, 4);
	CHECK_INT(line->sharers[1], 1);
	CHECK_INT(placement_map_find(&map, 2)->sharers[0], 2);
	CHECK_INT(placement_map_find(&map, 1)->sharers[4], 1);
	CHECK(placement_map_find(&map, 3) == NULL);
	arena_done(&arena);
}

TEST(a_pod_is_pinned_to_its_line)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, PLAIN("0=alpha:2,3\\n1=beta:0")) == 0);
	CHECK_INT(b.wish.request.node, cluster_node_find(b.cluster, "alpha"));
	CHECK_INT(b.wish.request.asks_count, 1);
	CHECK_INT(b.wish.request.asks[0].kind, ASK_WHOLE);
	CHECK_INT(b.wish.request.asks[0].pinned, 0xC);
	CHECK_INT(b.wish.containers[0].asks, 1);
	CHECK_INT(b.wish.containers[1].asks, 1);
	CHECK_INT(b.wish.index, 0);
	bench_done(&b);
}

TEST(gpus_that_several_lines_name_are_shared_by_equal_parts)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, PLAIN("0=alpha:0,1,2\\n1=alpha:1\\n2=alpha:1,2")) == 0);
	CHECK_INT(b.wish.request.asks_count, 3);
	CHECK_INT(b.wish.request.asks[0].kind, ASK_WHOLE);
	CHECK_INT(b.wish.request.asks[0].pinned, 1);
	CHECK_INT(b.wish.request.asks[1].kind, ASK_SHARE);
	CHECK_INT(b.wish.request.asks[1].pinned, 2);
	CHECK_INT(b.wish.request.asks[1].core_milli, 333);
	CHECK_INT(b.wish.request.asks[1].mem_milli, 333);
	CHECK_INT(b.wish.request.asks[2].core_milli, 500);
	CHECK(b.wish.request.asks[1].group != 0);
	CHECK_INT(b.wish.containers[0].asks, 7);
	bench_done(&b);
}

TEST(the_index_comes_from_labels_names_or_what_is_free)
{
	static const struct {
		const char *name, *extra;
		uint32_t taken, index;
	} rows[] = {
		{ "p-1", "", 0, 1 },
		{ "p-1", "labels: {apps.kubernetes.io/pod-index: '2'},", 0, 2 },
		{ "p-1", "labels: {batch.kubernetes.io/job-completion-index: '3'},", 0, 3 },
		/* A ReplicaSet's suffix is no ordinal, even if it is all digits. */
		{ "web-7d4-12345", "labels: {pod-template-hash: 7d4},", 0, 0 },
		{ "web-12345", "ownerReferences: [{kind: ReplicaSet, name: web}],", 2, 2 },
		{ "run-12345", "ownerReferences: [{kind: Job, name: run}],", 1, 1 },
		{ "alone", "", 3, 3 },
		/* A StatefulSet numbers its pods, though it sets generateName too. */
		{ "db-2",
		  "generateName: db-, ownerReferences: [{kind: StatefulSet, name: db,"
		  " controller: true}],",
		  0, 2 },
		{ "db-2", "generateName: db-,", 0, 0 },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char yaml[512];

		snprintf(yaml, sizeof(yaml),
			 POD("%s", "%s", "0=alpha:0\\n1=alpha:1\\n2=alpha:2\\n3=alpha:3",
			     "{containers: [{name: a}]}"),
			 rows[i].name, rows[i].extra);
		b.taken = rows[i].taken;
		CHECKF(bench_read(&b, yaml) == 0, "row %zu: %s", i, b.err.text);
		CHECKF(b.wish.index == rows[i].index, "row %zu: %u", i, b.wish.index);
		CHECKF(b.wish.request.asks[0].pinned == 1u << rows[i].index, "row %zu", i);
	}
	bench_done(&b);
}

#define OF(kind, name) "ownerReferences: [{kind: " kind ", name: " name ", controller: true}]"
#define ROLLED(set, map)                                                           \
	POD(set "-x", OF("ReplicaSet", set) ",", map, "{containers: [{name: a}]}") \
	"---\nkind: ReplicaSet\nmetadata: {name: " set                             \
	", " OF("Deployment",                                                      \
		"web") "}\nspec: {}\n---\nkind: Deployment\nmetadata: {name: web}\nspec: {}\n"

TEST(pods_of_a_deployment_are_siblings_while_it_rolls)
{
	uint32_t group;
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, ROLLED("old", "0=alpha:1\\n1=alpha:1")) == 0);
	CHECK_STR(b.wish.workload, "map/default/Deployment/web");
	group = b.wish.request.asks[0].group;
	CHECK(bench_read(&b, ROLLED("new", "0=alpha:1\\n1=alpha:1")) == 0);
	CHECK_STR(b.wish.workload, "map/default/Deployment/web");
	CHECK_INT(b.wish.request.asks[0].group, group);
	/* Those of another map have other indexes, but do not share its GPUs. */
	CHECK(bench_read(&b, ROLLED("new", "0=alpha:1\\n1=alpha:1\\n2=alpha:1")) == 0);
	CHECK_STR(b.wish.workload, "map/default/Deployment/web");
	CHECK(b.wish.request.asks[0].group != group);
	bench_done(&b);
}

TEST(maps_are_not_remembered)
{
	struct bench b;

	bench_init(&b);
	uint32_t strings = cluster_intern(b.cluster, "before");
	for (unsigned i = 0; i < 32; i++) {
		char pod[512];

		snprintf(pod, sizeof(pod), PLAIN("0=alpha:1\\n%u=alpha:1"), i + 1);
		CHECK(bench_read(&b, pod) == 0);
		CHECK(b.wish.request.asks[0].group != 0);
	}
	CHECK_INT(cluster_intern(b.cluster, "after"), strings + 1);
	bench_done(&b);
}

TEST(limits_are_dealt_the_ids_in_their_order)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b,
			 POD("p-0", "", "0=alpha:1,4,6",
			     "{containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}},"
			     " {name: b, resources: {limits: {nvidia.com/gpu: 2}}}]}")) == 0);
	CHECK_INT(b.wish.request.asks[0].pinned, 1 << 1);
	CHECK_INT(b.wish.request.asks[1].pinned, 1 << 4 | 1 << 6);
	CHECK(bench_read(&b, LIMIT("0=alpha:1\\n1=alpha:1", "elasticgpu.io/gpu-core: 30")) == 0);
	CHECK_INT(b.wish.request.asks[0].core_milli, 300);
	CHECK(b.wish.request.asks[0].group != 0);
	/* All that the sharers can have. */
	CHECK(bench_read(&b,
			 LIMIT("0=alpha:1\\n1=alpha:1",
			       "elasticgpu.io/gpu-core: 50, elasticgpu.io/gpu-memory: 40000")) ==
	      0);
	bench_done(&b);
}

#define SHARE(name, core, mem)                                                 \
	"{name: " name ", resources: {limits: {elasticgpu.io/gpu-core: " #core \
	", elasticgpu.io/gpu-memory: " #mem "}}}"
#define WHOLE(name, n)		"{name: " name ", resources: {limits: {nvidia.com/gpu: " #n "}}}"
#define PINNED(map, containers) POD("p-0", "", map, "{containers: [" containers "]}")

TEST(shares_of_a_pinned_pod_lie_together_where_they_fit)
{
	static const struct {
		const char *yaml;
		uint32_t pinned[3];
	} rows[] = {
		{ PINNED("0=alpha:3", SHARE("a", 50, 9) "," SHARE("b", 50, 9)), { 8, 8, 0 } },
		{ PINNED("0=alpha:3,5", SHARE("a", 50, 9) "," SHARE("b", 50, 9)), { 8, 32, 0 } },
		{ PINNED("0=alpha:3,5",
			 SHARE("a", 80, 9) "," SHARE("b", 50, 9) "," SHARE("c", 50, 9)),
		  { 8, 32, 32 } },
		{ PINNED("0=alpha:3,5", SHARE("a", 50, 9) "," WHOLE("b", 1) "," SHARE("c", 50, 9)),
		  { 32, 8, 32 } },
		/* By memory alone, half of the card each. */
		{ PINNED("0=alpha:3\\n1=alpha:3", SHARE("a", 0, 20000) "," SHARE("b", 0, 20000)),
		  { 8, 8, 0 } },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECKF(bench_read(&b, rows[i].yaml) == 0, "row %zu: %s", i, b.err.text);
		for (unsigned j = 0; j < 3; j++)
			CHECKF(b.wish.request.asks[j].pinned == rows[i].pinned[j],
			       "row %zu: %u: %u", i, j, b.wish.request.asks[j].pinned);
	}
	bench_done(&b);
}

TEST(an_init_container_takes_its_part_of_gpus_that_are_shared_unalike)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, POD("p-0", "", "0=alpha:0,1,2\\n1=alpha:1,2",
				 "{initContainers: [" WHOLE("one", 1) "," WHOLE(
					 "two", 2) "], containers: [" WHOLE("main", 3) "]}")) ==
	      0);
	CHECK_INT(b.wish.request.asks_count, 2);
	CHECK_INT(b.wish.request.asks[0].pinned, 1);
	CHECK_INT(b.wish.request.asks[1].pinned, 6);
	CHECK_INT(b.wish.containers[0].asks, 3);
	CHECK_STR(b.wish.containers[1].name, "one");
	CHECK_INT(b.wish.containers[1].asks, 1);
	CHECK_INT(b.wish.containers[1].take[0], 0);
	CHECK_INT(b.wish.containers[2].asks, 3);
	CHECK_INT(b.wish.containers[2].take[0], 0);
	CHECK_INT(b.wish.containers[2].take[1], 1);
	bench_done(&b);
}

TEST(an_init_container_takes_from_every_part_in_turn)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, POD("p-0", "", "0=alpha:0,1,2,3,4\\n1=alpha:1,2,3\\n2=alpha:3",
				 "{initContainers: [" WHOLE("i", 4) "], containers: [" WHOLE(
					 "main", 5) "]}")) == 0);
	CHECK_INT(b.wish.request.asks_count, 3);
	CHECK_INT(b.wish.request.asks[0].pinned, 1 << 0 | 1 << 4);
	CHECK_INT(b.wish.request.asks[1].pinned, 1 << 1 | 1 << 2);
	CHECK_INT(b.wish.request.asks[2].pinned, 1 << 3);
	CHECK_INT(b.wish.containers[0].asks, 7);
	CHECK_INT(b.wish.containers[1].asks, 3);
	CHECK(bench_read(&b, POD("p-0", "", "0=alpha:0,1,2,3,4\\n1=alpha:1,2,3\\n2=alpha:3",
				 "{initContainers: [" WHOLE("i", 3) "], containers: [" WHOLE(
					 "main", 5) "]}")) == 0);
	CHECK_INT(b.wish.containers[1].asks, 3);
	CHECK_INT(b.wish.containers[1].take[0], 0);
	CHECK_INT(b.wish.containers[1].take[1], 1);
	bench_done(&b);
}

/* Answers as quickly as asked, and counts. */
static bool count_taken(void *context, const char *workload, uint32_t index)
{
	struct bench *b = context;

	(void)workload;
	return index < b->taken++;
}

TEST(a_free_index_is_looked_for_no_further_than_the_map_goes)
{
	struct bench b;

	bench_init(&b);
	b.lookup.index_taken = count_taken;
	b.taken = 100;
	CHECK_INT(bench_read(&b, POD("alone", "", "0=alpha:0\\n1=alpha:1",
				     "{containers: [{name: a}]}")),
		  -ENOSPC);
	CHECK_STR(b.err.text, "gpu-scheduling-map has no line for pod index 2");
	CHECK_INT(b.taken, 102);
	bench_done(&b);
}

TEST(whose_line_names_what_is_not_there_has_that_line)
{
	static const char *const lines[] = { "0=gamma:0\\n1=alpha:1", "0=beta:7\\n1=alpha:1" };
	struct bench b;

	bench_init(&b);
	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		char pod[512];

		snprintf(pod, sizeof(pod), POD("alone", "", "%s", "{containers: [{name: a}]}"),
			 lines[i]);
		CHECK_INT(bench_read(&b, pod), -ENOENT);
		CHECK(b.wish.workload && b.wish.index_chosen);
		CHECK_INT(b.wish.index, 0);
	}
	CHECK_INT(bench_read(&b,
			     "kind: Pod\nmetadata: {name: alone, annotations: {"
			     "gpu-scheduling-map: \"0=alpha:0\", gpu.scheduling/claim: none}}\n"
			     "spec: {containers: [{name: a}]}\n"),
		  -ENOENT);
	CHECK(!b.wish.workload);
	bench_done(&b);
}

TEST(maps_that_make_no_sense_are_refused_with_their_line)
{
	static const struct bad_pod rows[] = {
		{ PLAIN(""), "gpu-scheduling-map is empty", 0 },
		{ PLAIN("0=alpha"),
		  "gpu-scheduling-map line 1: expected <pod-index>=<node>:<gpu,gpu>, found "
		  "\"0=alpha\"",
		  0 },
		{ PLAIN("0=alpha:0\\nx=alpha:1"),
		  "gpu-scheduling-map line 2: expected <pod-index>=<node>:<gpu,gpu>, found "
		  "\"x=alpha:1\"",
		  0 },
		{ PLAIN("0=:0"),
		  "gpu-scheduling-map line 1: expected <pod-index>=<node>:<gpu,gpu>, found "
		  "\"0=:0\"",
		  0 },
		{ PLAIN("0=alpha:0,"),
		  "gpu-scheduling-map line 1: expected <pod-index>=<node>:<gpu,gpu>, found "
		  "\"0=alpha:0,\"",
		  0 },
		{ PLAIN("0=alpha:40"), "gpu-scheduling-map line 1: GPU 40: ids go from 0 to 31",
		  0 },
		{ PLAIN("0=alpha:4,4"), "gpu-scheduling-map line 1: GPU 4 is there twice", 0 },
		{ PLAIN("0=alpha:4\\n0=beta:0"),
		  "gpu-scheduling-map line 2: index 0 is on line 1 already", 0 },
		{ PLAIN("1=alpha:4"), "gpu-scheduling-map has no line for pod index 0", 0 },
		{ PLAIN("0=gamma:4"), "gpu-scheduling-map line 1: node gamma does not exist",
		  ENOENT },
		{ PLAIN("0=beta:2"),
		  "gpu-scheduling-map line 1: node beta has no GPU 2, it has 2 GPUs", ENOENT },
		{ POD("p-0", "", "0=beta:0", "{nodeName: alpha, containers: [{name: a}]}"),
		  "gpu-scheduling-map line 1 names node beta, but the pod is bound to node alpha",
		  0 },
		{ LIMIT("0=alpha:0", "nvidia.com/gpu: 2"),
		  "gpu-scheduling-map line 1 gives 1 GPU, but the limits of its containers ask "
		  "for 2",
		  0 },
		{ LIMIT("0=alpha:0", "nvidia.com/mig-1g.10gb: 1"),
		  "gpu-scheduling-map pins whole GPUs, but the limits of its containers ask for "
		  "MIG "
		  "slices",
		  0 },
		{ LIMIT("0=alpha:0\\n1=alpha:0", "elasticgpu.io/gpu-core: 60"),
		  "gpu-scheduling-map line 1: 2 pods share GPU 0, which is less than the pod's "
		  "limits "
		  "ask for",
		  0 },
		{ LIMIT("0=alpha:0\\n1=alpha:0", "elasticgpu.io/gpu-memory: 40001"),
		  "gpu-scheduling-map line 1: 2 pods share the 80000 MiB of GPU 0, which is less "
		  "than the 40001 MiB that each asks for",
		  0 },
		{ PINNED("0=alpha:3", SHARE("a", 50, 9) "," SHARE("b", 51, 9)),
		  "gpu-scheduling-map line 1: the shares that the limits of its containers ask "
		  "for "
		  "have no room together on its GPUs",
		  0 },
		{ PINNED("0=alpha:3", SHARE("a", 5, 40000) "," SHARE("b", 5, 40001)),
		  "gpu-scheduling-map line 1: the shares that the limits of its containers ask "
		  "for "
		  "have no room together on its GPUs",
		  0 },
		{ PINNED("0=alpha:3\\n1=alpha:3", SHARE("a", 30, 9) "," SHARE("b", 30, 9)),
		  "gpu-scheduling-map line 1: the shares that the limits of its containers ask "
		  "for "
		  "have no room together on its GPUs",
		  0 },
		{ PINNED("0=alpha:3", WHOLE("a", 1) "," SHARE("b", 30, 9)),
		  "gpu-scheduling-map line 1 gives 1 GPU, but the limits of its containers ask "
		  "for 2",
		  0 },
		{ PINNED("0=alpha:3,4", SHARE("b", 30, 9)),
		  "gpu-scheduling-map line 1 gives 2 GPUs, but the limits of its containers ask "
		  "for 1",
		  0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST_MAIN()
