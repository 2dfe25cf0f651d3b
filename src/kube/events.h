/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - telling people what happened to an object (events.k8s.io/v1).
 *
 * Events are best effort and never in the way: they wait in a queue of their own with a
 * bound, go out at a bounded rate, in the client's background lane, and when the queue is
 * full the oldest is dropped and counted.
 *
 * The same event (object, reason, action, note) again within six minutes of the last is
 * counted in a series, as client-go does it: one object on the server, whose count is
 * patched at the first repetition and then every 30 s at most.
 *
 * One loop, one thread.
 */
#ifndef GS_KUBE_EVENTS_H
#define GS_KUBE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct kube_client;
struct kube_events;

#define KUBE_EVENT_NOTE_MAX 1024 /* bytes; more are cut, with " ..." */
#define KUBE_EVENT_WORD_MAX 128	 /* of a reason, an action, an instance */

/* What it is about.  uid and version may be NULL; namespace too, of kinds without. */
struct kube_object_ref {
	const char *api_version, *kind, *namespace, *name, *uid, *version;
};

/* Everything is copied. */
struct kube_event {
	struct kube_object_ref regarding;
	const struct kube_object_ref *related; /* NULL: nothing else */
	bool warning;			       /* else Normal */
	const char *reason;		       /* "Scheduled", "FailedScheduling", "Preempted" */
	const char *action;		       /* "Binding", "Scheduling", "Preempting" */
	const char *note;
};

struct kube_events_options {
	struct kube_client *client; /* closed after the recorder is freed */
	const char *controller;	    /* who reports: "gpu-scheduler"; a name as of a label */
	const char *instance;	    /* and which one of them: a pod's name */
	uint32_t max_waiting;	    /* 0: 4096 */
	uint32_t rate_per_s, burst; /* 0: 25 and 100 */
	uint32_t series_ms;	    /* 0: 6 min */
	uint32_t refresh_ms;	    /* 0: 30 s, between two patches of a series */
	uint32_t tick_ms;	    /* 0: 1 s, how often series are looked at */
};

/* 0, -EINVAL for names that the server would refuse, -ENOMEM. */
int kube_events_new(const struct kube_events_options *options, struct kube_events **ret,
		    struct err *err);

/* What waits is lost.  NULL is fine. */
void kube_events_free(struct kube_events *events);

/* Never waits.  0 (which is no promise), -EINVAL for what the server would refuse, -ENOMEM. */
int kube_events_add(struct kube_events *events, const struct kube_event *event, struct err *err);

uint32_t kube_events_waiting(const struct kube_events *events);
/* Those too that are on their way. */
uint32_t kube_events_unsent(const struct kube_events *events);
uint64_t kube_events_dropped(const struct kube_events *events); /* so far */

/* Why the last one could not be sent, "" if it could. */
const char *kube_events_trouble(const struct kube_events *events);

#endif
