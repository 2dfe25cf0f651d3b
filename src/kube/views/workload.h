/* SPDX-License-Identifier: Apache-2.0 */
/* workload.h - what makes pods, groups them, ranks them and protects them: Jobs and
 * replica sets, pod groups, priority classes, disruption budgets, namespaces. */
#ifndef GS_KUBE_VIEWS_WORKLOAD_H
#define GS_KUBE_VIEWS_WORKLOAD_H

#include "kube/views/view.h"

/* Job, ReplicaSet, StatefulSet, ReplicationController, Deployment. */
struct owner_view {
	struct view_meta meta;
	struct view_controller controller; /* a ReplicaSet's Deployment */
	int64_t replicas;		   /* 1 if it does not say */
	int64_t parallelism;		   /* of a Job; 1 if it does not say */
	int64_t completions;		   /* of a Job; -1 if it does not say */
	bool suspended, indexed;	   /* of a Job */
	const struct json *selector;	   /* spec.selector, or NULL */
};

int owner_view_read(const struct json *owner, const char *kind, struct owner_view *ret,
		    struct err *err);

/* A PodGroup, of scheduling.x-k8s.io or of scheduling.k8s.io. */
struct group_view {
	struct view_meta meta;
	int64_t min_members; /* 0: it is no gang, or does not say */
};

int group_view_read(const struct json *group, struct group_view *ret, struct err *err);

struct priority_view {
	struct view_meta meta;
	int32_t value;
	bool preempts; /* not preemptionPolicy: Never */
	bool global_default;
};

/* -EINVAL also without a value. */
int priority_view_read(const struct json *class, struct priority_view *ret, struct err *err);

struct budget_view {
	struct view_meta meta;
	const struct json *selector; /* NULL: matches no pod, and so does an empty one here */
	int64_t disruptions_allowed; /* 0 if it does not say */
	int64_t current_healthy, desired_healthy, expected_pods;
	const struct json *disrupted; /* pods that are going already, by name; or NULL */
};

int budget_view_read(const struct json *budget, struct budget_view *ret, struct err *err);

/* Whether the budget has counted the disruption of that pod already. */
bool budget_view_has_disrupted(const struct budget_view *budget, const char *pod);

struct namespace_view {
	struct view_meta meta;
	const struct json *labels; /* an object, or NULL */
};

int namespace_view_read(const struct json *namespace, struct namespace_view *ret, struct err *err);

#endif
