/* SPDX-License-Identifier: Apache-2.0 */
/* strbuf.h - text that grows.
 *
 * `s` is always NUL-terminated and never NULL after STRBUF_INIT.  When a piece
 * does not fit below `max` or memory runs out, nothing of that piece is added,
 * `failed` is set and stays set, and all later additions are ignored: append
 * freely, check once at the end.  The text may hold NUL bytes (use `len`).  The
 * zero value is empty too, but for `s`, which is NULL until something is added.
 */
#ifndef GS_BASE_STRBUF_H
#define GS_BASE_STRBUF_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

#define STRBUF_MAX_DEFAULT ((size_t)64 << 20)

struct strbuf {
	char *s;
	size_t len, cap; /* cap 0: `s` is borrowed from strbuf_empty */
	size_t max;	 /* greatest len; 0: STRBUF_MAX_DEFAULT */
	bool failed;
};

extern char strbuf_empty[1]; /* "", shared, never written */

#define STRBUF_INIT STRBUF_INIT_MAX(STRBUF_MAX_DEFAULT)
#define STRBUF_INIT_MAX(max_bytes)                    \
	{                                             \
		.s = strbuf_empty, .max = (max_bytes) \
	}

void strbuf_add(struct strbuf *buf, const char *p, size_t n);
void strbuf_puts(struct strbuf *buf, const char *s);
void strbuf_putc(struct strbuf *buf, char c);
void strbuf_addf(struct strbuf *buf, const char *format, ...) PRINTF(2, 3);

/* A JSON string with its quotes.  Control characters are escaped; bytes that are
 * not UTF-8 become U+FFFD, so that the result is valid whatever comes in.  The
 * only place in the program where this is done. */
void strbuf_add_json(struct strbuf *buf, const char *p, size_t n);

/* Cuts the text to its first n bytes (no effect if it is shorter). */
void strbuf_truncate(struct strbuf *buf, size_t n);

/* Empty again, `failed` cleared, memory kept. */
void strbuf_reset(struct strbuf *buf);

/* Frees the memory and leaves an empty buffer with the same max. */
void strbuf_done(struct strbuf *buf);

#endif
