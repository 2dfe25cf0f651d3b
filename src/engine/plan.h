/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - tentative placements and removals, kept whole or undone in one call.
 *
 * While a plan is open the cluster looks as if the plan had happened, so every later
 * step decides on what the earlier ones left.  plan_rollback() restores exactly what
 * was there, pod numbers included; plan_commit() keeps it.  One plan at a time per engine.
 */
#ifndef GS_ENGINE_PLAN_H
#define GS_ENGINE_PLAN_H

#include "engine/engine.h"

struct plan;

struct plan *plan_begin(struct engine *e); /* NULL: out of memory */
/* Books; 0 or an error of engine_place().  On error the plan stays as it was. */
int plan_place(struct plan *p, const struct pod_spec *pod, const struct request *r,
	       const struct decision *d, uint32_t *ret);
/* Takes a placed pod away; rollback puts it back. */
int plan_remove(struct plan *p, uint32_t pod);
void plan_rollback(struct plan *p); /* frees p; NULL is fine */
void plan_commit(struct plan *p);   /* frees p */

#endif
