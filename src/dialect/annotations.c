/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/annotations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "dialect/keys.h"
#include "dialect/wish.h"
#include "engine/engine.h"

/* The part of a key after the slash has at most 63 characters, KEY_CONTAINER_STEM included. */
#define KEY_NAME_MAX	   63
#define CONTAINER_NAME_MAX (KEY_NAME_MAX - (sizeof(KEY_CONTAINER_STEM) - 1))
#define HASH_DIGITS	   16

char *annotation_container_key(const char *container, char key[ANNOTATION_KEY_MAX])
{
	size_t len = strlen(container);

	if (len <= CONTAINER_NAME_MAX) {
		snprintf(key, ANNOTATION_KEY_MAX, KEY_CONTAINER_PREFIX "%s", container);
		return key;
	}
	/* Seed 0: the webhook of another process must come to the same key. */
	snprintf(key, ANNOTATION_KEY_MAX, KEY_CONTAINER_PREFIX "%.*s-%016" PRIx64,
		 (int)(CONTAINER_NAME_MAX - HASH_DIGITS - 1), container,
		 hash_bytes(container, len, 0));
	return key;
}

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters and digits at both ends, between them also the characters of `inner`. */
static bool is_word(const char *s, size_t len, size_t max, const char *inner)
{
	if (len == 0 || len > max || !is_alphanumeric(s[0]) || !is_alphanumeric(s[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_alphanumeric(s[i]) && !strchr(inner, s[i]))
			return false;
	return true;
}

int annotation_key_check(const char *key, struct err *err)
{
	const char *slash = strchr(key, '/');
	const char *name = slash ? slash + 1 : key;

	if ((slash && !is_word(key, (size_t)(slash - key), 253, ".-")) ||
	    !is_word(name, strlen(name), KEY_NAME_MAX, "-_."))
		return err_set(err, EINVAL, "\"%s\" is no legal key for an annotation", key);
	return 0;
}

const char *annotations_find(const struct annotations *list, const char *key)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].key, key) == 0)
			return list->items[i].value;
	return NULL;
}

static int add(struct annotations *list, struct arena *arena, const char *key,
	       const struct strbuf *value, struct err *err)
{
	struct annotation *item = &list->items[list->count];

	if (list->count == ANNOTATIONS_MAX)
		return err_set(err, E2BIG, "the pod has too many containers for its annotations");
	int rc = annotation_key_check(key, err);
	if (rc < 0)
		return rc;
	if (annotations_find(list, key))
		return err_set(err, EINVAL, "two containers have the annotation key \"%s\"", key);
	item->key = arena_strndup(arena, key, strlen(key));
	item->value = value->failed ? NULL : arena_strndup(arena, value->s, value->len);
	if (!item->key || !item->value)
		return err_set(err, ENOMEM, "out of memory");
	list->count++;
	return 0;
}

/* Which hold of its ask it is, in the order of ids. */
static unsigned rank_of(const struct assignment *a, unsigned number)
{
	const struct hold *own = &a->holds[number];
	unsigned rank = 0;

	for (unsigned i = 0; i < a->count; i++) {
		const struct hold *other = &a->holds[i];
		unsigned theirs = other->gpu << 16 | other->mig_start;
		unsigned ours = own->gpu << 16 | own->mig_start;

		rank += other->ask == own->ask &&
			(theirs < ours || (theirs == ours && i < number));
	}
	return rank;
}

/* Whether the container gets that hold; NULL stands for the whole pod. */
static bool is_given(const struct assignment *a, const struct wish_container *box, unsigned number)
{
	uint8_t ask = a->holds[number].ask;

	if (!box)
		return true;
	return (box->asks >> ask & 1) && (!box->take[ask] || rank_of(a, number) < box->take[ask]);
}

static void put_ids(struct strbuf *out, uint32_t ids)
{
	const char *comma = "";

	for (; ids; ids &= ids - 1) {
		strbuf_addf(out, "%s%u", comma, gpuset_first(ids));
		comma = ",";
	}
}

/* Slices, and shares of cards under MPS, have no number that CUDA would take; and no number
 * is the same to CUDA and to a runtime that makes visible what it names. */
static bool needs_uuid(const struct annotations_input *in, const struct hold *hold)
{
	return in->visibility == VISIBLE_NAMED || hold->kind == ASK_MIG ||
	       (in->mps && hold->kind == ASK_SHARE);
}

/* Numbers and UUIDs do not go together in one value: one that needs its UUID is enough. */
static bool needs_uuids(const struct annotations_input *in, const struct wish_container *box)
{
	const struct assignment *a = &in->decision->assignment;

	for (unsigned i = 0; i < a->count; i++)
		if (is_given(a, box, i) && needs_uuid(in, &a->holds[i]))
			return true;
	return false;
}

static int put_uuid(struct strbuf *out, const struct annotations_input *in,
		    const struct hold *hold, struct err *err)
{
	const struct node *node = cluster_node(in->cluster, in->decision->node);
	bool slice = hold->kind == ASK_MIG;
	const char *uuid = NULL;

	if (!slice)
		uuid = cluster_string(in->cluster, node->gpus[hold->gpu].uuid);
	else if (in->slice_uuid)
		uuid = in->slice_uuid(in->context, in->decision->node, hold);
	if (!uuid || !*uuid)
		return err_set(err, ENOENT, "%s %u of %s has no UUID yet",
			       slice ? "the MIG slice on GPU" : "GPU", hold->gpu, node->name);
	strbuf_puts(out, uuid);
	return 0;
}

/* The value of the variable for the container.  A card that two of its asks share is one
 * device. */
static int put_visible(struct strbuf *out, const struct annotations_input *in,
		       const struct wish_container *box, struct err *err)
{
	const struct assignment *a = &in->decision->assignment;
	bool uuids = needs_uuids(in, box);
	unsigned position = 0;
	uint32_t seen = 0;
	int rc = 0;

	for (unsigned id = 0; id < GPU_MAX; id++) {
		for (unsigned i = 0; i < a->count && rc == 0; i++) {
			const struct hold *hold = &a->holds[i];

			if (hold->gpu != id || !is_given(a, box, i) || gpuset_has(seen, id))
				continue;
			strbuf_puts(out, position ? "," : "");
			if (uuids)
				rc = put_uuid(out, in, hold, err);
			else
				strbuf_addf(out, "%u",
					    in->visibility == VISIBLE_ALL ? id : position);
			seen |= hold->kind == ASK_MIG ? 0 : gpuset_one(id);
			position++;
		}
	}
	return rc;
}

static int add_allocated(const struct annotations_input *in, struct arena *arena,
			 struct annotations *list, struct err *err)
{
	struct strbuf value CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&value, "%s:", cluster_node(in->cluster, in->decision->node)->name);
	put_ids(&value, in->decision->assignment.gpus);
	return add(list, arena, KEY_ALLOCATED, &value, err);
}

static int add_visible(const struct annotations_input *in, struct arena *arena,
		       struct annotations *list, struct err *err)
{
	struct strbuf value CLEANUP(strbuf_done) = STRBUF_INIT;
	int rc = put_visible(&value, in, NULL, err);

	return rc < 0 ? rc : add(list, arena, KEY_VISIBLE_DEVICES, &value, err);
}

static int add_container(const struct annotations_input *in, const struct wish_container *box,
			 struct arena *arena, struct annotations *list, struct err *err)
{
	char key[ANNOTATION_KEY_MAX];
	struct strbuf value CLEANUP(strbuf_done) = STRBUF_INIT;
	int rc = put_visible(&value, in, box, err);

	if (rc < 0)
		return rc;
	return add(list, arena, annotation_container_key(box->name, key), &value, err);
}

static void put_gpu(struct strbuf *out, const struct annotations_input *in,
		    const struct hold *hold)
{
	const struct node *node = cluster_node(in->cluster, in->decision->node);
	const struct gpu *gpu = &node->gpus[hold->gpu];
	const char *uuid = cluster_string(in->cluster, gpu->uuid);

	strbuf_addf(out, "{\"id\":%u,\"uuid\":", hold->gpu);
	strbuf_add_json(out, uuid, strlen(uuid));
	if (hold->kind == ASK_MIG) {
		const char *profile = node->mig->profiles[hold->mig_profile].name;

		strbuf_puts(out, ",\"mig\":{\"profile\":");
		strbuf_add_json(out, profile, strlen(profile));
		strbuf_addf(out, ",\"start\":%u}", hold->mig_start);
	} else {
		strbuf_addf(out, ",\"coreMilli\":%u,\"memoryMiB\":%" PRIu32,
			    hold->kind == ASK_WHOLE ? CORE_WHOLE : hold->core_milli,
			    hold->kind == ASK_WHOLE ? gpu->mem_mib : hold->mem_mib);
	}
	strbuf_addf(out, ",\"ask\":%u}", hold->ask);
}

/* The places in "gpus" of what the container gets, and how much of each. */
static void put_container(struct strbuf *out, const struct annotations_input *in,
			  const struct wish_container *box)
{
	const struct assignment *a = &in->decision->assignment;
	const char *comma = "";

	strbuf_add_json(out, box->name, strlen(box->name));
	strbuf_puts(out, ":{\"gpus\":[");
	for (unsigned i = 0; i < a->count; i++) {
		if (!is_given(a, box, i))
			continue;
		strbuf_addf(out, "%s%u", comma, i);
		comma = ",";
	}
	strbuf_puts(out, "]");
	if (box->core_milli || box->mem_mib)
		strbuf_addf(out, ",\"coreMilli\":%u,\"memoryMiB\":%" PRIu32, box->core_milli,
			    box->mem_mib);
	strbuf_puts(out, "}");
}

static void put_containers(struct strbuf *out, const struct annotations_input *in)
{
	const char *comma = "";

	strbuf_puts(out, "],\"containers\":{");
	for (unsigned i = 0; i < in->wish->containers_count; i++) {
		if (!in->wish->containers[i].asks)
			continue;
		strbuf_puts(out, comma);
		put_container(out, in, &in->wish->containers[i]);
		comma = ",";
	}
}

static int add_decision(const struct annotations_input *in, struct arena *arena,
			struct annotations *list, struct err *err)
{
	const struct decision *d = in->decision;
	const struct node *node = cluster_node(in->cluster, d->node);
	struct strbuf value CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_puts(&value, "{\"node\":");
	strbuf_add_json(&value, node->name, strlen(node->name));
	strbuf_puts(&value, ",\"gpus\":[");
	for (unsigned i = 0; i < d->assignment.count; i++) {
		strbuf_puts(&value, i ? "," : "");
		put_gpu(&value, in, &d->assignment.holds[i]);
	}
	put_containers(&value, in);
	strbuf_addf(&value, "},\"attempt\":%" PRIu32 ",\"scheduler\":", in->attempt);
	strbuf_add_json(&value, in->scheduler, strlen(in->scheduler));
	if (in->pod_uid) {
		strbuf_puts(&value, ",\"pod\":");
		strbuf_add_json(&value, in->pod_uid, strlen(in->pod_uid));
	}
	if (in->wish->index != WISH_INDEX_NONE)
		strbuf_addf(&value, ",\"index\":%" PRIu32, in->wish->index);
	strbuf_addf(&value, ",\"score\":%" PRId32 "}", d->score);
	return add(list, arena, KEY_DECISION, &value, err);
}

static int add_assumed(struct arena *arena, struct annotations *list, struct err *err)
{
	struct strbuf value CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_puts(&value, "true");
	return add(list, arena, KEY_ASSUMED, &value, err);
}

bool annotation_is_decision(const char *key)
{
	static const char *const keys[] = { KEY_ALLOCATED, KEY_VISIBLE_DEVICES, KEY_DECISION,
					    KEY_ASSUMED };

	if (strncmp(key, KEY_CONTAINER_PREFIX, sizeof(KEY_CONTAINER_PREFIX) - 1) == 0)
		return true;
	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static int check_size(const struct annotations *list, size_t existing_bytes, struct err *err)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < list->count; i++)
		bytes += strlen(list->items[i].key) + strlen(list->items[i].value);
	if (bytes > ANNOTATIONS_BYTES_MAX)
		return err_set(err, E2BIG,
			       "the decision takes %zu bytes of annotations, at most "
			       "%d are allowed",
			       bytes, ANNOTATIONS_BYTES_MAX);
	if (existing_bytes > ANNOTATIONS_BYTES_ALL ||
	    bytes > ANNOTATIONS_BYTES_ALL - existing_bytes)
		return err_set(err, E2BIG,
			       "the pod has %zu bytes of annotations and the decision takes "
			       "%zu more, at most %d are allowed",
			       existing_bytes, bytes, ANNOTATIONS_BYTES_ALL);
	return 0;
}

int annotations_make(const struct annotations_input *input, struct arena *arena,
		     struct annotations *ret, struct err *err)
{
	const struct wish *wish = input->wish;
	int rc;

	ret->count = 0;
	if ((rc = add_allocated(input, arena, ret, err)) < 0 ||
	    (rc = add_visible(input, arena, ret, err)) < 0)
		return rc;
	for (unsigned i = 0; i < wish->containers_count; i++) {
		const struct wish_container *box = &wish->containers[i];

		if (box->asks && (rc = add_container(input, box, arena, ret, err)) < 0)
			return rc;
	}
	if ((rc = add_assumed(arena, ret, err)) < 0 ||
	    (rc = add_decision(input, arena, ret, err)) < 0)
		return rc;
	return check_size(ret, input->existing_bytes, err);
}
