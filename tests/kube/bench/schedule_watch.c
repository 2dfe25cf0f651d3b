/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_watch.c - when pods were seen bound: in a burst, and one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/strbuf.h"
#include "bench.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "schedule.h"

#define BOUND "spec.nodeName!="

/* Pods come into view when they are bound: nothing else is sent to us. */
struct view {
	struct kube_cache *cache;
	uint64_t *sent_ns, *took_ns; /* by number of the pod; NULL: only counted */
	unsigned count;		     /* of pods with numbers */
	unsigned seen, wanted;
	uint64_t first_ns, last_ns;
	bool synced, timed_out;
};

static void is_synced(void *context)
{
	((struct view *)context)->synced = true;
}

static void note_time(struct view *v, const char *name, uint64_t now_ns)
{
	const char *number = strrchr(name, '-');
	uint32_t i;

	if (!v->sent_ns || !number || parse_u32(number + 1, strlen(number + 1), &i) < 0)
		return;
	if (i < v->count && v->sent_ns[i] && !v->took_ns[i])
		v->took_ns[i] = now_ns - v->sent_ns[i];
}

static void changed(void *context, enum kube_change change, const struct kube_object *before,
		    struct kube_object *now, const struct json *object)
{
	struct view *v = context;
	uint64_t now_ns = bench_wall_ns();

	(void)before, (void)object;
	if (change != KUBE_ADDED)
		return;
	if (v->seen++ == 0)
		v->first_ns = now_ns;
	v->last_ns = now_ns;
	note_time(v, now->name, now_ns);
}

static void is_late(uv_timer_t *timer)
{
	((struct view *)timer->data)->timed_out = true;
}

static void view_open(struct bench *b, struct view *v)
{
	struct kube_cache_options options = { .kind = &kube_kinds[KUBE_POD],
					      .namespace = "default",
					      .field_selector = BOUND,
					      .changed = changed,
					      .synced = is_synced,
					      .context = v };
	struct err err = ERR_INIT;

	if (kube_cache_new(b->client, &options, &v->cache, &err) < 0)
		bench_fail("%s", err.text);
	while (!v->synced)
		bench_turn(b);
	if (v->seen)
		bench_fail("%u pods are bound already", v->seen);
}

static void wait_for_all(struct bench *b, struct view *v, unsigned seconds)
{
	uv_timer_t timer = { .data = v };

	uv_timer_init(&b->loop, &timer);
	uv_timer_start(&timer, is_late, (uint64_t)seconds * 1000, 0);
	while (v->seen < v->wanted && !v->timed_out)
		bench_turn(b);
	uv_close((uv_handle_t *)&timer, NULL);
	kube_cache_free(v->cache);
	bench_turn(b);
}

int schedule_watch(struct bench *b, unsigned pods, unsigned seconds)
{
	struct view v = { .wanted = pods };

	view_open(b, &v);
	puts("ready");
	fflush(stdout);
	wait_for_all(b, &v, seconds);
	double took = (double)(v.last_ns - v.first_ns) / 1e9;
	printf("{\"bound\":%u,\"of\":%u,\"seconds\":%.4f,\"rate\":%.1f}\n", v.seen, pods, took,
	       took > 0 ? (v.seen - 1) / took : 0);
	return 0;
}

/* One by one */

struct stream {
	struct bench *bench;
	struct view view;
	const char *scheduler;
	struct strbuf body;
	unsigned next;
};

static void send_one(uv_timer_t *timer)
{
	struct stream *s = timer->data;

	if (s->next >= s->view.count) {
		uv_timer_stop(timer);
		return;
	}
	schedule_put_pod(&s->body, s->next, s->scheduler);
	s->view.sent_ns[s->next++] = bench_wall_ns();
	bench_send(s->bench, "POST", "/api/v1/namespaces/default/pods", &s->body);
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Of all that were seen, so many percent took no longer, in ms. */
static double share_ms(const uint64_t *took_ns, unsigned seen, unsigned percent)
{
	size_t at = (size_t)seen * percent / 100;

	return (double)took_ns[at < seen ? at : seen - 1] / 1e6;
}

static void report(const struct view *v)
{
	const uint64_t *took_ns = v->took_ns + (v->count - v->seen);

	/* Those that were never seen are 0, and first. */
	qsort(v->took_ns, v->count, sizeof(*v->took_ns), by_time);
	printf("{\"bound\":%u,\"of\":%u", v->seen, v->count);
	if (v->seen)
		printf(",\"p50_ms\":%.2f,\"p90_ms\":%.2f,\"p99_ms\":%.2f,\"max_ms\":%.2f",
		       share_ms(took_ns, v->seen, 50), share_ms(took_ns, v->seen, 90),
		       share_ms(took_ns, v->seen, 99), share_ms(took_ns, v->seen, 100));
	puts("}");
}

int schedule_online(struct bench *b, unsigned pods, unsigned per_second, const char *scheduler)
{
	struct stream s = { .bench = b,
			    .view = { .wanted = pods, .count = pods },
			    .scheduler = scheduler,
			    .body = STRBUF_INIT };
	uv_timer_t timer = { .data = &s };

	s.view.sent_ns = calloc(pods, sizeof(uint64_t));
	s.view.took_ns = calloc(pods, sizeof(uint64_t));
	if (!pods || !per_second || per_second > 1000 || !s.view.sent_ns || !s.view.took_ns)
		bench_fail("so many pods at such a rate cannot be");
	view_open(b, &s.view);
	uv_timer_init(&b->loop, &timer);
	uv_timer_start(&timer, send_one, 0, 1000 / per_second);
	wait_for_all(b, &s.view, pods / per_second + 30);
	bench_settle(b);
	uv_close((uv_handle_t *)&timer, NULL);
	bench_turn(b);
	report(&s.view);
	strbuf_done(&s.body);
	free(s.view.sent_ns);
	free(s.view.took_ns);
	return 0;
}
