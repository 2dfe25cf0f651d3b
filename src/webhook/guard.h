/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - what users may not write, since it would give them GPUs.
 *
 * deploy/webhook/policy.yaml says the same in the words of the API server; a change here
 * is a change there.
 */
#ifndef GS_WEBHOOK_GUARD_H
#define GS_WEBHOOK_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct json;

/* Whether the annotation is part of a decision. */
bool guard_is_decision(const char *key);

/* The first such annotation that `object` has and `old` (may be NULL) has not or has otherwise,
 * or the other way round; NULL: none. */
const char *guard_decision_changed(const struct json *old, const struct json *object);

/* What variables may say, where that depends. */
struct guard_allows {
	const uint32_t *given; /* the ids that the pod's map gives to it; NULL: none that count */
	bool nvidia;	       /* the annotation's value is one that the NVIDIA runtime knows */
};

/* No variable of the container names devices but in one of these ways:
 *
 *	the value of the container's own annotation, which is the scheduler's word: for CUDA,
 *	and for the NVIDIA runtime only where `nvidia` says so.  Elsewhere it may count from 0
 *	among the GPUs that are visible, and the runtime counts all of them
 *	"", "-1", "none", "void": no device at all
 *	CUDA_VISIBLE_DEVICES: the ids that are given
 *
 * 0, -EINVAL. */
int guard_variables(const struct json *container, const struct guard_allows *allows,
		    struct err *err);

/* Whether the container learns which GPUs it gets: its variables cannot be changed later. */
bool guard_is_told(const struct json *container);

/* Whether a claim, a map or a number of GPUs comes that was not there at all. */
bool guard_asks_anew(const struct json *old, const struct json *object);

/* Whether something changes from which the ids of a map follow: the map itself, the pod's
 * index, or that it counts at all. */
bool guard_ids_moved(const struct json *old, const struct json *object);

#endif
