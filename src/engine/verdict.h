/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - why a node does not fit, in one word.
 *
 * "It does not fit" is an answer, not an error.  Every refusal is one of these; its
 * text is written for the known form "0/12 nodes are available: 5 <text>, 7 <text>."
 * Some texts carry a figure of the request (the bandwidth asked for): verdict_text().
 *
 * They are ordered from the farthest miss to the nearest: when nothing fits anywhere,
 * the largest is what to tell in one word.
 */
#ifndef GS_ENGINE_VERDICT_H
#define GS_ENGINE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

enum verdict {
	FITS = 0,
	NODE_GONE,	   /* removed while somebody still held its number */
	UNSCHEDULABLE,	   /* cordoned */
	WRONG_NODE,	   /* pinned elsewhere */
	WRONG_LABELS,	   /* node selector or affinity */
	WRONG_DOMAIN,	   /* outside the domain the request must stay in */
	WRONG_VOLUME_NODE, /* a volume of the pod is not for this node */
	WRONG_VOLUME_ZONE, /* nor for its zone */
	NO_VOLUME,	   /* none to bind here, and none can be made */
	NO_VOLUME_ROOM,	   /* one could be made, but there is too little storage */
	NO_SPREAD_LABEL,   /* lacks the label that pods are to be spread by */
	NOT_NEAR,	   /* pod affinity */
	TAINTED,
	NO_NETWORK, /* network bandwidth unknown or too low */
	NO_RDMA,    /* too few RDMA ports */
	NO_CUFILE,  /* no GPUDirect Storage */
	NO_LOCK,    /* none of its GPUs can be locked for now */
	TOO_MANY_PODS,
	NO_PORT,	  /* a host port is taken */
	DISK_IN_USE,	  /* by a pod of the node, and it cannot be shared */
	CLAIM_IN_USE,	  /* by another pod, and it cannot be shared at all */
	TOO_MANY_VOLUMES, /* attached by that driver */
	UNEVEN,		  /* topology spread */
	NOT_APART,	  /* anti-affinity of the pod */
	KEPT_AWAY,	  /* anti-affinity of pods that are there */
	NO_CPU,
	NO_MEMORY,
	NO_EPHEMERAL,
	NO_EXTENDED,	/* another resource of the node */
	NO_GPU,		/* the node has no GPU, or fewer than asked for even when empty */
	WRONG_MODEL,	/* too few GPUs of a model that is acceptable */
	UNHEALTHY_GPU,	/* would fit if its unhealthy GPUs were well */
	NO_FREE_GPU,	/* too few idle GPUs */
	NO_GPU_CORE,	/* no card with that share of core free */
	NO_GPU_MEMORY,	/* no card with that much memory free */
	NO_SHARED_SEAT, /* cards in shared mode have maxPodsPerSharedGpu pods */
	NO_BANDWIDTH,	/* no set of free GPUs is linked fast enough */
	NO_SUCH_GPU,	/* a pinned id that the node lacks */
	PINNED_GPU_BUSY,
	NO_MIG_PROFILE, /* no GPU here knows that profile */
	NO_MIG_SLICE,	/* they do, but there is no room for it */
	VERDICT_COUNT,
};

/* True when removing pods from the node could turn the verdict into FITS. */
bool verdict_curable(enum verdict v);

/* The short name, for metrics and tests: "no-free-gpu". */
const char *verdict_name(enum verdict v);

/* The text people read, without a count.  `r` may be NULL: then figures are left out. */
void verdict_text(enum verdict v, const struct request *r, char *buf, size_t size);

#endif
