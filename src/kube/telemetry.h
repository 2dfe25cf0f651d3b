/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.h - what the client and its caches do, as metrics.
 *
 *	gpu_scheduler_kube_requests_total{verb,resource,code}	tries; code "none": no answer
 *	gpu_scheduler_kube_request_duration_seconds{verb}	of one try that is no watch
 *	gpu_scheduler_kube_retries_total{verb,code}
 *	gpu_scheduler_kube_requests_in_flight
 *	gpu_scheduler_kube_watch_restarts_total{resource,reason}
 *	gpu_scheduler_kube_cache_objects{resource}, _cache_bytes{resource}
 *	gpu_scheduler_kube_cache_live{resource}			1: the watch is live
 *	gpu_scheduler_kube_cache_heard_timestamp_seconds{resource}	time() - this: the age
 *	gpu_scheduler_kube_cache_resource_version{resource}	how far it has followed
 *	gpu_scheduler_kube_events_total{outcome}		sent, series, dropped, failed
 *
 * Caches have the names that kubectl has for resources, "leases.coordination.k8s.io": there are
 * podgroups of two groups.  Verbs, resources and reasons are ours, so few; codes of strange proxies are bounded by
 * the registry.  All of it may be called with NULL.
 */
#ifndef GS_KUBE_TELEMETRY_H
#define GS_KUBE_TELEMETRY_H

#include <stdbool.h>
#include <stdint.h>

struct clock;
struct kube_kind;
struct kube_telemetry;
struct metrics;

/* Counts into `metrics`, which outlives it, or into nothing (NULL).  Two clients may share
 * a registry only if they share its numbers: the second one adds to them.
 * NULL: out of memory. */
struct kube_telemetry *kube_telemetry_new(struct metrics *metrics, const struct clock *clock);
void kube_telemetry_free(struct kube_telemetry *telemetry);

/* A try has ended.  Code 0: without an answer; took_ns 0: not measured. */
void kube_telemetry_request(struct kube_telemetry *telemetry, const char *verb,
			    const char *resource, int code, uint64_t took_ns);
/* It will be sent again, because of this code. */
void kube_telemetry_retry(struct kube_telemetry *telemetry, const char *verb, int code);
void kube_telemetry_in_flight(struct kube_telemetry *telemetry, uint32_t count);

/* A watch is begun anew.  `reason`: one of a few words, "end", "expired", "silent". */
void kube_telemetry_watch(struct kube_telemetry *telemetry, const char *resource,
			  const char *reason);

struct kube_cache_figures {
	uint32_t objects;
	uint64_t bytes;
	bool live;
	uint64_t heard_ms;   /* monotonic; 0: never */
	const char *version; /* told if it is a number, as those of Kubernetes are */
};

/* How a cache stands, before that is read.  NULL: it is closed. */
void kube_telemetry_cache(struct kube_telemetry *telemetry, const struct kube_kind *kind,
			  const struct kube_cache_figures *figures);

enum kube_event_outcome {
	KUBE_EVENT_SENT,
	KUBE_EVENT_SERIES, /* counted in one that is there */
	KUBE_EVENT_DROPPED,
	KUBE_EVENT_FAILED,
};

void kube_telemetry_event(struct kube_telemetry *telemetry, enum kube_event_outcome outcome);

#endif
