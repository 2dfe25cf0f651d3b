/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/metrics.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "base/vec.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct series {
	size_t key_len;
	double value; /* of a histogram: the sum */
	uint64_t count;
	uint64_t *buckets; /* behind the key; each for itself, not the sum of those below */
	char key[];	   /* the label values, each with its NUL */
};

struct metric {
	struct metrics *owner;
	char *name, *help;
	enum metric_type type;
	char *labels[METRICS_LABELS_MAX];
	size_t labels_count;
	double buckets[METRICS_BUCKETS_MAX];
	size_t buckets_count;
	uint32_t max_series;
	struct map by_key;
	struct series *other; /* made with the metric, shown once it counts something */
};

struct metrics {
	pthread_mutex_t lock;
	VEC(struct metric *) all;
};

struct metrics *metrics_new(void)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));
	if (metrics)
		pthread_mutex_init(&metrics->lock, NULL);
	return metrics;
}

static void metric_free(struct metric *metric)
{
	if (!metric)
		return;
	struct map_entry entry;
	for (uint32_t at = 0; map_next(&metric->by_key, &at, &entry);)
		free(entry.value);
	map_done(&metric->by_key);
	for (size_t i = 0; i < metric->labels_count; i++)
		free(metric->labels[i]);
	free(metric->other);
	free(metric->name);
	free(metric->help);
	free(metric);
}

void metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < metrics->all.len; i++)
		metric_free(metrics->all.items[i]);
	vec_done(&metrics->all);
	pthread_mutex_destroy(&metrics->lock);
	free(metrics);
}

static bool name_is_valid(const char *name, bool colons)
{
	if (!name || !name[0] || isdigit((unsigned char)name[0]))
		return false;
	for (const char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c) && *c != '_' && !(colons && *c == ':'))
			return false;
	}
	return true;
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), end_len = strlen(end);
	return len >= end_len && strcmp(s + len - end_len, end) == 0;
}

static int check_labels(const struct metric_options *options, struct err *err)
{
	if (options->labels_count > METRICS_LABELS_MAX)
		return err_set(err, EINVAL, "metric %s has more than %d labels", options->name,
			       METRICS_LABELS_MAX);
	for (size_t i = 0; i < options->labels_count; i++) {
		const char *label = options->labels[i];
		if (!name_is_valid(label, false) || strncmp(label, "__", 2) == 0 ||
		    strcmp(label, "le") == 0)
			return err_set(err, EINVAL, "metric %s has the label \"%s\"",
				       options->name, label);
		for (size_t j = 0; j < i; j++) {
			if (strcmp(label, options->labels[j]) == 0)
				return err_set(err, EINVAL, "metric %s has the label %s twice",
					       options->name, label);
		}
	}
	return 0;
}

static int check_buckets(const struct metric_options *options, struct err *err)
{
	bool histogram = options->type == METRIC_HISTOGRAM;
	if (histogram != (options->buckets_count > 0) ||
	    options->buckets_count > METRICS_BUCKETS_MAX)
		return err_set(err, EINVAL, "metric %s has %zu buckets", options->name,
			       options->buckets_count);
	for (size_t i = 0; i < options->buckets_count; i++) {
		if (!isfinite(options->buckets[i]) ||
		    (i && options->buckets[i] <= options->buckets[i - 1]))
			return err_set(err, EINVAL, "buckets of metric %s do not ascend",
				       options->name);
	}
	return 0;
}

static int check_options(const struct metric_options *options, struct err *err)
{
	if (!name_is_valid(options->name, true))
		return err_set(err, EINVAL, "not a name for a metric: \"%s\"", options->name);
	if (!options->help || !options->help[0])
		return err_set(err, EINVAL, "metric %s has no help", options->name);
	if ((options->type == METRIC_COUNTER) != ends_with(options->name, "_total"))
		return err_set(err, EINVAL, "a counter, and nothing else, ends with _total: %s",
			       options->name);
	int result = check_labels(options, err);
	return result < 0 ? result : check_buckets(options, err);
}

static struct series *series_new(const struct metric *metric, const char *key, size_t key_len)
{
	size_t at = (sizeof(struct series) + key_len + 7) & ~(size_t)7;
	struct series *series = calloc(1, at + metric->buckets_count * sizeof(uint64_t));
	if (!series)
		return NULL;
	memcpy(series->key, key, key_len);
	series->key_len = key_len;
	series->buckets = (uint64_t *)((char *)series + at);
	return series;
}

static bool metric_fill(struct metric *metric, const struct metric_options *options)
{
	char key[METRICS_LABELS_MAX * sizeof("other")];
	size_t key_len = 0;
	metric->name = strdup(options->name);
	metric->help = strdup(options->help);
	bool complete = metric->name && metric->help;
	for (size_t i = 0; i < options->labels_count; i++) {
		metric->labels[metric->labels_count++] = strdup(options->labels[i]);
		complete = complete && metric->labels[i];
		memcpy(key + key_len, "other", sizeof("other"));
		key_len += sizeof("other");
	}
	if (options->buckets_count)
		memcpy(metric->buckets, options->buckets, options->buckets_count * sizeof(double));
	metric->buckets_count = options->buckets_count;
	metric->other = series_new(metric, key, key_len);
	return complete && metric->other;
}

/* Kept in order of their names, as they are shown. */
static int insert(struct metrics *metrics, struct metric *metric, struct err *err)
{
	size_t at = 0;
	while (at < metrics->all.len && strcmp(metrics->all.items[at]->name, metric->name) < 0)
		at++;
	if (at < metrics->all.len && strcmp(metrics->all.items[at]->name, metric->name) == 0)
		return err_set(err, EEXIST, "metric %s is there already", metric->name);
	if (vec_push(&metrics->all, metric) < 0)
		return err_set(err, ENOMEM, "out of memory");
	memmove(metrics->all.items + at + 1, metrics->all.items + at,
		(metrics->all.len - 1 - at) * sizeof(struct metric *));
	metrics->all.items[at] = metric;
	return 0;
}

int metrics_add(struct metrics *metrics, const struct metric_options *options, struct metric **ret,
		struct err *err)
{
	int result = check_options(options, err);
	if (result < 0)
		return result;
	struct metric *metric = calloc(1, sizeof(*metric));
	if (!metric || !metric_fill(metric, options)) {
		metric_free(metric);
		return err_set(err, ENOMEM, "out of memory");
	}
	metric->owner = metrics;
	metric->type = options->type;
	metric->max_series = options->max_series ? options->max_series : METRICS_SERIES_MAX;
	pthread_mutex_lock(&metrics->lock);
	result = insert(metrics, metric, err);
	pthread_mutex_unlock(&metrics->lock);
	if (result < 0) {
		metric_free(metric);
		return result;
	}
	*ret = metric;
	return 0;
}

struct metric *metrics_find(struct metrics *metrics, const char *name)
{
	struct metric *found = NULL;
	pthread_mutex_lock(&metrics->lock);
	for (size_t i = 0; i < metrics->all.len && !found; i++) {
		if (strcmp(metrics->all.items[i]->name, name) == 0)
			found = metrics->all.items[i];
	}
	pthread_mutex_unlock(&metrics->lock);
	return found;
}

struct key {
	char bytes[METRICS_LABELS_MAX * (METRICS_VALUE_MAX + 1)];
	size_t len;
};

static void key_make(const struct metric *metric, const char *const *labels, struct key *key)
{
	key->len = 0;
	for (size_t i = 0; i < metric->labels_count; i++) {
		const char *value = labels[i] ? labels[i] : "";
		size_t len = strnlen(value, METRICS_VALUE_MAX);
		/* not inside a character */
		while (len == METRICS_VALUE_MAX && len > METRICS_VALUE_MAX - 4 &&
		       (value[len] & 0xc0) == 0x80)
			len--;
		memcpy(key->bytes + key->len, value, len);
		key->bytes[key->len + len] = '\0';
		key->len += len + 1;
	}
}

/* A metric without labels has `other` alone. */
static struct series *series_find(const struct metric *metric, const struct key *key)
{
	struct series *other = metric->other;
	if (other->key_len == key->len && memcmp(other->key, key->bytes, key->len) == 0)
		return other;
	return map_get(&metric->by_key, key->bytes, key->len);
}

/* The series of these labels, made if it is new; `other` if it cannot be. */
static struct series *series_of(struct metric *metric, const char *const *labels)
{
	struct key key;
	key_make(metric, labels, &key);
	struct series *series = series_find(metric, &key);
	if (series || metric->by_key.len >= metric->max_series)
		return series ? series : metric->other;
	series = series_new(metric, key.bytes, key.len);
	if (!series)
		return metric->other;
	if (map_put(&metric->by_key, series->key, series->key_len, series) < 0) {
		free(series);
		return metric->other;
	}
	return series;
}

void metric_inc(struct metric *metric, const char *const *labels, double by)
{
	assert(metric->type != METRIC_HISTOGRAM);
	assert(metric->type == METRIC_GAUGE || by >= 0);
	pthread_mutex_lock(&metric->owner->lock);
	struct series *series = series_of(metric, labels);
	series->value += by;
	series->count++;
	pthread_mutex_unlock(&metric->owner->lock);
}

void metric_set(struct metric *metric, const char *const *labels, double value)
{
	assert(metric->type == METRIC_GAUGE);
	pthread_mutex_lock(&metric->owner->lock);
	struct series *series = series_of(metric, labels);
	series->value = value;
	series->count++;
	pthread_mutex_unlock(&metric->owner->lock);
}

void metric_observe(struct metric *metric, const char *const *labels, double value)
{
	assert(metric->type == METRIC_HISTOGRAM);
	size_t bucket = 0;
	while (bucket < metric->buckets_count && !(value <= metric->buckets[bucket]))
		bucket++;
	pthread_mutex_lock(&metric->owner->lock);
	struct series *series = series_of(metric, labels);
	if (bucket < metric->buckets_count)
		series->buckets[bucket]++;
	series->value += value;
	series->count++;
	pthread_mutex_unlock(&metric->owner->lock);
}

void metric_forget(struct metric *metric, const char *const *labels)
{
	struct key key;
	key_make(metric, labels, &key);
	pthread_mutex_lock(&metric->owner->lock);
	struct series *series = map_get(&metric->by_key, key.bytes, key.len);
	if (series) {
		map_del(&metric->by_key, key.bytes, key.len);
		free(series);
	}
	pthread_mutex_unlock(&metric->owner->lock);
}

double metric_value(struct metric *metric, const char *const *labels)
{
	struct key key;
	key_make(metric, labels, &key);
	pthread_mutex_lock(&metric->owner->lock);
	const struct series *series = series_find(metric, &key);
	double value = 0;
	if (series)
		value = metric->type == METRIC_HISTOGRAM ? (double)series->count : series->value;
	pthread_mutex_unlock(&metric->owner->lock);
	return value;
}

/* The shortest text that reads as the same number. */
static void add_number(struct strbuf *out, double number)
{
	if (isnan(number)) {
		strbuf_puts(out, "NaN");
	} else if (isinf(number)) {
		strbuf_puts(out, number > 0 ? "+Inf" : "-Inf");
	} else if (number == floor(number) && fabs(number) < 9007199254740992.0) {
		strbuf_addf(out, "%.0f", number);
	} else {
		char text[32];
		int digits = 15;
		do
			snprintf(text, sizeof(text), "%.*g", digits, number);
		while (strtod(text, NULL) != number && digits++ < 17);
		strbuf_puts(out, text);
	}
}

/* Help escapes backslash and line end; a value the quote as well.  What is not UTF-8 would
 * have the whole text refused. */
static void add_escaped(struct strbuf *out, const char *s, bool quote)
{
	for (size_t len = strlen(s), i = 0; i < len;) {
		size_t n = utf8_length(s + i, len - i);
		if (s[i] == '\\')
			strbuf_puts(out, "\\\\");
		else if (s[i] == '\n')
			strbuf_puts(out, "\\n");
		else if (quote && s[i] == '"')
			strbuf_puts(out, "\\\"");
		else if (n)
			strbuf_add(out, s + i, n);
		else
			strbuf_puts(out, "\xef\xbf\xbd"); /* U+FFFD */
		i += n ? n : 1;
	}
}

/* `name_suffix{label="value",le="0.5"} ` */
static void add_labels(struct strbuf *out, const struct metric *metric,
		       const struct series *series, const char *suffix, const double *bound)
{
	strbuf_puts(out, metric->name);
	strbuf_puts(out, suffix);
	if (metric->labels_count || bound)
		strbuf_putc(out, '{');
	const char *value = series->key;
	for (size_t i = 0; i < metric->labels_count; i++, value += strlen(value) + 1) {
		strbuf_addf(out, "%s%s=\"", i ? "," : "", metric->labels[i]);
		add_escaped(out, value, true);
		strbuf_putc(out, '"');
	}
	if (bound) {
		strbuf_addf(out, "%sle=\"", metric->labels_count ? "," : "");
		add_number(out, *bound);
		strbuf_putc(out, '"');
	}
	if (metric->labels_count || bound)
		strbuf_putc(out, '}');
	strbuf_putc(out, ' ');
}

static void write_histogram(struct strbuf *out, const struct metric *metric,
			    const struct series *series)
{
	uint64_t below = 0;
	for (size_t i = 0; i < metric->buckets_count; i++) {
		below += series->buckets[i];
		add_labels(out, metric, series, "_bucket", &metric->buckets[i]);
		strbuf_addf(out, "%llu\n", (unsigned long long)below);
	}
	const double infinite = INFINITY;
	add_labels(out, metric, series, "_bucket", &infinite);
	strbuf_addf(out, "%llu\n", (unsigned long long)series->count);
	add_labels(out, metric, series, "_sum", NULL);
	add_number(out, series->value);
	strbuf_putc(out, '\n');
	add_labels(out, metric, series, "_count", NULL);
	strbuf_addf(out, "%llu\n", (unsigned long long)series->count);
}

static void write_series(struct strbuf *out, const struct metric *metric,
			 const struct series *series)
{
	if (metric->type == METRIC_HISTOGRAM) {
		write_histogram(out, metric, series);
		return;
	}
	add_labels(out, metric, series, "", NULL);
	add_number(out, series->value);
	strbuf_putc(out, '\n');
}

static int compare_series(const void *a, const void *b)
{
	const struct series *one = *(const struct series *const *)a;
	const struct series *two = *(const struct series *const *)b;
	int order = memcmp(one->key, two->key, MIN(one->key_len, two->key_len));
	return order ? order : (one->key_len > two->key_len) - (one->key_len < two->key_len);
}

static void write_metric(struct strbuf *out, const struct metric *metric)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };
	VEC(const struct series *) shown CLEANUP(vec_cleanup) = { 0 };
	if (vec_reserve(&shown, metric->by_key.len + 1) < 0) {
		out->failed = true;
		return;
	}
	struct map_entry entry;
	for (uint32_t at = 0; map_next(&metric->by_key, &at, &entry);)
		shown.items[shown.len++] = entry.value;
	if (metric->other->count || metric->labels_count == 0)
		shown.items[shown.len++] = metric->other;
	if (!shown.len)
		return;
	qsort(shown.items, shown.len, sizeof(shown.items[0]), compare_series);
	strbuf_addf(out, "# HELP %s ", metric->name);
	add_escaped(out, metric->help, false);
	strbuf_addf(out, "\n# TYPE %s %s\n", metric->name, types[metric->type]);
	for (size_t i = 0; i < shown.len; i++)
		write_series(out, metric, shown.items[i]);
}

void metrics_write(struct metrics *metrics, struct strbuf *out)
{
	pthread_mutex_lock(&metrics->lock);
	for (size_t i = 0; i < metrics->all.len; i++)
		write_metric(out, metrics->all.items[i]);
	pthread_mutex_unlock(&metrics->lock);
}
