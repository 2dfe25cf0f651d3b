/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the side that clients see: a TLS listener and its connections, each of which
 * speaks HTTP/2 (server2.c) or HTTP/1.1 (server1.c), as ALPN says.
 *
 * What a connection has to write is written once in each turn of the loop, and what has
 * ended is freed there: no function below ever calls back into its caller.
 */
#ifndef GS_TESTS_KUBE_PROXY_SERVER_H
#define GS_TESTS_KUBE_PROXY_SERVER_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct err;
struct proxy;
struct server;
struct tls;

/* A version of HTTP on a connection; `state` is what open() has made. */
struct version {
	void *(*open)(struct conn *conn); /* NULL: out of memory */
	void (*data)(void *state, const char *bytes, size_t len);
	void (*drained)(void *state);
	void (*flush)(void *state); /* after conn_mark() */
	void (*free)(void *state);  /* its streams are told that the client is gone */
};

extern const struct version version_http1;
extern const struct version version_http2;

struct conn {
	struct server *server;
	struct proxy *proxy;
	uint64_t number;
	struct tls *tls; /* NULL: it has ended */
	const struct version *version;
	void *state;
	bool marked;
	struct conn *next, **at;
};

enum conn_end { CONN_FINISH, CONN_CUT, CONN_RESET };

void conn_mark(struct conn *conn);
void conn_leave(struct conn *conn, enum conn_end how);

/* Listens at "127.0.0.1:0".  0, -EINVAL, -ENOMEM, or why not. */
int server_new(struct proxy *proxy, const char *address,
	       gnutls_certificate_credentials_t credentials, struct server **ret, struct err *err);

/* Ends all connections; freed once the loop has nothing left to do. */
void server_close(struct server *server);
void server_free(struct server *server);

/* "127.0.0.1:41234" */
const char *server_address(const struct server *server);
uint32_t server_connections(const struct server *server);

#endif
