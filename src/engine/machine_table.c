/* SPDX-License-Identifier: Apache-2.0 */
/* machine_table.c - the presets.
 *
 * NVLink is nominal, both directions: P100 40 GB/s a link, V100, A100 and H100 50,
 * Blackwell 100; a bridge counts all its links.  PCIe and sockets are what NCCL
 * assumes (12 GB/s a direction for x16 of generation 3, doubled with each one; QPI of
 * Broadwell 6, UPI of Skylake 10 and of Sapphire Rapids 22, EPYC 16), twice, and
 * through a host bridge a twelfth less, so that a pair below one switch is
 * always faster than one in the same socket, and that faster than one across sockets.
 *
 * Memory of a GPU is what nvidia-smi shows.  CPUs count threads.
 */
#include "engine/machine.h"

#include "base/attr.h"
#include "engine/mig.h"

#define PCIE3 .switch_gbps = 24, .numa_gbps = 22
#define PCIE4 .switch_gbps = 48, .numa_gbps = 44
#define PCIE5 .switch_gbps = 96, .numa_gbps = 88

#define BROADWELL 12
#define SKYLAKE	  20
#define EPYC	  32
#define XEON	  44

#define GIB(n) ((n)*1024)

/* The hybrid cube mesh: two quads, each GPU also linked to its image in the other. */
static const struct machine_pair cube_mesh_p100[] = {
	{ 0, 1, 40 }, { 0, 2, 40 }, { 0, 3, 40 }, { 0, 4, 40 }, { 1, 2, 40 }, { 1, 3, 40 },
	{ 1, 5, 40 }, { 2, 3, 40 }, { 2, 6, 40 }, { 3, 7, 40 }, { 4, 5, 40 }, { 4, 6, 40 },
	{ 4, 7, 40 }, { 5, 6, 40 }, { 5, 7, 40 }, { 6, 7, 40 },
};

static const struct machine_pair cube_mesh_v100[] = {
	{ 0, 1, 50 },  { 0, 2, 50 },  { 0, 3, 100 }, { 0, 4, 100 }, { 1, 2, 100 }, { 1, 3, 50 },
	{ 1, 5, 100 }, { 2, 3, 100 }, { 2, 6, 50 },  { 3, 7, 50 },  { 4, 5, 50 },  { 4, 6, 50 },
	{ 4, 7, 100 }, { 5, 6, 100 }, { 5, 7, 50 },  { 6, 7, 100 },
};

/* Bridges over two neighbouring slots. */
static const struct machine_pair bridges_600[] = {
	{ 0, 1, 600 },
	{ 2, 3, 600 },
	{ 4, 5, 600 },
	{ 6, 7, 600 },
};

static const struct machine_pair bridges_200[] = { { 0, 1, 200 }, { 2, 3, 200 } };

static const struct machine_pair bridges_112[] = {
	{ 0, 1, 112 },
	{ 2, 3, 112 },
	{ 4, 5, 112 },
	{ 6, 7, 112 },
};

/* Bridges over four slots: each GPU 6 links to each of the other three. */
static const struct machine_pair bridges_quads[] = {
	{ 0, 1, 300 }, { 0, 2, 300 }, { 0, 3, 300 }, { 1, 2, 300 }, { 1, 3, 300 }, { 2, 3, 300 },
	{ 4, 5, 300 }, { 4, 6, 300 }, { 4, 7, 300 }, { 5, 6, 300 }, { 5, 7, 300 }, { 6, 7, 300 },
};

#define PAIRS(array) .pairs = (array), .pair_count = ARRAY_SIZE(array)
#define GPUS(n, numa, pcie_switch) \
	.gpu_count = (n), .gpus_per_numa = (numa), .gpus_per_switch = (pcie_switch)
#define HOST_OF_RACK(cpus, gib, nodes) \
	.cpu_milli = (cpus)*1000, .mem_mib = GIB(gib), .nvlink_domain_nodes = (nodes)
#define HOST(cpus, gib) HOST_OF_RACK(cpus, gib, 1)

/* A table reads best with few lines for each machine. */
/* clang-format off */
static const struct machine machines[] = {
	{ .name = "dgx-1p", .model = "Tesla-P100-SXM2-16GB", .gpu_mem_mib = 16384,
	  GPUS(8, 4, 2), HOST(80, 512), PAIRS(cube_mesh_p100), PCIE3, .far_gbps = BROADWELL },
	{ .name = "dgx-1v", .model = "Tesla-V100-SXM2-32GB", .gpu_mem_mib = 32768,
	  GPUS(8, 4, 2), HOST(80, 512), PAIRS(cube_mesh_v100), PCIE3, .far_gbps = BROADWELL },
	{ .name = "dgx-2", .model = "Tesla-V100-SXM3-32GB", .gpu_mem_mib = 32768,
	  GPUS(16, 8, 2), HOST(96, 1536), .nvlink_gbps = 300, PCIE3, .far_gbps = SKYLAKE },
	{ .name = "dgx-a100", .model = "NVIDIA-A100-SXM4-80GB", .gpu_mem_mib = 81920,
	  GPUS(8, 2, 2), HOST(256, 2048), .nvlink_gbps = 600, PCIE4, .far_gbps = EPYC,
	  .mig = &mig_a100_80gb },
	{ .name = "dgx-a100-40", .model = "NVIDIA-A100-SXM4-40GB", .gpu_mem_mib = 40960,
	  GPUS(8, 2, 2), HOST(256, 1024), .nvlink_gbps = 600, PCIE4, .far_gbps = EPYC,
	  .mig = &mig_a100_40gb },
	{ .name = "dgx-h100", .model = "NVIDIA-H100-80GB-HBM3", .gpu_mem_mib = 81559,
	  GPUS(8, 4, 1), HOST(224, 2048), .nvlink_gbps = 900, PCIE5, .far_gbps = XEON,
	  .mig = &mig_h100_80gb },
	{ .name = "dgx-h200", .model = "NVIDIA-H200", .gpu_mem_mib = 143771,
	  GPUS(8, 4, 1), HOST(224, 2048), .nvlink_gbps = 900, PCIE5, .far_gbps = XEON,
	  .mig = &mig_h200_141gb },
	{ .name = "dgx-b200", .model = "NVIDIA-B200", .gpu_mem_mib = 183359,
	  GPUS(8, 4, 1), HOST(224, 4096), .nvlink_gbps = 1800, PCIE5, .far_gbps = XEON,
	  .mig = &mig_b200_180gb },
	/* One compute tray; 18 of them share the NVLink switches of the rack. */
	{ .name = "gb200-nvl72", .model = "NVIDIA-GB200", .gpu_mem_mib = 189471,
	  GPUS(4, 2, 1), HOST_OF_RACK(144, 960, 18), .nvlink_gbps = 1800, PCIE5,
	  .far_gbps = XEON, .mig = &mig_gb200_186gb },
	{ .name = "hgx-a100-4", .model = "NVIDIA-A100-SXM4-80GB", .gpu_mem_mib = 81920,
	  GPUS(4, 2, 1), HOST(128, 1024), .nvlink_gbps = 200, PCIE4, .far_gbps = EPYC,
	  .mig = &mig_a100_80gb },
	{ .name = "hgx-h100-4", .model = "NVIDIA-H100-80GB-HBM3", .gpu_mem_mib = 81559,
	  GPUS(4, 2, 1), HOST(128, 1024), .nvlink_gbps = 300, PCIE5, .far_gbps = XEON,
	  .mig = &mig_h100_80gb },
	{ .name = "a100-pcie", .model = "NVIDIA-A100-80GB-PCIe", .gpu_mem_mib = 81920,
	  GPUS(8, 4, 4), HOST(128, 1024), PAIRS(bridges_600), PCIE4, .far_gbps = EPYC,
	  .mig = &mig_a100_80gb },
	{ .name = "h100-pcie", .model = "NVIDIA-H100-PCIe", .gpu_mem_mib = 81559,
	  GPUS(8, 4, 4), HOST(128, 1024), PAIRS(bridges_600), PCIE5, .far_gbps = XEON,
	  .mig = &mig_h100_80gb },
	{ .name = "h100-nvl", .model = "NVIDIA-H100-NVL", .gpu_mem_mib = 95830,
	  GPUS(8, 4, 4), HOST(128, 1536), PAIRS(bridges_600), PCIE5, .far_gbps = XEON,
	  .mig = &mig_h100_94gb },
	{ .name = "h200-nvl", .model = "NVIDIA-H200-NVL", .gpu_mem_mib = 143771,
	  GPUS(8, 4, 4), HOST(128, 1536), PAIRS(bridges_quads), PCIE5, .far_gbps = XEON,
	  .mig = &mig_h200_141gb },
	{ .name = "a30", .model = "NVIDIA-A30", .gpu_mem_mib = 24576,
	  GPUS(4, 2, 2), HOST(64, 512), PAIRS(bridges_200), PCIE4, .far_gbps = EPYC,
	  .mig = &mig_a30_24gb },
	{ .name = "a40", .model = "NVIDIA-A40", .gpu_mem_mib = 46068,
	  GPUS(8, 4, 4), HOST(128, 1024), PAIRS(bridges_112), PCIE4, .far_gbps = EPYC },
	{ .name = "l40s", .model = "NVIDIA-L40S", .gpu_mem_mib = 46068,
	  GPUS(8, 4, 4), HOST(128, 1024), PCIE4, .far_gbps = EPYC },
	{ .name = "l40s-4", .model = "NVIDIA-L40S", .gpu_mem_mib = 46068,
	  GPUS(4, 2, 2), HOST(64, 512), PCIE4, .far_gbps = EPYC },
	{ .name = "l4", .model = "NVIDIA-L4", .gpu_mem_mib = 23034,
	  GPUS(8, 4, 4), HOST(96, 384), PCIE4, .far_gbps = EPYC },
	{ .name = "a10", .model = "NVIDIA-A10", .gpu_mem_mib = 23028,
	  GPUS(4, 2, 2), HOST(64, 256), PCIE4, .far_gbps = EPYC },
	{ .name = "t4", .model = "Tesla-T4", .gpu_mem_mib = 15360,
	  GPUS(4, 2, 2), HOST(64, 256), PCIE3, .far_gbps = SKYLAKE },
	{ .name = "t4-1", .model = "Tesla-T4", .gpu_mem_mib = 15360,
	  GPUS(1, 1, 1), HOST(8, 32), PCIE3, .far_gbps = SKYLAKE },
};
/* clang-format on */

const struct machine *machine_at(size_t i)
{
	return i < ARRAY_SIZE(machines) ? &machines[i] : NULL;
}
