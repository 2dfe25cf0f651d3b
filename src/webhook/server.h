/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - reviews over HTTPS: POST /mutate and /validate.
 *
 * On the loop's thread: a review takes microseconds, so each is answered as it comes.  The
 * certificate is taken up anew when its files change.  What is no review, or not JSON, or
 * too large, is answered as HTTP has it: 400, 404, 405, 413, 415.
 */
#ifndef GS_WEBHOOK_SERVER_H
#define GS_WEBHOOK_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct err;
struct log;
struct metrics;
struct strbuf;
struct webhook_options;
struct webhook_server;

struct webhook_server_options {
	uv_loop_t *loop;
	const struct log *log;		       /* NULL: none */
	struct metrics *metrics;	       /* NULL: none; borrowed */
	const char *addr;		       /* as in wire/httpd.h */
	const char *cert_file, *key_file;      /* NULL: in the clear, for tests */
	const struct webhook_options *reviews; /* borrowed */
	/* After each review, when what the lookup of `reviews` has found may go; or NULL. */
	void (*reviewed)(void *context);
	void *context;
	/* As in wire/httpd.h; 0: its defaults, but 1024 connections. */
	uint32_t max_connections, idle_ms, request_ms, certs_ms;
};

/* 0, or why it cannot serve. */
int webhook_server_new(const struct webhook_server_options *options, struct webhook_server **ret,
		       struct err *err);

int webhook_server_port(const struct webhook_server *server);

/* Brings the gauges up to date. */
void webhook_server_measure(struct webhook_server *server);

/* As httpd_retire() and httpd_close(). */
void webhook_server_retire(struct webhook_server *server);
void webhook_server_close(struct webhook_server *server, uint32_t grace_ms,
			  void (*closed)(void *context), void *context);

#endif
