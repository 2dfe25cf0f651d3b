/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include "base/err.h"
#include "base/num.h"
#include "proxy.h"
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKLOG	    256
#define ADDRESS_MAX 64

struct server {
	struct proxy *proxy;
	gnutls_certificate_credentials_t credentials; /* borrowed */
	uv_tcp_t listener;
	uv_prepare_t turn;
	struct conn *conns;
	uint64_t accepted;
	uint32_t open;
	char address[ADDRESS_MAX];
	bool closing;
};

void conn_mark(struct conn *conn)
{
	conn->marked = true;
}

static void conn_free(struct conn *conn)
{
	*conn->at = conn->next;
	if (conn->next)
		conn->next->at = conn->at;
	if (conn->state)
		conn->version->free(conn->state);
	free(conn);
}

/* The connection is over; the loop's next turn frees it. */
static struct tls *conn_release(struct conn *conn)
{
	struct tls *tls = conn->tls;
	conn->tls = NULL;
	if (tls)
		conn->server->open--;
	return tls;
}

void conn_leave(struct conn *conn, enum conn_end how)
{
	struct tls *tls = conn_release(conn);
	if (!tls)
		return;
	switch (how) {
	case CONN_FINISH:
		tls_finish(tls);
		break;
	case CONN_CUT:
		tls_cut(tls);
		break;
	case CONN_RESET:
		tls_reset(tls);
		break;
	}
}

static void on_ready(void *context)
{
	struct conn *conn = context;
	conn->version = tls_is_h2(conn->tls) ? &version_http2 : &version_http1;
	conn->state = conn->version->open(conn);
	if (!conn->state)
		conn_leave(conn, CONN_RESET);
}

static void on_data(void *context, const char *bytes, size_t len)
{
	struct conn *conn = context;
	conn->version->data(conn->state, bytes, len);
}

static void on_drained(void *context)
{
	struct conn *conn = context;
	if (conn->state)
		conn->version->drained(conn->state);
}

static void on_closed(void *context, const char *reason)
{
	(void)reason; /* clients may leave as they like */
	conn_release(context);
}

static const struct tls_callbacks callbacks = {
	.ready = on_ready,
	.data = on_data,
	.drained = on_drained,
	.closed = on_closed,
};

static void on_connection(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;
	struct conn *conn = status < 0 ? NULL : calloc(1, sizeof(*conn));
	if (!conn)
		return;
	const struct tls_side side = {
		.loop = server->proxy->loop,
		.credentials = server->credentials,
		.callbacks = &callbacks,
		.context = conn,
	};
	if (tls_accept(listener, &side, &conn->tls, NULL) < 0) {
		free(conn);
		return;
	}
	conn->server = server;
	conn->proxy = server->proxy;
	conn->number = ++server->accepted;
	conn->next = server->conns;
	conn->at = &server->conns;
	if (conn->next)
		conn->next->at = &conn->next;
	server->conns = conn;
	server->open++;
}

static void on_turn(uv_prepare_t *turn)
{
	struct server *server = turn->data;
	for (struct conn *conn = server->conns, *next; conn; conn = next) {
		next = conn->next;
		if (conn->tls && conn->marked && conn->state) {
			conn->marked = false;
			conn->version->flush(conn->state);
		}
		if (!conn->tls)
			conn_free(conn);
	}
	if (server->closing && !server->conns)
		uv_close((uv_handle_t *)turn, NULL);
}

static int parse_address(const char *text, struct sockaddr_in *ret, struct err *err)
{
	char host[INET_ADDRSTRLEN];
	const char *colon = strrchr(text, ':');
	uint32_t port;
	size_t len = colon ? (size_t)(colon - text) : 0;
	if (!colon || len >= sizeof(host) || parse_u32(colon + 1, strlen(colon + 1), &port) < 0 ||
	    port > UINT16_MAX)
		return err_set(err, EINVAL, "--listen takes 127.0.0.1:PORT, not %s", text);
	memcpy(host, text, len);
	host[len] = '\0';
	int result = uv_ip4_addr(host, (int)port, ret);
	return result < 0 ? err_set(err, EINVAL, "--listen takes an IPv4 address, not %s", host)
			  : 0;
}

static int listen_at(struct server *server, const struct sockaddr_in *address)
{
	uv_tcp_t *listener = &server->listener;
	int result = uv_tcp_bind(listener, (const struct sockaddr *)address, 0);
	if (result == 0)
		result = uv_listen((uv_stream_t *)listener, BACKLOG, on_connection);
	struct sockaddr_in bound;
	int size = sizeof(bound);
	if (result == 0)
		result = uv_tcp_getsockname(listener, (struct sockaddr *)&bound, &size);
	if (result < 0)
		return result;
	char host[INET_ADDRSTRLEN];
	uv_ip4_name(&bound, host, sizeof(host));
	snprintf(server->address, sizeof(server->address), "%s:%u", host, ntohs(bound.sin_port));
	return 0;
}

int server_new(struct proxy *proxy, const char *address,
	       gnutls_certificate_credentials_t credentials, struct server **ret, struct err *err)
{
	struct sockaddr_in parsed;
	int result = parse_address(address, &parsed, err);
	if (result < 0)
		return result;
	struct server *server = calloc(1, sizeof(*server));
	if (!server)
		return err_set(err, ENOMEM, "out of memory");
	server->proxy = proxy;
	server->credentials = credentials;
	uv_tcp_init(proxy->loop, &server->listener);
	uv_prepare_init(proxy->loop, &server->turn);
	server->listener.data = server->turn.data = server;
	uv_prepare_start(&server->turn, on_turn);
	*ret = server; /* also after an error: its handles are closed with it */
	result = listen_at(server, &parsed);
	return result < 0 ? err_set(err, -result, "%s: %s", address, uv_strerror(result)) : 0;
}

void server_close(struct server *server)
{
	if (!server || server->closing)
		return;
	server->closing = true;
	uv_close((uv_handle_t *)&server->listener, NULL);
	for (struct conn *conn = server->conns; conn; conn = conn->next)
		tls_close(conn_release(conn));
}

void server_free(struct server *server)
{
	free(server);
}

const char *server_address(const struct server *server)
{
	return server->address;
}

uint32_t server_connections(const struct server *server)
{
	return server->open;
}
