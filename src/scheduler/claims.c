/* SPDX-License-Identifier: Apache-2.0 */
/* claims.c - which pod names which claim, and where the pod stands. */
#include "scheduler/claims.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/log.h"
#include "base/utf8.h"
#include "dialect/keys.h"
#include "engine/gpuset.h"
#include "kube/client.h"
#include "kube/write.h"
#include "scheduler/claims_private.h"
#include "wire/json.h"

#define KEY_MAX (KUBE_NAMESPACE_MAX + KUBE_NAME_MAX + 2)

static const struct backoff write_backoff = { .first_ms = 1000,
					      .max_ms = 5 * 60 * 1000,
					      .calm_ms = 10 * 60 * 1000 };

int claims_new(const struct claims_options *options, struct claims **ret, struct err *err)
{
	struct claims *claims = calloc(1, sizeof(*claims));
	uv_timer_t *timer = malloc(sizeof(*timer));

	if (!claims || !timer) {
		free(claims);
		free(timer);
		return err_set(err, ENOMEM, "out of memory");
	}
	claims->options = *options;
	claims->timer = timer;
	map_init(&claims->by_key, options->seed);
	map_init(&claims->by_uid, options->seed + 1);
	heap_init(&claims->due, claim_due_before, claim_due_moved, NULL);
	rng_seed(&claims->rng, options->seed);
	uv_timer_init(kube_loop(options->client), timer); /* cannot fail */
	timer->data = claims;
	*ret = claims;
	return 0;
}

static void claimant_free(struct claimant *pod)
{
	if (!pod)
		return;
	free(pod->uid);
	free(pod->name);
	free(pod->node);
	free(pod->allocated);
	free(pod->message);
	free(pod);
}

static void claim_free(struct claim *claim)
{
	if (!claim)
		return;
	if (claim->writing)
		kube_write_cancel(claim->writing);
	for (size_t i = 0; i < claim->pods.len; i++)
		claimant_free(claim->pods.items[i]);
	vec_done(&claim->pods);
	free(claim->key);
	free(claim->namespace);
	free(claim->name);
	free(claim);
}

static void timer_closed(uv_handle_t *handle)
{
	free(handle);
}

void claims_free(struct claims *claims)
{
	struct map_entry entry;

	if (!claims)
		return;
	for (uint32_t at = 0; map_next(&claims->by_key, &at, &entry);)
		claim_free(entry.value);
	map_done(&claims->by_key);
	map_done(&claims->by_uid);
	heap_done(&claims->due);
	uv_close((uv_handle_t *)claims->timer, timer_closed);
	free(claims);
}

static size_t make_key(char key[KEY_MAX], const char *namespace, const char *name)
{
	int len = snprintf(key, KEY_MAX, "%s/%s", namespace, name);

	return len > 0 && len < KEY_MAX ? (size_t)len : 0;
}

static struct claim *claim_find(const struct claims *claims, const char *namespace,
				const char *name)
{
	char key[KEY_MAX];
	size_t len = make_key(key, namespace, name);

	return len ? map_get(&claims->by_key, key, len) : NULL;
}

static struct claim *claim_add(struct claims *claims, const char *namespace, const char *name)
{
	struct claim *claim = calloc(1, sizeof(*claim));
	char key[KEY_MAX];
	size_t len = make_key(key, namespace, name);

	if (!claim || !len) {
		free(claim);
		return NULL;
	}
	claim->claims = claims;
	claim->position = HEAP_NONE;
	claim->backoff = write_backoff;
	claim->key = strdup(key);
	claim->namespace = strdup(namespace);
	claim->name = strdup(name);
	if (claim->key && claim->namespace && claim->name &&
	    map_put(&claims->by_key, claim->key, len, claim) == 0)
		return claim;
	claim_free(claim);
	return NULL;
}

static struct claim *claim_get(struct claims *claims, const char *namespace, const char *name)
{
	struct claim *claim = claim_find(claims, namespace, name);

	return claim ? claim : claim_add(claims, namespace, name);
}

void claim_drop_if_unused(struct claim *claim)
{
	struct claims *claims = claim->claims;
	const struct claims_options *o = &claims->options;

	if (claim->pods.len || claim->writing ||
	    o->claim(o->context, claim->namespace, claim->name))
		return;
	claim_forget_due(claim);
	map_del(&claims->by_key, claim->key, strlen(claim->key));
	claim_free(claim);
}

static void replace(char **at, const char *text)
{
	free(*at);
	*at = text ? strdup(text) : NULL;
}

/* What we said of its pods is over. */
static void forget_words(struct claim *claim)
{
	for (size_t i = 0; i < claim->pods.len; i++) {
		struct claimant *pod = claim->pods.items[i];

		if (pod->state == CLAIMANT_BOUND)
			continue;
		claim->count[pod->state]--;
		claim->count[CLAIMANT_UNKNOWN]++;
		pod->state = CLAIMANT_UNKNOWN;
		replace(&pod->node, NULL);
		replace(&pod->message, NULL);
	}
}

void claims_activate(struct claims *claims, bool active)
{
	struct map_entry entry;

	if (claims->active == active)
		return;
	claims->active = active;
	for (uint32_t at = 0; map_next(&claims->by_key, &at, &entry);) {
		struct claim *claim = entry.value;

		claim->leaving_ms = 0;
		if (active) {
			claim_touch(claim);
		} else {
			claim_forget_due(claim);
			forget_words(claim);
		}
	}
}

uint32_t claims_in_flight(const struct claims *claims)
{
	return claims->writes;
}

void claims_changed(struct claims *claims, const char *namespace, const char *name)
{
	const struct claims_options *o = &claims->options;
	bool exists = o->claim(o->context, namespace, name) != NULL;
	struct claim *claim = claim_find(claims, namespace, name);

	if (!claim && exists)
		claim = claim_add(claims, namespace, name);
	if (claim && exists)
		claim_touch(claim);
	else if (claim)
		claim_drop_if_unused(claim);
	else if (exists)
		log_error(o->log, "out of memory", LOG_STR("claim", name));
}

/* Where the pod is among those of its claim, or would be. */
static size_t place_of(const struct claim *claim, const char *name, const char *uid)
{
	size_t low = 0, high = claim->pods.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct claimant *pod = claim->pods.items[middle];
		int order = strcmp(pod->name, name);

		if (order < 0 || (order == 0 && strcmp(pod->uid, uid) < 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int join(struct claim *claim, struct claimant *pod)
{
	size_t at = place_of(claim, pod->name, pod->uid);

	if (vec_reserve(&claim->pods, claim->pods.len + 1) < 0 ||
	    map_put(&claim->claims->by_uid, pod->uid, strlen(pod->uid), pod) < 0)
		return -ENOMEM;
	memmove(&claim->pods.items[at + 1], &claim->pods.items[at],
		(claim->pods.len - at) * sizeof(struct claimant *));
	claim->pods.items[at] = pod;
	claim->pods.len++;
	claim->count[pod->state]++;
	pod->claim = claim;
	return 0;
}

static void leave(struct claimant *pod)
{
	struct claim *claim = pod->claim;
	size_t at = place_of(claim, pod->name, pod->uid);

	assert(claim->pods.items[at] == pod);
	claim->pods.len--;
	memmove(&claim->pods.items[at], &claim->pods.items[at + 1],
		(claim->pods.len - at) * sizeof(struct claimant *));
	claim->count[pod->state]--;
	map_del(&claim->claims->by_uid, pod->uid, strlen(pod->uid));
	claimant_free(pod);
	claim_pods_changed(claim);
	claim_drop_if_unused(claim);
}

static struct claimant *claimant_new(const struct kube_object *object)
{
	struct claimant *pod = calloc(1, sizeof(*pod));

	if (!pod)
		return NULL;
	pod->uid = strdup(object->uid);
	pod->name = strdup(object->name);
	if (pod->uid && pod->name)
		return pod;
	claimant_free(pod);
	return NULL;
}

static struct claimant *claimant_find(const struct claims *claims, const char *uid)
{
	return claims->by_uid.len ? map_get(&claims->by_uid, uid, strlen(uid)) : NULL;
}

static struct claimant *claimant_add(struct claims *claims, const struct kube_object *object,
				     const char *name)
{
	struct claim *claim = claim_get(claims, object->namespace, name);
	struct claimant *pod = claim ? claimant_new(object) : NULL;

	if (pod && join(claim, pod) == 0) {
		claim_touch(claim);
		return pod;
	}
	claimant_free(pod);
	if (claim)
		claim_drop_if_unused(claim);
	log_error(claims->options.log, "out of memory", LOG_STR("pod", object->name));
	return NULL;
}

/* A step up, whatever was due before, is no step back. */
static void set_state(struct claimant *pod, enum claimant_state state)
{
	struct claim *claim = pod->claim;

	claim->count[pod->state]--;
	claim->count[state]++;
	pod->state = state;
	if (state >= CLAIMANT_RESERVED)
		claim->leaving_ms = 0;
	claim_pods_changed(claim);
}

/* "<node>:<ids>", as annotations.h writes it, of that node; false: it is something else. */
static bool read_allocated(const char *text, const char *node, uint32_t *ret)
{
	const char *at = text ? strrchr(text, ':') : NULL;
	uint32_t gpus = 0;

	if (!at || strlen(node) != (size_t)(at - text) || memcmp(text, node, strlen(node)) != 0)
		return false;
	do {
		char *end;
		unsigned long id = strtoul(at + 1, &end, 10);

		if (at[1] < '0' || at[1] > '9' || id >= GPU_MAX)
			return false;
		gpus |= gpuset_one((unsigned)id);
		at = end;
	} while (*at == ',');
	*ret = gpus;
	return *at == '\0';
}

/* Its annotations came with the Binding and never change. */
static void pod_bound(struct claimant *pod, const char *node, const struct json *document)
{
	const struct json *annotations = json_get(document, "metadata", "annotations");
	const char *allocated = json_str(annotations, KEY_ALLOCATED);
	uint32_t gpus;

	if (pod->state == CLAIMANT_BOUND || !json_str(annotations, KEY_DECISION) ||
	    !read_allocated(allocated, node, &gpus))
		return;
	replace(&pod->node, node);
	replace(&pod->allocated, allocated);
	replace(&pod->message, NULL);
	if (!pod->node || !pod->allocated) {
		log_error(pod->claim->claims->options.log, "out of memory",
			  LOG_STR("pod", pod->name));
		return;
	}
	pod->gpus = gpus;
	set_state(pod, CLAIMANT_BOUND);
}

static bool is_finished(const struct json *document)
{
	const char *phase = json_str(document, "status", "phase");

	return phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0);
}

void claims_pod(struct claims *claims, const struct kube_object *object,
		const struct json *document)
{
	const char *name = json_str(document, "metadata", "annotations", KEY_CLAIM);
	struct claimant *pod = claimant_find(claims, object->uid);

	if (!name && !pod)
		return;
	const char *node = json_str(document, "spec", "nodeName");
	bool names = name && *name && strlen(name) <= KUBE_NAME_MAX && !is_finished(document);

	if (pod && (!names || strcmp(pod->claim->name, name) != 0)) {
		leave(pod);
		pod = NULL;
	}
	if (names && !pod)
		pod = claimant_add(claims, object, name);
	if (pod && node && *node)
		pod_bound(pod, node, document);
}

void claims_pod_gone(struct claims *claims, const char *uid)
{
	struct claimant *pod = claimant_find(claims, uid);

	if (pod)
		leave(pod);
}

void claims_reserved(struct claims *claims, const char *uid, const char *node, uint32_t gpus)
{
	struct claimant *pod = claimant_find(claims, uid);

	if (!pod || pod->state == CLAIMANT_BOUND)
		return;
	replace(&pod->node, node);
	replace(&pod->message, NULL);
	pod->gpus = gpus;
	set_state(pod, CLAIMANT_RESERVED);
}

static char *cut_message(const char *message)
{
	size_t len = strlen(message);

	if (len > CLAIM_MESSAGE_MAX)
		len = utf8_valid(message, CLAIM_MESSAGE_MAX);
	return strndup(message, len);
}

void claims_waits(struct claims *claims, const char *uid, const char *message, bool failed)
{
	struct claimant *pod = claimant_find(claims, uid);
	enum claimant_state state = failed ? CLAIMANT_FAILED : CLAIMANT_WAITS;

	if (!pod || pod->state == CLAIMANT_BOUND)
		return;
	if (pod->state == state && pod->message && strcmp(pod->message, message) == 0)
		return;
	replace(&pod->node, NULL);
	free(pod->message);
	pod->message = *message ? cut_message(message) : NULL;
	pod->gpus = 0;
	set_state(pod, state);
}
