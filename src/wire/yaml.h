/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.h - reading YAML into the documents of json.h.
 *
 * One text may hold many documents, separated by "---"; empty ones are left out.
 * Values mean what they mean to kubectl (which reads YAML 1.1 by way of JSON):
 *
 *   null     nothing, ~, null, Null, NULL
 *   boolean  true, yes, on, y and false, no, off, n, also Capitalised or in CAPITALS
 *   integer  12, -3, 1_000, 0x1f, 0b101, 0o17, and 017 which is 15
 *   number   1.5, .5, 1e3; one that is whole (2.0, 1e3) counts as an integer
 *   string   all else (dates too), and whatever is quoted or a block
 *
 * The tags !!str, !!int, !!float, !!bool, !!null, !!map and !!seq may say otherwise.
 * Keys are strings: a number or boolean becomes its text.  Aliases are copied, and
 * "<<" merges mappings; the mapping's own keys win, wherever they stand.
 *
 * Errors are a key that comes twice, .inf and .nan, other tags, an alias without
 * anchor or inside its own.  JSON texts are read too, as far as YAML differs.
 */
#ifndef GS_WIRE_YAML_H
#define GS_WIRE_YAML_H

#include <stddef.h>

struct err;
struct json_doc;
struct json_limits;

struct yaml_document {
	struct json_doc *doc;
	size_t line; /* where its content begins */
};

struct yaml {
	struct yaml_document *items;
	size_t len, cap;
};

#define YAML_INIT \
	{         \
		0 \
	}

/* Reads all documents into `ret`, which is empty before.  `name` begins the error,
 * "name:line:column: reason".  The limits (NULL: defaults) hold for the whole text,
 * with every alias counted as what it stands for.  0, -EINVAL, -E2BIG, -ENOMEM;
 * after an error `ret` is empty. */
int yaml_parse(const char *name, const char *text, size_t len, const struct json_limits *limits,
	       struct yaml *ret, struct err *err);

void yaml_done(struct yaml *yaml);

#endif
