/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/rng.h"
#include "kube/time.h"
#include "kube/timestamp.h"

#include <errno.h>

TEST(times_have_whole_seconds_and_micro_times_six_digits)
{
	static const struct {
		int64_t wall_ns;
		const char *time, *micro;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z" },
		{ INT64_C(1769846709000042999), "2026-01-31T08:05:09Z",
		  "2026-01-31T08:05:09.000042Z" },
		{ INT64_C(951782400123456789), "2000-02-29T00:00:00Z",
		  "2000-02-29T00:00:00.123456Z" },
		{ -1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z" },
		{ INT64_MAX, "2262-04-11T23:47:16Z", "2262-04-11T23:47:16.854775Z" },
		{ INT64_MIN, "1677-09-21T00:12:43Z", "1677-09-21T00:12:43.145224Z" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[KUBE_TIME_MAX];
		CHECK_STR(kube_time_format(rows[i].wall_ns, text), rows[i].time);
		CHECK_STR(kube_microtime_format(rows[i].wall_ns, text), rows[i].micro);
	}
}

TEST(what_is_written_is_read_again)
{
	struct rng rng;
	rng_seed(&rng, 3);
	for (unsigned i = 0; i < 2000; i++) {
		int64_t us = (int64_t)(rng_next(&rng) % UINT64_C(8000000000000000));
		int64_t again;
		char text[KUBE_TIME_MAX];
		kube_microtime_format(us * 1000, text);
		CHECKF(timestamp_parse(text, strlen(text), &again) == 0 && again == us * 1000,
		       "%s", text);
	}
}

TEST(durations_are_read_as_go_reads_them)
{
	static const struct {
		const char *text;
		int64_t ns;
	} rows[] = {
		{ "0", 0 },
		{ "0s", 0 },
		{ "-0", 0 },
		{ "5s", INT64_C(5000000000) },
		{ "+5s", INT64_C(5000000000) },
		{ "-5s", INT64_C(-5000000000) },
		{ "1h30m", INT64_C(5400000000000) },
		{ "1m30.918273645s", INT64_C(90918273645) },
		{ "300ms", INT64_C(300000000) },
		{ "1.5us", 1500 },
		{ "12\xc2\xb5s", 12000 },
		{ "12\xce\xbcs", 12000 },
		{ ".5s", INT64_C(500000000) },
		{ "1.s", INT64_C(1000000000) },
		{ "0.9ns", 0 },
		{ "0.333333333333333333333333h", INT64_C(1199999999999) },
		{ "0.100000000000000000000h", INT64_C(360000000000) },
		{ "9223372036854775807ns", INT64_MAX },
		{ "2562047h47m16.854775807s", INT64_MAX },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t ns = -7;
		CHECKF(kube_duration_parse(rows[i].text, strlen(rows[i].text), &ns) == 0, "%s",
		       rows[i].text);
		CHECKF(ns == rows[i].ns, "%s: %" PRId64, rows[i].text, ns);
	}
}

TEST(what_is_no_duration_is_refused)
{
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{ "", -EINVAL },
		{ "-", -EINVAL },
		{ "+", -EINVAL },
		{ "3", -EINVAL },
		{ "s", -EINVAL },
		{ ".s", -EINVAL },
		{ "1d", -EINVAL },
		{ "1 s", -EINVAL },
		{ "--1s", -EINVAL },
		{ "1s2", -EINVAL },
		{ "1.2.3s", -EINVAL },
		{ "0x1s", -EINVAL },
		{ "1S", -EINVAL },
		{ "9223372036854775808ns", -ERANGE },
		{ "2562048h", -ERANGE },
		{ "2562047h47m16.854775808s", -ERANGE },
		{ "99999999999999999999s", -ERANGE },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t ns = -7;
		CHECKF(kube_duration_parse(rows[i].text, strlen(rows[i].text), &ns) ==
			       rows[i].code,
		       "%s", rows[i].text);
		CHECK(ns == -7);
	}
}

TEST(durations_are_written_as_go_writes_them)
{
	static const struct {
		int64_t ns;
		const char *text;
	} rows[] = {
		{ 0, "0s" },
		{ 1, "1ns" },
		{ 1100, "1.1\xc2\xb5s" },
		{ 2200000, "2.2ms" },
		{ INT64_C(3300000000), "3.3s" },
		{ INT64_C(90000000000), "1m30s" },
		{ INT64_C(5400000000000), "1h30m0s" },
		{ INT64_C(3600000000001), "1h0m0.000000001s" },
		{ INT64_C(-5000000000), "-5s" },
		{ INT64_MAX, "2562047h47m16.854775807s" },
		{ INT64_MIN, "-2562047h47m16.854775808s" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[KUBE_TIME_MAX];
		int64_t again;
		CHECK_STR(kube_duration_format(rows[i].ns, text), rows[i].text);
		if (rows[i].ns != INT64_MIN) {
			CHECK_INT(kube_duration_parse(text, strlen(text), &again), 0);
			CHECK(again == rows[i].ns);
		}
	}
}

TEST_MAIN()
