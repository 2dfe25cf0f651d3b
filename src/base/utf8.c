/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t utf8_length(const char *p, size_t n)
{
	/* the least code point that needs so many bytes: less is overlong */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	if (n == 0)
		return 0;
	unsigned char c = (unsigned char)p[0];
	if (c < 0x80)
		return 1;
	size_t length = c >= 0xf8 ? 0 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 0;
	if (length == 0 || length > n)
		return 0;
	uint32_t code = c & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		unsigned char next = (unsigned char)p[i];
		if ((next & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (next & 0x3fu);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return length;
}

size_t utf8_valid(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n) {
		size_t length = utf8_length(p + i, n - i);
		if (length == 0)
			break;
		i += length;
	}
	return i;
}

char *utf8_show(const char *p, size_t n, char *text)
{
	size_t used = 0, i = 0;
	while (i < n) {
		size_t length = utf8_length(p + i, n - i);
		unsigned char c = (unsigned char)p[i];
		/* 0xc2 0x80..0x9f are control characters too */
		bool plain = length > 0 && c >= ' ' && c != 0x7f &&
			     !(c == 0xc2 && (unsigned char)p[i + 1] < 0xa0);
		if (used + (plain ? length : 1) > UTF8_SHOW_MAX - sizeof("..."))
			break;
		if (plain)
			memcpy(text + used, p + i, length);
		else
			text[used] = '?';
		used += plain ? length : 1;
		i += length ? length : 1;
	}
	memcpy(text + used, i < n ? "..." : "\0\0\0", sizeof("..."));
	return text;
}
