/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include "base/utf8.h"
#include "test.h"

TEST(pieces_are_joined)
{
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
	CHECK_STR(buf.s, "");
	strbuf_puts(&buf, "gpu");
	strbuf_putc(&buf, '-');
	strbuf_addf(&buf, "%03d", 7);
	strbuf_add(&buf, "xyz", 1);
	CHECK_STR(buf.s, "gpu-007x");
	CHECK_INT(buf.len, 8);
	strbuf_truncate(&buf, 3);
	strbuf_truncate(&buf, 100);
	CHECK_STR(buf.s, "gpu");
	strbuf_reset(&buf);
	CHECK_STR(buf.s, "");
}

TEST(formatted_text_grows_the_buffer_as_needed)
{
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
	for (int i = 0; i < 1000; i++)
		strbuf_addf(&buf, "%d,", i);
	CHECK(!buf.failed);
	CHECK(strncmp(buf.s, "0,1,2,3,", 8) == 0);
	CHECK_STR(buf.s + buf.len - 4, "999,");
	CHECK(strlen(buf.s) == buf.len);
}

TEST(a_piece_past_the_maximum_is_left_out_whole_and_the_failure_stays)
{
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT_MAX(8);
	strbuf_puts(&buf, "12345678");
	CHECK(!buf.failed);
	strbuf_addf(&buf, "%s", "");
	CHECK(!buf.failed);
	strbuf_putc(&buf, '9');
	CHECK(buf.failed);
	CHECK_STR(buf.s, "12345678");
	strbuf_truncate(&buf, 2);
	strbuf_puts(&buf, "3");
	CHECK_STR(buf.s, "12");
	strbuf_reset(&buf);
	strbuf_addf(&buf, "%09d", 1);
	CHECK(buf.failed);
	CHECK_STR(buf.s, "");
	strbuf_reset(&buf);
	strbuf_addf(&buf, "%08d", 1);
	CHECK_STR(buf.s, "00000001");
}

TEST(the_zero_value_can_be_used)
{
	struct strbuf buf = { 0 };
	strbuf_reset(&buf);
	strbuf_addf(&buf, "%d", 42);
	CHECK_STR(buf.s, "42");
	strbuf_done(&buf);
	CHECK_STR(buf.s, "");
	strbuf_done(NULL);
}

TEST(json_strings_are_escaped_and_always_valid)
{
	static const struct {
		const char *in;
		size_t len;
		const char *out;
	} cases[] = {
		{ "", 0, "\"\"" },
		{ "plain", 5, "\"plain\"" },
		{ "a\"b\\c/", 6, "\"a\\\"b\\\\c/\"" },
		{ "\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"" },
		{ "\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\"" },
		{ "caf\xc3\xa9 \xf0\x9f\x98\x80", 10, "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"" },
		{ "\xff", 1, "\"\xef\xbf\xbd\"" },
		{ "\xc3", 1, "\"\xef\xbf\xbd\"" },
		{ "\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
		strbuf_add_json(&buf, cases[i].in, cases[i].len);
		CHECK_STR(buf.s, cases[i].out);
	}
}

TEST(utf8_characters_are_measured_and_wrong_ones_refused)
{
	static const struct {
		const char *in;
		size_t len, expected;
	} cases[] = {
		{ "", 0, 0 },
		{ "a", 1, 1 },
		{ "\0", 1, 1 },
		{ "\x7f", 1, 1 },
		{ "\x80", 1, 0 },
		{ "\xc2\x80", 2, 2 },
		{ "\xc1\xbf", 2, 0 },
		{ "\xe0\xa0\x80", 3, 3 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xed\x9f\xbf", 3, 3 },
		{ "\xed\xa0\x80", 3, 0 },
		{ "\xef\xbf\xbf", 3, 3 },
		{ "\xf0\x90\x80\x80", 4, 4 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\xf4\x90\x80\x80", 4, 0 },
		{ "\xf8\x88\x80\x80", 4, 0 },
		{ "\xe2\x82\xac", 2, 0 },
		{ "\xe2(\xac", 3, 0 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECKF(utf8_length(cases[i].in, cases[i].len) == cases[i].expected, "case %zu", i);
	CHECK_INT(utf8_valid("ab\xc3\xa9\xff", 5), 4);
	CHECK_INT(utf8_valid("ab", 2), 2);
}

TEST(what_is_shown_is_short_and_plain)
{
	char text[UTF8_SHOW_MAX];
	CHECK_STR(utf8_show("", 0, text), "");
	CHECK_STR(utf8_show("n\xc3\xb8", 3, text), "n\xc3\xb8");
	CHECK_STR(utf8_show("a\n\x1b[31m\xff\xc2\x9b", 9, text), "a??[31m??");
	char large[1000];
	memset(large, 'x', sizeof(large));
	utf8_show(large, sizeof(large), text);
	CHECK(strlen(text) == UTF8_SHOW_MAX - 1);
	CHECK_STR(text + strlen(text) - 4, "x...");
	utf8_show(large, UTF8_SHOW_MAX - 4, text);
	CHECK(strlen(text) == UTF8_SHOW_MAX - 4);
}

TEST_MAIN()
