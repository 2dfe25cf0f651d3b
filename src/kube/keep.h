/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - which fields of an object are kept.
 *
 * A list of paths, one field each, as in
 *
 *	"metadata.labels"			all of it, whatever is inside
 *	"metadata.annotations{gpu.scheduling/*}" the members whose key begins so
 *	"spec.containers[].resources.limits"	of each item of a list
 *
 * ending with NULL.  What no path names is dropped: managedFields, unknown fields, the
 * great parts of a pod that do not matter to scheduling.  Compiled once, then applied to
 * every event without allocation.
 */
#ifndef GS_KUBE_KEEP_H
#define GS_KUBE_KEEP_H

#include <stddef.h>

struct err;
struct json;
struct keep;
struct strbuf;

#define KEEP_DEPTH_MAX 16

/* 0, -EINVAL for a malformed path (ours: a test goes over all kinds), -ENOMEM. */
int keep_new(const char *const *paths, struct keep **ret, struct err *err);
void keep_free(struct keep *keep);

/* Appends what is kept of the object, as compact JSON.  Fields that are not there are
 * left out; so are objects and lists of which nothing is kept.  The order is that of the
 * text.  `out` tells by its `failed` if it did not fit. */
void keep_write(const struct keep *keep, const struct json *object, struct strbuf *out);

#endif
