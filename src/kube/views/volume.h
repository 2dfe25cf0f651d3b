/* SPDX-License-Identifier: Apache-2.0 */
/* volume.h - claims for volumes, volumes, and what says where these can be: storage
 * classes, CSI drivers, nodes and capacities, attachments. */
#ifndef GS_KUBE_VIEWS_VOLUME_H
#define GS_KUBE_VIEWS_VOLUME_H

#include "kube/views/view.h"

/* How a volume may be used: a set of these. */
enum access_mode {
	ACCESS_READ_WRITE_ONCE = 1,
	ACCESS_READ_ONLY_MANY = 2,
	ACCESS_READ_WRITE_MANY = 4,
	ACCESS_READ_WRITE_ONCE_POD = 8,
};

/* None if the status has not been written, or says a word that we do not know. */
enum volume_claim_phase {
	VOLUME_CLAIM_NONE,
	VOLUME_CLAIM_PENDING,
	VOLUME_CLAIM_BOUND,
	VOLUME_CLAIM_LOST
};

struct volume_claim_view { /* PersistentVolumeClaim */
	struct view_meta meta;
	struct view_controller controller; /* the pod of an ephemeral volume */
	enum volume_claim_phase phase;
	const char *volume; /* "": not bound */
	const char *class;  /* "" for none; see has_class */
	bool has_class;	    /* "" that is written means: no class, not the default one */
	bool block;	    /* volumeMode: Block */
	unsigned access;
	int64_t requested_bytes;
	const struct json *selector; /* or NULL */
	const char *selected_node;   /* annotation, or "" */
	bool bind_completed;	     /* annotation pv.kubernetes.io/bind-completed */
};

int volume_claim_view_read(const struct json *claim, struct volume_claim_view *ret,
			   struct err *err);

enum volume_phase {
	VOLUME_NONE,
	VOLUME_PENDING,
	VOLUME_AVAILABLE,
	VOLUME_BOUND,
	VOLUME_RELEASED,
	VOLUME_FAILED
};

struct volume_view { /* PersistentVolume */
	struct view_meta meta;
	enum volume_phase phase;
	const char *class; /* "" for none */
	bool block;
	unsigned access;
	int64_t capacity_bytes;
	const struct json *node_affinity; /* spec.nodeAffinity.required, or NULL: any node */
	const char *claim_namespace, *claim_name, *claim_uid; /* "" if it is nobody's */
	const char *driver, *handle;			      /* of CSI, or "" */
};

int volume_view_read(const struct json *volume, struct volume_view *ret, struct err *err);

struct storage_class_view {
	struct view_meta meta;
	const char *provisioner;
	bool waits;		       /* volumeBindingMode: WaitForFirstConsumer */
	bool is_default;	       /* annotation */
	const struct json *topologies; /* allowedTopologies, a list, or NULL: anywhere */
};

int storage_class_view_read(const struct json *class, struct storage_class_view *ret,
			    struct err *err);

struct csi_driver_view {
	struct view_meta meta;
	bool attaches;	 /* spec.attachRequired; true if it does not say */
	bool capacities; /* spec.storageCapacity: ask CSIStorageCapacity */
};

int csi_driver_view_read(const struct json *driver, struct csi_driver_view *ret, struct err *err);

/* How many volumes of the driver the CSINode can attach: -1 without a bound, or without
 * the driver.  0, -EINVAL. */
int csi_node_limit(const struct json *csi_node, const char *driver, int64_t *ret, struct err *err);

struct csi_capacity_view {
	struct view_meta meta;
	const char *class;
	const struct json *topology; /* nodeTopology, a selector, or NULL: no node */
	int64_t volume_bytes;	     /* of the largest volume that fits: maximumVolumeSize, else
				 * capacity; -1 if it says neither */
};

int csi_capacity_view_read(const struct json *capacity, struct csi_capacity_view *ret,
			   struct err *err);

struct attachment_view { /* VolumeAttachment */
	struct view_meta meta;
	const char *attacher, *node, *volume; /* "" if not there (an inline volume) */
	bool attached;
};

int attachment_view_read(const struct json *attachment, struct attachment_view *ret,
			 struct err *err);

#endif
