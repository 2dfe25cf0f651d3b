/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "wire/metrics.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>

static void metrics_freep(struct metrics **metrics)
{
	metrics_free(*metrics);
}

static struct metric *add(struct metrics *metrics, const struct metric_options *options)
{
	struct metric *metric = NULL;
	struct err err = ERR_INIT;
	CHECKF(metrics_add(metrics, options, &metric, &err) == 0, "%s", err.text);
	return metric;
}

static void check_text(struct metrics *metrics, const char *expected)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	metrics_write(metrics, &out);
	CHECK(!out.failed);
	CHECK_STR(out.s, expected);
}

static const char *const two_labels[] = { "verb", "code" };

TEST(metrics_come_by_name_and_series_by_labels)
{
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	struct metric *requests = add(metrics, &(struct metric_options){
						       .name = "b_requests_total",
						       .help = "Requests.",
						       .type = METRIC_COUNTER,
						       .labels = two_labels,
						       .labels_count = 2,
					       });
	struct metric *depth =
		add(metrics, &(struct metric_options){
				     .name = "a_depth", .help = "Depth.", .type = METRIC_GAUGE });
	metric_inc(requests, METRIC_LABELS("get", "404"), 1);
	metric_inc(requests, METRIC_LABELS("create", "201"), 2);
	metric_inc(requests, METRIC_LABELS("get", "200"), 1);
	metric_inc(requests, METRIC_LABELS("get", "200"), 1);
	metric_set(depth, METRIC_NO_LABELS, -1.5);
	check_text(metrics, "# HELP a_depth Depth.\n"
			    "# TYPE a_depth gauge\n"
			    "a_depth -1.5\n"
			    "# HELP b_requests_total Requests.\n"
			    "# TYPE b_requests_total counter\n"
			    "b_requests_total{verb=\"create\",code=\"201\"} 2\n"
			    "b_requests_total{verb=\"get\",code=\"200\"} 2\n"
			    "b_requests_total{verb=\"get\",code=\"404\"} 1\n");
	CHECK(metric_value(requests, METRIC_LABELS("get", "200")) == 2);
	CHECK(metric_value(requests, METRIC_LABELS("get", "500")) == 0);
}

TEST(a_histogram_sums_its_buckets)
{
	static const double bounds[] = { 0.1, 1, 10 };
	static const char *const label[] = { "verb" };
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	struct metric *metric = add(metrics, &(struct metric_options){
						     .name = "t_seconds",
						     .help = "Time.",
						     .type = METRIC_HISTOGRAM,
						     .labels = label,
						     .labels_count = 1,
						     .buckets = bounds,
						     .buckets_count = ARRAY_SIZE(bounds),
					     });
	static const double values[] = { 0.0625, 0.1, 0.5, 1, 20 };
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		metric_observe(metric, METRIC_LABELS("get"), values[i]);
	check_text(metrics, "# HELP t_seconds Time.\n"
			    "# TYPE t_seconds histogram\n"
			    "t_seconds_bucket{verb=\"get\",le=\"0.1\"} 2\n"
			    "t_seconds_bucket{verb=\"get\",le=\"1\"} 4\n"
			    "t_seconds_bucket{verb=\"get\",le=\"10\"} 4\n"
			    "t_seconds_bucket{verb=\"get\",le=\"+Inf\"} 5\n"
			    "t_seconds_sum{verb=\"get\"} 21.6625\n"
			    "t_seconds_count{verb=\"get\"} 5\n");
	CHECK(metric_value(metric, METRIC_LABELS("get")) == 5);
}

TEST(label_values_are_escaped_and_made_utf8)
{
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	static const char *const label[] = { "v" };
	struct metric *metric = add(metrics, &(struct metric_options){ .name = "g",
								       .help = "a\\b\n\"c\"",
								       .type = METRIC_GAUGE,
								       .labels = label,
								       .labels_count = 1 });
	metric_set(metric, METRIC_LABELS("q\"b\\n\nx\xff\xc3\xbc"), 1);
	check_text(metrics, "# HELP g a\\\\b\\n\"c\"\n"
			    "# TYPE g gauge\n"
			    "g{v=\"q\\\"b\\\\n\\nx\xef\xbf\xbd\xc3\xbc\"} 1\n");
}

TEST(numbers_are_short_and_exact)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "g 0\n" },		  { 3, "g 3\n" },
		{ 0.1, "g 0.1\n" },	  { 1.0 / 3, "g 0.3333333333333333\n" },
		{ 1e300, "g 1e+300\n" },  { 9007199254740991.0, "g 9007199254740991\n" },
		{ INFINITY, "g +Inf\n" }, { -INFINITY, "g -Inf\n" },
		{ NAN, "g NaN\n" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
		struct metric *metric =
			add(metrics, &(struct metric_options){
					     .name = "g", .help = "h", .type = METRIC_GAUGE });
		struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
		metric_set(metric, METRIC_NO_LABELS, cases[i].value);
		metrics_write(metrics, &out);
		CHECK_STR(strchr(strchr(out.s, '\n') + 1, '\n') + 1, cases[i].text);
	}
}

TEST(series_past_the_bound_are_counted_as_other)
{
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	struct metric *metric = add(metrics, &(struct metric_options){ .name = "n_total",
								       .help = "h",
								       .type = METRIC_COUNTER,
								       .labels = two_labels,
								       .labels_count = 2,
								       .max_series = 2 });
	metric_inc(metric, METRIC_LABELS("other", "other"), 1);
	for (unsigned i = 0; i < 1000; i++) {
		char code[16];
		snprintf(code, sizeof(code), "%u", i);
		metric_inc(metric, METRIC_LABELS("get", code), 1);
	}
	check_text(metrics, "# HELP n_total h\n"
			    "# TYPE n_total counter\n"
			    "n_total{verb=\"get\",code=\"0\"} 1\n"
			    "n_total{verb=\"get\",code=\"1\"} 1\n"
			    "n_total{verb=\"other\",code=\"other\"} 999\n");
	CHECK(metric_value(metric, METRIC_LABELS("other", "other")) == 999);
}

TEST(a_forgotten_series_makes_room)
{
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	static const char *const label[] = { "v" };
	struct metric *metric = add(metrics, &(struct metric_options){ .name = "g",
								       .help = "h",
								       .type = METRIC_GAUGE,
								       .labels = label,
								       .labels_count = 1,
								       .max_series = 1 });
	metric_set(metric, METRIC_LABELS("a"), 1);
	metric_forget(metric, METRIC_LABELS("a"));
	metric_forget(metric, METRIC_LABELS("never"));
	check_text(metrics, "");
	metric_set(metric, METRIC_LABELS("b"), 2);
	check_text(metrics, "# HELP g h\n# TYPE g gauge\ng{v=\"b\"} 2\n");
}

TEST(a_long_value_is_cut_between_characters)
{
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	static const char *const label[] = { "v" };
	struct metric *metric = add(metrics, &(struct metric_options){ .name = "g",
								       .help = "h",
								       .type = METRIC_GAUGE,
								       .labels = label,
								       .labels_count = 1 });
	char value[METRICS_VALUE_MAX + 10], expected[METRICS_VALUE_MAX + 64];
	memset(value, 'x', sizeof(value));
	value[METRICS_VALUE_MAX - 1] = '\xc3';
	value[METRICS_VALUE_MAX] = '\xbc';
	value[sizeof(value) - 1] = '\0';
	metric_set(metric, METRIC_LABELS(value), 1);
	snprintf(expected, sizeof(expected), "# HELP g h\n# TYPE g gauge\ng{v=\"%.*s\"} 1\n",
		 METRICS_VALUE_MAX - 1, value);
	check_text(metrics, expected);
}

TEST(what_prometheus_would_refuse_is_refused)
{
	static const char *const le[] = { "le" }, *const under[] = { "__a" },
				 *const dash[] = { "a-b" }, *const twice[] = { "a", "a" },
				 *const many[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
	static const double falling[] = { 2, 1 };
	static const struct metric_options cases[] = {
		{ .name = "", .help = "h", .type = METRIC_GAUGE },
		{ .name = "1a", .help = "h", .type = METRIC_GAUGE },
		{ .name = "a-b", .help = "h", .type = METRIC_GAUGE },
		{ .name = "a", .help = "", .type = METRIC_GAUGE },
		{ .name = "a", .help = "h", .type = METRIC_COUNTER },
		{ .name = "a_total", .help = "h", .type = METRIC_GAUGE },
		{ .name = "a",
		  .help = "h",
		  .type = METRIC_GAUGE,
		  .labels = le,
		  .labels_count = 1 },
		{ .name = "a",
		  .help = "h",
		  .type = METRIC_GAUGE,
		  .labels = under,
		  .labels_count = 1 },
		{ .name = "a",
		  .help = "h",
		  .type = METRIC_GAUGE,
		  .labels = dash,
		  .labels_count = 1 },
		{ .name = "a",
		  .help = "h",
		  .type = METRIC_GAUGE,
		  .labels = twice,
		  .labels_count = 2 },
		{ .name = "a",
		  .help = "h",
		  .type = METRIC_GAUGE,
		  .labels = many,
		  .labels_count = 9 },
		{ .name = "a", .help = "h", .type = METRIC_HISTOGRAM },
		{ .name = "a",
		  .help = "h",
		  .type = METRIC_HISTOGRAM,
		  .buckets = falling,
		  .buckets_count = 2 },
	};
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct metric *metric = NULL;
		struct err err = ERR_INIT;
		CHECKF(metrics_add(metrics, &cases[i], &metric, &err) == -EINVAL, "case %zu", i);
		CHECK(!metric && err.text[0]);
	}
}

TEST(a_name_is_taken_once)
{
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	const struct metric_options options = { .name = "g", .help = "h", .type = METRIC_GAUGE };
	struct metric *first = add(metrics, &options), *second = NULL;
	CHECK_INT(metrics_add(metrics, &options, &second, NULL), -EEXIST);
	CHECK(!second && metrics_find(metrics, "g") == first && !metrics_find(metrics, "h"));
}

static void *count(void *context)
{
	for (unsigned i = 0; i < 10000; i++)
		metric_inc(context, METRIC_LABELS(i % 2 ? "a" : "b", "x"), 1);
	return NULL;
}

TEST(threads_may_count_together)
{
	struct metrics *metrics CLEANUP(metrics_freep) = metrics_new();
	struct metric *metric = add(metrics, &(struct metric_options){ .name = "n_total",
								       .help = "h",
								       .type = METRIC_COUNTER,
								       .labels = two_labels,
								       .labels_count = 2 });
	pthread_t threads[3];
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		CHECK(pthread_create(&threads[i], NULL, count, metric) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK(metric_value(metric, METRIC_LABELS("a", "x")) == 15000);
	CHECK(metric_value(metric, METRIC_LABELS("b", "x")) == 15000);
}

TEST_MAIN()
