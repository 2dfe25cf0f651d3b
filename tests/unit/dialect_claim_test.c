/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect_bench.h"

#include "dialect/keys.h"
#include "engine/pick.h"

#define POD(spec)                                                                  \
	"kind: Pod\nmetadata: {name: p, annotations: {gpu.scheduling/claim: c}}\n" \
	"spec: " spec "\n---\n"
#define PLAIN	     POD("{containers: [{name: a}, {name: b}]}")
#define LIMIT(limit) POD("{containers: [{name: a, resources: {limits: {" limit "}}}]}")
#define CLAIM(spec)  "kind: GpuClaim\nmetadata: {name: c}\nspec: " spec "\n"

TEST(a_claim_gives_its_gpus_to_every_container)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, PLAIN CLAIM("{devices: {count: 3}}")) == 0);
	const struct ask *ask = &b.wish.request.asks[0];
	CHECK_INT(b.wish.request.asks_count, 1);
	CHECK_INT(ask->kind, ASK_WHOLE);
	CHECK_INT(ask->count, 3);
	CHECK_INT(ask->policy, PICK_CONTIGUOUS);
	CHECK_INT(ask->bandwidth_mode, PICK_PREFERRED);
	CHECK_INT(b.wish.containers[0].asks, 1);
	CHECK_INT(b.wish.containers[1].asks, 1);
	bench_done(&b);
}

TEST(every_field_of_a_claim_is_read)
{
	struct bench b;

	bench_init(&b);
	/* Labels that some node has. */
	CHECK(cluster_intern(b.cluster, "pool") && cluster_intern(b.cluster, "x"));
	CHECK_INT(cluster_hca(b.cluster, "mlx5_0"), 0);
	CHECK_INT(cluster_hca(b.cluster, "mlx5_1"), 1);
	CHECK(bench_read(
		      &b,
		      PLAIN CLAIM(
			      "{devices: {count: 2, policy: preferIds, preferIds: [5, 3, 99, 5]},"
			      " selector: {matchLabels: {pool: x}},"
			      " topology: {mode: Required, minBandwidthGBps: 400},"
			      " network: {rdmaRequired: true, minPorts: 3,"
			      " preferredHcas: [mlx5_1, nobody_has_it]},"
			      " storage: {cuFile: true},"
			      " gangRef: team, gangMinMembers: 4}")) == 0);
	const struct ask *ask = &b.wish.request.asks[0];
	CHECK_INT(ask->policy, PICK_PREFER);
	CHECK_INT(ask->prefer_count, 2);
	CHECK_INT(ask->prefer[0], 5);
	CHECK_INT(ask->prefer[1], 3);
	CHECK_INT(ask->bandwidth_mode, PICK_REQUIRED);
	CHECK_INT(ask->min_gbps, 400);
	CHECK_INT(b.wish.request.selector_count, 1);
	CHECK_INT(b.wish.request.min_rdma_ports, 3);
	CHECK_INT(b.wish.request.prefer_hcas, 1 << 1);
	CHECK_INT(b.wish.request.cufile, 1);
	CHECK_STR(b.wish.gang.name, "default/team");
	CHECK_INT(b.wish.gang.members, 4);
	CHECK_INT(b.wish.gang.leaves, LEAVES_REQUIRED);
	bench_done(&b);
}

TEST(shared_and_mig_claims)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, PLAIN CLAIM("{devices: {count: 1, exclusivity: Shared, core: 30,"
					 " memoryMiB: 512}}")) == 0);
	CHECK_INT(b.wish.request.asks[0].kind, ASK_SHARE);
	CHECK_INT(b.wish.request.asks[0].core_milli, 300);
	CHECK_INT(b.wish.request.asks[0].mem_mib, 512);
	CHECK(bench_read(
		      &b,
		      PLAIN CLAIM("{devices: {count: 2, exclusivity: Shared, policy: spread}}")) ==
	      0);
	CHECK_INT(b.wish.request.asks[0].core_milli, 0);
	CHECK_INT(b.wish.request.asks[0].share_policy, SHARE_SPREAD);
	CHECK(bench_read(
		      &b,
		      PLAIN CLAIM(
			      "{devices: {count: 1, exclusivity: MIG, migProfile: 1g.10gb}}")) ==
	      0);
	CHECK_INT(b.wish.request.asks[0].kind, ASK_MIG);
	CHECK_STR(b.wish.request.asks[0].mig_profile, "1g.10gb");
	bench_done(&b);
}

TEST(claim_and_limits_speak_of_the_same_gpus)
{
	struct bench b;

	bench_init(&b);
	CHECK(bench_read(&b, LIMIT("nvidia.com/gpu: 2")
				     CLAIM("{devices: {count: 2, policy: spread}}")) == 0);
	CHECK_INT(b.wish.request.asks_count, 1);
	CHECK_INT(b.wish.request.asks[0].policy, PICK_SPREAD);
	CHECK(bench_read(&b, LIMIT("nvidia.com/gpu: 2") CLAIM("{devices: {policy: spread}}")) ==
	      0);
	CHECK_INT(b.wish.request.asks[0].count, 2);
	CHECK(bench_read(&b, LIMIT("elasticgpu.io/gpu-core: 20")
				     CLAIM("{devices: {count: 1, exclusivity: Shared}}")) == 0);
	CHECK_INT(b.wish.request.asks[0].core_milli, 200);
	/* An init container runs on the cards of both others. */
	CHECK(bench_read(&b, POD("{initContainers: [{name: i, resources: {limits:"
				 " {nvidia.com/gpu: 2}}}], containers: [{name: a, resources:"
				 " {limits: {nvidia.com/gpu: 1}}}, {name: b, resources: {limits:"
				 " {nvidia.com/gpu: 1}}}]}") CLAIM("{devices: {count: 2}}")) == 0);
	CHECK_INT(b.wish.request.asks_count, 2);
	bench_done(&b);
}

#define SHARES(a, b, c)                                                                       \
	POD("{containers: [{name: a, resources: {limits: {elasticgpu.io/gpu-core: " #a "}}}," \
	    " {name: b, resources: {limits: {elasticgpu.io/gpu-core: " #b "}}},"              \
	    " {name: c, resources: {limits: {elasticgpu.io/gpu-core: " #c                     \
	    ", elasticgpu.io/gpu-memory: 9}}}]}")
#define SHARED(fields) CLAIM("{devices: {exclusivity: Shared, " fields "}}")

TEST(shares_of_several_containers_lie_together_on_the_cards_of_the_claim)
{
	static const struct {
		const char *yaml;
		unsigned asks, core[3], of[3];
	} rows[] = {
		{ SHARES(30, 20, 50) SHARED("count: 1"), 1, { 1000 }, { 1, 1, 1 } },
		{ SHARES(30, 80, 50) SHARED("count: 2"), 2, { 800, 800 }, { 1, 2, 1 } },
		{ SHARES(30, 20, 50) SHARED("count: 3"), 3, { 300, 200, 500 }, { 1, 2, 4 } },
		{ SHARES(30, 20, 50) SHARED("policy: spread"), 3, { 300, 200, 500 }, { 1, 2, 4 } },
		{ SHARES(30, 20, 10) SHARED("count: 1, core: 60"), 1, { 600 }, { 1, 1, 1 } },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECKF(bench_read(&b, rows[i].yaml) == 0, "row %zu: %s", i, b.err.text);
		CHECKF(b.wish.request.asks_count == rows[i].asks, "row %zu", i);
		for (unsigned j = 0; j < 3; j++)
			CHECKF(b.wish.request.asks[j].core_milli == rows[i].core[j] &&
				       b.wish.containers[j].asks == rows[i].of[j],
			       "row %zu: %u", i, j);
		/* Each may still use only what it asked for. */
		CHECK_INT(b.wish.containers[2].mem_mib, 9);
		CHECK(b.wish.containers[2].core_milli >= 100);
	}
	bench_done(&b);
}

TEST(rdma_that_is_required_is_one_port_unless_more_are_asked_for)
{
	static const struct {
		const char *network;
		unsigned ports;
	} rows[] = {
		{ PLAIN CLAIM("{devices: {count: 1}}"), 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, network: {rdmaRequired: false}}"), 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, network: {rdmaRequired: true}}"), 1 },
		{ PLAIN CLAIM("{devices: {count: 1}, network: {minPorts: 2}}"), 2 },
		{ PLAIN CLAIM("{devices: {count: 1}, network: {minPorts: 0, rdmaRequired: true}}"),
		  1 },
	};
	struct bench b;

	bench_init(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECKF(bench_read(&b, rows[i].network) == 0, "row %zu: %s", i, b.err.text);
		CHECKF(b.wish.request.min_rdma_ports == rows[i].ports, "row %zu", i);
	}
	bench_done(&b);
}

TEST(claims_that_make_no_sense_are_refused)
{
	static const struct bad_pod rows[] = {
		{ PLAIN, "GpuClaim c does not exist in namespace default", ENOENT },
		{ PLAIN CLAIM("{devices: {}}"), "GpuClaim c: devices.count is missing", 0 },
		{ PLAIN CLAIM("{devices: {count: 0}}"),
		  "GpuClaim c: devices.count is 0, it must be from 1 to 32", 0 },
		{ PLAIN CLAIM("{devices: {count: two}}"),
		  "GpuClaim c: devices.count is no whole number", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, policy: best}}"),
		  "GpuClaim c: devices.policy is \"best\", which is none of contiguous, spread or "
		  "preferIds",
		  0 },
		{ PLAIN CLAIM("{devices: {count: 1, exclusivity: Half}}"),
		  "GpuClaim c: devices.exclusivity is \"Half\", which is none of Exclusive, "
		  "Shared or "
		  "MIG",
		  0 },
		{ PLAIN CLAIM("{devices: {count: 1}, topology: {mode: Maybe}}"),
		  "GpuClaim c: topology.mode is \"Maybe\", which is none of Preferred, Required "
		  "or "
		  "Ignore",
		  0 },
		{ PLAIN CLAIM("{devices: {count: 1, exclusivity: MIG}}"),
		  "GpuClaim c: exclusivity MIG needs devices.migProfile", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, migProfile: 1g.10gb}}"),
		  "GpuClaim c: devices.migProfile needs exclusivity MIG", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, exclusivity: MIG, migProfile:"
			      " 1g.10gb-but-much-too-long}}"),
		  "GpuClaim c: \"1g.10gb-but-much-too-long\" is no MIG profile", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, core: 50}}"),
		  "GpuClaim c: devices.core and devices.memoryMiB need exclusivity Shared", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, core: 101, exclusivity: Shared}}"),
		  "GpuClaim c: devices.core is 101, it must be from 1 to 100", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, policy: preferIds}}"),
		  "GpuClaim c: policy preferIds needs devices.preferIds", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, policy: preferIds, preferIds: [-1]}}"),
		  "GpuClaim c: devices.preferIds has an entry that is no GPU id", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, selector: {matchLabels: {a: 1}}}"),
		  "GpuClaim c: selector.matchLabels a is no string", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, policy: ''}}"),
		  "GpuClaim c: devices.policy is \"\", which is none of contiguous, spread or "
		  "preferIds",
		  0 },
		{ PLAIN CLAIM("{devices: {count: 1, exclusivity: 1}}"),
		  "GpuClaim c: devices.exclusivity is no word", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, preferIds: 1}}"),
		  "GpuClaim c: devices.preferIds is no list", 0 },
		{ PLAIN CLAIM("{devices: {count: 1, migProfile: 1}}"),
		  "GpuClaim c: devices.migProfile is no text", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, selector: {matchLabels: [a]}}"),
		  "GpuClaim c: selector.matchLabels is no mapping", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, network: {minPorts: 1025}}"),
		  "GpuClaim c: network.minPorts is 1025, it must be from 0 to 1024", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, network: {preferredHcas: mlx5_0}}"),
		  "GpuClaim c: network.preferredHcas is no list", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, network: {preferredHcas: [1]}}"),
		  "GpuClaim c: network.preferredHcas has an entry that is no name", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, gangRef: 3}"),
		  "GpuClaim c: gangRef is no name", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, network: {rdmaRequired: 3}}"),
		  "GpuClaim c: network.rdmaRequired is neither true nor false", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, storage: {cuFile: 3}}"),
		  "GpuClaim c: storage.cuFile is neither true nor false", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, gangRef: g, gangMinMembers: 0}"),
		  "GpuClaim c: gangMinMembers must be a whole number, 1 or more", 0 },
		{ PLAIN CLAIM("{devices: {count: 1}, gangMinMembers: 4}"),
		  "GpuClaim c: gangMinMembers is 4, but the pod is in no gang: give the claim a "
		  "gangRef",
		  0 },
		{ "kind: Pod\nmetadata: {name: p, annotations: {gpu.scheduling/claim: ''}}\n"
		  "spec: {containers: [{name: a}]}\n",
		  "gpu.scheduling/claim is empty: name a GpuClaim", 0 },
		{ LIMIT("nvidia.com/gpu: 4") CLAIM("{devices: {count: 2}}"),
		  "GpuClaim c asks for 2 GPUs, but the limits of its containers for 4", 0 },
		{ LIMIT("elasticgpu.io/gpu-core: 40") CLAIM("{devices: {count: 1}}"),
		  "GpuClaim c asks for whole GPUs, but the limits of its containers for shares of "
		  "GPUs",
		  0 },
		{ LIMIT("nvidia.com/mig-1g.10gb: 1")
			  CLAIM("{devices: {count: 1, exclusivity: MIG, migProfile: 2g.20gb}}"),
		  "GpuClaim c asks for slices of 2g.20gb, but the limits of its containers for "
		  "1g.10gb",
		  0 },
		{ LIMIT("elasticgpu.io/gpu-core: 40")
			  CLAIM("{devices: {count: 1, exclusivity: Shared, core: 30}}"),
		  "GpuClaim c and the limits of its containers ask for different shares", 0 },
		{ SHARES(30, 20, 10) SHARED("count: 1, memoryMiB: 10"),
		  "GpuClaim c and the limits of its containers ask for different shares", 0 },
		{ POD("{nodeSelector: {kubernetes.io/hostname: none}, containers: [{name: a}]}")
			  CLAIM("{devices: {count: 1},"
				" selector: {matchLabels: {kubernetes.io/hostname: beta}}}"),
		  "the node label kubernetes.io/hostname is to be both \"none\" and \"beta\"", 0 },
		{ PLAIN CLAIM("{devices: {count: 33}}"),
		  "GpuClaim c: devices.count is 33, it must be from 1 to 32", 0 },
		{ SHARES(30, 21, 50) SHARED("count: 1"),
		  "GpuClaim c asks for 1 GPUs, but the limits of its containers for 3", 0 },
		{ SHARES(30, 20, 10) SHARED("count: 1, core: 50"),
		  "GpuClaim c asks for 1 GPUs, but the limits of its containers for 3", 0 },
		{ SHARES(30, 20, 10) SHARED("count: 1, core: 70"),
		  "GpuClaim c and the limits of its containers ask for different shares", 0 },
	};

	bench_check_bad(rows, ARRAY_SIZE(rows));
}

TEST_MAIN()
