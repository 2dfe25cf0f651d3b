/* SPDX-License-Identifier: Apache-2.0 */
/* http_call.c - one request, from http_start() to done(). */
#include "base/err.h"
#include "wire/http_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

void http_call_free(struct http_call *call)
{
	curl_easy_cleanup(call->easy);
	curl_slist_free_all(call->headers);
	curl_slist_free_all(call->connect_to);
	strbuf_done(&call->sent);
	strbuf_done(&call->body);
	strbuf_done(&call->warnings);
	free(call);
}

static struct http_call *call_new(struct http *http)
{
	struct http_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->http = http;
	call->easy = curl_easy_init();
	call->sent = call->body = (struct strbuf)STRBUF_INIT;
	call->warnings =
		(struct strbuf)STRBUF_INIT_MAX(HTTP_WARNINGS_MAX * (HTTP_WARNING_BYTES + 1));
	if (call->easy && http_easy_always(call) == 0)
		return call;
	http_call_free(call);
	return NULL;
}

/* A call with its easy handle: one that waits for work, or a new one. */
static struct http_call *call_take(struct http *http)
{
	struct http_call *call = http->idle;

	if (!call)
		return call_new(http);
	http->idle = call->next;
	http->idle_count--;
	call->next = NULL;
	return call;
}

/* The call, in no list and not with libcurl, waits for more work. */
static void call_give_back(struct http_call *call)
{
	struct http *http = call->http;

	if (http->closing || http->idle_count == CALLS_KEPT) {
		http_call_free(call);
		return;
	}
	curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, (struct curl_slist *)NULL);
	curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, (struct curl_slist *)NULL);
	curl_slist_free_all(call->headers);
	curl_slist_free_all(call->connect_to);
	call->headers = call->connect_to = NULL;
	if (call->sent.cap > CALL_BYTES_KEPT)
		strbuf_done(&call->sent);
	if (call->body.cap > CALL_BYTES_KEPT)
		strbuf_done(&call->body);
	call->next = http->idle;
	http->idle = call;
	http->idle_count++;
}

static void call_reset(struct http_call *call, const struct http_request *request)
{
	call->request = *request;
	call->request.url = NULL;
	call->request.headers = NULL;
	call->request.body = NULL;
	call->state = HTTP_QUEUED;
	call->cancelled = call->stopped = call->too_big = call->no_memory = false;
	call->sends = call->serial = 0;
	call->fd = -1;
	call->fresh = false;
	call->looks = 0;
	call->streamed = 0;
	call->reason[0] = '\0';
	call->body.max = HTTP_BODY_BYTES;
	http_reply_reset(call);
}

int http_start(struct http *http, const struct http_request *request, struct http_call **ret,
	       struct err *err)
{
	int r = http_easy_check(http, request, err);
	if (r < 0)
		return r;
	struct http_call *call = call_take(http);
	if (!call)
		return err_set(err, ENOMEM, "no memory for a request");
	call_reset(call, request);
	if (http_easy_set(call, request) < 0 || http_call_watch_new(call) < 0) {
		call_give_back(call);
		return err_set(err, ENOMEM, "no memory for a request");
	}
	http_list_add(&http->queued, call);
	http->in_flight++;
	http_kick(http);
	*ret = call;
	return 0;
}

void http_call_add(struct http_call *call)
{
	struct http *http = call->http;

	http_list_remove(&http->queued, call);
	http_list_add(&http->running, call);
	call->state = HTTP_RUNNING;
	if (curl_multi_add_handle(http->multi, call->easy) != CURLM_OK)
		http_call_end(call, CURLE_OUT_OF_MEMORY);
}

/* Out of the list and the heap, and no longer counted. */
static void call_unlink(struct http_call *call)
{
	struct http *http = call->http;

	http_list_remove(call->state == HTTP_QUEUED ? &http->queued : &http->running, call);
	http_call_unwatch(call);
	http->in_flight--;
}

static void call_report(struct http_call *call, enum http_result result, CURLcode code)
{
	const char *warnings[HTTP_WARNINGS_MAX];
	const char *next = call->warnings.s;
	long version = 0;
	curl_off_t bytes = 0;

	for (size_t i = 0; i < call->warnings_count; i++, next += strlen(next) + 1)
		warnings[i] = next;
	curl_easy_getinfo(call->easy, CURLINFO_HTTP_VERSION, &version);
	curl_easy_getinfo(call->easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
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
		.bytes_in = (uint64_t)bytes,
		.http_major = version == CURL_HTTP_VERSION_NONE	 ? 0
			      : version >= CURL_HTTP_VERSION_2_0 ? 2
								 : 1,
	};
	call->request.done(call->request.context, &reply);
}

static void call_finish(struct http_call *call, enum http_result result, CURLcode code)
{
	struct http *http = call->http;

	call_unlink(call);
	call->state = HTTP_ENDED;
	curl_multi_remove_handle(http->multi, call->easy);
	call_report(call, result, code);
	call_give_back(call);
	http_settle(http);
}

void http_call_end(struct http_call *call, CURLcode code)
{
	call_finish(call, http_reply_result(call, code), code);
}

/* Whether its connection has been silent for most of the time that the call was. */
static bool is_dead(const struct http_socket *socket, const struct http_call *call)
{
	uint64_t now_ms = uv_now(call->http->loop);

	return socket->heard_ms < call->heard_ms + (now_ms - call->heard_ms) / 2;
}

/* On a connection of HTTP/2 that says nothing any more libcurl would put the next
 * request, and the next.  The end of the socket tells it, and all that wait there. */
void http_call_expire(struct http_call *call)
{
	struct http_socket *socket = http_socket_find(call->http, call->fd);

	if (socket && socket->serial == call->serial && is_dead(socket, call))
		http_socket_bury(socket);
	call_finish(call, HTTP_DEADLINE, CURLE_OK);
}

void http_call_drop(struct http_call *call)
{
	call->state = HTTP_ENDED;
	curl_multi_remove_handle(call->http->multi, call->easy);
	call_give_back(call);
}

void http_cancel(struct http_call *call)
{
	struct http *http = call->http;

	if (call->state == HTTP_ENDED)
		return;
	bool known = call->state == HTTP_RUNNING;
	call_unlink(call);
	call->state = HTTP_ENDED;
	call->cancelled = true;
	if (!known)
		call_give_back(call);
	else if (http->inside)
		http_list_add(&http->leaving, call);
	else
		http_call_drop(call);
	http_settle(http);
}
