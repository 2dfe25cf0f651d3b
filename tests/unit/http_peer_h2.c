/* SPDX-License-Identifier: Apache-2.0 */
/* http_peer_h2.c - the test's server in HTTP/2, by nghttp2. */
#include "base/attr.h"
#include "unit/http_peer_parts.h"

#include <stdlib.h>
#include <string.h>

#define HEADERS_MAX 16

static size_t header_lines(char *lines, nghttp2_nv *headers, size_t count);

/* Instead of the body's end. */
static void give_trailers(nghttp2_session *session, const struct request *request)
{
	nghttp2_nv pairs[HEADERS_MAX];
	char *lines = strdup(request->trailers);

	nghttp2_submit_trailer(session, request->shown.stream, pairs,
			       header_lines(lines, pairs, 0));
	free(lines);
}

static ssize_t give_data(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
			 uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct request *request = source->ptr;
	size_t len = MIN(room, request->data.len - request->data_at);

	(void)stream, (void)context;
	if (request->flood) {
		len = MIN(room, request->flood);
		memset(to, 'x', len);
		request->flood -= len;
		request->ended = request->flood == 0;
	} else {
		if (len)
			memcpy(to, request->data.s + request->data_at, len);
		request->data_at += len;
	}
	bool all = request->ended && request->data_at == request->data.len;
	if (all && request->trailers)
		give_trailers(session, request);
	if (all)
		*flags |= NGHTTP2_DATA_FLAG_EOF |
			  (request->trailers ? NGHTTP2_DATA_FLAG_NO_END_STREAM : 0);
	else if (len == 0)
		return NGHTTP2_ERR_DEFERRED;
	return (ssize_t)len;
}

void peer_h2_resume(struct request *request)
{
	nghttp2_session_resume_data(request->shown.link->h2, request->shown.stream);
}

static size_t header_lines(char *lines, nghttp2_nv *headers, size_t count)
{
	char *save = NULL;

	for (char *line = strtok_r(lines, "\n", &save); line && count < HEADERS_MAX;
	     line = strtok_r(NULL, "\n", &save)) {
		char *value = strstr(line, ": ");
		if (!value || strncmp(line, "connection: ", 12) == 0)
			continue; /* HTTP/2 has no such header */
		*value = '\0';
		value += 2;
		headers[count++] = (nghttp2_nv){ (uint8_t *)line, (uint8_t *)value, strlen(line),
						 strlen(value), NGHTTP2_NV_FLAG_NONE };
	}
	return count;
}

static void answer(struct request *request, int status, const char *headers, bool interim)
{
	nghttp2_data_provider provider = { .source.ptr = request, .read_callback = give_data };
	nghttp2_session *h2 = request->shown.link->h2;
	int32_t stream = request->shown.stream;
	nghttp2_nv pairs[HEADERS_MAX];
	char code[8];
	char *lines = strdup(headers ? headers : "");

	snprintf(code, sizeof(code), "%d", status);
	pairs[0] = (nghttp2_nv){ (uint8_t *)":status", (uint8_t *)code, 7, strlen(code),
				 NGHTTP2_NV_FLAG_NONE };
	size_t count = header_lines(lines, pairs, 1);
	if (interim)
		nghttp2_submit_headers(h2, NGHTTP2_FLAG_NONE, stream, NULL, pairs, count, NULL);
	else
		nghttp2_submit_response(h2, stream, pairs, count, &provider);
	free(lines);
}

void peer_h2_answer(struct request *request, int status, const char *headers)
{
	answer(request, status, headers, false);
}

void peer_interim(struct peer_request *shown, int status, const char *headers)
{
	answer((struct request *)shown, status, headers, true);
	peer_flush(shown->link);
}

void peer_trailers(struct peer_request *shown, const char *headers)
{
	((struct request *)shown)->trailers = headers;
}

bool peer_h2_fill(struct peer_link *link)
{
	const uint8_t *bytes;
	size_t before = link->out.len;
	ssize_t len;

	while (link->out.len < PEER_QUEUE &&
	       (len = nghttp2_session_mem_send(link->h2, &bytes)) > 0)
		strbuf_add(&link->out, (const char *)bytes, (size_t)len);
	return link->out.len > before;
}

void peer_h2_read(struct peer_link *link, const void *bytes, size_t len)
{
	link->busy = true;
	ssize_t taken = nghttp2_session_mem_recv(link->h2, bytes, len);
	link->busy = false;
	if (taken < 0)
		peer_cut(link, true);
	else if (!link->dead)
		peer_flush(link);
}

static struct request *of_stream(nghttp2_session *session, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(session, stream);
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct request *request = peer_request_new(context);
	request->shown.stream = frame->hd.stream_id;
	nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, request);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *context)
{
	struct request *request = of_stream(session, frame->hd.stream_id);

	(void)flags, (void)context;
	if (!request)
		return 0;
	if (strcmp((const char *)name, ":method") == 0)
		strbuf_add(&request->method, (const char *)value, value_len);
	else if (strcmp((const char *)name, ":path") == 0)
		strbuf_add(&request->path, (const char *)value, value_len);
	else
		strbuf_addf(&request->headers, "%.*s: %.*s\n", (int)name_len, (const char *)name,
			    (int)value_len, (const char *)value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
		   size_t len, void *context)
{
	struct request *request = of_stream(session, stream);

	(void)flags, (void)context;
	if (request)
		strbuf_add(&request->body, (const char *)bytes, len);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
	struct peer_link *link = context;
	bool now = link->peer->options.early ? frame->hd.type == NGHTTP2_HEADERS
					     : frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (!carries || !now || link->dead)
		return 0;
	struct request *request = of_stream(session, frame->hd.stream_id);
	if (request)
		peer_serve(request);
	return 0;
}

static int on_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct request *request = of_stream(session, stream);

	(void)code, (void)context;
	if (request)
		peer_request_free(request);
	return 0;
}

void peer_h2_begin(struct peer_link *link)
{
	const struct peer_options *options = &link->peer->options;
	uint32_t streams = options->max_streams ? options->max_streams : 100;
	nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options->no_streams ? 0 : streams },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
		  options->big_window ? 1U << 30 : 1U << 20 },
	};
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;

	peer_must(nghttp2_session_callbacks_new(&callbacks) == 0, "nghttp2");
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_closed);
	/* libcurl 7.88 resets each stream after its whole reply, and nghttp2 takes 1000 of
	 * them at once for an attack. */
	peer_must(nghttp2_option_new(&option) == 0, "nghttp2");
	nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX);
	peer_must(nghttp2_session_server_new2(&link->h2, callbacks, link, option) == 0, "nghttp2");
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(link->h2, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings));
	if (options->big_window)
		nghttp2_session_set_local_window_size(link->h2, NGHTTP2_FLAG_NONE, 0, 1 << 30);
	if (options->goaway_first)
		nghttp2_submit_goaway(link->h2, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
	if (options->noise_first)
		strbuf_puts(&link->out, "HTTP/1.1 400 Bad Request\r\n\r\n");
	if (options->cut_first)
		link->last = true;
}

void peer_reset(struct peer_request *shown, uint32_t code)
{
	struct peer_link *link = shown->link;

	nghttp2_submit_rst_stream(link->h2, NGHTTP2_FLAG_NONE, shown->stream, code);
	peer_flush(link);
}

void peer_goaway(struct peer_link *link, int32_t last_stream)
{
	nghttp2_submit_goaway(link->h2, NGHTTP2_FLAG_NONE, last_stream, NGHTTP2_NO_ERROR, NULL, 0);
	peer_flush(link);
}
