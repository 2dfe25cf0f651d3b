/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h - the variables that tell a container about its GPUs. */
#ifndef GS_WEBHOOK_VARIABLES_H
#define GS_WEBHOOK_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "dialect/annotations.h"

struct json;
struct webhook_options;

#define VARIABLE_CUDA	"CUDA_VISIBLE_DEVICES"
#define VARIABLE_NVIDIA "NVIDIA_VISIBLE_DEVICES"
#define VARIABLE_ORDER	"CUDA_DEVICE_ORDER"
#define VALUE_NOTHING	"void" /* of NVIDIA_VISIBLE_DEVICES: as if it were not there */

#define VARIABLES_MAX	   12
#define VARIABLE_VALUE_MAX 512
#define FIELD_PATH_MAX	   (ANNOTATION_KEY_MAX + 32)

struct variable {
	const char *name;
	bool field;  /* the value is the path of a field of the pod, resolved at each start */
	bool forced; /* replaces what the user wrote */
	char value[VARIABLE_VALUE_MAX];
};

struct variables {
	unsigned count;
	struct variable items[VARIABLES_MAX];
};

/* What a pod's containers have in common. */
struct variables_input {
	const struct webhook_options *options;
	const struct json *claim; /* the GpuClaim, or NULL if there is none or it is not known */
	const char *literal;	  /* ids that are decided already, or NULL */
	const char *former;	  /* ids that were, before limits dealt them out, or NULL */
};

/* Those of a container that gets GPUs. */
void variables_make(const struct variables_input *input, const struct json *container,
		    struct variables *ret);

/* Those of one that gets none, in a pod whose others do. */
void variables_make_none(const struct variables_input *input, const struct json *container,
			 struct variables *ret);

/* "metadata.annotations['elasticgpu.io/container-main']": where the container's value comes
 * from.  Returns `path`. */
char *variable_field_path(const char *container, char path[FIELD_PATH_MAX]);

/* Whether an entry of an env list says just that. */
bool variable_is(const struct variable *variable, const struct json *entry);

#endif
