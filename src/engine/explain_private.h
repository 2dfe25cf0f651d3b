/* SPDX-License-Identifier: Apache-2.0 */
/* explain_private.h - what the explain_*.c files share. */
#ifndef GS_ENGINE_EXPLAIN_PRIVATE_H
#define GS_ENGINE_EXPLAIN_PRIVATE_H

#include "engine/explain.h"

/* The entry of r->extended that the node has too little of; EXTENDED_MAX: none. */
uint32_t explain_short_extended(const struct request *r, const struct node *n);

/* How much is missing at the node, which refused with m->verdict.  False where that is
 * no matter of quantity, or not of one quantity. */
bool explain_shortage(const struct cluster *c, const struct request *r, uint32_t node,
		      struct explain_miss *m);

/* Whether the node, which refused with m->verdict, would fit if just that were not in the
 * way; fills in the rest of *m. */
bool explain_near(const struct cluster *c, const struct request *r, uint32_t node,
		  struct explain_miss *m);

#endif
