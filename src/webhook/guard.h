/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - what users may not write, since it would give them GPUs.
 *
 * deploy/webhook/policy.yaml says the same in the words of the API server; a change here
 * is a change there.
 */
#ifndef GS_WEBHOOK_GUARD_H
#define GS_WEBHOOK_GUARD_H

#include <stdbool.h>

struct err;
struct json;

/* Whether the annotation is part of a decision. */
bool guard_is_decision(const char *key);

/* The first such annotation that `object` has and `old` (may be NULL) has not or has otherwise,
 * or the other way round; NULL: none. */
const char *guard_decision_changed(const struct json *old, const struct json *object);

/* No variable of the container names devices but in one of these ways:
 *
 *	the value of the container's own annotation, which is the scheduler's word
 *	"", "-1", "none", "void": no device at all
 *	CUDA_VISIBLE_DEVICES: the ids that the map of the pod (NULL: it has none that counts)
 *	says for it
 *
 * 0, -EINVAL. */
int guard_variables(const struct json *container, const struct json *pod, const char *map,
		    struct err *err);

#endif
