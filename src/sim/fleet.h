/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.h - a cluster described in a few lines of YAML.
 *
 *	nodes:
 *	- machine: dgx-h100       # 128 nodes, 4 below each leaf switch, 8 leaves below a spine
 *	  count: 128
 *	  perLeaf: 4
 *	  leavesPerSpine: 8
 *	  name: dgx-%03d
 *	  networkGbps: 400
 *	- name: odd               # one node with GPUs of its own
 *	  domain: [spine-0, leaf-0]
 *	  gpus: [{model: T4, memoryMiB: 15360, count: 2}]   # a known model has its memory
 *	  cpu: 64
 *	  memory: 256Gi
 *	  taints: [{key: team, value: vision, effect: NoSchedule}]
 *	limits: {maxNodesPerLeaf: 4, maxGPUsPerLeaf: 32, maxPodsPerSharedGpu: 8}
 *
 * examples/README.md has all keys; one that is unknown is an error.  Also of a node:
 * labels, pods, ephemeralStorage, resources (others, by name),
 * unschedulable, unhealthy (GPU ids), mig (GPU ids that are in MIG mode; true: all),
 * performance (1000 = as good as any).  CPU and memory default to the machine's.
 * Leaves and spines are numbered through the file; without perLeaf a group of nodes is
 * one leaf, or as many as there are NVLink domains.  Nodes carry the labels
 * kubernetes.io/hostname and nvidia.com/gpu.product by themselves.
 *
 * The fleet owns the links of its machines: free it after the cluster.
 */
#ifndef GS_SIM_FLEET_H
#define GS_SIM_FLEET_H

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct err;
struct fleet;
struct json;

#define FLEET_NODES_MAX 200000

struct fleet_limits {
	uint32_t max_nodes_per_leaf, max_gpus_per_leaf, max_pods_per_shared_gpu;
};

/* `root` is borrowed and must outlive the fleet.  `file` begins the errors.
 * 0, -EINVAL, -ENOMEM. */
int fleet_new(const char *file, const struct json *root, struct fleet **ret, struct err *err);
void fleet_free(struct fleet *f);
void fleet_freep(struct fleet **f);

const struct fleet_limits *fleet_limits(const struct fleet *f);
uint32_t fleet_count(const struct fleet *f);
const char *fleet_node_name(const struct fleet *f, uint32_t i);
/* The node of that name, or UINT32_MAX. */
uint32_t fleet_find(const struct fleet *f, const char *name);

/* Adds the node to the cluster as it is described.  0, -EEXIST, -EINVAL, -ENOMEM. */
int fleet_add(const struct fleet *f, uint32_t i, struct cluster *c, struct err *err);
/* The same for a node that is there: all as described but for cordoning. */
int fleet_cordon(const struct fleet *f, uint32_t i, struct cluster *c, bool unschedulable,
		 struct err *err);

#endif
