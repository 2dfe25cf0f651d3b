/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/keep.h"
#include "kube/object.h"
#include "kube/packed.h"
#include "wire/json.h"

#include <errno.h>

static const struct kube_meta no_meta;

static const char *kept(const char *const *paths, const char *text, struct strbuf *out)
{
	struct keep *keep CLEANUP(keep_freep) = NULL;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;
	CHECKF(keep_new(paths, &keep, &err) == 0, "%s", err.text);
	CHECKF(json_parse("test", text, strlen(text), NULL, &doc, &err) == 0, "%s", err.text);
	struct strbuf packed CLEANUP(strbuf_done) = STRBUF_INIT;
	keep_pack(keep, json_root(doc), &no_meta, &packed);
	CHECK(!packed.failed);
	strbuf_reset(out);
	packed_write_json(packed.s, packed.len, NULL, out);
	CHECK(!out->failed);
	return out->s;
}

#define KEPT(text, expected, ...) \
	CHECK_STR(kept((const char *const[]){ __VA_ARGS__, NULL }, (text), &out), (expected))

TEST(a_field_is_kept_whole)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	KEPT("{\"a\":{\"b\":[1,{\"c\":null}],\"d\":{}},\"e\":1}",
	     "{\"a\":{\"b\":[1,{\"c\":null}],\"d\":{}}}", "a");
	KEPT("{\"a\":{\"b\":{\"c\":1,\"d\":2}}}", "{\"a\":{\"b\":{\"c\":1}}}", "a.b.c");
	KEPT("{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":1,\"c\":2}}", "a.b", "a");
}

TEST(the_order_is_that_of_the_text)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	KEPT("{\"c\":3,\"x\":0,\"b\":2,\"a\":1}", "{\"c\":3,\"b\":2,\"a\":1}", "a", "b", "c");
}

TEST(what_is_not_there_leaves_nothing_behind)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	KEPT("{\"a\":{\"x\":{\"y\":1}},\"l\":[{\"y\":1},{}],\"z\":1}", "{\"z\":1}", "a.x.b",
	     "l[].a", "z");
	KEPT("{}", "{}", "a.b");
	KEPT("{\"a\":{},\"b\":[]}", "{}", "a.c", "b[].c");
}

TEST(what_has_the_wrong_type_is_kept_for_all_to_see)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	KEPT("{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}", "a.b.c.d");
	KEPT("{\"l\":{\"x\":[1]}}", "{\"l\":{\"x\":[1]}}", "l[].a");
	KEPT("{\"l\":[7,{\"a\":1,\"b\":2},[2]]}", "{\"l\":[7,{\"a\":1},[2]]}", "l[].a");
	KEPT("{\"m\":[1]}", "{\"m\":[1]}", "m{a}");
	KEPT("{\"m\":null}", "{\"m\":null}", "m{a}");
}

TEST(members_are_chosen_by_key_or_beginning)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	static const char text[] =
		"{\"a\":{\"gpu.io/x\":\"1\",\"map\":\"2\",\"mapper\":\"3\",\"gpu.i\":\"4\"}}";
	KEPT(text, "{\"a\":{\"gpu.io/x\":\"1\",\"map\":\"2\"}}", "a{gpu.io/*,map}");
	KEPT(text, "{\"a\":{\"mapper\":\"3\",\"gpu.i\":\"4\"}}", "a{!gpu.io/*,!map}");
	KEPT(text, "{}", "a{none}");
	KEPT(text, "{}", "a{!*}");
}

TEST(items_are_chosen_by_what_they_have)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	KEPT("{\"v\":[{\"n\":1,\"p\":{}},{\"n\":2,\"e\":{}},{\"n\":3}]}",
	     "{\"v\":[{\"n\":1},{\"n\":2}]}", "v[p|e].n");
	KEPT("{\"c\":[{\"t\":\"A\",\"s\":1},{\"t\":\"AB\",\"s\":2},{\"s\":3},{\"t\":4}]}",
	     "{\"c\":[{\"s\":1}]}", "c[t=A|C].s");
	KEPT("{\"c\":[{\"t\":\"A\"},{\"t\":\"B\",\"s\":[{}]}]}",
	     "{\"c\":[{\"t\":\"B\",\"s\":[{}]}]}", "c[t=B]");
}

TEST(constants_come_first_and_replace_what_the_document_says)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	KEPT("{\"kind\":\"X\",\"a\":1}", "{\"apiVersion\":\"a.b/v1\",\"kind\":\"Job\",\"a\":1}",
	     "apiVersion=a.b/v1", "kind=Job", "a");
	KEPT("{}", "{\"kind\":\"Job\"}", "kind=Job");
}

/* The amounts that a container runs with: a, those set aside; r, those in use. */
static void status_of(struct strbuf *out, const char *a, const char *r)
{
	strbuf_reset(out);
	strbuf_addf(out,
		    "{\"spec\":{\"containers\":[{\"name\":\"x\"},{\"name\":\"c\",\"resources\":"
		    "{\"requests\":{\"cpu\":\"2\",\"memory\":\"1Gi\"}}}]},\"status\":{\"s\":[{"
		    "\"name\":\"c\",\"allocatedResources\":%s,\"resources\":{\"requests\":%s}}]}}",
		    a, r);
}

TEST(amounts_in_use_are_kept_while_they_differ_from_the_spec)
{
	static const char same[] = "{\"memory\":\"1Gi\",\"cpu\":\"2\"}",
			  less[] = "{\"cpu\":\"1\"}";
	static const struct {
		const char *allocated, *actual;
		bool kept;
	} rows[] = {
		{ same, same, false }, { same, "null", true }, { less, same, true },
		{ same, less, true },  { "{}", "{}", true },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		status_of(&text, rows[i].allocated, rows[i].actual);
		KEPT(text.s, rows[i].kept ? "{\"status\":{\"s\":[{\"name\":\"c\"}]}}" : "{}",
		     "status.s[@resized].name");
	}
}

TEST(a_status_without_amounts_or_without_its_container)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	KEPT("{\"s\":[{\"name\":\"c\"}]}", "{}", "s[@resized].name");
	KEPT("{\"s\":[{\"name\":\"c\",\"allocatedResources\":{}}]}", "{\"s\":[{\"name\":\"c\"}]}",
	     "s[@resized].name");
}

TEST(values_are_written_as_they_were)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	static const char text[] =
		"{\"a\":[0,7,-7,9223372036854775807,-9223372036854775808,18446744073709551615,1.5,"
		"true,false,null,\"\\n\\u0001\\\"\\\\Ã©\"]}";
	KEPT(text, text, "a");
}

TEST(deep_values_are_kept_to_the_last_level)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_puts(&text, "{\"a\":");
	for (int i = 0; i < 63; i++)
		strbuf_putc(&text, '[');
	for (int i = 0; i < 63; i++)
		strbuf_putc(&text, ']');
	strbuf_putc(&text, '}');
	KEPT(text.s, text.s, "a");
}

TEST(every_string_comes_back_as_it_was)
{
	static const char *const rows[] = {
		"",
		"name",
		"PreemptLowerPriority",
		"35ef8954-6455-4013-9481-b531bf2d17cf",
		"35EF8954-6455-4013-9481-b531bf2d17cf",
		"35ef8954-6455-4013-9481-b531bf2d17cg",
		"35ef8954-6455-4013-94810b531bf2d17cf",
		"2026-11-16T00:21:00Z",
		"2026-11-16t00:21:00Z",
		"2026-11-16T00:21:60Z",
		"1969-12-31T23:59:59Z",
		"1970-01-01T00:00:00Z",
		"2106-02-07T06:28:15Z",
		"2106-02-07T06:28:16Z",
		"2026-02-29T00:00:00Z",
		"2026-11-16T00:21:00.000000Z",
		"one of sixty-three bytes.......................................",
		"one of sixty-four bytes.........................................",
		"one of many bytes, and then more, and more, and more, and more, and more .....",
		"gpu.scheduling/claims",
		"nvidia.com/gpu.count",
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		strbuf_addf(&text, "{\"a\":{\"%s\":[\"%s\"]}}", rows[i], rows[i]);
		KEPT(text.s, text.s, "a");
	}
}

TEST(a_name_that_the_object_has_takes_one_byte)
{
	struct strbuf packed CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct keep *keep CLEANUP(keep_freep) = NULL;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	static const char text[] = "{\"a\":\"x\",\"b\":[\"y\",\"z\"],\"c\":\"x\"}";
	static const struct packed_names names = { "the name", "the namespace", "the uid" };
	CHECK_INT(keep_new((const char *const[]){ "a", "b", "c", NULL }, &keep, NULL), 0);
	CHECK_INT(json_parse("test", text, strlen(text), NULL, &doc, NULL), 0);
	struct json_iter items = json_items(json_root(doc), "b");
	struct kube_meta meta = { .name = json_str(json_root(doc), "a"),
				  .namespace = json_str(json_next(&items)),
				  .uid = json_str(json_next(&items)) };
	keep_pack(keep, json_root(doc), &meta, &packed);
	packed_write_json(packed.s, packed.len, &names, &out);
	CHECK_STR(out.s, "{\"a\":\"the name\",\"b\":[\"the namespace\",\"the uid\"],\"c\":\"x\"}");
}

TEST(malformed_paths_are_refused)
{
	static const char *const rows[] = {
		"",	  ".a",	       "a.",	  "a..b",
		"a[",	  "a{b",       "a{b}.c",  "a[]b",
		"a{b,}",  "a{}",       "a{!b,c}", "a[b|]",
		"a[=b]|", "a[@other]", "a[b=]",	  "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q"
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct keep *keep CLEANUP(keep_freep) = NULL;
		struct err err = ERR_INIT;
		const char *paths[] = { rows[i], NULL };
		CHECKF(keep_new(paths, &keep, &err) == -EINVAL && !keep, "%s", rows[i]);
		CHECKF(strstr(err.text, rows[i]) != NULL, "%s", err.text);
	}
}

TEST(paths_through_one_list_must_agree_on_its_items)
{
	struct keep *keep CLEANUP(keep_freep) = NULL;
	static const char *const paths[] = { "a[b=c].d", "a[b=x].e", NULL };
	CHECK_INT(keep_new(paths, &keep, NULL), -EINVAL);
}

TEST(an_output_that_is_full_tells_so)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT_MAX(10);
	struct keep *keep CLEANUP(keep_freep) = NULL;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	static const char text[] = "{\"a\":\"0123456789\"}";
	CHECK_INT(keep_new((const char *const[]){ "a", NULL }, &keep, NULL), 0);
	CHECK_INT(json_parse("test", text, strlen(text), NULL, &doc, NULL), 0);
	keep_pack(keep, json_root(doc), &no_meta, &out);
	CHECK(out.failed);
}

TEST_MAIN()
