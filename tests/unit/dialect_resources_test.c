/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#define POD(spec)   "kind: Pod\nmetadata: {name: p}\nspec: " spec "\n"
#define ONE(limits) POD("{containers: [{name: c, resources: {limits: {" limits "}}}]}")

TEST(limits_become_asks)
{
	static const struct {
		const char *limits;
		enum ask_kind kind;
		unsigned count, core_milli, mem_mib;
		const char *profile;
	} rows[] = {
		{ "nvidia.com/gpu: 2", ASK_WHOLE, 2, 0, 0, "" },
		{ "nvidia.com/gpu: '3'", ASK_WHOLE, 3, 0, 0, "" },
		{ "elasticgpu.io/pgpu: 1", ASK_WHOLE, 1, 0, 0, "" },
		{ "elasticgpu.io/gpu-core: 100", ASK_WHOLE, 1, 0, 0, "" },
		{ "elasticgpu.io/gpu-core: 400, elasticgpu.io/gpu-memory: 9", ASK_WHOLE, 4, 0, 0,
		  "" },
		{ "elasticgpu.io/gpu-core: 35", ASK_SHARE, 1, 350, 0, "" },
		{ "elasticgpu.io/gpu-memory: 1024", ASK_SHARE, 1, 0, 1024, "" },
		{ "elasticgpu.io/gpu-core: 5, elasticgpu.io/gpu-memory: 1k", ASK_SHARE, 1, 50,
		  1000, "" },
		{ "elasticgpu.io/qgpu-core: 20, elasticgpu.io/qgpu-memory: 7", ASK_SHARE, 1, 200,
		  7, "" },
		{ "nvidia.com/mig-1g.10gb: 2", ASK_MIG, 2, 0, 0, "1g.10gb" },
		{ "nvidia.com/gpu: 32, nvidia.com/mig-1g.10gb: 0", ASK_WHOLE, 32, 0, 0, "" },
		{ "elasticgpu.io/gpu-memory: 16777216", ASK_SHARE, 1, 0, 16777216, "" },
		{ "nvidia.com/gpu: 2, elasticgpu.io/gpu-core: 200", ASK_WHOLE, 2, 0, 0, "" },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char yaml[512];

		snprintf(yaml, sizeof(yaml), ONE("%s"), rows[i].limits);
		CHECKF(bench_read(&b, yaml) == 0, "row %zu: %s", i, b.err.text);
		const struct ask *ask = &b.wish.request.asks[0];
		CHECKF(b.wish.request.asks_count == 1 && ask->kind == rows[i].kind &&
			       ask->count == rows[i].count &&
			       ask->core_milli == rows[i].core_milli &&
			       ask->mem_mib == rows[i].mem_mib,
		       "row %zu", i);
		CHECK_STR(ask->mig_profile, rows[i].profile);
		CHECK_INT(b.wish.containers[0].asks, 1);
	}
	bench_done(&b);
}

TEST(every_container_has_its_own_ask)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b,
			 POD("{containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}},"
			     " {name: b}, {name: c, resources: {limits: {nvidia.com/gpu: 2,"
			     " nvidia.com/mig-1g.10gb: 1}}}]}")) == 0);
	CHECK_INT(b.wish.request.asks_count, 3);
	CHECK_INT(b.wish.containers_count, 3);
	CHECK_INT(b.wish.containers[0].asks, 1);
	CHECK_INT(b.wish.containers[1].asks, 0);
	CHECK_INT(b.wish.containers[2].asks, 6);
	bench_done(&b);
}

TEST(an_init_container_borrows_the_gpus_of_another)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(
		      &b,
		      POD("{initContainers: [{name: warm, resources: {limits:"
			  " {nvidia.com/gpu: 1}}}, {name: side, restartPolicy: Always, resources:"
			  " {limits: {elasticgpu.io/gpu-core: 10}}}], containers: [{name: main,"
			  " resources: {limits: {nvidia.com/gpu: 4}}}]}")) == 0);
	CHECK_INT(b.wish.request.asks_count, 2);
	CHECK_STR(b.wish.containers[2].name, "warm");
	CHECK(b.wish.containers[2].init);
	CHECK_INT(b.wish.containers[2].asks, 2);
	CHECK_INT(b.wish.containers[2].take[1], 1);
	bench_done(&b);
}

#define LIMITED(name, limits) "{name: " name ", resources: {limits: {" limits "}}}"
#define SIDECAR(name, limits) \
	"{name: " name ", restartPolicy: Always, resources: {limits: {" limits "}}}"
#define INIT(inits, mains) POD("{initContainers: [" inits "], containers: [" mains "]}")
#define WHOLE(n)	   "nvidia.com/gpu: " #n
#define CORE(n)		   "elasticgpu.io/gpu-core: " #n
#define SHARE(core, mem)   CORE(core) ", elasticgpu.io/gpu-memory: " #mem
#define SLICES(n)	   "nvidia.com/mig-1g.10gb: " #n

/* The GPUs that a container would see, counted by asks. */
static unsigned seen_by(const struct wish *w, const char *name)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < w->containers_count; i++) {
		const struct wish_container *box = &w->containers[i];

		for (unsigned j = 0; j < w->request.asks_count; j++)
			if (strcmp(box->name, name) == 0 && box->asks >> j & 1)
				seen += box->take[j] ? box->take[j] : w->request.asks[j].count;
	}
	return seen;
}

TEST(the_pod_needs_the_greater_of_init_and_other_containers)
{
	static const struct {
		const char *yaml;
		unsigned asks, cards, init, main, core_milli, mem_mib;
	} rows[] = {
		{ INIT(LIMITED("init", WHOLE(8)), LIMITED("main", WHOLE(4))), 2, 8, 8, 4, 0, 0 },
		{ INIT(LIMITED("init", WHOLE(2)), LIMITED("main", WHOLE(4))), 1, 4, 2, 4, 0, 0 },
		{ INIT(LIMITED("init", WHOLE(4)), LIMITED("main", WHOLE(4))), 1, 4, 4, 4, 0, 0 },
		{ INIT(LIMITED("init", WHOLE(2)),
		       LIMITED("main", WHOLE(1)) "," LIMITED("more", WHOLE(1))),
		  2, 2, 2, 1, 0, 0 },
		/* The smallest that is enough. */
		{ INIT(LIMITED("init", WHOLE(2)),
		       LIMITED("main", WHOLE(4)) "," LIMITED("more", WHOLE(3))),
		  2, 7, 2, 4, 0, 0 },
		{ INIT(LIMITED("init", WHOLE(6)),
		       LIMITED("main", WHOLE(4)) "," LIMITED("more", WHOLE(3))),
		  2, 7, 6, 4, 0, 0 },
		/* What one init container lacked is there for the next. */
		{ INIT(LIMITED("early", WHOLE(6)) "," LIMITED("init", WHOLE(8)),
		       LIMITED("main", WHOLE(4))),
		  3, 8, 8, 4, 0, 0 },
		{ INIT(LIMITED("early", WHOLE(8)) "," LIMITED("init", WHOLE(6)),
		       LIMITED("main", WHOLE(4))),
		  2, 8, 6, 4, 0, 0 },
		/* Sidecars keep theirs, unless they start later. */
		{ INIT(SIDECAR("side", WHOLE(1)) "," LIMITED("init", WHOLE(4)),
		       LIMITED("main", WHOLE(2))),
		  3, 5, 4, 2, 0, 0 },
		{ INIT(LIMITED("init", WHOLE(3)) "," SIDECAR("side", WHOLE(1)),
		       LIMITED("main", WHOLE(2))),
		  2, 3, 3, 2, 0, 0 },
		{ INIT(LIMITED("init", CORE(60)), LIMITED("main", CORE(50))), 1, 1, 1, 1, 600, 0 },
		{ INIT(LIMITED("init", CORE(40)), LIMITED("main", CORE(50))), 1, 1, 1, 1, 500, 0 },
		{ INIT(LIMITED("init", SHARE(60, 10)), LIMITED("main", SHARE(50, 20))), 1, 1, 1, 1,
		  600, 20 },
		{ INIT(LIMITED("init", CORE(60)), LIMITED("main", WHOLE(1))), 1, 1, 1, 1, 0, 0 },
		{ INIT(LIMITED("init", CORE(60)), LIMITED("main", WHOLE(2))), 1, 2, 1, 2, 0, 0 },
		{ INIT(LIMITED("init", WHOLE(1)), LIMITED("main", CORE(50))), 1, 1, 1, 1, 0, 0 },
		{ INIT(LIMITED("init", CORE(30)),
		       LIMITED("main", CORE(50)) "," LIMITED("more", CORE(40))),
		  2, 2, 1, 1, 500, 0 },
		{ INIT(SIDECAR("side", CORE(30)) "," LIMITED("init", CORE(30)), "{name: main}"), 2,
		  2, 1, 0, 300, 0 },
		{ INIT(LIMITED("init", SLICES(1)), LIMITED("main", SLICES(2))), 1, 2, 1, 2, 0, 0 },
		{ INIT(LIMITED("init", SLICES(3)), LIMITED("main", SLICES(2))), 2, 3, 3, 2, 0, 0 },
		{ INIT(LIMITED("init", SLICES(2)), LIMITED("main", "nvidia.com/mig-2g.20gb: 2")),
		  2, 4, 2, 2, 0, 0 },
		{ INIT(LIMITED("init", WHOLE(2)), "{name: main}"), 1, 2, 2, 0, 0, 0 },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned cards = 0;

		CHECKF(bench_read(&b, rows[i].yaml) == 0, "row %zu: %s", i, b.err.text);
		for (unsigned j = 0; j < b.wish.request.asks_count; j++)
			cards += b.wish.request.asks[j].count;
		CHECKF(b.wish.request.asks_count == rows[i].asks && cards == rows[i].cards,
		       "row %zu: %u asks, %u cards", i, b.wish.request.asks_count, cards);
		CHECKF(seen_by(&b.wish, "init") == rows[i].init &&
			       seen_by(&b.wish, "main") == rows[i].main,
		       "row %zu: %u and %u", i, seen_by(&b.wish, "init"),
		       seen_by(&b.wish, "main"));
		CHECKF(b.wish.request.asks[0].core_milli == rows[i].core_milli &&
			       b.wish.request.asks[0].mem_mib == rows[i].mem_mib,
		       "row %zu: core %u", i, b.wish.request.asks[0].core_milli);
	}
	bench_done(&b);
}

/* Three containers with shares, then an init container. */
#define MAINS(a, b, c)	  LIMITED("a", a) "," LIMITED("b", b) "," LIMITED("c", c)
#define OVER(init, mains) INIT(LIMITED("init", init), mains)

TEST(an_init_container_uses_the_share_that_suits_it_best)
{
	static const struct {
		const char *yaml;
		unsigned used, core_milli, mem_mib; /* which ask, and how large it is then */
	} rows[] = {
		/* The smallest that is enough, by core and then by memory. */
		{ OVER(SHARE(30, 5), MAINS(SHARE(50, 9), SHARE(40, 9), SHARE(60, 9))), 1, 400, 9 },
		{ OVER(SHARE(50, 9), MAINS(SHARE(40, 9), SHARE(50, 9), SHARE(60, 9))), 1, 500, 9 },
		{ OVER(SHARE(50, 7), MAINS(SHARE(50, 9), SHARE(50, 8), SHARE(50, 6))), 1, 500, 8 },
		/* The first of equals. */
		{ OVER(SHARE(50, 7), MAINS(SHARE(50, 9), SHARE(50, 9), SHARE(50, 9))), 0, 500, 9 },
		{ OVER(SHARE(60, 7), MAINS(SHARE(50, 9), SHARE(50, 9), SHARE(50, 9))), 0, 600, 9 },
		/* None is enough: the largest is raised, in what it lacks. */
		{ OVER(SHARE(90, 5), MAINS(SHARE(50, 9), SHARE(70, 9), SHARE(60, 9))), 1, 900, 9 },
		{ OVER(SHARE(50, 20), MAINS(SHARE(50, 9), SHARE(50, 11), SHARE(50, 10))), 1, 500,
		  20 },
		{ OVER(SHARE(60, 5), MAINS(SHARE(50, 9), SHARE(60, 3), WHOLE(2))), 2, 0, 0 },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECKF(bench_read(&b, rows[i].yaml) == 0, "row %zu: %s", i, b.err.text);
		const struct ask *ask = &b.wish.request.asks[rows[i].used];
		CHECK_INT(b.wish.request.asks_count, 3);
		CHECKF(b.wish.containers[3].asks == 1u << rows[i].used, "row %zu: %u", i,
		       b.wish.containers[3].asks);
		CHECKF(ask->core_milli == rows[i].core_milli && ask->mem_mib == rows[i].mem_mib,
		       "row %zu: %u, %u", i, ask->core_milli, ask->mem_mib);
	}
	/* Of whole cards that are as many, the first. */
	CHECK(bench_read(&b, OVER(WHOLE(2), MAINS(WHOLE(2), WHOLE(2), WHOLE(3)))) == 0);
	CHECK_INT(b.wish.containers[3].asks, 1);
	CHECK_INT(b.wish.containers[3].take[0], 0);
	bench_done(&b);
}

TEST(limits_that_make_no_sense_are_refused)
{
	static const struct bad_pod rows[] = {
		{ ONE("nvidia.com/gpu: 33"), "container c: nvidia.com/gpu is above 32", 0 },
		{ ONE("nvidia.com/gpu: -1"),
		  "container c: nvidia.com/gpu must be a whole number, 0 or more", 0 },
		{ ONE("nvidia.com/gpu: 500m"),
		  "container c: nvidia.com/gpu must be a whole number, 0 or more", 0 },
		{ ONE("elasticgpu.io/gpu-core: 101"),
		  "container c: elasticgpu.io/gpu-core is 101: above 100 it must be a multiple of "
		  "100",
		  0 },
		{ ONE("nvidia.com/gpu: 1, elasticgpu.io/gpu-core: 50"),
		  "container c: nvidia.com/gpu and elasticgpu.io/gpu-core ask for different GPUs",
		  0 },
		{ ONE("elasticgpu.io/gpu-core: 50, elasticgpu.io/qgpu-core: 40"),
		  "container c: elasticgpu.io/gpu-core and elasticgpu.io/qgpu-core ask for "
		  "different "
		  "GPUs",
		  0 },
		{ ONE("nvidia.com/mig-: 1"), "container c: nvidia.com/mig- names no MIG profile",
		  0 },
		{ ONE("elasticgpu.io/gpus: 1"),
		  "container c: resource elasticgpu.io/gpus is unknown, did you mean "
		  "elasticgpu.io/pgpu?",
		  0 },
		{ POD("{containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}}}]}"),
		  "container c: nvidia.com/gpu needs a limit, not only a request", 0 },
		{ POD("{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}, requests:"
		      " {nvidia.com/gpu: 2}}}]}"),
		  "container c: request and limit of nvidia.com/gpu differ", 0 },
		{ ONE("elasticgpu.io/gpu-mem: 1"),
		  "container c: resource elasticgpu.io/gpu-mem is unknown, did you mean "
		  "elasticgpu.io/gpu-memory?",
		  0 },
		{ ONE("elasticgpu.io/gpu-cores: 1"),
		  "container c: resource elasticgpu.io/gpu-cores is unknown, did you mean "
		  "elasticgpu.io/gpu-core?",
		  0 },
		/* Not bytes. */
		{ ONE("elasticgpu.io/gpu-memory: 8Gi"),
		  "container c: elasticgpu.io/gpu-memory counts in MiB, not in bytes: for "
		  "8589934592 bytes write 8192",
		  0 },
		{ ONE("elasticgpu.io/qgpu-memory: 512Mi"),
		  "container c: elasticgpu.io/qgpu-memory counts in MiB, not in bytes: for "
		  "536870912 bytes write 512",
		  0 },
		{ ONE("elasticgpu.io/gpu-memory: 16777217"),
		  "container c: elasticgpu.io/gpu-memory counts in MiB, not in bytes: for "
		  "16777217 bytes write 17",
		  0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST(needs_are_summed_as_kubernetes_does)
{
	static const struct {
		const char *spec;
		int64_t cpu, mem;
	} rows[] = {
		{ "{containers: [{name: a, resources: {requests: {cpu: 100m, memory: 1Ki}}},"
		  " {name: b, resources: {requests: {cpu: 1}}}]}",
		  1100, 1024 },
		{ "{containers: [{name: a, resources: {limits: {cpu: 2}}}]}", 2000, 0 },
		{ "{containers: [{name: a, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}]}",
		  1000, 0 },
		/* The init container is greater than all others together. */
		{ "{initContainers: [{name: i, resources: {requests: {cpu: 5}}}],"
		  " containers: [{name: a, resources: {requests: {cpu: 1}}}]}",
		  5000, 0 },
		/* Sidecars before it run beside it, those after it do not yet. */
		{ "{initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: "
		  "1}}},"
		  " {name: i, resources: {requests: {cpu: 5}}},"
		  " {name: t, restartPolicy: Always, resources: {requests: {cpu: 2}}}],"
		  " containers: [{name: a, resources: {requests: {cpu: 1}}}]}",
		  6000, 0 },
		{ "{initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: "
		  "1}}}],"
		  " containers: [{name: a, resources: {requests: {cpu: 1}}}]}",
		  2000, 0 },
		/* Requests of the pod replace, overhead adds. */
		{ "{resources: {requests: {cpu: 3}}, overhead: {cpu: 250m, memory: 64},"
		  " containers: [{name: a, resources: {requests: {cpu: 9, memory: 16}}}]}",
		  3250, 80 },
		/* Even where an init container asks for more. */
		{ "{resources: {requests: {cpu: 3}}, initContainers: [{name: i, resources:"
		  " {requests: {cpu: 5, memory: 32}}}],"
		  " containers: [{name: a, resources: {requests: {cpu: 1, memory: 16}}}]}",
		  3000, 32 },
		{ "{containers: [{name: a, resources: {requests: {memory: 9223372036854775807}}},"
		  " {name: b, resources: {requests: {memory: 9223372036854775807}}}]}",
		  0, INT64_MAX },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char yaml[1024];

		snprintf(yaml, sizeof(yaml), POD("%s"), rows[i].spec);
		CHECKF(bench_read(&b, yaml) == 0, "row %zu: %s", i, b.err.text);
		CHECKF(b.wish.request.needs.cpu_milli == rows[i].cpu &&
			       b.wish.request.needs.mem_bytes == rows[i].mem,
		       "row %zu: %lld milli, %lld bytes", i,
		       (long long)b.wish.request.needs.cpu_milli,
		       (long long)b.wish.request.needs.mem_bytes);
		CHECK_INT(b.wish.request.needs.pods, 1);
	}
	bench_done(&b);
}

TEST(other_resources_are_counted_by_name)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, ONE("rdma/hca: 2, hugepages-2Mi: 4Mi, nvidia.com/gpu: 1")) == 0);
	CHECK_INT(b.wish.request.extended_count, 2);
	CHECK_INT(b.wish.request.extended[0].amount, 2);
	CHECK_STR(cluster_string(b.cluster, b.wish.request.extended[0].resource), "rdma/hca");
	bench_done(&b);
}

TEST(few_of_the_resources_that_no_node_has_are_remembered)
{
	struct bench b;

	bench_init(&b);
	uint32_t known = cluster_resource(b.cluster, "example.com/known");
	for (unsigned i = 0; i < 4000; i++) {
		char pod[256];

		snprintf(pod, sizeof(pod), ONE("example.com/known: 1, example.com/slip-%u: 1"), i);
		CHECK(bench_read(&b, pod) == 0);
		CHECK_INT(b.wish.request.extended_count, 2);
		CHECK_INT(b.wish.request.extended[0].resource, known);
		CHECK(b.wish.request.extended[1].resource != known);
		wish_release(b.cluster, &b.wish);
		arena_reset(&b.arena);
	}
	CHECK(cluster_find(b.cluster, "example.com/slip-0") != UINT32_MAX);
	CHECK_STR(cluster_string(b.cluster, b.wish.request.extended[1].resource),
		  "extended resource");
	CHECK(cluster_intern(b.cluster, "after") < 2000);
	/* A node has it after all: who is read again finds it. */
	known = cluster_resource(b.cluster, "example.com/slip-3999");
	CHECK(bench_read(&b, ONE("example.com/slip-3999: 1")) == 0);
	CHECK_INT(b.wish.request.extended[0].resource, known);
	bench_done(&b);
}

TEST_MAIN()
