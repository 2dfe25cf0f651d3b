/* SPDX-License-Identifier: Apache-2.0 */
/* http2.c - the links of a set, and which of them takes a call. */
#include "wire/http2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A read that meets its server at a bad moment is sent again, but not for ever. */
#define TRIES_MAX 5

/* ---- which link ---- */

static bool is_for(const struct http2_link *link, const struct http_call *call)
{
	return strncmp(link->origin, call->head.s + call->url_at, call->origin_len) == 0 &&
	       !link->origin[call->origin_len];
}

/* One with room; else `opening` says whether there may soon be one. */
static struct http2_link *find_link(const struct http_call *call, bool *opening)
{
	*opening = false;
	for (struct http2_link *link = call->http->links; link; link = link->next) {
		if (link->over || !is_for(link, call))
			continue;
		if (link->state != HTTP2_READY)
			*opening = true;
		else if (http2_has_room(link))
			return link;
	}
	return NULL;
}

static void add_link(struct http *http, struct http2_link *link)
{
	link->next = http->links;
	if (link->next)
		link->next->prev = link;
	http->links = link;
	http->connections++;
}

static void remove_link(struct http2_link *link)
{
	struct http *http = link->http;

	*(link->prev ? &link->prev->next : &http->links) = link->next;
	if (link->next)
		link->next->prev = link->prev;
	http->connections--;
	http2_link_close(link);
}

/* One that the server ends may have a watch for a long time yet: nobody waits for that. */
static bool may_open(const struct http *http)
{
	uint32_t count = http->connections, max = http->options.max_connections;

	for (const struct http2_link *link = http->links; link; link = link->next)
		count -= link->over;
	return !max || count < max;
}

static void open_link(struct http_call *call)
{
	struct http *http = call->http;

	if (!may_open(http))
		return;
	struct http2_link *link = http2_link_new(call);
	if (!link) {
		http2_through(call, CURLE_OUT_OF_MEMORY, "no memory for a connection");
		return;
	}
	add_link(http, link);
	http2_open(link);
}

/* In the order in which they came.  One that finds no room keeps those behind it waiting: a
 * set has one server. */
static void place(struct http *http)
{
	struct http_call *call;
	bool opening;

	while ((call = http->waiting.first)) {
		struct http2_link *link = find_link(call, &opening);
		if (!link) {
			if (!opening)
				open_link(call);
			if (call == http->waiting.first)
				return;
			continue;
		}
		if (!http2_link_lives(link))
			continue;
		http_call_move(call, HTTP_RUNNING);
		CURLcode code = http2_submit(link, call);
		if (code)
			http2_through(call, code, "no memory for a request");
	}
}

static void flush(struct http *http)
{
	struct http2_link *next;

	for (struct http2_link *link = http->links; link; link = next) {
		next = link->next;
		if (link->session && link->state != HTTP2_ENDED)
			http2_link_send(link);
	}
}

void http2_work(struct http *http)
{
	flush(http); /* streams that were cancelled make room */
	place(http);
	flush(http);
}

/* ---- how calls leave ---- */

/* Of one that was on a link: whether it may be sent once more.  What a fresh connection
 * does to it the next will do too. */
static bool waits_again(const struct http_call *call, CURLcode code)
{
	bool unsent = call->sends == 0;
	bool broke = code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR;
	bool refused = code == CURLE_HTTP2_STREAM;

	return call->tries < TRIES_MAX && (unsent || (call->safe && !call->status)) &&
	       (refused || (broke && (unsent || !call->fresh)));
}

/* A refused stream, and one above the last that a GOAWAY names, has not been processed in any
 * way (RFC 9113, 8.7): as if it had never been sent. */
static void take_back(struct http_call *call, CURLcode code)
{
	if (code == CURLE_HTTP2_STREAM && call->sends && !call->status)
		call->sends--;
}

void http2_through(struct http_call *call, CURLcode code, const char *reason)
{
	call->link = NULL;
	if (call->state == HTTP_ENDED)
		return; /* cancelled, and about to leave */
	take_back(call, code);
	if (call->state == HTTP_RUNNING && waits_again(call, code)) {
		http_call_move(call, HTTP_WAITING);
		http_kick(call->http);
		return;
	}
	snprintf(call->reason, sizeof(call->reason), "%s", reason);
	call->code = code;
	http_call_move(call, HTTP_THROUGH);
}

void http2_drop(struct http_call *call)
{
	struct http2_link *link = call->link;

	call->link = NULL;
	nghttp2_session_set_stream_user_data(link->session, call->stream, NULL);
	nghttp2_submit_rst_stream(link->session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL);
	http_kick(link->http); /* to send it, and to give its place to another */
}

/* ---- how links leave ---- */

static void leave_all(struct http2_link *link, CURLcode code)
{
	struct http *http = link->http;
	struct http_call *next;

	for (struct http_call *call = http->running.first; call; call = next) {
		next = call->next;
		if (call->link != link)
			continue;
		nghttp2_session_set_stream_user_data(link->session, call->stream, NULL);
		http2_through(call, code, link->reason);
	}
	for (struct http_call *call = http->leaving.first; call; call = call->next)
		if (call->link == link) {
			nghttp2_session_set_stream_user_data(link->session, call->stream, NULL);
			call->link = NULL;
		}
}

/* Nobody else will take those that waited for it. */
static void fail_waiting(const struct http2_link *link, CURLcode code)
{
	struct http_call *next;
	bool opening;

	for (struct http_call *call = link->http->waiting.first; call; call = next) {
		next = call->next;
		if (is_for(link, call) && !find_link(call, &opening) && !opening)
			http2_through(call, code, link->reason);
	}
}

/* A server that greets and takes no request is not asked for ever. */
static void tire_waiting(const struct http2_link *link, CURLcode code)
{
	struct http_call *next;

	for (struct http_call *call = link->http->waiting.first; call; call = next) {
		next = call->next;
		if (is_for(link, call) && ++call->tries >= TRIES_MAX)
			http2_through(call, code, link->reason);
	}
}

void http2_fail(struct http2_link *link, CURLcode code)
{
	bool was_ready = link->state == HTTP2_READY;

	link->over = true;
	leave_all(link, code);
	if (!was_ready) {
		http2_open_worked(link, false);
		fail_waiting(link, code);
	} else if (nghttp2_session_get_next_stream_id(link->session) == 1) {
		tire_waiting(link, code);
	}
	remove_link(link);
	http_kick(link->http); /* for those that wait again */
}

void http2_is_http1(struct http2_link *link)
{
	struct http *http = link->http;
	struct http_call *call;

	http->only_http1 = true;
	link->over = true;
	remove_link(link);
	while ((call = http->waiting.first))
		http_call_begin(call);
	http_kick(http);
}

static void buried(uv_timer_t *timer)
{
	struct http2_link *link = timer->data;
	struct http *http = link->http;

	snprintf(link->reason, sizeof(link->reason), "the server is silent");
	http_enter(http);
	http2_fail(link, CURLE_RECV_ERROR);
	http2_work(http);
	http_leave(http);
}

/* In the next turn: calls are being looked at. */
void http2_bury(struct http2_link *link)
{
	link->over = true;
	uv_timer_start(&link->timer, buried, 0, 0);
}

void http2_close_all(struct http *http)
{
	while (http->links)
		remove_link(http->links);
}
