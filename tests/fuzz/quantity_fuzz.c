/* SPDX-License-Identifier: Apache-2.0 */
/* The reader agrees with a second, slow one: a regular expression says what is a
 * quantity, and decimal digits are doubled one power of two at a time. */
#include "fuzz.h"

#include "base/err.h"
#include "wire/quantity.h"

#include <regex.h>
#include <stdbool.h>
#include <string.h>

#define TEXT_MAX   200
#define DIGITS_MAX 400

static const char pattern[] = "^([+-]?)([0-9]*)(\\.?)([0-9]*)"
			      "(|[numkMGTPE]|[KMGTPE]i|[eE]([+-]?[0-9]+))$";

/* A whole number in decimal digits, the highest first. */
struct digits {
	char d[DIGITS_MAX];
	int len;
};

static void append(struct digits *digits, const char *s, regoff_t from, regoff_t to)
{
	for (regoff_t i = from; i < to; i++)
		digits->d[digits->len++] = s[i];
}

/* In the manner of school: from the last digit, carry one. */
static void twice(struct digits *digits)
{
	int carry = 0;
	for (int i = digits->len; i-- > 0;) {
		int sum = 2 * (digits->d[i] - '0') + carry;
		digits->d[i] = (char)('0' + sum % 10);
		carry = sum / 10;
	}
	if (carry) {
		memmove(digits->d + 1, digits->d, (size_t)digits->len++);
		digits->d[0] = '1';
	}
}

/* Zeros appended, or digits cut from the end and the rest rounded up. */
static void shift(struct digits *digits, int64_t places)
{
	bool rest = false;
	for (; places < 0 && digits->len > 0; places++)
		rest |= digits->d[--digits->len] != '0';
	for (; places > 0 && digits->len < DIGITS_MAX; places--)
		digits->d[digits->len++] = '0';
	int i = digits->len;
	while (rest && i > 0 && digits->d[i - 1] == '9')
		digits->d[--i] = '0';
	if (rest && i > 0)
		digits->d[i - 1]++;
	else if (rest) {
		memmove(digits->d + 1, digits->d, (size_t)digits->len++);
		digits->d[0] = '1';
	}
}

static int128 value_or(const struct digits *digits, const char *most)
{
	int start = 0, most_len = (int)strlen(most);
	while (start < digits->len && digits->d[start] == '0')
		start++;
	int len = digits->len - start;
	bool above = len > most_len ||
		     (len == most_len && memcmp(digits->d + start, most, (size_t)len) > 0);
	int128 value = 0;
	for (int i = 0; i < (above ? most_len : len); i++)
		value = value * 10 + ((above ? most[i] : digits->d[start + i]) - '0');
	return value;
}

static int64_t decimal_exponent(const char *s, const regmatch_t *m)
{
	static const char letters[] = "num kMGTPE"; /* from 10^-9 in steps of 1000 */
	if (m[6].rm_so >= 0) {
		long long exponent = strtoll(s + m[6].rm_so, NULL, 10);
		return exponent > 100000 ? 100000 : exponent < -100000 ? -100000 : exponent;
	}
	const char *letter = m[5].rm_eo > m[5].rm_so ? strchr(letters, s[m[5].rm_so]) : NULL;
	return letter ? (letter - letters) * 3 - 9 : 0;
}

/* False: not a quantity. */
static bool slow_parse(const char *s, int128 *ret)
{
	static regex_t regex;
	static bool compiled;
	if (!compiled)
		REQUIRE(regcomp(&regex, pattern, REG_EXTENDED) == 0);
	compiled = true;
	regmatch_t m[7];
	if (regexec(&regex, s, 7, m, 0) != 0)
		return false;
	struct digits digits = { .len = 0 };
	append(&digits, s, m[2].rm_so, m[2].rm_eo);
	append(&digits, s, m[4].rm_so, m[4].rm_eo);
	if (digits.len == 0)
		return false;
	int64_t fraction = m[4].rm_eo - m[4].rm_so;
	bool binary = m[5].rm_eo - m[5].rm_so == 2 && s[m[5].rm_eo - 1] == 'i';
	if (binary) {
		static const char letters[] = "KMGTPE";
		long power = 10 * (strchr(letters, s[m[5].rm_so]) - letters + 1);
		while (power-- > 0)
			twice(&digits);
	}
	shift(&digits, (binary ? 0 : decimal_exponent(s, m)) - fraction + 9);
	*ret = value_or(&digits, binary ? "9223372036854775807000000000"
					: "170141183460469231731687303715884105727");
	if (s[0] == '-')
		*ret = -*ret;
	return true;
}

/* Away from zero: as if it were positive, up. */
static int64_t slow_round(int128 nano, int128 unit)
{
	int128 size = nano < 0 ? -nano : nano;
	int128 value = (size - 1) / unit + 1;
	value = size == 0 ? 0 : nano < 0 ? -value : value;
	return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct quantity quantity = { 0 };
	struct err err = ERR_INIT;
	int result = quantity_parse((const char *)data, size, &quantity, &err);
	REQUIRE(result == 0 || (err.code == -result && err.text[0]));
	char text[TEXT_MAX + 1];
	if (size > TEXT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	int128 nano = 0;
	bool fine = strlen(text) == size && !strchr(text, '\n') && slow_parse(text, &nano);
	REQUIRE(fine == (result == 0));
	if (!fine)
		return 0;
	REQUIRE(nano == quantity.nano);
	REQUIRE(quantity_milli(quantity) == slow_round(nano, 1000000));
	REQUIRE(quantity_value(quantity) == slow_round(nano, 1000000000));
	return 0;
}
