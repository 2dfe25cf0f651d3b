/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - reading JSON.
 *
 *	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
 *	int result = json_parse(path, text, len, NULL, &doc, err);
 *	if (result < 0)
 *		return result;
 *	const struct json *pod = json_root(doc);
 *	const char *name = json_str(pod, "metadata", "name");
 *	struct json_iter containers = json_items(pod, "spec", "containers");
 *	for (const struct json *c; (c = json_next(&containers));)
 *		...
 *
 * A document is read-only and owns its values and strings; all of them are gone
 * with json_doc_free().  Any number of threads may read it.  YAML gives the same
 * documents (yaml.h).
 *
 * The functions below take a value and then the keys that lead from it to the
 * wanted one.  A value that is NULL, a key that is missing and a type other than
 * the wanted one are all "not there": chains need no checks in between.  If an
 * object has a key twice, the first one counts (YAML refuses that).
 */
#ifndef GS_WIRE_JSON_H
#define GS_WIRE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json;	 /* a value inside a document */
struct json_doc; /* the owner of all its values */

enum json_type {
	JSON_NONE, /* not there */
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

/* What a text may cost.  0 means the default. */
struct json_limits {
	size_t max_bytes; /* of text, and of strings that YAML aliases multiply */
	size_t max_nodes; /* values and keys; 16 bytes each */
	size_t max_depth; /* of arrays and objects inside each other, at most 1000 */
};

#define JSON_MAX_BYTES ((size_t)32 << 20)
#define JSON_MAX_NODES ((size_t)8 << 20)
#define JSON_MAX_DEPTH ((size_t)64)

/* The limits with their defaults put in; NULL: all of them. */
struct json_limits json_limits_or_default(const struct json_limits *limits);

/* Reads one JSON text.  `name` (of the file, say) begins the error, which is
 * "name:line:column: reason".  0, -EINVAL for what is not JSON (RFC 8259, in
 * UTF-8), -E2BIG past a limit, -ENOMEM.  `limits` may be NULL. */
int json_parse(const char *name, const char *text, size_t len, const struct json_limits *limits,
	       struct json_doc **ret, struct err *err);

void json_doc_free(struct json_doc *doc);
void json_doc_freep(struct json_doc **doc); /* for CLEANUP() */
const struct json *json_root(const struct json_doc *doc);

/* The value at the end of the path, NULL if it is not there. */
#define json_get(...) json_get_path(__VA_ARGS__, JSON_PATH_END)

/* JSON_NONE if it is not there. */
#define json_type(...) json_type_path(__VA_ARGS__, JSON_PATH_END)

/* The string, NULL if there is none.  A string with a NUL character inside has
 * no true C form and counts as not there; json_strn() gives any string. */
#define json_str(...)	      json_str_path(__VA_ARGS__, JSON_PATH_END)
#define json_strn(value, ...) json_strn_path((value), __VA_ARGS__, JSON_PATH_END)

/* json_i64(value, &number, "spec", "replicas"), and likewise:
 * 0 and the number; -ENOENT if it is not there or null; -EINVAL if it is of another
 * type.  An integer is exact, never by way of a double: 1.5 and 2^63 are -EINVAL. */
#define json_i64(value, ...)	json_i64_path((value), __VA_ARGS__, JSON_PATH_END)
#define json_double(value, ...) json_double_path((value), __VA_ARGS__, JSON_PATH_END)
#define json_bool(value, ...)	json_bool_path((value), __VA_ARGS__, JSON_PATH_END)

/* How many items an array or members an object has; 0 for all else. */
#define json_len(...) json_len_path(__VA_ARGS__, JSON_PATH_END)

struct json_iter {
	const struct json *next;
	size_t left;
};

struct json_member {
	const char *key; /* NUL-terminated; may hold NULs too */
	size_t key_len;
	const struct json *value;
};

/* Over an array; over nothing if it is not one.  NULL at the end. */
#define json_items(...) json_items_path(__VA_ARGS__, JSON_PATH_END)
const struct json *json_next(struct json_iter *iter);

/* Over an object, in the order of the text.  False at the end. */
#define json_members(...) json_members_path(__VA_ARGS__, JSON_PATH_END)
bool json_next_member(struct json_iter *iter, struct json_member *ret);

/* Whether both are the same JSON; the order of an object's members does not count. */
bool json_equal(const struct json *a, const struct json *b);

/* Behind the macros: keys up to JSON_PATH_END. */
#define JSON_PATH_END ((const char *)0)
#define JSON_PATH     __attribute__((sentinel))
JSON_PATH const struct json *json_get_path(const struct json *value, ...);
JSON_PATH enum json_type json_type_path(const struct json *value, ...);
JSON_PATH const char *json_str_path(const struct json *value, ...);
JSON_PATH const char *json_strn_path(const struct json *value, size_t *len, ...);
JSON_PATH int json_i64_path(const struct json *value, int64_t *ret, ...);
JSON_PATH int json_double_path(const struct json *value, double *ret, ...);
JSON_PATH int json_bool_path(const struct json *value, bool *ret, ...);
JSON_PATH size_t json_len_path(const struct json *value, ...);
JSON_PATH struct json_iter json_items_path(const struct json *value, ...);
JSON_PATH struct json_iter json_members_path(const struct json *value, ...);

#endif
