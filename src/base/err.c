/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *format, ...)
{
	if (!err)
		return -code;
	err->code = code;
	va_list args;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -code;
}

int err_prefix(struct err *err, const char *format, ...)
{
	if (!err)
		return 0;
	char text[2 * ERR_TEXT_MAX + 2];
	va_list args;
	va_start(args, format);
	int length = vsnprintf(text, ERR_TEXT_MAX, format, args);
	va_end(args);
	if (length < 0)
		return -err->code;
	size_t used = MIN((size_t)length, ERR_TEXT_MAX - 1);
	snprintf(text + used, sizeof(text) - used, ": %s", err->text);
	memcpy(err->text, text, ERR_TEXT_MAX - 1);
	err->text[ERR_TEXT_MAX - 1] = '\0';
	return -err->code;
}
