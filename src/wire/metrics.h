/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - counters, gauges and histograms, and their text for Prometheus.
 *
 *	struct metric *requests;
 *	metrics_add(metrics, &(struct metric_options){
 *		.name = "gpu_scheduler_requests_total", .help = "Requests sent.",
 *		.type = METRIC_COUNTER, .labels = labels, .labels_count = 2 }, &requests, &err);
 *	metric_inc(requests, METRIC_LABELS("create", "leases"), 1);
 *
 * A metric has one series for each set of label values that was used.  Values come from
 * outside, so their number is bounded: what is past max_series is counted in one series
 * whose labels all say "other".
 *
 * Any thread: a registry has one lock, held for a look-up or while the text is made.
 * Nothing here fails once the metric is there; a series that memory cannot hold is
 * counted as "other".
 */
#ifndef GS_WIRE_METRICS_H
#define GS_WIRE_METRICS_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct metric;
struct metrics;
struct strbuf;

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define METRICS_LABELS_MAX   8
#define METRICS_BUCKETS_MAX  32
#define METRICS_VALUE_MAX    128 /* bytes of a label's value; more are cut */
#define METRICS_SERIES_MAX   256 /* unless a metric says otherwise */

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_options {
	const char *name; /* [a-zA-Z_:][a-zA-Z0-9_:]*; a counter ends with _total */
	const char *help;
	enum metric_type type;
	const char *const *labels; /* [a-zA-Z_][a-zA-Z0-9_]*, not "le", not "__..." */
	size_t labels_count;
	const double *buckets; /* of a histogram: upper bounds, ascending, without +Inf */
	size_t buckets_count;
	uint32_t max_series; /* 0: METRICS_SERIES_MAX */
};

struct metrics *metrics_new(void);	    /* NULL: out of memory */
void metrics_free(struct metrics *metrics); /* with all its metrics */

/* Names, help and buckets are copied.  0, -EINVAL (a name that Prometheus would refuse),
 * -EEXIST, -ENOMEM. */
int metrics_add(struct metrics *metrics, const struct metric_options *options, struct metric **ret,
		struct err *err);

/* The metric of that name, or NULL. */
struct metric *metrics_find(struct metrics *metrics, const char *name);

/* As many values as the metric has labels. */
#define METRIC_LABELS(...) ((const char *const[]){ __VA_ARGS__ })
#define METRIC_NO_LABELS   ((const char *const *)0)

/* A counter or a gauge; a counter only grows. */
void metric_inc(struct metric *metric, const char *const *labels, double by);
void metric_set(struct metric *metric, const char *const *labels, double value); /* gauge */
void metric_observe(struct metric *metric, const char *const *labels,
		    double value); /* histogram */

/* The series is not shown any more. */
void metric_forget(struct metric *metric, const char *const *labels);

/* The value of a counter or gauge, the count of a histogram; 0 if there is no such
 * series. */
double metric_value(struct metric *metric, const char *const *labels);

/* Appends all metrics by name, and their series by labels: the same state gives the same
 * text.  Those without a series are left out, unless they have no labels. */
void metrics_write(struct metrics *metrics, struct strbuf *out);

#endif
