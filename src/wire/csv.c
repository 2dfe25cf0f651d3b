/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/csv.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static int row_error(const struct csv *csv, struct err *err, const char *reason)
{
	return err_set(err, EINVAL, "%s:%zu: %s", csv->name, csv->line, reason);
}

/* Moves over a field in quotes, whose opening one is behind us, and resolves "".
 * Text stays in place up to the first "" and moves down from there on. */
static int read_quoted(struct csv *csv, struct csv_field *ret, struct err *err)
{
	char *start = csv->at, *to = csv->at;
	for (; csv->at < csv->end; csv->at++) {
		char c = *csv->at;
		if (c == '"') {
			csv->at++;
			if (csv->at == csv->end || *csv->at != '"') {
				*ret = (struct csv_field){ start, (size_t)(to - start) };
				return 0;
			}
		}
		if (c == '\0')
			return row_error(csv, err, "a NUL byte");
		if (c == '\n')
			csv->next_line++;
		*to++ = c;
	}
	return row_error(csv, err, "a quote is opened but not closed");
}

static int read_plain(struct csv *csv, struct csv_field *ret, struct err *err)
{
	char *start = csv->at;
	/* strchr finds the NUL byte too */
	while (csv->at < csv->end && !strchr(",\r\n\"", *csv->at))
		csv->at++;
	*ret = (struct csv_field){ start, (size_t)(csv->at - start) };
	if (csv->at < csv->end && *csv->at == '"')
		return row_error(csv, err, "a quote inside a field that does not begin with one");
	if (csv->at < csv->end && *csv->at == '\0')
		return row_error(csv, err, "a NUL byte");
	return 0;
}

static int read_field(struct csv *csv, struct csv_field *ret, struct err *err)
{
	if (csv->at == csv->end || *csv->at != '"')
		return read_plain(csv, ret, err);
	csv->at++;
	return read_quoted(csv, ret, err);
}

/* After a field: 1 if another follows, 0 at the end of the row. */
static int read_separator(struct csv *csv, struct err *err)
{
	if (csv->at == csv->end)
		return 0;
	if (*csv->at == ',') {
		csv->at++;
		return 1;
	}
	if (*csv->at == '\r' && csv->at + 1 < csv->end && csv->at[1] == '\n')
		csv->at++;
	if (*csv->at == '\r')
		return row_error(csv, err, "a carriage return without a line feed");
	if (*csv->at != '\n')
		return row_error(csv, err, "text after a closing quote");
	csv->at++;
	csv->next_line++;
	return 0;
}

static void skip_empty_lines(struct csv *csv)
{
	for (;;) {
		size_t left = (size_t)(csv->end - csv->at);
		size_t skip = left >= 1 && csv->at[0] == '\n'		 ? 1
			      : left >= 2 && !memcmp(csv->at, "\r\n", 2) ? 2
									 : 0;
		if (skip == 0)
			return;
		csv->at += skip;
		csv->next_line++;
	}
}

/* The fields up to the end of the row: how many, or an error. */
static int read_fields(struct csv *csv, struct csv_field *fields, struct err *err)
{
	int count = 0, more = 1;
	while (more > 0) {
		if (count == CSV_FIELDS_MAX)
			return err_set(err, EINVAL, "%s:%zu: more than %d fields", csv->name,
				       csv->line, CSV_FIELDS_MAX);
		more = read_field(csv, &fields[count++], err);
		if (more == 0)
			more = read_separator(csv, err);
	}
	return more < 0 ? more : count;
}

/* One row: its number of fields, 0 if there is none, or an error.  The end of the
 * text is moved closer meanwhile, so that no row is searched beyond its greatest
 * length (and two, to see that it is longer). */
static int read_row(struct csv *csv, struct csv_field *fields, struct err *err)
{
	skip_empty_lines(csv);
	csv->line = csv->next_line;
	if (csv->at == csv->end)
		return 0;
	char *start = csv->at, *end = csv->end;
	if ((size_t)(end - start) > CSV_LINE_MAX + 2)
		csv->end = start + CSV_LINE_MAX + 2;
	int count = read_fields(csv, fields, err);
	csv->end = end;
	if ((size_t)(csv->at - start) > CSV_LINE_MAX)
		return err_set(err, EINVAL, "%s:%zu: the line has more than %zu bytes", csv->name,
			       csv->line, CSV_LINE_MAX);
	return count;
}

static bool same(const struct csv_field *field, const char *s, size_t n)
{
	return field->len == n && memcmp(field->s, s, n) == 0;
}

static int check_header(const struct csv *csv, struct err *err)
{
	char shown[UTF8_SHOW_MAX];
	for (size_t i = 0; i < csv->count; i++) {
		const struct csv_field *column = &csv->header[i];
		if (column->len == 0)
			return row_error(csv, err, "a column without a name");
		for (size_t j = 0; j < i; j++) {
			if (same(&csv->header[j], column->s, column->len))
				return err_set(err, EINVAL, "%s:%zu: two columns \"%s\"",
					       csv->name, csv->line,
					       utf8_show(column->s, column->len, shown));
		}
	}
	return 0;
}

int csv_open(struct csv *csv, const char *name, char *text, size_t len, struct err *err)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	size_t skip = len >= 3 && memcmp(text, byte_order_mark, 3) == 0 ? 3 : 0;
	csv->name = name;
	csv->at = text + skip;
	csv->end = text + len;
	csv->next_line = 1;
	int count = read_row(csv, csv->header, err);
	if (count == 0)
		return row_error(csv, err, "a header is missing");
	if (count < 0)
		return count;
	csv->count = (size_t)count;
	return check_header(csv, err);
}

int csv_column(const struct csv *csv, const char *column, size_t *ret, struct err *err)
{
	for (size_t i = 0; i < csv->count; i++) {
		if (same(&csv->header[i], column, strlen(column))) {
			*ret = i;
			return 0;
		}
	}
	return err_set(err, ENOENT, "%s:1: no column \"%s\" in the header", csv->name, column);
}

int csv_next(struct csv *csv, struct err *err)
{
	int count = read_row(csv, csv->fields, err);
	if (count > 0 && (size_t)count != csv->count)
		return err_set(err, EINVAL, "%s:%zu: %d fields where the header has %zu",
			       csv->name, csv->line, count, csv->count);
	return MIN(count, 1);
}

int csv_i64(const struct csv *csv, size_t column, int64_t min, int64_t max, int64_t *ret,
	    struct err *err)
{
	const struct csv_field *field = &csv->fields[column], *title = &csv->header[column];
	int64_t value;
	int result = parse_i64(field->s, field->len, &value);
	if (result == 0 && value >= min && value <= max) {
		*ret = value;
		return 0;
	}
	char shown[UTF8_SHOW_MAX], named[UTF8_SHOW_MAX];
	return err_set(err, EINVAL,
		       "%s:%zu: %s is \"%s\", not a whole number from %" PRId64 " to %" PRId64,
		       csv->name, csv->line, utf8_show(title->s, title->len, named),
		       utf8_show(field->s, field->len, shown), min, max);
}
