/* SPDX-License-Identifier: Apache-2.0 */
/* attr.h - the few compiler attributes and macros used everywhere.
 *
 *	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
 *
 * calls strbuf_done(&path) when `path` goes out of scope, on every way out.
 */
#ifndef GS_BASE_ATTR_H
#define GS_BASE_ATTR_H

#define CLEANUP(function) __attribute__((cleanup(function)))

/* The argument numbers (from 1) of the format and of its first value. */
#define PRINTF(text, first) __attribute__((format(printf, text, first)))

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Both evaluate their arguments twice: no side effects inside.  <sys/param.h>, which
 * comes with <uv.h>, has the same under these names. */
#undef MIN
#undef MAX
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
