/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a list, in pieces of any size. */
#include "test.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "kube/cache_list.h"
#include "wire/json.h"

#include <errno.h>

struct reading {
	struct cache_list body;
	struct cache_list_frame frame;
	struct strbuf names; /* of the items, "?" for those that cannot be read */
	struct strbuf whys;
	int stop_after;
};

static void reading_init(struct reading *reading)
{
	*reading = (struct reading){ .frame = CACHE_LIST_FRAME_INIT,
				     .names = STRBUF_INIT,
				     .whys = STRBUF_INIT,
				     .stop_after = -1 };
	cache_list_init(&reading->body);
}

static void reading_done(struct reading *reading)
{
	cache_list_done(&reading->body);
	cache_list_frame_done(&reading->frame);
	strbuf_done(&reading->names);
	strbuf_done(&reading->whys);
}

static int take(void *context, const struct json *item, const char *why)
{
	struct reading *reading = context;
	const char *name = json_str(item, "name");
	strbuf_addf(&reading->names, "%s%s", reading->names.len ? " " : "",
		    !item  ? "?"
		    : name ? name
			   : "-");
	if (!item)
		strbuf_puts(&reading->whys, why);
	return reading->stop_after > 0 && --reading->stop_after == 0 ? 42 : 0;
}

/* Pushes the text in pieces of `step` bytes, then ends it. */
static int read_in_steps(struct reading *reading, const char *text, size_t step, struct err *err)
{
	size_t len = strlen(text);
	cache_list_reset(&reading->body);
	strbuf_reset(&reading->names);
	for (size_t at = 0; at < len; at += step) {
		/* a copy of its own, so that reading past it is noticed */
		size_t n = MIN(step, len - at);
		char *piece = malloc(n);
		CHECK(piece);
		memcpy(piece, text + at, n);
		int result = cache_list_push(&reading->body, piece, n, take, reading, err);
		free(piece);
		if (result != 0)
			return result;
	}
	return cache_list_end(&reading->body, &reading->frame, err);
}

TEST(a_list_is_the_same_however_it_is_cut)
{
	static const char text[] =
		" {\"kind\":\"items\",\"x\":{\"items\":[{\"name\":\"no\"}]},\"apiVersion\" : "
		"\"v1\","
		"\"metadata\":{\"resourceVersion\":\"12\",\"continue\":\"a\\\"b\",\"z\":[[]]},"
		"\"items\" : [ {\"name\":\"a\"} "
		",\n{\"name\":\"b]},\\\"{\\\\\",\"items\":[1,{},[]]},"
		"{ \"name\" : \"c\\u00e9\" } ] , \"more\":[{\"name\":\"no\"}],\"items2\":[]}\n ";
	for (size_t step = 1; step <= sizeof(text); step++) {
		struct reading reading CLEANUP(reading_done);
		struct err err = ERR_INIT;
		reading_init(&reading);
		CHECKF(read_in_steps(&reading, text, step, &err) == 0, "step %zu: %s", step,
		       err.text);
		CHECK_STR(reading.names.s, "a b]},\"{\\ c\xc3\xa9");
		CHECK_STR(reading.frame.version.s, "12");
		CHECK_STR(reading.frame.token.s, "a\"b");
	}
}

TEST(items_may_come_before_the_metadata)
{
	struct reading reading CLEANUP(reading_done);
	struct err err = ERR_INIT;
	reading_init(&reading);
	CHECK_INT(read_in_steps(&reading,
				"{\"items\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"metadata\":"
				"{\"resourceVersion\":\"7\"}}",
				5, &err),
		  0);
	CHECK_STR(reading.names.s, "a b");
	CHECK_STR(reading.frame.version.s, "7");
	CHECK_STR(reading.frame.token.s, "");
}

TEST(no_items_null_and_none_at_all_are_empty_lists)
{
	static const char *const texts[] = {
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[ \n ]}",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":null}",
		"{\"metadata\":{\"resourceVersion\":\"7\"}}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct reading reading CLEANUP(reading_done);
		struct err err = ERR_INIT;
		reading_init(&reading);
		CHECK_INT(read_in_steps(&reading, texts[i], 3, &err), 0);
		CHECK_STR(reading.names.s, "");
	}
}

TEST(what_is_no_whole_list_is_refused)
{
	static const char *const texts[] = {
		"",
		"[]",
		"null",
		"<html>",
		"{}",
		"{\"metadata\":{\"resourceVersion\":7},\"items\":[]}",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":{}}",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"name\":\"a\"}",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}}",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]} x",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[],}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct reading reading CLEANUP(reading_done);
		struct err err = ERR_INIT;
		reading_init(&reading);
		CHECKF(read_in_steps(&reading, texts[i], 4, &err) == -EINVAL, "%s", texts[i]);
		CHECK(err.text[0]);
	}
}

TEST(an_item_that_is_no_json_does_not_take_its_neighbours_along)
{
	struct reading reading CLEANUP(reading_done);
	struct err err = ERR_INIT;
	reading_init(&reading);
	CHECK_INT(read_in_steps(&reading,
				"{\"items\":[{\"name\":\"a\"},{name},{\"name\":\"\xff\"},7,null,"
				"{\"name\":\"b\"}],\"metadata\":{\"resourceVersion\":\"7\"}}",
				9, &err),
		  0);
	CHECK_STR(reading.names.s, "a ? ? - - b");
}

TEST(an_item_that_is_too_big_is_skipped)
{
	struct reading reading CLEANUP(reading_done);
	struct err err = ERR_INIT;
	size_t step = 1 << 20;
	char *piece = malloc(step);
	CHECK(piece);
	memset(piece, 'x', step);
	reading_init(&reading);
	static const char before[] = "{\"items\":[{\"name\":\"a\"},{\"name\":\"";
	static const char after[] =
		"\"},{\"name\":\"b\"}],\"metadata\":{\"resourceVersion\":\"7\"}}";
	CHECK_INT(cache_list_push(&reading.body, before, strlen(before), take, &reading, &err), 0);
	for (size_t n = 0; n <= CACHE_LIST_ITEM_MAX; n += step)
		CHECK_INT(cache_list_push(&reading.body, piece, step, take, &reading, &err), 0);
	CHECK_INT(cache_list_push(&reading.body, after, strlen(after), take, &reading, &err), 0);
	CHECK_INT(cache_list_end(&reading.body, &reading.frame, &err), 0);
	free(piece);
	CHECK_STR(reading.names.s, "a ? b");
	CHECK_STR(reading.whys.s, "it is larger than 16777216 bytes");
}

TEST(a_list_that_is_all_frame_is_stopped)
{
	struct reading reading CLEANUP(reading_done);
	struct err err = ERR_INIT;
	reading_init(&reading);
	int result = cache_list_push(&reading.body, "{\"metadata\":{\"x\":\"", 18, take, &reading,
				     &err);
	for (size_t n = 0; result == 0 && n <= CACHE_LIST_FRAME_MAX; n += 16)
		result = cache_list_push(&reading.body, "0123456789abcdef", 16, take, &reading,
					 &err);
	CHECK_INT(result, -E2BIG);
}

TEST(who_takes_the_items_may_stop)
{
	struct reading reading CLEANUP(reading_done);
	struct err err = ERR_INIT;
	reading_init(&reading);
	reading.stop_after = 2;
	CHECK_INT(read_in_steps(&reading, "{\"items\":[{\"name\":\"a\"},{\"name\":\"b\"},{}]}",
				100, &err),
		  42);
	CHECK_STR(reading.names.s, "a b");
}

TEST_MAIN()
