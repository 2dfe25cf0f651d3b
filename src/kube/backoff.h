/* SPDX-License-Identifier: Apache-2.0 */
/* backoff.h - how long to pause after a failure.
 *
 * Each pause is about twice the one before, with up to as much again by chance, so that
 * many who failed together do not come back together; never more than max_ms in all.
 * After calm_ms without a failure it begins anew.  A plain value; time and chance are
 * arguments.
 */
#ifndef GS_KUBE_BACKOFF_H
#define GS_KUBE_BACKOFF_H

#include <stdint.h>

struct rng;

struct backoff {
	uint32_t first_ms, max_ms, calm_ms;
	uint32_t failures; /* since it was last calm */
	uint64_t until_ms; /* end of the last pause */
};

/* Of lists and watches. */
#define BACKOFF_INIT                                                    \
	{                                                               \
		.first_ms = 800, .max_ms = 30 * 1000, .calm_ms = 120000 \
	}

/* Notes a failure: how many milliseconds to pause, from now on. */
uint32_t backoff_fail(struct backoff *backoff, uint64_t now_ms, struct rng *rng);

#endif
