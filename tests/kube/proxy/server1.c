/* SPDX-License-Identifier: Apache-2.0 */
/* server1.c - HTTP/1.1 towards a client: one request after the other.  A client may send
 * the next before it has its reply; that one waits. */
#include "base/err.h"
#include "base/strbuf.h"
#include "exchange.h"
#include "h1.h"
#include "server.h"
#include "stream.h"
#include "tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_MAX ((size_t)64 << 10) /* bytes of requests that wait for their turn */

struct http1 {
	struct stream stream; /* the request at hand */
	struct conn *conn;
	struct h1 h1;
	struct strbuf in; /* what has come and is not yet read */
	size_t in_at;
	bool active;	    /* a request has no whole reply yet */
	bool request_ended; /* and all of it has come */
	bool running;	    /* inside run() */
	bool chunked;	    /* the reply */
	bool bodyless, close;
	size_t unconsumed;
};

static void run(struct http1 *http1);

static struct http1 *http1_of(struct stream *stream)
{
	return (struct http1 *)stream; /* its first member */
}

static void update_pause(const struct http1 *http1)
{
	if (http1->conn->tls)
		tls_pause(http1->conn->tls, http1->in.len - http1->in_at > WAITING_MAX ||
						    http1->unconsumed > STREAM_HIGH);
}

static const char *phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} phrases[] = { { 200, "OK" },
			{ 201, "Created" },
			{ 202, "Accepted" },
			{ 204, "No Content" },
			{ 304, "Not Modified" },
			{ 400, "Bad Request" },
			{ 401, "Unauthorized" },
			{ 403, "Forbidden" },
			{ 404, "Not Found" },
			{ 409, "Conflict" },
			{ 410, "Gone" },
			{ 422, "Unprocessable Entity" },
			{ 429, "Too Many Requests" },
			{ 500, "Internal Server Error" },
			{ 502, "Bad Gateway" },
			{ 503, "Service Unavailable" },
			{ 504, "Gateway Timeout" } };
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "";
}

static void send_head(struct stream *stream, const struct head *head)
{
	struct http1 *http1 = http1_of(stream);
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	http1->bodyless = !head->has_body;
	bool unknown = head->has_body && head->length < 0;
	http1->chunked = unknown && !http1->h1.http10;
	http1->close |= http1->h1.close || (unknown && !http1->chunked);
	strbuf_addf(&out, "HTTP/1.1 %d %s\r\n", head->status, phrase(head->status));
	for (size_t i = 0; i < head->count; i++)
		if (!header_is_of_hop(head->headers[i].name))
			strbuf_addf(&out, "%s: %s\r\n", head->headers[i].name,
				    head->headers[i].value);
	if (http1->chunked)
		strbuf_puts(&out, "transfer-encoding: chunked\r\n");
	if (http1->close)
		strbuf_puts(&out, "connection: close\r\n");
	strbuf_puts(&out, "\r\n");
	if (http1->conn->tls)
		tls_write(http1->conn->tls, out.s, out.len);
}

static void send_body(struct stream *stream, const char *bytes, size_t len)
{
	struct http1 *http1 = http1_of(stream);
	struct tls *tls = http1->conn->tls;
	char size[24];
	if (!tls || http1->bodyless || len == 0)
		return;
	if (http1->chunked) {
		snprintf(size, sizeof(size), "%zx\r\n", len);
		tls_write(tls, size, strlen(size));
	}
	tls_write(tls, bytes, len);
	if (http1->chunked)
		tls_write(tls, "\r\n", 2);
}

static void send_end(struct stream *stream, enum stream_end how)
{
	struct http1 *http1 = http1_of(stream);
	struct conn *conn = http1->conn;
	if (!conn->tls)
		return;
	if (how != STREAM_WHOLE) {
		conn_leave(conn, how == STREAM_RESET ? CONN_RESET : CONN_CUT);
		return;
	}
	if (http1->chunked)
		tls_write(conn->tls, "0\r\n\r\n", 5);
	/* The rest of a request that was answered too early would be taken for the next. */
	if (http1->close || !http1->request_ended) {
		conn_leave(conn, CONN_FINISH);
		return;
	}
	http1->active = false;
	run(http1);
}

static void consume(struct stream *stream, size_t len)
{
	struct http1 *http1 = http1_of(stream);
	http1->unconsumed -= len;
	update_pause(http1);
}

static size_t pending(const struct stream *stream)
{
	const struct http1 *http1 = (const struct http1 *)stream;
	return http1->conn->tls ? tls_pending(http1->conn->tls) : 0;
}

/* There is no such frame: the reply says that it is the last. */
static void goaway(struct stream *stream, bool refuse)
{
	struct http1 *http1 = http1_of(stream);
	http1->close = true;
	if (refuse)
		conn_leave(http1->conn, CONN_CUT);
}

static void freeze(struct stream *stream, bool frozen)
{
	const struct http1 *http1 = http1_of(stream);
	if (http1->conn->tls)
		tls_freeze(http1->conn->tls, frozen);
}

static const struct stream_ops ops = {
	.head = send_head,
	.body = send_body,
	.end = send_end,
	.consume = consume,
	.pending = pending,
	.goaway = goaway,
	.freeze = freeze,
};

static void begin_request(struct http1 *http1)
{
	struct conn *conn = http1->conn;
	http1->stream = (struct stream){ .ops = &ops,
					 .proxy = conn->proxy,
					 .conn = conn->number,
					 .id = http1->stream.id + 1,
					 .head = http1->h1.head };
	http1->active = true;
	http1->chunked = false;
	http1->request_ended = !http1->h1.head.has_body;
	http1->unconsumed = 0;
	const char *expect = head_get(&http1->h1.head, "expect");
	if (expect && strcasecmp(expect, "100-continue") == 0 && !http1->h1.http10)
		tls_write(conn->tls, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	exchange_begin(&http1->stream);
}

static void take_body(struct http1 *http1, const struct h1_piece *body)
{
	http1->unconsumed += body->len;
	if (http1->stream.exchange)
		exchange_body(http1->stream.exchange, body->bytes, body->len);
	else
		consume(&http1->stream, body->len);
}

static void end_request(struct http1 *http1)
{
	if (http1->request_ended)
		return;
	http1->request_ended = true;
	if (http1->stream.exchange)
		exchange_body_end(http1->stream.exchange);
}

/* Not HTTP/1.1: says so if nothing else is being said. */
static void refuse(const struct http1 *http1, const struct err *err)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	if (!http1->active) {
		strbuf_addf(&out,
			    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n"
			    "connection: close\r\ncontent-length: %zu\r\n\r\n%s\n",
			    strlen(err->text) + 1, err->text);
		tls_write(http1->conn->tls, out.s, out.len);
	}
	conn_leave(http1->conn, CONN_FINISH);
}

/* One step; false: nothing more can be done now. */
static bool step(struct http1 *http1)
{
	const char *bytes = http1->in.s + http1->in_at;
	size_t len = http1->in.len - http1->in_at;
	size_t before = len;
	struct h1_piece body;
	struct err err = ERR_INIT;
	if (!http1->conn->tls ||
	    (http1->active && http1->request_ended && !h1_is_inside(&http1->h1)))
		return false;
	enum h1_event event = h1_next(&http1->h1, &bytes, &len, &body, &err);
	http1->in_at += before - len;
	switch (event) {
	case H1_MORE:
		return false;
	case H1_HEAD:
		begin_request(http1);
		return true;
	case H1_BODY:
		take_body(http1, &body);
		return true;
	case H1_END:
		end_request(http1);
		return true;
	case H1_BAD:
		refuse(http1, &err);
		return false;
	}
	return false;
}

static void run(struct http1 *http1)
{
	if (http1->running)
		return;
	http1->running = true;
	while (step(http1))
		;
	http1->running = false;
	size_t left = http1->in.len - http1->in_at;
	if (http1->in_at > 0)
		memmove(http1->in.s, http1->in.s + http1->in_at, left);
	strbuf_truncate(&http1->in, left);
	http1->in_at = 0;
	update_pause(http1);
}

static void on_data(void *state, const char *bytes, size_t len)
{
	struct http1 *http1 = state;
	strbuf_add(&http1->in, bytes, len);
	if (http1->in.failed)
		conn_leave(http1->conn, CONN_RESET);
	run(http1);
}

static void on_drained(void *state)
{
	struct http1 *http1 = state;
	if (http1->stream.exchange)
		exchange_drained(http1->stream.exchange);
}

static void on_flush(void *state)
{
	(void)state; /* everything is written at once */
}

static void *http1_open(struct conn *conn)
{
	struct http1 *http1 = calloc(1, sizeof(*http1));
	if (!http1)
		return NULL;
	http1->conn = conn;
	http1->in = (struct strbuf)STRBUF_INIT;
	h1_init(&http1->h1, H1_REQUESTS);
	return http1;
}

static void http1_free(void *state)
{
	struct http1 *http1 = state;
	exchange_gone(http1->stream.exchange);
	h1_done(&http1->h1);
	strbuf_done(&http1->in);
	free(http1);
}

const struct version version_http1 = {
	.open = http1_open,
	.data = on_data,
	.drained = on_drained,
	.flush = on_flush,
	.free = http1_free,
};
