/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler_bench.h - for the tests of what fills the engine from caches: caches that have no
 * server behind them, but the true store, and objects from YAML.
 *
 *	bench_put(KUBE_NODE, "metadata: {name: alpha, resourceVersion: RV}\n");
 *
 * RV stands for a version that is greater each time.  One executable has one of them.
 */
#ifndef GS_TESTS_SCHEDULER_BENCH_H
#define GS_TESTS_SCHEDULER_BENCH_H

#include "test.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "engine/engine.h"
#include "kube/cache.h"
#include "kube/cache_store.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "wire/json.h"
#include "wire/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct kube_cache {
	const struct kube_kind *kind;
	struct cache_store store;
	struct keep *keep;
};

struct kube_caches {
	struct kube_cache items[KUBE_KINDS];
	size_t count;
};

struct bench {
	struct engine *engine;
	struct cluster *cluster;
	struct kube_caches caches;
	struct log log;
	int log_fd;
	unsigned version;
	char seen[1024]; /* what was reported */
};

static struct bench bench;

int kube_caches_add(struct kube_caches *caches, const struct kube_cache_options *options,
		    struct kube_cache **ret, struct err *err)
{
	struct kube_cache *cache = &caches->items[caches->count++];

	cache->kind = options->kind;
	CHECK(keep_new(options->kind->keep, &cache->keep, err) == 0);
	cache_store_init(&cache->store, 1);
	cache->store.keep = cache->keep;
	cache->store.resource = options->kind->plural;
	cache->store.log = options->log;
	cache->store.changed = options->changed;
	cache->store.context = options->context;
	if (ret)
		*ret = cache;
	return 0;
}

struct kube_object *kube_cache_get(const struct kube_cache *cache, const char *namespace,
				   const char *name)
{
	return cache_store_get(&cache->store, namespace, name);
}

struct kube_object *kube_cache_next(const struct kube_cache *cache, uint32_t *at)
{
	struct map_entry entry;

	return map_next(&cache->store.live, at, &entry) ? entry.value : NULL;
}

static inline struct kube_cache *bench_cache(enum kube_kind_id kind)
{
	for (size_t i = 0; i < bench.caches.count; i++)
		if (bench.caches.items[i].kind == &kube_kinds[kind])
			return &bench.caches.items[i];
	CHECKF(false, "nobody watches %s", kube_kinds[kind].plural);
	return NULL;
}

/* The document that the YAML is, to be freed. */
static inline struct json_doc *bench_parse(const char *yaml)
{
	char text[16384];
	struct yaml parsed = YAML_INIT;
	struct err err = ERR_INIT;
	size_t len = 0;

	for (const char *at = yaml; *at; at++) {
		CHECK(len + 16 < sizeof(text));
		if (strncmp(at, "RV", 2) == 0) {
			len += (size_t)sprintf(text + len, "\"%u\"", ++bench.version);
			at++;
		} else {
			text[len++] = *at;
		}
	}
	CHECKF(yaml_parse("test", text, len, NULL, &parsed, &err) == 0, "%s\n%s", err.text, yaml);
	struct json_doc *doc = parsed.items[0].doc;
	parsed.items[0].doc = NULL;
	yaml_done(&parsed);
	return doc;
}

static inline void bench_put(enum kube_kind_id kind, const char *yaml)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = bench_parse(yaml);
	struct cache_store *store = &bench_cache(kind)->store;
	uint64_t malformed = store->malformed;

	CHECK_INT(cache_store_put(store, json_root(doc)), 0);
	CHECK_INT(store->malformed, malformed);
}

static inline void bench_delete(enum kube_kind_id kind, const char *yaml)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = bench_parse(yaml);

	CHECK_INT(cache_store_delete(&bench_cache(kind)->store, json_root(doc)), 0);
}

static inline void bench_open(void)
{
	memset(&bench, 0, sizeof(bench));
	bench.engine = engine_new(&(struct engine_config){ .cluster.seed = 1 });
	CHECK(bench.engine != NULL);
	bench.cluster = engine_cluster(bench.engine);
	bench.log_fd = memfd_create("log", 0);
	bench.log = (struct log){ bench.log_fd, LOG_DEBUG, LOG_LOGFMT, &clock_system };
}

static inline void bench_close(void)
{
	CHECK(cluster_check(bench.cluster) == NULL);
	engine_free(bench.engine);
	for (size_t i = 0; i < bench.caches.count; i++) {
		cache_store_done(&bench.caches.items[i].store);
		keep_free(bench.caches.items[i].keep);
	}
	close(bench.log_fd);
}

/* What was reported since the last call, "" if nothing. */
static inline const char *bench_seen(void)
{
	static char text[sizeof(bench.seen)];

	memcpy(text, bench.seen, sizeof(text));
	bench.seen[0] = '\0';
	return text;
}

static inline void bench_saw(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void bench_saw(const char *format, ...)
{
	size_t len = strlen(bench.seen);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(bench.seen + len, sizeof(bench.seen) - len, format, arguments);
	va_end(arguments);
}

/* How many lines of the log have that in them. */
static inline unsigned bench_logged(const char *part)
{
	static char text[65536];
	unsigned count = 0;
	ssize_t n = pread(bench.log_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

#endif
