/* SPDX-License-Identifier: Apache-2.0 */
/* http2.h - HTTP/2 straight to a server: nghttp2 over GnuTLS on libuv.
 *
 *	http2.c         the links of a set, and which of them takes a call
 *	http2_link.c    one connection: its life, what it reads and what it sends
 *	http2_open.c    from a name to a socket that is connected
 *	http2_lookup.c  the addresses of a name
 *	http2_tls.c     GnuTLS on bytes that the link has received
 *	http2_stream.c  calls as streams of nghttp2
 *
 * The http_parts.h of this way; only the client's own files include it.  A call waits
 * (HTTP_WAITING) until a link has room for it, runs as a stream, and is through with a
 * code of libcurl's, so that both ways end alike.
 */
#ifndef GS_WIRE_HTTP2_H
#define GS_WIRE_HTTP2_H

#include "base/attr.h"
#include "wire/http_parts.h"

#include <gnutls/gnutls.h>
#include <netdb.h>
#include <nghttp2/nghttp2.h>

#define HTTP2_RECORD_BYTES  16384 /* the most that a record of TLS holds */
#define HTTP2_RECEIVE_BYTES 65536 /* at once from a socket */
#define HTTP2_STREAMS_MAX   100	  /* on one link, if the server allows as many */
#define HTTP2_REASON_BYTES  CURL_ERROR_SIZE

enum http2_state {
	HTTP2_RESOLVING,
	HTTP2_CONNECTING,
	HTTP2_GREETING, /* with TLS */
	HTTP2_SETTLING, /* until the server has said how many streams it takes */
	HTTP2_READY,
	HTTP2_ENDED,
};

struct http2_lookup; /* of a name, on its way */

struct http2_link {
	struct http *http;
	struct http2_link *next, *prev;
	char *origin; /* "https://host:port", as URLs begin that it takes */
	char *host, *port;
	char *name; /* that its certificate is to show */
	enum http2_state state;

	struct http2_lookup *lookup;		      /* NULL: none is on its way */
	struct addrinfo *addresses, *first, *address; /* all, and those tried first and now */
	uint64_t connect_by_ms;
	uv_timer_t timer; /* until it is ready: for that; later: how long it is idle */
	uv_poll_t *poll;  /* of the socket, frees itself */
	int fd;		  /* -1: none */
	int armed;	  /* what the loop watches */

	gnutls_certificate_credentials_t credentials;
	gnutls_session_t tls;
	gnutls_typed_vdata_st wanted[2]; /* of the server's certificate: its name, its use */
	const char *in;			 /* received and not yet taken by GnuTLS */
	size_t in_len;
	bool in_ended;	   /* there is no more to receive */
	struct strbuf out; /* encrypted and not yet sent, from out_at */
	size_t out_at;

	nghttp2_session *session;
	uint32_t streams;
	bool answered;			 /* a reply has begun on it */
	bool over;			 /* takes no new stream */
	uint64_t heard_ms;		 /* when something came in last */
	uint64_t idle_ms;		 /* when its last stream has ended */
	char reason[HTTP2_REASON_BYTES]; /* why it has failed */
};

/* http2.c */

/* The call leaves its link, which sends on without it. */
void http2_drop(struct http_call *call);

/* Begins what waits, as far as there is room, and sends what is to be sent. */
void http2_work(struct http *http);

/* The call is through, or waits once more if it may be sent again. */
void http2_through(struct http_call *call, CURLcode code, const char *reason);

/* A link that is no use: all that it has is through, or waits again. */
void http2_fail(struct http2_link *link, CURLcode code);

/* The server greets, and does not speak HTTP/2: from now on libcurl has it. */
void http2_is_http1(struct http2_link *link);

/* The server of the call's link is silent: nothing more goes there. */
void http2_bury(struct http2_link *link);

void http2_close_all(struct http *http);

/* http2_link.c */
struct http2_link *http2_link_new(const struct http_call *call); /* NULL: no memory */
void http2_link_close(struct http2_link *link);			 /* freed later */
void http2_link_connected(struct http2_link *link);		 /* its socket is */
void http2_link_settled(struct http2_link *link);		 /* takes streams now */
bool http2_link_lives(struct http2_link *link); /* false: it has failed, or ends */
/* Why it ends, unless one of the two has said so before. */
void http2_link_note(struct http2_link *link, const char *format, ...) PRINTF(2, 3);
void http2_link_send(struct http2_link *link);

/* http2_open.c */
void http2_open(struct http2_link *link); /* resolves and connects */
void http2_open_stop(struct http2_link *link);
void http2_open_worked(const struct http2_link *link, bool worked); /* for the next one */

/* http2_lookup.c */

/* Begins one for the link's host: 0, -ENOMEM, -EAGAIN.  found() is called once, from the loop,
 * and takes the addresses; `error` is getaddrinfo()'s. */
int http2_lookup_new(const struct http2_link *link,
		     void (*found)(void *context, int error, struct addrinfo *addresses),
		     void *context, struct http2_lookup **ret);
void http2_lookup_drop(struct http2_lookup *lookup); /* found() is not called any more */

/* http2_tls.c: 0 or a code of libcurl's, with the link's reason. */
CURLcode http2_tls_new(struct http2_link *link);
CURLcode http2_tls_greet(struct http2_link *link, bool *done);
bool http2_tls_speaks_http2(const struct http2_link *link);
CURLcode http2_tls_read(struct http2_link *link, char *bytes, size_t size, size_t *len);
CURLcode http2_tls_write(struct http2_link *link, const char *bytes, size_t len);
void http2_tls_done(struct http2_link *link);

/* http2_stream.c */
int http2_session_new(struct http2_link *link); /* 0, -ENOMEM */
bool http2_has_room(const struct http2_link *link);
CURLcode http2_submit(struct http2_link *link, struct http_call *call);
CURLcode http2_receive(struct http2_link *link, const char *bytes, size_t len);

#endif
