/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c - what is refused, in the order in which it is looked for.
 *
 * The rules about pods are also those of deploy/webhook/policy.yaml.
 */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "dialect/claim.h"
#include "dialect/keys.h"
#include "dialect/map.h"
#include "webhook/admission.h"
#include "webhook/asks.h"
#include "webhook/guard.h"
#include "webhook/literal.h"
#include "webhook/review.h"
#include "wire/json.h"

#define GROUP_CLAIMS  "gpu.scheduling"
#define MAP_BYTES_MAX ((size_t)2 << 20)

static bool is_one_of(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}

/* Decisions are written by those who decide. */
static int check_decisions(const struct admission *a, struct err *err)
{
	const char *key = guard_decision_changed(a->old, a->object);

	if (!key)
		return 0;
	return err_set(err, EINVAL,
		       "annotation %s says what was decided: only the scheduler "
		       "writes it, leave it %s; %s is no account that it may run as",
		       key, json_get(a->old, "metadata", "annotations", key) ? "as it is" : "out",
		       a->username);
}

/* Past the scheduler, nobody would have locked the GPUs. */
static int check_node(const struct admission *a, const struct pod_asks *asks, struct err *err)
{
	const char *node = json_str(a->object, "spec", "nodeName");

	if (!node || !*node || !pod_asks_any(asks))
		return 0;
	return err_set(err, EINVAL,
		       "spec.nodeName may not be set in a pod that asks for GPUs: the scheduler "
		       "chooses the node, by nodeSelector and affinity if you like");
}

/* The map, unless it is the one that the pod had. */
static int check_map(const struct admission *a, struct err *err)
{
	struct arena arena CLEANUP(arena_done) = { .max_bytes = MAP_BYTES_MAX };
	const struct json *value = json_get(a->object, "metadata", "annotations", KEY_MAP);
	const struct json *before = json_get(a->old, "metadata", "annotations", KEY_MAP);
	const char *text = json_str(value);
	struct placement_map map;

	if (!value || json_equal(value, before))
		return 0;
	if (!text)
		return err_set(err, EINVAL, KEY_MAP " has a NUL, or is no text");
	return placement_map_parse(text, &arena, &map, err);
}

/* Whether the ids of the pod's map are what its containers may have, and which these are. */
static bool has_given(const struct webhook_options *options, const struct json *pod,
		      const struct pod_asks *asks, uint32_t *gpus)
{
	return asks->map && !asks->limits && !asks->claim &&
	       webhook_is_ours(options, asks->scheduler) &&
	       literal_gpus(pod, asks->map, gpus) == 0;
}

static int check_containers(const struct webhook_options *options, const struct admission *a,
			    const struct pod_asks *asks, struct err *err)
{
	uint32_t gpus = 0;
	const struct guard_allows allows = {
		.given = has_given(options, a->object, asks, &gpus) ? &gpus : NULL,
		.nvidia = options->injection == INJECTION_ENV,
	};
	int rc = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(container_lists); i++) {
		struct json_iter iter = json_items(a->object, "spec", container_lists[i]);

		for (const struct json *c; rc == 0 && (c = json_next(&iter));)
			rc = guard_variables(c, &allows, err);
	}
	return rc;
}

static bool had_ephemeral(const struct json *old, const char *name)
{
	struct json_iter iter = json_items(old, "spec", "ephemeralContainers");

	for (const struct json *c; name && (c = json_next(&iter));) {
		const char *own = json_str(c, "name");

		if (own && strcmp(own, name) == 0)
			return true;
	}
	return false;
}

/* Those that come; what is there cannot be changed any more.  Only of what would be refused
 * is it asked whether it was there: a pod may have thousands of both. */
static int check_ephemeral(const struct webhook_options *options, const struct admission *a,
			   struct err *err)
{
	const struct guard_allows allows = { .nvidia = options->injection == INJECTION_ENV };
	struct json_iter iter = json_items(a->object, "spec", "ephemeralContainers");
	int rc = 0;

	for (const struct json *c; rc == 0 && (c = json_next(&iter));) {
		rc = guard_variables(c, &allows, err);
		if (rc < 0 && had_ephemeral(a->old, json_str(c, "name")))
			rc = 0;
	}
	return rc;
}

static bool is_bound(const struct json *pod)
{
	const char *node = json_str(pod, "spec", "nodeName");

	return node && *node;
}

static bool all_are_told(const struct json *pod)
{
	for (unsigned i = 0; i < ARRAY_SIZE(container_lists); i++) {
		struct json_iter iter = json_items(pod, "spec", container_lists[i]);

		for (const struct json *c; (c = json_next(&iter));)
			if (!guard_is_told(c))
				return false;
	}
	return true;
}

/* A pod of ours that asked for nothing when it was created has no variables, and the scheduler
 * would book GPUs for it that its containers know nothing of.  One with limits has asked. */
static int check_late(const struct webhook_options *options, const struct admission *a,
		      struct err *err)
{
	struct pod_asks asks;

	if (is_bound(a->old) || !guard_asks_anew(a->old, a->object))
		return 0;
	pod_asks_read(a->object, &asks);
	if (!webhook_is_ours(options, asks.scheduler) || asks.limits || all_are_told(a->object))
		return 0;
	return err_set(err, EINVAL,
		       "a pod asks for GPUs when it is created, for its containers cannot be told "
		       "later which ones they get: delete the pod and create it anew");
}

/* A literal stays in the container whatever becomes of the map that it was taken from, so
 * until the pod is bound the scheduler has to find what the container has. */
static int check_moved(const struct webhook_options *options, const struct admission *a,
		       struct err *err)
{
	struct pod_asks asks;

	if (is_bound(a->old) || !guard_ids_moved(a->old, a->object))
		return 0;
	pod_asks_read(a->object, &asks);
	if (check_containers(options, a, &asks, NULL) == 0)
		return 0;
	return err_set(err, EINVAL,
		       "the containers were given the GPUs that " KEY_MAP " said when the pod was "
		       "created: delete the pod and create it anew");
}

static int check_create(const struct webhook_options *options, const struct admission *a,
			struct err *err)
{
	struct pod_asks asks;
	int rc;

	pod_asks_read(a->object, &asks);
	if ((rc = check_decisions(a, err)) < 0 ||
	    (rc = check_containers(options, a, &asks, err)) < 0 ||
	    (rc = check_node(a, &asks, err)) < 0)
		return rc;
	return check_map(a, err);
}

static int check_update(const struct webhook_options *options, const struct admission *a,
			struct err *err)
{
	int rc;

	if ((rc = check_decisions(a, err)) < 0 || (rc = check_ephemeral(options, a, err)) < 0 ||
	    (rc = check_moved(options, a, err)) < 0 || (rc = check_late(options, a, err)) < 0)
		return rc;
	return check_map(a, err);
}

/* A Binding writes its annotations into the pod. */
static bool is_binding(const struct admission *a)
{
	return admission_is(a, "CREATE", "", "pods", "binding") ||
	       admission_is(a, "CREATE", "", "bindings", "");
}

static bool is_pod_update(const struct admission *a)
{
	static const char *const parts[] = { "", "status", "ephemeralcontainers", "resize" };

	return is_one_of(a->subresource, parts, ARRAY_SIZE(parts)) &&
	       admission_is(a, "UPDATE", "", "pods", a->subresource);
}

static bool is_claim(const struct admission *a)
{
	return admission_is(a, "CREATE", GROUP_CLAIMS, "gpuclaims", "") ||
	       admission_is(a, "UPDATE", GROUP_CLAIMS, "gpuclaims", "");
}

/* One that is as it was may be finished with: its finalizers and labels are not what is wrong. */
static int check_claim(const struct admission *a, struct err *err)
{
	const struct json *spec = json_get(a->object, "spec");

	if (spec && json_equal(spec, json_get(a->old, "spec")))
		return 0;
	return claim_check(a->object, err);
}

static int check(const struct webhook_options *options, const struct admission *a, struct err *err)
{
	if (is_claim(a))
		return check_claim(a, err);
	if (is_one_of(a->username, options->accounts, options->accounts_count))
		return 0; /* who decides */
	if (admission_is(a, "CREATE", "", "pods", ""))
		return check_create(options, a, err);
	if (is_pod_update(a))
		return check_update(options, a, err);
	return is_binding(a) ? check_decisions(a, err) : 0;
}

int webhook_validate(const struct webhook_options *options, const struct admission *a,
		     struct ruling *ruling, struct err *err)
{
	int rc = check(options, a, &ruling->reason);

	if (rc == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	ruling->refused = rc < 0;
	return 0;
}
