/* SPDX-License-Identifier: Apache-2.0 */
/* Follows gopkg.in/yaml.v2, which kubectl reads manifests with. */
#include "wire/yaml_scalar.h"

#include "base/attr.h"
#include "base/num.h"
#include "base/strbuf.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TAG_PREFIX "tag:yaml.org,2002:"

enum word { WORD_NONE, WORD_NULL, WORD_TRUE, WORD_FALSE, WORD_NOT_FINITE };

#define WORD_LEN_MAX 5

static const struct {
	enum word word;
	const char *texts[12];
} words[] = {
	{ WORD_NULL, { "", "~", "null", "Null", "NULL" } },
	{ WORD_TRUE, { "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON" } },
	{ WORD_FALSE,
	  { "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF" } },
	{ WORD_NOT_FINITE,
	  { ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
	    "-.Inf", "-.INF" } },
};

static enum word word_of(const char *s, size_t n)
{
	if (n > WORD_LEN_MAX)
		return WORD_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(words[i].texts) && words[i].texts[j]; j++) {
			const char *text = words[i].texts[j];
			if (strlen(text) == n && memcmp(text, s, n) == 0)
				return words[i].word;
		}
	}
	return WORD_NONE;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return 16;
}

/* Takes 0x, 0o, 0b, or the 0 of an octal number away and says which base it is. */
static unsigned take_base(const char **s)
{
	if ((*s)[0] != '0' || (*s)[1] == '\0')
		return 10;
	char letter = (char)((*s)[1] | 0x20);
	unsigned base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
	*s += base ? 2 : 1;
	return base ? base : 8;
}

/* An integer as Go reads one in base 0; NULL if it is none or too large. */
static yyjson_mut_val *integer(yyjson_mut_doc *doc, const char *s)
{
	bool negative = s[0] == '-', sign = negative || s[0] == '+';
	s += sign;
	unsigned base = take_base(&s);
	if (*s == '\0')
		return NULL;
	uint64_t value = 0;
	for (; *s; s++) {
		unsigned digit = (unsigned)digit_of(*s);
		if (digit >= base || MUL_OVERFLOW(value, base, &value) ||
		    ADD_OVERFLOW(value, digit, &value))
			return NULL;
	}
	if (!sign)
		return yyjson_mut_uint(doc, value);
	if (value > (uint64_t)INT64_MAX + negative)
		return NULL;
	return yyjson_mut_sint(doc, (int64_t)(negative ? -value : value));
}

static size_t skip_digits(const char *s, size_t at)
{
	while (s[at] >= '0' && s[at] <= '9')
		at++;
	return at;
}

/* Writes [+-](.digits | digits[.[digits]])[e[+-]digits] as JSON wants a number.
 * False if it is not of that form. */
static bool json_number(const char *s, struct strbuf *ret)
{
	if (s[0] == '-')
		strbuf_putc(ret, '-');
	s += s[0] == '-' || s[0] == '+';
	size_t whole = skip_digits(s, 0), at = whole, fraction = 0, zeros = 0;
	if (s[at] == '.') {
		at = skip_digits(s, at + 1);
		fraction = at - whole - 1;
	}
	if (whole + fraction == 0)
		return false;
	while (zeros + 1 < whole && s[zeros] == '0')
		zeros++;
	strbuf_add(ret, whole ? s + zeros : "0", whole ? whole - zeros : 1);
	if (fraction > 0)
		strbuf_add(ret, s + whole, fraction + 1);
	if (s[at] == 'e' || s[at] == 'E') {
		size_t start = at++;
		at += s[at] == '-' || s[at] == '+';
		size_t end = skip_digits(s, at);
		if (end == at)
			return false;
		strbuf_add(ret, s + start, end - start);
		at = end;
	}
	return s[at] == '\0';
}

/* A number that is not finite as a double is a string, as it is for Go. */
static yyjson_mut_val *real(yyjson_mut_doc *doc, const char *s)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	yyjson_val number;
	if (!json_number(s, &text) || text.failed ||
	    !yyjson_read_number(text.s, &number, 0, NULL, NULL))
		return NULL;
	double value = yyjson_get_num(&number);
	if (fabs(value) <= 0x1p53 && value == floor(value))
		return yyjson_mut_sint(doc, (int64_t)value);
	return yyjson_mut_real(doc, value);
}

/* NULL if it is no number. */
static yyjson_mut_val *number_of(yyjson_mut_doc *doc, const char *s, size_t n)
{
	struct strbuf plain CLEANUP(strbuf_done) = STRBUF_INIT;
	if (n == 0 || !strchr("+-.0123456789", s[0]) || memchr(s, '\0', n))
		return NULL;
	if (s[0] == '.') /* no underscores here */
		return memchr(s, '_', n) ? NULL : real(doc, s);
	for (size_t i = 0; i < n; i++) {
		if (s[i] != '_')
			strbuf_putc(&plain, s[i]);
	}
	if (plain.failed)
		return NULL;
	yyjson_mut_val *value = integer(doc, plain.s);
	return value ? value : real(doc, plain.s);
}

static yyjson_mut_val *plain_value(yyjson_mut_doc *doc, const struct yaml_scalar *scalar,
				   const char **reason)
{
	switch (word_of(scalar->text, scalar->len)) {
	case WORD_NULL:
		return yyjson_mut_null(doc);
	case WORD_TRUE:
		return yyjson_mut_true(doc);
	case WORD_FALSE:
		return yyjson_mut_false(doc);
	case WORD_NOT_FINITE:
		*reason = "a number that is not finite";
		return NULL;
	case WORD_NONE:
		break;
	}
	yyjson_mut_val *number = number_of(doc, scalar->text, scalar->len);
	return number ? number : yyjson_mut_strncpy(doc, scalar->text, scalar->len);
}

static const struct {
	const char *tag;
	bool (*matches)(yyjson_mut_val *value);
} types[] = {
	{ TAG_PREFIX "int", yyjson_mut_is_int },
	{ TAG_PREFIX "float", yyjson_mut_is_num },
	{ TAG_PREFIX "bool", yyjson_mut_is_bool },
	{ TAG_PREFIX "null", yyjson_mut_is_null },
};

static yyjson_mut_val *tagged_value(yyjson_mut_doc *doc, const struct yaml_scalar *scalar,
				    const char **reason)
{
	if (strcmp(scalar->tag, TAG_PREFIX "str") == 0 ||
	    strcmp(scalar->tag, TAG_PREFIX "timestamp") == 0)
		return yyjson_mut_strncpy(doc, scalar->text, scalar->len);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcmp(scalar->tag, types[i].tag) != 0)
			continue;
		yyjson_mut_val *value = plain_value(doc, scalar, reason);
		if (!value || types[i].matches(value))
			return value;
		*reason = "the value is not what its tag says";
		return NULL;
	}
	*reason = "this tag is not supported";
	return NULL;
}

yyjson_mut_val *yaml_scalar_value(yyjson_mut_doc *doc, const struct yaml_scalar *scalar,
				  const char **reason)
{
	if (scalar->tag)
		return tagged_value(doc, scalar, reason);
	if (scalar->plain)
		return plain_value(doc, scalar, reason);
	return yyjson_mut_strncpy(doc, scalar->text, scalar->len);
}

yyjson_mut_val *yaml_scalar_key(yyjson_mut_doc *doc, yyjson_mut_val *value, const char **reason)
{
	if (yyjson_mut_is_str(value))
		return value;
	if (!yyjson_mut_is_num(value) && !yyjson_mut_is_bool(value)) {
		*reason = "a key must be a string";
		return NULL;
	}
	size_t len;
	char *text = yyjson_mut_val_write(value, 0, &len);
	yyjson_mut_val *key = text ? yyjson_mut_strncpy(doc, text, len) : NULL;
	free(text);
	return key;
}
