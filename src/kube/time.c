/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/time.h"

#include "base/attr.h"
#include "base/num.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_S  INT64_C(1000000000)

/* Whole seconds, and the nanoseconds after them, 0 or more. */
static int64_t split(int64_t wall_ns, int64_t *ret_ns)
{
	int64_t seconds = wall_ns / NS_PER_S, ns = wall_ns % NS_PER_S;
	seconds -= ns < 0;
	*ret_ns = ns < 0 ? ns + NS_PER_S : ns;
	return seconds;
}

/* Appends two digits of the year, or of another part, and the mark behind them. */
static char *add_pair(char *at, int number, char mark)
{
	at[0] = (char)('0' + number / 10 % 10);
	at[1] = (char)('0' + number % 10);
	at[2] = mark;
	return at + 3;
}

/* "2026-01-31T08:05:09" and the mark; returns the end.  An int64_t of nanoseconds has
 * years of four digits only. */
static char *add_seconds(char *at, int64_t seconds, char mark)
{
	time_t when = (time_t)seconds;
	struct tm tm = { 0 };
	gmtime_r(&when, &tm);
	at = add_pair(at, (tm.tm_year + 1900) / 100, ' ') - 1;
	at = add_pair(at, tm.tm_year + 1900, '-');
	at = add_pair(at, tm.tm_mon + 1, '-');
	at = add_pair(at, tm.tm_mday, 'T');
	at = add_pair(at, tm.tm_hour, ':');
	at = add_pair(at, tm.tm_min, ':');
	return add_pair(at, tm.tm_sec, mark);
}

char *kube_time_format(int64_t wall_ns, char text[KUBE_TIME_MAX])
{
	int64_t ns, seconds = split(wall_ns, &ns);
	*add_seconds(text, seconds, 'Z') = '\0';
	return text;
}

char *kube_microtime_format(int64_t wall_ns, char text[KUBE_TIME_MAX])
{
	int64_t ns, seconds = split(wall_ns, &ns);
	char *at = add_seconds(text, seconds, '.');
	int us = (int)(ns / NS_PER_US);
	at = add_pair(at, us / 10000, ' ') - 1;
	at = add_pair(at, us / 100, ' ') - 1;
	*add_pair(at, us, 'Z') = '\0';
	return text;
}

static const struct unit {
	const char *name;
	int64_t ns;
} units[] = {
	{ "ns", 1 },
	{ "us", NS_PER_US },
	{ "\xc2\xb5s", NS_PER_US }, /* the micro sign, and the Greek letter */
	{ "\xce\xbcs", NS_PER_US },
	{ "ms", 1000 * NS_PER_US },
	{ "s", NS_PER_S },
	{ "m", 60 * NS_PER_S },
	{ "h", 3600 * NS_PER_S },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The unit is all up to the next digit or point. */
static int64_t read_unit(const char **at, const char *end)
{
	const char *start = *at;
	while (*at < end && !is_digit(**at) && **at != '.')
		(*at)++;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strlen(units[i].name) == (size_t)(*at - start) &&
		    memcmp(units[i].name, start, (size_t)(*at - start)) == 0)
			return units[i].ns;
	return 0;
}

/* The digits after a point, of a unit: from the last to the first, which is exact. */
static int64_t fraction_of(const char *digits, const char *end, int64_t unit_ns)
{
	int64_t ns = 0;
	while (end > digits)
		ns = (unit_ns * (*--end - '0') + ns) / 10;
	return ns;
}

/* One number with its unit, "1.5s". */
static int read_part(const char **at, const char *end, int64_t *ret_ns)
{
	const char *start = *at;
	int64_t whole = 0, ns;
	while (*at < end && is_digit(**at))
		(*at)++;
	size_t digits = (size_t)(*at - start);
	if (digits && parse_i64(start, digits, &whole) < 0)
		return -ERANGE;
	*at += *at < end && **at == '.';
	const char *fraction = *at;
	while (*at < end && is_digit(**at))
		(*at)++;
	const char *last = *at;
	int64_t unit = read_unit(at, end);
	if (unit == 0 || digits + (size_t)(last - fraction) == 0)
		return -EINVAL;
	if (MUL_OVERFLOW(whole, unit, &ns) ||
	    ADD_OVERFLOW(ns, fraction_of(fraction, last, unit), &ns))
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}

int kube_duration_parse(const char *s, size_t n, int64_t *ret_ns)
{
	const char *at = s, *end = s + n;
	bool negative = n > 0 && *at == '-';
	int64_t sum = 0, part;
	at += n > 0 && (*at == '-' || *at == '+');
	if (at == end)
		return -EINVAL;
	if (end - at == 1 && *at == '0') {
		*ret_ns = 0;
		return 0;
	}
	while (at < end) {
		int rc = read_part(&at, end, &part);
		if (rc < 0)
			return rc;
		if (ADD_OVERFLOW(sum, part, &sum))
			return -ERANGE;
	}
	*ret_ns = negative ? -sum : sum;
	return 0;
}

/* A number of units with as many digits after the point as it has. */
static char *add_decimal(char *at, uint64_t ns, uint64_t unit_ns, const char *unit)
{
	char digits[24];
	size_t len = 0;
	uint64_t rest = ns % unit_ns;
	for (uint64_t scale = unit_ns / 10; rest > 0 && scale > 0; scale /= 10) {
		/* cppcheck-suppress zerodivcond ; the loop's condition says so */
		digits[len++] = (char)('0' + rest / scale);
		rest %= scale;
	}
	digits[len] = '\0';
	return at + sprintf(at, "%" PRIu64 "%s%s%s", ns / unit_ns, len ? "." : "", digits, unit);
}

char *kube_duration_format(int64_t ns, char text[KUBE_TIME_MAX])
{
	uint64_t left = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	uint64_t second = NS_PER_S, minute = 60 * second, hour = 60 * minute;
	char *at = text;
	if (ns < 0)
		*at++ = '-';
	if (left == 0)
		memcpy(at, "0s", 3);
	else if (left < 1000)
		add_decimal(at, left, 1, "ns");
	else if (left < 1000000)
		add_decimal(at, left, 1000, "\xc2\xb5s");
	else if (left < second)
		add_decimal(at, left, 1000000, "ms");
	else {
		if (left >= hour)
			at += sprintf(at, "%" PRIu64 "h", left / hour);
		if (left >= minute)
			at += sprintf(at, "%" PRIu64 "m", left % hour / minute);
		add_decimal(at, left % minute, second, "s");
	}
	return text;
}
