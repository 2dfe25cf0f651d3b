/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that are on nodes already, from the cache into the engine. */
#include "scheduler_bench.h"

#include "scheduler/budgets.h"
#include "scheduler/inventory.h"
#include "scheduler/lookup.h"
#include "scheduler/residents.h"

static struct inventory *inventory;
static struct lookup *lookup;
static struct budgets *budgets;
static struct residents *residents;
static enum resident_change last;

static void node_changed(void *context, const char *name, uint32_t node, uint32_t changes)
{
	(void)context, (void)node;
	residents_node(residents, name, changes);
}

/* As the scheduler does it. */
static void pod_changed(void *context, enum kube_change change, const struct kube_object *before,
			struct kube_object *now, const struct json *object)
{
	uint32_t node;

	(void)context, (void)change;
	if (now)
		last = residents_put(residents, now, object);
	else
		residents_remove(residents, before->uid, &node);
}

static uint32_t gang(void *context, const char *namespace, const char *name)
{
	(void)context;
	CHECK_STR(namespace, "ml");
	bench_saw("%s", name);
	return 77;
}

static struct kube_cache *pod_cache;

static const struct kube_object *find_pod(void *context, const char *namespace, const char *name)
{
	(void)context;
	return kube_cache_get(pod_cache, namespace, name);
}

static void open(void)
{
	struct err err = ERR_INIT;

	bench_open();
	struct budgets_options b = { .caches = &bench.caches, .log = &bench.log, .seed = 1 };
	struct lookup_options l = {
		.caches = &bench.caches, .cluster = bench.cluster, .log = &bench.log, .seed = 1
	};
	struct inventory_options i = { .engine = bench.engine,
				       .caches = &bench.caches,
				       .log = &bench.log,
				       .changed = node_changed };
	struct kube_cache_options pods = { .kind = &kube_kinds[KUBE_POD], .changed = pod_changed };
	CHECK(budgets_new(&b, &budgets, &err) == 0);
	CHECK(lookup_new(&l, &lookup, &err) == 0);
	CHECK(inventory_new(&i, &inventory, &err) == 0);
	CHECK(kube_caches_add(&bench.caches, &pods, &pod_cache, &err) == 0);
	struct residents_options r = { .engine = bench.engine,
				       .inventory = inventory,
				       .lookup = lookup,
				       .budgets = budgets,
				       .log = &bench.log,
				       .seed = 1,
				       .gang = gang,
				       .pod = find_pod };
	CHECK(residents_new(&r, &residents, &err) == 0);
}

static void close_all(void)
{
	residents_free(residents);
	bench_close();
	inventory_free(inventory);
	lookup_free(lookup);
	budgets_free(budgets);
}

#define NODE(name)                                                           \
	"metadata: {name: " name ", uid: u-" name ", resourceVersion: RV}\n" \
	"status: {allocatable: {pods: 110, cpu: 64, memory: 64Gi, example.com/x: 4}}\n"
#define DEVICE(id, uuid) "{id: " id ", uuid: " uuid ", model: H100, memoryMiB: 80000}"
#define REPORT(devices) \
	"metadata: {name: a, uid: s-a, resourceVersion: RV}\nstatus: {devices: [" devices "]}\n"
#define FOUR DEVICE("0", "G0") ", " DEVICE("1", "G1") ", " DEVICE("2", "G2") ", " DEVICE("3", "G3")

static void open_with_node(void)
{
	open();
	bench_put(KUBE_NODE, NODE("a"));
	bench_put(KUBE_GPU_NODE_STATUS, REPORT(FOUR));
}

#define POD(name, meta, spec, resources)                                                      \
	"metadata: {name: " name ", namespace: ml, uid: u-" name ", resourceVersion: RV" meta \
	"}\nspec: {nodeName: a, " spec                                                        \
	"containers: [{name: c, resources: {requests: {cpu: 1}, limits: {" resources "}}}]}\n"
#define DECIDED(gpus)                                                                             \
	", annotations: {gpu.scheduling/decision: '{\"node\":\"a\",\"attempt\":5,\"gpus\":[" gpus \
	"]}'}"
#define WHOLE(uuid) "{\"uuid\":\"" uuid "\",\"coreMilli\":1000,\"memoryMiB\":80000}"
#define HALF(uuid)  "{\"uuid\":\"" uuid "\",\"coreMilli\":500,\"memoryMiB\":40000}"

static const struct pod *pod(const char *name)
{
	char uid[64];

	snprintf(uid, sizeof(uid), "u-%s", name);
	uint32_t number = cluster_pod_find(bench.cluster, uid);
	return number == POD_NONE ? NULL : cluster_pod(bench.cluster, number);
}

/* The GPUs that the pod has, as a set; -1 if it is not booked. */
static int64_t gpus(const char *name)
{
	const struct pod *p = pod(name);
	uint32_t set = 0;

	for (uint16_t i = 0; p && i < p->holds_count; i++)
		set |= gpuset_one(p->holds[i].gpu);
	return p ? (int64_t)set : -1;
}

static const struct node *node(void)
{
	return cluster_node(bench.cluster, cluster_node_find(bench.cluster, "a"));
}

TEST(a_pod_of_ours_has_just_the_gpus_of_its_decision)
{
	open_with_node();
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G2") "," HALF("G3")), "", ""));
	CHECK_INT(last, RESIDENT_CAME);
	CHECK_INT(gpus("p"), 1 << 2 | 1 << 3);
	CHECK_INT(node()->gpus[2].use, GPU_WHOLE);
	CHECK_INT(node()->gpus[3].core_free_milli, 500);
	CHECK_INT(node()->gpus[3].mem_free_mib, 40000);
	CHECK_INT(node()->free.cpu_milli, 63000);
	/* After a reboot the card is another number. */
	bench_put(KUBE_GPU_NODE_STATUS, REPORT(DEVICE("0", "G2") ", " DEVICE("1", "G3")));
	CHECK_INT(gpus("p"), 3);
	uint32_t where = 99;
	CHECK(residents_remove(residents, "u-p", &where));
	CHECK_INT(where, cluster_node_find(bench.cluster, "a"));
	CHECK_INT(gpus("p"), -1);
	CHECK(!residents_remove(residents, "u-p", &where));
	close_all();
}

TEST(what_only_the_status_says_costs_the_engine_nothing)
{
	open_with_node();
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G2")), "", ""));
	bench_put(KUBE_POD, POD("q", "", "", "nvidia.com/gpu: 1"));
	const struct pod *record = pod("p"), *other = pod("q");
	uint32_t state = node()->state;
	CHECK(record->started == (uint64_t)INT64_MAX);
	bench_put(KUBE_POD,
		  POD("p", DECIDED(WHOLE("G2")), "", "") "status: {phase: Running, "
							 "startTime: \"1970-01-01T00:00:05Z\"}\n");
	CHECK_INT(last, RESIDENT_SAME);
	bench_put(KUBE_POD, POD("q", "", "", "nvidia.com/gpu: 1") "status: {phase: Running}\n");
	CHECK_INT(last, RESIDENT_SAME);
	CHECK(pod("p") == record && pod("q") == other);
	CHECK_INT(node()->state, state);
	CHECK_INT(record->started, 5000000000);
	close_all();
}

TEST(what_matters_of_a_pod_may_change)
{
	open_with_node();
	bench_put(KUBE_POD, POD("p", DECIDED(HALF("G2")), "priority: 5, ", ""));
	uint32_t subject = pod("p")->subject;
	CHECK_INT(pod("p")->priority, 5);
	bench_put(KUBE_POD, POD("p", ", labels: {x: y}" DECIDED(HALF("G2")), "priority: 5, ", ""));
	CHECK_INT(last, RESIDENT_CHANGED);
	CHECK(pod("p")->subject != subject);
	CHECK_INT(gpus("p"), 1 << 2);
	bench_put(KUBE_POD, POD("p", ", labels: {x: y}" DECIDED(HALF("G2")), "priority: 5, ",
				"cpu: 9") "status: {phase: Running}\n");
	CHECK_INT(last, RESIDENT_SAME);
	bench_put(KUBE_POD,
		  "metadata: {name: p, namespace: ml, uid: u-p, resourceVersion: RV, "
		  "labels: {x: y}" DECIDED(HALF(
			  "G2")) "}\nspec: {nodeName: a, priority: "
				 "5, containers: [{name: c, resources: {requests: {cpu: 3}}}]}\n");
	CHECK_INT(last, RESIDENT_SHRANK);
	CHECK_INT(node()->free.cpu_milli, 61000);
	CHECK_INT(gpus("p"), 1 << 2);
	bench_put(KUBE_POD,
		  "metadata: {name: p, namespace: ml, uid: u-p, resourceVersion: RV, "
		  "deletionTimestamp: \"2026-01-01T00:00:00Z\", labels: {x: y}" DECIDED(HALF(
			  "G2")) "}\nspec: {nodeName: a, priority: 5, "
				 "containers: [{name: c, resources: {requests: {cpu: 3}}}]}\n");
	CHECK_INT(last, RESIDENT_CHANGED);
	CHECK(pod("p")->ending);
	CHECK_INT(gpus("p"), 1 << 2);
	close_all();
}

TEST(a_pod_waits_for_its_node_whenever_that_comes)
{
	open();
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G2")), "", ""));
	CHECK_INT(last, RESIDENT_CAME); /* new, though not booked */
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G2")), "", "") "status: {phase: Running}\n");
	CHECK_INT(last, RESIDENT_SAME);
	CHECK_INT(gpus("p"), -1);
	bench_put(KUBE_NODE, NODE("a"));
	CHECK_INT(gpus("p"), 0); /* no such card yet */
	CHECK_INT(node()->free.cpu_milli, 63000);
	bench_put(KUBE_GPU_NODE_STATUS, REPORT(FOUR));
	CHECK_INT(gpus("p"), 1 << 2);
	bench_delete(KUBE_NODE, NODE("a"));
	CHECK_INT(gpus("p"), -1);
	bench_put(KUBE_NODE, NODE("a"));
	CHECK_INT(gpus("p"), 1 << 2);
	bench_delete(KUBE_NODE, NODE("a"));
	bench_delete(KUBE_POD, POD("p", "", "", ""));
	bench_put(KUBE_NODE, NODE("a"));
	CHECK_INT(gpus("p"), -1);
	close_all();
}

TEST(gpus_of_others_are_guessed_and_give_way_to_what_is_known)
{
	open_with_node();
	bench_put(KUBE_POD, POD("other", "", "", "nvidia.com/gpu: 2"));
	int64_t guessed = gpus("other");
	CHECK_INT(gpuset_count((uint32_t)guessed), 2);
	/* Ours has the very cards that were guessed. */
	if (gpuset_has((uint32_t)guessed, 0))
		bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G0") "," WHOLE("G1")), "", ""));
	else
		bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G2") "," WHOLE("G3")), "", ""));
	CHECK_INT(gpuset_count((uint32_t)gpus("p")), 2);
	CHECK_INT(gpuset_count((uint32_t)gpus("other")), 2);
	CHECK_INT(gpus("p") & gpus("other"), 0);
	CHECK_INT(node()->idle, 0);
	close_all();
}

TEST(what_the_agent_sees_in_use_is_in_use)
{
	open_with_node();
	bench_put(KUBE_POD, POD("other", "", "", "nvidia.com/gpu: 1"));
	bench_put(KUBE_POD, POD("quiet", "", "", ""));
	bench_put(KUBE_POD, POD("plain", "", "", ""));
	const struct pod *plain = pod("plain");
	int64_t guessed = gpus("other");
	CHECK_INT(gpuset_count((uint32_t)guessed), 1);
	bench_put(KUBE_GPU_NODE_STATUS,
		  REPORT(DEVICE("0", "G0") ", " DEVICE(
			  "1", "G1") ", {id: 2, uuid: G2, model: H100, memoryMiB: 80000, inUseBy: "
				     "[{uid: u-other}]}"
				     ", {id: 3, uuid: G3, model: H100, memoryMiB: 80000, inUseBy: "
				     "[{uid: u-quiet}]}"));
	CHECK_INT(gpus("other"), 1 << 2);
	CHECK_INT(gpus("quiet"), 1 << 3); /* though it never asked for any */
	CHECK(pod("plain") == plain);
	bench_put(KUBE_GPU_NODE_STATUS,
		  REPORT(DEVICE("0", "G0") ", {id: 1, uuid: G1, model: H100, memoryMiB: 80000, "
					   "inUseBy: [{uid: u-other}]}"
					   ", " DEVICE("2", "G2") ", " DEVICE("3", "G3")));
	CHECK_INT(gpus("other"), 1 << 1);
	CHECK_INT(gpus("quiet"), 0);
	/* Two asked for, one seen so far: the other one is his too. */
	bench_put(KUBE_GPU_NODE_STATUS,
		  REPORT(DEVICE("0", "G0") ", " DEVICE("1", "G1") ", " DEVICE(
			  "2", "G2") ", {id: 3, uuid: G3, model: H100, memoryMiB: 80000, inUseBy: "
				     "[{uid: u-two}]}"));
	bench_put(KUBE_POD, POD("two", "", "", "nvidia.com/gpu: 2"));
	CHECK_INT(gpuset_count((uint32_t)gpus("two")), 2);
	CHECK(gpuset_has((uint32_t)gpus("two"), 3));
	close_all();
}

TEST(who_is_seen_on_a_card_that_we_count_on_is_known)
{
#define USED_BY(uid)                                                                             \
	REPORT(DEVICE("0", "G0") ", " DEVICE("1", "G1") ", {id: 2, uuid: G2, model: H100, "      \
							"memoryMiB: 80000, inUseBy: [{uid: " uid \
							"}]}, " DEVICE("3", "G3"))
	struct assignment ours = { .count = 1, .holds = { { .gpu = 2, .kind = ASK_WHOLE } } };
	struct request r;
	uint32_t number;

	open_with_node();
	request_init(&r);
	CHECK(cluster_pod_place(bench.cluster, &(struct pod_spec){ .uid = "u-ours" }, &r,
				cluster_node_find(bench.cluster, "a"), &ours, &number) == 0);
	bench_put(KUBE_POD, POD("other", "", "", ""));
	CHECK_INT(residents_unbooked(residents, "a"), 0);
	bench_put(KUBE_GPU_NODE_STATUS, USED_BY("u-gone"));
	CHECK_INT(residents_unbooked(residents, "a"), 0); /* the report is of before */
	bench_put(KUBE_GPU_NODE_STATUS, USED_BY("u-other"));
	CHECK_INT(residents_unbooked(residents, "a"), 1 << 2);
	CHECK_INT(residents_unbooked(residents, "nowhere"), 0);
	cluster_pod_remove(bench.cluster, number);
	residents_again(residents, "a");
	CHECK_INT(gpus("other"), 1 << 2);
	CHECK_INT(residents_unbooked(residents, "a"), 0);
	close_all();
#undef USED_BY
}

TEST(where_others_hand_out_gpus_what_they_gave_counts)
{
#define SEEN(mode)                                                                          \
	"metadata: {name: a, uid: s-a, resourceVersion: RV}\nstatus: {injectionMode: " mode \
	", devices: [" DEVICE("0", "G0") ", " DEVICE("1", "G1") ", " DEVICE(                \
		"2",                                                                        \
		"G2") ", {id: 3"                                                            \
		      ", uuid: G3, model: H100, memoryMiB: 80000, inUseBy: [{uid: u-p}]}]}\n"
	open_with_node();
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G0")), "", "nvidia.com/gpu: 1"));
	bench_put(KUBE_GPU_NODE_STATUS, SEEN("cdi"));
	CHECK_INT(gpus("p"), 1 << 0);
	bench_put(KUBE_GPU_NODE_STATUS, SEEN("all"));
	CHECK_INT(gpus("p"), 1 << 0);
	bench_put(KUBE_GPU_NODE_STATUS, SEEN("external"));
	CHECK_INT(gpus("p"), 1 << 3);
	close_all();
}

TEST(what_we_have_assumed_stays_as_it_is)
{
	struct request r;
	uint32_t number;
	struct assignment a = { .count = 1, .gpus = 1 << 2 };

	open_with_node();
	a.holds[0] = (struct hold){ .gpu = 2, .kind = ASK_WHOLE };
	request_init(&r);
	r.needs.cpu_milli = 1000;
	CHECK(cluster_pod_place(bench.cluster, &(struct pod_spec){ .uid = "u-p" }, &r,
				cluster_node_find(bench.cluster, "a"), &a, &number) == 0);
	const struct pod *record = pod("p");
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G2")), "", ""));
	CHECK_INT(last, RESIDENT_SAME);
	CHECK(pod("p") == record);
	/* Bound by somebody else, with another GPU. */
	CHECK(cluster_pod_place(bench.cluster, &(struct pod_spec){ .uid = "u-q" }, &r,
				cluster_node_find(bench.cluster, "a"),
				&(struct assignment){
					.count = 1, .holds = { { .gpu = 3, .kind = ASK_WHOLE } } },
				&number) == 0);
	bench_put(KUBE_POD, POD("q", DECIDED(WHOLE("G1")), "", ""));
	CHECK_INT(last, RESIDENT_SHRANK);
	CHECK_INT(gpus("q"), 1 << 1);
	CHECK_INT(node()->free.cpu_milli, 62000);
	close_all();
}

TEST(what_we_had_counted_on_is_booked_for_who_has_it_when_we_give_it_up)
{
	const struct lock_hold hold = { .uuid = "G3", .core_milli = 1000, .mem_mib = 80000 };
	const struct lock_entry entry = { .uid = "u-g",
					  .namespace = "ml",
					  .name = "g",
					  .version = "1",
					  .attempt = 5,
					  .holds = &hold,
					  .holds_count = 1 };
	struct assignment a = { .count = 2,
				.gpus = 1 << 2 | 1 << 3,
				.holds = { { .gpu = 2, .kind = ASK_WHOLE },
					   { .gpu = 3, .kind = ASK_WHOLE } } };
	struct request r;
	uint32_t number;

	open_with_node();
	request_init(&r);
	CHECK(cluster_pod_place(bench.cluster, &(struct pod_spec){ .uid = "u-ours" }, &r,
				cluster_node_find(bench.cluster, "a"), &a, &number) == 0);
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G2")), "", ""));
	CHECK(residents_put_guest(residents, "a", &entry) == 0);
	CHECK_INT(gpus("p"), 0);
	CHECK_INT(gpus("g"), 0);
	residents_again(residents, "a");
	CHECK_INT(gpus("p"), 0);
	cluster_pod_remove(bench.cluster, number);
	residents_again(residents, "a");
	CHECK_INT(gpus("p"), 1 << 2);
	CHECK_INT(gpus("g"), 1 << 3);
	residents_again(residents, "nowhere");
	close_all();
}

TEST(who_found_no_card_left_has_what_a_lost_lock_leaves)
{
	const struct lock_hold holds[] = {
		{ .uuid = "G0", .core_milli = 1000, .mem_mib = 80000 },
		{ .uuid = "G1", .core_milli = 1000, .mem_mib = 80000 },
		{ .uuid = "G2", .core_milli = 1000, .mem_mib = 80000 },
		{ .uuid = "G3", .core_milli = 1000, .mem_mib = 80000 },
	};
	const struct lock_entry entry = { .uid = "u-g",
					  .namespace = "ml",
					  .name = "g",
					  .version = "1",
					  .attempt = 5,
					  .holds = holds,
					  .holds_count = ARRAY_SIZE(holds) };

	open_with_node();
	CHECK(residents_put_guest(residents, "a", &entry) == 0);
	bench_put(KUBE_POD, POD("other", "", "", "nvidia.com/gpu: 2"));
	CHECK_INT(gpus("other"), 0);
	residents_again(residents, "a");
	CHECK_INT(gpus("other"), 0);
	residents_remove_guest(residents, "u-g");
	residents_again(residents, "a");
	CHECK_INT(gpuset_count((uint32_t)gpus("other")), 2);
	close_all();
}

TEST(what_cannot_be_read_is_booked_by_what_can)
{
	open_with_node();
	bench_put(KUBE_POD, POD("p", ", annotations: {gpu.scheduling/decision: nonsense}", "",
				"nvidia.com/gpu: 1"));
	CHECK_INT(last, RESIDENT_CAME);
	CHECK_INT(gpuset_count((uint32_t)gpus("p")), 1);
	CHECK_INT(bench_logged("gpu.scheduling/decision"), 1);
	bench_put(KUBE_POD, POD("q", ", annotations: {gpu.scheduling/claim: nowhere}", "",
				"elasticgpu.io/gpu-core: 150"));
	CHECK_INT(gpus("q"), 0);
	CHECK_INT(node()->free.cpu_milli, 62000);
	unsigned logged = bench_logged("can be read");
	bench_put(KUBE_POD, POD("q", ", annotations: {gpu.scheduling/claim: nowhere}", "",
				"elasticgpu.io/gpu-core: 150") "status: {phase: Running}\n");
	CHECK_INT(bench_logged("can be read"), logged); /* once for a pod */
	/* A decision for another node is none. */
	bench_put(KUBE_POD, POD("r",
				", annotations: {gpu.scheduling/decision: '{\"node\":\"b\","
				"\"attempt\":5,\"gpus\":[" WHOLE("G3") "]}'}",
				"", ""));
	CHECK_INT(gpus("r"), 0);
	close_all();
}

TEST(slices_are_booked_where_they_are)
{
	open();
	bench_put(KUBE_NODE, NODE("a"));
	bench_put(KUBE_GPU_NODE_STATUS,
		  REPORT("{id: 0, uuid: G0, model: NVIDIA-A100-SXM4-40GB, memoryMiB: 40960,"
			 " migEnabled: true}"));
	bench_put(KUBE_POD, POD("p",
				DECIDED("{\"uuid\":\"G0\",\"mig\":{\"profile\":\"1g.5gb\","
					"\"start\":3}},{\"uuid\":\"G0\",\"mig\":{\"profile\":"
					"\"7g.1tb\",\"start\":0}}"),
				"", ""));
	CHECK_INT(node()->gpus[0].mig.used, 1 << 3);
	CHECK_INT(pod("p")->holds_count, 1);
	close_all();
}

TEST(a_card_without_a_uuid_goes_by_its_index)
{
	open();
	bench_put(KUBE_NODE, "metadata: {name: a, uid: u-a, resourceVersion: RV}\n"
			     "status: {allocatable: {pods: 9, cpu: 9, nvidia.com/gpu: 4}}\n");
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("3") "," WHOLE("GPU-a-1")), "", ""));
	CHECK_INT(gpus("p"), 1 << 3 | 1 << 1);
	close_all();
}

#define MAPPED(name, index)                                                                  \
	"metadata: {name: " name ", namespace: ml, uid: u-" name ", generateName: web-,"     \
	" resourceVersion: RV, annotations: {gpu-scheduling-map: \"0=a:1\\n1=a:1\\n2=a:0\"," \
	" gpu.scheduling/decision: '{\"node\":\"a\",\"attempt\":5,\"gpus\":[" HALF(          \
		"G1") "],\"index\":" index "}'}}\nspec: {nodeName: a, containers: [{name: c}]}\n"

TEST(after_a_restart_pods_of_a_map_have_their_index_and_share_their_card)
{
	const struct dialect_lookup *d;
	struct pod_source source;
	struct wish wish;
	struct arena arena;

	open_with_node();
	bench_put(KUBE_POD, MAPPED("one", "0"));
	bench_put(KUBE_POD, MAPPED("two", "1"));
	CHECK_INT(gpus("one"), 1 << 1);
	CHECK_INT(gpus("two"), 1 << 1);
	CHECK(node()->gpus[1].group != 0);
	/* The next sibling gets the next index. */
	struct json_doc *doc CLEANUP(json_doc_freep) =
		bench_parse("metadata: {name: z, namespace: ml, generateName: web-, uid: u-z,"
			    " resourceVersion: RV, annotations: {gpu-scheduling-map:"
			    " \"0=a:1\\n1=a:1\\n2=a:0\"}}\nspec: {containers: [{name: c}]}\n");
	d = lookup_dialect(lookup);
	arena_init(&arena, 1 << 20);
	CHECK(pod_source_read(json_root(doc), d, &source, NULL) == 0);
	CHECK(dialect_read(bench.cluster, d, &source, &arena, &wish, NULL) == 0);
	CHECK_INT(wish.index, 2);
	wish_release(bench.cluster, &wish);
	bench_delete(KUBE_POD, MAPPED("one", "0"));
	CHECK(dialect_read(bench.cluster, d, &source, &arena, &wish, NULL) == 0);
	CHECK_INT(wish.index, 0);
	wish_release(bench.cluster, &wish);
	lookup_reset(lookup);
	arena_done(&arena);
	close_all();
}

#define SIBLING                                                                                 \
	"metadata: {name: z, namespace: ml, generateName: web-, uid: u-z, resourceVersion: RV," \
	" annotations: {gpu-scheduling-map: \"0=a:1\\n1=a:1\\n2=a:0\"}}\n"                      \
	"spec: {containers: [{name: c}]}\n"

/* What one more of them would get; where it is its name in a lock. */
static uint32_t next_index(char map[LOOKUP_MAP_MAX])
{
	struct json_doc *doc CLEANUP(json_doc_freep) = bench_parse(SIBLING);
	const struct dialect_lookup *d = lookup_dialect(lookup);
	struct arena arena CLEANUP(arena_done);
	struct pod_source source;
	struct wish wish;

	arena_init(&arena, 1 << 20);
	CHECK(pod_source_read(json_root(doc), d, &source, NULL) == 0);
	CHECK(dialect_read(bench.cluster, d, &source, &arena, &wish, NULL) == 0);
	CHECK(wish.index_chosen);
	lookup_map_name(wish.workload, map);
	wish_release(bench.cluster, &wish);
	lookup_reset(lookup);
	return wish.index;
}

TEST(an_index_is_taken_that_somebody_else_has_locked)
{
	const struct lock_hold hold = { .uuid = "G1", .core_milli = 500, .mem_mib = 40000 };
	char map[LOOKUP_MAP_MAX];
	struct lock_entry entry = { .uid = "u-p",
				    .namespace = "ml",
				    .name = "p",
				    .version = "1",
				    .attempt = 5,
				    .map = map,
				    .holds = &hold,
				    .holds_count = 1 };

	open_with_node();
	CHECK_INT(next_index(map), 0);
	CHECK(residents_put_guest(residents, "a", &entry) == 0);
	CHECK_INT(next_index(map), 1);
	residents_remove_guest(residents, "u-p");
	CHECK_INT(next_index(map), 0);
	close_all();
}

TEST(who_is_locked_by_a_map_shares_its_card_with_those_of_the_map)
{
	const struct lock_hold holds[] = {
		{ .uuid = "G0", .core_milli = 500, .mem_mib = 40000 },
		{ .uuid = "G1", .core_milli = 500, .mem_mib = 40000 },
	};
	char map[LOOKUP_MAP_MAX];
	struct lock_entry entry = { .uid = "u-z",
				    .namespace = "ml",
				    .name = "z",
				    .version = "1",
				    .attempt = 5,
				    .map = map,
				    .map_index = 1,
				    .holds = holds,
				    .holds_count = 2 };

	open_with_node();
	next_index(map);
	CHECK(residents_put_guest(residents, "a", &entry) == 0);
	CHECK_INT(node()->gpus[1].use, GPU_SHARED);
	CHECK_INT(node()->gpus[1].group, 0); /* nobody knows */
	bench_put(KUBE_POD, SIBLING);
	CHECK(residents_put_guest(residents, "a", &entry) == 0);
	CHECK(node()->gpus[1].group != 0);
	CHECK_INT(node()->gpus[0].group, 0); /* not of its line */
	uint32_t group = node()->gpus[1].group;
	bench_put(KUBE_POD, MAPPED("one", "0"));
	CHECK_INT(gpus("one"), 1 << 1);
	CHECK_INT(node()->gpus[1].group, group);
	CHECK_INT(node()->gpus[1].tenants, 2);
	residents_remove_guest(residents, "u-z");
	close_all();
}

#define OF(kind, owner)                                                               \
	", ownerReferences: [{apiVersion: apps/v1, kind: " kind ", name: " owner ", " \
	"uid: u-" owner ", controller: true}]"
#define INDEXED                                                                 \
	", annotations: {gpu.scheduling/decision: '{\"node\":\"a\",\"attempt\"" \
	":5,\"gpus\":[" HALF("G1") "],\"index\":1}'}"
#define SERVED POD("s-1", OF("ReplicaSet", "rs") INDEXED, "", "")

TEST(at_the_start_pods_may_come_before_what_owns_them)
{
	const struct dialect_lookup *d;

	open_with_node();
	bench_put(KUBE_POD, SERVED);
	CHECK_INT(gpus("s-1"), 1 << 1); /* its decision says so, whoever owns it */
	bench_put(KUBE_REPLICA_SET, "metadata: {name: rs, namespace: ml, uid: u-rs, "
				    "resourceVersion: RV" OF("Deployment", "web") "}\n");
	bench_put(KUBE_DEPLOYMENT, "metadata: {name: web, namespace: ml, uid: u-web, "
				   "resourceVersion: RV, annotations: {gpu-scheduling-map: "
				   "\"0=a:1\\n1=a:1\"}}\n");
	d = lookup_dialect(lookup);
	CHECK(!d->index_taken(d->context, "map/ml/Deployment/web", 1));
	residents_know(residents);
	CHECK(d->index_taken(d->context, "map/ml/Deployment/web", 1));
	CHECK(!d->index_taken(d->context, "map/ml/Deployment/web", 0));
	CHECK_INT(gpus("s-1"), 1 << 1);
	close_all();
}

TEST(a_pod_whose_owner_is_gone_stays_as_it_is)
{
	open_with_node();
	bench_put(KUBE_POD, SERVED);
	residents_know(residents);
	CHECK_INT(gpus("s-1"), 1 << 1);
	CHECK_INT(bench_logged("can be read"), 0);
	close_all();
}

TEST(a_lock_of_somebody_else_holds_its_gpus_until_its_pod_is_bound)
{
	const struct lock_hold holds[] = { { .uuid = "G1", .core_milli = 1000, .mem_mib = 80000 },
					   { .uuid = "gone", .core_milli = 1000 } };
	const struct lock_entry entry = { .uid = "u-p",
					  .namespace = "ml",
					  .name = "p",
					  .version = "1",
					  .attempt = 5,
					  .holds = holds,
					  .holds_count = 2 };

	open();
	CHECK(residents_put_guest(residents, "a", &entry) == 0); /* before its node */
	CHECK_INT(gpus("p"), -1);
	bench_put(KUBE_NODE, NODE("a"));
	bench_put(KUBE_GPU_NODE_STATUS, REPORT(FOUR));
	CHECK_INT(gpus("p"), 1 << 1);
	CHECK_INT(pod("p")->priority, INT32_MAX);
	bench_put(KUBE_POD, POD("p", DECIDED(WHOLE("G1")), "", ""));
	CHECK_INT(last, RESIDENT_CAME);
	CHECK_INT(gpus("p"), 1 << 1);
	CHECK_INT(node()->free.cpu_milli, 63000);
	residents_remove_guest(residents, "u-p"); /* it is none any more */
	CHECK_INT(gpus("p"), 1 << 1);
	CHECK(residents_put_guest(residents, "a", &entry) == 0); /* the pod is there */
	CHECK_INT(node()->free.cpu_milli, 63000);
	bench_delete(KUBE_POD, POD("p", "", "", ""));
	CHECK(residents_put_guest(residents, "a", &entry) == 0);
	CHECK(residents_put_guest(residents, "a", &entry) == 0);
	CHECK_INT(gpus("p"), 1 << 1);
	residents_remove_guest(residents, "u-p");
	residents_remove_guest(residents, "u-p");
	CHECK_INT(gpus("p"), -1);
	CHECK_INT(node()->idle, 15);
	close_all();
}

TEST(a_gang_is_known_by_its_name_inside_its_namespace)
{
	open_with_node();
	bench_put(KUBE_POD_GROUP, "metadata: {name: g, namespace: ml, uid: u-g, resourceVersion: "
				  "RV}\nspec: {minMember: 2}\n");
	bench_put(KUBE_POD,
		  POD("p", ", labels: {scheduling.x-k8s.io/pod-group: g}" DECIDED(WHOLE("G2")), "",
		      ""));
	CHECK_STR(bench_seen(), "g");
	CHECK_INT(pod("p")->gang, 77);
	close_all();
}

#define BUDGET(allowed)                                                                      \
	"metadata: {name: b, namespace: ml, uid: u-b, resourceVersion: RV}\n"                \
	"spec: {selector: {matchLabels: {app: web}}}\nstatus: {disruptionsAllowed: " allowed \
	"}\n"

TEST(who_is_always_started_again_never_ends)
{
	open_with_node();
	bench_put(KUBE_POD, POD("p", "", "restartPolicy: Always, ", ""));
	bench_put(KUBE_POD, POD("q", "", "restartPolicy: OnFailure, ", ""));
	CHECK(pod("p")->endless && !pod("q")->endless);
	close_all();
}

TEST(whom_a_budget_guards_is_known_before_victims_are_looked_for)
{
	open_with_node();
	bench_put(KUBE_POD_DISRUPTION_BUDGET, BUDGET("0"));
	bench_put(KUBE_POD, POD("p", ", labels: {app: web}", "", ""));
	bench_put(KUBE_POD, POD("q", ", labels: {app: db}", "", ""));
	CHECK(pod("p")->budget == 1 && !pod("q")->budget);
	CHECK_INT(cluster_budget_allowed(bench.cluster, 1), 0);
	bench_put(KUBE_POD_DISRUPTION_BUDGET, BUDGET("3"));
	residents_guard(residents);
	CHECK(pod("p")->budget == 1 && !pod("q")->budget);
	CHECK_INT(cluster_budget_allowed(bench.cluster, 1), 3);
	bench_put(KUBE_POD_DISRUPTION_BUDGET, BUDGET("2"));
	residents_guard(residents);
	CHECK_INT(cluster_budget_allowed(bench.cluster, 1), 2);
	bench_delete(KUBE_POD_DISRUPTION_BUDGET, BUDGET("0"));
	residents_guard(residents);
	CHECK(!pod("p")->budget);
	bench_put(KUBE_POD_DISRUPTION_BUDGET, BUDGET("0"));
	residents_guard(residents);
	CHECK(pod("p")->budget == 1 && !pod("q")->budget);
	close_all();
}

static int entry_of(const char *yaml, struct arena *arena, struct lock_entry *ret)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = bench_parse(yaml);
	struct err err = ERR_INIT;
	int rc = resident_entry(json_root(doc), arena, ret, &err);

	CHECK((rc < 0) == (err.text[0] != '\0'));
	return rc;
}

TEST(the_entry_that_a_bound_pod_must_have)
{
	struct lock_entry entry;
	struct arena arena;

	bench.version = 40;
	arena_init(&arena, 1 << 20);
	CHECK(entry_of(POD("p",
			   DECIDED(HALF("G1") ",{\"uuid\":\"G2\",\"mig\":{\"profile\":"
					      "\"1g.5gb\",\"start\":3}}"),
			   "", ""),
		       &arena, &entry) == 0);
	CHECK_STR(entry.uid, "u-p");
	CHECK_STR(entry.namespace, "ml");
	CHECK_STR(entry.name, "p");
	CHECK_STR(entry.version, "41");
	CHECK_INT(entry.attempt, 5);
	CHECK(entry.gang == NULL);
	CHECK_INT(entry.holds_count, 2);
	CHECK_STR(entry.holds[0].uuid, "G1");
	CHECK_INT(entry.holds[0].core_milli, 500);
	CHECK_INT(entry.holds[0].mem_mib, 40000);
	CHECK_STR(entry.holds[1].mig_profile, "1g.5gb");
	CHECK_INT(entry.holds[1].mig_start, 3);
	/* What a cache keeps has no version. */
	CHECK(entry_of("metadata: {name: p, namespace: ml, uid: u" DECIDED(
			       WHOLE("G1")) "}\nspec: {nodeName: a}\n",
		       &arena, &entry) == 0);
	CHECK_STR(entry.version, "0");
	CHECK(entry_of(POD("p", "", "", ""), &arena, &entry) == -ENOENT);
	CHECK(entry_of(POD("p", DECIDED(""), "", ""), &arena, &entry) == -ENOENT);
	CHECK(entry_of(POD("p", DECIDED("{}"), "", ""), &arena, &entry) == -EINVAL);
	CHECK(entry_of("metadata: {name: p, uid: u" DECIDED(WHOLE("G1")) "}\nspec: {nodeName: "
									 "a}\n",
		       &arena, &entry) == -EINVAL);
	arena_done(&arena);
}

TEST_MAIN()
