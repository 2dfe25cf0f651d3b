/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.h - booking a pod that is there already, whoever placed it.
 *
 * A decision asks whether there is room; a fact does not.  CPU, memory and the like are
 * taken also where none is left.  Of GPUs a pod without known ids is given as many as can
 * still be had, so that what it uses is not given to others; what is lacking is overbooked
 * already and makes no difference.
 */
#ifndef GS_ENGINE_ADOPT_H
#define GS_ENGINE_ADOPT_H

#include "engine/assign.h"

/* GPUs on the node for a pod of which nobody knows the ids: as many as there are. */
void adopt_guess(const struct cluster *c, const struct request *r, uint32_t node,
		 struct assignment *ret);

/* Books the pod on the node with these GPUs; with a NULL assignment, guessed ones.  What of
 * it cannot be (a card that is not there, or in use in a way that excludes it) is left out.
 * 0, -EEXIST, -ENOENT (no such node), -ENOMEM. */
int adopt_pod(struct cluster *c, const struct pod_spec *spec, const struct request *r,
	      uint32_t node, const struct assignment *known, uint32_t *ret);

#endif
