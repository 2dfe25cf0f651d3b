/* SPDX-License-Identifier: Apache-2.0 */
/* inherit.h - what a pod has from what owns it: a Job, a ReplicaSet and its Deployment. */
#ifndef GS_WEBHOOK_INHERIT_H
#define GS_WEBHOOK_INHERIT_H

#include <stdbool.h>

struct admission;
struct dialect_lookup;
struct json;
struct ruling;

/* Whether the scheduler will read that annotation from an owner, since the pod has none. */
bool inherits(const struct admission *a, const struct dialect_lookup *lookup, const char *key);

/* Whether it is owned by something of which the scheduler reads annotations: that may ask for GPUs,
 * also after this, until the pod is bound.  `unknown`: one of them cannot be read here, or has not
 * been heard of yet. */
bool may_inherit(const struct admission *a, const struct dialect_lookup *lookup, bool *unknown);

/* The annotations topology.scheduler/ of the nearest owner that has them are added to the
 * pod, where it has none of its own.  A Job's number of GPUs is the total of its pods: each
 * gets its part; if that does not come out even, a warning.  Whether one of them asks for
 * GPUs. */
bool inherit_annotations(const struct admission *a, const struct dialect_lookup *lookup,
			 struct ruling *ruling);

#endif
