/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - what the terminal behind a stream can show. */
#ifndef GS_SIM_TERMINAL_H
#define GS_SIM_TERMINAL_H

#include <stdint.h>
#include <stdio.h>

struct picture_style;

/* Sets color, unicode and width: colours on a terminal unless NO_COLOR is set or TERM is
 * "dumb", blocks where the locale is UTF-8 besides, and the terminal's own width. */
void terminal_style(FILE *stream, struct picture_style *style);

/* The columns of the terminal, or $COLUMNS; 80 where nobody knows. */
uint32_t terminal_width(FILE *stream);

#endif
