/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_scalar.h - what a YAML scalar means (used by yaml.c alone). */
#ifndef GS_WIRE_YAML_SCALAR_H
#define GS_WIRE_YAML_SCALAR_H

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

struct yaml_scalar {
	const char *text; /* a NUL after len bytes */
	size_t len;
	const char *tag; /* NULL: none */
	bool plain;	 /* neither quoted nor a block */
};

/* The value, in the memory of `doc`.  NULL with the reason (a constant), or NULL
 * without one if memory ran out. */
yyjson_mut_val *yaml_scalar_value(yyjson_mut_doc *doc, const struct yaml_scalar *scalar,
				  const char **reason);

/* The value as a key: a string.  NULL as above. */
yyjson_mut_val *yaml_scalar_key(yyjson_mut_doc *doc, yyjson_mut_val *value, const char **reason);

#endif
