/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/telemetry.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/num.h"
#include "kube/kind.h"
#include "wire/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REQUESTS,
	DURATION,
	RETRIES,
	IN_FLIGHT,
	RESTARTS,
	OBJECTS,
	BYTES,
	LIVE,
	HEARD,
	VERSION,
	EVENTS,
	METRICS,
};

struct kube_telemetry {
	const struct clock *clock;
	struct metric *metrics[METRICS];
};

/* From a write on an idle server (1 ms) to the deadline of a try. */
static const double seconds[] = {
	.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60
};

#define LABELS(...)                                     \
	.labels = (const char *const[]){ __VA_ARGS__ }, \
	.labels_count = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *)

static const struct metric_options options[METRICS] = {
	[REQUESTS] = { .name = "gpu_scheduler_kube_requests_total",
		       .help = "Requests to the API server, every try counted; code none: no "
			       "answer.",
		       .type = METRIC_COUNTER,
		       LABELS("verb", "resource", "code"),
		       .max_series = 1024 },
	[DURATION] = { .name = "gpu_scheduler_kube_request_duration_seconds",
		       .help = "Time that one try of a request took, watches left out.",
		       .type = METRIC_HISTOGRAM,
		       LABELS("verb"),
		       .buckets = seconds,
		       .buckets_count = ARRAY_SIZE(seconds),
		       .max_series = 32 },
	[RETRIES] = { .name = "gpu_scheduler_kube_retries_total",
		      .help = "Requests sent again, by the answer that was the reason.",
		      .type = METRIC_COUNTER,
		      LABELS("verb", "code") },
	[IN_FLIGHT] = { .name = "gpu_scheduler_kube_requests_in_flight",
			.help = "Requests on their way, watches left out.",
			.type = METRIC_GAUGE },
	[RESTARTS] = { .name = "gpu_scheduler_kube_watch_restarts_total",
		       .help = "Watches begun anew, by why the former one ended.",
		       .type = METRIC_COUNTER,
		       LABELS("resource", "reason") },
	[OBJECTS] = { .name = "gpu_scheduler_kube_cache_objects",
		      .help = "Objects in the cache.",
		      .type = METRIC_GAUGE,
		      LABELS("resource") },
	[BYTES] = { .name = "gpu_scheduler_kube_cache_bytes",
		    .help = "Memory of the cached objects.",
		    .type = METRIC_GAUGE,
		    LABELS("resource") },
	[LIVE] = { .name = "gpu_scheduler_kube_cache_live",
		   .help = "1 if the cache is complete and its watch is open.",
		   .type = METRIC_GAUGE,
		   LABELS("resource") },
	[HEARD] = { .name = "gpu_scheduler_kube_cache_heard_timestamp_seconds",
		    .help = "When the server was last heard on the watch, in seconds since 1970.",
		    .type = METRIC_GAUGE,
		    LABELS("resource") },
	[VERSION] = { .name = "gpu_scheduler_kube_cache_resource_version",
		      .help = "The newest resourceVersion that the watch has shown.",
		      .type = METRIC_GAUGE,
		      LABELS("resource") },
	[EVENTS] = { .name = "gpu_scheduler_kube_events_total",
		     .help = "Events by what became of them: sent, series, dropped, failed.",
		     .type = METRIC_COUNTER,
		     LABELS("outcome"),
		     .max_series = 8 },
};

struct kube_telemetry *kube_telemetry_new(struct metrics *metrics, const struct clock *clock)
{
	struct kube_telemetry *telemetry = calloc(1, sizeof(*telemetry));
	if (!telemetry)
		return NULL;
	telemetry->clock = clock;
	for (unsigned i = 0; metrics && i < METRICS; i++) {
		int result = metrics_add(metrics, &options[i], &telemetry->metrics[i], NULL);
		if (result == -EEXIST)
			telemetry->metrics[i] = metrics_find(metrics, options[i].name);
		if (!telemetry->metrics[i]) {
			free(telemetry);
			return NULL;
		}
	}
	return telemetry;
}

void kube_telemetry_free(struct kube_telemetry *telemetry)
{
	free(telemetry);
}

/* NULL if nobody counts. */
static struct metric *metric_of(const struct kube_telemetry *telemetry, unsigned which)
{
	return telemetry ? telemetry->metrics[which] : NULL;
}

#define CODE_MAX     16
#define RESOURCE_MAX 128

static const char *code_text(int code, char *text)
{
	if (code <= 0)
		return "none";
	snprintf(text, CODE_MAX, "%d", code);
	return text;
}

void kube_telemetry_request(struct kube_telemetry *telemetry, const char *verb,
			    const char *resource, int code, uint64_t took_ns)
{
	struct metric *requests = metric_of(telemetry, REQUESTS);
	char text[CODE_MAX];
	if (!requests)
		return;
	metric_inc(requests, METRIC_LABELS(verb, resource, code_text(code, text)), 1);
	if (took_ns)
		metric_observe(telemetry->metrics[DURATION], METRIC_LABELS(verb),
			       (double)took_ns / 1e9);
}

void kube_telemetry_retry(struct kube_telemetry *telemetry, const char *verb, int code)
{
	struct metric *retries = metric_of(telemetry, RETRIES);
	char text[CODE_MAX];
	if (retries)
		metric_inc(retries, METRIC_LABELS(verb, code_text(code, text)), 1);
}

void kube_telemetry_in_flight(struct kube_telemetry *telemetry, uint32_t count)
{
	struct metric *in_flight = metric_of(telemetry, IN_FLIGHT);
	if (in_flight)
		metric_set(in_flight, METRIC_NO_LABELS, count);
}

void kube_telemetry_watch(struct kube_telemetry *telemetry, const char *resource,
			  const char *reason)
{
	struct metric *restarts = metric_of(telemetry, RESTARTS);
	if (restarts)
		metric_inc(restarts, METRIC_LABELS(resource, reason), 1);
}

/* The moment by the wall clock: how long ago it was is known by the monotonic one. */
static double wall_s(const struct clock *clock, uint64_t monotonic_ms)
{
	uint64_t now_ms = clock_monotonic_ms(clock);
	double ago_s = (double)(now_ms - MIN(monotonic_ms, now_ms)) / 1e3;
	return (double)clock_wall_ns(clock) / 1e9 - ago_s;
}

void kube_telemetry_cache(struct kube_telemetry *telemetry, const struct kube_kind *kind,
			  const struct kube_cache_figures *figures)
{
	char resource[RESOURCE_MAX];
	if (!metric_of(telemetry, OBJECTS))
		return;
	snprintf(resource, sizeof(resource), "%s%s%s", kind->plural, *kind->group ? "." : "",
		 kind->group);
	struct metric *const *metrics = telemetry->metrics;
	if (!figures) {
		for (unsigned which = OBJECTS; which <= VERSION; which++)
			metric_forget(metrics[which], METRIC_LABELS(resource));
		return;
	}
	metric_set(metrics[OBJECTS], METRIC_LABELS(resource), figures->objects);
	metric_set(metrics[BYTES], METRIC_LABELS(resource), (double)figures->bytes);
	metric_set(metrics[LIVE], METRIC_LABELS(resource), figures->live);
	if (figures->heard_ms)
		metric_set(metrics[HEARD], METRIC_LABELS(resource),
			   wall_s(telemetry->clock, figures->heard_ms));
	uint64_t version;
	if (figures->version &&
	    parse_u64(figures->version, strlen(figures->version), &version) == 0)
		metric_set(metrics[VERSION], METRIC_LABELS(resource), (double)version);
}

void kube_telemetry_event(struct kube_telemetry *telemetry, enum kube_event_outcome outcome)
{
	static const char *const outcomes[] = { "sent", "series", "dropped", "failed" };
	struct metric *events = metric_of(telemetry, EVENTS);
	if (events)
		metric_inc(events, METRIC_LABELS(outcomes[outcome]), 1);
}
