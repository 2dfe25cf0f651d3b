/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/views/workload.h"

#include "base/err.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

/* An object that a field must be, or NULL without it. */
static int read_object(const struct view_field *field, const struct json **ret, struct err *err)
{
	const struct json *value = view_get(field);
	if (value && json_type(value) != JSON_OBJECT)
		return view_wrong(field, "no object", err);
	*ret = value;
	return 0;
}

static int read_job(struct view_field *field, struct owner_view *view, struct err *err)
{
	static const char *const modes[] = { "Indexed", NULL };
	int rc, mode;
	field->name = "parallelism";
	if ((rc = view_i64(field, 0, INT32_MAX, 1, &view->parallelism, err)) < 0)
		return rc;
	field->name = "completions";
	if ((rc = view_i64(field, 0, INT32_MAX, -1, &view->completions, err)) < 0)
		return rc;
	field->name = "suspend";
	if ((rc = view_bool(field, &view->suspended, err)) < 0)
		return rc;
	field->name = "completionMode";
	rc = view_word(field, modes, &mode, err);
	view->indexed = mode == 1;
	return rc;
}

int owner_view_read(const struct json *owner, const char *kind, struct owner_view *ret,
		    struct err *err)
{
	struct view_field field = { owner, kind, "spec", "replicas" };
	struct owner_view view;
	int rc;
	if ((rc = view_meta_read(owner, kind, &view.meta, err)) < 0 ||
	    (rc = view_i64(&field, 0, INT32_MAX, 1, &view.replicas, err)) < 0 ||
	    (rc = read_job(&field, &view, err)) < 0)
		return rc;
	field.name = "selector";
	if ((rc = read_object(&field, &view.selector, err)) < 0)
		return rc;
	view_controller_read(owner, &view.controller);
	*ret = view;
	return 0;
}

int group_view_read(const struct json *group, struct group_view *ret, struct err *err)
{
	struct view_field field = { group, "PodGroup", "spec", "minMember" };
	struct group_view view;
	int rc;
	if ((rc = view_meta_read(group, "PodGroup", &view.meta, err)) < 0 ||
	    (rc = view_i64(&field, 0, INT32_MAX, 0, &view.min_members, err)) < 0)
		return rc;
	field = (struct view_field){ group, "PodGroup", "spec", "schedulingPolicy" };
	const struct json *policy = view_get(&field);
	int64_t count;
	rc = json_i64(policy, &count, "gang", "minCount");
	if (rc == -EINVAL || (rc == 0 && (count < 1 || count > INT32_MAX)))
		return view_wrong(&field, "without a sensible gang.minCount", err);
	if (rc == 0)
		view.min_members = count;
	*ret = view;
	return 0;
}

int priority_view_read(const struct json *class, struct priority_view *ret, struct err *err)
{
	static const char *const never[] = { "Never", NULL };
	struct view_field field = { class, "PriorityClass", NULL, "value" };
	struct priority_view view;
	int64_t value;
	int rc, word;
	if ((rc = view_meta_read(class, "PriorityClass", &view.meta, err)) < 0 ||
	    (rc = view_i64(&field, INT32_MIN, INT32_MAX, 0, &value, err)) < 0)
		return rc;
	if (!view_get(&field))
		return view_wrong(&field, "missing", err);
	view.value = (int32_t)value;
	field.name = "globalDefault";
	if ((rc = view_bool(&field, &view.global_default, err)) < 0)
		return rc;
	field.name = "preemptionPolicy";
	if ((rc = view_word(&field, never, &word, err)) < 0)
		return rc;
	view.preempts = word == 0;
	*ret = view;
	return 0;
}

static int read_counts(const struct json *budget, struct budget_view *view, struct err *err)
{
	struct {
		const char *name;
		int64_t *ret;
	} counts[] = {
		{ "disruptionsAllowed", &view->disruptions_allowed },
		{ "currentHealthy", &view->current_healthy },
		{ "desiredHealthy", &view->desired_healthy },
		{ "expectedPods", &view->expected_pods },
	};
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct view_field field = { budget, "PodDisruptionBudget", "status",
					    counts[i].name };
		rc = view_i64(&field, 0, INT32_MAX, 0, counts[i].ret, err);
	}
	return rc;
}

int budget_view_read(const struct json *budget, struct budget_view *ret, struct err *err)
{
	struct view_field field = { budget, "PodDisruptionBudget", "spec", "selector" };
	struct budget_view view;
	int rc;
	if ((rc = view_meta_read(budget, "PodDisruptionBudget", &view.meta, err)) < 0 ||
	    (rc = read_object(&field, &view.selector, err)) < 0 ||
	    (rc = read_counts(budget, &view, err)) < 0)
		return rc;
	field = (struct view_field){ budget, "PodDisruptionBudget", "status", "disruptedPods" };
	if ((rc = read_object(&field, &view.disrupted, err)) < 0)
		return rc;
	*ret = view;
	return 0;
}

bool budget_view_has_disrupted(const struct budget_view *budget, const char *pod)
{
	return json_get(budget->disrupted, pod) != NULL;
}

int namespace_view_read(const struct json *namespace, struct namespace_view *ret, struct err *err)
{
	struct view_field field = { namespace, "Namespace", "metadata", "labels" };
	struct namespace_view view;
	int rc;
	if ((rc = view_meta_read(namespace, "Namespace", &view.meta, err)) < 0 ||
	    (rc = read_object(&field, &view.labels, err)) < 0)
		return rc;
	*ret = view;
	return 0;
}
