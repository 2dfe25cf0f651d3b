/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h - the names of annotations, labels and resources that people and we write. */
#ifndef GS_DIALECT_KEYS_H
#define GS_DIALECT_KEYS_H

/* Whose they are. */
#define PREFIX_SCHEDULING "gpu.scheduling/"
#define PREFIX_TOPOLOGY	  "topology.scheduler/"
#define PREFIX_ELASTIC	  "elasticgpu.io/"

/* What users write. */
#define KEY_CLAIM	      PREFIX_SCHEDULING "claim"
#define KEY_MAP		      "gpu-scheduling-map"
#define KEY_GPU_COUNT	      PREFIX_TOPOLOGY "gpu-count"
#define KEY_PREFERRED_DOMAIN  PREFIX_TOPOLOGY "preferred-domain"
#define KEY_NETWORK_BANDWIDTH PREFIX_TOPOLOGY "network-bandwidth"
#define KEY_LATENCY_SENSITIVE PREFIX_TOPOLOGY "latency-sensitive"
#define KEY_STRATEGY	      PREFIX_TOPOLOGY "placement-strategy"
#define KEY_POD_GROUP	      "scheduling.x-k8s.io/pod-group"

/* What controllers write: where the index of a pod comes from. */
#define KEY_POD_INDEX	     "apps.kubernetes.io/pod-index"
#define KEY_COMPLETION_INDEX "batch.kubernetes.io/job-completion-index"
#define KEY_TEMPLATE_HASH    "pod-template-hash"

/* Container limits that ask for GPUs. */
#define RESOURCE_GPU	     "nvidia.com/gpu"
#define RESOURCE_MIG_PREFIX  "nvidia.com/mig-"
#define RESOURCE_CORE	     PREFIX_ELASTIC "gpu-core"
#define RESOURCE_MEMORY	     PREFIX_ELASTIC "gpu-memory"
#define RESOURCE_QGPU_CORE   PREFIX_ELASTIC "qgpu-core"
#define RESOURCE_QGPU_MEMORY PREFIX_ELASTIC "qgpu-memory"
#define RESOURCE_PGPU	     PREFIX_ELASTIC "pgpu"

/* What we write. */
#define KEY_ALLOCATED	     PREFIX_SCHEDULING "allocated"
#define KEY_VISIBLE_DEVICES  PREFIX_SCHEDULING "visible-devices"
#define KEY_DECISION	     PREFIX_SCHEDULING "decision"
#define KEY_ASSUMED	     PREFIX_ELASTIC "assumed"
#define KEY_CONTAINER_PREFIX PREFIX_ELASTIC KEY_CONTAINER_STEM
#define KEY_CONTAINER_STEM   "container-"

/* What nodes carry. */
#define LABEL_PRODUCT	 "nvidia.com/gpu.product"
#define LABEL_HOSTNAME	 "kubernetes.io/hostname"
#define LABEL_RDMA	 PREFIX_SCHEDULING "rdma"
#define LABEL_RDMA_PORTS PREFIX_SCHEDULING "rdma-ports"
#define LABEL_CUFILE	 PREFIX_SCHEDULING "cufile"

#define SCHEDULER_DEFAULT  "gpu-scheduler"
#define SCHEDULER_TOPOLOGY "topology-aware-scheduler"

#endif
