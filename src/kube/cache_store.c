/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cache_store.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "kube/object.h"
#include "wire/json.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Namespaces have at most 63 characters, names 253; some room for those of tomorrow. */
#define KEY_MAX 1024

struct store_key {
	char text[KEY_MAX];
	size_t len; /* 0: too long to be anything */
};

void cache_store_init(struct cache_store *store, uint64_t seed)
{
	*store = (struct cache_store){ 0 };
	map_init(&store->live, seed);
	map_init(&store->staged, seed);
}

void cache_store_done(struct cache_store *store)
{
	if (!store)
		return;
	cache_store_abort(store);
	struct map_entry entry;
	for (uint32_t at = 0; map_next(&store->live, &at, &entry);)
		kube_object_free(entry.value);
	map_done(&store->live);
	map_done(&store->staged);
	store->bytes = 0;
}

static void key_set(struct store_key *key, const char *namespace, const char *name)
{
	size_t namespace_len = strlen(namespace), name_len = strlen(name);
	key->len = 0;
	if (namespace_len >= KEY_MAX || name_len >= KEY_MAX - namespace_len - 1)
		return;
	memcpy(key->text, namespace, namespace_len + 1);
	memcpy(key->text + namespace_len + 1, name, name_len);
	key->len = namespace_len + 1 + name_len;
}

static struct kube_object *key_get(const struct map *map, const struct store_key *key)
{
	return key->len ? map_get(map, key->text, key->len) : NULL;
}

/* The key of an object lies in it: object.h promises name behind namespace. */
static size_t object_key_len(const struct kube_object *object)
{
	size_t namespace_len = strlen(object->namespace);
	assert(object->name == object->namespace + namespace_len + 1);
	return namespace_len + 1 + strlen(object->name);
}

static int object_put(struct map *map, struct kube_object *object)
{
	return map_put(map, object->namespace, object_key_len(object), object);
}

static void object_del(struct map *map, const struct kube_object *object)
{
	map_del(map, object->namespace, object_key_len(object));
}

static bool same_uid(const struct kube_object *object, const char *uid)
{
	return strcmp(object->uid, uid) == 0;
}

struct kube_object *cache_store_get(const struct cache_store *store, const char *namespace,
				    const char *name)
{
	struct store_key key;
	key_set(&key, namespace ? namespace : "", name);
	return key_get(&store->live, &key);
}

uint64_t cache_store_bytes(const struct cache_store *store)
{
	const uint64_t slot_bytes = 24; /* as map.h says */
	return store->bytes + ((uint64_t)store->live.cap + store->staged.cap) * slot_bytes;
}

void cache_store_malformed(struct cache_store *store, const char *name, const char *why)
{
	store->malformed++;
	if (store->log)
		log_warn(store->log, "skipped an object that cannot be read",
			 LOG_STR("resource", store->resource), LOG_STR("name", name),
			 LOG_STR("reason", why));
}

static void report(const struct cache_store *store, enum kube_change change,
		   const struct kube_object *before, struct kube_object *now,
		   const struct json *object)
{
	if (store->changed)
		store->changed(store->context, change, before, now, object);
}

/* Takes an object out of `live`, says so and frees it. */
static void live_drop(struct cache_store *store, struct kube_object *object,
		      enum kube_change change)
{
	object_del(&store->live, object);
	store->bytes -= object->bytes;
	report(store, change, object, NULL, NULL);
	kube_object_free(object);
}

/* Puts a new object into `live`, in the place of `before` if that is not NULL, and says
 * so.  -ENOMEM: it has been freed. */
static int live_put(struct cache_store *store, struct kube_object *before, struct kube_object *now,
		    const struct json *object)
{
	if (before && !same_uid(before, now->uid)) {
		live_drop(store, before, KUBE_GONE);
		before = NULL;
	}
	if (before) {
		object_del(&store->live, before); /* its memory holds the key */
		store->bytes -= before->bytes;
		now->user = before->user;
	}
	if (object_put(&store->live, now) < 0) {
		assert(!before); /* there is room: one has just left */
		kube_object_free(now);
		return -ENOMEM;
	}
	store->bytes += now->bytes;
	report(store, before ? KUBE_MODIFIED : KUBE_ADDED, before, now, object);
	kube_object_free(before);
	return 0;
}

/* What an object of the server is called.  False: nothing that could be kept, which has
 * been said. */
static bool meta_read(struct cache_store *store, const struct json *object, struct kube_meta *meta,
		      struct store_key *key)
{
	struct err err = ERR_INIT;
	const char *name = json_str(object, "metadata", "name");
	if (kube_meta_read(object, meta, &err) < 0) {
		cache_store_malformed(store, name ? name : "", err.text);
		return false;
	}
	key_set(key, meta->namespace, meta->name);
	if (key->len == 0)
		cache_store_malformed(store, name ? name : "", "the name is too long");
	return key->len > 0;
}

/* 0 and the record, NULL if it cannot be read, which has been said; -ENOMEM. */
static int make(struct cache_store *store, const struct json *object, const struct kube_meta *meta,
		struct kube_object **ret)
{
	struct err err = ERR_INIT;
	*ret = NULL;
	int result = kube_object_new(object, store->keep, ret, &err);
	if (result == -ENOMEM)
		return result;
	if (result < 0)
		cache_store_malformed(store, meta->name, err.text);
	return 0;
}

int cache_store_put(struct cache_store *store, const struct json *object)
{
	struct kube_meta meta;
	struct store_key key;
	if (!meta_read(store, object, &meta, &key))
		return 0;
	struct kube_object *before = key_get(&store->live, &key), *now;
	if (before && same_uid(before, meta.uid) && strcmp(before->version, meta.version) == 0)
		return 0;
	int result = make(store, object, &meta, &now);
	if (result < 0 || !now)
		return result;
	return live_put(store, before, now, object);
}

int cache_store_delete(struct cache_store *store, const struct json *object)
{
	struct kube_meta meta;
	struct store_key key;
	if (!meta_read(store, object, &meta, &key))
		return 0;
	struct kube_object *before = key_get(&store->live, &key);
	/* If it is another's end, that one came after ours, which is gone all the more. */
	if (before)
		live_drop(store, before, same_uid(before, meta.uid) ? KUBE_DELETED : KUBE_GONE);
	return 0;
}

/* An object in `staged` is the list's own, or that of `live`, which is to stay. */
static void staged_drop(struct cache_store *store, const struct store_key *key)
{
	struct kube_object *staged = key_get(&store->staged, key);
	if (!staged)
		return;
	object_del(&store->staged, staged);
	if (staged != key_get(&store->live, key))
		kube_object_free(staged);
}

static int staged_put(struct cache_store *store, const struct store_key *key,
		      struct kube_object *now)
{
	struct kube_object *live = key_get(&store->live, key);
	staged_drop(store, key);
	if (object_put(&store->staged, now) == 0)
		return 0;
	if (now != live)
		kube_object_free(now);
	return -ENOMEM;
}

int cache_store_stage(struct cache_store *store, const struct json *object)
{
	struct kube_meta meta;
	struct store_key key;
	if (!meta_read(store, object, &meta, &key))
		return 0;
	struct kube_object *live = key_get(&store->live, &key), *now;
	if (live && !same_uid(live, meta.uid))
		live = NULL;
	if (live && strcmp(live->version, meta.version) == 0)
		return staged_put(store, &key, live);
	int result = make(store, object, &meta, &now);
	if (result < 0)
		return result;
	if (!now) /* the server has it: what we knew of it is better than that it is gone */
		now = live;
	return now ? staged_put(store, &key, now) : 0;
}

int cache_store_unstage(struct cache_store *store, const struct json *object)
{
	struct kube_meta meta;
	struct store_key key;
	if (meta_read(store, object, &meta, &key))
		staged_drop(store, &key);
	return 0;
}

/* Whether the object is in the list, in whatever version. */
static bool is_staged(const struct cache_store *store, const struct kube_object *object)
{
	const struct kube_object *staged =
		map_get(&store->staged, object->namespace, object_key_len(object));
	return staged && same_uid(staged, object->uid);
}

/* A map must not change while one goes over it: first see what is gone, then drop it. */
static int commit_gone(struct cache_store *store)
{
	VEC(struct kube_object *) gone CLEANUP(vec_cleanup) = { 0 };
	struct map_entry entry;
	for (uint32_t at = 0; map_next(&store->live, &at, &entry);) {
		if (!is_staged(store, entry.value) && vec_push(&gone, entry.value) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < gone.len; i++)
		live_drop(store, gone.items[i], KUBE_GONE);
	return 0;
}

/* The document of a list's object is gone by now: the kept fields stand for it. */
static int commit_one(struct cache_store *store, struct kube_object *now,
		      struct kube_object *before)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	if (kube_object_parse(now, &doc) < 0) {
		kube_object_free(now);
		return -ENOMEM;
	}
	return live_put(store, before, now, json_root(doc));
}

static int commit_new(struct cache_store *store)
{
	struct map_entry entry;
	int result = 0;
	for (uint32_t at = 0; map_next(&store->staged, &at, &entry);) {
		struct kube_object *now = entry.value;
		struct kube_object *before = map_get(&store->live, entry.key, entry.len);
		if (before == now)
			continue;
		if (result == 0)
			result = commit_one(store, now, before);
		else
			kube_object_free(now);
	}
	map_done(&store->staged); /* all are in `live`, or freed */
	return result;
}

int cache_store_commit(struct cache_store *store)
{
	int result = commit_gone(store);
	if (result < 0) {
		cache_store_abort(store);
		return result;
	}
	return commit_new(store);
}

void cache_store_abort(struct cache_store *store)
{
	struct map_entry entry;
	for (uint32_t at = 0; map_next(&store->staged, &at, &entry);) {
		if (entry.value != map_get(&store->live, entry.key, entry.len))
			kube_object_free(entry.value);
	}
	map_done(&store->staged);
}
