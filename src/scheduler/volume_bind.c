/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/volume_bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "dialect/dialect.h"
#include "dialect/volumes.h"
#include "engine/cluster.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/write.h"
#include "scheduler/lookup.h"
#include "scheduler/storage.h"
#include "wire/json.h"
#include "wire/json_write.h"

#define TIMEOUT_MS	   600000
#define LOOK_MS		   1000 /* also if nothing is heard of */
#define ARENA_MAX	   ((size_t)16 << 20)
#define KIND_VOLUME	   "PersistentVolume"
#define KIND_CLAIM	   "PersistentVolumeClaim"
#define KEY_BOUND_BY	   "pv.kubernetes.io/bound-by-controller"
#define KEY_BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define KEY_SELECTED_NODE  "volume.kubernetes.io/selected-node"

/* One claim. */
struct item {
	const char *claim;
	const char *volume;  /* NULL: one is to be made */
	const char *uid;     /* of the claim */
	const char *version; /* that what we write has got; NULL: not written yet */
	bool follows;	     /* another pod's binding writes it */
};

enum stage { RESERVED, WRITING, WAITING, OVER };

struct volume_binding {
	struct volume_binder *binder;
	struct volume_binding *next, *previous; /* of all of the binder */
	uint64_t look;				/* in which it was looked at last */
	enum stage stage;
	struct arena arena; /* of all that follows */
	const char *namespace, *node;
	struct item *items; /* those that exist first */
	uint32_t count, promised, written;
	struct kube_writing *writing; /* on its way, or NULL */
	uint64_t due_ms;
	void (*done)(void *context, bool ok, const char *why);
	void *context;
};

struct volume_binder {
	struct volume_binder_options options;
	struct storage *storage;
	struct volume_binding *all;
	uint64_t look;
	uv_timer_t *timer; /* frees itself */
};

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static void tick(uv_timer_t *timer);

static void look_in(struct volume_binder *binder, uint64_t ms)
{
	uv_timer_start(binder->timer, tick, ms, LOOK_MS);
}

int volume_binder_new(const struct volume_binder_options *options, struct volume_binder **ret,
		      struct err *err)
{
	struct volume_binder *binder = calloc(1, sizeof(*binder));
	uv_timer_t *timer = malloc(sizeof(*timer));

	if (!binder || !timer) {
		free(binder);
		free(timer);
		return err_set(err, ENOMEM, "out of memory");
	}
	binder->options = *options;
	if (!binder->options.timeout_ms)
		binder->options.timeout_ms = TIMEOUT_MS;
	binder->storage = lookup_storage(options->lookup);
	binder->timer = timer;
	uv_timer_init(kube_loop(options->client), timer); /* cannot fail */
	timer->data = binder;
	*ret = binder;
	return 0;
}

static void free_timer(uv_handle_t *handle)
{
	free(handle);
}

void volume_binder_free(struct volume_binder *binder)
{
	if (!binder)
		return;
	uv_close((uv_handle_t *)binder->timer, free_timer);
	free(binder);
}

void volume_binder_changed(struct volume_binder *binder)
{
	if (binder->all)
		look_in(binder, 0);
}

static void unlink_binding(struct volume_binding *b)
{
	if (b->next)
		b->next->previous = b->previous;
	if (b->previous)
		b->previous->next = b->next;
	else if (b->binder->all == b)
		b->binder->all = b->next;
	b->next = b->previous = NULL;
	if (!b->binder->all)
		uv_timer_stop(b->binder->timer);
}

static void link_binding(struct volume_binding *b)
{
	b->next = b->binder->all;
	if (b->next)
		b->next->previous = b;
	b->binder->all = b;
}

static void unpromise(struct volume_binding *b)
{
	for (uint32_t i = 0; i < b->promised; i++) {
		const struct item *item = &b->items[i];

		if (item->volume)
			storage_unpromise(b->binder->storage, KIND_VOLUME, "", item->volume);
		else
			storage_unpromise(b->binder->storage, KIND_CLAIM, b->namespace,
					  item->claim);
	}
	b->promised = 0;
}

void volume_binding_free(struct volume_binding *b)
{
	if (!b)
		return;
	if (b->writing)
		kube_write_cancel(b->writing);
	unpromise(b);
	unlink_binding(b);
	arena_done(&b->arena);
	free(b);
}

/* Reserving */

static char *keep(struct volume_binding *b, const char *text)
{
	return arena_strndup(&b->arena, text, strlen(text));
}

static const struct kube_object *find_claim(const struct volume_binding *b, const char *name)
{
	return storage_get(b->binder->storage, KIND_CLAIM, b->namespace, name);
}

/* Those that exist first: they are written first. */
static int take_plan(struct volume_binding *b, const struct volume_plan *plan, struct err *err)
{
	b->items = arena_array(&b->arena, plan->count, sizeof(*b->items));
	if (!b->items)
		return err_set(err, ENOMEM, "out of memory");
	for (unsigned made = 0; made < 2; made++) {
		for (uint32_t i = 0; i < plan->count; i++) {
			const struct volume_choice *choice = &plan->choices[i];
			const struct kube_object *claim = find_claim(b, choice->claim);
			struct item *item = &b->items[b->count];

			if ((choice->volume == NULL) != made)
				continue;
			if (!claim)
				return err_set(err, ENOENT,
					       "persistentvolumeclaim \"%s\" not found",
					       choice->claim);
			item->claim = choice->claim;
			item->volume = choice->volume;
			item->uid = keep(b, claim->uid);
			if (!item->uid)
				return err_set(err, ENOMEM, "out of memory");
			b->count++;
		}
	}
	return 0;
}

static int promise(struct volume_binding *b, struct err *err)
{
	struct storage *s = b->binder->storage;

	for (uint32_t i = 0; i < b->count; i++) {
		struct item *item = &b->items[i];
		struct strbuf whose CLEANUP(strbuf_done) = STRBUF_INIT;
		int rc;

		strbuf_addf(&whose, "%s/%s", b->namespace, item->claim);
		if (whose.failed)
			return err_set(err, ENOMEM, "out of memory");
		rc = item->volume
			     ? storage_promise(s, KIND_VOLUME, "", item->volume, whose.s)
			     : storage_promise(s, KIND_CLAIM, b->namespace, item->claim, b->node);
		if (rc == -EEXIST)
			return err_set(err, ENOENT, "persistentvolume \"%s\" is being bound",
				       item->volume);
		if (rc < 0)
			return err_set(err, ENOMEM, "out of memory");
		item->follows = rc == 1;
		b->promised++;
	}
	return 0;
}

static int plan_for(struct volume_binding *b, const struct kube_object *pod,
		    struct volume_plan *ret, struct err *err)
{
	const struct volume_binder_options *o = &b->binder->options;
	const struct dialect_lookup *lookup = lookup_dialect(o->lookup);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	uint32_t node = cluster_node_find(o->cluster, b->node);
	struct pod_source source;
	int rc;

	if (node == NODE_NONE)
		return err_set(err, ENOENT, "node %s is gone", b->node);
	if (kube_object_parse(pod, &doc) < 0)
		return err_set(err, ENOMEM, "out of memory");
	rc = pod_source_read(json_root(doc), lookup, &source, err);
	if (rc == 0)
		rc = volumes_plan(o->cluster, lookup, &source, node, &b->arena, ret, err);
	lookup_reset(o->lookup);
	return rc;
}

int volume_reserve(struct volume_binder *binder, const struct kube_object *pod, const char *node,
		   struct volume_binding **ret, struct err *err)
{
	struct volume_binding *b = calloc(1, sizeof(*b));
	struct volume_plan plan = { 0 };
	int rc;

	*ret = NULL;
	if (!b)
		return err_set(err, ENOMEM, "out of memory");
	b->binder = binder;
	link_binding(b);
	arena_init(&b->arena, ARENA_MAX);
	b->namespace = keep(b, pod->namespace);
	b->node = keep(b, node);
	rc = b->namespace && b->node ? plan_for(b, pod, &plan, err)
				     : err_set(err, ENOMEM, "out of memory");
	if (rc == 0 && plan.count)
		rc = take_plan(b, &plan, err);
	if (rc == 0)
		rc = promise(b, err);
	if (rc < 0 || !b->count) {
		volume_binding_free(b);
		return rc;
	}
	*ret = b;
	return 0;
}

/* Writing */

static void finish(struct volume_binding *b, bool ok, const char *why)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_puts(&text, why);
	unpromise(b);
	b->stage = OVER;
	volume_binder_changed(b->binder); /* others may follow it */
	b->done(b->context, ok, or_empty(text.s));
}

static void add_pair(struct json_writer *w, const char *key, const char *value)
{
	json_add_key(w, key);
	json_add_str(w, value);
}

/* {"metadata":{"uid","resourceVersion","annotations":{key:value}}, left open. */
static void begin_patch(struct json_writer *w, const struct kube_object *object, const char *key,
			const char *value)
{
	json_open_object(w);
	json_add_key(w, "metadata");
	json_open_object(w);
	add_pair(w, "uid", object->uid);
	add_pair(w, "resourceVersion", object->version);
	if (key) {
		json_add_key(w, "annotations");
		json_open_object(w);
		add_pair(w, key, value);
		json_close_object(w);
	}
	json_close_object(w);
}

static bool is_of(const struct json *volume, const struct volume_binding *b,
		  const struct item *item)
{
	const struct json *reference = json_get(volume, "spec", "claimRef");

	return strcmp(or_empty(json_str(reference, "uid")), item->uid) == 0 &&
	       strcmp(or_empty(json_str(reference, "name")), item->claim) == 0 &&
	       strcmp(or_empty(json_str(reference, "namespace")), b->namespace) == 0;
}

static bool is_selected(const struct json *claim, const struct volume_binding *b)
{
	const char *node = json_str(claim, "metadata", "annotations", KEY_SELECTED_NODE);

	return node && strcmp(node, b->node) == 0;
}

/* A volume that somebody kept for the claim is not marked as chosen by us. */
static void patch_volume(struct strbuf *out, const struct volume_binding *b,
			 const struct item *item, const struct kube_object *volume,
			 const struct json *object)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	bool kept = json_type(object, "spec", "claimRef") == JSON_OBJECT;

	begin_patch(&w, volume, kept ? NULL : KEY_BOUND_BY, "yes");
	json_add_key(&w, "spec");
	json_open_object(&w);
	json_add_key(&w, "claimRef");
	json_open_object(&w);
	add_pair(&w, "kind", KIND_CLAIM);
	add_pair(&w, "apiVersion", "v1");
	add_pair(&w, "namespace", b->namespace);
	add_pair(&w, "name", item->claim);
	add_pair(&w, "uid", item->uid);
	json_close_object(&w);
	json_close_object(&w);
	json_close_object(&w);
}

static void patch_claim(struct strbuf *out, const struct volume_binding *b,
			const struct kube_object *claim)
{
	struct json_writer w = JSON_WRITER_INIT(out);

	begin_patch(&w, claim, KEY_SELECTED_NODE, b->node);
	json_close_object(&w);
}

static void write_next(struct volume_binding *b);

/* The object as it is now: whether it says what we wanted to write. */
static bool has_taken(struct volume_binding *b, struct item *item, const struct json *object)
{
	const char *version = json_str(object, "metadata", "resourceVersion");

	if (!(item->volume ? is_of(object, b, item) : is_selected(object, b)) || !version)
		return false;
	item->version = keep(b, version);
	return item->version;
}

static void wrote(void *context, const struct kube_write_result *result)
{
	struct volume_binding *b = context;
	struct item *item = &b->items[b->written];
	const struct kube_reply *reply = result->reply;
	const struct json *now = reply->reason == KUBE_OK ? reply->body : NULL;

	b->writing = NULL;
	if (!now && result->current && result->current->reason == KUBE_OK)
		now = result->current->body;
	if (!has_taken(b, item, now)) {
		finish(b, false, or_empty(reply->message));
		return;
	}
	b->written++;
	write_next(b);
}

static int send_patch(struct volume_binding *b, const struct item *item, const struct strbuf *body,
		      struct err *err)
{
	struct kube_write write = {
		.verb = KUBE_MERGE_PATCH,
		.kind = &kube_kinds[item->volume ? KUBE_PERSISTENT_VOLUME
						 : KUBE_PERSISTENT_VOLUME_CLAIM],
		.namespace = item->volume ? NULL : b->namespace,
		.name = item->volume ? item->volume : item->claim,
		.body = body->s,
		.body_len = body->len,
		.done = wrote,
		.context = b,
	};

	if (body->failed)
		return err_set(err, ENOMEM, "out of memory");
	return kube_write(b->binder->options.client, &write, &b->writing, err);
}

/* 1 if there is nothing to write. */
static int write_item(struct volume_binding *b, struct item *item, struct err *err)
{
	const struct kube_object *claim = find_claim(b, item->claim);
	const struct kube_object *object =
		item->volume ? storage_get(b->binder->storage, KIND_VOLUME, "", item->volume)
			     : claim;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;

	if (!claim || strcmp(claim->uid, item->uid) != 0)
		return err_set(err, ENOENT, "persistentvolumeclaim \"%s\" not found", item->claim);
	if (!object)
		return err_set(err, ENOENT, "persistentvolume \"%s\" not found", item->volume);
	if (kube_object_parse(object, &doc) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (item->volume ? is_of(json_root(doc), b, item) : is_selected(json_root(doc), b)) {
		item->version = keep(b, object->version);
		return item->version ? 1 : err_set(err, ENOMEM, "out of memory");
	}
	if (item->volume)
		patch_volume(&body, b, item, object, json_root(doc));
	else
		patch_claim(&body, b, object);
	return send_patch(b, item, &body, err);
}

static void write_next(struct volume_binding *b)
{
	struct err err = ERR_INIT;
	int rc = 1;

	while (b->written < b->count) {
		struct item *item = &b->items[b->written];

		rc = item->follows ? 1 : write_item(b, item, &err);
		if (rc <= 0)
			break;
		b->written++;
	}
	if (rc < 0) {
		finish(b, false, err.text);
	} else if (b->written == b->count) {
		b->stage = WAITING;
		look_in(b->binder, 0);
	}
}

void volume_bind(struct volume_binding *b, void (*done)(void *context, bool ok, const char *why),
		 void *context)
{
	struct volume_binder *binder = b->binder;

	b->done = done;
	b->context = context;
	b->stage = WRITING;
	b->due_ms = clock_monotonic_ms(binder->options.clock) + binder->options.timeout_ms;
	look_in(binder, 0);
}

/* Waiting */

/* Versions of one kind are numbers that grow; any number of digits. */
static bool has_reached(const char *version, const char *wanted)
{
	size_t have = strlen(version), want = strlen(wanted);

	return have != want ? have > want : strcmp(version, wanted) >= 0;
}

static bool is_bound(const struct json *claim)
{
	return *or_empty(json_str(claim, "spec", "volumeName")) &&
	       json_get(claim, "metadata", "annotations", KEY_BIND_COMPLETED);
}

/* Whether another binding sees to the claim. */
static bool is_led(const struct volume_binding *b, const struct item *item)
{
	const struct volume_binding *other = b->binder->all;

	for (; other; other = other->next)
		for (uint32_t i = 0; other != b && i < other->promised; i++)
			if (!other->items[i].follows &&
			    strcmp(other->items[i].claim, item->claim) == 0 &&
			    strcmp(other->namespace, b->namespace) == 0)
				return true;
	return false;
}

/* 1: bound, 0: not yet, -errno: it will not be. */
static int check_volume(struct volume_binding *b, const struct json *claim, struct err *err)
{
	const struct volume_binder_options *o = &b->binder->options;
	const char *name = or_empty(json_str(claim, "spec", "volumeName"));
	const struct kube_object *volume = storage_get(b->binder->storage, KIND_VOLUME, "", name);
	uint32_t node = cluster_node_find(o->cluster, b->node);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct arena arena CLEANUP(arena_done);

	arena_init(&arena, ARENA_MAX);
	if (node == NODE_NONE)
		return err_set(err, ENOENT, "node %s is gone", b->node);
	if (!volume || kube_object_parse(volume, &doc) < 0)
		return 0;
	if (!volumes_match(o->cluster, json_root(doc), node, &arena))
		return err_set(err, EAGAIN, "pv \"%s\" node affinity doesn't match node \"%s\"",
			       name, b->node);
	return is_bound(claim);
}

static int check_followed(struct volume_binding *b, const struct item *item,
			  const struct json *claim, struct err *err)
{
	int rc = check_volume(b, claim, err);

	if (rc == 0 && !is_bound(claim) && !is_led(b, item))
		return err_set(err, EAGAIN,
			       "persistentvolumeclaim \"%s\" was not bound for the pod that it "
			       "was to be bound for",
			       item->claim);
	return rc;
}

static int check_existing(const struct volume_binding *b, const struct item *item,
			  const struct json *claim, struct err *err)
{
	const struct kube_object *volume =
		storage_get(b->binder->storage, KIND_VOLUME, "", item->volume);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

	if (!volume)
		return err_set(err, ENOENT, "persistentvolume \"%s\" not found", item->volume);
	if (!has_reached(volume->version, item->version) || kube_object_parse(volume, &doc) < 0)
		return 0;
	if (!*or_empty(json_str(json_root(doc), "spec", "claimRef", "uid")))
		return err_set(err, EAGAIN, "ClaimRef got reset for pv \"%s\"", item->volume);
	return is_bound(claim);
}

static int check_made(struct volume_binding *b, const struct item *item, const struct json *claim,
		      struct err *err)
{
	if (!is_selected(claim, b))
		return err_set(err, EAGAIN, "provisioning failed for PVC \"%s\"", item->claim);
	return check_volume(b, claim, err);
}

static int check_item(struct volume_binding *b, const struct item *item, struct err *err)
{
	const struct kube_object *claim = find_claim(b, item->claim);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

	if (!claim || strcmp(claim->uid, item->uid) != 0)
		return err_set(err, ENOENT, "persistentvolumeclaim \"%s\" not found", item->claim);
	if (kube_object_parse(claim, &doc) < 0)
		return 0;
	if (item->follows)
		return check_followed(b, item, json_root(doc), err);
	if (item->volume)
		return check_existing(b, item, json_root(doc), err);
	return has_reached(claim->version, item->version)
		       ? check_made(b, item, json_root(doc), err)
		       : 0;
}

static void check(struct volume_binding *b)
{
	struct err err = ERR_INIT;
	bool all = true;

	for (uint32_t i = 0; i < b->count; i++) {
		int rc = check_item(b, &b->items[i], &err);

		if (rc < 0) {
			finish(b, false, err.text);
			return;
		}
		all &= rc > 0;
	}
	if (all)
		finish(b, true, "");
	else if (clock_monotonic_ms(b->binder->options.clock) >= b->due_ms)
		finish(b, false, "binding volumes: timed out waiting for the claims to be bound");
}

static struct volume_binding *next_to_look_at(const struct volume_binder *binder)
{
	struct volume_binding *b = binder->all;

	while (b &&
	       (b->look == binder->look || b->stage == RESERVED || b->stage == OVER || b->writing))
		b = b->next;
	return b;
}

/* Whoever hears that it is done may free others: each is looked for anew. */
static void tick(uv_timer_t *timer)
{
	struct volume_binder *binder = timer->data;
	struct volume_binding *b;

	binder->look++;
	while ((b = next_to_look_at(binder))) {
		b->look = binder->look;
		if (b->stage == WRITING)
			write_next(b);
		else
			check(b);
	}
}
