/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/csv.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "test.h"
#include "wire/file.h"

#include <errno.h>
#include <unistd.h>

static struct csv csv;
static struct err err;
static struct strbuf out = STRBUF_INIT; /* of read_all() */

/* The whole text with fields as <..> and rows ended by ';', or the error. */
static const char *read_all(const char *text, size_t len)
{
	char *copy = malloc(len + 1); /* of that very size, so that the sanitizer watches */
	memcpy(copy, text, len);
	strbuf_reset(&out);
	int result = csv_open(&csv, "f.csv", copy, len, &err);
	while (result >= 0 && (result = csv_next(&csv, &err)) > 0) {
		for (size_t i = 0; i < csv.count; i++)
			strbuf_addf(&out, "<%.*s>", (int)csv.fields[i].len, csv.fields[i].s);
		strbuf_addf(&out, "%zu;", csv.line);
	}
	if (result < 0) {
		strbuf_reset(&out);
		strbuf_puts(&out, err.text);
	}
	free(copy);
	return out.s;
}

TEST(rows_are_read_as_rfc_4180_says)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "a,b\n", "" },
		{ "a,b", "" },
		{ "a,b\n1,2\n", "<1><2>2;" },
		{ "a,b\n1,2", "<1><2>2;" },
		{ "a,b\r\n1,2\r\n3,4\r\n", "<1><2>2;<3><4>3;" },
		{ "\xef\xbb\xbf\x61,b\n1,2\n", "<1><2>2;" },
		{ "\n\na\n\n\r\n1\n\n", "<1>6;" },
		{ "a,b,c\n,,\n", "<><><>2;" },
		{ "a\n x y \n", "< x y >2;" },
		{ "a,b\n\"1,5\",\"say \"\"hi\"\"\"\n", "<1,5><say \"hi\">2;" },
		{ "a,b\n\"x\ny\",2\n3,4\n", "<x\ny><2>2;<3><4>4;" },
		{ "a,b\n\"\",\"\"\"\"\n", "<><\">2;" },
		{ "a\n\"\"", "<>2;" },
		{ "a\n\"x\r\ny\"\r\n", "<x\r\ny>2;" },
		{ "\"a\"\n1", "<1>2;" },
		/* and what is wrong */
		{ "", "f.csv:1: a header is missing" },
		{ "\n\n", "f.csv:3: a header is missing" },
		{ "a,,b\n", "f.csv:1: a column without a name" },
		{ "a,b,a\n", "f.csv:1: two columns \"a\"" },
		{ "a,b\n1\n", "f.csv:2: 1 fields where the header has 2" },
		{ "a,b\n1,2\n1,2,3\n", "f.csv:3: 3 fields where the header has 2" },
		{ "a,b\n1,2\n1,\"2", "f.csv:3: a quote is opened but not closed" },
		{ "a\n\"x\n\n\ny", "f.csv:2: a quote is opened but not closed" },
		{ "a\n\"x\"y\n", "f.csv:2: text after a closing quote" },
		{ "a\nx\"y\"\n", "f.csv:2: a quote inside a field that does not begin with one" },
		{ "a\nx\ry\n", "f.csv:2: a carriage return without a line feed" },
		{ "a\nx\r", "f.csv:2: a carriage return without a line feed" },
		{ "a\n\"x\"\r", "f.csv:2: a carriage return without a line feed" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_STR(read_all(cases[i].text, strlen(cases[i].text)), cases[i].expected);
	CHECK_STR(read_all("a\nx\0y\n", 6), "f.csv:2: a NUL byte");
	CHECK_STR(read_all("a\n\"x\0y\"\n", 8), "f.csv:2: a NUL byte");
}

TEST(columns_are_found_by_name)
{
	char text[] = "sn,cpu_milli,\"odd \"\"name\"\"\"\nn1,5,x\n";
	size_t column = 9;
	CHECK(csv_open(&csv, "f.csv", text, strlen(text), &err) == 0);
	CHECK_INT(csv.count, 3);
	CHECK(csv_column(&csv, "cpu_milli", &column, &err) == 0 && column == 1);
	CHECK(csv_column(&csv, "odd \"name\"", &column, &err) == 0 && column == 2);
	CHECK_INT(csv_column(&csv, "cpu", &column, &err), -ENOENT);
	CHECK_STR(err.text, "f.csv:1: no column \"cpu\" in the header");
	CHECK_INT(column, 2);
}

TEST(numbers_are_checked_with_their_range)
{
	char text[] = "n\n12\n-1\nx\n\n99999999999999999999\n\"\"\n";
	int64_t value = 0;
	CHECK(csv_open(&csv, "f.csv", text, strlen(text), &err) == 0);
	CHECK(csv_next(&csv, &err) == 1);
	CHECK(csv_i64(&csv, 0, 0, 12, &value, &err) == 0 && value == 12);
	CHECK_INT(csv_i64(&csv, 0, 0, 11, &value, &err), -EINVAL);
	CHECK(csv_next(&csv, &err) == 1);
	CHECK_INT(csv_i64(&csv, 0, 0, 100, &value, &err), -EINVAL);
	CHECK_STR(err.text, "f.csv:3: n is \"-1\", not a whole number from 0 to 100");
	CHECK(csv_i64(&csv, 0, -1, 100, &value, &err) == 0 && value == -1);
	for (int i = 0; i < 3; i++) {
		CHECK(csv_next(&csv, &err) == 1);
		CHECK_INT(csv_i64(&csv, 0, INT64_MIN, INT64_MAX, &value, &err), -EINVAL);
	}
	CHECK(csv_next(&csv, &err) == 0);
	CHECK(csv_next(&csv, &err) == 0);
}

/* A header and one field, so that the second line has n bytes with its end. */
static void line_of(struct strbuf *buf, size_t n, const char *open, const char *close)
{
	strbuf_reset(buf);
	strbuf_puts(buf, "a\n");
	strbuf_puts(buf, open);
	char piece[4096];
	memset(piece, 'x', sizeof(piece));
	for (size_t left = n - strlen(open) - strlen(close), add; left > 0; left -= add) {
		add = MIN(left, sizeof(piece));
		strbuf_add(buf, piece, add);
	}
	strbuf_puts(buf, close);
	strbuf_puts(buf, "tail\n");
}

TEST(lines_have_a_greatest_length)
{
	static const struct {
		const char *open, *close;
	} cases[] = { { "", "\n" }, { "", "\r\n" }, { "\"", "\"\n" }, { "\"", "\"\r\n" } };
	static const char reason[] = "f.csv:2: the line has more than 1048576 bytes";
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		line_of(&buf, CSV_LINE_MAX, cases[i].open, cases[i].close);
		const char *text = read_all(buf.s, buf.len);
		CHECK_STR(text + strlen(text) - 12, "x>2;<tail>3;");
		for (size_t more = 1; more < 5; more++) {
			line_of(&buf, CSV_LINE_MAX + more, cases[i].open, cases[i].close);
			CHECK_STR(read_all(buf.s, buf.len), reason);
		}
	}
	/* without any end, and many times longer */
	line_of(&buf, 10 << 20, "\"", "");
	CHECK_STR(read_all(buf.s, buf.len), reason);
	line_of(&buf, 10 << 20, "", "");
	CHECK_STR(read_all(buf.s, buf.len), reason);
}

TEST(rows_have_a_greatest_number_of_fields)
{
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
	for (int i = 0; i < CSV_FIELDS_MAX; i++)
		strbuf_addf(&buf, "%sc%d", i ? "," : "", i);
	CHECK_STR(read_all(buf.s, buf.len), "");
	CHECK_INT(csv.count, CSV_FIELDS_MAX);
	strbuf_puts(&buf, ",more");
	CHECK_STR(read_all(buf.s, buf.len), "f.csv:1: more than 256 fields");
}

TEST(files_are_read_whole_up_to_a_size)
{
	char path[] = "/tmp/gs-file-test-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	static char large[100000];
	memset(large, 'y', sizeof(large));
	CHECK(write(fd, large, sizeof(large)) == (ssize_t)sizeof(large));
	close(fd);
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
	CHECK(file_read(path, sizeof(large), &buf, &err) == 0);
	CHECK(buf.len == sizeof(large) && memcmp(buf.s, large, buf.len) == 0);
	CHECK_INT(file_read(path, sizeof(large) - 1, &buf, &err), -EFBIG);
	CHECK(strstr(err.text, path) && strstr(err.text, "has more than 99999 bytes"));
	CHECK_STR(buf.s, "");
	unlink(path);
	CHECK_INT(file_read(path, 10, &buf, &err), -ENOENT);
	CHECK(strstr(err.text, "cannot open /tmp/gs-file-test-"));
	CHECK_INT(file_read("/", 10, &buf, &err), -EISDIR);
	CHECK_STR(err.text, "cannot read /: Is a directory");
	CHECK_INT(file_read("/dev/null", 0, &buf, &err), 0);
	CHECK_STR(buf.s, "");
}

__attribute__((destructor)) static void free_output(void)
{
	strbuf_done(&out);
}

TEST_MAIN()
