/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - is this UTF-8, and may it go to a terminal? */
#ifndef GS_BASE_UTF8_H
#define GS_BASE_UTF8_H

#include <stddef.h>

/* How many bytes the character at p takes (1 to 4), or 0 if there is no valid
 * one within n bytes: truncated, overlong, a surrogate or above U+10FFFF. */
size_t utf8_length(const char *p, size_t n);

/* How many bytes at p are valid; n if all are. */
size_t utf8_valid(const char *p, size_t n);

#define UTF8_SHOW_MAX 80

/* What was read, for an error message: into `text` of UTF8_SHOW_MAX bytes, cut with
 * "..." and with '?' for whatever would not be plain text on a terminal.  Returns
 * text. */
char *utf8_show(const char *p, size_t n, char *text);

#endif
