/* SPDX-License-Identifier: Apache-2.0 */
/* world_refuse.c - what cannot be placed, and why.
 *
 * Ten thousand pods that ask for the same are tried once and explained once: a request
 * that did not fit does not fit until something changes, and the reasons are looked for
 * when a round is over, when they are the same for all of them.
 */
#include <errno.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/map.h"
#include "engine/explain.h"
#include "sim/world_private.h"

static bool is_same(const struct request *a, const struct request *b)
{
	return a == b || (request_equal(a, b) && a->subject == b->subject);
}

bool world_is_stuck(const struct world *w, const struct world_pod *pod)
{
	for (uint32_t i = 0; i < w->stuck_count; i++) {
		const struct world_stuck *s = &w->stuck[i];

		if (s->priority >= pod->wish->priority && (s->preempts || !pod->wish->preempts) &&
		    is_same(s->request, &pod->wish->request))
			return true;
	}
	return false;
}

void world_add_stuck(struct world *w, const struct world_pod *pod)
{
	w->stuck[w->stuck_next] = (struct world_stuck){ &pod->wish->request, pod->wish->priority,
							pod->wish->preempts };
	w->stuck_next = (w->stuck_next + 1) % STUCK_MAX;
	w->stuck_count = MIN(w->stuck_count + 1, STUCK_MAX);
}

void world_unstick(struct world *w)
{
	w->stuck_count = w->stuck_next = 0;
	w->stuck_gang.wish = NULL;
}

static void explain(struct world *w, const struct world_pod *pod, struct strbuf *text)
{
	struct strbuf miss CLEANUP(strbuf_done) = STRBUF_INIT;
	struct explanation x;

	explain_request(w->engine, &pod->wish->request, &x);
	explain_refusal(w->engine, &pod->wish->request, &x, text);
	explain_miss(w->engine, &x, &miss);
	if (miss.len)
		strbuf_addf(text, " Nearest: %s.", miss.s);
}

/* The reasons found so far, by hash of the request. */
struct reasons {
	struct map texts; /* -> the pod that it was found for */
};

static int tell(struct world *w, struct reasons *r, struct world_pod *pod, struct err *err)
{
	const struct request *request = &pod->wish->request;
	char key[24];
	int n = snprintf(key, sizeof(key), "%016llx",
			 (unsigned long long)request_hash(request, w->config.seed));
	const struct world_pod *like = map_get(&r->texts, key, (size_t)n);
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	pod->refused = false;
	if (like && !like->evicted_by && !pod->evicted_by && like->text &&
	    is_same(request, &like->wish->request)) {
		world_waits(w, pod, like->text);
		return 0;
	}
	explain(w, pod, &text);
	world_waits(w, pod, text.s);
	if (like)
		return 0;
	const char *kept = arena_strndup(&w->arena, key, (size_t)n);
	if (!kept || map_put(&r->texts, kept, (size_t)n, pod) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

int world_tell_refused(struct world *w, struct world_pod **turn, size_t count, struct err *err)
{
	struct reasons r = { .texts = { 0 } };
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		if (turn[i]->refused && turn[i]->state == WORLD_PENDING)
			rc = tell(w, &r, turn[i], err);
	map_done(&r.texts);
	return rc;
}
