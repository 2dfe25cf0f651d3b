/* SPDX-License-Identifier: Apache-2.0 */
/* soft.c - what the pod would rather have of its node and of the pods around it: preferred node
 * affinity, pod affinity and anti-affinity, and topology spread with ScheduleAnyway.
 *
 * Required pod affinity is read once more: pods that come later are drawn to where it holds.
 * Taints that only discourage need no reading: the engine looks at the pod's tolerations.
 */
#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "dialect/around.h"
#include "dialect/draft.h"
#include "engine/soft.h"
#include "wire/json.h"

#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

struct reading {
	struct draft *draft;
	struct soft_term_spec *terms; /* room for SOFT_TERMS_MAX */
	uint32_t count;
};

/* A further term, which the caller fills in; NULL with err set when there are too many. */
static struct soft_term_spec *next_term(struct reading *r, enum soft_kind kind, uint8_t weight,
					struct err *err)
{
	struct soft_term_spec *term = &r->terms[r->count];

	if (r->count == SOFT_TERMS_MAX) {
		err_set(err, EINVAL, "the pod has more than %d preferred terms", SOFT_TERMS_MAX);
		return NULL;
	}
	r->count++;
	term->kind = (uint8_t)kind;
	term->weight = weight;
	return term;
}

static int read_weight(const struct json *item, const char *what, uint8_t *ret, struct err *err)
{
	int64_t weight = 0;

	if (json_i64(item, &weight, "weight") < 0)
		return err_set(err, EINVAL,
			       "%s: a preferred term needs a weight, a whole number from 1 to %d",
			       what, SOFT_WEIGHT_MAX);
	if (weight < 1 || weight > SOFT_WEIGHT_MAX)
		return err_set(err, EINVAL,
			       "%s: the weight %lld of a preferred term is not from 1 to %d", what,
			       (long long)weight, SOFT_WEIGHT_MAX);
	*ret = (uint8_t)weight;
	return 0;
}

/* Its group of one term. */
static int read_node_term(struct reading *r, const struct json *item, struct err *err)
{
	const struct json *preference = json_get(item, "preference");
	struct node_group *group = arena_alloc(r->draft->arena, sizeof(*group));
	struct node_term *term = arena_alloc(r->draft->arena, sizeof(*term));
	struct soft_term_spec *soft;
	uint8_t weight = 0;
	int rc = read_weight(item, "nodeAffinity", &weight, err);

	if (rc < 0)
		return rc;
	if (!group || !term)
		return err_set(err, ENOMEM, "out of memory");
	/* An empty one weighs nothing. */
	if (!json_len(preference, "matchExpressions") && !json_len(preference, "matchFields"))
		return 0;
	rc = around_node_term(r->draft, preference, term, err);
	if (rc < 0)
		return rc;
	soft = next_term(r, SOFT_NODE, weight, err);
	if (!soft)
		return -EINVAL;
	*group = (struct node_group){ .terms = term, .count = 1 };
	soft->rules.groups = group;
	soft->rules.groups_count = 1;
	return 0;
}

static int read_node_terms(struct reading *r, const struct json *affinity, struct err *err)
{
	struct json_iter iter = json_items(affinity, "nodeAffinity", PREFERRED);
	const struct json *item;
	int rc = 0;

	while (rc == 0 && (item = json_next(&iter)))
		rc = read_node_term(r, item, err);
	return rc;
}

static int read_pod_term(struct reading *r, const struct json *term, const char *what,
			 enum soft_kind kind, uint8_t weight, struct err *err)
{
	struct pod_term *pods = arena_alloc(r->draft->arena, sizeof(*pods));
	struct soft_term_spec *soft;
	int rc;

	if (!pods)
		return err_set(err, ENOMEM, "out of memory");
	rc = around_pod_term(r->draft, term, what, pods, err);
	if (rc < 0)
		return rc;
	soft = next_term(r, kind, weight, err);
	if (!soft)
		return -EINVAL;
	if (kind == SOFT_APART) {
		soft->rules.apart = pods;
		soft->rules.apart_count = 1;
	} else {
		soft->rules.near = pods;
		soft->rules.near_count = 1;
	}
	return 0;
}

static int read_pod_terms(struct reading *r, const struct json *affinity, const char *what,
			  enum soft_kind kind, struct err *err)
{
	struct json_iter iter = json_items(affinity, what, PREFERRED);
	const struct json *item;
	int rc = 0;

	while (rc == 0 && (item = json_next(&iter))) {
		uint8_t weight = 0;

		rc = read_weight(item, what, &weight, err);
		if (rc == 0)
			rc = read_pod_term(r, json_get(item, "podAffinityTerm"), what, kind,
					   weight, err);
	}
	return rc;
}

/* As many as there is room for: one point each is not worth a refusal. */
static int read_drawn(struct reading *r, const struct json *affinity, struct err *err)
{
	struct json_iter iter = json_items(affinity, "podAffinity", AROUND_REQUIRED);
	const struct json *term;
	int rc = 0;

	while (rc == 0 && r->count < SOFT_TERMS_MAX && (term = json_next(&iter)))
		rc = read_pod_term(r, term, "podAffinity", SOFT_DRAWN, 1, err);
	return rc;
}

static int read_spread(struct reading *r, const struct json *spec, struct err *err)
{
	struct draft *d = r->draft;
	struct rules_spec rules = { .namespace = d->source->namespace,
				    .tolerations = d->request->tolerations,
				    .tolerations_count = d->request->tolerations_count };
	struct soft_term_spec *soft;
	int rc = around_spread(d, spec, true, &rules, err);

	if (rc < 0 || !rules.spread_count)
		return rc;
	rc = around_groups(d, spec, &rules, err);
	if (rc < 0)
		return rc;
	soft = next_term(r, SOFT_SPREAD, 1, err);
	if (!soft)
		return -EINVAL;
	soft->rules = rules;
	return 0;
}

/* Most pods prefer nothing, and then nothing is to be done. */
static bool has_soft(const struct json *spec)
{
	const struct json *affinity = json_get(spec, "affinity");

	return json_len(spec, "topologySpreadConstraints") ||
	       json_len(affinity, "nodeAffinity", PREFERRED) ||
	       json_len(affinity, "podAffinity", PREFERRED) ||
	       json_len(affinity, "podAntiAffinity", PREFERRED) ||
	       json_len(affinity, "podAffinity", AROUND_REQUIRED);
}

static int take_soft(const struct reading *r, struct err *err)
{
	struct draft *d = r->draft;
	int rc = soft_take(d->cluster, r->terms, r->count, &d->request->soft);

	if (rc == -E2BIG)
		return err_set(err, EINVAL, "a preferred term of the pod has more than %d bytes",
			       RULES_BYTES_MAX);
	if (rc == -EINVAL)
		return err_set(err, EINVAL, "a list of the pod's preferred terms is too long");
	return rc < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

int read_soft(struct draft *d, const struct json *spec, struct err *err)
{
	const struct json *affinity = json_get(spec, "affinity");
	struct reading r = { .draft = d };
	int rc;

	if (!has_soft(spec))
		return 0;
	r.terms = arena_array(d->arena, SOFT_TERMS_MAX, sizeof(*r.terms));
	if (!r.terms)
		return err_set(err, ENOMEM, "out of memory");
	rc = read_node_terms(&r, affinity, err);
	if (rc == 0)
		rc = read_pod_terms(&r, affinity, "podAffinity", SOFT_NEAR, err);
	if (rc == 0)
		rc = read_pod_terms(&r, affinity, "podAntiAffinity", SOFT_APART, err);
	if (rc == 0)
		rc = read_spread(&r, spec, err);
	if (rc == 0)
		rc = read_drawn(&r, affinity, err);
	return rc < 0 ? rc : take_soft(&r, err);
}
