/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - from a Node and what its agent reports to what the engine is told of it.
 *
 * The Node says labels, taints, resources and whether it is cordoned.  The GpuNodeStatus of
 * the same name says which GPUs there are, how they are linked and how they are; where no
 * agent has reported, the Node's allocatable nvidia.com/gpu and the label
 * nvidia.com/gpu.product stand in: GPUs with invented UUIDs (GPU-<node>-<index>) and the
 * links of the machine that has such GPUs, if there are as many as in a whole one.
 *
 *	status:
 *	  injectionMode: cdi
 *	  devices:
 *	  - {id: 0, uuid: GPU-8f6c..., model: NVIDIA-H100-80GB-HBM3, memoryMiB: 81559,
 *	     health: Healthy, numaNode: 0, loadPercent: 3, migEnabled: false, nvlinkPeers: [1]}
 *	  - ...
 *	  linksGBps: [[0, 900], [900, 0]]
 *	  network: {bandwidthGbps: 400, rdmaPorts: 8, hcas: [mlx5_0, mlx5_1]}
 *	  storage: {cuFile: true}
 *
 * GPU resources are counted by the engine card by card and are none of the node's others.
 */
#ifndef GS_DIALECT_NODE_H
#define GS_DIALECT_NODE_H

#include <stddef.h>

#include "engine/cluster.h"

struct arena;
struct err;
struct json;
struct links;
struct links_input;

#define NODE_DOMAIN_KEYS_MAX 8

struct node_options {
	/* Labels that say where in the fabric a node is, the outermost first; a node without
	 * one of them lies directly below the others.  NULL: node_domain_keys. */
	const char *const *domain_keys;
	size_t domain_keys_count;
	/* The links that the input describes, kept by the caller for as long as the cluster
	 * may point to them, equal ones only once.  NULL on error, or none wanted. */
	const struct links *(*links)(void *context, const struct links_input *input);
	void *context;
};

/* topology.scheduler/spine and /leaf. */
extern const char *const node_domain_keys[];
extern const size_t node_domain_keys_count;

/* What cluster_node_add() and _change() want, in the arena; strings are borrowed from the
 * documents.  `status` may be NULL.  0; -EINVAL what one of them says cannot be; -ENOMEM. */
int node_read(struct cluster *cluster, const struct json *node, const struct json *status,
	      const struct node_options *options, struct arena *arena, struct node_spec *ret,
	      struct err *err);

#endif
