/* SPDX-License-Identifier: Apache-2.0 */
/* literal.h - the GPUs of a pod whose map says them before anybody has decided. */
#ifndef GS_WEBHOOK_LITERAL_H
#define GS_WEBHOOK_LITERAL_H

#include <stdbool.h>

struct json;

#define LITERAL_MAX 96 /* "0,1,...,31" */

/* "0,1": what the map says for the index of this pod.  0; -ENOENT the index is not known
 * (yet), or the map has no line for it; -EINVAL the map is malformed; -ENOMEM. */
int literal_ids(const struct json *pod, const char *map, char ids[LITERAL_MAX]);

/* Whether the value names just the GPUs that the map gives to this pod, in any order. */
bool literal_is(const struct json *pod, const char *map, const char *value);

#endif
