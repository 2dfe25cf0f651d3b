/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_parts.h - what the files of the HTTP server share.
 *
 *	httpd.c          a server: its options, its life, libmicrohttpd on the loop
 *	httpd_call.c     a request: gathered, handed over, answered
 *	httpd_link.c     a connection, and how long it may take
 *	httpd_certs.c    the certificate and its key, new ones in place of old ones
 *	httpd_listen.c   an address to listen on
 *
 * libmicrohttpd polls its sockets by an epoll descriptor of its own.  The loop watches
 * that one, and calls MHD_run() when it is ready; all callbacks come from inside that.
 */
#ifndef GS_WIRE_HTTPD_PARTS_H
#define GS_WIRE_HTTPD_PARTS_H

#include "wire/httpd.h"

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <stdbool.h>

struct httpd_certs;
struct httpd_pair;

/* What a connection is doing, for as long as that may take. */
enum httpd_phase {
	HTTPD_IDLE,    /* between two requests: idle_ms */
	HTTPD_BUSY,    /* greets, asks or reads the answer: request_ms */
	HTTPD_WAITING, /* for us: any time */
	HTTPD_CUT,     /* took too long; its end is on the way */
};

struct httpd_link {
	struct httpd *httpd;
	struct httpd_link *prev, *next; /* in the list of its phase */
	enum httpd_phase phase;
	uint64_t since_ms; /* in that phase */
	bool asking;	   /* a first line has come and the request is not whole */
	bool greeting;	   /* with TLS, and no first line has come so far */
	struct MHD_Connection *connection;
	struct httpd_pair *pair; /* the newest when it began; NULL: no TLS */
};

/* All links of one phase have the same time, so a list is in order of deadlines. */
struct httpd_links {
	struct httpd_link *first, *last;
};

struct httpd_call;
struct httpd_calls {
	struct httpd_call *first;
};

struct httpd {
	uv_loop_t *loop;
	struct httpd_options options; /* texts are not kept */
	struct MHD_Daemon *daemon;
	struct httpd_certs *certs; /* NULL: no TLS */
	int port;

	uv_poll_t poll;
	uv_idle_t kick;		/* libmicrohttpd has more to do */
	uv_timer_t run_timer;	/* so it says */
	uv_timer_t due_timer;	/* a link may be late */
	uv_timer_t certs_timer; /* files may have changed */
	uv_timer_t grace_timer; /* the end */
	uint32_t handles;	/* not closed yet */

	struct httpd_links idle, busy;
	uint64_t due_ms; /* when due_timer fires; 0: it does not */
	struct httpd_calls waiting;
	uint32_t connections, in_flight;
	uint32_t answering; /* of those in flight, whose answer is going */
	size_t bodies;	    /* bytes in all bodies */

	bool inside;	    /* MHD_run() */
	bool progress;	    /* the last MHD_run() has done something that shows */
	uint32_t fruitless; /* those in a row that have not, up to a bound */
	uint32_t greeting;  /* links with TLS that have not asked anything yet */

	bool retired, closing, stopped;
	void (*closed)(void *context);
	void *closed_context;
};

/* httpd.c: MHD_run() in the next turn of the loop, for what no descriptor tells. */
void httpd_kick(struct httpd *httpd);

/* httpd_listen.c: a socket that listens, and its port. */
int httpd_listen(const char *addr, int *ret_fd, int *ret_port, struct err *err);

/* httpd_certs.c.  The first pair has to be there. */
int httpd_certs_new(const char *cert_file, const char *key_file, struct httpd_certs **ret,
		    struct err *err);
void httpd_certs_free(struct httpd_certs *certs);
/* Looks at the files.  0: all as it was; 1: a new pair is in use; -EAGAIN: they do not fit
 * together, perhaps because only one has been written so far; -EINVAL: they still do not,
 * told once. */
int httpd_certs_check(struct httpd_certs *certs, struct err *err);
/* A link uses whatever pair is the newest while it greets: this one or a later one.  So a
 * pair is kept while a link is open that began with it or with an older one. */
struct httpd_pair *httpd_pair_get(struct httpd_certs *certs);
void httpd_pair_put(struct httpd_certs *certs, struct httpd_pair *pair);
/* For GnuTLS: the newest pair, which stays the server's. */
void httpd_pair_use(struct httpd_certs *certs, gnutls_pcert_st **ret_certs,
		    unsigned int *ret_count, gnutls_privkey_t *ret_key);

/* httpd_link.c */
void httpd_link_notify(void *context, struct MHD_Connection *connection, void **link,
		       enum MHD_ConnectionNotificationCode code);
void httpd_link_greeted(struct httpd_link *link);
void httpd_link_phase(struct httpd_link *link, enum httpd_phase phase);
void httpd_link_due(uv_timer_t *timer);

/* httpd_call.c: the callbacks of libmicrohttpd, and the end of those that wait. */
void *httpd_call_new(void *context, const char *target, struct MHD_Connection *connection);
enum MHD_Result httpd_call_serve(void *context, struct MHD_Connection *connection,
				 const char *path, const char *method, const char *version,
				 const char *bytes, size_t *len, void **call);
void httpd_call_end(void *context, struct MHD_Connection *connection, void **call,
		    enum MHD_RequestTerminationCode code);
void httpd_calls_drop(struct httpd *httpd);

#endif
