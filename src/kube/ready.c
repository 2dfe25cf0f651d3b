/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/ready.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "kube/telemetry.h"

#include <errno.h>
#include <stdlib.h>

struct kube_caches {
	struct kube_client *client;
	VEC(struct kube_cache *) caches;
	bool streams; /* nobody has refused yet */
};

struct kube_caches *kube_caches_new(struct kube_client *client)
{
	struct kube_caches *caches = calloc(1, sizeof(*caches));
	if (!caches)
		return NULL;
	caches->client = client;
	caches->streams = true;
	return caches;
}

void kube_caches_free(struct kube_caches *caches)
{
	if (!caches)
		return;
	for (size_t i = 0; i < caches->caches.len; i++)
		kube_cache_free(caches->caches.items[i]);
	vec_done(&caches->caches);
	free(caches);
}

int kube_caches_add(struct kube_caches *caches, const struct kube_cache_options *options,
		    struct kube_cache **ret, struct err *err)
{
	struct kube_cache_options own = *options;
	struct kube_cache *cache = NULL;
	own.streams = &caches->streams;
	if (vec_reserve(&caches->caches, caches->caches.len + 1) < 0)
		return err_set(err, ENOMEM, "out of memory");
	int result = kube_cache_new(caches->client, &own, &cache, err);
	if (result < 0)
		return result;
	caches->caches.items[caches->caches.len++] = cache;
	if (ret)
		*ret = cache;
	return 0;
}

void kube_caches_measure(const struct kube_caches *caches)
{
	for (size_t i = 0; i < caches->caches.len; i++) {
		const struct kube_cache *cache = caches->caches.items[i];
		struct kube_cache_status status;
		kube_cache_status(cache, &status);
		struct kube_cache_figures figures = { .objects = status.count,
						      .bytes = status.bytes,
						      .live = status.live,
						      .heard_ms = status.heard_ms,
						      .version = status.version };
		kube_telemetry_cache(kube_telemetry(caches->client), kube_cache_kind(cache),
				     &figures);
	}
}

struct kube_cache *kube_caches_at(const struct kube_caches *caches, size_t i)
{
	return i < caches->caches.len ? caches->caches.items[i] : NULL;
}

bool kube_caches_synced(const struct kube_caches *caches)
{
	for (size_t i = 0; i < caches->caches.len; i++) {
		struct kube_cache_status status;
		kube_cache_status(caches->caches.items[i], &status);
		if (!status.synced)
			return false;
	}
	return true;
}

static void say_why(struct strbuf *why, const char *resource,
		    const struct kube_cache_status *status)
{
	if (why->len > 0)
		strbuf_puts(why, "; ");
	strbuf_addf(why, "%s: ", resource);
	if (status->trouble[0])
		strbuf_puts(why, status->trouble);
	else if (!status->synced)
		strbuf_puts(why, "the list is not whole yet");
	else
		strbuf_puts(why, "cut off, the server has not answered yet");
}

bool kube_caches_ready(const struct kube_caches *caches, struct strbuf *why)
{
	bool ready = true;
	for (size_t i = 0; i < caches->caches.len; i++) {
		const struct kube_cache *cache = caches->caches.items[i];
		struct kube_cache_status status;
		kube_cache_status(cache, &status);
		ready = ready && status.live;
		if (!status.live && why)
			say_why(why, kube_cache_kind(cache)->plural, &status);
	}
	return ready;
}
