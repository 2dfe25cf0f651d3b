/* SPDX-License-Identifier: Apache-2.0 */
/* inventory.h - the cluster's nodes in the engine, as the API server has them.
 *
 * Owns the caches of Nodes and GpuNodeStatuses and keeps engine_cluster() like them: a node
 * is there while its Node is; what its agent reports is added when it comes, in whatever
 * order the two arrive.  Updates that change nothing of interest (heartbeats) stop here.  A
 * node or a report that cannot be read stays as it was, and the log says why.
 */
#ifndef GS_SCHEDULER_INVENTORY_H
#define GS_SCHEDULER_INVENTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "dialect/annotations.h"
#include "kube/views/gpu.h"

struct arena;
struct engine;
struct err;
struct inventory;
struct kube_caches;
struct lock_card;
struct log;

enum inventory_change {
	INVENTORY_NODE_CAME = 1 << 0,
	INVENTORY_NODE_WENT = 1 << 1, /* with all that was placed on it */
	INVENTORY_MORE = 1 << 2,      /* allocatable grew */
	INVENTORY_LABELS = 1 << 3,    /* labels, taints, cordon, domain */
	INVENTORY_GPUS = 1 << 4,      /* a GPU came, is well again, or changed */
	INVENTORY_IN_USE = 1 << 5,    /* whose GPUs the agent sees used: residents look again */
};

struct inventory_options {
	struct engine *engine;
	struct kube_caches *caches;
	const struct log *log;
	const char *const *domain_keys; /* NULL or none: the defaults of dialect/node.h; copied */
	size_t domain_keys_count;
	/* `node` is its number in the cluster (gone already for NODE_WENT).  No change at all
	 * (0) means that the node has less than before. */
	void (*changed)(void *context, const char *name, uint32_t node, uint32_t changes);
	void *context;
};

int inventory_new(const struct inventory_options *options, struct inventory **ret,
		  struct err *err);
/* After its caches are gone, and when the engine decides no more: the engine borrows from it
 * how GPUs are linked.  NULL is fine. */
void inventory_free(struct inventory *inventory);

/* The fabric is read from other labels from now on (none: the defaults); all nodes are read
 * again, unless they are the same. */
int inventory_set_domains(struct inventory *inventory, const char *const *keys, size_t count,
			  struct err *err);

/* Whether there is a Node of that name, readable or not. */
bool inventory_has(const struct inventory *inventory, const char *node);

/* None of its GPUs can be locked from now on, or they can again.  Nothing if it is not there. */
void inventory_close(struct inventory *inventory, const char *node, bool closed);

/* What a container of that node sees, and whether shares go through MPS there. */
enum visibility inventory_visibility(const struct inventory *inventory, const char *node);
bool inventory_mps(const struct inventory *inventory, const char *node);
enum injection_mode inventory_injection(const struct inventory *inventory, const char *node);

/* The UUID of a MIG slice that the node's agent has reported, in the arena; NULL: there is no
 * such slice yet, or no memory. */
const char *inventory_slice(const struct inventory *inventory, const char *node, uint32_t gpu,
			    const char *profile, uint32_t start, struct arena *arena);

/* For locks.h. */
bool inventory_card(const struct inventory *inventory, const char *node, const char *uuid,
		    struct lock_card *ret, uint32_t *index);

/* The set of GPU ids that the node's agent sees in use by that pod (inUseBy); 0: not known. */
uint32_t inventory_in_use(const struct inventory *inventory, const char *node, const char *uid);

#endif
