/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_private.h - shared by fleet.c (reading) and fleet_node.c (building nodes). */
#ifndef GS_SIM_FLEET_PRIVATE_H
#define GS_SIM_FLEET_PRIVATE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "sim/fleet.h"

#define FLEET_DOMAINS_MAX 8

struct fleet_machine {
	const struct machine *machine;
	struct links *links;
};

/* One entry of the list of nodes. */
struct fleet_group {
	const struct json *json;
	const struct machine *machine; /* NULL: GPUs as listed, or none */
	const struct links *links;     /* NULL: nothing known */
	int64_t count, per_leaf, leaves_per_spine;
	int64_t first_leaf, first_spine;       /* numbers of its first ones */
	const char *domain[FLEET_DOMAINS_MAX]; /* if given; then the rest above is not used */
	uint32_t domain_count;
};

struct fleet_node {
	const char *name;
	uint32_t group, position;
};

struct fleet {
	const char *file;
	struct arena arena;
	struct fleet_limits limits;
	VEC(struct fleet_machine) machines;
	VEC(struct fleet_group) groups;
	VEC(struct fleet_node) nodes;
	struct map names;
	int64_t leaves, spines; /* given out so far */
};

/* A whole number in a range; `otherwise` if it is not there. */
int fleet_number(const struct json *group, const char *field, int64_t min, int64_t max,
		 int64_t otherwise, int64_t *ret, struct err *err);

/* Puts the file and the entry of its list of nodes before an error, with the line if the
 * file can be read again.  `node` may be NULL. */
void fleet_prefix(const struct fleet *f, size_t group, const char *node, struct err *err);

/* -EINVAL for a word that means nothing here. */
int fleet_check_keys(const struct json *group, struct err *err);

#endif
