/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/timestamp.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>

#define NS_PER_S    1000000000
#define FORM_LENGTH 19 /* "2026-01-31T08:05:09" */

struct date {
	int year, month, day, hour, minute, second;
};

static int number(const char *s, size_t n)
{
	int value = 0;
	for (size_t i = 0; i < n; i++)
		value = value * 10 + (s[i] - '0');
	return value;
}

/* Whether s has the form: '0' stands for any digit, the rest for itself. */
static bool has_form(const char *s, const char *form)
{
	for (; *form; s++, form++)
		if (*form == '0' ? !isdigit((unsigned char)*s)
				 : toupper((unsigned char)*s) != *form)
			return false;
	return true;
}

static int days_in(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return days[month - 1] + (month == 2 && leap);
}

static bool is_date(const struct date *date)
{
	return date->month >= 1 && date->month <= 12 && date->day >= 1 &&
	       date->day <= days_in(date->year, date->month) && date->hour <= 23 &&
	       date->minute <= 59 && date->second <= 60;
}

/* Days since 1970-01-01, counting years from March so that leap days come last. */
static int64_t days_since_1970(const struct date *date)
{
	int64_t year = date->year - (date->month <= 2);
	int64_t month = (date->month + 9) % 12;
	int64_t day_of_year = (153 * month + 2) / 5 + date->day - 1;
	return 365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719468;
}

/* The digits behind a point, as nanoseconds; *at moves behind them. */
static int64_t fraction(const char **at, const char *end)
{
	int64_t ns = 0, unit = NS_PER_S / 10;
	for (; *at < end && isdigit((unsigned char)**at); (*at)++, unit /= 10)
		ns += unit * (**at - '0');
	return ns;
}

/* "Z" or "+01:00", as seconds; it must reach to the end. */
static int offset(const char *at, const char *end, int *ret)
{
	if (end - at == 1 && toupper((unsigned char)*at) == 'Z') {
		*ret = 0;
		return 0;
	}
	if (end - at != 6 || (*at != '+' && *at != '-') || !has_form(at + 1, "00:00"))
		return -EINVAL;
	int hours = number(at + 1, 2), minutes = number(at + 4, 2);
	if (hours > 23 || minutes > 59)
		return -EINVAL;
	*ret = (hours * 60 + minutes) * (*at == '-' ? -60 : 60);
	return 0;
}

int timestamp_parse(const char *s, size_t n, int64_t *ret_wall_ns)
{
	int zone = 0;
	int64_t ns = 0;
	if (n <= FORM_LENGTH || !has_form(s, "0000-00-00T00:00:00"))
		return -EINVAL;
	struct date date = { number(s, 4),	number(s + 5, 2),  number(s + 8, 2),
			     number(s + 11, 2), number(s + 14, 2), number(s + 17, 2) };
	const char *at = s + FORM_LENGTH, *end = s + n;
	if (*at == '.') {
		const char *digits = ++at;
		ns = fraction(&at, end);
		if (at == digits)
			return -EINVAL;
	}
	if (!is_date(&date) || offset(at, end, &zone) < 0)
		return -EINVAL;
	if (date.year < 1678 || date.year > 2261)
		return -ERANGE;
	int64_t seconds = days_since_1970(&date) * 86400 + date.hour * 3600 + date.minute * 60 +
			  date.second - zone;
	*ret_wall_ns = seconds * NS_PER_S + ns;
	return 0;
}
