/* SPDX-License-Identifier: Apache-2.0 */
/* assign.h - does the request fit this node, and on which GPUs exactly.
 *
 * assign_node() answers for the state the node is in now.  It is the one place where
 * GPU rules are applied: the scheduler, the extender, the simulator and what-if all end
 * here.  Asks are served in the order pinned, whole, MIG, shares (large first), because
 * what has fewer choices goes first; an ask never overlaps what an earlier one took.
 */
#ifndef GS_ENGINE_ASSIGN_H
#define GS_ENGINE_ASSIGN_H

#include "engine/cluster.h"
#include "engine/verdict.h"

#define HOLD_MAX 64

struct assignment {
	uint16_t count;
	struct hold holds[HOLD_MAX];
	uint32_t gpus;	       /* set of all ids that are used */
	uint32_t apart;	       /* those of asks that share with no other ask of the pod */
	uint32_t weakest_gbps; /* slowest pair inside one ask; UINT32_MAX: no pair */
};

struct scorer;

/* FITS with *ret filled in, or why not.  The scorer chooses the card of a share whose
 * policy is SHARE_LEASTFRAG; NULL takes the fullest that fits. */
enum verdict assign_node(const struct cluster *c, const struct scorer *s, const struct request *r,
			 uint32_t node, struct assignment *ret);

/* The same, without saying where. */
enum verdict fit_node(const struct cluster *c, const struct request *r, uint32_t node);

/* The two halves of assign_node().  The first looks at what tells the node from others in
 * the same state (its name, labels and domain), the second at the state alone, so its
 * answer holds for every node of the same bucket. */
enum verdict fit_identity(const struct cluster *c, const struct request *r, uint32_t node);
/* The first, and the pods that are there: everything but the node's state. */
enum verdict fit_place(const struct cluster *c, const struct request *r, uint32_t node);
enum verdict assign_state(const struct cluster *c, const struct scorer *s, const struct request *r,
			  const struct node *n, struct assignment *ret);

/* The GPUs alone, whatever else the node lacks: for pods that are there already. */
enum verdict assign_gpus(const struct cluster *c, const struct scorer *s, const struct request *r,
			 const struct node *n, struct assignment *ret);

/* The set of ids that one ask was given. */
uint32_t assignment_gpus(const struct assignment *a, uint8_t ask);

#endif
