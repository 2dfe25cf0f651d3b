/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of YAML is JSON that reads the same again, both as JSON and as YAML, and
 * has no more values than the limits allow. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "wire/json.h"
#include "wire/json_write.h"
#include "wire/yaml.h"

#include <string.h>

/* so narrow that aliases of aliases reach them soon */
static const struct json_limits limits = {
	.max_bytes = 1 << 18,
	.max_nodes = 5000,
	.max_depth = 20,
};

static void write_value(struct strbuf *out, const struct json *value)
{
	struct json_writer writer = JSON_WRITER_INIT(out);
	json_add_value(&writer, value);
}

static void check_as_json(const struct strbuf *text)
{
	struct strbuf again CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	/* the escapes of JSON may take six bytes where there was one */
	struct json_limits wide = limits;
	wide.max_bytes = text->len;
	REQUIRE(json_parse("again", text->s, text->len, &wide, &doc, NULL) == 0);
	write_value(&again, json_root(doc));
	REQUIRE(again.len == text->len && memcmp(again.s, text->s, text->len) == 0);
}

/* YAML folds lines at these three, JSON does not know them as line ends. */
static bool has_yaml_line_end(const struct strbuf *text)
{
	return memmem(text->s, text->len, "\xc2\x85", 2) ||
	       memmem(text->s, text->len, "\xe2\x80\xa8", 3) ||
	       memmem(text->s, text->len, "\xe2\x80\xa9", 3);
}

/* JSON is YAML but for some characters and for keys over 1024 bytes. */
static void check_as_yaml(const struct strbuf *text)
{
	struct strbuf again CLEANUP(strbuf_done) = STRBUF_INIT;
	struct yaml yaml CLEANUP(yaml_done) = YAML_INIT;
	if (has_yaml_line_end(text) ||
	    yaml_parse("again", text->s, text->len, &limits, &yaml, NULL) < 0)
		return;
	REQUIRE(yaml.len == 1);
	write_value(&again, json_root(yaml.items[0].doc));
	REQUIRE(again.len == text->len && memcmp(again.s, text->s, text->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct yaml yaml CLEANUP(yaml_done) = YAML_INIT;
	struct err err = ERR_INIT;
	int result = yaml_parse("fuzz", (const char *)data, size, &limits, &yaml, &err);
	REQUIRE(result <= 0 && err.code == -result);
	REQUIRE(result == 0 || strncmp(err.text, "fuzz:", 5) == 0);
	REQUIRE(result == 0 || yaml.len == 0);
	for (size_t i = 0; i < yaml.len; i++) {
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		REQUIRE(yaml.items[i].line > 0);
		write_value(&text, json_root(yaml.items[i].doc));
		REQUIRE(!text.failed);
		check_as_json(&text);
		check_as_yaml(&text);
	}
	return 0;
}
