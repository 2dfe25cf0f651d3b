/* SPDX-License-Identifier: Apache-2.0 */
/* struct json is yyjson's value and struct json_doc its document under names of
 * our own: only pointers are ever converted. */
#include "wire/json.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#define DEPTH_MAX 1000

static yyjson_val *val(const struct json *value)
{
	return (yyjson_val *)(uintptr_t)value;
}

static const struct json *json(const yyjson_val *value)
{
	return (const struct json *)value;
}

/* yyjson does not recurse, but it would take 16 bytes for every '[': so no single
 * piece of memory may be larger than what the limits need. */
struct bounded {
	size_t max_bytes;
	bool refused;
};

static void *bounded_realloc(void *context, void *p, size_t old_size, size_t size)
{
	(void)old_size;
	struct bounded *bounded = context;
	if (size > bounded->max_bytes) {
		bounded->refused = true;
		return NULL;
	}
	return realloc(p, size);
}

static void *bounded_malloc(void *context, size_t size)
{
	return bounded_realloc(context, NULL, 0, size);
}

/* Called long after `context` is gone. */
static void bounded_free(void *context, void *p)
{
	(void)context;
	free(p);
}

/* Values lie one after the other, a container before what it contains: one pass
 * with the ends of the open containers gives the depth. */
static bool too_deep(const yyjson_doc *doc, size_t max_depth)
{
	const yyjson_val *ends[DEPTH_MAX];
	size_t depth = 0;
	const yyjson_val *at = yyjson_doc_get_root((yyjson_doc *)(uintptr_t)doc);
	const yyjson_val *end = at + yyjson_doc_get_val_count((yyjson_doc *)(uintptr_t)doc);
	for (; at < end; at++) {
		if (!yyjson_is_ctn((yyjson_val *)(uintptr_t)at))
			continue;
		while (depth > 0 && at >= ends[depth - 1])
			depth--;
		if (depth == max_depth)
			return true;
		ends[depth++] = at + at->uni.ofs / sizeof(*at);
	}
	return false;
}

static int parse_error(const char *name, const char *text, size_t len,
		       const yyjson_read_err *reason, struct err *err)
{
	size_t line = 1, column = 1, character;
	yyjson_locate_pos(text, len, MIN(reason->pos, len), &line, &column, &character);
	return err_set(err, EINVAL, "%s:%zu:%zu: %s", name, line, column, reason->msg);
}

struct json_limits json_limits_or_default(const struct json_limits *limits)
{
	struct json_limits all = limits ? *limits : (struct json_limits){ 0 };
	all.max_bytes = all.max_bytes ? all.max_bytes : JSON_MAX_BYTES;
	all.max_nodes = all.max_nodes ? all.max_nodes : JSON_MAX_NODES;
	all.max_depth = all.max_depth ? MIN(all.max_depth, DEPTH_MAX) : JSON_MAX_DEPTH;
	return all;
}

/* yyjson begins with 16 bytes for every 6 of text and then grows by half, so it may
 * ask for more than it will use. */
static size_t memory_for(const struct json_limits *max, size_t len)
{
	size_t bytes;
	if (MUL_OVERFLOW(max->max_nodes, sizeof(yyjson_val) * 3 / 2, &bytes))
		return SIZE_MAX;
	bytes = MAX(bytes, len * 3);
	return ADD_OVERFLOW(bytes, 4096u, &bytes) ? SIZE_MAX : bytes;
}

int json_parse(const char *name, const char *text, size_t len, const struct json_limits *limits,
	       struct json_doc **ret, struct err *err)
{
	struct json_limits max = json_limits_or_default(limits);
	if (len > max.max_bytes)
		return err_set(err, E2BIG, "%s: more than %zu bytes", name, max.max_bytes);
	struct bounded bounded = { .max_bytes = memory_for(&max, len) };
	yyjson_alc alc = { bounded_malloc, bounded_realloc, bounded_free, &bounded };
	yyjson_read_err reason = { 0 };
	yyjson_doc *doc =
		yyjson_read_opts((char *)(uintptr_t)(len ? text : ""), len, 0, &alc, &reason);
	if (!doc && reason.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION && !bounded.refused)
		return err_set(err, ENOMEM, "%s: out of memory", name);
	if (!doc && !bounded.refused)
		return parse_error(name, text, len, &reason, err);
	if (!doc || yyjson_doc_get_val_count(doc) > max.max_nodes) {
		yyjson_doc_free(doc);
		return err_set(err, E2BIG, "%s: more than %zu values", name, max.max_nodes);
	}
	if (too_deep(doc, max.max_depth)) {
		yyjson_doc_free(doc);
		return err_set(err, E2BIG, "%s: more than %zu levels deep", name, max.max_depth);
	}
	*ret = (struct json_doc *)doc;
	return 0;
}

void json_doc_free(struct json_doc *doc)
{
	yyjson_doc_free((yyjson_doc *)doc);
}

void json_doc_freep(struct json_doc **doc)
{
	json_doc_free(*doc);
}

const struct json *json_root(const struct json_doc *doc)
{
	return json(yyjson_doc_get_root((yyjson_doc *)(uintptr_t)doc));
}

static const struct json *follow(const struct json *value, va_list keys)
{
	const char *key;
	while (value && (key = va_arg(keys, const char *)))
		value = json(yyjson_obj_get(val(value), key));
	return value;
}

/* Sets `value` to the end of the path whose keys follow the parameter `last`. */
#define FOLLOW(value, last)                      \
	do {                                     \
		va_list keys;                    \
		va_start(keys, last);            \
		(value) = follow((value), keys); \
		va_end(keys);                    \
	} while (0)

const struct json *json_get_path(const struct json *value, ...)
{
	FOLLOW(value, value);
	return value;
}

enum json_type json_type_path(const struct json *value, ...)
{
	FOLLOW(value, value);
	switch (yyjson_get_type(val(value))) {
	case YYJSON_TYPE_NULL:
		return JSON_NULL;
	case YYJSON_TYPE_BOOL:
		return JSON_BOOL;
	case YYJSON_TYPE_NUM:
		return JSON_NUMBER;
	case YYJSON_TYPE_STR:
		return JSON_STRING;
	case YYJSON_TYPE_ARR:
		return JSON_ARRAY;
	case YYJSON_TYPE_OBJ:
		return JSON_OBJECT;
	default:
		return JSON_NONE;
	}
}

const char *json_str_path(const struct json *value, ...)
{
	FOLLOW(value, value);
	const char *s = yyjson_get_str(val(value));
	return s && strlen(s) == yyjson_get_len(val(value)) ? s : NULL;
}

const char *json_strn_path(const struct json *value, size_t *len, ...)
{
	FOLLOW(value, len);
	const char *s = yyjson_get_str(val(value));
	if (s)
		*len = yyjson_get_len(val(value));
	return s;
}

/* Why there is no value of the wanted type. */
static int missing(const struct json *value)
{
	return !value || yyjson_is_null(val(value)) ? -ENOENT : -EINVAL;
}

int json_i64_path(const struct json *value, int64_t *ret, ...)
{
	FOLLOW(value, ret);
	if (yyjson_is_sint(val(value)))
		*ret = yyjson_get_sint(val(value));
	else if (yyjson_is_uint(val(value)) && yyjson_get_uint(val(value)) <= INT64_MAX)
		*ret = (int64_t)yyjson_get_uint(val(value));
	else
		return missing(value);
	return 0;
}

int json_double_path(const struct json *value, double *ret, ...)
{
	FOLLOW(value, ret);
	if (!yyjson_is_num(val(value)))
		return missing(value);
	*ret = yyjson_get_num(val(value));
	return 0;
}

int json_bool_path(const struct json *value, bool *ret, ...)
{
	FOLLOW(value, ret);
	if (!yyjson_is_bool(val(value)))
		return missing(value);
	*ret = yyjson_get_bool(val(value));
	return 0;
}

size_t json_len_path(const struct json *value, ...)
{
	FOLLOW(value, value);
	return yyjson_is_ctn(val(value)) ? yyjson_get_len(val(value)) : 0;
}

struct json_iter json_items_path(const struct json *value, ...)
{
	FOLLOW(value, value);
	return (struct json_iter){
		.next = json(yyjson_arr_get_first(val(value))),
		.left = yyjson_arr_size(val(value)),
	};
}

const struct json *json_next(struct json_iter *iter)
{
	if (iter->left == 0)
		return NULL;
	const struct json *value = iter->next;
	if (--iter->left > 0)
		iter->next = json(unsafe_yyjson_get_next(val(value)));
	return value;
}

struct json_iter json_members_path(const struct json *value, ...)
{
	FOLLOW(value, value);
	size_t left = yyjson_obj_size(val(value));
	return (struct json_iter){
		.next = left ? json(unsafe_yyjson_get_first(val(value))) : NULL,
		.left = left,
	};
}

bool json_next_member(struct json_iter *iter, struct json_member *ret)
{
	if (iter->left == 0)
		return false;
	yyjson_val *key = val(iter->next);
	ret->key = yyjson_get_str(key);
	ret->key_len = yyjson_get_len(key);
	ret->value = json(key + 1); /* a member is its key and then its value */
	if (--iter->left > 0)
		iter->next = json(unsafe_yyjson_get_next(key + 1));
	return true;
}

bool json_equal(const struct json *a, const struct json *b)
{
	return yyjson_equals(val(a), val(b));
}
