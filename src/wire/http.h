/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - an HTTP client on an event loop, libuv's.
 *
 * A `struct http` is a set of connections to one server that share one TLS identity.
 * Requests of one set share its connections (HTTP/2 streams, or HTTP/1.1 with keep-alive),
 * so what must not wait behind each other, watches and writes, gets two sets.
 *
 * HTTP/2 goes straight to the server over nghttp2 and GnuTLS.  What goes through a proxy, in
 * the clear or to a server of HTTP/1.1 goes with libcurl; the first connection of a set finds
 * out which it is.
 *
 * Everything happens on the loop's thread, nothing blocks it.  Callbacks are never
 * called from inside http_start().  Any number of requests; who starts them bounds them.
 */
#ifndef GS_WIRE_HTTP_H
#define GS_WIRE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct err;
struct http;	  /* a set of connections */
struct http_call; /* one request on its way */

struct http_options {
	const char *ca_file;	 /* NULL: the system's authorities */
	const char *cert_file;	 /* with key_file: who we are; PEM */
	const char *key_file;	 /* files may be /proc/self/fd/N */
	const char *server_name; /* for SNI and verification; NULL: the host of the URL */
	bool insecure;		 /* whatever the server's certificate says */
	/* http, https or socks5, for every host.  NULL: HTTPS_PROXY and NO_PROXY decide, and
	 * this machine is reached without. */
	const char *proxy_url;
	const char *user_agent;
	bool http1;		  /* one request at a time on a connection */
	uint32_t max_connections; /* 0: no bound */
	uint32_t connect_ms;	  /* to connect and greet; 0: 10 s */
	uint32_t keep_ms;	  /* how long an idle connection stays; 0: 90 s */
};

/* How it ended. */
enum http_result {
	HTTP_ANSWERED, /* the reply is whole, whatever its status */
	HTTP_NOT_SENT, /* nothing of it has been processed, perhaps for lack of time: may be
			* sent again */
	HTTP_LOST,     /* no whole reply; the server may have done it or not */
	HTTP_REFUSED,  /* the certificates do not please one side; no write was sent */
	HTTP_DEADLINE, /* sent, and deadline_ms or idle_ms has passed; else like HTTP_LOST */
	HTTP_TOO_BIG,  /* the reply has more than max_bytes; the server has done it */
	HTTP_STOPPED,  /* by the answer of data() */
};

struct http_reply {
	enum http_result result;
	int status;	  /* 0: there was none */
	const char *body; /* of a request without data(); NUL after len bytes */
	size_t len;
	const char *content_type;    /* "" if it says none */
	int64_t retry_after_s;	     /* -1: it does not say */
	const char *const *warnings; /* values of Warning headers, at most 8 */
	size_t warnings_count;
	const char *reason; /* one phrase on why, "" if it was answered */
	uint64_t bytes_in;
	uint32_t http_major; /* 1 or 2; 0: none was spoken */
};

struct http_request {
	const char *method;	    /* "GET" */
	const char *url;	    /* copied, as are the headers */
	const char *const *headers; /* "Name: value" */
	size_t headers_count;
	const void *body; /* borrowed until done(); NULL: none */
	size_t body_len;
	uint32_t deadline_ms; /* for all of it; 0: none */
	uint32_t idle_ms;     /* longest silence of the server; 0: any */
	size_t max_bytes;     /* of the body, inflated; 0: 32 MiB, any amount through data() */
	bool gzip;	      /* the reply may come compressed; it is given inflated */
	/* Takes the body of a 2xx reply as it comes instead of gathering it (others are
	 * gathered, for the error).  0, or anything else to stop. */
	int (*data)(void *context, const char *bytes, size_t len);
	/* The end, called once, on the loop; the reply is gone when it returns. */
	void (*done)(void *context, const struct http_reply *reply);
	void *context;
};

/* 0, -EINVAL (no such file, proxy), -ENOMEM.  The loop outlives it. */
int http_new(uv_loop_t *loop, const struct http_options *options, struct http **ret,
	     struct err *err);

/* Begins a request: 0 (done() will be called unless it is cancelled), -EINVAL, -ENOMEM,
 * -ESHUTDOWN after http_retire().  Only GET and HEAD may be sent twice, when a connection
 * that was used before breaks without a byte of reply; others only if the server says that
 * it has not processed them (HTTP/2: REFUSED_STREAM, GOAWAY).  Redirects are answers. */
int http_start(struct http *http, const struct http_request *request, struct http_call **ret,
	       struct err *err);

/* Ends it now; done() is not called any more.  Also from inside data() or done() of
 * another call, and from its own data(). */
void http_cancel(struct http_call *call);

/* Requests that have begun and not ended, and connections that are open. */
uint32_t http_in_flight(const struct http *http);
uint32_t http_connections(const struct http *http);

/* No new requests: once those on their way have ended, all connections are closed, the
 * set is freed and closed() is called.  For a change of certificates.  http_close() may
 * still be called until then; closed() of both is called. */
void http_retire(struct http *http, void (*closed)(void *context), void *context);

/* Cancels all that is on its way, closes the connections, frees; closed() is called from
 * the loop (NULL: nobody waits).  NULL is fine: closed() is called at once. */
void http_close(struct http *http, void (*closed)(void *context), void *context);

#endif
