/* SPDX-License-Identifier: Apache-2.0 */
/* mutate.c - a pod as it is created gets what leads its containers to their GPUs.
 *
 * The same pod again gets nothing more: what is wanted follows from what the pod asks for,
 * never from what was patched.
 */
#include <errno.h>
#include <string.h>

#include "dialect/dialect.h"
#include "dialect/keys.h"
#include "webhook/admission.h"
#include "webhook/asks.h"
#include "webhook/env.h"
#include "webhook/inherit.h"
#include "webhook/literal.h"
#include "webhook/review.h"
#include "webhook/variables.h"
#include "wire/json.h"

#define RESOURCE_SLOT	  PREFIX_SCHEDULING "slot"
#define SCHEDULER_OF_KUBE "default-scheduler"

struct mutation {
	const struct webhook_options *options;
	const struct admission *a;
	struct pod_asks asks;
	bool maybe; /* it asks for nothing, but what owns it may: variables, which do no harm */
	struct variables_input input;
	struct ruling *ruling;
};

/* Annotations of owners, where these are known. */
static void look_at_owners(struct mutation *m)
{
	const struct dialect_lookup *lookup = m->options->lookup;

	if (!lookup || json_len(m->a->object, "metadata", "ownerReferences") == 0)
		return;
	if (m->options->copy_owner_annotations)
		m->asks.count |= inherit_annotations(m->a, lookup, m->ruling);
	else
		m->asks.count |= inherits(m->a, lookup, KEY_GPU_COUNT);
	m->asks.map_of_owner = !m->asks.map && inherits(m->a, lookup, KEY_MAP);
}

static void set_scheduler(struct mutation *m)
{
	const char *name = m->options->set_scheduler;
	struct patch_path at = patch_key(patch_key(PATCH_ROOT, "spec"), "schedulerName");

	if (!name || !pod_asks_any(&m->asks) ||
	    (*m->asks.scheduler && strcmp(m->asks.scheduler, SCHEDULER_OF_KUBE) != 0))
		return;
	json_add_str(
		patch_set(&m->ruling->patch, at, json_get(m->a->object, "spec", "schedulerName")),
		name);
	patch_end(&m->ruling->patch);
	m->asks.scheduler = name;
}

/* Other schedulers know nothing of these: they would start the pod without a GPU, and nobody
 * would say so. */
static void warn_of_scheduler(const struct mutation *m)
{
	const struct webhook_options *options = m->options;
	const char *asked = m->asks.claim   ? KEY_CLAIM
			    : m->asks.map   ? KEY_MAP
			    : m->asks.count ? KEY_GPU_COUNT
					    : NULL;
	const char *scheduler = *m->asks.scheduler ? m->asks.scheduler : SCHEDULER_OF_KUBE;

	if (asked && options->schedulers_count && !options->other_schedulers &&
	    !webhook_is_ours(options, scheduler))
		ruling_warn(m->ruling,
			    "%s asks for GPUs, but scheduler %.64s gives none: set "
			    "spec.schedulerName to %s",
			    asked, scheduler, options->schedulers[0]);
}

/* Whether somebody will fill the annotation in: otherwise the variable would hide every GPU. */
static bool is_handled(const struct mutation *m)
{
	return webhook_is_ours(m->options, m->asks.scheduler) || m->asks.claim || m->asks.map ||
	       m->asks.map_of_owner || m->asks.elastic ||
	       (m->options->other_schedulers && m->asks.limits);
}

/* An unfilled variable hides every GPU, which is right for a pod of ours that gets none.  A slot
 * or a RuntimeClass could keep it from starting. */
static bool is_possible(struct mutation *m)
{
	const struct webhook_options *options = m->options;
	const char *withheld = options->injection == INJECTION_CDI ? RESOURCE_SLOT
			       : options->runtime_class		   ? "RuntimeClass"
								   : NULL;
	bool unknown;

	m->maybe = webhook_is_ours(options, m->asks.scheduler) &&
		   may_inherit(m->a, options->lookup, &unknown);
	if (m->maybe && unknown && withheld)
		ruling_warn(
			m->ruling,
			"what owns the pod is not known to the webhook: if it asks for GPUs, ask "
			"for them in its pod template, or containers get no %s",
			withheld);
	return m->maybe;
}

static void set_runtime_class(const struct mutation *m)
{
	const char *own = json_str(m->a->object, "spec", "runtimeClassName");
	struct patch_path at = patch_key(patch_key(PATCH_ROOT, "spec"), "runtimeClassName");

	if (!m->options->runtime_class || m->maybe || (own && *own))
		return;
	json_add_str(patch_set(&m->ruling->patch, at,
			       json_get(m->a->object, "spec", "runtimeClassName")),
		     m->options->runtime_class);
	patch_end(&m->ruling->patch);
}

static bool is_one(const struct json *quantity)
{
	int64_t number = 0;
	const char *text = json_str(quantity);

	return text ? strcmp(text, "1") == 0
		    : json_i64_path(quantity, &number, JSON_PATH_END) == 0 && number == 1;
}

static void open_missing(struct patch *patch, const struct json *parent, struct patch_path at)
{
	struct json_writer *w;

	if (json_type(parent) == JSON_OBJECT)
		return;
	w = patch_set(patch, at, parent);
	json_open_object(w);
	json_close_object(w);
	patch_end(patch);
}

static const char *const resource_lists[] = { "limits", "requests" };

/* One token of the agent's, for which the kubelet calls it before the container starts. */
static void add_slot(struct patch *patch, const struct json *container, struct patch_path at)
{
	const struct json *resources = json_get(container, "resources");
	struct patch_path below = patch_key(at, "resources");

	for (unsigned i = 0; i < ARRAY_SIZE(resource_lists); i++) {
		const struct json *part = json_get(resources, resource_lists[i]);
		struct patch_path list = patch_key(below, resource_lists[i]);

		if (is_one(json_get(part, RESOURCE_SLOT)))
			continue;
		if (i == 0)
			open_missing(patch, resources, below);
		open_missing(patch, part, list);
		json_add_str(patch_set(patch, patch_key(list, RESOURCE_SLOT),
				       json_get(part, RESOURCE_SLOT)),
			     "1");
		patch_end(patch);
	}
}

/* The agent would not let it start: nobody decides about a container that gets no GPU.  We
 * may have put it there ourselves, before another webhook added a container with limits. */
static void remove_slot(struct patch *patch, const struct json *container, struct patch_path at)
{
	for (unsigned i = 0; i < ARRAY_SIZE(resource_lists); i++) {
		struct patch_path list = patch_key(patch_key(at, "resources"), resource_lists[i]);

		if (json_get(container, "resources", resource_lists[i], RESOURCE_SLOT))
			patch_remove(patch, patch_key(list, RESOURCE_SLOT));
	}
}

static void inject(const struct mutation *m, const struct json *container, struct patch_path at)
{
	struct patch *patch = &m->ruling->patch;
	bool gets = !m->asks.limits || container_asks(container);
	struct variables variables;

	/* Rather no patch at all than variables in another container. */
	patch_guard(patch, patch_key(at, "name"), json_str(container, "name"));
	if (gets)
		variables_make(&m->input, container, &variables);
	else
		variables_make_none(&m->input, container, &variables);
	env_patch(m->ruling, container, at, &variables);
	if (m->options->injection == INJECTION_CDI && !m->maybe)
		(gets ? add_slot : remove_slot)(patch, container, at);
	patch_guard(patch, at, NULL);
}

static void inject_all(const struct mutation *m)
{
	for (unsigned i = 0; i < ARRAY_SIZE(container_lists); i++) {
		struct patch_path list =
			patch_key(patch_key(PATCH_ROOT, "spec"), container_lists[i]);
		struct json_iter iter = json_items(m->a->object, "spec", container_lists[i]);
		const struct json *container;

		/* A patch that has grown too large gets no better. */
		for (size_t j = 0;
		     !patch_is_full(&m->ruling->patch) && (container = json_next(&iter)); j++)
			if (json_type(container) == JSON_OBJECT)
				inject(m, container, patch_index(list, j));
	}
}

static const struct json *find_claim(const struct mutation *m)
{
	const struct dialect_lookup *lookup = m->options->lookup;

	if (!lookup || !m->asks.claim)
		return NULL;
	return lookup->find(lookup->context, "GpuClaim", m->a->namespace, m->asks.claim);
}

/* Without its limits a container takes all of a card that it was to share. */
static void warn_of_claim(const struct mutation *m)
{
	if ((m->options->inject & INJECT_MPS) && m->asks.claim && !m->input.claim &&
	    !m->asks.limits)
		ruling_warn(m->ruling,
			    "GpuClaim %.64s is not known to the webhook, not yet or for want of "
			    "--claims: if it is a share, containers are not kept to it by MPS",
			    m->asks.claim);
}

/* Only where every GPU is visible are ids what CUDA counts; limits and a claim may deal the
 * line's ids out to containers in ways that only the scheduler knows. */
static void use_map(struct mutation *m, char ids[LITERAL_MAX])
{
	if (m->options->injection != INJECTION_ALL || !m->asks.map ||
	    !webhook_is_ours(m->options, m->asks.scheduler) ||
	    literal_ids(m->a->object, m->asks.map, ids) < 0)
		return;
	if (m->asks.limits || m->asks.claim)
		m->input.former = ids;
	else
		m->input.literal = ids;
}

void webhook_mutate(const struct webhook_options *options, const struct admission *a,
		    struct ruling *ruling)
{
	struct mutation m = { .options = options, .a = a, .ruling = ruling };
	char ids[LITERAL_MAX];

	if (!admission_is(a, "CREATE", "", "pods", "") ||
	    json_type(a->object, "spec") != JSON_OBJECT)
		return;
	pod_asks_read(a->object, &m.asks);
	look_at_owners(&m);
	set_scheduler(&m);
	warn_of_scheduler(&m);
	if (pod_asks_any(&m.asks) ? !is_handled(&m) : !is_possible(&m))
		return;
	m.input = (struct variables_input){ .options = options, .claim = find_claim(&m) };
	warn_of_claim(&m);
	use_map(&m, ids);
	set_runtime_class(&m);
	inject_all(&m);
}
