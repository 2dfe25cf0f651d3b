/* SPDX-License-Identifier: Apache-2.0 */
/* inventory_private.h - shared by the files of inventory.h. */
#ifndef GS_SCHEDULER_INVENTORY_PRIVATE_H
#define GS_SCHEDULER_INVENTORY_PRIVATE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "dialect/node.h"
#include "scheduler/inventory.h"
#include "scheduler/linkset.h"

struct json;

/* A pod that the agent sees on GPUs of the node. */
struct user {
	uint64_t uid; /* its hash */
	uint32_t gpus;
};

/* What of a node has changed when its hash has. */
struct place_hashes {
	uint64_t resources, labels, gpus, users;
};

/* A name of a Node, or of a report, or of both. */
struct place {
	uint32_t node; /* in the cluster, or NODE_NONE */
	uint8_t injection;
	bool mps;
	bool closed;   /* to pods with GPUs: inventory_close() */
	bool untold;   /* is not as the server has it, for another node is in the way */
	uint64_t said; /* hash of the last complaint */
	struct place_hashes hashes;
	const struct links *links; /* used once */
	struct user *users;
	uint32_t users_count;
	char name[];
};

struct inventory {
	struct inventory_options options;
	struct cluster *cluster;
	char *keys[NODE_DOMAIN_KEYS_MAX];
	size_t keys_count; /* 0: the defaults */
	uint64_t seed;
	struct kube_cache *nodes, *statuses;
	struct map places; /* by name */
	uint32_t untold;   /* places that are */
	struct linkset links;
	struct arena arena; /* of one reading */
	struct strbuf bytes;
};

/* A node as it has been read. */
struct reading {
	struct node_spec spec;
	struct place_hashes hashes;
	struct user *users; /* in the arena */
	uint32_t users_count;
	enum injection_mode injection;
	bool mps;
	bool partly; /* the report could not be read: its GPUs are as they were */
};

/* inventory_read.c: what the documents say (`status` may be NULL).  0, with one more use of
 * spec.links; -EINVAL, -ENOMEM.  When only the report is wrong, `err` says so and the rest
 * is there. */
int place_read(struct inventory *inventory, const struct place *place, const struct json *node,
	       const struct json *status, struct reading *ret, struct err *err);

uint64_t inventory_hash(const struct inventory *inventory, const char *text);

#endif
