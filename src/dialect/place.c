/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - where the pod may run: node name, node selector, taints that it tolerates. */
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

/* 1: it is one; 0: one that matches nothing (Gt, Lt, unknown words); or an error. */
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
	/* A string that the cluster does not know is on no taint. */
	ret->key = cluster_find(d->cluster, key ? key : "");
	ret->value = exists ? 0 : cluster_find(d->cluster, value ? value : "");
	return ret->key != UINT32_MAX && ret->value != UINT32_MAX;
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

	/* Where it is, it is: only what rules about pods look at counts. */
	if (d->resident)
		return read_tolerations(d, spec, err);
	if (json_len(spec, "schedulingGates"))
		return err_set(err, EAGAIN, "the pod waits for its scheduling gates");
	if (json_len(spec, "resourceClaims")) /* nobody would allocate them: it could not start */
		return err_set(err, ENOTSUP,
			       "spec.resourceClaims (dynamic resource allocation) is not "
			       "supported: ask for GPUs by limits or by a GpuClaim");
	if (node && *node && (rc = draft_pin_node(d, node, "nodeName", err)) < 0)
		return rc;
	if ((rc = read_selector(d, spec, err)) < 0)
		return rc;
	return read_tolerations(d, spec, err);
}
