/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/lookup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/vec.h"
#include "engine/rules.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "scheduler/indexes.h"
#include "scheduler/storage.h"
#include "wire/json.h"

/* A kind that is asked for by its name.  Of two of one name the first that has the object
 * counts. */
struct source {
	enum kube_kind_id kind;
	bool spec_only; /* what its status says is of no interest to pods */
};

static const struct source sources[] = {
	{ KUBE_GPU_CLAIM, true },
	{ KUBE_POD_GROUP, false },
	{ KUBE_UPSTREAM_POD_GROUP, false },
	{ KUBE_PRIORITY_CLASS, false },
	{ KUBE_JOB, false },
	{ KUBE_REPLICA_SET, false },
	{ KUBE_STATEFUL_SET, false },
	{ KUBE_DEPLOYMENT, false },
	{ KUBE_REPLICATION_CONTROLLER, false },
	{ KUBE_NAMESPACE, false },
};

struct lookup;

struct shelf {
	struct lookup *lookup;
	const struct source *source;
	const struct kube_kind *kind;
	struct kube_cache *cache;
};

struct lookup {
	struct lookup_options options;
	struct dialect_lookup dialect;
	struct shelf shelves[ARRAY_SIZE(sources)];
	struct indexes indexes;
	struct storage *storage;
	const char *reader;	     /* uid of the pod that is being read, or NULL */
	VEC(struct json_doc *) docs; /* found since the last reset */
	uint64_t met;
};

#define BIT_STORAGE ((uint64_t)1 << 63)

uint64_t lookup_bit(const char *kind, const char *name)
{
	if (storage_has(kind))
		return BIT_STORAGE;
	return (uint64_t)1 << hash_bytes(name, strlen(name), hash_bytes(kind, strlen(kind), 0)) %
				      63;
}

uint64_t lookup_met(const struct lookup *lookup)
{
	return lookup->met;
}

static const struct json *find(void *context, const char *kind, const char *namespace,
			       const char *name)
{
	struct lookup *lookup = context;
	const struct kube_object *object = NULL;
	struct json_doc *doc = NULL;

	lookup->met |= lookup_bit(kind, name);
	for (size_t i = 0; i < ARRAY_SIZE(lookup->shelves) && !object; i++) {
		const struct shelf *shelf = &lookup->shelves[i];

		if (strcmp(shelf->kind->kind, kind) == 0)
			object = kube_cache_get(shelf->cache,
						shelf->kind->namespaced ? namespace : "", name);
	}
	if (!object)
		object = storage_get(lookup->storage, kind, namespace, name);
	if (!object || vec_reserve(&lookup->docs, lookup->docs.len + 1) < 0 ||
	    kube_object_parse(object, &doc) < 0)
		return NULL;
	lookup->docs.items[lookup->docs.len++] = doc;
	return json_root(doc);
}

void lookup_map_name(const char *workload, char ret[LOOKUP_MAP_MAX])
{
	snprintf(ret, LOOKUP_MAP_MAX, "%016" PRIx64, hash_bytes(workload, strlen(workload), 0));
}

static bool index_taken(void *context, const char *workload, uint32_t index)
{
	const struct lookup *lookup = context;
	char map[LOOKUP_MAP_MAX];

	lookup_map_name(workload, map);
	return indexes_taken(&lookup->indexes, map, index, lookup->reader);
}

static void each(void *context, const char *kind, const char *class,
		 void (*visit)(void *visitor, const struct json *object), void *visitor)
{
	struct lookup *lookup = context;

	lookup->met |= BIT_STORAGE;
	storage_each(lookup->storage, kind, class, visit, visitor);
}

static const char *promised(void *context, const char *kind, const char *namespace,
			    const char *name)
{
	const struct lookup *lookup = context;

	return storage_promised(lookup->storage, kind, namespace, name);
}

/* Labels of a namespace, as rules about pods of other namespaces see them. */
static int put_namespace(struct lookup *lookup, const char *name, const struct json *object)
{
	const struct json *labels = json_get(object, "metadata", "labels");
	struct pod_label *list = calloc(json_len(labels) + 1, sizeof(*list));
	struct json_iter iter = json_members(labels);
	struct json_member m;
	uint32_t count = 0;
	int rc;

	if (!list)
		return -ENOMEM;
	while (json_next_member(&iter, &m)) {
		const char *value = json_str(m.value);

		list[count++] = (struct pod_label){ m.key, value ? value : "" };
	}
	rc = rules_namespace(lookup->options.cluster, name, list, count);
	free(list);
	return rc;
}

static void namespace_changed(struct lookup *lookup, const char *name, const struct json *object)
{
	int rc = 0;

	if (!lookup->options.cluster)
		return;
	if (object)
		rc = put_namespace(lookup, name, object);
	else
		rules_namespace_gone(lookup->options.cluster, name);
	if (rc < 0 && lookup->options.log)
		log_error(lookup->options.log, "the labels of a namespace are not known",
			  LOG_STR("namespace", name),
			  LOG_STR("why", rc == -E2BIG ? "they are too long" : "out of memory"));
}

static bool is_same(const struct json *a, const struct json *b)
{
	return a && b ? json_equal(a, b) : a == b;
}

/* Whether what pods are read with is as before, though something else has changed. */
static bool same_spec(const struct kube_object *before, const struct kube_object *now)
{
	struct json_doc *old CLEANUP(json_doc_freep) = NULL;
	struct json_doc *fresh CLEANUP(json_doc_freep) = NULL;

	if (kube_object_parse(before, &old) < 0 || kube_object_parse(now, &fresh) < 0)
		return false;
	return is_same(json_get(json_root(old), "spec"), json_get(json_root(fresh), "spec"));
}

/* Of what is kept most parts of a status are none. */
static bool is_no_news(const struct shelf *shelf, const struct kube_object *before,
		       const struct kube_object *now)
{
	if (before->packed_len == now->packed_len &&
	    memcmp(before->packed, now->packed, now->packed_len) == 0)
		return true;
	return shelf->source->spec_only && same_spec(before, now);
}

static void changed(void *context, enum kube_change change, const struct kube_object *before,
		    struct kube_object *now, const struct json *object)
{
	struct shelf *shelf = context;
	struct lookup *lookup = shelf->lookup;

	if (change == KUBE_MODIFIED && is_no_news(shelf, before, now))
		return;
	const struct kube_object *it = now ? now : before;
	if (shelf->source->kind == KUBE_NAMESPACE)
		namespace_changed(lookup, it->name, object);
	if (lookup->options.changed)
		lookup->options.changed(lookup->options.context, shelf->kind->kind, it->namespace,
					it->name);
}

static int add_shelf(struct lookup *lookup, size_t i, struct err *err)
{
	struct shelf *shelf = &lookup->shelves[i];

	*shelf = (struct shelf){ lookup, &sources[i], &kube_kinds[sources[i].kind], NULL };
	struct kube_cache_options options = {
		.kind = shelf->kind,
		.log = lookup->options.log,
		.changed = changed,
		.context = shelf,
	};
	return kube_caches_add(lookup->options.caches, &options, &shelf->cache, err);
}

static int add_storage(struct lookup *lookup, struct err *err)
{
	struct storage_options options = { .lookup = lookup,
					   .dialect = &lookup->dialect,
					   .caches = lookup->options.caches,
					   .cluster = lookup->options.cluster,
					   .log = lookup->options.log,
					   .seed = lookup->options.seed,
					   .changed = lookup->options.changed,
					   .context = lookup->options.context };

	return storage_new(&options, &lookup->storage, err);
}

int lookup_new(const struct lookup_options *options, struct lookup **ret, struct err *err)
{
	struct lookup *lookup = calloc(1, sizeof(*lookup));
	int rc = 0;

	if (!lookup)
		return err_set(err, ENOMEM, "out of memory");
	lookup->options = *options;
	lookup->dialect = (struct dialect_lookup){ .context = lookup,
						   .find = find,
						   .index_taken = index_taken,
						   .each = each,
						   .promised = promised,
						   .owners_come = true };
	indexes_init(&lookup->indexes, options->seed);
	lookup->indexes.freed = options->index_freed;
	lookup->indexes.context = options->context;
	for (size_t i = 0; i < ARRAY_SIZE(sources) && rc == 0; i++)
		rc = add_shelf(lookup, i, err);
	if (rc == 0)
		rc = add_storage(lookup, err);
	if (rc < 0) {
		lookup_free(lookup);
		return rc;
	}
	*ret = lookup;
	return 0;
}

void lookup_free(struct lookup *lookup)
{
	if (!lookup)
		return;
	lookup_reset(lookup);
	vec_done(&lookup->docs);
	indexes_done(&lookup->indexes);
	storage_free(lookup->storage);
	free(lookup);
}

const struct dialect_lookup *lookup_dialect(struct lookup *lookup)
{
	storage_settle(lookup->storage);
	lookup->met = 0;
	lookup->reader = NULL;
	return &lookup->dialect;
}

const struct dialect_lookup *lookup_dialect_of(struct lookup *lookup, const char *uid)
{
	const struct dialect_lookup *dialect = lookup_dialect(lookup);

	lookup->reader = uid;
	return dialect;
}

struct storage *lookup_storage(struct lookup *lookup)
{
	return lookup->storage;
}

void lookup_reset(struct lookup *lookup)
{
	for (size_t i = 0; i < lookup->docs.len; i++)
		json_doc_free(lookup->docs.items[i]);
	lookup->docs.len = 0;
	lookup->reader = NULL;
}

int lookup_take_index(struct lookup *lookup, const char *workload, uint32_t index, const char *uid)
{
	char map[LOOKUP_MAP_MAX];

	lookup_map_name(workload, map);
	return indexes_take(&lookup->indexes, map, index, uid);
}

int lookup_take_locked(struct lookup *lookup, const char *map, uint32_t index, const char *uid)
{
	const struct lookup_options *options = &lookup->options;
	int rc = indexes_take(&lookup->indexes, map, index, uid);

	if (options->index_lost && indexes_taken(&lookup->indexes, map, index, uid))
		options->index_lost(options->context, map, index);
	return rc;
}

void lookup_drop_index(struct lookup *lookup, const char *uid)
{
	indexes_drop(&lookup->indexes, uid);
}

uint32_t lookup_index_of(const struct lookup *lookup, const char *map, const char *uid)
{
	return indexes_of(&lookup->indexes, map, uid);
}

const struct kube_object *lookup_claim(const struct lookup *lookup, const char *namespace,
				       const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(lookup->shelves); i++)
		if (lookup->shelves[i].source->kind == KUBE_GPU_CLAIM)
			return kube_cache_get(lookup->shelves[i].cache, namespace, name);
	return NULL;
}
