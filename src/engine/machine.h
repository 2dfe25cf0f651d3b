/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - the GPU machines that people have, by name.
 *
 * Presets for simulated nodes and for nodes whose agent has not reported its
 * links yet.  What an agent reports always wins.  The table is constant data;
 * names are lower case, found in any case.
 */
#ifndef GS_ENGINE_MACHINE_H
#define GS_ENGINE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/gpuset.h"

struct err;
struct links;
struct mig_geometry;

struct machine_pair {
	uint8_t a, b;  /* GPUs that NVLink joins directly */
	uint16_t gbps; /* both directions together */
};

struct machine {
	const char *name;  /* "dgx-h100" */
	const char *model; /* as GPU Feature Discovery has it in gpu.product:
					   "NVIDIA-H100-80GB-HBM3" */
	uint8_t gpu_count;
	uint8_t gpus_per_numa;	 /* NUMA node of GPU i = i / this */
	uint8_t gpus_per_switch; /* PCIe switch of GPU i = i / this */
	uint32_t gpu_mem_mib;
	uint32_t cpu_milli; /* of a typical machine of this kind */
	uint32_t mem_mib;
	uint16_t nvlink_domain_nodes; /* nodes that one NVLink fabric joins; 1: no other */
	uint16_t nvlink_gbps;	      /* between any two GPUs; 0: as `pairs` says */
	uint16_t switch_gbps;	      /* below one PCIe switch */
	uint16_t numa_gbps;	      /* across switches of one NUMA node */
	uint16_t far_gbps;	      /* across NUMA nodes */
	uint8_t pair_count;
	const struct machine_pair *pairs;
	const struct mig_geometry *mig; /* NULL: no MIG */
};

/* NULL if there is none of that name. */
const struct machine *machine_find(const char *name);

/* The i-th preset, or NULL past the last: for (i = 0; (m = machine_at(i)); i++) */
const struct machine *machine_at(size_t i);

/* The first preset with GPUs of that model, for defaults of a node that is known
 * by its labels only; NULL if none.  Case does not matter. */
const struct machine *machine_of_model(const char *model);

/* How its GPUs are joined, as struct links_input (links.h) wants it. */
struct machine_matrix {
	uint16_t gbps[GPU_MAX * GPU_MAX];
	uint32_t nvlink[GPU_MAX];
	int8_t numa[GPU_MAX];
};
void machine_matrix(const struct machine *machine, struct machine_matrix *ret);

/* The machine's links, owned by the caller (links_free).  0 or -ENOMEM. */
int machine_links(const struct machine *machine, struct links **ret, struct err *err);

#endif
