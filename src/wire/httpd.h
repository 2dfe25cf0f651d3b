/* SPDX-License-Identifier: Apache-2.0 */
/* httpd.h - an HTTP server on an event loop: libmicrohttpd on libuv.
 *
 *	static void hello(void *context, const struct httpd_request *request,
 *			  struct httpd_reply *reply)
 *	{
 *		reply->status = 200;
 *		reply->content_type = "text/plain";
 *		strbuf_puts(&reply->body, "hello\n");
 *	}
 *	struct httpd_options options = { .addr = ":8080", .handler = hello };
 *	httpd_new(loop, &options, &httpd, &err);
 *
 * HTTP/1.1 with keep-alive, in the clear or over TLS 1.2 and 1.3.  The handler is called
 * on the loop's thread with each whole request and answers at once, or says
 * httpd_suspend() and answers when it can.  Nothing here blocks the loop.
 *
 * Certificates are looked at once a second.  When the files have changed, connections
 * that begin from then on are greeted with the new pair; those that are open go on.  A
 * pair that cannot be used leaves the old one in place.
 *
 * What outsiders can make it hold is bounded: connections, their headers (HTTPD_HEAD_MAX,
 * 431 past it), a body (413), the bodies of all requests at once (503).  Time is bounded
 * too: a request that has not arrived whole in request_ms is answered with 408, where its
 * first line has come, and cut off, as is who takes longer than that to read the answer,
 * or to greet.  While there are as many connections as may be, all that has to be done in
 * crowded_ms, so that clients who say nothing keep the others out for no longer than that.
 * What is no HTTP is answered with 400.
 */
#ifndef GS_WIRE_HTTPD_H
#define GS_WIRE_HTTPD_H

#include "base/strbuf.h"

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct err;
struct httpd;
struct httpd_later; /* a request that waits for its answer */

#define HTTPD_HEAD_MAX	   ((size_t)16 << 10) /* of a request and of its answer */
#define HTTPD_REPLY_FIELDS 4

struct httpd_request {
	const char *method;	  /* "GET" */
	const char *path;	  /* as it was sent, not decoded: "/mutate" */
	const char *query;	  /* after the '?', as it was sent; "" if there is none */
	const char *content_type; /* "" if it says none */
	const char *body;	  /* NUL after body_len bytes; "" if there is none */
	size_t body_len;
};

/* A field of the answer's head.  The strings are copied when the handler has returned:
 * literals, or what outlives the call. */
struct httpd_field {
	const char *name, *value;
};

struct httpd_reply {
	int status; /* 0: 500 is sent instead */
	const char *content_type;
	struct strbuf body; /* a body that failed: 500 is sent instead */
	struct httpd_field fields[HTTPD_REPLY_FIELDS];
	size_t fields_count;
};

#define HTTPD_REPLY_INIT            \
	{                           \
		.body = STRBUF_INIT \
	}

/* `reply` is empty when it is called.  Request and reply are gone when it returns, except
 * the request of one that waits. */
typedef void (*httpd_handler_fn)(void *context, const struct httpd_request *request,
				 struct httpd_reply *reply);

struct httpd_options {
	/* "host:port", "1.2.3.4:80", "[::1]:80" or ":80" for both families; port 0: any */
	const char *addr;
	const char *cert_file, *key_file; /* PEM, the chain after the leaf; NULL: no TLS */
	httpd_handler_fn handler;
	/* The files have changed: err is NULL when the new pair is in use, else why the old
	 * one stays.  Once for each change; or NULL. */
	void (*certs_changed)(void *context, const struct err *err);
	void *context;	   /* of both */
	size_t max_body;   /* 0: 3 MiB */
	size_t max_bodies; /* of all together; 0: 16 times max_body */
	/* The one that has been idle for longest makes room for a new one; where none is idle,
	 * the new one waits to be accepted.  0: 4096 */
	uint32_t max_connections;
	uint32_t idle_ms;    /* between two requests; 0: 120 s, longer than clients wait */
	uint32_t request_ms; /* to greet and send one, and to read the answer; 0: 10 s */
	uint32_t crowded_ms; /* the same while there are max_connections; 0: a tenth of it */
	uint32_t certs_ms;   /* between two looks at the files; 0: 1 s */
};

/* Listens.  0, -EINVAL (an address that is none, files that hold no pair), -ENOMEM, or why
 * it cannot listen there.  The loop outlives it; all texts are copied. */
int httpd_new(uv_loop_t *loop, const struct httpd_options *options, struct httpd **ret,
	      struct err *err);

int httpd_port(const struct httpd *httpd);
uint32_t httpd_connections(const struct httpd *httpd);
/* Requests whose first line has come and whose answer has not gone. */
uint32_t httpd_in_flight(const struct httpd *httpd);

/* The value of a header, or NULL; valid as long as the request. */
const char *httpd_request_header(const struct httpd_request *request, const char *name);

/* Inside the handler: the answer comes later, by httpd_answer(), which has to be called
 * once, on the loop's thread, whatever becomes of the client or the server.  The request
 * stays until then, but not longer than the server.  What the handler leaves in `reply` is
 * ignored. */
struct httpd_later *httpd_suspend(const struct httpd_request *request);

/* Takes the body out of `reply`. */
void httpd_answer(struct httpd_later *later, struct httpd_reply *reply);

/* For one whose end is near, while clients may not know of another yet: serves on, but
 * each answer closes its connection, so that none is cut when it has just asked. */
void httpd_retire(struct httpd *httpd);

/* Listens no more, answers what is in flight, for grace_ms at most (then 503 to those that
 * wait, and the rest is cut off), closes all connections, frees; closed() is called from
 * the loop (NULL: nobody waits).  NULL is fine: closed() is called at once. */
void httpd_close(struct httpd *httpd, uint32_t grace_ms, void (*closed)(void *context),
		 void *context);

#endif
