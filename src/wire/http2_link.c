/* SPDX-License-Identifier: Apache-2.0 */
/* http2_link.c - one connection: its life, what it reads and what it sends.
 *
 * A turn of the loop costs one call of the kernel to receive and one to send, whatever
 * lies between: GnuTLS takes what was received from memory and leaves there what is to be
 * sent.
 */
#include "base/attr.h"
#include "wire/http2.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* No more is encrypted while so much waits for the socket. */
#define OUT_BYTES_MAX  ((size_t)256 << 10)
#define OUT_BYTES_KEPT ((size_t)64 << 10)

static void link_free(struct http2_link *link)
{
	struct http *http = link->http;

	if (link->addresses)
		freeaddrinfo(link->addresses);
	nghttp2_session_del(link->session);
	http2_tls_done(link);
	strbuf_done(&link->out);
	free(link->origin);
	free(link->name);
	curl_free(link->host);
	curl_free(link->port);
	free(link);
	http_handle_closed(http);
}

static void timer_closed(uv_handle_t *handle)
{
	link_free(handle->data);
}

/* "[::1]" is "::1". */
static void strip_brackets(char *host)
{
	size_t len = strlen(host);

	if (host[0] != '[' || host[len - 1] != ']')
		return;
	memmove(host, host + 1, len - 2);
	host[len - 2] = '\0';
}

static bool set_server(struct http2_link *link, const struct http_call *call)
{
	const char *url = call->head.s + call->url_at;
	const char *name = call->http->options.server_name;
	CURLU *parts = call->http->url;

	link->origin = strndup(url, call->origin_len);
	if (!link->origin ||
	    curl_url_set(parts, CURLUPART_URL, url, CURLU_PATH_AS_IS) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_HOST, &link->host, 0) != CURLUE_OK ||
	    curl_url_get(parts, CURLUPART_PORT, &link->port, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return false;
	strip_brackets(link->host);
	link->name = strdup(name ? name : link->host);
	if (!link->name)
		return false;
	for (size_t len = strlen(link->name); len && link->name[len - 1] == '.';)
		link->name[--len] = '\0';
	return true;
}

struct http2_link *http2_link_new(const struct http_call *call)
{
	struct http *http = call->http;
	struct http2_link *link = calloc(1, sizeof(*link));

	if (!http->buffer)
		http->buffer = malloc(HTTP2_RECEIVE_BYTES + HTTP2_RECORD_BYTES);
	if (!link || !http->buffer) {
		free(link);
		return NULL;
	}
	link->http = http;
	link->fd = -1;
	link->out = (struct strbuf)STRBUF_INIT;
	http->handles++;
	if (!set_server(link, call)) {
		link_free(link);
		return NULL;
	}
	uv_timer_init(http->loop, &link->timer);
	link->timer.data = link;
	return link;
}

void http2_link_note(struct http2_link *link, const char *format, ...)
{
	va_list arguments;

	if (link->reason[0])
		return;
	va_start(arguments, format);
	vsnprintf(link->reason, sizeof(link->reason), format, arguments);
	va_end(arguments);
}

/* ---- to the socket and from it ---- */

static void link_ready(uv_poll_t *poll, int status, int events);

static void arm(struct http2_link *link, int events)
{
	if (link->armed == events)
		return;
	link->armed = events;
	uv_poll_start(link->poll, events, link_ready);
}

/* What is encrypted leaves as far as the socket takes it. */
static CURLcode push_out(struct http2_link *link)
{
	struct strbuf *out = &link->out;

	while (link->out_at < out->len) {
		ssize_t n = send(link->fd, out->s + link->out_at, out->len - link->out_at,
				 MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n < 0) {
			snprintf(link->reason, sizeof(link->reason), "cannot send: %s",
				 strerror(errno));
			return CURLE_SEND_ERROR;
		}
		link->out_at += (size_t)n;
	}
	bool all = link->out_at == out->len;
	if (all && out->cap > OUT_BYTES_KEPT)
		strbuf_done(out);
	if (all) {
		strbuf_reset(out);
		link->out_at = 0;
	} else if (link->out_at >= out->len - link->out_at) {
		size_t rest = out->len - link->out_at;
		memcpy(out->s, out->s + link->out_at, rest);
		strbuf_truncate(out, rest);
		link->out_at = 0;
	}
	arm(link, UV_READABLE | (all ? 0 : UV_WRITABLE));
	return CURLE_OK;
}

/* The frames that nghttp2 has ready, as few and full records of TLS. */
static CURLcode encrypt(struct http2_link *link)
{
	char *record = link->http->buffer + HTTP2_RECEIVE_BYTES;
	size_t filled = 0;
	CURLcode code = CURLE_OK;

	while (!code && link->out.len - link->out_at < OUT_BYTES_MAX) {
		const uint8_t *frame;
		ssize_t n = nghttp2_session_mem_send(link->session, &frame);
		if (n < 0)
			return CURLE_OUT_OF_MEMORY;
		if (n == 0)
			break;
		for (size_t at = 0, len = (size_t)n; !code && at < len;) {
			size_t part = MIN(len - at, HTTP2_RECORD_BYTES - filled);
			memcpy(record + filled, frame + at, part);
			filled += part;
			at += part;
			if (filled < HTTP2_RECORD_BYTES)
				continue;
			code = http2_tls_write(link, record, filled);
			filled = 0;
		}
	}
	return code || !filled ? code : http2_tls_write(link, record, filled);
}

static bool is_through(const struct http2_link *link)
{
	return (link->over && !link->streams) || (!nghttp2_session_want_read(link->session) &&
						  !nghttp2_session_want_write(link->session));
}

void http2_link_send(struct http2_link *link)
{
	CURLcode code;
	bool some;

	do {
		code = encrypt(link);
		some = link->out.len > 0;
		if (!code)
			code = push_out(link);
	} while (!code && some && !link->out.len);
	if (!code && is_through(link)) {
		http2_link_note(link, "the server has ended the connection");
		code = CURLE_RECV_ERROR;
	}
	if (code)
		http2_fail(link, code);
}

/* ---- what came ---- */

static void rests(uv_timer_t *timer)
{
	struct http2_link *link = timer->data;
	struct http *http = link->http;
	uint64_t now_ms = uv_now(http->loop), keep_ms = http->options.keep_ms;
	uint64_t idle_ms = link->streams ? 0 : now_ms - MIN(link->idle_ms, now_ms);

	if (idle_ms < keep_ms) {
		uv_timer_start(timer, rests, keep_ms - idle_ms, 0);
		return;
	}
	http_enter(http);
	snprintf(link->reason, sizeof(link->reason), "the connection was idle");
	http2_fail(link, CURLE_RECV_ERROR);
	http_leave(http);
}

static CURLcode greet(struct http2_link *link)
{
	bool done = false;
	CURLcode code = http2_tls_greet(link, &done);

	if (code)
		push_out(link); /* the alert that says why */
	if (code || !done)
		return code ? code : push_out(link);
	if (!http2_tls_speaks_http2(link)) {
		http2_is_http1(link);
		return CURLE_OK;
	}
	if (http2_session_new(link) < 0) {
		snprintf(link->reason, sizeof(link->reason), "no memory for a connection");
		return CURLE_OUT_OF_MEMORY;
	}
	link->state = HTTP2_SETTLING;
	return CURLE_OK;
}

void http2_link_settled(struct http2_link *link)
{
	link->state = HTTP2_READY;
	http2_open_worked(link, true);
	link->over = link->over || !http2_has_room(link); /* for none at all */
	link->idle_ms = uv_now(link->http->loop);
	uv_timer_start(&link->timer, rests, link->http->options.keep_ms, 0);
}

static CURLcode read_records(struct http2_link *link)
{
	char *record = link->http->buffer + HTTP2_RECEIVE_BYTES;
	CURLcode code = CURLE_OK;
	size_t len = 1;

	while (!code && len > 0) {
		code = http2_tls_read(link, record, HTTP2_RECORD_BYTES, &len);
		if (!code && len > 0)
			code = http2_receive(link, record, len);
	}
	return code;
}

static CURLcode receive(struct http2_link *link)
{
	ssize_t n;

	do
		n = recv(link->fd, link->http->buffer, HTTP2_RECEIVE_BYTES, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return CURLE_OK;
	if (n < 0) {
		http2_link_note(link, "cannot receive: %s", strerror(errno));
		return CURLE_RECV_ERROR;
	}
	link->heard_ms = uv_now(link->http->loop);
	link->in = link->http->buffer;
	link->in_len = (size_t)n;
	link->in_ended = n == 0;
	CURLcode code = link->state == HTTP2_GREETING ? greet(link) : CURLE_OK;
	if (!code && link->session && link->state != HTTP2_ENDED)
		code = read_records(link);
	return code;
}

/* The server may have ended an idle one since the loop has looked, and what is sent then is
 * lost. */
bool http2_link_lives(struct http2_link *link)
{
	CURLcode code = link->streams ? CURLE_OK : receive(link);

	if (code)
		http2_fail(link, code);
	return !code && !link->over;
}

static void link_ready(uv_poll_t *poll, int status, int events)
{
	struct http2_link *link = poll->data;
	struct http *http = link->http;
	CURLcode code = CURLE_OK;

	http_enter(http);
	/* libuv has stopped to poll a socket with an error; the read tells which. */
	if (status < 0)
		link->armed = 0;
	if (status < 0 || events & UV_READABLE)
		code = receive(link);
	else if (link->state == HTTP2_GREETING)
		code = push_out(link);
	if (code)
		http2_fail(link, code);
	http2_work(http);
	http_leave(http);
}

/* ---- its life ---- */

void http2_link_connected(struct http2_link *link)
{
	CURLcode code = http2_tls_new(link);

	link->state = HTTP2_GREETING;
	link->heard_ms = uv_now(link->http->loop);
	if (!code)
		code = greet(link);
	if (code)
		http2_fail(link, code);
}

/* Not to wait for: what the socket does not take at once is not sent. */
static void say_goodbye(struct http2_link *link)
{
	if (link->state != HTTP2_READY || link->in_ended)
		return;
	nghttp2_session_terminate_session(link->session, NGHTTP2_NO_ERROR);
	if (encrypt(link) == CURLE_OK && gnutls_bye(link->tls, GNUTLS_SHUT_WR) >= 0)
		push_out(link);
}

void http2_link_close(struct http2_link *link)
{
	say_goodbye(link);
	http2_open_stop(link);
	link->state = HTTP2_ENDED;
	uv_close((uv_handle_t *)&link->timer, timer_closed);
}
