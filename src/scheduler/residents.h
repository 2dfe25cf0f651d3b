/* SPDX-License-Identifier: Apache-2.0 */
/* residents.h - pods that are on nodes already, booked in the engine, whoever put them there.
 *
 * A pod that we placed has its decision in its annotations: exactly these GPUs are booked, by
 * UUID.  Of others the CPU, memory, ports and labels count, and their GPUs: those that the
 * node's agent sees in use by them, else as many as their limits say (adopt.h).  A pod
 * whose node is not known yet waits here for it.
 */
#ifndef GS_SCHEDULER_RESIDENTS_H
#define GS_SCHEDULER_RESIDENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/entries.h"

struct arena;
struct budgets;
struct engine;
struct err;
struct inventory;
struct json;
struct kube_object;
struct log;
struct lookup;
struct residents;

struct residents_options {
	struct engine *engine;
	struct inventory *inventory;
	struct lookup *lookup;
	const struct log *log;
	struct budgets *budgets; /* NULL: nothing is guarded */
	uint64_t seed;
	/* The number of a gang's name in the cluster (struct pod_spec.gang). */
	uint32_t (*gang)(void *context, const char *namespace, const char *name);
	/* The pod's record in its cache, or NULL: says of a guest with whom it shares. */
	const struct kube_object *(*pod)(void *context, const char *namespace, const char *name);
	void *context;
};

enum resident_change {
	RESIDENT_SAME,	  /* nothing of interest */
	RESIDENT_CAME,	  /* is booked now; or is new, and waits for its node */
	RESIDENT_CHANGED, /* labels, being deleted */
	RESIDENT_SHRANK,  /* holds less, or other things, than before */
};

int residents_new(const struct residents_options *options, struct residents **ret,
		  struct err *err);
void residents_free(struct residents *residents);

/* A pod that has a node and is not finished; `object` its document, whole or as kept.  One
 * that the engine has already (assumed by us, with the same node and GPUs) stays as it is.
 * What cannot be read is booked by its node and plain resources, and the log says why.
 *
 * `pod` is borrowed until the next version of it is put, or it is removed: one of the two
 * must follow every change that the cache reports of a pod that was put. */
enum resident_change residents_put(struct residents *residents, const struct kube_object *pod,
				   const struct json *object);
/* It is gone or finished: whether it was booked, and where. */
bool residents_remove(struct residents *residents, const char *uid, uint32_t *node);

/* The record of a pod that was put, or NULL (also for a guest). */
const struct kube_object *residents_find(const struct residents *residents, const char *uid);

/* The node has come, or its reports changed: whoever waits for it is booked, those with guessed
 * GPUs anew. */
void residents_node(struct residents *residents, const char *name, uint32_t changes);
/* The node went: its pods wait for it to come back. */

/* Something has left the node in the engine: what others hold there and could not be booked,
 * because we had counted on it ourselves, is. */
void residents_again(struct residents *residents, const char *node);

/* The set of GPU ids on which the node's agent sees pods for whom they could not be booked. */
uint32_t residents_unbooked(const struct residents *residents, const char *node);

/* All caches are filled: who was read before what it names was known, an owner or a claim, is read
 * again, so that its gang and its index of a map are its own. */
void residents_know(struct residents *residents);

/* Before victims are looked for: brings up to date who is of which disruption budget, and how many
 * of its pods each allows to go.  Costs little unless a budget selects others than before. */
void residents_guard(struct residents *residents);

/* A lock of somebody else's whose pod is not bound: what it holds is booked under the pod's
 * uid until it is bound or the lock is gone.  Nothing if the engine has that pod.  That pods of
 * one map share a card with nobody else is known if the cache has the pod: put it again when
 * that comes. */
int residents_put_guest(struct residents *residents, const char *node,
			const struct lock_entry *entry);
void residents_remove_guest(struct residents *residents, const char *uid);

/* The entry that a bound pod of ours must have, from its decision; in the arena.  Its version
 * is the document's, or "0" if that says none: the one at which it was read unbound is not
 * known any more, and not needed while it is bound.  A gang is not named: nobody has to wait
 * for a pod that is bound.  0; -ENOENT it has no decision, or holds no GPU; -EINVAL it cannot
 * be read; -ENOMEM. */
int resident_entry(const struct json *pod, struct arena *arena, struct lock_entry *ret,
		   struct err *err);

#endif
