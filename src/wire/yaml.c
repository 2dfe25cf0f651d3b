/* SPDX-License-Identifier: Apache-2.0 */
/* libyaml tells what it sees as a flat row of events.  Open arrays and mappings are
 * frames on a stack; a value joins the frame below when it is complete.  What comes
 * of an anchor is remembered with its size, so that the cost of an alias is known
 * before it is copied. */
#include "wire/yaml.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/map.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "wire/json.h"
#include "wire/yaml_scalar.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <yaml.h>
#include <yyjson.h>

struct cost {
	size_t nodes, bytes;
};

struct anchor {
	yyjson_mut_val *value; /* NULL while it is still open */
	struct cost cost;
	size_t height; /* containers inside each other; a scalar has 0 */
};

struct frame {
	yyjson_mut_val *value;
	yyjson_mut_val *key;   /* of a mapping, waiting for its value */
	yyjson_mut_val *merge; /* the value of "<<" */
	bool merging;	       /* the key was "<<" */
	struct map keys;
	struct anchor *anchor; /* NULL: none */
	struct cost before;
	size_t height;
};

struct reader {
	const char *name;
	struct json_limits max;
	struct err *err;
	uint64_t seed; /* of all maps: whoever wrote the text must not know it */
	struct yaml *out;
	yaml_parser_t parser;
	yaml_mark_t mark; /* of the present event */
	struct cost cost;
	/* of the present document */
	yyjson_mut_doc *doc;
	yyjson_mut_val *root;
	size_t line;
	struct frame *frames;
	size_t depth;
	struct map anchors; /* by name; both in the arena */
	struct arena arena;
};

/* Sets the error, with the place of the present event in front. */
PRINTF(3, 4) static int fail(struct reader *r, int code, const char *format, ...)
{
	char reason[256];
	va_list args;
	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return err_set(r->err, code, "%s:%zu:%zu: %s", r->name, r->mark.line + 1,
		       r->mark.column + 1, reason);
}

static int out_of_memory(struct reader *r)
{
	return err_set(r->err, ENOMEM, "%s: out of memory", r->name);
}

/* Takes what a value costs from the limits of the whole text. */
static int charge(struct reader *r, size_t nodes, size_t bytes)
{
	if (nodes > r->max.max_nodes - r->cost.nodes)
		return fail(r, E2BIG, "more than %zu values", r->max.max_nodes);
	if (bytes > r->max.max_bytes - r->cost.bytes)
		return fail(r, E2BIG, "more than %zu bytes of values", r->max.max_bytes);
	r->cost.nodes += nodes;
	r->cost.bytes += bytes;
	return 0;
}

static int check_depth(struct reader *r, size_t height)
{
	if (r->depth + height <= r->max.max_depth)
		return 0;
	return fail(r, E2BIG, "more than %zu levels deep", r->max.max_depth);
}

/* Remembers the name; the value follows when it is complete. */
static int open_anchor(struct reader *r, const yaml_char_t *name, struct anchor **ret)
{
	*ret = NULL;
	if (!name)
		return 0;
	size_t len = strlen((const char *)name);
	struct anchor *anchor = arena_alloc(&r->arena, sizeof(*anchor));
	char *key = arena_strndup(&r->arena, (const char *)name, len);
	if (!anchor || !key || map_put(&r->anchors, key, len, anchor) < 0)
		return out_of_memory(r);
	*ret = anchor;
	return 0;
}

static void close_anchor(struct reader *r, struct anchor *anchor, yyjson_mut_val *value,
			 struct cost before, size_t height)
{
	if (!anchor)
		return;
	anchor->value = value;
	anchor->cost.nodes = r->cost.nodes - before.nodes;
	anchor->cost.bytes = r->cost.bytes - before.bytes;
	anchor->height = height;
}

/* In the place of a key. */
static int add_key(struct reader *r, struct frame *frame, yyjson_mut_val *value, bool merge)
{
	char shown[UTF8_SHOW_MAX];
	const char *reason = NULL;
	yyjson_mut_val *key = yaml_scalar_key(r->doc, value, &reason);
	if (!key)
		return reason ? fail(r, EINVAL, "%s", reason) : out_of_memory(r);
	const char *s = yyjson_mut_get_str(key);
	size_t len = yyjson_mut_get_len(key);
	frame->merging = merge;
	if (merge && frame->merge)
		return fail(r, EINVAL, "the key \"<<\" comes twice");
	if (!merge && map_get(&frame->keys, s, len))
		return fail(r, EINVAL, "the key \"%s\" comes twice", utf8_show(s, len, shown));
	if (!merge && map_put(&frame->keys, s, len, key) < 0)
		return out_of_memory(r);
	frame->key = key;
	return 0;
}

static int set_merge(struct reader *r, struct frame *frame, yyjson_mut_val *value)
{
	yyjson_mut_arr_iter iter;
	yyjson_mut_arr_iter_init(value, &iter); /* over nothing if it is no array */
	bool fine = yyjson_mut_is_obj(value) || yyjson_mut_is_arr(value);
	for (yyjson_mut_val *item; (item = yyjson_mut_arr_iter_next(&iter));)
		fine = fine && yyjson_mut_is_obj(item);
	if (!fine)
		return fail(r, EINVAL, "\"<<\" wants a mapping or a list of mappings");
	frame->merge = value;
	return 0;
}

/* A complete value goes where it belongs.  `merge`: it is a plain <<. */
static int add_value(struct reader *r, yyjson_mut_val *value, size_t height, bool merge)
{
	if (r->depth == 0) {
		r->root = value;
		return 0;
	}
	struct frame *frame = &r->frames[r->depth - 1];
	frame->height = MAX(frame->height, height + 1);
	if (yyjson_mut_is_arr(frame->value))
		return yyjson_mut_arr_append(frame->value, value) ? 0 : out_of_memory(r);
	if (!frame->key)
		return add_key(r, frame, value, merge);
	yyjson_mut_val *key = frame->key;
	frame->key = NULL;
	if (frame->merging)
		return set_merge(r, frame, value);
	return yyjson_mut_obj_add(frame->value, key, value) ? 0 : out_of_memory(r);
}

static int on_scalar(struct reader *r, const yaml_event_t *event)
{
	struct yaml_scalar scalar = {
		.text = (const char *)event->data.scalar.value,
		.len = event->data.scalar.length,
		.tag = (const char *)event->data.scalar.tag,
		.plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
	};
	struct cost before = r->cost;
	struct anchor *anchor;
	int result = charge(r, 1, scalar.len);
	if (result < 0 || (result = open_anchor(r, event->data.scalar.anchor, &anchor)) < 0)
		return result;
	const char *reason = NULL;
	yyjson_mut_val *value = yaml_scalar_value(r->doc, &scalar, &reason);
	if (!value)
		return reason ? fail(r, EINVAL, "%s", reason) : out_of_memory(r);
	close_anchor(r, anchor, value, before, 0);
	bool merge = scalar.plain && !scalar.tag && strcmp(scalar.text, "<<") == 0;
	bool empty = scalar.plain && !scalar.tag && !anchor && scalar.len == 0;
	if (r->depth == 0 && empty)
		return 0; /* a document without content */
	return add_value(r, value, 0, merge);
}

static int on_alias(struct reader *r, const yaml_event_t *event)
{
	char shown[UTF8_SHOW_MAX];
	const char *name = (const char *)event->data.alias.anchor;
	size_t len = strlen(name);
	const struct anchor *anchor = map_get(&r->anchors, name, len);
	if (!anchor)
		return fail(r, EINVAL, "there is no anchor \"%s\"", utf8_show(name, len, shown));
	if (!anchor->value)
		return fail(r, EINVAL, "the anchor \"%s\" contains itself",
			    utf8_show(name, len, shown));
	int result = charge(r, anchor->cost.nodes, anchor->cost.bytes);
	if (result < 0 || (result = check_depth(r, anchor->height)) < 0)
		return result;
	yyjson_mut_val *copy = yyjson_mut_val_mut_copy(r->doc, anchor->value);
	return copy ? add_value(r, copy, anchor->height, false) : out_of_memory(r);
}

static int on_open(struct reader *r, bool mapping, const yaml_char_t *anchor,
		   const yaml_char_t *tag)
{
	const char *expected = mapping ? YAML_MAP_TAG : YAML_SEQ_TAG;
	if (tag && strcmp((const char *)tag, expected) != 0)
		return fail(r, EINVAL, "this tag is not supported");
	if (r->depth > 0) {
		const struct frame *below = &r->frames[r->depth - 1];
		if (yyjson_mut_is_obj(below->value) && !below->key)
			return fail(r, EINVAL, "a key must be a string");
	}
	struct frame frame = { .before = r->cost };
	int result = check_depth(r, 1);
	if (result < 0 || (result = charge(r, 1, 0)) < 0 ||
	    (result = open_anchor(r, anchor, &frame.anchor)) < 0)
		return result;
	frame.value = mapping ? yyjson_mut_obj(r->doc) : yyjson_mut_arr(r->doc);
	if (!frame.value)
		return out_of_memory(r);
	map_init(&frame.keys, r->seed);
	r->frames[r->depth++] = frame;
	return 0;
}

/* Adds what the mapping does not have itself.  The values are copied, for the
 * mapping that they come from may have an anchor and be wanted again. */
static int merge_mapping(struct reader *r, struct frame *frame, yyjson_mut_val *from)
{
	yyjson_mut_obj_iter iter;
	yyjson_mut_obj_iter_init(from, &iter);
	for (yyjson_mut_val *key; (key = yyjson_mut_obj_iter_next(&iter));) {
		const char *s = yyjson_mut_get_str(key);
		size_t len = yyjson_mut_get_len(key);
		if (map_get(&frame->keys, s, len))
			continue;
		yyjson_mut_val *name = yyjson_mut_val_mut_copy(r->doc, key);
		yyjson_mut_val *value =
			yyjson_mut_val_mut_copy(r->doc, yyjson_mut_obj_iter_get_val(key));
		if (!name || !value || map_put(&frame->keys, s, len, key) < 0 ||
		    !yyjson_mut_obj_add(frame->value, name, value))
			return out_of_memory(r);
	}
	return 0;
}

static int merge_all(struct reader *r, struct frame *frame)
{
	if (yyjson_mut_is_obj(frame->merge))
		return merge_mapping(r, frame, frame->merge);
	yyjson_mut_arr_iter iter;
	yyjson_mut_arr_iter_init(frame->merge, &iter);
	for (yyjson_mut_val *item; (item = yyjson_mut_arr_iter_next(&iter));) {
		int result = merge_mapping(r, frame, item);
		if (result < 0)
			return result;
	}
	return 0;
}

static int on_close(struct reader *r)
{
	struct frame *frame = &r->frames[r->depth - 1];
	int result = frame->merge ? merge_all(r, frame) : 0;
	map_done(&frame->keys);
	r->depth--;
	if (result < 0)
		return result;
	size_t height = MAX(frame->height, 1);
	close_anchor(r, frame->anchor, frame->value, frame->before, height);
	return add_value(r, frame->value, height, false);
}

static void forget_document(struct reader *r)
{
	while (r->depth > 0)
		map_done(&r->frames[--r->depth].keys);
	yyjson_mut_doc_free(r->doc);
	r->doc = NULL;
	r->root = NULL;
	map_done(&r->anchors);
	arena_reset(&r->arena);
}

static int on_document_start(struct reader *r)
{
	r->line = 0;
	r->doc = yyjson_mut_doc_new(NULL);
	return r->doc ? 0 : out_of_memory(r);
}

static int on_document_end(struct reader *r)
{
	if (r->root) {
		yyjson_mut_doc_set_root(r->doc, r->root);
		yyjson_doc *doc = yyjson_mut_doc_imut_copy(r->doc, NULL);
		struct yaml_document document = { (struct json_doc *)doc, r->line };
		if (!doc || vec_push(r->out, document) < 0) {
			yyjson_doc_free(doc);
			return out_of_memory(r);
		}
	}
	forget_document(r);
	return 0;
}

static int on_event(struct reader *r, const yaml_event_t *event)
{
	r->mark = event->start_mark;
	if (r->line == 0)
		r->line = r->mark.line + 1;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return on_document_start(r);
	case YAML_DOCUMENT_END_EVENT:
		return on_document_end(r);
	case YAML_ALIAS_EVENT:
		return on_alias(r, event);
	case YAML_SCALAR_EVENT:
		return on_scalar(r, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(r, false, event->data.sequence_start.anchor,
			       event->data.sequence_start.tag);
	case YAML_MAPPING_START_EVENT:
		return on_open(r, true, event->data.mapping_start.anchor,
			       event->data.mapping_start.tag);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_close(r);
	default:
		return 0;
	}
}

/* What libyaml itself found wrong. */
static int syntax_error(struct reader *r, const char *text, size_t len)
{
	const yaml_parser_t *p = &r->parser;
	if (p->error == YAML_MEMORY_ERROR)
		return out_of_memory(r);
	size_t line = p->problem_mark.line + 1, column = p->problem_mark.column + 1, character;
	if (p->error == YAML_READER_ERROR) /* bytes that are no text: only an offset is known */
		yyjson_locate_pos(text, len, MIN(p->problem_offset, len), &line, &column,
				  &character);
	return err_set(r->err, EINVAL, "%s:%zu:%zu: %s%s%s", r->name, line, column,
		       p->problem ? p->problem : "not YAML", p->context ? " " : "",
		       p->context ? p->context : "");
}

static int read_events(struct reader *r, const char *text, size_t len, bool *syntax)
{
	for (bool more = true; more;) {
		yaml_event_t event;
		if (!yaml_parser_parse(&r->parser, &event)) {
			*syntax = true;
			return syntax_error(r, text, len);
		}
		int result = on_event(r, &event);
		more = event.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
		if (result < 0)
			return result;
	}
	return 0;
}

/* JSON has a few things that libyaml refuses, such as "\ud83d\ude00". */
static bool read_json(struct reader *r, const char *text, size_t len)
{
	size_t at = 0;
	while (at < len && strchr(" \t\r\n", text[at]))
		at++;
	if (at == len || text[at] != '{')
		return false;
	struct yaml_document document = { .line = 1 };
	if (json_parse(r->name, text, len, &r->max, &document.doc, NULL) < 0)
		return false;
	if (vec_push(r->out, document) == 0)
		return true;
	json_doc_free(document.doc);
	return false;
}

static int read_stream(struct reader *r, const char *text, size_t len)
{
	if (!yaml_parser_initialize(&r->parser))
		return out_of_memory(r);
	yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, len);
	bool syntax = false;
	int result = read_events(r, text, len, &syntax);
	forget_document(r);
	yaml_parser_delete(&r->parser);
	if (!syntax || r->out->len > 0 || !read_json(r, text, len))
		return result;
	if (r->err)
		*r->err = (struct err)ERR_INIT;
	return 0;
}

int yaml_parse(const char *name, const char *text, size_t len, const struct json_limits *limits,
	       struct yaml *ret, struct err *err)
{
	struct reader r = { .name = name, .err = err, .out = ret };
	r.max = json_limits_or_default(limits);
	if (len > r.max.max_bytes)
		return err_set(err, E2BIG, "%s: more than %zu bytes", name, r.max.max_bytes);
	r.frames = calloc(r.max.max_depth, sizeof(*r.frames));
	if (!r.frames)
		return out_of_memory(&r);
	if (getrandom(&r.seed, sizeof(r.seed), GRND_NONBLOCK) < 0)
		r.seed = (uintptr_t)&r; /* early in the boot: better than none */
	map_init(&r.anchors, r.seed);
	/* an anchor is at least three bytes of text, "&a,", and takes 48 here */
	arena_init(&r.arena, 4096 + len * 16);
	int result = read_stream(&r, text, len);
	if (result < 0)
		yaml_done(ret);
	arena_done(&r.arena);
	free(r.frames);
	return result;
}

void yaml_done(struct yaml *yaml)
{
	if (!yaml)
		return;
	for (size_t i = 0; i < yaml->len; i++)
		json_doc_free(yaml->items[i].doc);
	vec_done(yaml);
}
