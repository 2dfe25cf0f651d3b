/* SPDX-License-Identifier: Apache-2.0 */
/* around.h - selectors and terms as Kubernetes writes them, for around.c, soft.c and volumes*.c.
 *
 * Strings are borrowed from the documents; `what` begins complaints. */
#ifndef GS_DIALECT_AROUND_H
#define GS_DIALECT_AROUND_H

#include <stddef.h>

#include "engine/rules.h"

#define AROUND_REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

struct draft;
struct err;
struct json;

/* The expressions of a list, and the pairs of a mapping, appended to `matches`, which has room
 * for all of them.  of_node: Gt and Lt are known; by_name: it is a list of matchFields.  0,
 * -EINVAL, -ENOMEM. */
int around_matches(struct draft *d, const struct json *list, const char *what, bool of_node,
		   bool by_name, struct match *matches, uint32_t *count, struct err *err);
int around_pairs(struct draft *d, const struct json *pairs, const char *what,
		 struct match *matches, uint32_t *count, struct err *err);

/* One term of node affinity; of pod affinity or anti-affinity, without its weight. */
int around_node_term(struct draft *d, const struct json *term, struct node_term *ret,
		     struct err *err);
int around_pod_term(struct draft *d, const struct json *term, const char *what,
		    struct pod_term *ret, struct err *err);

/* Of the pod's spec: the spread constraints that are required, or that are not; then the node
 * affinity that is required, with the node selector if there are such constraints. */
int around_spread(struct draft *d, const struct json *spec, bool soft, struct rules_spec *rules,
		  struct err *err);
int around_groups(struct draft *d, const struct json *spec, struct rules_spec *rules,
		  struct err *err);

/* The strings of a list. */
int around_strings(struct draft *d, const struct json *list, const char *what,
		   const char *const **ret, uint32_t *count, struct err *err);

#endif
