/* SPDX-License-Identifier: Apache-2.0 */
/* kube_server.h - an HTTP server on the test's own loop that answers as told.
 *
 *	static void answer(void *context, const struct server_request *request,
 *			   struct server_answer *answer)
 *	{
 *		answer->code = 201;
 *		answer->body = "{}";
 *	}
 *
 *	struct server server;
 *	server_start(&server, &loop, answer, context);
 *	... server.url ...
 *	server_stop(&server);
 *
 * HTTP/1.1 with keep-alive on loopback.  All memory is freed by server_stop(), which runs
 * the loop until its own handles are closed.
 */
#ifndef GS_TESTS_KUBE_SERVER_H
#define GS_TESTS_KUBE_SERVER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#define SERVER_CONNECTIONS 256

struct server_request {
	char method[16];
	char path[2048];
	const char *head; /* all header lines, ending with an empty one */
	const char *body; /* NUL after it */
	size_t body_len;
	uint32_t number; /* from 1 */
};

enum server_how {
	SERVER_WHOLE,	/* the answer, the connection stays */
	SERVER_DROP,	/* closes without a word */
	SERVER_CUT,	/* half of the body, then closes */
	SERVER_CHUNKED, /* the body as chunks of 7 bytes, and their end */
	SERVER_OPEN,	/* the same without the end: a watch that goes on */
};

struct server_answer {
	int code;	     /* 0: never answers */
	const char *headers; /* "Retry-After: 1\r\n", or NULL */
	const char *body;
	uint32_t delay_ms;
	enum server_how how;
};

typedef void (*server_fn)(void *context, const struct server_request *request,
			  struct server_answer *answer);

struct server_connection {
	uv_tcp_t tcp;
	uv_timer_t timer;
	struct server *server;
	unsigned closes;
	bool busy; /* a request has not been answered yet */
	char *in;
	size_t in_len, in_cap;
	struct server_answer answer;
};

struct server {
	uv_loop_t *loop;
	uv_tcp_t listener;
	bool stopping, listener_closed;
	char url[64];
	server_fn call;
	void *context;
	uint32_t requests;
	uint32_t open, most_open; /* requests that were not answered yet, and their peak */
	struct server_connection *connections[SERVER_CONNECTIONS];
};

static inline void server_handle_closed(uv_handle_t *handle)
{
	struct server_connection *connection = handle->data;
	if (--connection->closes)
		return;
	for (size_t i = 0; i < SERVER_CONNECTIONS; i++) {
		if (connection->server->connections[i] == connection)
			connection->server->connections[i] = NULL;
	}
	free(connection->in);
	free(connection);
}

static inline void server_idle(struct server_connection *connection)
{
	connection->server->open -= connection->busy;
	connection->busy = false;
}

static inline void server_drop(struct server_connection *connection)
{
	if (uv_is_closing((uv_handle_t *)&connection->tcp))
		return;
	server_idle(connection);
	connection->closes = 2;
	uv_close((uv_handle_t *)&connection->tcp, server_handle_closed);
	uv_close((uv_handle_t *)&connection->timer, server_handle_closed);
}

static inline void server_written(uv_write_t *write, int status)
{
	(void)status;
	free(write->data);
	free(write);
}

static inline void server_shut(uv_shutdown_t *shutdown, int status)
{
	(void)status;
	free(shutdown);
}

/* Takes the text, which is freed when it has been written. */
static inline void server_write(struct server_connection *connection, char *text, size_t len)
{
	uv_write_t *write = calloc(1, sizeof(*write));
	uv_buf_t buf = uv_buf_init(text, (unsigned)len);
	write->data = text;
	if (uv_write(write, (uv_stream_t *)&connection->tcp, &buf, 1, server_written) < 0)
		server_written(write, 0);
}

static inline void server_next(struct server_connection *connection);

static inline size_t server_chunks(char *text, const char *body, bool ends)
{
	size_t at = 0;
	for (size_t left = strlen(body); left; left -= left < 7 ? left : 7, body += 7) {
		int n = left < 7 ? (int)left : 7;
		at += (size_t)sprintf(text + at, "%x\r\n%.*s\r\n", (unsigned)n, n, body);
		if (left < 7)
			break;
	}
	if (ends)
		at += (size_t)sprintf(text + at, "0\r\n\r\n");
	return at;
}

static inline void server_answer_now(uv_timer_t *timer)
{
	struct server_connection *connection = timer->data;
	const struct server_answer *answer = &connection->answer;
	bool chunked = answer->how == SERVER_CHUNKED || answer->how == SERVER_OPEN;
	const char *body = answer->body ? answer->body : "";
	size_t cap = 3 * strlen(body) + 1024;
	char *text = malloc(cap), length[64];
	if (!text)
		abort();
	snprintf(length, sizeof(length), "Content-Length: %zu", strlen(body));
	size_t len = (size_t)snprintf(
		text, cap, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%s%s\r\n\r\n",
		answer->code, answer->headers ? answer->headers : "",
		chunked ? "Transfer-Encoding: chunked" : length);
	if (chunked)
		len += server_chunks(text + len, body, answer->how == SERVER_CHUNKED);
	else
		len += (size_t)sprintf(text + len, "%.*s",
				       (int)(strlen(body) / (answer->how == SERVER_CUT ? 2 : 1)),
				       body);
	server_idle(connection);
	server_write(connection, text, len);
	if (answer->how == SERVER_CUT) {
		uv_shutdown_t *shutdown = calloc(1, sizeof(*shutdown));
		uv_shutdown(shutdown, (uv_stream_t *)&connection->tcp, server_shut);
		return;
	}
	server_next(connection);
}

/* A whole request at the beginning of `in`: its size, or 0. */
static inline size_t server_parse(struct server_connection *connection,
				  struct server_request *request)
{
	char *end = connection->in_len ? strstr(connection->in, "\r\n\r\n") : NULL;
	if (!end)
		return 0;
	size_t head = (size_t)(end - connection->in) + 4;
	char *length = strcasestr(connection->in, "\r\ncontent-length:");
	request->body_len = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
	if (connection->in_len < head + request->body_len)
		return 0;
	sscanf(connection->in, "%15s %2047s", request->method, request->path);
	return head;
}

static inline void server_next(struct server_connection *connection)
{
	struct server *server = connection->server;
	struct server_request request = { .number = server->requests + 1 };
	size_t head = server_parse(connection, &request);
	if (!head)
		return;
	server->requests++;
	server->open++;
	connection->busy = true;
	if (server->open > server->most_open)
		server->most_open = server->open;
	char *head_text = strndup(connection->in, head);
	char *body = strndup(connection->in + head, request.body_len);
	request.head = head_text;
	request.body = body;
	connection->in_len -= head + request.body_len;
	memmove(connection->in, connection->in + head + request.body_len, connection->in_len);
	connection->in[connection->in_len] = '\0';
	connection->answer = (struct server_answer){ .code = 200 };
	server->call(server->context, &request, &connection->answer);
	free(head_text);
	free(body);
	if (connection->answer.how == SERVER_DROP)
		server_drop(connection);
	else if (connection->answer.code)
		uv_timer_start(&connection->timer, server_answer_now, connection->answer.delay_ms,
			       0);
}

static inline void server_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct server_connection *connection = handle->data;
	(void)wanted;
	if (connection->in_cap - connection->in_len < 65536) {
		connection->in_cap += 131072;
		connection->in = realloc(connection->in, connection->in_cap);
		if (!connection->in)
			abort();
	}
	*buf = uv_buf_init(connection->in + connection->in_len, 65535);
}

static inline void server_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct server_connection *connection = stream->data;
	(void)buf;
	if (n < 0) {
		server_drop(connection);
		return;
	}
	connection->in_len += (size_t)n;
	connection->in[connection->in_len] = '\0';
	if (!connection->busy)
		server_next(connection);
}

static inline void server_accept(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;
	struct server_connection *connection = calloc(1, sizeof(*connection));
	if (status < 0 || !connection)
		abort();
	connection->server = server;
	connection->answer.code = 200;
	uv_tcp_init(server->loop, &connection->tcp);
	uv_timer_init(server->loop, &connection->timer);
	connection->tcp.data = connection->timer.data = connection;
	size_t at = 0;
	while (at < SERVER_CONNECTIONS && server->connections[at])
		at++;
	if (at == SERVER_CONNECTIONS)
		abort();
	server->connections[at] = connection;
	uv_accept(listener, (uv_stream_t *)&connection->tcp);
	uv_read_start((uv_stream_t *)&connection->tcp, server_alloc, server_read);
}

static inline void server_start(struct server *server, uv_loop_t *loop, server_fn call,
				void *context)
{
	struct sockaddr_in address;
	int len = sizeof(address);
	*server = (struct server){ .loop = loop, .call = call, .context = context };
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_init(loop, &server->listener);
	server->listener.data = server;
	if (uv_tcp_bind(&server->listener, (const struct sockaddr *)&address, 0) < 0 ||
	    uv_listen((uv_stream_t *)&server->listener, 128, server_accept) < 0 ||
	    uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &len) < 0)
		abort();
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%u",
		 (unsigned)ntohs(address.sin_port));
}

static inline void server_listener_closed(uv_handle_t *handle)
{
	((struct server *)handle->data)->listener_closed = true;
}

/* Nobody listens any more; who is connected stays. */
static inline void server_unlisten(struct server *server)
{
	if (!uv_is_closing((uv_handle_t *)&server->listener))
		uv_close((uv_handle_t *)&server->listener, server_listener_closed);
}

static inline bool server_is_open(const struct server *server)
{
	for (size_t i = 0; i < SERVER_CONNECTIONS; i++) {
		if (server->connections[i])
			return true;
	}
	return !server->listener_closed;
}

static inline void server_stop(struct server *server)
{
	server_unlisten(server);
	for (size_t i = 0; i < SERVER_CONNECTIONS; i++) {
		if (server->connections[i])
			server_drop(server->connections[i]);
	}
	while (server_is_open(server))
		uv_run(server->loop, UV_RUN_ONCE);
}

#endif
