/* SPDX-License-Identifier: Apache-2.0 */
/* env.h - variables into a container's env list, as operations of a patch. */
#ifndef GS_WEBHOOK_ENV_H
#define GS_WEBHOOK_ENV_H

#include "webhook/patch.h"

struct json;
struct ruling;
struct variables;

/* Each variable is there once afterwards and says what it should, or what the user wrote
 * where it is not forced.  Ours come first, so that the user's own may refer to them.  A
 * value of the user that is replaced is a warning.  Nothing is added to the patch if all is
 * so already: the API server may ask twice. */
void env_patch(struct ruling *ruling, const struct json *container, struct patch_path at,
	       const struct variables *variables);

#endif
