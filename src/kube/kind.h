/* SPDX-License-Identifier: Apache-2.0 */
/* kind.h - the kinds of objects that we read and write, and their addresses.
 *
 * A kind is a row of one table: group, version, plural, whether it lives in namespaces,
 * and which fields of it a cache keeps (keep.h): what scheduling asks about, and all that
 * dialect/ reads, so that a pod translated from what is kept is the same as one
 * translated from its document.
 *
 * Some servers lack a kind (our own before they are installed, those of a plugin, those
 * behind a feature gate): such a kind is `optional`.
 */
#ifndef GS_KUBE_KIND_H
#define GS_KUBE_KIND_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf;

enum kube_kind_id {
	KUBE_POD,
	KUBE_NODE,
	KUBE_NAMESPACE,
	KUBE_LEASE,
	KUBE_GPU_CLAIM,
	KUBE_GPU_NODE_STATUS,
	KUBE_SCHEDULER_CONFIG,
	KUBE_TOPOLOGY_SCHEDULER_CONFIG,
	KUBE_CONFIG_MAP,
	KUBE_SERVICE,
	KUBE_REPLICATION_CONTROLLER,
	KUBE_REPLICA_SET,
	KUBE_STATEFUL_SET,
	KUBE_DEPLOYMENT,
	KUBE_JOB,
	KUBE_POD_DISRUPTION_BUDGET,
	KUBE_PERSISTENT_VOLUME,
	KUBE_PERSISTENT_VOLUME_CLAIM,
	KUBE_STORAGE_CLASS,
	KUBE_CSI_NODE,
	KUBE_CSI_DRIVER,
	KUBE_CSI_STORAGE_CAPACITY,
	KUBE_VOLUME_ATTACHMENT,
	KUBE_PRIORITY_CLASS,
	KUBE_POD_GROUP,		 /* scheduling.x-k8s.io, of the coscheduling plugin */
	KUBE_UPSTREAM_POD_GROUP, /* scheduling.k8s.io, 1.36 with the gate GenericWorkload */
	KUBE_EVENT,		 /* events.k8s.io; written only */
	KUBE_KINDS,
};

struct kube_kind {
	const char *kind;    /* "Pod" */
	const char *group;   /* "" for the core */
	const char *version; /* "v1" */
	const char *plural;  /* "pods" */
	bool namespaced;
	bool optional;		 /* a server without it is in order */
	bool metadata_only;	 /* listed and watched as PartialObjectMetadata */
	const char *const *keep; /* see keep.h; ends with NULL */
};

extern const struct kube_kind kube_kinds[KUBE_KINDS];

/* The kind of that name ("Pod") and group, or NULL. */
const struct kube_kind *kube_kind_find(const char *group, const char *kind);

/* Appends the path below the server's URL: "/api/v1/namespaces/ml/pods/train-0/status".
 * `namespace` NULL or "": all of them, or a kind without; name NULL: the collection;
 * subresource NULL: the object itself.  Names are escaped for the URL. */
void kube_path(struct strbuf *out, const struct kube_kind *kind, const char *namespace,
	       const char *name, const char *subresource);

/* Appends s with everything escaped that a query value may not hold. */
void kube_escape(struct strbuf *out, const char *s, size_t len);

#endif
