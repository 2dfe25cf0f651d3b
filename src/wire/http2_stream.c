/* SPDX-License-Identifier: Apache-2.0 */
/* http2_stream.c - calls as streams of nghttp2. */
#include "base/attr.h"
#include "base/num.h"
#include "wire/http2.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What may be on its way to us unread.  data() takes what comes at once, so these bound
 * the server's start, not our memory. */
#define STREAM_WINDOW ((int32_t)1 << 20)
#define LINK_WINDOW   ((int32_t)16 << 20)

#define FIELDS_MAX	 (64 + 8) /* as many as a request may have, and ours */
#define HEADER_BLOCK_MAX ((size_t)FIELDS_MAX << 16)

/* ---- what came ---- */

/* The call of a stream; NULL: it has left. */
static struct http_call *call_of(nghttp2_session *session, int32_t stream)
{
	struct http_call *call = nghttp2_session_get_stream_user_data(session, stream);

	return call && !call->cancelled ? call : NULL;
}

static void give_up(struct http2_link *link, struct http_call *call, CURLcode code,
		    const char *reason)
{
	nghttp2_session_set_stream_user_data(link->session, call->stream, NULL);
	nghttp2_submit_rst_stream(link->session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL);
	http2_through(call, code, reason);
}

static bool is_gzip(const struct http_call *call, const char *value, size_t len)
{
	bool named = (len == 4 && strncasecmp(value, "gzip", len) == 0) ||
		     (len == 6 && strncasecmp(value, "x-gzip", len) == 0); /* RFC 9110 */

	return named && call->request.gzip && strcmp(call->head.s, "HEAD") != 0;
}

static int header_came(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		       size_t name_len, const uint8_t *value, size_t len, uint8_t flags,
		       void *context)
{
	struct http2_link *link = context;
	struct http_call *call = call_of(session, frame->hd.stream_id);
	int32_t status = 0;

	(void)flags;
	if (!call)
		return 0;
	if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
		parse_i32((const char *)value, len, &status);
		http_reply_status(call, status);
		call->heading = link->answered = true;
	} else if (!call->heading) {
		return 0; /* trailers: too late to change what has been read */
	} else if (name_len == 16 && memcmp(name, "content-encoding", 16) == 0) {
		if (is_gzip(call, (const char *)value, len) && !call->inflate &&
		    http_inflate_new(&call->inflate) < 0)
			give_up(link, call, CURLE_OUT_OF_MEMORY, "no memory to inflate the reply");
	} else {
		http_reply_field(call, (const char *)name, name_len, (const char *)value, len);
	}
	return 0;
}

static int data_came(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
		     size_t len, void *context)
{
	struct http_call *call = call_of(session, stream);
	CURLcode code = CURLE_OK;

	(void)flags;
	if (!call || len == 0)
		return 0;
	call->bytes_in += len;
	if (call->inflate)
		code = http_inflate(call, (const char *)bytes, len);
	else if (!http_reply_body(call, (const char *)bytes, len))
		code = CURLE_WRITE_ERROR;
	if (code && !call->cancelled)
		give_up(context, call, code, curl_easy_strerror(code));
	return 0;
}

/* What one of the two says of a connection that has gone wrong. */
static void note_goaway(struct http2_link *link, const char *what, const nghttp2_goaway *goaway)
{
	char text[128];
	size_t len = MIN(goaway->opaque_data_len, sizeof(text) - 1);

	if (goaway->error_code == NGHTTP2_NO_ERROR)
		return;
	for (size_t i = 0; i < len; i++)
		text[i] = isprint(goaway->opaque_data[i]) ? (char)goaway->opaque_data[i] : '?';
	text[len] = '\0';
	http2_link_note(link, "%s: %s%s%s", what, nghttp2_http2_strerror(goaway->error_code),
			len ? ", " : "", text);
}

/* How the stream's end reads to the call. */
static void close_call(struct http_call *call, uint32_t error)
{
	char reason[96];

	/* A reply without a body may say how it would have been compressed. */
	if (call->whole && call->inflate && call->bytes_in && !http_inflate_ended(call->inflate)) {
		http2_through(call, CURLE_BAD_CONTENT_ENCODING, "the compressed reply is cut off");
	} else if (call->whole) {
		http2_through(call, CURLE_OK, "");
	} else {
		snprintf(reason, sizeof(reason), "the stream was reset: %s",
			 nghttp2_http2_strerror(error));
		http2_through(call,
			      error == NGHTTP2_REFUSED_STREAM ? CURLE_HTTP2_STREAM : CURLE_HTTP2,
			      reason);
	}
}

/* The reply is whole.  A server may well give one before it has read all that we send, and
 * read no more: then nobody waits for it. */
static void reply_ended(struct http2_link *link, struct http_call *call)
{
	call->whole = true;
	if (call->sent_at == call->sent.len)
		return; /* until the stream is closed */
	nghttp2_session_set_stream_user_data(link->session, call->stream, NULL);
	nghttp2_submit_rst_stream(link->session, NGHTTP2_FLAG_NONE, call->stream, NGHTTP2_CANCEL);
	close_call(call, NGHTTP2_NO_ERROR);
}

static int frame_came(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2_link *link = context;
	struct http_call *call;

	if (frame->hd.type == NGHTTP2_GOAWAY) {
		link->over = true;
		note_goaway(link, "the server has ended the connection", &frame->goaway);
	}
	if (frame->hd.type == NGHTTP2_SETTINGS && link->state == HTTP2_SETTLING)
		http2_link_settled(link);
	if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	call = call_of(session, frame->hd.stream_id);
	if (!call)
		return 0;
	call->heading = false;
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		reply_ended(link, call);
	return 0;
}

static int stream_closed(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
	struct http2_link *link = context;
	struct http_call *call = nghttp2_session_get_stream_user_data(session, stream);

	link->streams--;
	link->idle_ms = uv_now(link->http->loop);
	if (link->http->waiting.first)
		http_kick(link->http);
	if (!call)
		return 0;
	nghttp2_session_set_stream_user_data(session, stream, NULL);
	close_call(call, error);
	return 0;
}

/* ---- what goes ---- */

static ssize_t body_goes(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct http_call *call = call_of(session, stream);

	(void)source, (void)context;
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets the stream */
	size_t len = MIN(size, call->sent.len - call->sent_at);
	memcpy(to, call->sent.s + call->sent_at, len);
	call->sent_at += len;
	if (call->sent_at == call->sent.len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

/* From here on bytes of it may reach the server. */
static int frame_goes(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct http2_link *link = context;
	struct http_call *call;

	/* nghttp2 judges what comes, and this is all that it tells of it. */
	if (frame->hd.type == NGHTTP2_GOAWAY)
		note_goaway(link, "the server does not keep to HTTP/2", &frame->goaway);
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	call = call_of(session, frame->hd.stream_id);
	if (!call)
		return 0;
	call->fresh = !link->answered;
	http_call_sent(call);
	return 0;
}

struct fields {
	nghttp2_nv list[FIELDS_MAX];
	size_t count;
};

static void add_field(struct fields *fields, const char *name, size_t name_len, const char *value,
		      size_t len)
{
	if (fields->count < FIELDS_MAX)
		fields->list[fields->count++] = (nghttp2_nv){ .name = (uint8_t *)name,
							      .namelen = name_len,
							      .value = (uint8_t *)value,
							      .valuelen = len };
}

static void add_text(struct fields *fields, const char *name, const char *value)
{
	add_field(fields, name, strlen(name), value, strlen(value));
}

/* "name: value"; what speaks of one connection of HTTP/1.1 has no place here. */
static void add_header(struct fields *fields, const char *header)
{
	static const char *const never[] = { "connection:", "host:", "transfer-encoding:",
					     "keep-alive:", "upgrade:" };
	const char *colon = strchr(header, ':');
	const char *value = colon + 1 + strspn(colon + 1, " \t");
	size_t len = strlen(value);

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (strncmp(header, never[i], strlen(never[i])) == 0)
			return;
	while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	add_field(fields, header, (size_t)(colon - header), value, len);
}

/* As HTTP/2 wants them. */
static void lower_names(struct http_call *call)
{
	char *s = call->head.s + call->headers_at;
	const char *end = call->head.s + call->head.len;

	for (; s < end; s += strlen(s) + 1)
		for (char *c = s; *c != ':'; c++)
			*c = (char)tolower((unsigned char)*c);
}

static void fill(struct fields *fields, const struct http_call *call, char *length, size_t size)
{
	const struct http_options *options = &call->http->options;
	const char *origin = call->head.s + call->url_at, *header = NULL;
	const char *path = origin + call->origin_len;
	const size_t scheme = strlen("https://");

	fields->count = 0;
	add_text(fields, ":method", call->head.s);
	add_text(fields, ":scheme", "https");
	add_field(fields, ":authority", 10, origin + scheme, call->origin_len - scheme);
	add_field(fields, ":path", 5, path, strcspn(path, "#")); /* the rest is for browsers */
	if (options->user_agent)
		add_text(fields, "user-agent", options->user_agent);
	if (call->request.gzip)
		add_text(fields, "accept-encoding", "gzip");
	if (call->has_body) {
		snprintf(length, size, "%zu", call->sent.len);
		add_text(fields, "content-length", length);
	}
	while ((header = http_call_next_header(call, header)))
		add_header(fields, header);
}

bool http2_has_room(const struct http2_link *link)
{
	uint32_t max = nghttp2_session_get_remote_settings(
		link->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	return link->streams < MIN(max, HTTP2_STREAMS_MAX) &&
	       nghttp2_session_check_request_allowed(link->session);
}

CURLcode http2_submit(struct http2_link *link, struct http_call *call)
{
	const nghttp2_data_provider body = { .read_callback = body_goes };
	struct fields fields;
	char length[24];

	call->tries++;
	call->sent_at = 0;
	call->heading = call->whole = false;
	http_reply_reset(call);
	lower_names(call);
	fill(&fields, call, length, sizeof(length));
	call->stream = nghttp2_submit_request(link->session, NULL, fields.list, fields.count,
					      call->sent.len ? &body : NULL, call);
	if (call->stream < 0)
		return CURLE_OUT_OF_MEMORY;
	call->link = link;
	link->streams++;
	return CURLE_OK;
}

/* ---- the session ---- */

static void set_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_header_callback(callbacks, header_came);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_came);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_came);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
	nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, frame_goes);
}

int http2_session_new(struct http2_link *link)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
	};
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *options;

	if (nghttp2_session_callbacks_new(&callbacks) < 0)
		return -ENOMEM;
	if (nghttp2_option_new(&options) < 0) {
		nghttp2_session_callbacks_del(callbacks);
		return -ENOMEM;
	}
	set_callbacks(callbacks);
	/* What http_check() lets pass; else the server is to judge it. */
	nghttp2_option_set_max_send_header_block_length(options, HEADER_BLOCK_MAX);
	int r = nghttp2_session_client_new2(&link->session, callbacks, link, options);
	nghttp2_option_del(options);
	nghttp2_session_callbacks_del(callbacks);
	if (r < 0 ||
	    nghttp2_submit_settings(link->session, NGHTTP2_FLAG_NONE, settings,
				    ARRAY_SIZE(settings)) < 0 ||
	    nghttp2_session_set_local_window_size(link->session, NGHTTP2_FLAG_NONE, 0,
						  LINK_WINDOW) < 0)
		return -ENOMEM;
	return 0;
}

CURLcode http2_receive(struct http2_link *link, const char *bytes, size_t len)
{
	ssize_t n = nghttp2_session_mem_recv(link->session, (const uint8_t *)bytes, len);

	if (n >= 0)
		return CURLE_OK;
	snprintf(link->reason, sizeof(link->reason), "the server does not speak HTTP/2: %s",
		 nghttp2_strerror((int)n));
	return n == NGHTTP2_ERR_NOMEM ? CURLE_OUT_OF_MEMORY : CURLE_RECV_ERROR;
}
