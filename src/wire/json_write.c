/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_write.h"

#include "base/strbuf.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

static uint64_t level_bit(const struct json_writer *w)
{
	return (uint64_t)1 << (w->depth - 1);
}

/* The comma before an item of the open container. */
static void separate(struct json_writer *w)
{
	if (w->depth == 0)
		return;
	if (w->filled & level_bit(w))
		strbuf_putc(w->out, ',');
	w->filled |= level_bit(w);
}

static void before_value(struct json_writer *w)
{
	bool in_object = w->depth > 0 && (w->objects & level_bit(w));
	assert(in_object == w->after_key);
	if (!in_object)
		separate(w);
	w->after_key = false;
}

static void open_container(struct json_writer *w, bool object)
{
	before_value(w);
	assert(w->depth < JSON_WRITER_DEPTH);
	w->depth++;
	w->filled &= ~level_bit(w);
	w->objects &= ~level_bit(w);
	w->objects |= object ? level_bit(w) : 0;
	strbuf_putc(w->out, object ? '{' : '[');
}

static void close_container(struct json_writer *w, bool object)
{
	assert(w->depth > 0 && !w->after_key);
	assert(object == ((w->objects & level_bit(w)) != 0));
	w->depth--;
	strbuf_putc(w->out, object ? '}' : ']');
}

void json_open_object(struct json_writer *w)
{
	open_container(w, true);
}

void json_close_object(struct json_writer *w)
{
	close_container(w, true);
}

void json_open_array(struct json_writer *w)
{
	open_container(w, false);
}

void json_close_array(struct json_writer *w)
{
	close_container(w, false);
}

void json_add_key(struct json_writer *w, const char *key)
{
	assert(w->depth > 0 && (w->objects & level_bit(w)) && !w->after_key);
	separate(w);
	strbuf_add_json(w->out, key, strlen(key));
	strbuf_putc(w->out, ':');
	w->after_key = true;
}

void json_add_str(struct json_writer *w, const char *s)
{
	if (s)
		json_add_strn(w, s, strlen(s));
	else
		json_add_null(w);
}

void json_add_strn(struct json_writer *w, const char *s, size_t n)
{
	before_value(w);
	strbuf_add_json(w->out, s, n);
}

void json_add_i64(struct json_writer *w, int64_t number)
{
	before_value(w);
	strbuf_addf(w->out, "%" PRId64, number);
}

void json_add_u64(struct json_writer *w, uint64_t number)
{
	before_value(w);
	strbuf_addf(w->out, "%" PRIu64, number);
}

void json_add_bool(struct json_writer *w, bool boolean)
{
	before_value(w);
	strbuf_puts(w->out, boolean ? "true" : "false");
}

void json_add_null(struct json_writer *w)
{
	before_value(w);
	strbuf_puts(w->out, "null");
}

void json_add_fixed(struct json_writer *w, double number, int digits)
{
	before_value(w);
	if (isfinite(number))
		strbuf_addf(w->out, "%.*f", digits, number);
	else
		strbuf_puts(w->out, "null");
}

void json_add_value(struct json_writer *w, const struct json *value)
{
	if (!value) {
		json_add_null(w);
		return;
	}
	before_value(w);
	size_t len;
	char *text = yyjson_val_write((const yyjson_val *)value, 0, &len);
	if (text)
		strbuf_add(w->out, text, len);
	else
		w->out->failed = true; /* out of memory: a document holds nothing unwritable */
	free(text);
}
