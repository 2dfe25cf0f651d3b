/* SPDX-License-Identifier: Apache-2.0 */
/* asks.h - whether a pod asks for GPUs, and for which of its containers.
 *
 * A first look, without what the pod refers to: whether it is right, and what exactly it
 * gets, is read by dialect/ when the pod is placed.
 */
#ifndef GS_WEBHOOK_ASKS_H
#define GS_WEBHOOK_ASKS_H

#include <stdbool.h>

struct json;

struct pod_asks {
	const char *scheduler;	 /* the one it names, or "" */
	const char *claim, *map; /* the annotations, or NULL */
	bool map_of_owner;	 /* an owner has a map; known to those who know the owners */
	bool count;		 /* annotation topology.scheduler/gpu-count */
	bool limits;  /* limits of a container; then only those that have some get GPUs */
	bool elastic; /* some of these are elasticgpu.io/ */
};

void pod_asks_read(const struct json *pod, struct pod_asks *ret);

/* Whether it asks in any of the ways. */
bool pod_asks_any(const struct pod_asks *asks);

/* Whether the container's own limits ask for GPUs; 0 of them is nothing. */
bool container_asks(const struct json *container);

/* The lists of a pod's spec whose containers get GPUs, in the order of their start. */
extern const char *const container_lists[2];

#endif
