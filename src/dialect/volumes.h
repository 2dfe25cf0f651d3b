/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.h - the volumes of pods: which are chosen for a pod on its node, and what the engine
 * is told of claims, nodes and attachments.
 *
 * Where a pod's volumes let it run is read with the pod (dialect.h) and becomes part of
 * its rules.  A claim that waits for its first consumer gets its volume once the node is
 * known: volumes_plan() chooses one that is there, or says that one is to be made.
 */
#ifndef GS_DIALECT_VOLUMES_H
#define GS_DIALECT_VOLUMES_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct cluster;
struct dialect_lookup;
struct err;
struct json;
struct pod_source;

/* One claim that is not bound yet. */
struct volume_choice {
	const char *claim;  /* in the pod's namespace */
	const char *volume; /* that it gets; NULL: one is to be made for it on the node, or for
			     * another pod that was promised it, whatever its node is */
};

struct volume_plan {
	const struct volume_choice *choices; /* in the arena, as their strings */
	uint32_t count;			     /* 0: all are bound already */
};

/* For a pod whose wish.volumes_wait is set, on that node of the cluster.  0; -ENOENT they are
 * not to be had there (any more), with why; -EINVAL; -ENOMEM. */
int volumes_plan(struct cluster *cluster, const struct dialect_lookup *lookup,
		 const struct pod_source *source, uint32_t node, struct arena *arena,
		 struct volume_plan *ret, struct err *err);

/* Whether the volume is for nodes like this one (its node affinity). */
bool volumes_match(struct cluster *cluster, const struct json *volume, uint32_t node,
		   struct arena *arena);

/* Tells the engine what changed.  The claim, or its volume or class, is another; the CSINode of
 * that name is this (NULL: gone); the VolumeAttachment of that name is this (NULL: gone), with
 * its volume as find() has it.  0, -ENOMEM. */
int volumes_claim_changed(struct cluster *cluster, const struct dialect_lookup *lookup,
			  const char *namespace, const char *name, struct arena *arena);
int volumes_node_changed(struct cluster *cluster, const char *name, const struct json *csi_node,
			 struct arena *arena);
int volumes_attachment_changed(struct cluster *cluster, const struct dialect_lookup *lookup,
			       const char *name, const struct json *attachment);

#endif
