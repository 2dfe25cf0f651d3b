/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/terminal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/num.h"
#include "sim/picture.h"

#define WIDTH_DEFAULT 80

/* The first of these that is set says what characters there are. */
static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
	}
	return false;
}

static uint32_t width_of(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint32_t width;

	if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	if (columns && parse_u32(columns, strlen(columns), &width) == 0)
		return width;
	return 0;
}

void terminal_style(FILE *stream, struct picture_style *style)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	int fd = fileno(stream);

	style->color = isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
	style->unicode = style->color && is_utf8();
	style->width = width_of(fd);
}

uint32_t terminal_width(FILE *stream)
{
	uint32_t width = width_of(fileno(stream));

	return width ? width : WIDTH_DEFAULT;
}
