/* SPDX-License-Identifier: Apache-2.0 */
/* What was read can be walked, is within its limits, and reads the same again after it
 * was written. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "wire/json.h"
#include "wire/json_write.h"
#include "wire/quantity.h"

#include <string.h>

static const struct json_limits narrow = { .max_nodes = 50, .max_depth = 5 };

/* Touches every value and counts; its own depth is bounded by the limits. */
static size_t walk(const struct json *value, size_t depth, size_t max_depth)
{
	size_t count = 1, len;
	int64_t integer;
	double real;
	bool boolean;
	struct quantity quantity;
	json_str(value, "metadata", "name");
	json_strn(value, &len);
	json_i64(value, &integer);
	json_double(value, &real);
	json_bool(value, &boolean);
	quantity_from_json(value, &quantity, NULL);
	REQUIRE(depth + (json_type(value) >= JSON_ARRAY) <= max_depth);
	struct json_iter items = json_items(value);
	for (const struct json *item; (item = json_next(&items));)
		count += walk(item, depth + 1, max_depth);
	struct json_iter members = json_members(value);
	for (struct json_member member; json_next_member(&members, &member);)
		count += 1 + walk(member.value, depth + 1, max_depth);
	return count;
}

static bool read_and_write(const char *text, size_t size, const struct json_limits *limits,
			   struct strbuf *out)
{
	struct json_limits max = json_limits_or_default(limits);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;
	int result = json_parse("fuzz", text, size, limits, &doc, &err);
	REQUIRE(result <= 0 && (result == 0) == (doc != NULL));
	REQUIRE(result == 0 || strncmp(err.text, "fuzz:", 5) == 0);
	if (result < 0)
		return false;
	REQUIRE(walk(json_root(doc), 0, max.max_depth) <= max.max_nodes);
	struct json_writer writer = JSON_WRITER_INIT(out);
	json_add_value(&writer, json_root(doc));
	REQUIRE(json_equal(json_root(doc), json_root(doc)));
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf first CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf second CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf unused CLEANUP(strbuf_done) = STRBUF_INIT;
	read_and_write((const char *)data, size, &narrow, &unused);
	if (!read_and_write((const char *)data, size, NULL, &first))
		return 0;
	REQUIRE(read_and_write(first.s, first.len, NULL, &second));
	REQUIRE(first.len == second.len && memcmp(first.s, second.s, first.len) == 0);
	return 0;
}
