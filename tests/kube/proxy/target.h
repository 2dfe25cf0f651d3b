/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - what a request is about, read from its method and path as the API server
 * does.
 */
#ifndef GS_TESTS_KUBE_PROXY_TARGET_H
#define GS_TESTS_KUBE_PROXY_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

#define TARGET_MAX ((size_t)16 << 10) /* bytes of a path with its query */

struct target {
	const char *method;	 /* borrowed */
	const char *verb;	 /* get, list, watch, create, update, patch, delete,
				    deletecollection; "other" */
	struct strbuf path;	 /* without its query */
	struct strbuf resource;	 /* "pods", "pods/binding"; "" of other paths */
	struct strbuf namespace; /* "" without one */
	struct strbuf name;	 /* "" of a collection */
	bool watch;
	/* Method and path, with ?watch for a watch and the selectors, but without what
	 * changes from try to try (resourceVersion, limit, continue, timeouts).  Requests
	 * with the same identity are the same request, made again. */
	struct strbuf identity;
};

/* 0, -E2BIG for a path of more than TARGET_MAX bytes, -ENOMEM. */
int target_read(const char *method, const char *path, struct target *ret);
void target_done(struct target *target);

#endif
