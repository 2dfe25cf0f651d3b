/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - where the pod may run: node name, labels, taints.
 *
 * Node affinity is taken as far as it says the same as a node selector.  Whatever else
 * must hold and is not understood is refused, rather than passed over: a placement that
 * breaks a rule is worse than none.  Preferences are passed over.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "dialect/draft.h"
#include "engine/cluster.h"
#include "wire/json.h"

static int read_selector(struct draft *d, const struct json *spec, struct err *err)
{
	struct json_iter iter = json_members(spec, "nodeSelector");
	struct json_member m;
	int rc = 0;

	while (rc == 0 && json_next_member(&iter, &m)) {
		const char *value = json_str(m.value);

		if (!value)
			return err_set(err, EINVAL, "nodeSelector %s: the value is no string",
				       m.key);
		rc = draft_select(d, m.key, value, err);
	}
	return rc;
}

static int unsupported(const char *what, struct err *err)
{
	return err_set(err, ENOTSUP, "%s is not supported yet", what);
}

static const char *only_value(const struct json *expression)
{
	const char *op = json_str(expression, "operator");
	struct json_iter values = json_items(expression, "values");

	if (!op || strcmp(op, "In") != 0 || json_len(expression, "values") != 1)
		return NULL;
	return json_str(json_next(&values));
}

static int read_expression(struct draft *d, const struct json *expression, struct err *err)
{
	const char *key = json_str(expression, "key");
	const char *value = only_value(expression);

	if (!key || !value)
		return unsupported("node affinity other than In with one value", err);
	return draft_select(d, key, value, err);
}

static int read_field(struct draft *d, const struct json *expression, struct err *err)
{
	const char *key = json_str(expression, "key");
	const char *value = only_value(expression);

	if (!key || strcmp(key, "metadata.name") != 0 || !value)
		return unsupported("node affinity by fields other than metadata.name In", err);
	return draft_pin_node(d, value, "node affinity", err);
}

static int read_node_affinity(struct draft *d, const struct json *required, struct err *err)
{
	struct json_iter terms = json_items(required, "nodeSelectorTerms");
	const struct json *term = json_next(&terms), *expression;
	int rc = 0;

	if (json_len(required, "nodeSelectorTerms") != 1)
		return unsupported("node affinity with other than one term", err);
	if (json_len(term, "matchExpressions") + json_len(term, "matchFields") == 0)
		return err_set(err, EINVAL, "an empty node affinity term matches no node");
	struct json_iter iter = json_items(term, "matchExpressions");
	while (rc == 0 && (expression = json_next(&iter)))
		rc = read_expression(d, expression, err);
	iter = json_items(term, "matchFields");
	while (rc == 0 && (expression = json_next(&iter)))
		rc = read_field(d, expression, err);
	return rc;
}

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

static int read_affinity(struct draft *d, const struct json *spec, struct err *err)
{
	const struct json *affinity = json_get(spec, "affinity");
	const struct json *node = json_get(affinity, "nodeAffinity", REQUIRED);

	if (json_len(affinity, "podAffinity", REQUIRED))
		return unsupported("required pod affinity", err);
	if (json_len(affinity, "podAntiAffinity", REQUIRED))
		return unsupported("required pod anti-affinity", err);
	return json_type(node) == JSON_OBJECT ? read_node_affinity(d, node, err) : 0;
}

static int check_spread(const struct json *spec, struct err *err)
{
	struct json_iter iter = json_items(spec, "topologySpreadConstraints");
	const struct json *constraint;

	while ((constraint = json_next(&iter))) {
		const char *when = json_str(constraint, "whenUnsatisfiable");

		if (!when || strcmp(when, "ScheduleAnyway") != 0)
			return unsupported("a topology spread constraint with DoNotSchedule", err);
	}
	return 0;
}

static int check_ports(const struct json *spec, struct err *err)
{
	struct json_iter containers = json_items(spec, "containers");
	const struct json *container, *port;

	while ((container = json_next(&containers))) {
		struct json_iter ports = json_items(container, "ports");

		while ((port = json_next(&ports))) {
			int64_t number;

			if (json_i64(port, &number, "hostPort") == 0 && number != 0)
				return unsupported("a host port", err);
		}
	}
	return 0;
}

/* Every effect if there is none; -EINVAL for a word that Kubernetes does not know. */
static int effect_of(const char *word, uint8_t *ret)
{
	static const char *const words[] = {
		[EFFECT_ANY] = "",
		[EFFECT_NO_SCHEDULE] = "NoSchedule",
		[EFFECT_PREFER_NO_SCHEDULE] = "PreferNoSchedule",
		[EFFECT_NO_EXECUTE] = "NoExecute",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(words[i], word ? word : "") == 0) {
			*ret = (uint8_t)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* 1: it is one; 0: one that never matches (Gt and Lt); or an error. */
static int toleration_of(struct draft *d, const struct json *t, struct toleration *ret,
			 struct err *err)
{
	const char *key = json_str(t, "key"), *value = json_str(t, "value");
	const char *op = json_str(t, "operator"), *effect = json_str(t, "effect");
	bool exists = op && strcmp(op, "Exists") == 0;

	if (op && (strcmp(op, "Gt") == 0 || strcmp(op, "Lt") == 0))
		return 0;
	if (op && *op && !exists && strcmp(op, "Equal") != 0)
		return err_set(err, EINVAL, "toleration: operator %s is unknown", op);
	if ((!key || !*key) && !exists)
		return err_set(err, EINVAL, "a toleration without key needs operator Exists");
	if (effect_of(effect, &ret->effect) < 0)
		return err_set(err, EINVAL, "toleration: effect %s is unknown", effect);
	ret->op = exists ? TOLERATE_EXISTS : TOLERATE_EQUAL;
	ret->key = cluster_intern(d->cluster, key ? key : "");
	ret->value = exists ? 0 : cluster_intern(d->cluster, value ? value : "");
	if (ret->key == UINT32_MAX || ret->value == UINT32_MAX)
		return err_set(err, ENOMEM, "out of memory");
	return 1;
}

static int read_tolerations(struct draft *d, const struct json *spec, struct err *err)
{
	struct json_iter iter = json_items(spec, "tolerations");
	struct request *r = d->request;
	const struct json *t;

	while ((t = json_next(&iter))) {
		struct toleration toleration = { .unused = 0 };
		int rc = toleration_of(d, t, &toleration, err);

		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		if (r->tolerations_count == TOLERATION_MAX)
			return err_set(err, EINVAL, "the pod has more than %d tolerations",
				       TOLERATION_MAX);
		r->tolerations[r->tolerations_count++] = toleration;
	}
	return 0;
}

int read_place(struct draft *d, struct err *err)
{
	const struct json *spec = json_get(d->source->object, "spec");
	const char *node = json_str(spec, "nodeName");
	int rc;

	if (json_len(spec, "schedulingGates"))
		return err_set(err, EAGAIN, "the pod waits for its scheduling gates");
	if (node && *node && (rc = draft_pin_node(d, node, "nodeName", err)) < 0)
		return rc;
	if ((rc = read_selector(d, spec, err)) < 0 || (rc = read_affinity(d, spec, err)) < 0 ||
	    (rc = check_spread(spec, err)) < 0 || (rc = check_ports(spec, err)) < 0)
		return rc;
	return read_tolerations(d, spec, err);
}
