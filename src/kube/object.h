/* SPDX-License-Identifier: Apache-2.0 */
/* object.h - an object as a cache keeps it: who it is, and the fields that we use.
 *
 * One piece of memory: this struct, the strings it points to, and the kept fields
 * (keep.h), packed, which kube_object_parse() reads again when someone needs more than
 * the names: a microsecond or two.  A pod takes 0.5 to 0.9 KiB, where its document would
 * take 10.
 *
 * Read-only once made, but for `user`.  Views with types (views/) are read from the
 * document, at the event or from the kept text alike.
 */
#ifndef GS_KUBE_OBJECT_H
#define GS_KUBE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json;
struct json_doc;
struct keep;
struct strbuf;

#define KUBE_NAMESPACE_MAX 63 /* bytes of each */
#define KUBE_NAME_MAX	   253
#define KUBE_UID_MAX	   128
#define KUBE_VERSION_MAX   64
#define KUBE_KEPT_MAX	   ((size_t)1 << 20) /* of the kept fields; etcd stops at 1.5 MiB */

struct kube_object {
	const char *namespace; /* "" without one */
	const char *name;
	const char *uid;     /* "" without one */
	const char *version; /* metadata.resourceVersion, opaque */
	const char *packed;  /* kept fields (packed.h) */
	uint32_t packed_len;
	uint32_t bytes; /* of memory, all in all */
	/* Keys and values of all annotations that it has, kept or not, as the server counts them:
	 * KUBE_ANNOTATIONS_MAX is for them together. */
	uint32_t annotations_bytes;
	void *user; /* for who uses the cache; carried over to the next version */
};

/* What identifies an object, borrowed from its document.  */
struct kube_meta {
	const char *namespace, *name, *uid, *version;
};

/* 0; -EINVAL if name or resourceVersion is missing, or one is longer than Kubernetes
 * allows. */
int kube_meta_read(const struct json *object, struct kube_meta *ret, struct err *err);

/* Makes the record: 0, -EINVAL, -ENOMEM, -E2BIG (kept fields of more than 1 MiB). */
int kube_object_new(const struct json *object, const struct keep *keep, struct kube_object **ret,
		    struct err *err);
void kube_object_free(struct kube_object *object);
void kube_object_freep(struct kube_object **object); /* for CLEANUP() */

/* Appends the kept fields as compact JSON. */
void kube_object_write_json(const struct kube_object *object, struct strbuf *out);

/* The kept fields as a document that the caller frees: 0, -ENOMEM. */
int kube_object_parse(const struct kube_object *object, struct json_doc **ret);

#endif
