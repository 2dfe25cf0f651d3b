/* SPDX-License-Identifier: Apache-2.0 */
/* ready.h - all caches of a client, and whether they are live.
 *
 * A program works from several caches at once and is ready when every one of them is.
 * The set owns its caches and remembers for all of them whether the server streams lists.
 * Used by the loop's thread alone.
 */
#ifndef GS_KUBE_READY_H
#define GS_KUBE_READY_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct kube_cache;
struct kube_cache_options;
struct kube_caches;
struct kube_client;
struct strbuf;

/* NULL: out of memory. */
struct kube_caches *kube_caches_new(struct kube_client *client);

/* Frees its caches too; before the client is closed.  NULL is fine. */
void kube_caches_free(struct kube_caches *caches);

/* Makes a cache (cache.h) that lives as long as the set.  `ret` may be NULL.
 * 0, -EINVAL, -ENOMEM. */
int kube_caches_add(struct kube_caches *caches, const struct kube_cache_options *options,
		    struct kube_cache **ret, struct err *err);

/* Tells telemetry how they stand, before somebody reads it. */
void kube_caches_measure(const struct kube_caches *caches);

/* In the order in which they were added; NULL at the end. */
struct kube_cache *kube_caches_at(const struct kube_caches *caches, size_t i);

/* Whether every cache has been filled at least once. */
bool kube_caches_synced(const struct kube_caches *caches);

/* Whether every cache is live.  If not and `why` is not NULL, appends which are not and
 * for what reason: "pods: the list is not whole yet; nodes: ...". */
bool kube_caches_ready(const struct kube_caches *caches, struct strbuf *why);

#endif
