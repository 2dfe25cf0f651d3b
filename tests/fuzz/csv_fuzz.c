/* SPDX-License-Identifier: Apache-2.0 */
/* Rows lie inside the text and read the same again after they were written with
 * every field in quotes; errors name the file and a line. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "wire/csv.h"

#include <string.h>

static void write_fields(struct strbuf *out, const struct csv_field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		strbuf_puts(out, i ? ",\"" : "\"");
		for (size_t j = 0; j < fields[i].len; j++)
			strbuf_puts(out, fields[i].s[j] == '"' ? "\"\""
							       : (char[]){ fields[i].s[j], '\0' });
		strbuf_putc(out, '"');
	}
	strbuf_puts(out, "\r\n");
}

static void check_inside(const struct csv *csv, const char *text, size_t size)
{
	for (size_t i = 0; i < csv->count; i++) {
		const struct csv_field *field = &csv->fields[i];
		REQUIRE(field->s >= text && field->s + field->len <= text + size);
		int64_t number;
		csv_i64(csv, i, 0, 100, &number, NULL);
	}
}

/* Reads all of it and writes it again.  False: an error. */
static bool read_and_write(char *text, size_t size, struct strbuf *out)
{
	static struct csv csv;
	struct err err = ERR_INIT;
	int result = csv_open(&csv, "fuzz", text, size, &err);
	if (result == 0)
		write_fields(out, csv.header, csv.count);
	while (result >= 0 && (result = csv_next(&csv, &err)) > 0) {
		check_inside(&csv, text, size);
		write_fields(out, csv.fields, csv.count);
	}
	REQUIRE(result == 0 || strncmp(err.text, "fuzz:", 5) == 0);
	REQUIRE(result == 0 || err.code == -result);
	return result == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf first CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf second CLEANUP(strbuf_done) = STRBUF_INIT;
	char *text = malloc(size + !size);
	if (!text)
		return 0;
	memcpy(text, data, size);
	bool fine = read_and_write(text, size, &first);
	free(text);
	if (!fine || first.len > CSV_LINE_MAX) /* quotes could make a line too long */
		return 0;
	struct strbuf copy CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_add(&copy, first.s, first.len);
	REQUIRE(read_and_write(copy.s, copy.len, &second));
	REQUIRE(first.len == second.len && memcmp(first.s, second.s, first.len) == 0);
	return 0;
}
