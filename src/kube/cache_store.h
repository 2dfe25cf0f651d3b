/* SPDX-License-Identifier: Apache-2.0 */
/* cache_store.h - the objects of a cache, and those of a list that is not whole yet.
 *
 * `live` is what has been reported.  A list gathers in `staged` and leaves `live` alone
 * until it is whole; then cache_store_commit() makes the one into the other and reports the
 * difference, first all that is gone, then all that is new, so that who counts resources
 * never sees them taken twice.  An object of the list that has not changed is not made
 * again: `staged` then points to the one in `live`.
 *
 * An object that came anew under the same name (another uid) is two reports, GONE for the
 * old one and ADDED for the new.
 *
 * Read by name through base/map.h; the key is the object's own memory.
 */
#ifndef GS_KUBE_CACHE_STORE_H
#define GS_KUBE_CACHE_STORE_H

#include <stdint.h>

#include "base/map.h"
#include "kube/cache.h"

struct err;
struct json;
struct keep;
struct kube_object;
struct log;

struct cache_store {
	struct map live, staged; /* "namespace\0name" -> struct kube_object */
	uint64_t bytes;		 /* of the live objects */
	uint64_t malformed;	 /* objects that could not be read */
	const struct keep *keep; /* borrowed */
	const char *resource;	 /* for the log: "pods"; borrowed */
	const struct log *log;	 /* NULL: nothing is said */
	kube_changed_fn changed; /* NULL: nobody listens */
	void *context;
};

/* Takes no memory yet.  The other members are the caller's to set. */
void cache_store_init(struct cache_store *store, uint64_t seed);
void cache_store_done(struct cache_store *store); /* frees all objects, reports nothing */

/* NULL if it is not there. */
struct kube_object *cache_store_get(const struct cache_store *store, const char *namespace,
				    const char *name);

/* An event of the watch.  The same uid and version again is no change.  What cannot be
 * read is logged, counted in `malformed`, and 0; the former version stays.  -ENOMEM: the
 * change is lost, only a new list mends that. */
int cache_store_put(struct cache_store *store, const struct json *object);
int cache_store_delete(struct cache_store *store, const struct json *object);

/* An object of a list, and one that went away while the list was streamed; else as above. */
int cache_store_stage(struct cache_store *store, const struct json *object);
int cache_store_unstage(struct cache_store *store, const struct json *object);

/* Says and counts that an object could not be read. */
void cache_store_malformed(struct cache_store *store, const char *name, const char *why);

/* The list is whole.  -ENOMEM: part of it was reported and is in `live`; list again. */
int cache_store_commit(struct cache_store *store);

/* The list will not become whole: `live` stays as it is.  Harmless without one. */
void cache_store_abort(struct cache_store *store);

uint64_t cache_store_bytes(const struct cache_store *store); /* with the maps */

#endif
