/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "dialect/node.h"
#include "engine/links.h"
#include "wire/json.h"
#include "wire/yaml.h"

struct bench {
	struct cluster *cluster;
	struct arena arena;
	struct yaml node, status;
	struct node_spec spec;
	struct links *links;
	struct err err;
};

static void bench_init(struct bench *b)
{
	*b = (struct bench){ .cluster = cluster_new(&(struct cluster_config){ 0 }) };
	CHECK(b->cluster);
	arena_init(&b->arena, 1 << 20);
}

static void bench_done(struct bench *b)
{
	yaml_done(&b->node);
	yaml_done(&b->status);
	cluster_free(b->cluster);
	links_free(b->links);
	arena_done(&b->arena);
}

static const struct links *keep_links(void *context, const struct links_input *input)
{
	struct bench *b = context;

	return links_new(input, &b->links, NULL) == 0 ? b->links : NULL;
}

/* Reads the node and, if it is not NULL, the status. */
static int read(struct bench *b, const char *node, const char *status)
{
	struct node_options options = { .links = keep_links, .context = b };

	yaml_done(&b->node);
	yaml_done(&b->status);
	links_free(b->links);
	b->links = NULL;
	CHECK(yaml_parse("node", node, strlen(node), NULL, &b->node, &b->err) == 0);
	if (status)
		CHECK(yaml_parse("status", status, strlen(status), NULL, &b->status, &b->err) ==
		      0);
	return node_read(b->cluster, json_root(b->node.items[0].doc),
			 status ? json_root(b->status.items[0].doc) : NULL, &options, &b->arena,
			 &b->spec, &b->err);
}

#define NODE(rest) "metadata: {name: n1, labels: {" rest "}}\n"

TEST(a_node_says_labels_taints_resources_and_its_place)
{
	struct bench b;
	uint32_t number;

	bench_init(&b);
	CHECK(read(&b,
		   NODE("topology.scheduler/leaf: leaf-7, topology.scheduler/spine: s-1, "
			"topology.scheduler/network-bandwidth: 100Gbps") "spec: {unschedulable: "
									 "true, taints: [{key: a, "
									 "value: b, effect: "
									 "NoExecute}, "
									 "{key: c, effect: "
									 "Whatever}]}\n"
									 "status: {allocatable: "
									 "{cpu: 1500m, memory: "
									 "2Gi, ephemeral-storage: "
									 "1k, "
									 "pods: '110', "
									 "example.com/fpga: 3, "
									 "nvidia.com/gpu: 2}}\n",
		   NULL) == 0);
	CHECK_STR(b.spec.name, "n1");
	CHECK(b.spec.unschedulable);
	CHECK_INT(b.spec.labels_count, 3);
	CHECK_INT(b.spec.taints_count, 2);
	CHECK_INT(b.spec.taints[0].effect, EFFECT_NO_EXECUTE);
	CHECK_INT(b.spec.taints[1].effect, EFFECT_PREFER_NO_SCHEDULE);
	CHECK_INT(b.spec.allocatable.cpu_milli, 1500);
	CHECK_INT(b.spec.allocatable.mem_bytes, INT64_C(2) << 30);
	CHECK_INT(b.spec.allocatable.ephemeral_bytes, 1000);
	CHECK_INT(b.spec.allocatable.pods, 110);
	CHECK_INT(b.spec.extended_count, 1);
	CHECK_INT(b.spec.extended[0].amount, 3);
	CHECK_INT(b.spec.domains_count, 2);
	CHECK_STR(b.spec.domains[0], "s-1");
	CHECK_STR(b.spec.domains[1], "leaf-7");
	CHECK_INT(b.spec.network_gbps, 100);
	CHECK_INT(b.spec.gpus_count, 2);
	CHECK_STR(b.spec.gpus[1].uuid, "GPU-n1-1");
	CHECK_STR(b.spec.gpus[1].model, "unknown");
	CHECK(cluster_node_add(b.cluster, &b.spec, &number, &b.err) == 0);
	bench_done(&b);
}

TEST(without_a_report_labels_tell_what_the_cards_are)
{
	struct bench b;

	bench_init(&b);
	CHECK(read(&b,
		   NODE("nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3") "status: {allocatable: "
									 "{nvidia.com/gpu: 8}}\n",
		   NULL) == 0);
	CHECK_INT(b.spec.gpus_count, 8);
	CHECK_STR(b.spec.gpus[0].model, "NVIDIA-H100-80GB-HBM3");
	CHECK(b.spec.gpus[0].mem_mib >= 80000);
	CHECK(b.spec.mig != NULL);
	CHECK_INT(b.spec.gpus[7].numa, 1);
	CHECK(b.spec.links != NULL); /* of a whole machine; of a part nobody knows which */
	CHECK(read(&b,
		   NODE("nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3") "status: {allocatable: "
									 "{nvidia.com/gpu: 4}}\n",
		   NULL) == 0);
	CHECK(b.spec.links == NULL);
	CHECK(read(&b,
		   NODE("nvidia.com/gpu.memory: '123'") "status: {allocatable: "
							"{elasticgpu.io/gpu-core: 250}}\n",
		   NULL) == 0);
	CHECK_INT(b.spec.gpus_count, 2);
	CHECK_INT(b.spec.gpus[0].mem_mib, 123);
	bench_done(&b);
}

TEST(what_the_agent_reports_wins)
{
	struct bench b;

	bench_init(&b);
	CHECK(read(&b, NODE("a: b") "status: {allocatable: {nvidia.com/gpu: 8}}\n",
		   "status:\n"
		   "  devices:\n"
		   "  - {id: 1, uuid: GPU-b, model: A, memoryMiB: 10, health: Unhealthy, "
		   "numaNode: 1, nvlinkPeers: [0], loadPercent: 250}\n"
		   "  - {id: 0, uuid: GPU-a, model: A, memoryMiB: 20, health: Healthy, "
		   "migEnabled: true, nvlinkPeers: [1]}\n"
		   "  linksGBps: [[0, 600], [600, 0]]\n"
		   "  network: {bandwidthGbps: 400}\n") == 0);
	CHECK_INT(b.spec.gpus_count, 2);
	CHECK_STR(b.spec.gpus[0].uuid, "GPU-a");
	CHECK_INT(b.spec.gpus[0].mem_mib, 20);
	CHECK(b.spec.gpus[0].mig_mode && !b.spec.gpus[0].unhealthy);
	CHECK_STR(b.spec.gpus[1].uuid, "GPU-b");
	CHECK(b.spec.gpus[1].unhealthy);
	CHECK_INT(b.spec.gpus[1].load_percent, 100);
	CHECK_INT(b.spec.network_gbps, 400);
	CHECK(b.spec.links);
	CHECK_INT(b.spec.links->gbps[0][1], 600);
	CHECK_INT(b.spec.links->nvlink[0], 2);
	/* None at all is a report too. */
	CHECK(read(&b, NODE("a: b") "status: {allocatable: {nvidia.com/gpu: 8}}\n",
		   "status: {devices: []}\n") == 0);
	CHECK_INT(b.spec.gpus_count, 0);
	bench_done(&b);
}

#define SLICED(more)                                                                             \
	"status:\n"                                                                              \
	"  devices:\n"                                                                           \
	"  - {id: 1, uuid: GPU-b, model: NVIDIA-H100-80GB-HBM3}\n"                               \
	"  - {id: 0, uuid: GPU-a, model: NVIDIA-H100-80GB-HBM3, migEnabled: true, migDevices: [" \
	"{uuid: M0, profile: 3g.40gb, start: 4}, {uuid: M1, profile: 1g.10gb.me, start: 0},"     \
	"{uuid: M2, profile: 9g.1tb, start: 1}, {uuid: M3, profile: 1g.10gb},"                   \
	"{uuid: M4, profile: 1g.10gb, start: 8}, {uuid: M5, start: 2}]}\n" more

TEST(slices_are_those_that_are_made_unless_the_node_makes_them)
{
	uint8_t expected[MIG_SLICES_MAX] = { 0 };
	struct bench b;

	bench_init(&b);
	CHECK(read(&b, NODE("a: b"), SLICED("")) == 0);
	expected[4] = (uint8_t)(mig_profile_find(b.spec.mig, "3g.40gb", 7) + 1);
	expected[0] = (uint8_t)(mig_profile_find(b.spec.mig, "1g.10gb+me", 10) + 1);
	CHECK_INT(b.spec.gpus[0].mig_mode, MIG_MADE);
	CHECK(memcmp(b.spec.gpus[0].mig_made, expected, sizeof(expected)) == 0);
	CHECK_INT(b.spec.gpus[1].mig_mode, MIG_OFF);
	CHECK(read(&b, NODE("a: b"), SLICED("  migDynamic: true\n")) == 0);
	CHECK_INT(b.spec.gpus[0].mig_mode, MIG_ANY);
	CHECK_INT(b.spec.gpus[1].mig_mode, MIG_OFF);
	/* None is made. */
	CHECK(read(&b, NODE("a: b"),
		   "status: {devices: [{id: 0, uuid: GPU-a, model: NVIDIA-H100-80GB-HBM3, "
		   "migEnabled: true}]}\n") == 0);
	CHECK_INT(b.spec.gpus[0].mig_mode, MIG_MADE);
	bench_done(&b);
}

TEST(rdma_and_storage_are_as_reported_or_else_as_labelled)
{
	static const struct {
		const char *node, *status;
		unsigned ports, hcas;
		bool cufile;
	} rows[] = {
		{ NODE("a: b"), NULL, 0, 0, false },
		{ NODE("gpu.scheduling/rdma: 'true', gpu.scheduling/cufile: 'true'"), NULL, 1, 0,
		  true },
		{ NODE("gpu.scheduling/rdma: 'false', gpu.scheduling/cufile: 'no'"), NULL, 0, 0,
		  false },
		{ NODE("gpu.scheduling/rdma-ports: '4'"), NULL, 4, 0, false },
		{ NODE("gpu.scheduling/rdma-ports: four"), NULL, 0, 0, false },
		{ NODE("gpu.scheduling/rdma-ports: '4', gpu.scheduling/cufile: 'true'"),
		  "status: {network: {rdmaPorts: 0}, storage: {cuFile: false}}\n", 0, 0, false },
		{ NODE("a: b"),
		  "status: {network: {rdmaPorts: 8, hcas: [mlx5_0, mlx5_1]}, storage: {cuFile: "
		  "true}}\n",
		  8, 3, true },
		/* The same names have the same numbers. */
		{ NODE("a: b"), "status: {network: {hcas: [mlx5_1, 7, irdma0]}}\n", 3, 2 | 4,
		  false },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECK_INT(read(&b, rows[i].node, rows[i].status), 0);
		CHECKF(b.spec.rdma_ports == rows[i].ports && b.spec.hcas == rows[i].hcas &&
			       b.spec.cufile == rows[i].cufile,
		       "row %zu", i);
	}
	bench_done(&b);
}

TEST(what_cannot_be_is_said_in_a_sentence)
{
	static const struct {
		const char *node, *status, *says;
	} rows[] = {
		{ "metadata: {}\n", NULL, "a Node has no metadata.name" },
		{ NODE("topology.scheduler/network-bandwidth: fast"), NULL,
		  "node n1: the label topology.scheduler/network-bandwidth is \"fast\", which is "
		  "no "
		  "bandwidth such as 100Gbps" },
		{ NODE("a: b"), "status: {devices: [{id: 1, uuid: u}]}\n",
		  "GpuNodeStatus n1: device 1 has no id below the number of devices" },
		{ NODE("a: b"), "status: {devices: [{id: 0, uuid: u}, {id: 0, uuid: v}]}\n",
		  "GpuNodeStatus n1: device 0 is there twice" },
		{ NODE("a: b"), "status: {devices: [{id: 0}]}\n",
		  "GpuNodeStatus n1: device 0 has no uuid" },
		{ NODE("a: b"), "status: {devices: [{id: 0, uuid: u, memoryMiB: -1}]}\n",
		  "GpuNodeStatus n1: device 0 has an impossible memoryMiB" },
		{ NODE("a: b"), "status: {devices: [{id: 0, uuid: u, nvlinkPeers: [0]}]}\n",
		  "GpuNodeStatus n1: device 0 names an NVLink peer that is not there" },
		{ NODE("a: b"), "status: {devices: [{id: 0, uuid: u}], linksGBps: [[0, 1]]}\n",
		  "GpuNodeStatus n1: linksGBps must be 1 rows of 1 numbers" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench b;

		bench_init(&b);
		CHECK_INT(read(&b, rows[i].node, rows[i].status), -EINVAL);
		CHECK_STR(b.err.text, rows[i].says);
		bench_done(&b);
	}
}

TEST_MAIN()
