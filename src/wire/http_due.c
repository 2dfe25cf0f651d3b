/* SPDX-License-Identifier: Apache-2.0 */
/* http_due.c - deadlines and silences of all calls on one timer.
 *
 * A call is looked at when it could be over its time at the earliest.  What comes in
 * only notes the hour, so a busy stream costs nothing here.
 */
#include "base/attr.h"
#include "wire/http_parts.h"

/* A loop that was held up finds timers that are over and replies that have long come.
 * It reads before it judges: between two looks it has been at all sockets, and libcurl
 * may take some turns to digest what lies there. */
#define LOOKS_MAX     8
#define LOOK_AGAIN_MS 1

static bool due_before(union heap_item a, union heap_item b, void *context)
{
	(void)context;
	return ((struct http_call *)a.ptr)->due_ms < ((struct http_call *)b.ptr)->due_ms;
}

static void due_moved(union heap_item item, uint32_t position, void *context)
{
	(void)context;
	((struct http_call *)item.ptr)->heap_position = position;
}

void http_due_init(struct http *http)
{
	heap_init(&http->due, due_before, due_moved, NULL);
}

/* The first moment at which nothing more may be hoped for. */
static uint64_t over_at(const struct http_call *call)
{
	uint64_t silent_ms = call->request.idle_ms && call->sends
				     ? call->heard_ms + call->request.idle_ms
				     : UINT64_MAX;

	return MIN(call->deadline_ms, silent_ms);
}

static void due_rings(uv_timer_t *timer);

static void arm(struct http *http)
{
	union heap_item top;
	uint64_t now_ms = uv_now(http->loop);

	if (!heap_peek(&http->due, &top)) {
		uv_timer_stop(&http->due_timer);
		return;
	}
	uint64_t due_ms = ((struct http_call *)top.ptr)->due_ms;
	if (uv_is_active((uv_handle_t *)&http->due_timer) &&
	    uv_timer_get_due_in(&http->due_timer) <= (due_ms > now_ms ? due_ms - now_ms : 0))
		return; /* it rings early enough, and is set again then */
	if (due_ms == UINT64_MAX)
		uv_timer_stop(&http->due_timer);
	else
		uv_timer_start(&http->due_timer, due_rings, due_ms > now_ms ? due_ms - now_ms : 0,
			       0);
}

int http_call_watch_new(struct http_call *call)
{
	struct http *http = call->http;
	uint32_t deadline_ms = call->request.deadline_ms;

	/* Who keeps the loop waiting must not find his own request overdue. */
	uv_update_time(http->loop);
	call->deadline_ms = deadline_ms ? uv_now(http->loop) + deadline_ms : UINT64_MAX;
	call->due_ms = over_at(call);
	int r = heap_push(&http->due, (union heap_item){ .ptr = call });
	if (r == 0)
		arm(http);
	return r;
}

void http_call_watch(struct http_call *call)
{
	call->due_ms = over_at(call);
	heap_fix(&call->http->due, call->heap_position);
	arm(call->http);
}

void http_call_unwatch(struct http_call *call)
{
	heap_remove(&call->http->due, call->heap_position);
}

/* Whether the first call that is due has been dealt with; false: none is. */
static bool look(struct http *http, uint64_t now_ms)
{
	union heap_item top;

	if (http->closing || !heap_peek(&http->due, &top))
		return false;
	struct http_call *call = top.ptr;
	if (call->due_ms > now_ms)
		return false;
	uint64_t over_ms = over_at(call);
	call->looks = over_ms <= now_ms ? call->looks + 1 : 0;
	if (call->looks > LOOKS_MAX) {
		http_call_expire(call);
		return true;
	}
	call->due_ms = call->looks ? now_ms + LOOK_AGAIN_MS : over_ms;
	heap_fix(&http->due, call->heap_position);
	return true;
}

static void due_rings(uv_timer_t *timer)
{
	struct http *http = timer->data;

	while (look(http, uv_now(http->loop)))
		;
	if (!http->closing)
		arm(http);
}
