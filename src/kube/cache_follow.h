/* SPDX-License-Identifier: Apache-2.0 */
/* cache_follow.h - what a cache asks the server next, and what it makes of the answers.
 *
 * The rules of list and watch without a socket or a timer: follow_next() says which
 * request to send or how long to wait, follow_data() and follow_end() take what comes
 * back, and time is an argument.  cache.c does the rest.
 *
 *	        list, page by page, or one stream
 *	              |            ^
 *	              v            | history forgotten (410), anything strange
 *	            watch --- end of the stream, 429: again from the last version
 *
 * After a failure comes a pause (backoff.h).  A watch that ends within a second and has
 * brought nothing is a failure too, whatever the server called it.
 */
#ifndef GS_KUBE_CACHE_FOLLOW_H
#define GS_KUBE_CACHE_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/strbuf.h"
#include "kube/backoff.h"
#include "kube/cache.h"
#include "kube/cache_list.h"
#include "kube/cache_store.h"
#include "kube/frame.h"
#include "kube/reply.h"

struct follow_request {
	bool waits; /* nothing is to be sent before wait_ms have passed */
	uint64_t wait_ms;
	const char *path;   /* of a GET; valid until the next call */
	const char *accept; /* NULL: application/json */
	uint32_t idle_ms;   /* longest silence */
};

struct follow {
	const struct kube_cache_options *options; /* borrowed */
	struct cache_store store;
	struct rng rng;
	struct backoff backoff;
	bool *streams; /* whether the server streams lists; shared by a client's caches */

	enum follow_need { NEED_LIST, NEED_PAGE, NEED_WATCH } need;
	enum follow_doing { DOING_NOTHING, DOING_PAGE, DOING_STREAM, DOING_WATCH } doing;
	uint64_t resume_ms; /* nothing is sent before */
	uint64_t began_ms;  /* the request on its way, or its watch after a list */
	uint64_t came;	    /* events of it, bookmarks too */

	struct strbuf path;
	struct strbuf version; /* to go on from */
	bool fresh;	       /* `version` is that of a list, and nothing has come since */

	/* of a list */
	struct cache_list body;
	struct cache_list_frame page; /* its token: the next page */
	bool unlimited;		      /* a token has expired: all in one page */
	uint32_t streams_cut;	      /* in a row */

	/* of a watch */
	struct frame frame;
	bool stopped;		 /* by us, for this: */
	enum kube_reason reason; /* KUBE_MALFORMED: it makes no sense */
	int64_t retry_after_s;

	bool synced;   /* as in kube_cache_status */
	bool absent;   /* the server lacks the kind */
	bool doubtful; /* the last request failed and the server has not been heard since */
	uint64_t lists, watches, events, failures;
	uint64_t heard_ms;
	char trouble[KUBE_SAID_MAX]; /* "" unless it waits */
};

/* `options`, `keep` and `streams` are borrowed. */
void follow_init(struct follow *follow, const struct kube_cache_options *options,
		 const struct keep *keep, bool *streams, uint64_t seed);
void follow_done(struct follow *follow);

/* What now.  Called when nothing is on its way: at the beginning, after follow_end(), and
 * after the wait. */
void follow_next(struct follow *follow, uint64_t now_ms, struct follow_request *ret);

/* Bytes of the answer.  0, or anything else to stop it; follow_end() comes then too. */
int follow_data(struct follow *follow, uint64_t now_ms, const char *bytes, size_t len);

/* The answer has ended, in whatever way. */
void follow_end(struct follow *follow, uint64_t now_ms, const struct kube_reply *reply);

/* Whether a list that comes as a stream has been silent for too long (a watch may be, up
 * to its idle_ms): then it is to be cancelled and follow_end() called with follow_silence. */
bool follow_is_stuck(const struct follow *follow, uint64_t now_ms);
extern const struct kube_reply follow_silence;

void follow_status(const struct follow *follow, uint64_t now_ms, struct kube_cache_status *ret);

/* Between cache_follow.c and cache_watch.c: the next event of the stream (0, or anything
 * else to stop); the list is whole (-ENOMEM: not all of it could be reported); stops the
 * request on its way for a reason. */
int follow_event(void *follow, const struct json *event);
int follow_commit(struct follow *follow, const char *version);
int follow_stop(struct follow *follow, enum kube_reason reason, const char *why);

#endif
