/* SPDX-License-Identifier: Apache-2.0 */
/* http_parts.h - what the files of the HTTP client share; nobody else includes it.
 *
 *	http.c         the set: its life, and the ways out of it
 *	http_options.c what it was asked to be
 *	http_call.c    one request, from http_start() to done()
 *	http_check.c   a request that can be sent at all
 *	http_due.c     its deadline
 *	http_reply.c   what came back: headers, body, and how it ended
 *	http_inflate.c a body that came compressed
 *
 * Requests leave on one of two ways.  HTTP/2 straight to the server is the one that
 * nearly all take, and costs a third of the other (files http2*.c, see http2.h).  What goes
 * through a proxy, in the clear or to a server of HTTP/1.1 goes with libcurl:
 *
 *	http_easy.c    a request as options of libcurl's handle
 *	http_socket.c  libcurl's sockets and timer on the loop
 *
 * Neither libcurl nor nghttp2 is called from inside its own callbacks, and data() is called
 * from there.  So whatever data() asks for waits until they have returned (http_leave).
 */
#ifndef GS_WIRE_HTTP_PARTS_H
#define GS_WIRE_HTTP_PARTS_H

#include "base/heap.h"
#include "base/strbuf.h"
#include "wire/http.h"

#include <curl/curl.h>
#include <sys/socket.h>

#define HTTP_SOCKET_BUCKETS 64
#define HTTP_WARNINGS_MAX   8
#define HTTP_WARNING_BYTES  1024
#define HTTP_BODY_BYTES	    ((size_t)32 << 20) /* of a gathered reply, unless asked */

/* A socket of libcurl, from its opening to its closing. */
struct http_socket {
	uv_poll_t poll;
	struct http *http;
	struct http_socket *next; /* in its bucket */
	int fd;
	int events;		     /* what libcurl waits for, 0: nobody uses it */
	int armed;		     /* what the loop watches */
	int local_port, remote_port; /* 0: not known yet */
	uint32_t serial;	     /* tells it from another that had the same fd */
	bool connection;	     /* else libcurl's own: the resolver's wake-up */
	bool used;		     /* a request was sent on it */
	bool answered;		     /* a reply has begun on it */
	bool over;		     /* nothing can be sent on it */
	ino_t inode;		     /* of the socket that was opened under this number */
	uint64_t heard_ms;	     /* when something came in last */
};

enum http_state {
	HTTP_QUEUED,  /* on no way yet */
	HTTP_WAITING, /* for a connection of HTTP/2 with room */
	HTTP_RUNNING, /* libcurl has it, or a connection of HTTP/2 */
	HTTP_THROUGH, /* its connection of HTTP/2 is through with it */
	HTTP_ENDED,   /* done() runs, or it waits to be taken from its way */
};

struct http2_link;   /* a connection of HTTP/2 */
struct http_inflate; /* what inflates a body */

struct http_call {
	struct http *http;
	struct http_call *next, *prev; /* in the set's list of its state */
	enum http_state state;
	struct http_request request; /* without method, url, headers and body */
	struct strbuf head;	     /* method, url, headers, each with its NUL */
	size_t url_at, headers_at;   /* where they begin in it */
	size_t origin_len;	     /* of the url, as "https://host:port" */
	struct strbuf sent;	     /* the body: the caller's may go before it is sent */
	bool has_body;		     /* if only an empty one */
	bool safe;		     /* the method changes nothing: may be sent twice */
	bool cancelled, stopped, too_big, no_memory;
	uint32_t sends; /* how often it was begun to be sent, and not refused unread */
	bool fresh;	/* no reply had come on the connection when it was sent */

	CURL *easy; /* with libcurl; NULL: it never was */
	struct curl_slist *headers, *connect_to;
	bool with_curl;
	int fd; /* its connection, with serial; -1: none */
	uint32_t serial;

	struct http2_link *link; /* with HTTP/2; NULL: with none */
	uint32_t tries;		 /* how many links it was given to */
	int32_t stream;
	size_t sent_at; /* how much of the body has left */
	bool heading;	/* fields come behind a status: no trailers */
	bool whole;	/* the reply has ended */
	CURLcode code;	/* of one that is through */

	uint64_t heard_ms;    /* last byte of the reply, or when it was sent */
	uint64_t deadline_ms; /* on the loop's clock, UINT64_MAX: none */
	uint64_t due_ms;      /* to be looked at */
	uint32_t heap_position;
	uint32_t looks; /* at which it was over its time, one after the other */

	int status;
	uint64_t bytes_in; /* of the body, as they came */
	struct http_inflate *inflate;
	struct strbuf body;
	size_t streamed; /* bytes given to data() */
	char content_type[128];
	int64_t retry_after_s;
	struct strbuf warnings; /* each with its NUL */
	size_t warnings_count;
	char reason[CURL_ERROR_SIZE];
};

/* In the order in which they came. */
struct http_list {
	struct http_call *first, *last;
};

struct http {
	uv_loop_t *loop;
	CURLM *multi;
	CURLU *url;
	struct http_options options; /* with its own texts */
	struct strbuf origin;	     /* of the last URL that was found right */
	bool inside;		     /* a way is running */
	bool retiring, closing;
	uint32_t in_flight, connections, serial;
	struct http_list queued, waiting, running, through, leaving;
	struct http_call *idle; /* linked by next */
	uint32_t idle_count;
	struct heap due;
	struct http_socket *sockets[HTTP_SOCKET_BUCKETS];
	struct http2_link *links;
	char *buffer;	 /* of all links: what was received, and what is to be sent */
	bool only_http1; /* the server does not speak HTTP/2 */
	bool curl_due;	 /* libcurl wants to work in the next turn of the loop */
	struct sockaddr_storage worked; /* where the last connection of HTTP/2 got through */
	socklen_t worked_len;		/* 0: none has, or the one after it did not */
	uv_timer_t curl_timer, due_timer;
	uv_idle_t kick;	  /* work for the next turn of the loop */
	uint32_t handles; /* of the loop, not yet closed */
	void (*retired)(void *context);
	void *retired_context;
	void (*closed)(void *context);
	void *closed_context;
};

/* http.c */

/* Around whatever a way does: what it reported is done once it has returned. */
void http_enter(struct http *http);
void http_leave(struct http *http);

/* Lets libcurl work on a socket or on its timers (CURL_SOCKET_TIMEOUT). */
void http_act(struct http *http, curl_socket_t fd, int events);

/* Has what is queued begun, and libcurl work, in the next turn of the loop. */
void http_kick(struct http *http);

/* Closes a set that retires once nothing is on its way. */
void http_settle(struct http *http);

/* A handle of the loop is closed: frees the set after the last. */
void http_handle_closed(struct http *http);

/* http_options.c */
int http_options_check(const struct http_options *options, struct err *err);
int http_options_copy(struct http_options *to, const struct http_options *from); /* 0, -ENOMEM */
void http_options_done(struct http_options *options);

/* http_check.c */

/* Whether it can be sent; origin_len is that of its URL: 0, -EINVAL, -ENOMEM, -ESHUTDOWN. */
int http_check(struct http *http, const struct http_request *request, size_t *origin_len,
	       struct err *err);

/* http_call.c */
void http_call_begin(struct http_call *call); /* from the queue onto its way */
void http_call_end(struct http_call *call, CURLcode code);
void http_call_expire(struct http_call *call); /* its time is over */
void http_call_drop(struct http_call *call);   /* from its way, without done() */
void http_call_free(struct http_call *call);
void http_call_sent(struct http_call *call); /* it begins to be sent */
void http_call_move(struct http_call *call, enum http_state state);
const char *http_call_next_header(const struct http_call *call, const char *header);
void http_list_add(struct http_list *list, struct http_call *call);
void http_list_remove(struct http_list *list, struct http_call *call);

/* http_due.c */
void http_due_init(struct http *http);
int http_call_watch_new(struct http_call *call); /* 0, -ENOMEM */
void http_call_watch(struct http_call *call);	 /* it was sent: its silence begins */
void http_call_unwatch(struct http_call *call);

/* http_easy.c */
int http_easy_set(struct http_call *call);    /* 0, -ENOMEM */
void http_easy_unset(struct http_call *call); /* lets go of what it had set */
bool http_easy_has_proxy(const struct http_call *call);

/* http_reply.c */
void http_reply_reset(struct http_call *call);
void http_reply_status(struct http_call *call, int status);
void http_reply_field(struct http_call *call, const char *name, size_t name_len, const char *value,
		      size_t len);
/* A piece of the body, inflated; false: no more of it is wanted. */
bool http_reply_body(struct http_call *call, const char *bytes, size_t len);
enum http_result http_reply_result(const struct http_call *call, CURLcode code);
const char *http_reply_reason(const struct http_call *call, enum http_result result,
			      CURLcode code);

/* http_inflate.c */
int http_inflate_new(struct http_inflate **ret); /* 0, -ENOMEM */
void http_inflate_free(struct http_inflate *inflate);
/* A piece of the body as it came.  CURLE_OK, or what is wrong. */
CURLcode http_inflate(struct http_call *call, const char *bytes, size_t len);
bool http_inflate_ended(const struct http_inflate *inflate);

/* http_socket.c */
int http_socket_open(int family, int type, int protocol); /* -1: errno says why not */
int http_socket_options(CURL *easy, struct http *http);	  /* 0, -ENOMEM */
int http_socket_attach(struct http *http);		  /* 0, -ENOMEM */
struct http_socket *http_socket_find(const struct http *http, int fd);
struct http_socket *http_socket_by_ports(const struct http *http, int local_port, int remote_port);
void http_socket_bury(struct http_socket *socket);
void http_socket_close_all(struct http *http);

#endif
