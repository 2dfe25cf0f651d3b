/* SPDX-License-Identifier: Apache-2.0 */
/* server_thread.h - the tests' HTTP server over TLS, on a thread of its own: what it costs is
 * not what the client costs. */
#ifndef GS_TESTS_BENCH_SERVER_THREAD_H
#define GS_TESTS_BENCH_SERVER_THREAD_H

#include "unit/http_certs.h"
#include "unit/http_peer.h"

struct server {
	void (*serve)(void *context, struct peer_request *request);
	void *context;
	/* the rest is filled in */
	uv_thread_t thread;
	uv_loop_t loop;
	uv_async_t stop;
	uv_sem_t ready;
	struct peer *peer;
	struct cert authority, cert;
};

static inline void server_stopping(uv_async_t *async)
{
	struct server *server = async->data;

	peer_close(server->peer);
	uv_close((uv_handle_t *)async, NULL);
}

static inline void server_run(void *context)
{
	struct server *server = context;
	struct peer_options options = { .cert_file = server->cert.cert_file,
					.key_file = server->cert.key_file,
					.http2 = true,
					.max_streams = 250,
					.serve = server->serve,
					.context = server->context };

	uv_loop_init(&server->loop);
	server->stop.data = server;
	uv_async_init(&server->loop, &server->stop, server_stopping);
	server->peer = peer_new(&server->loop, &options);
	uv_sem_post(&server->ready);
	uv_run(&server->loop, UV_RUN_DEFAULT);
	uv_loop_close(&server->loop);
}

static inline void server_start(struct server *server)
{
	cert_make(&server->authority, CERT_AUTHORITY, NULL, 1);
	cert_make(&server->cert, CERT_SERVER, &server->authority, 1);
	uv_sem_init(&server->ready, 0);
	uv_thread_create(&server->thread, server_run, server);
	uv_sem_wait(&server->ready);
}

static inline void server_stop(struct server *server)
{
	uv_async_send(&server->stop);
	uv_thread_join(&server->thread);
	uv_sem_destroy(&server->ready);
	cert_done(&server->cert);
	cert_done(&server->authority);
}

#endif
