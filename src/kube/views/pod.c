/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/views/pod.h"

#include "base/err.h"
#include "wire/json.h"

#include <string.h>

#define GRACE_DEFAULT_S 30

static int read_gates(struct view_field *field, bool *ret, struct err *err)
{
	field->name = "schedulingGates";
	const struct json *gates = view_get(field);
	if (gates && json_type(gates) != JSON_ARRAY)
		return view_wrong(field, "no list", err);
	*ret = json_len(gates) > 0;
	return 0;
}

static int read_priority(struct view_field *field, struct pod_view *pod, struct err *err)
{
	const char *policy;
	int64_t priority;
	field->name = "priority";
	int rc = view_i64(field, INT32_MIN, INT32_MAX, 0, &priority, err);
	if (rc < 0)
		return rc;
	field->name = "preemptionPolicy";
	if ((rc = view_str(field, &policy, err)) < 0)
		return rc;
	pod->priority = (int32_t)priority;
	pod->preempts = strcmp(policy, "Never") != 0;
	field->name = "priorityClassName";
	return view_str(field, &pod->priority_class, err);
}

static int read_spec(const struct json *object, struct pod_view *pod, struct err *err)
{
	struct view_field field = { object, "Pod", "spec", "nodeName" };
	int rc = view_str(&field, &pod->node, err);
	if (rc < 0)
		return rc;
	field.name = "schedulerName";
	if ((rc = view_str(&field, &pod->scheduler, err)) < 0)
		return rc;
	field.name = "hostNetwork";
	if ((rc = view_bool(&field, &pod->host_network, err)) < 0)
		return rc;
	field.name = "terminationGracePeriodSeconds";
	if ((rc = view_i64(&field, INT64_MIN, INT64_MAX, GRACE_DEFAULT_S, &pod->grace_s, err)) < 0)
		return rc;
	if ((rc = read_gates(&field, &pod->gated, err)) < 0)
		return rc;
	return read_priority(&field, pod, err);
}

static int read_status(const struct json *object, struct pod_view *pod, struct err *err)
{
	static const char *const phases[] = { "Pending", "Running", "Succeeded", "Failed", NULL };
	struct view_field field = { object, "Pod", "status", "phase" };
	int phase;
	int rc = view_word(&field, phases, &phase, err);
	if (rc < 0)
		return rc;
	pod->phase = (enum pod_phase)phase;
	field.name = "nominatedNodeName";
	if ((rc = view_str(&field, &pod->nominated, err)) < 0)
		return rc;
	field.name = "startTime";
	if ((rc = view_time(&field, &pod->started_ns, err)) < 0)
		return rc;
	pod->scheduled = view_condition(object, "PodScheduled", &pod->scheduled_reason);
	pod->disrupted = view_condition(object, "DisruptionTarget", &pod->disrupted_reason);
	pod->ready = view_condition(object, "Ready", NULL);
	return 0;
}

int pod_view_read(const struct json *pod, struct pod_view *ret, struct err *err)
{
	struct pod_view view;
	int rc;
	if ((rc = view_meta_read(pod, "Pod", &view.meta, err)) < 0 ||
	    (rc = read_spec(pod, &view, err)) < 0 || (rc = read_status(pod, &view, err)) < 0)
		return rc;
	view_controller_read(pod, &view.controller);
	*ret = view;
	return 0;
}

bool pod_view_is_finished(const struct pod_view *pod)
{
	return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}
