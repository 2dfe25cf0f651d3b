/* SPDX-License-Identifier: Apache-2.0 */
/* A list gives the same items however its bytes are cut; and if they are a JSON object
 * as a whole, those that a reader of the whole would find. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/cache_list.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <string.h>

static int take(void *context, const struct json *item, const char *why)
{
	struct strbuf *out = context;
	struct json_writer writer = JSON_WRITER_INIT(out);
	REQUIRE((item == NULL) == (why[0] != '\0'));
	if (item)
		json_add_value(&writer, item);
	strbuf_puts(out, item ? "\n" : "?\n");
	return 0;
}

/* The items, one a line, in pieces of `step` bytes; how it ended. */
static int read_list(const char *text, size_t size, size_t step, struct strbuf *out,
		     struct cache_list_frame *frame)
{
	struct cache_list body CLEANUP(cache_list_done);
	struct err err = ERR_INIT;
	int result = 0;
	cache_list_init(&body);
	for (size_t at = 0; result == 0 && at < size; at += step)
		result = cache_list_push(&body, text + at, MIN(step, size - at), take, out, &err);
	if (result == 0)
		result = cache_list_end(&body, frame, &err);
	REQUIRE(result <= 0 && (result == 0) == (err.text[0] == '\0'));
	REQUIRE(result < 0 || frame->version.len > 0);
	return result;
}

/* What a list is: an object with a version, and items that are an array or nothing. */
static bool is_list(const struct json *root)
{
	const char *version = json_str(root, "metadata", "resourceVersion");
	enum json_type items = json_type(root, "items");
	return version && *version &&
	       (items == JSON_NONE || items == JSON_NULL || items == JSON_ARRAY);
}

/* Keys that come twice, or with escapes inside, mean more than one thing. */
static bool is_plain(const struct json *root, const char *text, size_t size)
{
	struct json_iter members = json_members(root);
	unsigned lists = 0, others = 0;
	for (struct json_member member; json_next_member(&members, &member);) {
		lists += strcmp(member.key, "items") == 0;
		others += strcmp(member.key, "metadata") == 0;
	}
	return lists <= 1 && others <= 1 && !memchr(text, '\\', size);
}

static void compare(const char *text, size_t size, int result, const struct strbuf *items)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct strbuf expected CLEANUP(strbuf_done) = STRBUF_INIT;
	if (json_parse("fuzz", text, size, NULL, &doc, NULL) < 0)
		return;
	const struct json *root = json_root(doc);
	if (!is_plain(root, text, size))
		return;
	REQUIRE((result == 0) == is_list(root));
	struct json_iter iter = json_items(root, "items");
	for (const struct json *item; (item = json_next(&iter));)
		take(&expected, item, "");
	REQUIRE(result < 0 ||
		(expected.len == items->len && memcmp(expected.s, items->s, items->len) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf whole CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf pieces CLEANUP(strbuf_done) = STRBUF_INIT;
	struct cache_list_frame frame CLEANUP(cache_list_frame_done) = CACHE_LIST_FRAME_INIT;
	struct cache_list_frame again CLEANUP(cache_list_frame_done) = CACHE_LIST_FRAME_INIT;
	size_t step = size > 0 ? 1 + data[size - 1] % 7 : 1;
	int result = read_list((const char *)data, size, size + 1, &whole, &frame);
	REQUIRE((read_list((const char *)data, size, step, &pieces, &again) < 0) == (result < 0));
	if (result == 0) {
		REQUIRE(strcmp(whole.s, pieces.s) == 0);
		REQUIRE(strcmp(frame.version.s, again.version.s) == 0);
		REQUIRE(strcmp(frame.token.s, again.token.s) == 0);
	}
	compare((const char *)data, size, result, &whole);
	return 0;
}
