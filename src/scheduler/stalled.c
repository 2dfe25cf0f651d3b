/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/stalled.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/ready.h"
#include "scheduler/locks.h"
#include "scheduler/scheduler_private.h"

#define STALLED_MS 5000
#define LOOK_MS	   1000

/* What the server refuses of all that must be known first; nothing, if it only takes long. */
static void put_trouble(const struct scheduler *s, struct strbuf *out)
{
	struct kube_cache *cache;

	for (size_t i = 0; (cache = kube_caches_at(s->caches, i)); i++) {
		struct kube_cache_status status;

		kube_cache_status(cache, &status);
		if (!status.synced && *status.trouble)
			strbuf_addf(out, "%s%s: %s", out->len ? "; " : "",
				    kube_cache_kind(cache)->plural, status.trouble);
	}
	if (!out->len && locks_is_troubled(s->locks))
		strbuf_puts(out, locks_why_not(s->locks));
}

static void tell_all(struct scheduler *s, const char *why)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->tasks.by_uid, &at, &entry);) {
		struct task *task = entry.value;

		if (!task->held && !task->landed)
			report_waits(s, task, why, true);
	}
}

void stalled_tick(struct scheduler *s, uint64_t now)
{
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;
	bool waits = s->leading && !s->active && !s->draining && now >= s->lead_ms + STALLED_MS;

	s->stalled = s->stalled && waits;
	if (!waits || now < s->stalled_ms)
		return;
	s->stalled_ms = now + LOOK_MS;
	put_trouble(s, &why);
	s->stalled = why.len && !why.failed;
	if (s->stalled)
		tell_all(s, why.s);
}
