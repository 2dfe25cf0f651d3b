/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what Kubernetes would refuse, refused before it is sent; and what it would
 * accept and then choke on.  (The Binding does not check its annotations: an illegal key
 * gets into the pod, which can then never be updated again.)
 *
 * The rules are those of apimachinery's validation.  Each function: 0, or -EINVAL (-E2BIG
 * for sizes) and one sentence that begins with `what`, "pod name" say.  No state.
 */
#ifndef GS_KUBE_CHECK_H
#define GS_KUBE_CHECK_H

#include <stddef.h>

#include "kube/object.h" /* KUBE_UID_MAX, KUBE_VERSION_MAX */

struct err;

#define KUBE_SUBDOMAIN_MAX   253
#define KUBE_LABEL_MAX	     63
#define KUBE_ANNOTATIONS_MAX ((size_t)256 << 10)  /* all keys and values of an object */
#define KUBE_PAIRS_MAX	     1024		  /* labels, annotations of a write */
#define KUBE_OBJECT_MAX	     ((size_t)1536 << 10) /* what etcd takes */
#define KUBE_REQUEST_MAX     ((size_t)3 << 20)	  /* what the API server reads */

struct kube_pair {
	const char *key, *value;
};

/* Names of most objects: lower-case letters, digits, '-', '.'. */
int kube_check_subdomain(const char *what, const char *name, struct err *err);

/* Namespaces, services, containers: the same without '.', at most 63. */
int kube_check_label_name(const char *what, const char *name, struct err *err);

/* [prefix/]name of a label; of an annotation, where the case of the prefix is free. */
int kube_check_label_key(const char *what, const char *key, struct err *err);
int kube_check_annotation_key(const char *what, const char *key, struct err *err);
int kube_check_label_value(const char *what, const char *value, struct err *err);

/* Keys, values, that none comes twice, and the size of all. */
int kube_check_labels(const char *what, const struct kube_pair *labels, size_t count,
		      struct err *err);
int kube_check_annotations(const char *what, const struct kube_pair *annotations, size_t count,
			   struct err *err);

int kube_check_uid(const char *what, const char *uid, struct err *err);

/* Of a precondition: digits, and not "0", which means any. */
int kube_check_version(const char *what, const char *version, struct err *err);

/* An object as a whole, or a patch. */
int kube_check_object_size(const char *what, size_t bytes, struct err *err);
int kube_check_request_size(const char *what, size_t bytes, struct err *err);

#endif
