/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h - the names of annotations, labels and resources that people and we write. */
#ifndef GS_DIALECT_KEYS_H
#define GS_DIALECT_KEYS_H

/* What users write. */
#define KEY_CLAIM	      "gpu.scheduling/claim"
#define KEY_MAP		      "gpu-scheduling-map"
#define KEY_GPU_COUNT	      "topology.scheduler/gpu-count"
#define KEY_PREFERRED_DOMAIN  "topology.scheduler/preferred-domain"
#define KEY_NETWORK_BANDWIDTH "topology.scheduler/network-bandwidth"
#define KEY_LATENCY_SENSITIVE "topology.scheduler/latency-sensitive"
#define KEY_STRATEGY	      "topology.scheduler/placement-strategy"
#define KEY_POD_GROUP	      "scheduling.x-k8s.io/pod-group"

/* What controllers write: where the index of a pod comes from. */
#define KEY_POD_INDEX	     "apps.kubernetes.io/pod-index"
#define KEY_COMPLETION_INDEX "batch.kubernetes.io/job-completion-index"
#define KEY_TEMPLATE_HASH    "pod-template-hash"

/* Container limits that ask for GPUs. */
#define RESOURCE_GPU	     "nvidia.com/gpu"
#define RESOURCE_MIG_PREFIX  "nvidia.com/mig-"
#define RESOURCE_CORE	     "elasticgpu.io/gpu-core"
#define RESOURCE_MEMORY	     "elasticgpu.io/gpu-memory"
#define RESOURCE_QGPU_CORE   "elasticgpu.io/qgpu-core"
#define RESOURCE_QGPU_MEMORY "elasticgpu.io/qgpu-memory"
#define RESOURCE_PGPU	     "elasticgpu.io/pgpu"

/* What we write. */
#define KEY_ALLOCATED	     "gpu.scheduling/allocated"
#define KEY_VISIBLE_DEVICES  "gpu.scheduling/visible-devices"
#define KEY_DECISION	     "gpu.scheduling/decision"
#define KEY_ASSUMED	     "elasticgpu.io/assumed"
#define KEY_CONTAINER_PREFIX "elasticgpu.io/container-"

/* What nodes carry. */
#define LABEL_PRODUCT	 "nvidia.com/gpu.product"
#define LABEL_HOSTNAME	 "kubernetes.io/hostname"
#define LABEL_RDMA	 "gpu.scheduling/rdma"
#define LABEL_RDMA_PORTS "gpu.scheduling/rdma-ports"
#define LABEL_CUFILE	 "gpu.scheduling/cufile"

#define SCHEDULER_DEFAULT  "gpu-scheduler"
#define SCHEDULER_TOPOLOGY "topology-aware-scheduler"

#endif
