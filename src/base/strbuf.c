/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strbuf.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char strbuf_empty[1];

/* Makes room for n more bytes and the NUL. */
static bool reserve(struct strbuf *buf, size_t n)
{
	if (buf->failed)
		return false;
	size_t max = buf->max ? MIN(buf->max, SIZE_MAX - 1) : STRBUF_MAX_DEFAULT;
	if (buf->len > max || n > max - buf->len)
		goto fail;
	size_t need = buf->len + n + 1;
	if (need <= buf->cap)
		return true;
	size_t cap = MAX(need, MIN(buf->cap * 2, max + 1));
	cap = MAX(cap, MIN((size_t)64, max + 1));
	char *s = realloc(buf->cap ? buf->s : NULL, cap);
	if (!s)
		goto fail;
	s[buf->len] = '\0';
	buf->s = s;
	buf->cap = cap;
	return true;
fail:
	buf->failed = true;
	return false;
}

void strbuf_add(struct strbuf *buf, const char *p, size_t n)
{
	if (n == 0 || !reserve(buf, n))
		return;
	memcpy(buf->s + buf->len, p, n);
	buf->len += n;
	buf->s[buf->len] = '\0';
}

void strbuf_puts(struct strbuf *buf, const char *s)
{
	strbuf_add(buf, s, strlen(s));
}

void strbuf_putc(struct strbuf *buf, char c)
{
	strbuf_add(buf, &c, 1);
}

void strbuf_addf(struct strbuf *buf, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	size_t room = buf->cap ? buf->cap - buf->len : 0;
	int n = vsnprintf(room ? buf->s + buf->len : NULL, room, format, args);
	if (n < 0)
		buf->failed = true;
	else if (n > 0 && reserve(buf, (size_t)n)) {
		/* mostly the first attempt was enough, but `max` had to be asked first */
		if ((size_t)n >= room)
			vsnprintf(buf->s + buf->len, (size_t)n + 1, format, again);
		buf->len += (size_t)n;
	}
	if (buf->cap)
		buf->s[buf->len] = '\0';
	va_end(again);
	va_end(args);
}

static bool json_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != 0x7f;
}

static void add_json_escape(struct strbuf *buf, unsigned char c)
{
	static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: byte, letter */
	for (size_t i = 0; i + 1 < sizeof(letters); i += 2) {
		if ((unsigned char)letters[i] == c) {
			strbuf_add(buf, (char[]){ '\\', letters[i + 1] }, 2);
			return;
		}
	}
	strbuf_addf(buf, "\\u%04x", c);
}

void strbuf_add_json(struct strbuf *buf, const char *p, size_t n)
{
	strbuf_putc(buf, '"');
	size_t i = 0;
	while (i < n) {
		size_t start = i;
		while (i < n && json_is_plain((unsigned char)p[i]))
			i++;
		strbuf_add(buf, p + start, i - start);
		if (i == n)
			break;
		size_t length = utf8_length(p + i, n - i);
		if (length > 1)
			strbuf_add(buf, p + i, length);
		else if (length == 1)
			add_json_escape(buf, (unsigned char)p[i]);
		else
			strbuf_puts(buf, "\xef\xbf\xbd");
		i += MAX(length, 1);
	}
	strbuf_putc(buf, '"');
}

void strbuf_truncate(struct strbuf *buf, size_t n)
{
	if (n >= buf->len)
		return;
	buf->len = n;
	buf->s[n] = '\0';
}

void strbuf_reset(struct strbuf *buf)
{
	strbuf_truncate(buf, 0);
	buf->failed = false;
}

void strbuf_done(struct strbuf *buf)
{
	if (!buf)
		return;
	if (buf->cap)
		free(buf->s);
	*buf = (struct strbuf)STRBUF_INIT_MAX(buf->max);
}
