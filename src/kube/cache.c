/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - a cache on the loop: sends what cache_follow.h wants to know. */
#include "kube/cache.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "kube/cache_follow.h"
#include "kube/client.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/telemetry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STUCK_CHECK_MS 5000
#define BUSY_TOLD      3 /* it asks for a moment: when a kind is new, for instance */

struct kube_cache {
	struct kube_client *client;
	struct kube_cache_options options; /* with strings of our own: */
	char *namespace, *label_selector, *field_selector;
	struct keep *keep;
	bool streams;
	struct follow follow;
	struct kube_call *call; /* NULL: it waits */
	uv_timer_t timer;
	bool unreached; /* the last answer was none, and the client has said why */
	uint8_t busy;	/* how often the server had no time in a row, up to BUSY_TOLD */
	uint64_t told;	/* hash of the trouble that was logged last; 0: none since it last heard */
};

static void cache_go(struct kube_cache *cache);

static uint64_t now_ms(const struct kube_cache *cache)
{
	return clock_monotonic_ms(kube_clock(cache->client));
}

static int on_data(void *context, const char *bytes, size_t len)
{
	struct kube_cache *cache = context;
	cache->told = 0;
	return follow_data(&cache->follow, now_ms(cache), bytes, len);
}

/* One of a few words, for the metric. */
static const char *why_ended(const struct follow *follow, const struct kube_reply *reply)
{
	enum kube_reason reason = follow->stopped ? follow->reason : reply->reason;
	if (reason == KUBE_EXPIRED || reason == KUBE_VERSION_TOO_LARGE)
		return "expired";
	if (follow->stopped || (reply->code != 0 && reply->code != 200))
		return "refused";
	return reason == KUBE_OK ? "end" : "cut";
}

static void cache_ended(struct kube_cache *cache, const struct kube_reply *reply)
{
	struct follow *follow = &cache->follow;
	cache->call = NULL;
	cache->unreached = reply->reason == KUBE_UNREACHABLE ||
			   reply->reason == KUBE_UNAUTHORIZED ||
			   reply->reason == KUBE_NO_CREDENTIALS;
	if (reply->reason != KUBE_TOO_MANY_REQUESTS)
		cache->busy = 0;
	else if (cache->busy < BUSY_TOLD)
		cache->busy++;
	if (follow->doing == DOING_WATCH)
		kube_telemetry_watch(kube_telemetry(cache->client), cache->options.kind->plural,
				     why_ended(follow, reply));
	follow_end(follow, now_ms(cache), reply);
	cache_go(cache);
}

static void on_done(void *context, const struct kube_reply *reply)
{
	cache_ended(context, reply);
}

/* A pause has ended, or it is time to look after a list that comes as a stream. */
static void on_timer(uv_timer_t *timer)
{
	struct kube_cache *cache = timer->data;
	if (!cache->call) {
		cache_go(cache);
	} else if (follow_is_stuck(&cache->follow, now_ms(cache))) {
		kube_cancel(cache->call);
		cache_ended(cache, &follow_silence);
	} else if (cache->follow.doing != DOING_STREAM) {
		uv_timer_stop(timer);
	}
}

/* What others have said already, or this one has, is for who wants to know everything. */
static enum log_level trouble_level(struct kube_cache *cache)
{
	uint64_t hash = hash_sentence(cache->follow.trouble, 1) | 1;
	if (cache->follow.absent || cache->unreached || hash == cache->told ||
	    (cache->busy && cache->busy < BUSY_TOLD))
		return LOG_DEBUG;
	cache->told = hash;
	return LOG_WARN;
}

static void cache_wait(struct kube_cache *cache, uint64_t wait_ms)
{
	const struct follow *follow = &cache->follow;
	uv_timer_start(&cache->timer, on_timer, wait_ms, 0);
	if (cache->options.log)
		log_write(cache->options.log, trouble_level(cache),
			  "cannot follow the server, trying again",
			  LOG_STR("resource", cache->options.kind->plural),
			  LOG_STR("reason", follow->trouble), LOG_U64("wait_ms", wait_ms),
			  LOG_END);
}

static int cache_ask(struct kube_cache *cache, const struct follow_request *request,
		     struct err *err)
{
	struct kube_stream stream = {
		.path = request->path,
		.verb = cache->follow.doing == DOING_PAGE ? "list" : "watch",
		.resource = cache->options.kind->plural,
		.accept = request->accept,
		.idle_ms = request->idle_ms,
		.data = on_data,
		.done = on_done,
		.context = cache,
	};
	uv_timer_stop(&cache->timer);
	if (cache->follow.doing == DOING_STREAM)
		uv_timer_start(&cache->timer, on_timer, STUCK_CHECK_MS, STUCK_CHECK_MS);
	return kube_stream(cache->client, &stream, &cache->call, err);
}

static void cache_go(struct kube_cache *cache)
{
	for (;;) {
		struct follow_request request;
		struct err err = ERR_INIT;
		follow_next(&cache->follow, now_ms(cache), &request);
		if (request.waits) {
			cache_wait(cache, request.wait_ms);
			return;
		}
		if (cache_ask(cache, &request, &err) == 0)
			return;
		struct kube_reply reply = { .reason = KUBE_UNREACHABLE,
					    .retry_after_s = -1,
					    .message = err.text };
		follow_end(&cache->follow, now_ms(cache), &reply); /* which leads to a pause */
	}
}

static void cache_destroy(struct kube_cache *cache)
{
	keep_free(cache->keep);
	free(cache->namespace);
	free(cache->label_selector);
	free(cache->field_selector);
	free(cache);
}

static int copy(const char *s, char **ret, const char **use)
{
	*use = NULL;
	if (!s)
		return 0;
	*use = *ret = strdup(s);
	return *ret ? 0 : -ENOMEM;
}

static int cache_init(struct kube_cache *cache, const struct kube_cache_options *options,
		      struct err *err)
{
	struct kube_cache_options *own = &cache->options;
	*own = *options;
	cache->streams = true;
	if (copy(options->namespace, &cache->namespace, &own->namespace) < 0 ||
	    copy(options->label_selector, &cache->label_selector, &own->label_selector) < 0 ||
	    copy(options->field_selector, &cache->field_selector, &own->field_selector) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (!own->streams)
		own->streams = &cache->streams;
	return keep_new(options->keep ? options->keep : options->kind->keep, &cache->keep, err);
}

int kube_cache_new(struct kube_client *client, const struct kube_cache_options *options,
		   struct kube_cache **ret, struct err *err)
{
	struct kube_cache *cache = calloc(1, sizeof(*cache));
	uint64_t seed = 0;
	if (!cache)
		return err_set(err, ENOMEM, "out of memory");
	cache->client = client;
	int result = cache_init(cache, options, err);
	if (result < 0) {
		cache_destroy(cache);
		return result;
	}
	uv_random(NULL, NULL, &seed, sizeof(seed), 0, NULL);
	follow_init(&cache->follow, &cache->options, cache->keep, cache->options.streams, seed);
	uv_timer_init(kube_loop(client), &cache->timer);
	cache->timer.data = cache;
	*ret = cache;
	cache_go(cache);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	cache_destroy(handle->data);
}

void kube_cache_free(struct kube_cache *cache)
{
	if (!cache)
		return;
	if (cache->call)
		kube_cancel(cache->call);
	kube_telemetry_cache(kube_telemetry(cache->client), cache->options.kind, NULL);
	follow_done(&cache->follow);
	uv_close((uv_handle_t *)&cache->timer, on_closed);
}

struct kube_object *kube_cache_get(const struct kube_cache *cache, const char *namespace,
				   const char *name)
{
	return cache_store_get(&cache->follow.store, namespace, name);
}

uint32_t kube_cache_count(const struct kube_cache *cache)
{
	return cache->follow.store.live.len;
}

struct kube_object *kube_cache_next(const struct kube_cache *cache, uint32_t *at)
{
	struct map_entry entry;
	return map_next(&cache->follow.store.live, at, &entry) ? entry.value : NULL;
}

const struct kube_kind *kube_cache_kind(const struct kube_cache *cache)
{
	return cache->options.kind;
}

void kube_cache_status(const struct kube_cache *cache, struct kube_cache_status *ret)
{
	follow_status(&cache->follow, now_ms(cache), ret);
}
