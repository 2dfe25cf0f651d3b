/* SPDX-License-Identifier: Apache-2.0 */
/* http_call.c - one request, from http_start() to done(). */
#include "base/attr.h"
#include "base/err.h"
#include "wire/http2.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CALLS_KEPT	128
#define CALL_BYTES_KEPT ((size_t)64 << 10) /* of a buffer, by a call that waits for work */

void http_list_add(struct http_list *list, struct http_call *call)
{
	call->prev = list->last;
	call->next = NULL;
	*(list->last ? &list->last->next : &list->first) = call;
	list->last = call;
}

void http_list_remove(struct http_list *list, struct http_call *call)
{
	*(call->prev ? &call->prev->next : &list->first) = call->next;
	*(call->next ? &call->next->prev : &list->last) = call->prev;
	call->next = call->prev = NULL;
}

static struct http_list *list_of(struct http_call *call)
{
	struct http *http = call->http;

	switch (call->state) {
	case HTTP_QUEUED:
		return &http->queued;
	case HTTP_WAITING:
		return &http->waiting;
	case HTTP_THROUGH:
		return &http->through;
	default:
		return &http->running;
	}
}

void http_call_move(struct http_call *call, enum http_state state)
{
	http_list_remove(list_of(call), call);
	call->state = state;
	http_list_add(list_of(call), call);
}

void http_call_free(struct http_call *call)
{
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	curl_slist_free_all(call->connect_to);
	http_inflate_free(call->inflate);
	strbuf_done(&call->head);
	strbuf_done(&call->sent);
	strbuf_done(&call->body);
	strbuf_done(&call->warnings);
	free(call);
}

/* One that waits for work, or a new one. */
static struct http_call *call_take(struct http *http)
{
	struct http_call *call = http->idle;

	if (call) {
		http->idle = call->next;
		http->idle_count--;
		call->next = NULL;
		return call;
	}
	call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->http = http;
	call->head = call->sent = call->body = (struct strbuf)STRBUF_INIT;
	call->warnings =
		(struct strbuf)STRBUF_INIT_MAX(HTTP_WARNINGS_MAX * (HTTP_WARNING_BYTES + 1));
	return call;
}

static void keep_small(struct strbuf *buf)
{
	if (buf->cap > CALL_BYTES_KEPT)
		strbuf_done(buf);
}

/* The call, in no list and on no way, waits for more work. */
static void call_give_back(struct http_call *call)
{
	struct http *http = call->http;

	if (http->closing || http->idle_count == CALLS_KEPT) {
		http_call_free(call);
		return;
	}
	http_easy_unset(call);
	http_inflate_free(call->inflate);
	call->inflate = NULL;
	keep_small(&call->head);
	keep_small(&call->sent);
	keep_small(&call->body);
	call->next = http->idle;
	http->idle = call;
	http->idle_count++;
}

static void call_reset(struct http_call *call, const struct http_request *request)
{
	call->request = *request;
	call->request.method = call->request.url = NULL;
	call->request.headers = NULL;
	call->request.body = NULL;
	call->state = HTTP_QUEUED;
	call->cancelled = call->stopped = call->too_big = call->no_memory = false;
	call->sends = call->tries = call->serial = 0;
	call->fd = -1;
	call->fresh = call->with_curl = false;
	call->link = NULL;
	call->looks = 0;
	call->streamed = 0;
	call->bytes_in = 0;
	call->reason[0] = '\0';
	call->body.max = HTTP_BODY_BYTES;
	http_reply_reset(call);
}

static bool needs_length(const char *method)
{
	return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
	       strcmp(method, "PATCH") == 0;
}

static int call_copy(struct http_call *call, const struct http_request *request)
{
	struct strbuf *head = &call->head;
	const char *method = request->method;

	strbuf_reset(head);
	strbuf_add(head, method, strlen(method) + 1);
	call->url_at = head->len;
	strbuf_add(head, request->url, call->origin_len);
	if (request->url[call->origin_len] != '/')
		strbuf_putc(head, '/');
	strbuf_puts(head, request->url + call->origin_len);
	strbuf_putc(head, '\0');
	call->headers_at = head->len;
	for (size_t i = 0; i < request->headers_count; i++)
		strbuf_add(head, request->headers[i], strlen(request->headers[i]) + 1);
	strbuf_reset(&call->sent);
	call->sent.max = MAX(request->body_len, 1);
	if (request->body)
		strbuf_add(&call->sent, request->body, request->body_len);
	call->has_body = request->body || needs_length(method);
	call->safe = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	return head->failed || call->sent.failed ? -ENOMEM : 0;
}

const char *http_call_next_header(const struct http_call *call, const char *header)
{
	const char *next = header ? header + strlen(header) + 1 : call->head.s + call->headers_at;

	return next < call->head.s + call->head.len ? next : NULL;
}

int http_start(struct http *http, const struct http_request *request, struct http_call **ret,
	       struct err *err)
{
	size_t origin_len = 0;
	int r = http_check(http, request, &origin_len, err);
	if (r < 0)
		return r;
	struct http_call *call = call_take(http);
	if (!call)
		return err_set(err, ENOMEM, "no memory for a request");
	call_reset(call, request);
	call->origin_len = origin_len;
	if (call_copy(call, request) < 0 || http_call_watch_new(call) < 0) {
		call_give_back(call);
		return err_set(err, ENOMEM, "no memory for a request");
	}
	http_list_add(&http->queued, call);
	http->in_flight++;
	http_kick(http);
	*ret = call;
	return 0;
}

static bool goes_with_curl(const struct http_call *call)
{
	const struct http *http = call->http;

	return http->options.http1 || http->only_http1 ||
	       strncasecmp(call->head.s + call->url_at, "https:", 6) != 0 ||
	       http_easy_has_proxy(call);
}

void http_call_begin(struct http_call *call)
{
	struct http *http = call->http;

	if (!goes_with_curl(call)) {
		http_call_move(call, HTTP_WAITING); /* until http2_place() */
		return;
	}
	http_call_move(call, HTTP_RUNNING);
	call->with_curl = http_easy_set(call) == 0 &&
			  curl_multi_add_handle(http->multi, call->easy) == CURLM_OK;
	http->curl_due = true;
	if (call->with_curl)
		return;
	call->code = CURLE_OUT_OF_MEMORY;
	http_call_move(call, HTTP_THROUGH);
}

void http_call_sent(struct http_call *call)
{
	call->sends++;
	call->heard_ms = uv_now(call->http->loop);
	http_call_watch(call);
}

/* Out of the list and the heap, and no longer counted. */
static void call_unlink(struct http_call *call)
{
	http_list_remove(list_of(call), call);
	http_call_unwatch(call);
	call->http->in_flight--;
}

/* What only libcurl knows. */
static uint32_t ask_curl(struct http_call *call)
{
	long version = 0;
	curl_off_t bytes = 0;

	curl_easy_getinfo(call->easy, CURLINFO_HTTP_VERSION, &version);
	curl_easy_getinfo(call->easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
	call->bytes_in = (uint64_t)bytes;
	return version == CURL_HTTP_VERSION_NONE ? 0 : version >= CURL_HTTP_VERSION_2_0 ? 2 : 1;
}

static void call_report(struct http_call *call, enum http_result result, CURLcode code)
{
	const char *warnings[HTTP_WARNINGS_MAX];
	const char *next = call->warnings.s;
	uint32_t major = call->with_curl ? ask_curl(call) : call->status ? 2 : 0;

	for (size_t i = 0; i < call->warnings_count; i++, next += strlen(next) + 1)
		warnings[i] = next;
	struct http_reply reply = {
		.result = result,
		.status = call->status,
		.body = call->body.s,
		.len = call->body.len,
		.content_type = call->content_type,
		.retry_after_s = call->retry_after_s,
		.warnings = warnings,
		.warnings_count = call->warnings_count,
		.reason = http_reply_reason(call, result, code),
		.bytes_in = call->bytes_in,
		.http_major = major,
	};
	call->request.done(call->request.context, &reply);
}

static void leave_way(struct http_call *call)
{
	if (call->with_curl)
		curl_multi_remove_handle(call->http->multi, call->easy);
	if (call->link)
		http2_drop(call);
}

static void call_finish(struct http_call *call, enum http_result result, CURLcode code)
{
	struct http *http = call->http;

	call_unlink(call);
	call->state = HTTP_ENDED;
	leave_way(call);
	call_report(call, result, code);
	call_give_back(call);
	http_settle(http);
}

void http_call_end(struct http_call *call, CURLcode code)
{
	call_finish(call, http_reply_result(call, code), code);
}

/* Whether its connection has been silent for most of the time that the call was. */
static bool is_dead(const struct http_call *call, uint64_t heard_ms)
{
	uint64_t now_ms = uv_now(call->http->loop);

	return heard_ms < call->heard_ms + (now_ms - call->heard_ms) / 2;
}

/* On a connection of HTTP/2 that says nothing any more the next request would be put, and
 * the next.  So it is ended, for all that wait there. */
void http_call_expire(struct http_call *call)
{
	struct http_socket *socket = http_socket_find(call->http, call->fd);

	if (socket && socket->serial == call->serial && is_dead(call, socket->heard_ms))
		http_socket_bury(socket);
	if (call->link && call->sends && is_dead(call, call->link->heard_ms))
		http2_bury(call->link);
	snprintf(call->reason, sizeof(call->reason), "no connection in time");
	call_finish(call, call->sends ? HTTP_DEADLINE : HTTP_NOT_SENT, CURLE_OPERATION_TIMEDOUT);
}

void http_call_drop(struct http_call *call)
{
	call->state = HTTP_ENDED;
	leave_way(call);
	call_give_back(call);
}

void http_cancel(struct http_call *call)
{
	struct http *http = call->http;

	if (call->state == HTTP_ENDED)
		return;
	call_unlink(call);
	call->state = HTTP_ENDED;
	call->cancelled = true;
	if (http->inside)
		http_list_add(&http->leaving, call);
	else
		http_call_drop(call);
	http_settle(http);
}
