/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - a set of connections: its life, and the ways out of it. */
#include "wire/http.h"
#include "base/attr.h"
#include "base/err.h"
#include "wire/http2.h"

#include <errno.h>
#include <stdlib.h>

#define CONNECTIONS_KEPT 256 /* where nothing bounds them */

/* ---- out and back ---- */

static void shut(struct http *http);

static void reap_curl(struct http *http)
{
	struct CURLMsg *message;
	int left;

	while (!http->closing && (message = curl_multi_info_read(http->multi, &left))) {
		CURLcode code = message->data.result;
		struct http_call *call = NULL;
		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
		http_call_end(call, code);
	}
}

void http_enter(struct http *http)
{
	http->inside = true;
}

void http_leave(struct http *http)
{
	struct http_call *call;

	http->inside = false;
	if (http->closing) {
		shut(http); /* http_close() was called from inside */
		return;
	}
	while ((call = http->leaving.first)) {
		http_list_remove(&http->leaving, call);
		http_call_drop(call);
	}
	while (!http->closing && (call = http->through.first))
		http_call_end(call, call->code);
	reap_curl(http);
	http_settle(http);
}

void http_act(struct http *http, curl_socket_t fd, int events)
{
	int running;

	if (http->closing)
		return;
	http_enter(http);
	curl_multi_socket_action(http->multi, fd, events, &running);
	http_leave(http);
}

static void kicked(uv_idle_t *kick)
{
	struct http *http = kick->data;

	uv_idle_stop(kick);
	http_enter(http);
	while (http->queued.first)
		http_call_begin(http->queued.first);
	http2_work(http);
	http_leave(http);
	if (http->curl_due) {
		http->curl_due = false;
		http_act(http, CURL_SOCKET_TIMEOUT, 0);
	}
}

void http_kick(struct http *http)
{
	if (!http->closing)
		uv_idle_start(&http->kick, kicked);
}

/* ---- its life ---- */

static CURLcode global_code;

static void global_init(void)
{
	global_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int multi_init(struct http *http)
{
	uint32_t max = http->options.max_connections;

	http->multi = curl_multi_init();
	http->url = curl_url();
	if (!http->multi || !http->url)
		return -ENOMEM;
	bool ok = curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX) ==
			  CURLM_OK &&
		  curl_multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)max) ==
			  CURLM_OK &&
		  curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS,
				    (long)(max ? max : CONNECTIONS_KEPT)) == CURLM_OK;
	return ok ? http_socket_attach(http) : -ENOMEM;
}

static void http_free(struct http *http)
{
	curl_multi_cleanup(http->multi);
	curl_url_cleanup(http->url);
	heap_done(&http->due);
	strbuf_done(&http->origin);
	free(http->buffer);
	http_options_done(&http->options);
	free(http);
}

static void handles_init(struct http *http)
{
	uv_timer_init(http->loop, &http->curl_timer);
	uv_timer_init(http->loop, &http->due_timer);
	uv_idle_init(http->loop, &http->kick);
	http->curl_timer.data = http->due_timer.data = http->kick.data = http;
	http->handles = 3;
}

int http_new(uv_loop_t *loop, const struct http_options *options, struct http **ret,
	     struct err *err)
{
	static uv_once_t once = UV_ONCE_INIT;

	uv_once(&once, global_init);
	if (global_code)
		return err_set(err, ENOMEM, "libcurl: %s", curl_easy_strerror(global_code));
	int r = http_options_check(options, err);
	if (r < 0)
		return r;
	struct http *http = calloc(1, sizeof(*http));
	if (!http)
		return err_set(err, ENOMEM, "no memory for connections");
	http->loop = loop;
	http->origin = (struct strbuf)STRBUF_INIT;
	http_due_init(http);
	if (http_options_copy(&http->options, options) < 0 || multi_init(http) < 0) {
		http_free(http);
		return err_set(err, ENOMEM, "no memory for connections");
	}
	handles_init(http);
	*ret = http;
	return 0;
}

uint32_t http_in_flight(const struct http *http)
{
	return http->in_flight;
}

uint32_t http_connections(const struct http *http)
{
	return http->connections;
}

void http_handle_closed(struct http *http)
{
	if (--http->handles > 0)
		return;
	void (*retired)(void *context) = http->retired, (*closed)(void *context) = http->closed;
	void *retired_context = http->retired_context, *closed_context = http->closed_context;

	http_free(http);
	if (retired)
		retired(retired_context);
	if (closed)
		closed(closed_context);
}

static void handle_closed(uv_handle_t *handle)
{
	http_handle_closed(handle->data);
}

static void cancel_all(struct http *http)
{
	struct http_list *const lists[] = { &http->queued, &http->waiting, &http->running,
					    &http->through };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		while (lists[i]->first)
			http_cancel(lists[i]->first);
}

static void drop_all(struct http *http)
{
	struct http_call *call;

	cancel_all(http);
	while ((call = http->leaving.first)) {
		http_list_remove(&http->leaving, call);
		http_call_drop(call);
	}
	while ((call = http->idle)) {
		http->idle = call->next;
		http_call_free(call);
	}
}

/* Not from inside a way. */
static void shut(struct http *http)
{
	http->closing = true;
	drop_all(http);
	http2_close_all(http);
	curl_multi_cleanup(http->multi);
	http->multi = NULL;
	http_socket_close_all(http);
	uv_close((uv_handle_t *)&http->curl_timer, handle_closed);
	uv_close((uv_handle_t *)&http->due_timer, handle_closed);
	uv_close((uv_handle_t *)&http->kick, handle_closed);
}

void http_settle(struct http *http)
{
	if (http->retiring && !http->closing && !http->inside && http->in_flight == 0)
		shut(http);
}

void http_retire(struct http *http, void (*closed)(void *context), void *context)
{
	http->retiring = true;
	http->retired = closed;
	http->retired_context = context;
	http_settle(http);
}

void http_close(struct http *http, void (*closed)(void *context), void *context)
{
	if (!http) {
		if (closed)
			closed(context);
		return;
	}
	http->closed = closed;
	http->closed_context = context;
	if (http->closing)
		return; /* it had retired */
	http->closing = true;
	if (!http->inside) {
		shut(http);
		return;
	}
	cancel_all(http); /* no data() any more; the rest waits */
}
