/* SPDX-License-Identifier: Apache-2.0 */
/* pod.h - where a pod stands: bound or not, running, finished, going away. */
#ifndef GS_KUBE_VIEWS_POD_H
#define GS_KUBE_VIEWS_POD_H

#include "kube/views/view.h"

/* A phase that we do not know counts as unknown, which is not finished. */
enum pod_phase { POD_UNKNOWN, POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED };

struct pod_view {
	struct view_meta meta;
	struct view_controller controller;
	const char *node;      /* "": not bound */
	const char *scheduler; /* "" if it does not say */
	const char *nominated; /* node, or "" */
	const char *priority_class;
	enum pod_phase phase;
	int32_t priority; /* 0 if it does not say */
	bool preempts;	  /* not preemptionPolicy: Never */
	bool gated;	  /* has scheduling gates */
	bool host_network;
	int64_t started_ns; /* status.startTime, for who goes first */
	int64_t grace_s;    /* terminationGracePeriodSeconds; 30 if it does not say */
	enum view_condition scheduled, ready, disrupted;
	const char *scheduled_reason, *disrupted_reason; /* "Unschedulable" */
};

/* 0, or -EINVAL: name, node, phase, priority, gates or a time are not what they must be. */
int pod_view_read(const struct json *pod, struct pod_view *ret, struct err *err);

/* Succeeded or failed: it holds nothing any more. */
bool pod_view_is_finished(const struct pod_view *pod);

#endif
