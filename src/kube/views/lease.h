/* SPDX-License-Identifier: Apache-2.0 */
/* lease.h - a Lease: who holds it, for how long; and the marks of our locks.
 *
 * Whether it has expired is judged by our own clock from the moment a change was seen,
 * never by comparing renew_ns with our wall clock. */
#ifndef GS_KUBE_VIEWS_LEASE_H
#define GS_KUBE_VIEWS_LEASE_H

#include "kube/views/view.h"

struct lease_view {
	struct view_meta meta;
	const char *holder; /* "": nobody */
	int64_t duration_s; /* 0 if it does not say */
	int64_t acquire_ns, renew_ns;
	int64_t transitions;
	bool managed;				 /* label gpu.scheduling/managed: "true" */
	const struct json *labels, *annotations; /* objects, or NULL */
};

/* 0, or -EINVAL: name, holder, numbers and times. */
int lease_view_read(const struct json *lease, struct lease_view *ret, struct err *err);

#endif
