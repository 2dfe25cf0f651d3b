/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - which fields of an object are kept.
 *
 * A list of paths, one field each, ending with NULL:
 *
 *	"metadata.labels"			all of it, whatever is inside
 *	"metadata.annotations{map,gpu.*}"	the members of that key, or that begin so
 *	"metadata.annotations{!map,!gpu.*}"	all members but these
 *	"spec.containers[].resources.limits"	of each item of a list
 *	"spec.volumes[csi|rbd].name"		of the items that have such a member
 *	"status.conditions[type=Ready|A].status" of the items whose member has such a value
 *	"status.containerStatuses[@resized].x"	of the containers whose resources are not (or
 *						not yet) those that the pod's spec asks for
 *	"kind=Job"				not read but written, always: a list of the
 *						server does not say what its items are
 *
 * What no path names is dropped: managedFields, unknown fields, the great parts of a pod
 * that do not matter to scheduling.  Where a path meets something else than the list or
 * object it expects, that is kept whole, so that who reads it sees the mistake.
 *
 * Compiled once, then applied to every event without allocation but for the growth of the
 * output.  Read-only after that: any number of threads may use one.
 */
#ifndef GS_KUBE_KEEP_H
#define GS_KUBE_KEEP_H

#include <stddef.h>

struct err;
struct json;
struct keep;
struct kube_meta;
struct strbuf;

#define KEEP_DEPTH_MAX 16 /* names of a path */

/* 0, -EINVAL for a malformed path (ours: a test goes over all kinds), -ENOMEM. */
int keep_new(const char *const *paths, struct keep **ret, struct err *err);
void keep_free(struct keep *keep);
void keep_freep(struct keep **keep); /* for CLEANUP() */

/* Appends what is kept of the object (which is one, not a list or a word), packed
 * (packed.h), with references to the strings of `meta`, which are those of the object
 * itself.  Fields that are not there are left
 * out; so are objects and lists of which nothing is kept.  The order is that of the text.
 * `out` tells by its `failed` if it did not fit. */
void keep_pack(const struct keep *keep, const struct json *object, const struct kube_meta *meta,
	       struct strbuf *out);

#endif
