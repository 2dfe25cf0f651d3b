/* SPDX-License-Identifier: Apache-2.0 */
/* world_kinds.c - which kinds of objects mean something here. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/suggest.h"
#include "sim/world_private.h"
#include "wire/json.h"

#define HAS_PODS    "Pod", "Job", "Deployment", "ReplicaSet", "StatefulSet"
#define IS_REFERRED "GpuClaim", "PodGroup", "PriorityClass"

static const char *const with_pods[] = { HAS_PODS };
static const char *const referred[] = { IS_REFERRED };
static const char *const understood[] = { HAS_PODS, IS_REFERRED };

/* What comes along in people's files and says nothing about where pods go. */
static const char *const passed_over[] = {
	"APIService",
	"ClusterRole",
	"ClusterRoleBinding",
	"ConfigMap",
	"CustomResourceDefinition",
	"Endpoints",
	"EndpointSlice",
	"Event",
	"HorizontalPodAutoscaler",
	"Ingress",
	"IngressClass",
	"Lease",
	"LimitRange",
	"MutatingWebhookConfiguration",
	"Namespace",
	"NetworkPolicy",
	"PersistentVolume",
	"PersistentVolumeClaim",
	"PodDisruptionBudget",
	"ResourceQuota",
	"Role",
	"RoleBinding",
	"RuntimeClass",
	"Secret",
	"Service",
	"ServiceAccount",
	"ServiceMonitor",
	"StorageClass",
	"ValidatingWebhookConfiguration",
};

static bool is_any(const char *kind, const char *const *kinds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(kinds[i], kind) == 0)
			return true;
	return false;
}

static int refuse_kind(const char *kind, const char *name, struct err *err)
{
	const char *near = suggest(kind, understood, ARRAY_SIZE(understood));

	if (!near)
		near = suggest(kind, passed_over, ARRAY_SIZE(passed_over));
	return err_set(err, EINVAL,
		       "%.60s %.80s: this kind is unknown%s%s%s; understood are Pod, Job, "
		       "Deployment, ReplicaSet, StatefulSet, GpuClaim, PodGroup and "
		       "PriorityClass; Service, Namespace, ConfigMap and the like are passed over",
		       kind, name, near ? ", did you mean " : "", near ? near : "",
		       near ? "?" : "");
}

int world_kind(const char *kind, const char *name, const struct json *object, struct err *err)
{
	if (is_any(kind, with_pods, ARRAY_SIZE(with_pods)))
		return 1;
	if (is_any(kind, referred, ARRAY_SIZE(referred)) ||
	    is_any(kind, passed_over, ARRAY_SIZE(passed_over)))
		return 0;
	if (strcmp(kind, "Node") == 0)
		return err_set(err, EINVAL,
			       "Node %.80s: the nodes are those of the cluster's description",
			       name);
	if (json_get(object, "spec", "template", "spec") ||
	    json_get(object, "spec", "jobTemplate"))
		return err_set(err, EINVAL,
			       "%.60s %.80s: pods of this kind cannot be simulated "
			       "yet",
			       kind, name);
	return refuse_kind(kind, name, err);
}
