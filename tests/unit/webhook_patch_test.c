/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "webhook/patch.h"
#include "wire/json.h"

static const char *text_of(struct patch *patch)
{
	size_t len = 0;
	const char *text = patch_text(patch, &len);

	CHECK(!text || strlen(text) == len);
	return text;
}

TEST(a_path_escapes_what_json_pointers_want_escaped)
{
	struct patch_path at = patch_key(PATCH_ROOT, "metadata");

	CHECK_STR(PATCH_ROOT.text, "");
	CHECK_STR(at.text, "/metadata");
	CHECK_STR(patch_key(at, "gpu.scheduling/slot").text, "/metadata/gpu.scheduling~1slot");
	CHECK_STR(patch_key(at, "a~b/c~1").text, "/metadata/a~0b~1c~01");
	CHECK_STR(patch_key(at, "").text, "/metadata/");
	CHECK_STR(patch_index(at, 0).text, "/metadata/0");
	CHECK_STR(patch_index(at, 1234567).text, "/metadata/1234567");
	CHECK_STR(at.text, "/metadata");
}

TEST(operations_come_in_their_order)
{
	struct patch patch CLEANUP(patch_done) = PATCH_INIT;
	struct patch_path at = patch_key(PATCH_ROOT, "a");

	CHECK(patch_is_empty(&patch));
	patch_test(&patch, at, "x\"y");
	json_add_i64(patch_add(&patch, at), 1);
	patch_end(&patch);
	json_add_bool(patch_replace(&patch, at), true);
	patch_end(&patch);
	patch_remove(&patch, at);
	CHECK(!patch_is_empty(&patch));
	CHECK_STR(text_of(&patch), "[{\"op\":\"test\",\"path\":\"/a\",\"value\":\"x\\\"y\"},"
				   "{\"op\":\"add\",\"path\":\"/a\",\"value\":1},"
				   "{\"op\":\"replace\",\"path\":\"/a\",\"value\":true},"
				   "{\"op\":\"remove\",\"path\":\"/a\"}]");
}

TEST(what_is_there_is_replaced_and_what_is_not_is_added)
{
	static const char text[] = "{\"a\":null}";
	struct patch patch CLEANUP(patch_done) = PATCH_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

	CHECK(json_parse("text", text, sizeof(text) - 1, NULL, &doc, NULL) == 0);
	for (const char *const *key = (const char *const[]){ "a", "b", NULL }; *key; key++) {
		json_add_null(patch_set(&patch, patch_key(PATCH_ROOT, *key),
					json_get(json_root(doc), *key)));
		patch_end(&patch);
	}
	CHECK_STR(text_of(&patch), "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":null},"
				   "{\"op\":\"add\",\"path\":\"/b\",\"value\":null}]");
}

TEST(a_guard_stands_before_the_next_operation_only)
{
	struct patch patch CLEANUP(patch_done) = PATCH_INIT;
	struct patch_path a = patch_key(PATCH_ROOT, "a"), b = patch_key(PATCH_ROOT, "b");

	patch_guard(&patch, a, "unused");
	patch_guard(&patch, b, NULL);
	CHECK(patch_is_empty(&patch));
	patch_guard(&patch, a, "name");
	CHECK(patch_is_empty(&patch));
	patch_remove(&patch, b);
	patch_remove(&patch, b);
	CHECK_STR(text_of(&patch), "[{\"op\":\"test\",\"path\":\"/a\",\"value\":\"name\"},"
				   "{\"op\":\"remove\",\"path\":\"/b\"},"
				   "{\"op\":\"remove\",\"path\":\"/b\"}]");
}

TEST(a_patch_that_grows_too_large_is_none)
{
	struct patch patch CLEANUP(patch_done) = PATCH_INIT;
	struct patch_path at = patch_key(PATCH_ROOT, "a");

	CHECK(!patch_is_full(&patch));
	for (size_t i = 0; i < PATCH_MAX / 16; i++)
		patch_remove(&patch, at);
	CHECK(patch_is_full(&patch));
	CHECK(!text_of(&patch));
}

TEST_MAIN()
