/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include <errno.h>
#include <stdbool.h>

/* Looks at every byte even after an overflow: "99999999999999999999x" is no
 * number, rather than one that is too large. */
int parse_u64(const char *s, size_t n, uint64_t *ret)
{
	uint64_t value = 0;
	bool overflow = false;
	if (n == 0)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		overflow = overflow || MUL_OVERFLOW(value, 10u, &value) ||
			   ADD_OVERFLOW(value, (unsigned)(s[i] - '0'), &value);
	}
	if (overflow)
		return -ERANGE;
	*ret = value;
	return 0;
}

int parse_i64(const char *s, size_t n, int64_t *ret)
{
	bool negative = n > 0 && s[0] == '-';
	uint64_t value;
	int result = parse_u64(s + negative, n - negative, &value);
	if (result < 0)
		return result;
	if (value > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	/* negated as unsigned: -INT64_MIN has no int64_t */
	*ret = (int64_t)(negative ? -value : value);
	return 0;
}

int parse_i32(const char *s, size_t n, int32_t *ret)
{
	int64_t value;
	int result = parse_i64(s, n, &value);
	if (result < 0)
		return result;
	if (value < INT32_MIN || value > INT32_MAX)
		return -ERANGE;
	*ret = (int32_t)value;
	return 0;
}

int parse_u32(const char *s, size_t n, uint32_t *ret)
{
	uint64_t value;
	int result = parse_u64(s, n, &value);
	if (result < 0)
		return result;
	if (value > UINT32_MAX)
		return -ERANGE;
	*ret = (uint32_t)value;
	return 0;
}
