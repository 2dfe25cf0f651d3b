/* SPDX-License-Identifier: Apache-2.0 */
/* packed.h - JSON in few bytes, for objects that are kept by the ten thousands.
 *
 * Words that Kubernetes writes again and again take one or two bytes, UUIDs 17, times 5,
 * what the object knows anyway (its name) one, and there are no commas, colons and quotes.
 * A pod shrinks to two fifths of its text.  It lives in memory only: the form may change
 * with every build.
 *
 * A value is an open container, its values and an end; or a scalar.  In an object keys
 * and values take turns, a key being a string.
 */
#ifndef GS_KUBE_PACKED_H
#define GS_KUBE_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"

enum packed_token {
	PACKED_END,
	PACKED_OBJECT,
	PACKED_ARRAY,
	PACKED_TRUE,
	PACKED_FALSE,
	PACKED_NULL,
	PACKED_NUMBER, /* a byte of length, digits */
	PACKED_LONG,   /* a string: three bytes of length, the lowest first; bytes */
	PACKED_UUID,   /* a string: 16 bytes */
	PACKED_TIME,   /* a string: 4 bytes, seconds since 1970, the lowest first */
	PACKED_NAME,   /* strings that stand beside the packed text */
	PACKED_NAMESPACE,
	PACKED_UID,
	PACKED_WORD,	   /* a byte: the known word after those of one byte */
	PACKED_SHORT = 16, /* a string of this token less 16 bytes */
	PACKED_KNOWN = 80, /* a known word: this token less 80 */
};

#define PACKED_DEPTH_MAX 64
#define PACKED_INDEX	 1024

/* Finds known words.  Read-only after packed_words_init(). */
struct packed_words {
	uint16_t index[PACKED_INDEX]; /* by hash: word + 1, or 0 */
};

void packed_words_init(struct packed_words *words);

/* As strbuf_putc() and strbuf_add(), but inline, for the many small pieces of an event:
 * packed_close() puts the NUL behind the last. */
static inline void packed_put(struct strbuf *out, char c)
{
	if (out->len + 1 < out->cap)
		out->s[out->len++] = c;
	else
		strbuf_putc(out, c);
}

static inline void packed_add(struct strbuf *out, const char *p, size_t n)
{
	if (n < out->cap - out->len) {
		memcpy(out->s + out->len, p, n);
		out->len += n;
	} else {
		strbuf_add(out, p, n);
	}
}

static inline void packed_close(struct strbuf *out)
{
	if (out->cap)
		out->s[out->len] = '\0';
}

/* Appends a string, in the shortest form. */
void packed_add_string(struct strbuf *out, const struct packed_words *words, const char *s,
		       size_t len);

/* Appends a number that is written so. */
void packed_add_number(struct strbuf *out, const char *digits, size_t len);

/* What PACKED_NAME and the others stand for. */
struct packed_names {
	const char *name, *namespace, *uid;
};

/* Appends the JSON.  What is packed is ours and well-formed: a mistake is asserted. */
void packed_write_json(const char *packed, size_t len, const struct packed_names *names,
		       struct strbuf *out);

#endif
