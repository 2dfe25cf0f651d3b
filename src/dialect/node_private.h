/* SPDX-License-Identifier: Apache-2.0 */
/* node_private.h - between node.c and node_gpus.c. */
#ifndef GS_DIALECT_NODE_PRIVATE_H
#define GS_DIALECT_NODE_PRIVATE_H

#include "dialect/node.h"

/* The engine takes no greater amount; nobody has as much. */
#define RESOURCE_AMOUNT_MAX (INT64_C(1) << 48)

struct node_reader {
	struct cluster *cluster;
	const struct json *node, *status;
	const struct node_options *options;
	struct arena *arena;
	struct node_spec *spec;
};

int node_read_gpus(struct node_reader *r, struct err *err);

#endif
