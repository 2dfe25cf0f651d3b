/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h - what makes one node better than another.
 *
 * A policy sees one node, the request and the GPUs it would get there, and says a
 * number.  It never sees other nodes: that is what lets the index keep scores until the
 * node itself changes (or the learned mix, in epochs).  One policy per file, registered
 * in policy.c, configured by name.
 */
#ifndef GS_ENGINE_POLICY_POLICY_H
#define GS_ENGINE_POLICY_POLICY_H

#include "engine/assign.h"

struct mix;
struct scorer;

struct policy {
	const char *name;
	const char *summary; /* for --help */
	/* The availability part, 0..PART_MAX, never less: greater is better. */
	int32_t (*score)(const struct scorer *s, const struct request *r, const struct node *n,
			 const struct assignment *a);
	/* The card for a share among `usable` (not empty); NULL: the fullest. */
	uint32_t (*pick_share)(const struct scorer *s, const struct request *r,
			       const struct ask *a, const struct node *n, uint32_t usable);
	/* What the policy keeps of the mix and the cluster, `tables_size` bytes in
	 * scorer->tables; learn() computes it anew at every epoch.  NULL: nothing. */
	size_t tables_size;
	void (*learn)(void *tables, const struct cluster *c, const struct mix *mix);
	/* What using nodes of a GPU model costs the request, in the scale of score(); it is
	 * taken off.  Prices are looked at more often than the tables, for they are one
	 * number per model: reprice() says whether any has changed.  NULL: none. */
	int32_t (*price)(const struct scorer *s, const struct request *r, uint16_t model);
	bool (*reprice)(void *tables, const struct cluster *c, const struct mix *mix);
	/* Drops what is remembered for speed alone; NULL: nothing is.  So that an answer
	 * computed afresh owes nothing to earlier ones. */
	void (*forget)(void *tables);
	bool bare;	/* no other part counts: the published policies */
	bool knows_mix; /* is told the mix in advance, as FGD's authors do */
	bool shuffled;	/* ties by a random order of nodes */
};

extern const struct policy policy_default, policy_fgd, policy_bestfit, policy_dotprod,
	policy_packing, policy_random, policy_binpack, policy_spread;

/* By name, in any case, or NULL. */
const struct policy *policy_find(const char *name);
/* The i-th, or NULL past the last: for lists. */
const struct policy *policy_at(size_t i);

#endif
