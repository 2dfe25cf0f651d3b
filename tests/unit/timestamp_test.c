/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "kube/timestamp.h"

#include <errno.h>

#define S INT64_C(1000000000)

TEST(times_and_what_they_are)
{
	static const struct {
		const char *text;
		int64_t wall_ns;
	} rows[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "1970-01-01T00:00:01.5Z", S + S / 2 },
		{ "1969-12-31T23:59:59Z", -S },
		{ "2026-01-02T03:04:05Z", 1767323045 * S },
		{ "2026-01-02t03:04:05z", 1767323045 * S },
		{ "2026-01-02T03:04:05.000001Z", 1767323045 * S + 1000 },
		{ "2026-01-02T03:04:05.123456789987Z", 1767323045 * S + 123456789 },
		{ "2026-01-02T04:04:05+01:00", 1767323045 * S },
		{ "2026-01-01T21:34:05-05:30", 1767323045 * S },
		{ "2024-02-29T00:00:00Z", 1709164800 * S },
		{ "2000-02-29T23:59:59Z", 951868799 * S },
		{ "2016-12-31T23:59:60Z", 1483228800 * S },
		{ "1900-03-01T00:00:00Z", -2203891200 * S },
		{ "2261-12-31T23:59:59Z", 9214646399 * S },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t wall_ns = 42;
		CHECKF(timestamp_parse(rows[i].text, strlen(rows[i].text), &wall_ns) == 0, "%s",
		       rows[i].text);
		CHECKF(wall_ns == rows[i].wall_ns, "%s is %" PRId64, rows[i].text, wall_ns);
	}
}

TEST(what_is_no_time)
{
	static const char *const rows[] = {
		"",
		"2026",
		"2026-01-02",
		"2026-01-02T03:04:05",
		"2026-01-02 03:04:05Z",
		"2026-1-2T03:04:05Z",
		"2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z",
		"2026-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z",
		"2026-04-31T00:00:00Z",
		"2026-01-00T00:00:00Z",
		"2026-01-01T24:00:00Z",
		"2026-01-01T00:60:00Z",
		"2026-01-01T00:00:61Z",
		"2026-01-01T00:00:00.Z",
		"2026-01-01T00:00:00.5",
		"2026-01-01T00:00:00ZZ",
		"2026-01-01T00:00:00+1:00",
		"2026-01-01T00:00:00+24:00",
		"2026-01-01T00:00:00+0100",
		"2026-01-01T00:00:00+01:60",
		"+026-01-01T00:00:00Z",
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t wall_ns = 42;
		CHECKF(timestamp_parse(rows[i], strlen(rows[i]), &wall_ns) == -EINVAL, "%s",
		       rows[i]);
		CHECK_INT(wall_ns, 42);
	}
}

TEST(years_that_nanoseconds_do_not_reach)
{
	int64_t wall_ns;
	CHECK_INT(timestamp_parse("0001-01-01T00:00:00Z", 20, &wall_ns), -ERANGE);
	CHECK_INT(timestamp_parse("9999-12-31T00:00:00Z", 20, &wall_ns), -ERANGE);
}

TEST(every_day_of_four_centuries_comes_back)
{
	for (int64_t day = -60000; day < 86000; day++) {
		char text[CLOCK_TEXT_MAX];
		int64_t expected = (day * 86400 + 12345) * S + 678 * (S / 1000), wall_ns;
		clock_format(expected, text);
		CHECKF(timestamp_parse(text, strlen(text), &wall_ns) == 0, "%s", text);
		CHECKF(wall_ns == expected, "%s", text);
	}
}

TEST_MAIN()
