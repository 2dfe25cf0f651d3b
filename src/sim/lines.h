/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h - where in a YAML file something stands, for errors.
 *
 * Documents do not know the lines of their values, and what is found wrong with a cluster
 * is found when it is built.  So the file is looked at once more, when there is something
 * to complain about.
 */
#ifndef GS_SIM_LINES_H
#define GS_SIM_LINES_H

#include <stddef.h>

/* The line of the index-th item of the list `key`, which is at the top of the first
 * document or in the object `parent` there; 0 if the file cannot be read again or has no
 * such item. */
size_t lines_of_item(const char *path, const char *parent, const char *key, size_t index);

#endif
