/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/yaml.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "test.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>

static struct err err;
static const struct json_limits no_limits;
static struct strbuf out = STRBUF_INIT; /* of convert() */

/* All documents as JSON, separated by '|', or the error. */
static const char *convert_within(const char *text, size_t len, const struct json_limits *limits)
{
	strbuf_reset(&out);
	struct yaml yaml CLEANUP(yaml_done) = YAML_INIT;
	if (yaml_parse("f", text, len, limits, &yaml, &err) < 0) {
		CHECK(yaml.len == 0 && !yaml.items);
		strbuf_puts(&out, err.text);
		return out.s;
	}
	for (size_t i = 0; i < yaml.len; i++) {
		struct json_writer w = JSON_WRITER_INIT(&out);
		strbuf_puts(&out, i ? "|" : "");
		json_add_value(&w, json_root(yaml.items[i].doc));
	}
	return out.s;
}

static const char *convert(const char *text)
{
	return convert_within(text, strlen(text), NULL);
}

static const struct {
	const char *yaml, *json;
} scalars[] = {
	{ "", "null" },
	{ "~", "null" },
	{ "null", "null" },
	{ "NULL", "null" },
	{ "nULL", "\"nULL\"" },
	{ "true", "true" },
	{ "True", "true" },
	{ "tRUE", "\"tRUE\"" },
	{ "yes", "true" },
	{ "Y", "true" },
	{ "on", "true" },
	{ "no", "false" },
	{ "n", "false" },
	{ "OFF", "false" },
	{ "oFF", "\"oFF\"" },
	{ "0", "0" },
	{ "12", "12" },
	{ "+12", "12" },
	{ "-12", "-12" },
	{ "1_000", "1000" },
	{ "017", "15" },
	{ "0o17", "15" },
	{ "-0x1F", "-31" },
	{ "0xFF", "255" },
	{ "0b101", "5" },
	{ "0x", "\"0x\"" },
	{ "0xg", "\"0xg\"" },
	{ "0b2", "\"0b2\"" },
	{ "08", "8" },
	{ "089", "89" },
	{ "9223372036854775807", "9223372036854775807" },
	{ "-9223372036854775808", "-9223372036854775808" },
	{ "18446744073709551615", "18446744073709551615" },
	{ "18446744073709551616", "18446744073709552000.0" },
	{ "-9223372036854775809", "-9223372036854776000.0" },
	{ "1.5", "1.5" },
	{ "-.5", "-0.5" },
	{ ".5", "0.5" },
	{ "5.", "5" },
	{ "2.0", "2" },
	{ "1e3", "1000" },
	{ "1E-2", "0.01" },
	{ "007.50", "7.5" },
	{ "1_0.5", "10.5" },
	{ "1e999", "\"1e999\"" },
	{ "1e", "\"1e\"" },
	{ "1e+", "\"1e+\"" },
	{ ".", "\".\"" },
	{ "._5", "\"._5\"" },
	{ ".5_0", "\".5_0\"" },
	{ "+", "\"+\"" },
	{ "1.2.3", "\"1.2.3\"" },
	{ "1:30", "\"1:30\"" },
	{ "10.0.0.1", "\"10.0.0.1\"" },
	{ "2026-01-31", "\"2026-01-31\"" },
	{ "100m", "\"100m\"" },
	{ "1Gi", "\"1Gi\"" },
	{ "_1", "\"_1\"" },
	{ "\"12\"", "\"12\"" },
	{ "'yes'", "\"yes\"" },
	{ "\"\"", "\"\"" },
	{ "!!str 12", "\"12\"" },
	{ "!!int \"12\"", "12" },
	{ "!!float 12", "12" },
	{ "!!bool yes", "true" },
	{ "!!null ''", "null" },
	{ "!!timestamp 2026-01-31", "\"2026-01-31\"" },
	{ "<<", "\"<<\"" },
	{ "\"a\\0b\"", "\"a\\u0000b\"" },
};

TEST(plain_scalars_mean_what_they_mean_to_kubectl)
{
	for (size_t i = 0; i < ARRAY_SIZE(scalars); i++) {
		/* as a value in a list, for a document of "" has none */
		char yaml[100], json[100];
		snprintf(yaml, sizeof(yaml), "- %s\n", scalars[i].yaml);
		snprintf(json, sizeof(json), "[%s]", scalars[i].json);
		CHECK_STR(convert(yaml), json);
	}
}

TEST(structures_become_json)
{
	static const struct {
		const char *yaml, *json;
	} cases[] = {
		{ "a: 1\nb: [x, {c: d}]\n", "{\"a\":1,\"b\":[\"x\",{\"c\":\"d\"}]}" },
		{ "a:\n- 1\n-\n- b:\n", "{\"a\":[1,null,{\"b\":null}]}" },
		{ "a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}" },
		{ "a: |\n  0=node-a:0\n  1=node-b:1,2\n",
		  "{\"a\":\"0=node-a:0\\n1=node-b:1,2\\n\"}" },
		{ "{}", "{}" },
		{ "[]", "[]" },
		{ "1: a\ny: b\n1.5: c\n0x10: d\n",
		  "{\"1\":\"a\",\"true\":\"b\",\"1.5\":\"c\",\"16\":\"d\"}" },
		{ "? a\n: b\n", "{\"a\":\"b\"}" },
		{ "{\"a\": \"b\\/\\u00e9\", \"c\": [1, true, null]}",
		  "{\"a\":\"b/\xc3\xa9\",\"c\":[1,true,null]}" },
		{ "{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"\xf0\x9f\x98\x80\"}" },
		{ "{\n\t\"a\": [\n\t\t1\n\t]\n}\n", "{\"a\":[1]}" },
		{ "!!map {a: !!seq [1]}", "{\"a\":[1]}" },
		{ "\xef\xbb\xbf\x61: 1", "{\"a\":1}" },
		{ "%YAML 1.2\n---\na: 1\n", "{\"a\":1}" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_STR(convert(cases[i].yaml), cases[i].json);
}

TEST(a_stream_has_many_documents_and_empty_ones_do_not_count)
{
	CHECK_STR(convert("a: 1\n---\nb: 2\n---\n- 3\n"), "{\"a\":1}|{\"b\":2}|[3]");
	CHECK_STR(convert("---\n---\n# comment\n---\na: 1\n---\n...\n---\n"), "{\"a\":1}");
	CHECK_STR(convert(""), "");
	CHECK_STR(convert("\n# only a comment\n"), "");
	CHECK_STR(convert("--- ~\n--- ''\n"), "null|\"\"");
	/* anchors end with their document */
	CHECK_STR(convert("a: &x 1\n---\nb: *x\n"), "f:3:4: there is no anchor \"x\"");
}

TEST(documents_know_their_line)
{
	static const char text[] = "# c\n---\na: 1\n---\n\n\n- b\n";
	struct yaml yaml CLEANUP(yaml_done) = YAML_INIT;
	CHECK(yaml_parse("f", text, strlen(text), NULL, &yaml, &err) == 0);
	CHECK_INT(yaml.len, 2);
	CHECK_INT(yaml.items[0].line, 3);
	CHECK_INT(yaml.items[1].line, 7);
}

TEST(aliases_are_copied_and_merges_merged)
{
	static const struct {
		const char *yaml, *json;
	} cases[] = {
		{ "a: &x {b: [1, 2]}\nc: *x\nd: *x\n",
		  "{\"a\":{\"b\":[1,2]},\"c\":{\"b\":[1,2]},\"d\":{\"b\":[1,2]}}" },
		{ "- &x 1\n- *x\n- &x 2\n- *x\n", "[1,1,2,2]" },
		{ "- &x k\n- {*x : v}\n", "[\"k\",{\"k\":\"v\"}]" },
		{ "- &x ~\n- *x\n", "[null,null]" },
		{ "&x a: *x\n", "{\"a\":\"a\"}" },
		{ "b: &b {x: 1, z: 2}\nc:\n  <<: *b\n  z: 3\n",
		  "{\"b\":{\"x\":1,\"z\":2},\"c\":{\"z\":3,\"x\":1}}" },
		{ "b: &b {x: 1, z: 2}\nc:\n  z: 3\n  <<: *b\n",
		  "{\"b\":{\"x\":1,\"z\":2},\"c\":{\"z\":3,\"x\":1}}" },
		{ "- &a {x: 1}\n- &b {x: 2, w: 2}\n- {<<: [*a, *b], z: 3}\n",
		  "[{\"x\":1},{\"x\":2,\"w\":2},{\"z\":3,\"x\":1,\"w\":2}]" },
		{ "- {<<: &a {x: [1]}, z: 2}\n- *a\n", "[{\"z\":2,\"x\":[1]},{\"x\":[1]}]" },
		{ "- {<<: {x: &v [1]}}\n- *v\n", "[{\"x\":[1]},[1]]" },
		{ "- {<<: []}\n- {\"<<\": 1}\n", "[{},{\"<<\":1}]" },
		{ "- &a {<<: {x: 1}}\n- {<<: *a}\n", "[{\"x\":1},{\"x\":1}]" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK_STR(convert(cases[i].yaml), cases[i].json);
}

TEST(errors_say_where_and_what)
{
	static const struct {
		const char *yaml, *error;
	} cases[] = {
		{ "a: 1\nb: 2\na: 3\n", "f:3:1: the key \"a\" comes twice" },
		{ "1: x\n\"1\": y\n", "f:2:1: the key \"1\" comes twice" },
		{ "{<<: {}, <<: {}}", "f:1:10: the key \"<<\" comes twice" },
		{ "a:\n\tb: 1\n", "f:2:1: found character that cannot start any token "
				  "while scanning for the next token" },
		{ "a: b: c\n", "f:1:5: mapping values are not allowed in this context" },
		{ "a: [1, 2\n",
		  "f:2:1: did not find expected ',' or ']' while parsing a flow sequence" },
		{ "a: \"x\n", "f:2:1: found unexpected end of stream "
			      "while scanning a quoted scalar" },
		{ "a: \xff", "f:1:4: invalid leading UTF-8 octet" },
		{ "a:\n  b: \x01", "f:2:6: control characters are not allowed" },
		{ "a: *x\n", "f:1:4: there is no anchor \"x\"" },
		{ "a: &x [*x]\n", "f:1:8: the anchor \"x\" contains itself" },
		{ "a: .inf\n", "f:1:4: a number that is not finite" },
		{ "a: !!int x\n", "f:1:4: the value is not what its tag says" },
		{ "a: !!int 1.5\n", "f:1:4: the value is not what its tag says" },
		{ "a: !!binary aGk=\n", "f:1:4: this tag is not supported" },
		{ "a: !mine x\n", "f:1:4: this tag is not supported" },
		{ "a: !!set {x}\n", "f:1:4: this tag is not supported" },
		{ "a: !!seq {x: 1}\n", "f:1:4: this tag is not supported" },
		{ "? [a]\n: b\n", "f:1:3: a key must be a string" },
		{ "~: b\n", "f:1:1: a key must be a string" },
		{ "- &x [1]\n- {*x : v}\n", "f:2:4: a key must be a string" },
		{ "<<: 1\n", "f:1:5: \"<<\" wants a mapping or a list of mappings" },
		{ "<<: [{}, 1]\n", "f:1:11: \"<<\" wants a mapping or a list of mappings" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK_STR(convert(cases[i].yaml), cases[i].error);
		CHECK_INT(err.code, EINVAL);
	}
}

TEST(a_broken_document_leaves_nothing_of_the_others)
{
	CHECK_STR(convert("a: 1\n---\nb: 2\n---\nc: ]\n"),
		  "f:5:4: did not find expected node content while parsing a block node");
}

TEST(many_aliases_of_aliases_are_stopped)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_puts(&text, "a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n");
	for (int i = 1; i < 10; i++) {
		strbuf_addf(&text, "a%d: &a%d [", i, i);
		for (int j = 0; j < 9; j++)
			strbuf_addf(&text, "%s*a%d", j ? "," : "", i - 1);
		strbuf_puts(&text, "]\n");
	}
	const char *got = convert_within(text.s, text.len, NULL);
	CHECK_INT(err.code, E2BIG);
	CHECK(strstr(got, "f:8:") == got && strstr(got, "more than 8388608 values"));
}

TEST(one_large_string_cannot_be_multiplied)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_puts(&text, "- &a ");
	for (int i = 0; i < 100000; i++)
		strbuf_putc(&text, 'x');
	for (int i = 0; i < 400; i++)
		strbuf_puts(&text, "\n- *a");
	convert_within(text.s, text.len, NULL);
	CHECK_INT(err.code, E2BIG);
	CHECK(strstr(err.text, "more than 33554432 bytes of values"));
}

/* n lists inside each other. */
static const char *nested(size_t n)
{
	static char text[4096];
	memset(text, '[', n);
	memset(text + n, ']', n);
	text[2 * n] = '\0';
	return text;
}

TEST(depth_is_bounded_with_aliases_too)
{
	CHECK(convert(nested(JSON_MAX_DEPTH))[0] == '[');
	CHECK_STR(convert(nested(JSON_MAX_DEPTH + 1)), "f:1:65: more than 64 levels deep");
	CHECK_STR(convert(nested(2000)), "f:1:65: more than 64 levels deep");
	struct json_limits limits = { .max_depth = 4 };
	const char *fits = "- &a [[1]]\n- [*a]\n", *deeper = "- &a [[1]]\n- [[*a]]\n";
	CHECK_STR(convert_within(fits, strlen(fits), &limits), "[[[1]],[[[1]]]]");
	CHECK_STR(convert_within(deeper, strlen(deeper), &limits),
		  "f:2:5: more than 4 levels deep");
}

TEST(size_and_number_of_values_are_bounded)
{
	const char *text = "a: [1, 2]\n---\nb: 3\n"; /* 5 and 3 values */
	struct json_limits limits = { .max_nodes = 8 };
	CHECK_STR(convert_within(text, strlen(text), &limits), "{\"a\":[1,2]}|{\"b\":3}");
	limits.max_nodes = 7;
	CHECK_STR(convert_within(text, strlen(text), &limits), "f:3:4: more than 7 values");
	limits = (struct json_limits){ .max_bytes = strlen(text) };
	CHECK_STR(convert_within(text, strlen(text), &limits), "{\"a\":[1,2]}|{\"b\":3}");
	limits.max_bytes--;
	CHECK_STR(convert_within(text, strlen(text), &limits), "f: more than 18 bytes");
	CHECK(convert_within(text, strlen(text), &no_limits)[0] == '{');
}

TEST(a_mapping_of_many_keys_takes_no_quadratic_time)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	for (int i = 0; i < 50000; i++)
		strbuf_addf(&text, "key-%d: &a%d %d\n", i, i, i);
	CHECK(convert_within(text.s, text.len, NULL)[0] == '{');
	strbuf_puts(&text, "key-7: 1\n");
	CHECK_STR(convert_within(text.s, text.len, NULL),
		  "f:50001:1: the key \"key-7\" comes twice");
}

TEST(done_accepts_null)
{
	yaml_done(NULL);
}

__attribute__((destructor)) static void free_output(void)
{
	strbuf_done(&out);
}

TEST_MAIN()
