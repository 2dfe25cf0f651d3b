/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - a whole file in memory. */
#ifndef GS_WIRE_FILE_H
#define GS_WIRE_FILE_H

#include <stddef.h>

struct err;
struct strbuf;

/* Replaces the content of `ret` by that of the file; "-" is the standard input.
 * 0, -EFBIG past max_bytes, -ENOMEM, or why it cannot be opened or read; the error
 * names the file.  `ret` is empty after an error. */
int file_read(const char *path, size_t max_bytes, struct strbuf *ret, struct err *err);

#endif
