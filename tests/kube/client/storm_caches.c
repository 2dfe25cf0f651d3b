/* SPDX-License-Identifier: Apache-2.0 */
/* storm_caches.c - caches in the storm: what they report on the way, what they have at
 * the end. */
#include "storm.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/cache.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "wire/json.h"

/* Every change of an object is one step of a number in it; without one (-1) only the node
 * of a pod is looked at, which never changes. */
typedef int64_t (*step_fn)(const struct json *object);

static int64_t step_of_lease(const struct json *lease)
{
	int64_t n = -1;
	return json_i64(lease, &n, "spec", "leaseTransitions") == 0 ? n : -1;
}

static int64_t step_of_map(const struct json *map)
{
	const char *n = json_str(map, "data", "n");
	return n ? strtoll(n, NULL, 10) : -1;
}

static int64_t step_of_none(const struct json *object)
{
	(void)object;
	return -1;
}

/* NULL: what the kind keeps by itself. */
static const char *const lease_keep[] = { "metadata.annotations", "spec", NULL };
static const char *const map_keep[] = { "data", NULL };

static const struct storm_follow {
	enum kube_kind_id kind;
	const char *const *keep;
	bool no_streaming;
	uint32_t page;
	step_fn step;
	const char *path;
} follows[] = {
	{ KUBE_LEASE, lease_keep, true, 3, step_of_lease,
	  "/apis/coordination.k8s.io/v1/namespaces/" STORM_NAMESPACE "/leases" },
	{ KUBE_LEASE, lease_keep, false, 0, step_of_lease,
	  "/apis/coordination.k8s.io/v1/namespaces/" STORM_NAMESPACE "/leases" },
	{ KUBE_CONFIG_MAP, map_keep, true, 10, step_of_map,
	  "/api/v1/namespaces/" STORM_NAMESPACE "/configmaps" },
	{ KUBE_CONFIG_MAP, map_keep, false, 0, step_of_map,
	  "/api/v1/namespaces/" STORM_NAMESPACE "/configmaps" },
	{ KUBE_POD, NULL, true, 40, step_of_none, "/api/v1/namespaces/" STORM_NAMESPACE "/pods" },
	{ KUBE_POD, NULL, false, 0, step_of_none, "/api/v1/namespaces/" STORM_NAMESPACE "/pods" },
};

struct storm_cache {
	const struct storm_follow *follow;
	struct kube_cache *cache;
	unsigned synced;
	uint64_t reported;
};

struct storm_caches {
	struct storm_cache caches[ARRAY_SIZE(follows)];
};

static void check_step(const struct storm_cache *cache, const struct json *before,
		       const struct json *now, const char *name, bool whole)
{
	int64_t old = cache->follow->step(before), new = cache->follow->step(now);
	const char *node = json_str(before, "spec", "nodeName");
	if (node && cache->follow->kind == KUBE_POD)
		CHECK_STR(json_str(now, "spec", "nodeName"), node);
	if (old < 0 && new < 0)
		return;
	CHECKF(new > old, "%s went from %" PRId64 " to %" PRId64, name, old, new);
	CHECKF(!whole || new == old + 1, "%s jumped from %" PRId64 " to %" PRId64, name, old, new);
}

/* How many lists there had been is kept at each object: between two of them nothing is
 * left out. */
static void on_changed(void *context, enum kube_change change, const struct kube_object *before,
		       struct kube_object *now, const struct json *object)
{
	struct storm_cache *cache = context;
	struct kube_cache_status status;
	kube_cache_status(cache->cache, &status);
	cache->reported++;
	CHECK((change == KUBE_ADDED) == (before == NULL));
	CHECK((change == KUBE_ADDED || change == KUBE_MODIFIED) == (now != NULL));
	if (change == KUBE_MODIFIED) {
		struct json_doc *old CLEANUP(json_doc_freep) = NULL;
		CHECK_STR(before->uid, now->uid);
		CHECK_INT(kube_object_parse(before, &old), 0);
		check_step(cache, json_root(old), object, now->name,
			   (uintptr_t)before->user == status.lists);
	}
	if (now)
		now->user = (void *)(uintptr_t)status.lists;
}

static void on_synced(void *context)
{
	((struct storm_cache *)context)->synced++;
}

void storm_caches_begin(struct storm *storm)
{
	storm->caches = calloc(1, sizeof(*storm->caches));
	CHECK(storm->caches);
	for (size_t i = 0; i < ARRAY_SIZE(follows); i++) {
		struct storm_cache *cache = &storm->caches->caches[i];
		struct err err = ERR_INIT;
		cache->follow = &follows[i];
		struct kube_cache_options options = {
			.kind = &kube_kinds[follows[i].kind],
			.namespace = STORM_NAMESPACE,
			.keep = follows[i].keep,
			.no_streaming = follows[i].no_streaming,
			.page = follows[i].page,
			.changed = on_changed,
			.synced = on_synced,
			.context = cache,
		};
		CHECKF(kube_cache_new(storm->live.client, &options, &cache->cache, &err) == 0,
		       "%s", err.text);
	}
}

/* Whether the cache has this one, of this version and with this content. */
static bool has(const struct storm_cache *cache, const struct keep *keep, const struct json *item)
{
	struct kube_object *wanted CLEANUP(kube_object_freep) = NULL;
	struct json_doc *a CLEANUP(json_doc_freep) = NULL;
	struct json_doc *b CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;
	CHECKF(kube_object_new(item, keep, &wanted, &err) == 0, "%s", err.text);
	const struct kube_object *got =
		kube_cache_get(cache->cache, wanted->namespace, wanted->name);
	if (!got || strcmp(got->uid, wanted->uid) != 0 ||
	    strcmp(got->version, wanted->version) != 0)
		return false;
	/* Of one version there is one content, now and for ever. */
	CHECK_INT(kube_object_parse(wanted, &a), 0);
	CHECK_INT(kube_object_parse(got, &b), 0);
	CHECKF(json_equal(json_root(a), json_root(b)), "%s has another content", got->name);
	return true;
}

static bool equals(struct storm *storm, const struct storm_cache *cache)
{
	const struct kube_kind *kind = kube_cache_kind(cache->cache);
	struct keep *keep CLEANUP(keep_freep) = NULL;
	struct json_doc *doc CLEANUP(json_doc_freep) = storm_list(storm, cache->follow->path);
	CHECK_INT(keep_new(cache->follow->keep ? cache->follow->keep : kind->keep, &keep, NULL),
		  0);
	if (json_len(json_root(doc), "items") != kube_cache_count(cache->cache))
		return false;
	struct json_iter items = json_items(json_root(doc), "items");
	for (const struct json *item; (item = json_next(&items));) {
		if (!has(cache, keep, item))
			return false;
	}
	return true;
}

void storm_caches_check(struct storm *storm)
{
	uint64_t end_ms = clock_monotonic_ms(&clock_system) + LIVE_PATIENCE_MS;
	for (size_t i = 0; i < ARRAY_SIZE(follows); i++) {
		const struct storm_cache *cache = &storm->caches->caches[i];
		struct kube_cache_status status;
		while (!equals(storm, cache)) {
			CHECKF(clock_monotonic_ms(&clock_system) < end_ms,
			       "a cache of %s never became what the server has",
			       kube_cache_kind(cache->cache)->plural);
			live_for(&storm->direct, 100);
		}
		kube_cache_status(cache->cache, &status);
		CHECK_INT(status.malformed, 0);
		CHECK(status.synced && cache->synced > 0);
		printf("# cache of %s: %u objects, %" PRIu64 " changes, %" PRIu64
		       " lists, %" PRIu64 " watches, %" PRIu64 " failures\n",
		       kube_cache_kind(cache->cache)->plural, status.count, cache->reported,
		       status.lists, status.watches, status.failures);
	}
}

void storm_caches_end(struct storm *storm)
{
	for (size_t i = 0; i < ARRAY_SIZE(follows); i++)
		kube_cache_free(storm->caches->caches[i].cache);
	free(storm->caches);
}
