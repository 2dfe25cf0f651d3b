/* SPDX-License-Identifier: Apache-2.0 */
/* literal.h - the GPUs of a pod whose map says them before anybody has decided. */
#ifndef GS_WEBHOOK_LITERAL_H
#define GS_WEBHOOK_LITERAL_H

#include <stdbool.h>
#include <stdint.h>

struct json;

#define LITERAL_MAX 96 /* "0,1,...,31" */

/* What the map says for the index of this pod, a set of ids.  0; -ENOENT the index is not
 * known (yet), or the map has no line for it; -EINVAL the map is malformed; -ENOMEM. */
int literal_gpus(const struct json *pod, const char *map, uint32_t *ret);

/* The same as text: "0,1". */
int literal_ids(const struct json *pod, const char *map, char ids[LITERAL_MAX]);

/* Whether the value names just these GPUs, in any order. */
bool literal_is(uint32_t gpus, const char *value);

#endif
