/* SPDX-License-Identifier: Apache-2.0 */
/* http_parts.h - what the files of the HTTP client share; nobody else includes it.
 *
 *	http.c         the set: options, its life, the way through libcurl and back
 *	http_call.c    one request, from http_start() to done()
 *	http_due.c     its deadline
 *	http_easy.c    a request as options of libcurl's handle
 *	http_reply.c   what came back: headers, body, and how it ended
 *	http_socket.c  libcurl's sockets and timer on the loop
 *
 * libcurl must not be called from inside its own callbacks, and data() is called from
 * there.  So whatever data() asks for waits until libcurl has returned (http_leave).
 */
#ifndef GS_WIRE_HTTP_PARTS_H
#define GS_WIRE_HTTP_PARTS_H

#include "base/heap.h"
#include "base/strbuf.h"
#include "wire/http.h"

#include <curl/curl.h>

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
	HTTP_QUEUED,  /* libcurl does not know it yet */
	HTTP_RUNNING, /* libcurl has it */
	HTTP_ENDED,   /* done() runs, or it waits to be taken from libcurl */
};

struct http_call {
	struct http *http;
	CURL *easy;
	struct curl_slist *headers, *connect_to;
	struct http_call *next, *prev; /* in the set's list of its state */
	enum http_state state;
	struct http_request request; /* without url, headers and body */
	struct strbuf sent;	     /* the body: the caller's may go while libcurl holds it */
	bool safe;		     /* the method changes nothing: may be sent twice */
	bool cancelled, stopped, too_big, no_memory;
	uint32_t sends; /* how often libcurl began to send it */
	int fd;		/* its connection, with serial; -1: none */
	uint32_t serial;
	bool fresh;	      /* no reply had come on the connection when it was sent */
	uint64_t heard_ms;    /* last byte of the reply, or when it was sent */
	uint64_t deadline_ms; /* on the loop's clock, UINT64_MAX: none */
	uint64_t due_ms;      /* to be looked at */
	uint32_t heap_position;
	uint32_t looks; /* at which it was over its time, one after the other */

	int status;
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
	bool inside;		     /* libcurl is running */
	bool retiring, closing;
	uint32_t in_flight, connections, serial;
	struct http_list queued, running, leaving;
	struct http_call *idle; /* with their easy handles, linked by next */
	uint32_t idle_count;
	struct heap due;
	struct http_socket *sockets[HTTP_SOCKET_BUCKETS];
	uv_timer_t curl_timer, due_timer;
	uv_idle_t kick;	  /* work for the next turn of the loop */
	uint32_t handles; /* of the loop, not yet closed */
	void (*retired)(void *context);
	void *retired_context;
	void (*closed)(void *context);
	void *closed_context;
};

/* http.c */

/* Lets libcurl work on a socket or on its timers (CURL_SOCKET_TIMEOUT), then does what
 * had to wait for its return and ends the calls that are through. */
void http_act(struct http *http, curl_socket_t fd, int events);

/* Has libcurl work in the next turn of the loop, after it was given what is queued. */
void http_kick(struct http *http);

/* Closes a set that retires once nothing is on its way. */
void http_settle(struct http *http);

/* A handle of the loop is closed: frees the set after the last. */
void http_handle_closed(struct http *http);

/* http_call.c */
void http_call_add(struct http_call *call); /* from the queue into libcurl */
void http_call_end(struct http_call *call, CURLcode code);
void http_call_expire(struct http_call *call); /* its time is over */
void http_call_drop(struct http_call *call);   /* out of libcurl, without done() */
void http_call_free(struct http_call *call);
void http_list_add(struct http_list *list, struct http_call *call);
void http_list_remove(struct http_list *list, struct http_call *call);

/* http_due.c */
void http_due_init(struct http *http);
int http_call_watch_new(struct http_call *call); /* 0, -ENOMEM */
void http_call_watch(struct http_call *call);	 /* it was sent: its silence begins */
void http_call_unwatch(struct http_call *call);

/* http_easy.c */
int http_easy_always(struct http_call *call); /* what never changes: 0, -ENOMEM */
int http_easy_check(struct http *http, const struct http_request *request, struct err *err);
int http_easy_set(struct http_call *call, const struct http_request *request); /* 0, -ENOMEM */

/* http_reply.c */
void http_reply_reset(struct http_call *call);
size_t http_reply_header(char *line, size_t size, size_t count, void *context);
size_t http_reply_body(char *bytes, size_t size, size_t count, void *context);
enum http_result http_reply_result(const struct http_call *call, CURLcode code);
const char *http_reply_reason(const struct http_call *call, enum http_result result,
			      CURLcode code);

/* http_socket.c */
int http_socket_options(CURL *easy, struct http *http); /* 0, -ENOMEM */
int http_socket_attach(struct http *http);		/* 0, -ENOMEM */
struct http_socket *http_socket_find(const struct http *http, int fd);
struct http_socket *http_socket_by_ports(const struct http *http, int local_port, int remote_port);
void http_socket_bury(struct http_socket *socket);
void http_socket_close_all(struct http *http);

#endif
