/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - one sentence about what went wrong, for the person who can mend it.
 *
 * The lowest layer that knows the name or the file sets the error; layers above
 * may put context in front; the program prints it once.  Text that does not fit
 * is cut.  A plain value, no memory behind it.
 *
 *	struct err err = ERR_INIT;
 *	if (nodes_read(path, &nodes, &err) < 0)
 *		fprintf(stderr, "%s\n", err.text);
 */
#ifndef GS_BASE_ERR_H
#define GS_BASE_ERR_H

#include "base/attr.h"

#define ERR_TEXT_MAX 512 /* with the final NUL */

struct err {
	int code; /* a positive errno, 0: no error */
	char text[ERR_TEXT_MAX];
};

#define ERR_INIT  \
	{         \
		0 \
	}

/* Sets the code (a positive errno) and the text.  Returns -code, to be returned
 * in turn.  `err` may be NULL: the caller does not want the text. */
int err_set(struct err *err, int code, const char *format, ...) PRINTF(3, 4);

/* Puts "<prefix>: " in front of the text.  Returns -err->code; 0 if err is NULL,
 * so functions that use it return their own code where err may be missing. */
int err_prefix(struct err *err, const char *format, ...) PRINTF(2, 3);

#endif
