/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include "base/attr.h"
#include "test.h"

#include <errno.h>

TEST(integers_are_read_to_their_limits)
{
	static const struct {
		const char *text;
		int result;
		int64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "-0", 0, 0 },
		{ "007", 0, 7 },
		{ "-12", 0, -12 },
		{ "9223372036854775807", 0, INT64_MAX },
		{ "9223372036854775808", -ERANGE, 0 },
		{ "-9223372036854775808", 0, INT64_MIN },
		{ "-9223372036854775809", -ERANGE, 0 },
		{ "99999999999999999999999", -ERANGE, 0 },
		{ "99999999999999999999999x", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-", -EINVAL, 0 },
		{ "--1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t value = 0;
		int result = parse_i64(cases[i].text, strlen(cases[i].text), &value);
		CHECKF(result == cases[i].result, "\"%s\"", cases[i].text);
		CHECKF(value == cases[i].value, "\"%s\"", cases[i].text);
	}
}

TEST(smaller_types_have_their_own_limits)
{
	uint64_t u64;
	uint32_t u32;
	int32_t i32;
	CHECK(parse_u64("18446744073709551615", 20, &u64) == 0 && u64 == UINT64_MAX);
	CHECK_INT(parse_u64("18446744073709551616", 20, &u64), -ERANGE);
	CHECK_INT(parse_u64("-1", 2, &u64), -EINVAL);
	CHECK(parse_u32("4294967295", 10, &u32) == 0 && u32 == UINT32_MAX);
	CHECK_INT(parse_u32("4294967296", 10, &u32), -ERANGE);
	CHECK_INT(parse_u32("x", 1, &u32), -EINVAL);
	CHECK(parse_i32("-2147483648", 11, &i32) == 0 && i32 == INT32_MIN);
	CHECK_INT(parse_i32("-2147483649", 11, &i32), -ERANGE);
	CHECK_INT(parse_i32("2147483648", 10, &i32), -ERANGE);
	CHECK_INT(parse_i32("", 0, &i32), -EINVAL);
}

TEST(only_the_given_bytes_are_read)
{
	int64_t value;
	CHECK(parse_i64("1234", 2, &value) == 0 && value == 12);
}

TEST(sums_and_products_tell_when_they_overflow)
{
	int64_t sum;
	CHECK(ADD_OVERFLOW(INT64_MAX, 1, &sum));
	CHECK(SUB_OVERFLOW(INT64_MIN, 1, &sum));
	CHECK(MUL_OVERFLOW(INT64_MAX, 2, &sum));
	CHECK(!ADD_OVERFLOW(2, 3, &sum) && sum == 5);
}

TEST_MAIN()
