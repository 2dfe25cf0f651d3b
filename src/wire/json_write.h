/* SPDX-License-Identifier: Apache-2.0 */
/* json_write.h - writing JSON.
 *
 *	struct json_writer w = JSON_WRITER_INIT(&buf);
 *	json_open_object(&w);
 *	json_add_key(&w, "node");
 *	json_add_str(&w, name);
 *	json_close_object(&w);
 *
 * writes {"node":"..."} without blanks.  Commas and colons come by themselves.
 * What does not fit is told by the strbuf's `failed`.  A key outside an object or
 * an end without a beginning is our mistake and asserted.
 */
#ifndef GS_WIRE_JSON_WRITE_H
#define GS_WIRE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct strbuf;

#define JSON_WRITER_DEPTH 64

struct json_writer {
	struct strbuf *out; /* borrowed */
	unsigned depth;
	uint64_t objects; /* bit n: the container at depth n + 1 is an object */
	uint64_t filled;  /* bit n: it has something in it */
	bool after_key;
};

#define JSON_WRITER_INIT(buf) \
	{                     \
		.out = (buf)  \
	}

void json_open_object(struct json_writer *w);
void json_close_object(struct json_writer *w);
void json_open_array(struct json_writer *w);
void json_close_array(struct json_writer *w);
void json_add_key(struct json_writer *w, const char *key);

void json_add_str(struct json_writer *w, const char *s); /* NULL: null */
void json_add_strn(struct json_writer *w, const char *s, size_t n);
void json_add_i64(struct json_writer *w, int64_t number);
void json_add_u64(struct json_writer *w, uint64_t number);
void json_add_bool(struct json_writer *w, bool boolean);
void json_add_null(struct json_writer *w);

/* With so many digits after the point; null if it is not finite. */
void json_add_fixed(struct json_writer *w, double number, int digits);

/* A value of a document, whole.  NULL: null. */
void json_add_value(struct json_writer *w, const struct json *value);

#endif
