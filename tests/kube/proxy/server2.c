/* SPDX-License-Identifier: Apache-2.0 */
/* server2.c - HTTP/2 towards a client: nghttp2, many streams on a connection. */
#include "base/attr.h"
#include "base/num.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "exchange.h"
#include "server.h"
#include "stream.h"
#include "tls.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS_MAX 250
#define WINDOW	    ((int32_t)STREAM_HIGH)

struct http2 {
	struct conn *conn;
	nghttp2_session *session;
	struct request *requests;
	bool cut; /* the connection ends once everything is written */
};

struct offsets {
	size_t name, value;
};

/* A stream of nghttp2 that carries a request. */
struct request {
	struct stream stream;
	struct http2 *http2;
	int32_t id;
	struct strbuf text; /* of the headers, each with its NUL */
	VEC(struct offsets) offsets;
	struct header *headers;
	struct strbuf out; /* of the reply's body, not yet in frames */
	size_t out_at;
	bool submitted; /* the reply's head */
	bool ended;	/* by the exchange */
	enum stream_end how;
	struct request *next, **at;
};

static struct request *request_of(struct stream *stream)
{
	return (struct request *)stream; /* its first member */
}

static void request_free(struct request *request)
{
	*request->at = request->next;
	if (request->next)
		request->next->at = request->at;
	exchange_gone(request->stream.exchange);
	strbuf_done(&request->text);
	strbuf_done(&request->out);
	vec_done(&request->offsets);
	free(request->headers);
	free(request);
}

/* nghttp2 asks for the next piece of a reply's body. */
static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t len,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct request *request = source->ptr;
	(void)session, (void)id, (void)context;
	size_t n = MIN(len, request->out.len - request->out_at);
	if (n > 0)
		memcpy(to, request->out.s + request->out_at, n);
	request->out_at += n;
	bool empty = request->out_at == request->out.len;
	if (empty) {
		strbuf_reset(&request->out);
		request->out_at = 0;
	}
	if (empty && request->ended && request->how == STREAM_CUT)
		request->http2->cut = true;
	if (empty && request->ended && request->how == STREAM_WHOLE)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	else if (n == 0 && request->ended && request->how != STREAM_CUT)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
	else if (n == 0)
		return NGHTTP2_ERR_DEFERRED;
	if (request->stream.exchange)
		exchange_drained(request->stream.exchange);
	return (ssize_t)n;
}

static nghttp2_nv pair(const char *name, const char *value)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
			     .value = (uint8_t *)(uintptr_t)value,
			     .namelen = strlen(name),
			     .valuelen = strlen(value) };
}

static void send_head(struct stream *stream, const struct head *head)
{
	struct request *request = request_of(stream);
	nghttp2_nv pairs[H1_HEADERS_MAX + 1];
	char status[16];
	size_t count = 0;
	snprintf(status, sizeof(status), "%d", head->status);
	pairs[count++] = pair(":status", status);
	for (size_t i = 0; i < head->count && count < ARRAY_SIZE(pairs); i++)
		if (!header_is_of_hop(head->headers[i].name))
			pairs[count++] = pair(head->headers[i].name, head->headers[i].value);
	nghttp2_data_provider body = { .source.ptr = request, .read_callback = read_body };
	request->submitted = true;
	nghttp2_submit_response(request->http2->session, request->id, pairs, count,
				head->has_body ? &body : NULL);
	conn_mark(request->http2->conn);
}

static void send_body(struct stream *stream, const char *bytes, size_t len)
{
	struct request *request = request_of(stream);
	if (request->out_at > 0) {
		size_t left = request->out.len - request->out_at;
		memmove(request->out.s, request->out.s + request->out_at, left);
		strbuf_truncate(&request->out, left);
		request->out_at = 0;
	}
	strbuf_add(&request->out, bytes, len);
	nghttp2_session_resume_data(request->http2->session, request->id);
	conn_mark(request->http2->conn);
}

static void send_end(struct stream *stream, enum stream_end how)
{
	struct request *request = request_of(stream);
	struct http2 *http2 = request->http2;
	request->ended = true;
	request->how = how;
	if (how == STREAM_RESET)
		conn_leave(http2->conn, CONN_RESET);
	else if (request->submitted)
		nghttp2_session_resume_data(http2->session, request->id);
	else if (how == STREAM_CUT)
		http2->cut = true;
	else
		nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, request->id,
					  how == STREAM_REFUSED ? NGHTTP2_REFUSED_STREAM
								: NGHTTP2_INTERNAL_ERROR);
	conn_mark(http2->conn);
}

static void consume(struct stream *stream, size_t len)
{
	const struct request *request = request_of(stream);
	nghttp2_session_consume_stream(request->http2->session, request->id, len);
	conn_mark(request->http2->conn);
}

static size_t pending(const struct stream *stream)
{
	const struct request *request = (const struct request *)stream;
	return request->out.len - request->out_at;
}

/* Streams that have begun go on.  A refused one is named by itself, since others with
 * higher numbers may well be with the server already. */
static void goaway(struct stream *stream, bool refuse)
{
	const struct request *request = request_of(stream);
	nghttp2_session *session = request->http2->session;
	nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(session), NGHTTP2_NO_ERROR,
			      NULL, 0);
	if (refuse)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, request->id,
					  NGHTTP2_REFUSED_STREAM);
	conn_mark(request->http2->conn);
}

static void freeze(struct stream *stream, bool frozen)
{
	const struct request *request = request_of(stream);
	struct conn *conn = request->http2->conn;
	if (conn->tls)
		tls_freeze(conn->tls, frozen);
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

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2 *http2 = context;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct request *request = calloc(1, sizeof(*request));
	if (!request)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	request->stream = (struct stream){ .ops = &ops,
					   .proxy = http2->conn->proxy,
					   .conn = http2->conn->number,
					   .id = (uint64_t)frame->hd.stream_id };
	request->http2 = http2;
	request->id = frame->hd.stream_id;
	request->text = (struct strbuf)STRBUF_INIT_MAX(H1_HEAD_MAX);
	request->out = (struct strbuf)STRBUF_INIT;
	request->next = http2->requests;
	request->at = &http2->requests;
	if (request->next)
		request->next->at = &request->next;
	http2->requests = request;
	nghttp2_session_set_stream_user_data(session, request->id, request);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *context)
{
	struct request *request =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	(void)flags, (void)context;
	if (!request || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0; /* trailers */
	struct offsets offsets = { request->text.len, request->text.len + name_len + 1 };
	strbuf_add(&request->text, (const char *)name, name_len + 1); /* with its NUL */
	strbuf_add(&request->text, (const char *)value, value_len + 1);
	if (request->text.failed || request->offsets.len >= H1_HEADERS_MAX ||
	    vec_push(&request->offsets, offsets) < 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return 0;
}

/* The headers have come: their text does not move any more. */
static bool read_head(struct request *request, bool has_body)
{
	struct head *head = &request->stream.head;
	size_t count = request->offsets.len;
	request->headers = calloc(count + 1, sizeof(*request->headers));
	if (!request->headers)
		return false;
	*head = (struct head){
		.length = -1, .has_body = has_body, .headers = request->headers, .count = count
	};
	for (size_t i = 0; i < count; i++) {
		struct header *header = &request->headers[i];
		header->name = request->text.s + request->offsets.items[i].name;
		header->value = request->text.s + request->offsets.items[i].value;
		if (strcmp(header->name, ":method") == 0)
			head->method = header->value;
		else if (strcmp(header->name, ":path") == 0)
			head->target = header->value;
		else if (strcmp(header->name, "content-length") == 0)
			parse_i64(header->value, strlen(header->value), &head->length);
	}
	return head->method && head->target && head->target[0] == '/';
}

static void begin_request(struct request *request, bool has_body)
{
	if (read_head(request, has_body))
		exchange_begin(&request->stream);
	else
		nghttp2_submit_rst_stream(request->http2->session, NGHTTP2_FLAG_NONE, request->id,
					  NGHTTP2_PROTOCOL_ERROR);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct request *request =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	bool last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
	(void)context;
	if (!request || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		begin_request(request, !last);
	else if (last && request->stream.exchange)
		exchange_body_end(request->stream.exchange);
	return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
			 size_t len, void *context)
{
	struct request *request = nghttp2_session_get_stream_user_data(session, id);
	(void)flags, (void)context;
	/* Each stream has its own window; that of the connection never stands in the way. */
	nghttp2_session_consume_connection(session, len);
	if (request && request->stream.exchange)
		exchange_body(request->stream.exchange, (const char *)bytes, len);
	else
		nghttp2_session_consume_stream(session, id, len);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	struct request *request = nghttp2_session_get_stream_user_data(session, id);
	(void)code, (void)context;
	if (request)
		request_free(request);
	return 0;
}

static void on_flush(void *state)
{
	struct http2 *http2 = state;
	struct conn *conn = http2->conn;
	while (conn->tls && tls_pending(conn->tls) < TLS_HIGH) {
		const uint8_t *bytes;
		ssize_t n = nghttp2_session_mem_send(http2->session, &bytes);
		if (n < 0) {
			conn_leave(conn, CONN_RESET);
			return;
		}
		if (n > 0) {
			tls_write(conn->tls, bytes, (size_t)n);
			continue;
		}
		if (http2->cut)
			conn_leave(conn, CONN_CUT);
		else if (!nghttp2_session_want_read(http2->session) &&
			 !nghttp2_session_want_write(http2->session))
			conn_leave(conn, CONN_FINISH);
		return;
	}
}

static void on_data(void *state, const char *bytes, size_t len)
{
	struct http2 *http2 = state;
	ssize_t n = nghttp2_session_mem_recv(http2->session, (const uint8_t *)bytes, len);
	if (n < 0)
		conn_leave(http2->conn, CONN_RESET);
	conn_mark(http2->conn);
}

static void on_drained(void *state)
{
	const struct http2 *http2 = state;
	conn_mark(http2->conn);
}

static int session_new(struct http2 *http2)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	if (nghttp2_session_callbacks_new(&callbacks) < 0)
		return -1;
	if (nghttp2_option_new(&option) < 0) {
		nghttp2_session_callbacks_del(callbacks);
		return -1;
	}
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	int result = nghttp2_session_server_new2(&http2->session, callbacks, http2, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return result;
}

static void *http2_open(struct conn *conn)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW },
	};
	struct http2 *http2 = calloc(1, sizeof(*http2));
	if (!http2)
		return NULL;
	http2->conn = conn;
	if (session_new(http2) < 0) {
		free(http2);
		return NULL;
	}
	nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings));
	conn_mark(conn);
	return http2;
}

static void http2_free(void *state)
{
	struct http2 *http2 = state;
	while (http2->requests)
		request_free(http2->requests);
	nghttp2_session_del(http2->session);
	free(http2);
}

const struct version version_http2 = {
	.open = http2_open,
	.data = on_data,
	.drained = on_drained,
	.flush = on_flush,
	.free = http2_free,
};
