/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cache_follow.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/kind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAGE_DEFAULT	  500u
#define WATCH_MIN_S	  300u
#define WATCH_MAX_S	  600u
#define WATCH_GRACE_MS	  15000u /* of silence beyond the end that was asked for */
#define LIST_IDLE_MS	  60000u /* of silence within a list */
#define BRIEF_MS	  1000u	 /* a watch that is shorter and empty has failed */
#define OPEN_MS		  15000u /* within this a server that is not there is noticed */
#define ABSENT_MS	  15000u /* until a kind that is not there is asked for again, */
#define ABSENT_SPREAD_MS  15000u /* and up to this by chance */
#define RETRY_AFTER_MAX_S INT64_C(300)
#define STREAMS_CUT_MAX	  3u /* in a row: then one list without a stream */
#define QUERY_MAX	  ((size_t)64 << 10)
#define VERSION_MAX	  1024

const struct kube_reply follow_silence = {
	.reason = KUBE_SERVER_ERROR,
	.retry_after_s = -1,
	.message = "the server has begun a list and fallen silent",
};

void follow_init(struct follow *follow, const struct kube_cache_options *options,
		 const struct keep *keep, bool *streams, uint64_t seed)
{
	*follow = (struct follow){
		.options = options,
		.backoff = BACKOFF_INIT,
		.path = STRBUF_INIT_MAX(QUERY_MAX),
		.version = STRBUF_INIT_MAX(VERSION_MAX),
		.page = CACHE_LIST_FRAME_INIT,
	};
	follow->streams = streams;
	rng_seed(&follow->rng, seed);
	cache_list_init(&follow->body);
	frame_init(&follow->frame);
	cache_store_init(&follow->store, rng_next(&follow->rng));
	follow->store.keep = keep;
	follow->store.resource = options->kind->plural;
	follow->store.log = options->log;
	follow->store.changed = options->changed;
	follow->store.context = options->context;
}

void follow_done(struct follow *follow)
{
	if (!follow)
		return;
	cache_store_done(&follow->store);
	frame_done(&follow->frame);
	cache_list_done(&follow->body);
	cache_list_frame_done(&follow->page);
	strbuf_done(&follow->version);
	strbuf_done(&follow->path);
}

static void query(struct strbuf *path, const char *name, const char *value)
{
	if (!value)
		return;
	strbuf_putc(path, memchr(path->s, '?', path->len) ? '&' : '?');
	strbuf_puts(path, name);
	strbuf_putc(path, '=');
	kube_escape(path, value, strlen(value));
}

static void query_number(struct strbuf *path, const char *name, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof(text), "%u", value);
	query(path, name, text);
}

/* RV unset: the list is of this moment, not of one that the server remembers. */
static void ask_page(struct follow *follow, struct follow_request *ret)
{
	struct strbuf *path = &follow->path;
	uint32_t page = follow->options->page ? follow->options->page : PAGE_DEFAULT;
	if (!follow->unlimited)
		query_number(path, "limit", page);
	if (follow->page.token.len > 0)
		query(path, "continue", follow->page.token.s);
	if (follow->options->kind->metadata_only)
		ret->accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
	ret->idle_ms = LIST_IDLE_MS;
	cache_list_reset(&follow->body);
}

static void ask_watch(struct follow *follow, struct follow_request *ret)
{
	struct strbuf *path = &follow->path;
	uint32_t seconds = WATCH_MIN_S + rng_below(&follow->rng, WATCH_MAX_S - WATCH_MIN_S + 1);
	query(path, "watch", "1");
	if (follow->doing == DOING_STREAM) {
		query(path, "sendInitialEvents", "true");
		query(path, "resourceVersionMatch", "NotOlderThan");
	}
	query(path, "resourceVersion", follow->doing == DOING_STREAM ? "" : follow->version.s);
	query(path, "allowWatchBookmarks", "true");
	query_number(path, "timeoutSeconds", seconds);
	if (follow->options->kind->metadata_only)
		ret->accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
	ret->idle_ms = seconds * 1000 + WATCH_GRACE_MS;
	frame_reset(&follow->frame);
	follow->watches++;
}

static bool may_stream(const struct follow *follow)
{
	return *follow->streams && !follow->options->no_streaming && !follow->unlimited &&
	       follow->streams_cut < STREAMS_CUT_MAX;
}

/* A new list: nothing of an earlier one that did not become whole counts. */
static void begin_list(struct follow *follow)
{
	cache_store_abort(&follow->store);
	strbuf_reset(&follow->page.token);
	follow->doing = may_stream(follow) ? DOING_STREAM : DOING_PAGE;
	follow->lists++;
}

/* The next request comes after a pause, the longer the more often it has failed. */
static void fail(struct follow *follow, uint64_t now_ms, enum follow_need need, const char *why)
{
	uint64_t pause_ms = backoff_fail(&follow->backoff, now_ms, &follow->rng);
	int64_t asked_s = MIN(follow->retry_after_s, RETRY_AFTER_MAX_S);
	if (asked_s > 0)
		pause_ms = MAX(pause_ms, (uint64_t)asked_s * 1000);
	follow->resume_ms = now_ms + pause_ms;
	follow->need = need;
	follow->doubtful = true;
	follow->absent = false;
	follow->failures++;
	if (why != follow->trouble) /* said when we stopped it */
		snprintf(follow->trouble, sizeof(follow->trouble), "%s",
			 why && *why ? why : "it failed");
}

static void ask(struct follow *follow, uint64_t now_ms, struct follow_request *ret)
{
	const struct kube_cache_options *options = follow->options;
	follow->began_ms = now_ms;
	follow->came = 0;
	follow->stopped = false;
	follow->retry_after_s = -1;
	follow->trouble[0] = '\0';
	strbuf_reset(&follow->path);
	kube_path(&follow->path, options->kind, options->namespace, NULL, NULL);
	(follow->doing == DOING_PAGE ? ask_page : ask_watch)(follow, ret);
	query(&follow->path, "labelSelector", options->label_selector);
	query(&follow->path, "fieldSelector", options->field_selector);
	ret->path = follow->path.s;
}

void follow_next(struct follow *follow, uint64_t now_ms, struct follow_request *ret)
{
	*ret = (struct follow_request){ 0 };
	if (now_ms >= follow->resume_ms) {
		if (follow->need == NEED_LIST)
			begin_list(follow);
		else
			follow->doing = follow->need == NEED_PAGE ? DOING_PAGE : DOING_WATCH;
		ask(follow, now_ms, ret);
		if (!follow->path.failed)
			return;
		follow->doing = DOING_NOTHING;
		fail(follow, now_ms, NEED_LIST, "no memory for the request, or it is too long");
	}
	ret->waits = true;
	ret->wait_ms = follow->resume_ms - now_ms;
}

int follow_stop(struct follow *follow, enum kube_reason reason, const char *why)
{
	follow->stopped = true;
	follow->reason = reason;
	snprintf(follow->trouble, sizeof(follow->trouble), "%s", why);
	return -ECANCELED;
}

static int take_item(void *context, const struct json *item, const char *why)
{
	struct follow *follow = context;
	if (item)
		return cache_store_stage(&follow->store, item);
	cache_store_malformed(&follow->store, "", why);
	return 0;
}

int follow_data(struct follow *follow, uint64_t now_ms, const char *bytes, size_t len)
{
	struct err err = ERR_INIT;
	follow->heard_ms = now_ms;
	follow->doubtful = false;
	int result = follow->doing == DOING_PAGE
			     ? cache_list_push(&follow->body, bytes, len, take_item, follow, &err)
			     : frame_push(&follow->frame, bytes, len, follow_event, follow, &err);
	if (result == 0 || follow->stopped)
		return result;
	return follow_stop(follow, KUBE_MALFORMED, err.code ? err.text : "out of memory");
}

int follow_commit(struct follow *follow, const char *version)
{
	strbuf_reset(&follow->version);
	strbuf_puts(&follow->version, version);
	if (follow->version.failed || cache_store_commit(&follow->store) < 0)
		return -ENOMEM;
	follow->need = NEED_WATCH;
	follow->fresh = true;
	follow->synced = true;
	follow->absent = false;
	follow->unlimited = false;
	follow->streams_cut = 0;
	if (follow->options->synced)
		follow->options->synced(follow->options->context);
	return 0;
}

/* A kind that the server lacks is a kind without objects, until it has it. */
static void kind_is_absent(struct follow *follow, uint64_t now_ms)
{
	bool is_news = !follow->absent;
	cache_store_abort(&follow->store);
	if (cache_store_commit(&follow->store) < 0) {
		fail(follow, now_ms, NEED_LIST, "out of memory");
		return;
	}
	follow->absent = true;
	follow->doubtful = false;
	follow->synced = true;
	follow->need = NEED_LIST;
	follow->resume_ms = now_ms + ABSENT_MS + rng_below(&follow->rng, ABSENT_SPREAD_MS);
	snprintf(follow->trouble, sizeof(follow->trouble), "the server has no %s",
		 follow->options->kind->plural);
	if (is_news && follow->options->synced)
		follow->options->synced(follow->options->context);
}

static void page_is_whole(struct follow *follow, uint64_t now_ms)
{
	struct err err = ERR_INIT;
	if (cache_list_end(&follow->body, &follow->page, &err) < 0) {
		fail(follow, now_ms, NEED_LIST, err.text);
	} else if (follow->page.token.len > 0) {
		follow->need = NEED_PAGE;
	} else {
		cache_list_done(&follow->body);
		cache_list_init(&follow->body);
		if (follow_commit(follow, follow->page.version.s) < 0)
			fail(follow, now_ms, NEED_LIST, "out of memory");
	}
}

/* The server says what may not be done, and we whose fault that is. */
static void add_hint(struct follow *follow, const struct kube_reply *reply)
{
	size_t len = strlen(follow->trouble);
	if (reply->reason == KUBE_FORBIDDEN && follow->options->hint)
		snprintf(follow->trouble + len, sizeof(follow->trouble) - len, ": %s",
			 follow->options->hint);
}

static void page_failed(struct follow *follow, uint64_t now_ms, const struct kube_reply *reply)
{
	bool first = follow->page.token.len == 0;
	const struct kube_cache_options *options = follow->options;
	if (follow->stopped) {
		fail(follow, now_ms, NEED_LIST, follow->trouble);
	} else if (reply->reason == KUBE_NOT_FOUND &&
		   (options->optional || options->kind->optional)) {
		kind_is_absent(follow, now_ms);
	} else if (reply->reason == KUBE_EXPIRED && !first) {
		follow->unlimited = true;
		follow->need = NEED_LIST;
	} else {
		/* All pages are of one moment, so one of them can be asked for again; but not
		 * with a token that the server does not understand any more. */
		bool useless = reply->reason == KUBE_BAD_REQUEST || reply->reason == KUBE_INVALID;
		fail(follow, now_ms, first || useless ? NEED_LIST : NEED_PAGE, reply->message);
		add_hint(follow, reply);
	}
}

/* Whether the server does not know such streams.  Refusals for want of a right, of
 * strength or of history are about something else. */
static bool refuses_streams(const struct kube_reply *reply)
{
	return reply->code >= 400 && reply->code < 500 && reply->code != 401 &&
	       reply->code != 404 && reply->code != 410 && reply->code != 429;
}

/* A list as a stream has ended before it was whole. */
static void stream_ended(struct follow *follow, uint64_t now_ms, const struct kube_reply *reply)
{
	cache_store_abort(&follow->store);
	follow->need = NEED_LIST;
	if (!follow->stopped && refuses_streams(reply)) {
		*follow->streams = false;
	} else if (!follow->stopped && reply->code == 404) {
		follow->streams_cut = STREAMS_CUT_MAX; /* the list will tell */
	} else {
		follow->streams_cut++;
		fail(follow, now_ms, NEED_LIST,
		     follow->stopped		? follow->trouble
		     : reply->reason == KUBE_OK ? "a list ended before it was whole"
						: reply->message);
	}
}

/* The server has said that this watch cannot be, in its status or as an event. */
static void watch_refused(struct follow *follow, uint64_t now_ms, enum kube_reason reason,
			  const char *why)
{
	if (reason == KUBE_TOO_MANY_REQUESTS) {
		fail(follow, now_ms, NEED_WATCH, why);
	} else if ((reason == KUBE_EXPIRED || reason == KUBE_VERSION_TOO_LARGE) &&
		   !follow->fresh) {
		follow->need = NEED_LIST;
	} else {
		fail(follow, now_ms, NEED_LIST, why);
	}
}

static void watch_ended(struct follow *follow, uint64_t now_ms, const struct kube_reply *reply)
{
	bool brief = now_ms - follow->began_ms < BRIEF_MS && follow->came == 0;
	if (follow->came > 0 || !brief)
		follow->fresh = false;
	if (follow->stopped)
		watch_refused(follow, now_ms, follow->reason, follow->trouble);
	else if (reply->code != 0 && reply->code != 200)
		watch_refused(follow, now_ms, reply->reason, reply->message);
	else if (reply->code == 0 || brief)
		fail(follow, now_ms, NEED_WATCH,
		     reply->reason == KUBE_OK ? "the watch ended at once" : reply->message);
	else
		follow->need = NEED_WATCH;
}

void follow_end(struct follow *follow, uint64_t now_ms, const struct kube_reply *reply)
{
	enum follow_doing doing = follow->doing;
	follow->doing = DOING_NOTHING;
	if (reply->code != 0)
		follow->heard_ms = now_ms;
	if (!follow->stopped)
		follow->retry_after_s = reply->retry_after_s;
	if (doing == DOING_WATCH)
		watch_ended(follow, now_ms, reply);
	else if (doing == DOING_STREAM)
		stream_ended(follow, now_ms, reply);
	else if (reply->reason == KUBE_OK && !follow->stopped)
		page_is_whole(follow, now_ms);
	else
		page_failed(follow, now_ms, reply);
}

bool follow_is_stuck(const struct follow *follow, uint64_t now_ms)
{
	uint64_t heard_ms = MAX(follow->heard_ms, follow->began_ms);
	return follow->doing == DOING_STREAM && now_ms - heard_ms >= LIST_IDLE_MS;
}

/* Nobody says when a watch is open: after a failure its first bytes prove it, or that the
 * refusal has not come within the time of a refusal. */
static bool is_live(const struct follow *follow, uint64_t now_ms)
{
	if (!follow->synced)
		return false;
	if (follow->absent)
		return true;
	if (follow->doing != DOING_WATCH)
		return follow->doing == DOING_NOTHING && follow->need == NEED_WATCH &&
		       !follow->doubtful;
	return !follow->doubtful || now_ms - follow->began_ms >= OPEN_MS;
}

void follow_status(const struct follow *follow, uint64_t now_ms, struct kube_cache_status *ret)
{
	*ret = (struct kube_cache_status){
		.state = now_ms < follow->resume_ms && follow->doing == DOING_NOTHING
				 ? KUBE_CACHE_WAITING
			 : follow->doing == DOING_WATCH || follow->need == NEED_WATCH
				 ? KUBE_CACHE_WATCHING
				 : KUBE_CACHE_LISTING,
		.synced = follow->synced,
		.live = is_live(follow, now_ms),
		.count = follow->store.live.len,
		.bytes = cache_store_bytes(&follow->store),
		.lists = follow->lists,
		.watches = follow->watches,
		.events = follow->events,
		.failures = follow->failures,
		.malformed = follow->store.malformed,
		.heard_ms = follow->heard_ms,
		.version = follow->version.s,
		.trouble = follow->trouble,
	};
}
