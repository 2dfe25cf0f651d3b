/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "kube/base64.h"

#include <errno.h>

TEST(bytes_and_their_text)
{
	static const struct {
		const char *bytes, *text;
	} rows[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xef\xbe", "/+++" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		struct strbuf bytes CLEANUP(strbuf_done) = STRBUF_INIT;
		base64_encode(&text, rows[i].bytes, strlen(rows[i].bytes));
		CHECK_STR(text.s, rows[i].text);
		CHECK_INT(base64_decode(&bytes, text.s, text.len), 0);
		CHECK_STR(bytes.s, rows[i].bytes);
	}
}

TEST(every_byte_comes_back)
{
	char all[256];
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	for (size_t n = 0; n <= sizeof(all); n++) {
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		struct strbuf bytes CLEANUP(strbuf_done) = STRBUF_INIT;
		base64_encode(&text, all, n);
		CHECK_INT(text.len, (n + 2) / 3 * 4);
		CHECK_INT(base64_decode(&bytes, text.s, text.len), 0);
		CHECKF(bytes.len == n && memcmp(bytes.s, all, n) == 0, "of %zu bytes", n);
	}
}

TEST(line_ends_inside_are_skipped)
{
	struct strbuf bytes CLEANUP(strbuf_done) = STRBUF_INIT;
	const char text[] = "Zm9v\r\nYmF\ny\n";
	CHECK_INT(base64_decode(&bytes, text, strlen(text)), 0);
	CHECK_STR(bytes.s, "foobar");
}

TEST(what_is_no_base64_adds_nothing)
{
	static const char *const rows[] = {
		"Z",	    "Zg",    "Zg=",	  "Zg===", "=",	   "====",     "Z===",
		"Zg==Zg==", "Zm9vZ", "Zm9v Zm9v", "Zm-_",  "Zg=v", "Zm9v\tYg", "Zm9v====",
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf bytes CLEANUP(strbuf_done) = STRBUF_INIT;
		strbuf_puts(&bytes, "kept");
		CHECKF(base64_decode(&bytes, rows[i], strlen(rows[i])) == -EINVAL, "%s", rows[i]);
		CHECK_STR(bytes.s, "kept");
	}
}

TEST(a_full_buffer_is_told)
{
	struct strbuf bytes CLEANUP(strbuf_done) = STRBUF_INIT_MAX(5);
	CHECK_INT(base64_decode(&bytes, "Zm9vYmFy", 8), -ENOMEM);
	CHECK_INT(bytes.len, 0);
}

TEST_MAIN()
