/* SPDX-License-Identifier: Apache-2.0 */
/* storage.h - volumes, claims for them, and what says where these can be: found in the caches,
 * and told to the engine.
 *
 * Owns the caches of PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes,
 * CSIDrivers, CSIStorageCapacities and VolumeAttachments.  Part of lookup.h, which asks it for
 * what dialect/ wants to know; the engine hears of every change that matters to it
 * (engine/volumes.h), whatever order the kinds arrive in.
 *
 * Promises: what was decided for a pod that is being bound and no object says yet.  A volume
 * that was promised to a claim is for nobody else.
 */
#ifndef GS_SCHEDULER_STORAGE_H
#define GS_SCHEDULER_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct dialect_lookup;
struct err;
struct json;
struct kube_caches;
struct kube_object;
struct log;
struct lookup;
struct storage;

struct storage_options {
	struct lookup *lookup;		      /* whose documents are dropped after a change */
	const struct dialect_lookup *dialect; /* through which objects are found */
	struct kube_caches *caches;
	struct cluster *cluster; /* NULL: nobody to tell */
	const struct log *log;
	uint64_t seed;
	void (*changed)(void *context, const char *kind, const char *namespace, const char *name);
	void *context;
};

int storage_new(const struct storage_options *options, struct storage **ret, struct err *err);
/* After its caches are gone.  NULL is fine. */
void storage_free(struct storage *storage);

/* Whether the kind is one of these. */
bool storage_has(const char *kind);
/* NULL if it is not there, or of another kind. */
const struct kube_object *storage_get(const struct storage *storage, const char *kind,
				      const char *namespace, const char *name);
/* As struct dialect_lookup has it. */
void storage_each(struct storage *storage, const char *kind, const char *class,
		  void (*visit)(void *visitor, const struct json *object), void *visitor);
const char *storage_promised(const struct storage *storage, const char *kind,
			     const char *namespace, const char *name);

/* Attachments that came before their volumes are told now; before pods are read. */
void storage_settle(struct storage *storage);

/* 0; 1 that is promised already, for another pod: once more; -EEXIST the volume is promised to
 * another claim; -ENOMEM.  Each is to be taken back once. */
int storage_promise(struct storage *storage, const char *kind, const char *namespace,
		    const char *name, const char *to);
void storage_unpromise(struct storage *storage, const char *kind, const char *namespace,
		       const char *name);

#endif
