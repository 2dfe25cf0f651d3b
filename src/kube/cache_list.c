/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cache_list.h"

#include "base/attr.h"
#include "base/err.h"
#include "wire/json.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

void cache_list_init(struct cache_list *list)
{
	*list = (struct cache_list){
		.frame = STRBUF_INIT_MAX(CACHE_LIST_FRAME_MAX),
		.item = STRBUF_INIT_MAX(CACHE_LIST_ITEM_MAX),
	};
}

void cache_list_reset(struct cache_list *list)
{
	struct strbuf frame = list->frame, item = list->item;
	strbuf_reset(&frame);
	strbuf_reset(&item);
	*list = (struct cache_list){ .frame = frame, .item = item };
}

void cache_list_done(struct cache_list *list)
{
	if (!list)
		return;
	strbuf_done(&list->frame);
	strbuf_done(&list->item);
}

void cache_list_frame_done(struct cache_list_frame *frame)
{
	strbuf_done(&frame->version);
	strbuf_done(&frame->token);
}

static bool is_blank(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!isspace((unsigned char)p[i]))
			return false;
	}
	return true;
}

/* Goes on to the end of the string, the bytes or the next escape. */
static const char *skip_string(struct cache_list *list, const char *p, const char *end)
{
	if (list->escaped && p < end) {
		list->escaped = false;
		p++;
	}
	while (p < end && *p != '"') {
		if (*p != '\\') {
			p++;
		} else if (p + 1 < end) {
			p += 2;
		} else {
			list->escaped = true;
			return end;
		}
	}
	if (p < end) {
		list->in_string = false;
		p++;
	}
	return p;
}

/* One item is whole: `p` has its last bytes, those before are in list->item. */
static int item_end(struct cache_list *list, const char *p, size_t n, cache_list_fn call,
		    void *context)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct json_limits limits = { .max_bytes = CACHE_LIST_ITEM_MAX };
	struct err err = ERR_INIT;
	if (list->item.len > 0 || list->too_big) {
		strbuf_add(&list->item, p, n);
		p = list->item.s;
		n = list->item.len;
	}
	int result =
		list->item.failed || n > CACHE_LIST_ITEM_MAX
			? err_set(&err, E2BIG, "it is larger than %zu bytes", CACHE_LIST_ITEM_MAX)
			: json_parse("item", p, n, &limits, &doc, &err);
	if (result == -ENOMEM)
		return result;
	result = call(context, result == 0 ? json_root(doc) : NULL, err.text);
	strbuf_reset(&list->item);
	list->too_big = false;
	return result;
}

/* Keeps the beginning of an item whose end has not come. */
static void item_keep(struct cache_list *list, const char *p, size_t n)
{
	if (list->item.len == 0 && is_blank(p, n))
		return;
	strbuf_add(&list->item, p, n);
	list->too_big = list->item.failed;
}

/* Reads on inside the array of items; `*at` is left behind its end or the bytes'. */
static int push_items(struct cache_list *list, const char **at, const char *end,
		      cache_list_fn call, void *context)
{
	const char *from = *at, *p = from;
	while (p < end) {
		if (list->in_string) {
			p = skip_string(list, p, end);
			continue;
		}
		char c = *p++;
		if (c == '"') {
			list->in_string = true;
		} else if (c == '{' || c == '[') {
			list->depth++;
		} else if ((c == '}' || c == ']') && list->depth > 2) {
			list->depth--;
		} else if (list->depth == 2 && (c == ',' || c == ']')) {
			size_t n = (size_t)(p - 1 - from);
			bool none = list->item.len == 0 && !list->too_big && is_blank(from, n);
			int result = none ? 0 : item_end(list, from, n, call, context);
			if (result != 0)
				return result;
			from = p;
			if (c == ']') {
				strbuf_putc(&list->frame, ']');
				list->in_items = false;
				list->depth = 1;
				*at = p;
				return 0;
			}
		}
	}
	item_keep(list, from, (size_t)(end - from));
	*at = end;
	return 0;
}

static bool last_string_is_items(const struct cache_list *list)
{
	static const char items[] = "\"items\"";
	size_t len = sizeof(items) - 1;
	return list->frame.len - list->string_at >= len &&
	       memcmp(list->frame.s + list->string_at, items, len) == 0;
}

/* Notes where the frame goes deeper, and where the array of items begins. */
static void frame_structure(struct cache_list *list, char c)
{
	if (c == '"') {
		list->in_string = true;
		list->string_at = list->frame.len - 1;
	} else if (c == ':' && list->depth == 1) {
		list->is_key = last_string_is_items(list);
	} else if (c == ',' && list->depth == 1) {
		list->is_key = false;
	} else if (c == '{' || c == '[') {
		list->in_items = c == '[' && list->depth == 1 && list->is_key;
		list->depth++;
	} else if ((c == '}' || c == ']') && list->depth > 0) {
		list->depth--;
	}
}

/* Reads on outside of the items, up to their beginning. */
static void push_frame(struct cache_list *list, const char **at, const char *end)
{
	const char *p = *at;
	while (p < end && !list->in_items && !list->frame.failed) {
		const char *from = p;
		if (list->in_string) {
			p = skip_string(list, p, end);
			strbuf_add(&list->frame, from, (size_t)(p - from));
			continue;
		}
		strbuf_putc(&list->frame, *p);
		frame_structure(list, *p++);
	}
	*at = p;
}

int cache_list_push(struct cache_list *list, const char *bytes, size_t len, cache_list_fn call,
		    void *context, struct err *err)
{
	const char *end = bytes + len;
	while (bytes < end) {
		if (list->in_items) {
			int result = push_items(list, &bytes, end, call, context);
			if (result == -ENOMEM)
				return err_set(err, ENOMEM, "no memory for an item of the list");
			if (result != 0)
				return result;
			continue;
		}
		push_frame(list, &bytes, end);
		if (list->frame.failed)
			return err_set(err, E2BIG, "the list has more than %zu bytes around items",
				       CACHE_LIST_FRAME_MAX);
		if (!is_blank(list->frame.s, MIN(list->frame.len, 1)) && list->frame.s[0] != '{')
			return err_set(err, EINVAL, "the answer is no list");
	}
	return 0;
}

int cache_list_end(struct cache_list *list, struct cache_list_frame *ret, struct err *err)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	if (list->in_items)
		return err_set(err, EINVAL, "the list ends in the middle");
	int result = json_parse("list", list->frame.s, list->frame.len, NULL, &doc, err);
	if (result < 0)
		return result;
	const struct json *root = json_root(doc);
	const char *version = json_str(root, "metadata", "resourceVersion");
	const char *token = json_str(root, "metadata", "continue");
	enum json_type items = json_type(root, "items");
	if (!version || !*version)
		return err_set(err, EINVAL, "the list says no resourceVersion");
	if (items != JSON_ARRAY && items != JSON_NULL && items != JSON_NONE)
		return err_set(err, EINVAL, "the list's items are no array");
	strbuf_reset(&ret->version);
	strbuf_reset(&ret->token);
	strbuf_puts(&ret->version, version);
	strbuf_puts(&ret->token, token ? token : "");
	if (ret->version.failed || ret->token.failed)
		return err_set(err, ENOMEM, "no memory for the list's version");
	return 0;
}
