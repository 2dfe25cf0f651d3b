/* SPDX-License-Identifier: Apache-2.0 */
/* owner.h - what owns a pod: Job, Deployment, ReplicaSet, StatefulSet. */
#ifndef GS_DIALECT_OWNER_H
#define GS_DIALECT_OWNER_H

#include <stdbool.h>
#include <stdint.h>

struct dialect_lookup;
struct err;
struct json;

/* Whether it is that kind of Kubernetes itself: a Job of batch, not of another group.
 * Without apiVersion the kind is enough. */
bool owner_is(const struct json *owner, const char *kind);

/* Whether it is a Job, Deployment, ReplicaSet or StatefulSet, whose size is known. */
bool owner_is_known(const struct json *owner);

/* How many of its pods run at a time: a Job's parallelism, never more than its
 * completions; replicas elsewhere.  1 where nothing is said.  0, -EINVAL. */
int owner_size(const struct json *owner, int64_t *ret, struct err *err);

/* How many of `members` are still to run, if some of a Job's pods have succeeded: it makes no more
 * of these, and what is left need not wait for them.  0, -EINVAL. */
int owner_left(const struct json *owner, int64_t members, int64_t *ret, struct err *err);

/* What owns a pod, and what owns that, as far as they are found: the nearest first, at most
 * POD_OWNERS_MAX (dialect.h).  One of the same name but with another uid is not it.  Returns how
 * many.  `missing` (may be NULL): the reference to the next one, if that was not found and is of a
 * kind from which pods inherit; else NULL. */
uint32_t pod_owners(const struct json *pod, const char *namespace,
		    const struct dialect_lookup *lookup, const struct json **ret,
		    const struct json **missing);

/* The index of a pod in its workload, or POD_INDEX_NONE (dialect.h): from its labels, else the
 * ordinal of its name; of one that is still to be named (generateName) from its labels alone. */
int64_t pod_index(const struct json *pod);

#endif
