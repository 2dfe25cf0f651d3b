/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/storage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "dialect/volumes.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "scheduler/lookup.h"
#include "wire/json.h"

#define ARENA_MAX ((size_t)1 << 20)

/* In kube_object.user of volumes and capacities: a hash of the class, and whether it may be
 * bound, so that those that are out of the question need not be read. */
#define MARK_FREE 1U

static const enum kube_kind_id kinds[] = {
	KUBE_PERSISTENT_VOLUME_CLAIM,
	KUBE_PERSISTENT_VOLUME,
	KUBE_STORAGE_CLASS,
	KUBE_CSI_NODE,
	KUBE_CSI_DRIVER,
	KUBE_CSI_STORAGE_CAPACITY,
	KUBE_VOLUME_ATTACHMENT,
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct shelf {
	struct storage *storage;
	enum kube_kind_id kind;
	struct kube_cache *cache;
};

struct promise {
	char *key, *to;
	uint32_t pods;
};

struct storage {
	struct storage_options options;
	struct shelf shelves[KINDS];
	struct arena arena;    /* of one change */
	VEC(char *) unsettled; /* attachments whose volumes were not there */
	bool volumes_came;     /* since these were looked at */
	struct map promises;   /* by kind, namespace and name */
};

static struct kube_cache *cache_of(const struct storage *s, const char *kind)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(kube_kinds[kinds[i]].kind, kind) == 0)
			return s->shelves[i].cache;
	return NULL;
}

bool storage_has(const char *kind)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(kube_kinds[kinds[i]].kind, kind) == 0)
			return true;
	return false;
}

const struct kube_object *storage_get(const struct storage *s, const char *kind,
				      const char *namespace, const char *name)
{
	const struct kube_cache *cache = cache_of(s, kind);

	return cache ? kube_cache_get(cache, namespace, name) : NULL;
}

static uintptr_t class_mark(const char *class)
{
	return (uintptr_t)(hash_bytes(class, strlen(class), 0) << 1);
}

static const char *class_of(const struct json *object)
{
	const char *class = json_str(object, "metadata", "annotations",
				     "volume.beta.kubernetes.io/storage-class");

	if (!class)
		class = json_str(object, "spec", "storageClassName");
	if (!class)
		class = json_str(object, "storageClassName");
	return class ? class : "";
}

static void mark(struct kube_object *now, const struct json *object)
{
	const char *phase = json_str(object, "status", "phase");
	bool bound = phase && strcmp(phase, "Bound") == 0;

	now->user = (void *)(class_mark(class_of(object)) | (bound ? 0 : MARK_FREE)); /* NOLINT */
}

void storage_each(struct storage *s, const char *kind, const char *class,
		  void (*visit)(void *visitor, const struct json *object), void *visitor)
{
	const struct kube_cache *cache = cache_of(s, kind);
	uintptr_t wanted = class_mark(class) | MARK_FREE;
	struct kube_object *object;

	for (uint32_t at = 0; cache && (object = kube_cache_next(cache, &at));) {
		struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

		if ((uintptr_t)object->user == wanted && kube_object_parse(object, &doc) == 0)
			visit(visitor, json_root(doc));
	}
}

static void complain(const struct storage *s, const char *what, const char *name)
{
	if (s->options.log)
		log_error(s->options.log, "storage is not known: out of memory",
			  LOG_STR("kind", what), LOG_STR("name", name));
}

static void tell_claim(struct storage *s, const char *namespace, const char *name)
{
	if (volumes_claim_changed(s->options.cluster, s->options.dialect, namespace, name,
				  &s->arena) < 0)
		complain(s, "PersistentVolumeClaim", name);
	/* Of a class there may be thousands. */
	lookup_reset(s->options.lookup);
	arena_reset(&s->arena);
}

/* Claims that are to be made by the class: they could not be counted before. */
static void tell_class(struct storage *s, const char *class)
{
	const struct kube_cache *cache = s->shelves[0].cache;
	struct kube_object *claim;

	for (uint32_t at = 0; (claim = kube_cache_next(cache, &at));) {
		struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

		if (kube_object_parse(claim, &doc) == 0 &&
		    strcmp(class_of(json_root(doc)), class) == 0)
			tell_claim(s, claim->namespace, claim->name);
	}
}

static bool has_volume(const struct storage *s, const struct json *attachment)
{
	const char *name = json_str(attachment, "spec", "source", "persistentVolumeName");

	return !name || storage_get(s, "PersistentVolume", "", name);
}

static void tell_attachment(struct storage *s, const char *name, const struct json *attachment)
{
	char *copy;

	if (volumes_attachment_changed(s->options.cluster, s->options.dialect, name, attachment) <
	    0)
		complain(s, "VolumeAttachment", name);
	if (!attachment || has_volume(s, attachment))
		return;
	copy = strdup(name);
	if (!copy || vec_push(&s->unsettled, copy) < 0) {
		free(copy);
		complain(s, "VolumeAttachment", name);
	}
}

/* Each is told once more; who still lacks its volume is there again afterwards. */
void storage_settle(struct storage *s)
{
	size_t count = s->unsettled.len;

	if (!s->volumes_came)
		return;
	s->volumes_came = false;
	for (size_t i = 0; i < count; i++) {
		const struct kube_object *object =
			storage_get(s, "VolumeAttachment", "", s->unsettled.items[i]);
		struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

		if (object && kube_object_parse(object, &doc) == 0)
			tell_attachment(s, object->name, json_root(doc));
		free(s->unsettled.items[i]);
	}
	memmove(s->unsettled.items, s->unsettled.items + count,
		(s->unsettled.len - count) * sizeof(char *));
	s->unsettled.len -= count;
}

static void tell_volume(struct storage *s, enum kube_change change, const struct json *object)
{
	const char *namespace = json_str(object, "spec", "claimRef", "namespace");
	const char *name = json_str(object, "spec", "claimRef", "name");

	if (change == KUBE_ADDED && s->unsettled.len)
		s->volumes_came = true;
	if (namespace && name)
		tell_claim(s, namespace, name);
}

static void tell(struct storage *s, enum kube_kind_id kind, enum kube_change change,
		 const struct kube_object *it, const struct json *object)
{
	switch (kind) {
	case KUBE_PERSISTENT_VOLUME_CLAIM:
		tell_claim(s, it->namespace, it->name);
		break;
	case KUBE_PERSISTENT_VOLUME:
		tell_volume(s, change, object);
		break;
	case KUBE_STORAGE_CLASS:
		if (change == KUBE_ADDED)
			tell_class(s, it->name);
		break;
	case KUBE_CSI_NODE:
		if (volumes_node_changed(s->options.cluster, it->name, object, &s->arena) < 0)
			complain(s, "CSINode", it->name);
		break;
	case KUBE_VOLUME_ATTACHMENT:
		tell_attachment(s, it->name, object);
		break;
	default:
		break;
	}
}

static bool is_no_news(const struct kube_object *before, const struct kube_object *now)
{
	return before->packed_len == now->packed_len &&
	       memcmp(before->packed, now->packed, now->packed_len) == 0;
}

static void changed(void *context, enum kube_change change, const struct kube_object *before,
		    struct kube_object *now, const struct json *object)
{
	struct shelf *shelf = context;
	struct storage *s = shelf->storage;
	struct json_doc *gone CLEANUP(json_doc_freep) = NULL;

	if (change == KUBE_MODIFIED && is_no_news(before, now))
		return;
	const struct kube_object *it = now ? now : before;
	if (now)
		mark(now, object);
	/* Of a volume that is gone its claim is told. */
	if (!now && shelf->kind == KUBE_PERSISTENT_VOLUME && kube_object_parse(before, &gone) == 0)
		object = json_root(gone);
	if (s->options.cluster) {
		tell(s, shelf->kind, change, it, object);
		lookup_reset(s->options.lookup);
		arena_reset(&s->arena);
	}
	if (s->options.changed)
		s->options.changed(s->options.context, kube_kinds[shelf->kind].kind, it->namespace,
				   it->name);
}

int storage_new(const struct storage_options *options, struct storage **ret, struct err *err)
{
	struct storage *s = calloc(1, sizeof(*s));
	int rc = 0;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->options = *options;
	arena_init(&s->arena, ARENA_MAX);
	map_init(&s->promises, options->seed);
	for (size_t i = 0; i < KINDS && rc == 0; i++) {
		struct kube_cache_options cache = { .kind = &kube_kinds[kinds[i]],
						    .log = options->log,
						    .changed = changed,
						    .context = &s->shelves[i] };

		s->shelves[i] = (struct shelf){ s, kinds[i], NULL };
		rc = kube_caches_add(options->caches, &cache, &s->shelves[i].cache, err);
	}
	if (rc < 0) {
		storage_free(s);
		return rc;
	}
	*ret = s;
	return 0;
}

static void promise_free(struct promise *p)
{
	free(p->key);
	free(p->to);
	free(p);
}

void storage_free(struct storage *s)
{
	struct map_entry entry;

	if (!s)
		return;
	for (uint32_t at = 0; map_next(&s->promises, &at, &entry);)
		promise_free(entry.value);
	map_done(&s->promises);
	for (size_t i = 0; i < s->unsettled.len; i++)
		free(s->unsettled.items[i]);
	vec_done(&s->unsettled);
	arena_done(&s->arena);
	free(s);
}

static void promise_key(struct strbuf *out, const char *kind, const char *namespace,
			const char *name)
{
	strbuf_addf(out, "%s %s/%s", kind, namespace, name);
}

const char *storage_promised(const struct storage *s, const char *kind, const char *namespace,
			     const char *name)
{
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	const struct promise *p;

	if (!s->promises.len)
		return NULL;
	promise_key(&key, kind, namespace, name);
	p = key.failed ? NULL : map_get(&s->promises, key.s, key.len);
	return p ? p->to : NULL;
}

int storage_promise(struct storage *s, const char *kind, const char *namespace, const char *name,
		    const char *to)
{
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	struct promise *p;

	promise_key(&key, kind, namespace, name);
	if (key.failed)
		return -ENOMEM;
	p = map_get(&s->promises, key.s, key.len);
	if (p && strcmp(kind, "PersistentVolume") == 0 && strcmp(p->to, to) != 0)
		return -EEXIST;
	if (p) {
		p->pods++;
		return 1;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pods = 1;
	p->key = strdup(key.s);
	p->to = strdup(to);
	if (p->key && p->to && map_put(&s->promises, p->key, key.len, p) == 0)
		return 0;
	promise_free(p);
	return -ENOMEM;
}

void storage_unpromise(struct storage *s, const char *kind, const char *namespace,
		       const char *name)
{
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	struct promise *p;

	promise_key(&key, kind, namespace, name);
	p = key.failed ? NULL : map_get(&s->promises, key.s, key.len);
	if (!p || --p->pods)
		return;
	map_del(&s->promises, p->key, strlen(p->key));
	promise_free(p);
}
