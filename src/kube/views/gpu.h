/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - our own kinds: claims, what agents report, configurations.  What they ask for
 * and contain is read by dialect/; here is who they are and where they stand. */
#ifndef GS_KUBE_VIEWS_GPU_H
#define GS_KUBE_VIEWS_GPU_H

#include "kube/views/view.h"

/* None if the status has not been written, or says a word that we do not know. */
enum claim_phase { CLAIM_NONE, CLAIM_PENDING, CLAIM_RESERVED, CLAIM_BOUND, CLAIM_FAILED };

struct claim_view {
	struct view_meta meta;
	enum claim_phase phase;
	int64_t observed_generation;
	const char *node, *allocated, *message; /* "" if not there */
	const struct json *allocations;		/* a list, or NULL */
};

int claim_view_read(const struct json *claim, struct claim_view *ret, struct err *err);

/* How containers of the node get their GPUs: the injection modes. */
enum injection_mode {
	INJECTION_UNKNOWN, /* not reported, or a word that we do not know */
	INJECTION_CDI,
	INJECTION_ENV,
	INJECTION_EXTERNAL,
	INJECTION_ALL,
};

struct node_status_view {
	struct view_meta meta; /* its name is the node's */
	enum injection_mode injection;
	int64_t observed_generation;
	uint32_t devices;
};

int node_status_view_read(const struct json *status, struct node_status_view *ret,
			  struct err *err);

/* SchedulerConfig and TopologySchedulerConfig, whose spec someone else reads. */
struct config_view {
	struct view_meta meta;
	const struct json *spec; /* an object, or NULL */
};

/* -EINVAL also if spec is no object. */
int config_view_read(const struct json *config, const char *kind, struct config_view *ret,
		     struct err *err);

/* The text that a ConfigMap has under the key, or NULL. */
const char *config_map_text(const struct json *config_map, const char *key);

#endif
