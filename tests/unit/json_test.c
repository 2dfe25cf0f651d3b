/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "test.h"
#include "wire/json_write.h"

#include <errno.h>

static struct json_doc *doc_of(const char *text)
{
	struct json_doc *doc = NULL;
	struct err err = ERR_INIT;
	json_parse("test", text, strlen(text), NULL, &doc, &err);
	CHECKF(doc, "%s", err.text);
	return doc;
}

static const char pod_text[] =
	"{\"metadata\":{\"name\":\"train-0\",\"labels\":{\"a\":\"1\",\"b\":\"2\"},\"uid\":null},"
	"\"spec\":{\"priority\":-5,\"big\":9223372036854775807,\"huge\":9223372036854775808,"
	"\"half\":0.5,\"whole\":2.0,\"hostNetwork\":true,\"text\":\"a\\u0000b\","
	"\"containers\":[{\"name\":\"x\"},{\"name\":\"y\"}],\"none\":[],\"empty\":{}}}";

TEST(values_are_found_by_path)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(pod_text);
	const struct json *pod = json_root(doc);
	CHECK_STR(json_str(pod, "metadata", "name"), "train-0");
	CHECK_STR(json_str(json_get(pod, "metadata", "labels"), "b"), "2");
	CHECK(json_get(pod) == pod);
	CHECK_STR(json_str(json_get(pod, "metadata", "name")), "train-0");
	CHECK_INT(json_type(pod), JSON_OBJECT);
	CHECK_INT(json_type(pod, "metadata", "uid"), JSON_NULL);
	CHECK_INT(json_type(pod, "spec", "half"), JSON_NUMBER);
	CHECK_INT(json_type(pod, "spec", "hostNetwork"), JSON_BOOL);
	CHECK_INT(json_type(pod, "spec", "containers"), JSON_ARRAY);
	CHECK_INT(json_type(pod, "metadata", "name"), JSON_STRING);
}

TEST(what_is_not_there_is_told_everywhere)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(pod_text);
	const struct json *pod = json_root(doc);
	CHECK(!json_str(pod, "metadata", "namespace"));
	CHECK(!json_str(pod, "nothing", "at", "all"));
	CHECK(!json_str(pod, "metadata", "name", "deeper"));
	CHECK(!json_str(pod, "metadata"));
	CHECK(!json_str(NULL, "metadata"));
	CHECK(!json_str(NULL));
	CHECK_INT(json_type(NULL, "x"), JSON_NONE);
	CHECK(json_root(NULL) == NULL);
	CHECK_INT(json_len(pod, "metadata", "name"), 0);
	CHECK_INT(json_len(NULL), 0);
	json_doc_free(NULL);
}

TEST(integers_are_exact_or_refused)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(pod_text);
	const struct json *spec = json_get(json_root(doc), "spec");
	int64_t number = 77;
	CHECK_INT(json_i64(spec, &number, "huge"), -EINVAL);
	CHECK_INT(json_i64(spec, &number, "half"), -EINVAL);
	CHECK_INT(json_i64(spec, &number, "whole"), -EINVAL);
	CHECK_INT(json_i64(spec, &number, "text"), -EINVAL);
	CHECK_INT(json_i64(spec, &number, "absent"), -ENOENT);
	CHECK_INT(json_i64(json_root(doc), &number, "metadata", "uid"), -ENOENT);
	CHECK_INT(number, 77);
	CHECK(json_i64(spec, &number, "priority") == 0 && number == -5);
	CHECK(json_i64(spec, &number, "big") == 0 && number == INT64_MAX);
}

TEST(doubles_and_booleans)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(pod_text);
	const struct json *spec = json_get(json_root(doc), "spec");
	double number;
	bool boolean;
	CHECK(json_double(spec, &number, "half") == 0 && number == 0.5);
	CHECK(json_double(spec, &number, "priority") == 0 && number == -5);
	CHECK_INT(json_double(spec, &number, "text"), -EINVAL);
	CHECK_INT(json_double(spec, &number, "absent"), -ENOENT);
	CHECK(json_bool(spec, &boolean, "hostNetwork") == 0 && boolean);
	CHECK_INT(json_bool(spec, &boolean, "priority"), -EINVAL);
	CHECK_INT(json_bool(NULL, &boolean), -ENOENT);
}

TEST(a_string_with_nul_inside_is_no_c_string)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(pod_text);
	const struct json *spec = json_get(json_root(doc), "spec");
	size_t len = 0;
	CHECK(!json_str(spec, "text"));
	const char *s = json_strn(spec, &len, "text");
	CHECK(s && len == 3 && memcmp(s, "a\0b", 3) == 0);
	CHECK(!json_strn(spec, &len, "priority") && len == 3);
}

TEST(arrays_and_objects_are_walked_in_order)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(pod_text);
	const struct json *pod = json_root(doc), *item;
	struct json_iter items = json_items(pod, "spec", "containers");
	CHECK_STR(json_str(json_next(&items), "name"), "x");
	CHECK_STR(json_str(json_next(&items), "name"), "y");
	CHECK(!json_next(&items) && !json_next(&items));
	CHECK_INT(json_len(pod, "spec", "containers"), 2);

	struct json_iter members = json_members(pod, "metadata", "labels");
	struct json_member member;
	CHECK(json_next_member(&members, &member));
	CHECK_STR(member.key, "a");
	CHECK_INT(member.key_len, 1);
	CHECK(json_next_member(&members, &member));
	CHECK_STR(json_str(member.value), "2");
	CHECK(!json_next_member(&members, &member));

	const char *const nothing[] = { "none", "empty", "half", "absent" };
	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++) {
		items = json_items(pod, "spec", nothing[i]);
		members = json_members(pod, "spec", nothing[i]);
		item = json_next(&items);
		CHECK(!item && !json_next_member(&members, &member));
	}
}

TEST(errors_say_where)
{
	static const struct {
		const char *text, *where;
	} cases[] = {
		{ "", "pods.json:1:1: " },
		{ "  ", "pods.json:1:" },
		{ "{\n  \"a\": 1,\n  \"b\": }\n", "pods.json:3:8: " },
		{ "[1, 2", "pods.json:1:6: " },
		{ "[1,]", "pods.json:1:3: " },
		{ "{\"a\":1} x", "pods.json:1:9: " },
		{ "[NaN]", "pods.json:1:2: " },
		{ "[1e999]", "pods.json:1:" },
		{ "\"\xff\"", "pods.json:1:2: " },
		{ "\"\\ud800\"", "pods.json:1:" },
		{ "// no\n1", "pods.json:1:1: " },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_doc *doc = NULL;
		struct err err = ERR_INIT;
		CHECK_INT(json_parse("pods.json", cases[i].text, strlen(cases[i].text), NULL, &doc,
				     &err),
			  -EINVAL);
		CHECKF(strncmp(err.text, cases[i].where, strlen(cases[i].where)) == 0, "%s is %s",
		       cases[i].text, err.text);
		CHECK(!doc);
	}
}

/* n opening brackets and as many closing ones. */
static void nest(struct strbuf *buf, size_t n)
{
	strbuf_reset(buf);
	for (size_t i = 0; i < n; i++)
		strbuf_puts(buf, i % 2 ? "{\"a\":" : "[");
	strbuf_puts(buf, "1");
	for (size_t i = n; i-- > 0;)
		strbuf_putc(buf, i % 2 ? '}' : ']');
}

static int parse_within(const struct strbuf *text, struct json_limits limits, struct err *err)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	return json_parse("x", text->s, text->len, &limits, &doc, err);
}

TEST(depth_is_bounded)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	nest(&text, JSON_MAX_DEPTH);
	CHECK_INT(parse_within(&text, (struct json_limits){ 0 }, &err), 0);
	nest(&text, JSON_MAX_DEPTH + 1);
	CHECK_INT(parse_within(&text, (struct json_limits){ 0 }, &err), -E2BIG);
	CHECK_STR(err.text, "x: more than 64 levels deep");
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_depth = 65 }, &err), 0);
	nest(&text, 1001);
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_depth = SIZE_MAX }, &err),
		  -E2BIG);
	/* side by side is not inside each other */
	strbuf_reset(&text);
	for (int i = 0; i < 1000; i++)
		strbuf_puts(&text, i ? ",[[]],{}" : "[[[]],{}");
	strbuf_putc(&text, ']');
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_depth = 3 }, &err), 0);
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_depth = 2 }, &err), -E2BIG);
}

TEST(size_and_number_of_values_are_bounded)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	strbuf_puts(&text, "[1,2,3]");
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_bytes = 7 }, &err), 0);
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_bytes = 6 }, &err), -E2BIG);
	CHECK_STR(err.text, "x: more than 6 bytes");
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_nodes = 4 }, &err), 0);
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_nodes = 3 }, &err), -E2BIG);
	CHECK_STR(err.text, "x: more than 3 values");
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_nodes = SIZE_MAX }, &err), 0);
	/* many brackets are stopped before they take sixteen times their memory */
	strbuf_reset(&text);
	for (int i = 0; i < 1 << 20; i++)
		strbuf_putc(&text, '[');
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_nodes = 1000 }, &err), -E2BIG);
	CHECK_STR(err.text, "x: more than 1000 values");
	/* one large string is one value */
	strbuf_reset(&text);
	strbuf_putc(&text, '"');
	for (int i = 0; i < 1 << 20; i++)
		strbuf_putc(&text, 'x');
	strbuf_putc(&text, '"');
	CHECK_INT(parse_within(&text, (struct json_limits){ .max_nodes = 1 }, &err), 0);
}

TEST(a_writer_puts_commas_and_colons)
{
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(&buf);
	json_open_object(&w);
	json_add_key(&w, "a\n");
	json_add_str(&w, "x\"y");
	json_add_key(&w, "list");
	json_open_array(&w);
	json_add_i64(&w, INT64_MIN);
	json_add_u64(&w, UINT64_MAX);
	json_open_object(&w);
	json_close_object(&w);
	json_open_array(&w);
	json_close_array(&w);
	json_add_bool(&w, true);
	json_add_null(&w);
	json_add_str(&w, NULL);
	json_add_strn(&w, "abc", 2);
	json_add_fixed(&w, 1.0 / 3, 3);
	json_add_fixed(&w, 1e308 * 10, 3);
	json_close_array(&w);
	json_add_key(&w, "end");
	json_add_bool(&w, false);
	json_close_object(&w);
	CHECK_STR(buf.s, "{\"a\\n\":\"x\\\"y\",\"list\":[-9223372036854775808,"
			 "18446744073709551615,{},[],true,null,null,\"ab\",0.333,null],"
			 "\"end\":false}");
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(buf.s);
	CHECK_INT(json_len(json_root(doc)), 3);
}

TEST(a_document_is_written_as_it_was_read)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(pod_text);
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(&buf);
	json_add_value(&w, json_root(doc));
	CHECK_STR(buf.s, pod_text);
	struct json_doc *again CLEANUP(json_doc_freep) = doc_of(buf.s);
	CHECK(json_equal(json_root(doc), json_root(again)));
	CHECK(!json_equal(json_root(doc), json_get(json_root(again), "spec")));
	strbuf_reset(&buf);
	json_open_array(&w);
	json_add_value(&w, json_get(json_root(doc), "metadata", "labels"));
	json_add_value(&w, NULL);
	json_close_array(&w);
	CHECK_STR(buf.s, "[{\"a\":\"1\",\"b\":\"2\"},null]");
}

TEST(sixty_four_levels_can_be_written)
{
	struct strbuf buf CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(&buf);
	for (int i = 0; i < JSON_WRITER_DEPTH; i++)
		json_open_array(&w);
	json_add_i64(&w, 1);
	json_add_i64(&w, 2);
	for (int i = 0; i < JSON_WRITER_DEPTH; i++)
		json_close_array(&w);
	struct json_doc *doc CLEANUP(json_doc_freep) = doc_of(buf.s);
	CHECK(doc);
}

TEST_MAIN()
