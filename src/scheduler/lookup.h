/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.h - the objects around a pod, found in the caches: what dialect/ asks for.
 *
 * Owns the caches of claims, pod groups, priority classes, owners and namespaces, and those of
 * volumes (storage.h).  A document that was found is valid until lookup_reset(), to be called
 * after each reading of a pod.  Also knows which live pod has which index of a map: workloads
 * without an index of their own (a Deployment) get the lowest that no live sibling has.  One
 * that waits for the GPUs of its line has its index as one that runs has.
 */
#ifndef GS_SCHEDULER_LOOKUP_H
#define GS_SCHEDULER_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "dialect/dialect.h"

struct err;
struct kube_caches;
struct kube_object;
struct log;
struct lookup;
struct storage;

#define LOOKUP_MAP_MAX 17

struct lookup_options {
	struct kube_caches *caches;
	struct cluster *cluster; /* namespaces' labels go there, for affinity by namespace */
	const struct log *log;
	uint64_t seed;
	/* An object of that kind came, changed or went: pods that name it are read again.
	 * `kind` is "GpuClaim", "Job", "PersistentVolume" (storage_has()) ... */
	void (*changed)(void *context, const char *kind, const char *namespace, const char *name);
	/* May be NULL.  The index is free: one that has a later one of the map may have it.  Or
	 * somebody else's lock gives it to another pod than the one that has chosen it. */
	void (*index_freed)(void *context, const char *map, uint32_t index);
	void (*index_lost)(void *context, const char *map, uint32_t index);
	void *context;
};

int lookup_new(const struct lookup_options *options, struct lookup **ret, struct err *err);
/* After its caches are gone.  NULL is fine. */
void lookup_free(struct lookup *lookup);

const struct dialect_lookup *lookup_dialect(struct lookup *lookup);
/* The same, to read the pod with that uid: its own index is not taken to itself.  `uid` is
 * borrowed until lookup_reset(). */
const struct dialect_lookup *lookup_dialect_of(struct lookup *lookup, const char *uid);
void lookup_reset(struct lookup *lookup);
/* Which objects were asked for since lookup_dialect(), whether they are there or not: a bit for
 * each, which some others share.  All of storage_has() have one. */
uint64_t lookup_met(const struct lookup *lookup);
uint64_t lookup_bit(const char *kind, const char *name);
struct storage *lookup_storage(struct lookup *lookup);

/* The pod with that uid has the index, and no other; drop: it has none.  0, -ENOMEM. */
int lookup_take_index(struct lookup *lookup, const char *workload, uint32_t index,
		      const char *uid);
void lookup_drop_index(struct lookup *lookup, const char *uid);
/* What locks call a workload: 16 hexadecimal digits. */
void lookup_map_name(const char *workload, char ret[LOOKUP_MAP_MAX]);
/* The same for a pod of which there is only its lock. */
int lookup_take_locked(struct lookup *lookup, const char *map, uint32_t index, const char *uid);
/* The pod's index of the map, or INDEXES_NONE. */
uint32_t lookup_index_of(const struct lookup *lookup, const char *map, const char *uid);

/* The claim's record in its cache, or NULL. */
const struct kube_object *lookup_claim(const struct lookup *lookup, const char *namespace,
				       const char *name);

#endif
