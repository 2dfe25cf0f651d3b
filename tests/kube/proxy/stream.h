/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - one request of a client and the way back to it, in whatever version of HTTP.
 *
 * The server of a version (server1.c, server2.c) makes a stream when the head of a request
 * has come and offers it to exchange_begin(); from then on the two call each other until one
 * of them ends it:
 *
 *	server -> exchange	exchange_body(), exchange_body_end(), exchange_drained(),
 *				and exchange_gone() when the client has left
 *	exchange -> server	the functions below; stream_end() is the last
 *
 * The request's head lasts as long as the stream.
 */
#ifndef GS_TESTS_KUBE_PROXY_STREAM_H
#define GS_TESTS_KUBE_PROXY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "h1.h"

struct exchange;
struct proxy;
struct stream;

/* How a reply ends. */
enum stream_end {
	STREAM_WHOLE,	/* as it should */
	STREAM_BROKEN,	/* after what was written, by an error of this stream alone */
	STREAM_REFUSED, /* the same, and the request has not been done */
	STREAM_CUT,	/* after what was written, with the whole connection */
	STREAM_RESET,	/* now, with the whole connection, by TCP RST */
};

#define STREAM_HIGH ((size_t)256 << 10) /* bytes of body that wait in a stream */
#define STREAM_LOW  ((size_t)64 << 10)

struct stream_ops {
	void (*head)(struct stream *stream, const struct head *head);
	void (*body)(struct stream *stream, const char *bytes, size_t len);
	void (*end)(struct stream *stream, enum stream_end how);
	/* So many bytes of the request's body are dealt with: more may come. */
	void (*consume)(struct stream *stream, size_t len);
	size_t (*pending)(const struct stream *stream); /* of the reply's body */
	/* The connection ends once its streams have; refuse: this one is not done. */
	void (*goaway)(struct stream *stream, bool refuse);
	void (*freeze)(struct stream *stream, bool frozen); /* of the whole connection */
};

struct stream {
	const struct stream_ops *ops;
	struct proxy *proxy;
	struct exchange *exchange; /* NULL: it has ended */
	uint64_t conn;		   /* number of the connection */
	uint64_t id;		   /* of the stream in it */
	struct head head;	   /* of the request */
};

#endif
