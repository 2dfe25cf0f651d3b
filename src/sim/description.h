/* SPDX-License-Identifier: Apache-2.0 */
/* description.h - files that are one YAML document: clusters and scenarios. */
#ifndef GS_SIM_DESCRIPTION_H
#define GS_SIM_DESCRIPTION_H

#include <stddef.h>

struct err;
struct yaml;

/* Reads the file, which must be one document; `what` ("a cluster") is what the error
 * calls it.  0, -EINVAL, -ENOMEM, or why the file cannot be read. */
int description_read(const char *path, const char *what, struct yaml *ret, struct err *err);
int description_parse(const char *name, const char *what, const char *text, size_t len,
		      struct yaml *ret, struct err *err);

void description_done(struct yaml *yaml); /* for CLEANUP() */

#endif
