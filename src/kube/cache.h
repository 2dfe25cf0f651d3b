/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - all objects of a kind, as the server has them: list, then watch, for ever.
 *
 * The cache follows the server through cut connections (resumes at the last version it
 * saw), silence (a watchdog), forgotten history (410: lists again, as a replacement: what
 * is not in the list is reported as gone), versions that have not happened (504), and
 * refusals (waits, with growing and jittered pauses).  It uses a streaming list where the
 * server has one.
 *
 * Between two kinds there is no order: a pod may come before its node.  Used by the
 * loop's thread alone; objects are owned by the cache and valid until the change that
 * replaces them has been reported.
 */
#ifndef GS_KUBE_CACHE_H
#define GS_KUBE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json;
struct kube_cache;
struct kube_client;
struct kube_kind;
struct kube_object;
struct log;

enum kube_change {
	KUBE_ADDED,    /* before is NULL */
	KUBE_MODIFIED, /* both are there, with the same uid */
	KUBE_DELETED,  /* now is NULL; the server said so (or it left the selector) */
	KUBE_GONE,     /* now is NULL; it was missing from a new list, or another has its
			* name (which is ADDED next): last state unknown */
};

/* A change, in the order of the server; those of a new list all at once, first what is
 * gone.  `object` is the document (NULL when now is), valid during the call: whole if it
 * came as an event, and what is kept of it if it came in a list.  `before` is freed after
 * the call.  The cache already has the new state, and must not be freed from inside. */
typedef void (*kube_changed_fn)(void *context, enum kube_change change,
				const struct kube_object *before, struct kube_object *now,
				const struct json *object);

struct kube_cache_options {
	const struct kube_kind *kind;
	const char *namespace;	    /* NULL: all */
	const char *label_selector; /* NULL: none; copied */
	const char *field_selector;
	const char *const *keep; /* NULL: the kind's */
	uint32_t page;		 /* objects of a page; 0: 500 */
	bool no_streaming;	 /* list even if the server could stream */
	bool *streams;		 /* shared by the caches of a client (ready.h does so), true at
				  * first: false once the server has refused to stream a
				  * list, for good.  NULL: of its own */
	bool optional;		 /* also if the kind is not: one that the server lacks (404)
				  * counts as empty, and is asked for twice a minute or so */
	const char *hint;	 /* borrowed: what to do where we have no right; NULL: nothing */
	const struct log *log;	 /* borrowed: failures, malformed objects.  NULL: silence */
	kube_changed_fn changed; /* NULL: nobody listens */
	/* Everything that the server had when the list began is in: once for each list. */
	void (*synced)(void *context);
	void *context;
};

/* Begins at once.  0, -EINVAL, -ENOMEM. */
int kube_cache_new(struct kube_client *client, const struct kube_cache_options *options,
		   struct kube_cache **ret, struct err *err);

/* Ends the watch and frees (its memory once the loop has run); nothing is reported any
 * more.  Before the client is closed.  NULL is fine. */
void kube_cache_free(struct kube_cache *cache);

/* NULL if it is not there: which proves nothing about the server. */
struct kube_object *kube_cache_get(const struct kube_cache *cache, const char *namespace,
				   const char *name);
uint32_t kube_cache_count(const struct kube_cache *cache);
const struct kube_kind *kube_cache_kind(const struct kube_cache *cache);

/* All objects, in no order; the cache must not change meanwhile.  NULL at the end. */
struct kube_object *kube_cache_next(const struct kube_cache *cache, uint32_t *at);

enum kube_cache_state {
	KUBE_CACHE_LISTING,  /* nothing or old data */
	KUBE_CACHE_WATCHING, /* live */
	KUBE_CACHE_WAITING,  /* cut off; trying again after a pause */
};

struct kube_cache_status {
	enum kube_cache_state state;
	bool synced; /* a whole list has been read at least once */
	bool live;   /* synced, and the watch is open or is being resumed in order */
	uint32_t count;
	uint64_t bytes;		 /* of memory for the objects */
	uint64_t lists, watches; /* begun so far */
	uint64_t events;	 /* without bookmarks */
	uint64_t failures;	 /* after which it paused */
	uint64_t malformed;	 /* objects that could not be read: nothing vouches for them */
	uint64_t heard_ms;	 /* monotonic: when the server was last heard; 0: never */
	const char *version;	 /* of the newest that was heard; "": nothing yet */
	const char *trouble;	 /* why it waits, "" if it does not */
};

void kube_cache_status(const struct kube_cache *cache, struct kube_cache_status *ret);

#endif
