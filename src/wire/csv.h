/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - reading CSV with a header, from memory.
 *
 *	struct csv csv;
 *	size_t name;
 *	if ((result = csv_open(&csv, path, text, len, err)) < 0 ||
 *	    (result = csv_column(&csv, "sn", &name, err)) < 0)
 *		return result;
 *	while ((result = csv_next(&csv, err)) > 0)
 *		use(csv.fields[name].s, csv.fields[name].len);
 *	return result;
 *
 * RFC 4180: fields may stand in double quotes, with "" for a quote and with commas
 * and line ends inside.  Lines end with LF or CRLF, the last one may lack it; a
 * byte order mark and empty lines are skipped.  Every row has as many fields as
 * the header.
 *
 * Nothing is allocated: fields are views into the text, which is changed in place
 * where quotes are resolved.  It must outlive the reader.  Errors begin with
 * "file:line: ".
 */
#ifndef GS_WIRE_CSV_H
#define GS_WIRE_CSV_H

#include <stddef.h>
#include <stdint.h>

struct err;

#define CSV_LINE_MAX   ((size_t)1 << 20) /* bytes of a row with all its line ends */
#define CSV_FIELDS_MAX 256

struct csv_field {
	const char *s; /* not NUL-terminated */
	size_t len;
};

struct csv {
	const char *name; /* borrowed */
	char *at, *end;	  /* what is still to be read */
	size_t next_line; /* its line number */
	size_t line;	  /* where the present row begins */
	size_t count;	  /* fields of each row */
	struct csv_field header[CSV_FIELDS_MAX];
	struct csv_field fields[CSV_FIELDS_MAX]; /* of the present row */
};

/* Reads the header.  0, -EINVAL (no header, a column without name or named twice,
 * or as csv_next). */
int csv_open(struct csv *csv, const char *name, char *text, size_t len, struct err *err);

/* Which field it is: 0, or -ENOENT if there is no such column. */
int csv_column(const struct csv *csv, const char *column, size_t *ret, struct err *err);

/* The next row into csv->fields: 1, 0 after the last, -EINVAL for a malformed row
 * (a quote that is not closed, too few fields, a line that is too long, ...). */
int csv_next(struct csv *csv, struct err *err);

/* The field as a whole number from min to max: 0 or -EINVAL. */
int csv_i64(const struct csv *csv, size_t column, int64_t min, int64_t max, int64_t *ret,
	    struct err *err);

#endif
