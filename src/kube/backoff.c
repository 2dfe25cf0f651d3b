/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/backoff.h"

#include "base/attr.h"
#include "base/rng.h"

/* Doubled as often as it failed before.  It stops at half the maximum, for the other half
 * is left to chance: also those who have failed for an hour come back one by one. */
static uint32_t backoff_base_ms(const struct backoff *backoff)
{
	uint32_t half_ms = backoff->max_ms / 2;
	uint32_t base_ms = MIN(backoff->first_ms, half_ms);
	for (uint32_t i = 0; i < backoff->failures && base_ms < half_ms; i++)
		base_ms = base_ms > half_ms / 2 ? half_ms : base_ms * 2;
	return base_ms;
}

uint32_t backoff_fail(struct backoff *backoff, uint64_t now_ms, struct rng *rng)
{
	if (now_ms >= backoff->until_ms && now_ms - backoff->until_ms >= backoff->calm_ms)
		backoff->failures = 0;
	uint32_t base_ms = backoff_base_ms(backoff);
	uint32_t pause_ms = base_ms + rng_below(rng, base_ms + 1);
	if (backoff->failures < UINT32_MAX)
		backoff->failures++;
	backoff->until_ms = now_ms + pause_ms;
	return pause_ms;
}
