/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - the map dialect: one annotation that pins every pod of a workload.
 *
 *	0=node-a:0,1
 *	1=node-a:2,3
 *	2=node-b:0
 *	3=node-b:0          shares GPU 0 of node-b with the pod of index 2
 *
 * Blank lines and lines that begin with # are skipped, blanks around the parts ignored.
 * Indexes may come in any order; each once.  Nothing of the cluster is looked at here.
 */
#ifndef GS_DIALECT_MAP_H
#define GS_DIALECT_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "engine/gpuset.h"

struct arena;
struct err;

#define MAP_LINES_MAX 4096

struct map_line {
	uint32_t line; /* in the annotation, counted from 1 */
	uint32_t index;
	const char *node;
	uint32_t gpus;		   /* set of ids */
	uint16_t sharers[GPU_MAX]; /* by id: how many lines name that GPU, this one included */
};

struct placement_map {
	struct map_line *lines;
	uint32_t count;
};

/* 0, -EINVAL with the line and what is wrong with it, -ENOMEM. */
int placement_map_parse(const char *text, struct arena *arena, struct placement_map *ret,
			struct err *err);

/* The line of that index, or NULL. */
const struct map_line *placement_map_find(const struct placement_map *map, uint32_t index);

#endif
