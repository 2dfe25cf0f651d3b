/* SPDX-License-Identifier: Apache-2.0 */
/* dialect.h - from what users write to what the engine is asked: the one entry point.
 *
 * Four dialects, each in one file, are read one after the other
 * into the same draft: limits first, for they say which container gets what; then
 * claim, topology and map, which refine or must agree with what is there.  A
 * contradiction is a sentence on the pod.
 *
 *	struct pod_source source;
 *	struct wish wish;
 *	if (pod_source_read(pod, &lookup, &source, &err) == 0 &&
 *	    dialect_read(cluster, &lookup, &source, &arena, &wish, &err) == 0)
 *		engine_decide(engine, &wish.request, &decision);
 *
 * Labels and taints that no node has are not remembered by the cluster, of resources only some:
 * so read a pod again after nodes have changed.
 */
#ifndef GS_DIALECT_DIALECT_H
#define GS_DIALECT_DIALECT_H

#include <stdbool.h>
#include <stdint.h>

#include "dialect/wish.h"

struct arena;
struct cluster;
struct err;
struct json;

#define POD_OWNERS_MAX 3 /* ReplicaSet, Deployment, and one more */
#define POD_INDEX_NONE (-1)

/* The objects around a pod, wherever the caller keeps them. */
struct dialect_lookup {
	void *context;
	/* The object of that kind (GpuClaim, PodGroup, PriorityClass, Job, ReplicaSet ...), or
	 * NULL.  `namespace` is "" for kinds without one. */
	const struct json *(*find)(void *context, const char *kind, const char *namespace,
				   const char *name);
	/* Whether a live pod of that workload (wish.workload) holds the index.  Asked for
	 * one index after the other until one is free: it must not search. */
	bool (*index_taken)(void *context, const char *workload, uint32_t index);
	/* NULL: the caller keeps no volumes, and those of pods are not looked at.  Else find() knows
	 * PersistentVolumeClaim, PersistentVolume, StorageClass and CSIDriver, and this visits
	 * all of a kind (PersistentVolume, CSIStorageCapacity) that are of the storage class:
	 * more do no harm.  Of PersistentVolumes, those that are bound to another claim may be
	 * left out.  An object need not be valid longer than its visit. */
	void (*each)(void *context, const char *kind, const char *class,
		     void (*visit)(void *visitor, const struct json *object), void *visitor);
	/* May be NULL.  What pods that are being bound were promised, and no object says yet: for
	 * a PersistentVolume the claim that gets it, "namespace/name"; for a
	 * PersistentVolumeClaim the node that was selected for it.  NULL: nothing. */
	const char *(*promised)(void *context, const char *kind, const char *namespace,
				const char *name);
	/* find() learns of objects as they come, of an owner perhaps after its pod: one that a
	 * pod refers to is waited for (-ESRCH).  False: what is not found is not there, and the
	 * pod is read without it. */
	bool owners_come;
};

/* A pod, or one that a template would become. */
struct pod_source {
	const struct json *object; /* its metadata and spec */
	const char *namespace, *name, *uid;
	const struct json *owners[POD_OWNERS_MAX]; /* the nearest first */
	uint32_t owners_count;
	/* The reference, of the pod or of the last of its owners, to one that is still to come
	 * (dialect_lookup.owners_come), or NULL. */
	const struct json *owner_missing;
	int64_t index; /* in its workload, or POD_INDEX_NONE */
};

/* A pod as the API server has it: finds its owners and its index.  Strings and objects
 * are borrowed.  0, -EINVAL. */
int pod_source_read(const struct json *pod, const struct dialect_lookup *lookup,
		    struct pod_source *ret, struct err *err);

/* 0; -EINVAL the pod contradicts itself or is malformed; -ENOENT something it names is
 * not there (yet), or a volume of it is not ready (if that is the node or a GPU of its line of a
 * map, ret->workload and ret->index say which line, else workload is NULL); -ESRCH likewise one that owns it, which may
 * say what it asks for; -ENOSPC other pods have all the lines of
 * its map; -EAGAIN it has scheduling gates; -ENOTSUP it asks in a way that is not
 * supported; -ENOMEM. */
int dialect_read(struct cluster *cluster, const struct dialect_lookup *lookup,
		 const struct pod_source *source, struct arena *arena, struct wish *ret,
		 struct err *err);

/* What a pod that is on a node already takes of it, whoever put it there.  What cannot be read
 * is left out, with the first complaint in err->text; the rest stands: resources, labels,
 * ports, whom it keeps away, and as many GPUs as its limits, its claim or its line of a map
 * say.  A map counts only if source->index is known.  Gates and the node are not looked
 * at.  0, -ENOMEM. */
int dialect_read_resident(struct cluster *cluster, const struct dialect_lookup *lookup,
			  const struct pod_source *source, struct arena *arena, struct wish *ret,
			  struct err *err);

/* Gives back the rules and the subject that the wish holds in the cluster; a pod that was
 * placed holds its own.  A cluster that goes takes them along. */
void wish_release(struct cluster *cluster, struct wish *wish);

/* "100", "100G", "100Gb", "100Gbps": a network bandwidth in Gbit/s, as the annotation and
 * the node label topology.scheduler/network-bandwidth have it.  0, -EINVAL. */
int dialect_parse_bandwidth(const char *text, uint32_t *ret);

/* Whether the resource is one of the GPU resources that limits are read for. */
bool dialect_is_gpu_resource(const char *name);

#endif
