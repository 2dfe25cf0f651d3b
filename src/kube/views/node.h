/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - whether a node works and takes pods.  Its resources, labels and taints are read
 * by dialect/node.h; readiness is no filter (taints say that), but recovery wants it. */
#ifndef GS_KUBE_VIEWS_NODE_H
#define GS_KUBE_VIEWS_NODE_H

#include "kube/views/view.h"

struct node_view {
	struct view_meta meta;
	enum view_condition ready;
	const char *ready_reason;
	int64_t ready_since_ns; /* when that last changed, or VIEW_TIME_NONE */
	bool unschedulable;
	uint32_t taints;
};

/* 0, or -EINVAL: name, spec.unschedulable, spec.taints. */
int node_view_read(const struct json *node, struct node_view *ret, struct err *err);

#endif
