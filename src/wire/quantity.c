/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/quantity.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define NANO_PER_UNIT 1000000000
#define NANO_DIGITS   9
#define EXPONENT_MAX  1000000 /* far beyond both caps */
#define NANO_MAX      (((int128)1 << 126) - 1 + ((int128)1 << 126))

/* The text taken apart: whole.fraction times ten^exponent times two^binary. */
struct parts {
	bool negative;
	const char *whole, *fraction;
	size_t whole_len, fraction_len;
	int exponent;
	int binary; /* 0: a decimal suffix or none */
};

static const struct {
	char text[3];
	int exponent, binary;
} suffixes[] = {
	{ "", 0, 0 },	 { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
	{ "k", 3, 0 },	 { "M", 6, 0 },	  { "G", 9, 0 },   { "T", 12, 0 },
	{ "P", 15, 0 },	 { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
	{ "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
};

static bool parse_exponent(const char *s, size_t n, struct parts *ret)
{
	if (n > 1 && s[0] == '+' && s[1] != '-')
		s++, n--;
	int64_t exponent;
	int result = parse_i64(s, n, &exponent);
	if (result == -ERANGE)
		exponent = s[0] == '-' ? -EXPONENT_MAX : EXPONENT_MAX;
	else if (result < 0)
		return false;
	ret->exponent = (int)MAX(MIN(exponent, EXPONENT_MAX), -EXPONENT_MAX);
	return true;
}

static bool parse_suffix(const char *s, size_t n, struct parts *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (n == strlen(suffixes[i].text) && memcmp(s, suffixes[i].text, n) == 0) {
			ret->exponent = suffixes[i].exponent;
			ret->binary = suffixes[i].binary;
			return true;
		}
	}
	return n > 1 && (s[0] == 'e' || s[0] == 'E') && parse_exponent(s + 1, n - 1, ret);
}

static size_t count_digits(const char *s, size_t n)
{
	size_t i = 0;
	while (i < n && s[i] >= '0' && s[i] <= '9')
		i++;
	return i;
}

static bool take_apart(const char *s, size_t n, struct parts *ret)
{
	const char *end = s + n;
	*ret = (struct parts){ .negative = n > 0 && s[0] == '-' };
	if (n > 0 && (s[0] == '-' || s[0] == '+'))
		s++;
	ret->whole = s;
	ret->whole_len = count_digits(s, (size_t)(end - s));
	s += ret->whole_len;
	if (s < end && *s == '.') {
		ret->fraction = ++s;
		ret->fraction_len = count_digits(s, (size_t)(end - s));
		s += ret->fraction_len;
	}
	return ret->whole_len + ret->fraction_len > 0 && parse_suffix(s, (size_t)(end - s), ret);
}

/* value * 10 + digit; false once that is beyond NANO_MAX. */
static bool append_digit(int128 *value, int digit)
{
	return !MUL_OVERFLOW(*value, 10, value) && !ADD_OVERFLOW(*value, digit, value);
}

/* Shifts the point by exponent + 9 places and rounds up what is left behind it. */
static int128 decimal_nano(const struct parts *p)
{
	int64_t digits = (int64_t)(p->whole_len + p->fraction_len);
	int64_t kept = (int64_t)p->whole_len + p->exponent + NANO_DIGITS;
	int128 nano = 0;
	bool rest = false;
	for (int64_t i = 0; i < digits; i++) {
		size_t at = (size_t)i;
		char c = at < p->whole_len ? p->whole[at] : p->fraction[at - p->whole_len];
		if (i >= kept)
			rest = rest || c != '0';
		else if (!append_digit(&nano, c - '0'))
			return NANO_MAX;
	}
	for (int64_t i = digits; i < kept && nano > 0; i++) {
		if (!append_digit(&nano, 0))
			return NANO_MAX;
	}
	return rest && nano < NANO_MAX ? nano + 1 : nano;
}

/* The fraction times `scale` (below 2^90), rounded up.  From the last digit to the
 * first, x = (x + digit * scale) / 10: rounding down in each step rounds the sum
 * down once, and the sum is whole only if every step was. */
static int128 fraction_of(const struct parts *p, int128 scale)
{
	int128 x = 0;
	bool rest = false;
	for (size_t i = p->fraction_len; i-- > 0;) {
		x += (p->fraction[i] - '0') * scale;
		rest = rest || x % 10 != 0;
		x /= 10;
	}
	return x + rest;
}

static int128 binary_nano(const struct parts *p)
{
	const int128 cap = (int128)INT64_MAX * NANO_PER_UNIT;
	int128 unit = (int128)1 << p->binary, whole = 0;
	for (size_t i = 0; i < p->whole_len; i++) {
		whole = whole * 10 + (p->whole[i] - '0');
		if (whole > INT64_MAX)
			return cap;
	}
	if (whole * unit > INT64_MAX)
		return cap;
	int128 nano = whole * unit * NANO_PER_UNIT + fraction_of(p, unit * NANO_PER_UNIT);
	return MIN(nano, cap);
}

int quantity_parse(const char *s, size_t n, struct quantity *ret, struct err *err)
{
	struct parts parts;
	if (n == 0 || !take_apart(s, n, &parts)) {
		char shown[UTF8_SHOW_MAX];
		return err_set(err, EINVAL,
			       "\"%s\" is not a quantity: a number and n, u, m, k, M, G, T, P, E, "
			       "Ki, Mi, Gi, Ti, Pi, Ei or an exponent like e3",
			       utf8_show(s, n, shown));
	}
	int128 nano = parts.binary ? binary_nano(&parts) : decimal_nano(&parts);
	ret->nano = parts.negative ? -nano : nano;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The shortest text that reads back as the same double: what kubectl sends too. */
static int from_number(const struct json *value, struct quantity *ret, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer writer = JSON_WRITER_INIT(&text);
	json_add_value(&writer, value);
	if (text.failed)
		return err_set(err, ENOMEM, "out of memory");
	return quantity_parse(text.s, text.len, ret, err);
}

int quantity_from_json(const struct json *value, struct quantity *ret, struct err *err)
{
	size_t n;
	const char *s = json_strn(value, &n);
	if (s) {
		for (; n > 0 && is_blank(s[0]); n--)
			s++;
		while (n > 0 && is_blank(s[n - 1]))
			n--;
		return quantity_parse(s, n, ret, err);
	}
	switch (json_type(value)) {
	case JSON_NUMBER:
		return from_number(value, ret, err);
	case JSON_NONE:
	case JSON_NULL:
		return err_set(err, ENOENT, "no quantity");
	default:
		return err_set(err, EINVAL, "a quantity must be a string or a number");
	}
}

/* nano / unit away from zero, within int64_t. */
static int64_t round_to(int128 nano, int unit)
{
	int128 value = nano / unit;
	if (nano % unit != 0)
		value += nano > 0 ? 1 : -1;
	return (int64_t)MAX(MIN(value, INT64_MAX), INT64_MIN);
}

int64_t quantity_milli(struct quantity q)
{
	return round_to(q.nano, NANO_PER_UNIT / 1000);
}

int64_t quantity_value(struct quantity q)
{
	return round_to(q.nano, NANO_PER_UNIT);
}
