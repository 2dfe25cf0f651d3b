/* SPDX-License-Identifier: Apache-2.0 */
/* around.h - selectors as Kubernetes writes them, for around.c and volumes*.c.
 *
 * Strings are borrowed from the documents; `what` begins complaints. */
#ifndef GS_DIALECT_AROUND_H
#define GS_DIALECT_AROUND_H

#include <stddef.h>

#include "engine/rules.h"

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

/* The strings of a list. */
int around_strings(struct draft *d, const struct json *list, const char *what,
		   const char *const **ret, uint32_t *count, struct err *err);

#endif
