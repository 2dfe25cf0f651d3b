/* SPDX-License-Identifier: Apache-2.0 */
/* h1.h - HTTP/1.1 messages out of a stream of bytes: requests or replies.
 *
 *	struct h1 h1;
 *	h1_init(&h1, H1_REQUESTS);
 *	for (;;) {
 *		struct h1_piece body;
 *		switch (h1_next(&h1, &bytes, &len, &body, &err)) { ... }
 *	}
 *
 * Strict where two readers could disagree on where a message ends (RFC 9112 §6): one
 * Content-Length at most, never together with Transfer-Encoding, "chunked" alone, lines
 * end with CRLF.  A head has at most H1_HEAD_MAX bytes.
 */
#ifndef GS_TESTS_KUBE_PROXY_H1_H
#define GS_TESTS_KUBE_PROXY_H1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/vec.h"

struct err;

#define H1_HEAD_MAX    ((size_t)64 << 10)
#define H1_HEADERS_MAX 128

/* Name in lower case, value without blanks around it. */
struct header {
	const char *name, *value;
};

/* The head of a request or of a reply, in whatever version of HTTP it came. */
struct head {
	const char *method, *target; /* of a request; target with its query */
	int status;		     /* of a reply */
	const struct header *headers;
	size_t count;
	int64_t length; /* of the body; -1: not known before its end, or none */
	bool has_body;
};

/* The first header of this name (in lower case), or NULL. */
const char *head_get(const struct head *head, const char *name);

/* Whether it concerns one connection only and is not passed on. */
bool header_is_of_hop(const char *name);

enum h1_kind { H1_REQUESTS, H1_REPLIES };

enum h1_event {
	H1_MORE, /* all bytes are used up */
	H1_HEAD, /* h1.head; it lasts until the next message begins */
	H1_BODY, /* a piece of the body */
	H1_END,	 /* of the message; the next begins with the next byte */
	H1_BAD,	 /* err says why; for good */
};

struct h1_piece {
	const char *bytes; /* inside those given to h1_next() */
	size_t len;
};

struct h1 {
	struct head head;
	bool http10; /* the message is of HTTP/1.0 */
	bool close;  /* no other follows on this connection */
	/* of replies, set by the caller before the head: it is for a HEAD request */
	bool bodyless;
	/* private to h1.c */
	enum h1_kind kind;
	int state;
	struct strbuf text; /* of the head */
	struct strbuf line; /* of a chunk */
	VEC(struct header) list;
	uint64_t left; /* bytes of the body or chunk */
	uint32_t trailers;
};

void h1_init(struct h1 *h1, enum h1_kind kind);
void h1_done(struct h1 *h1);

/* Looks at *len bytes at *bytes and moves both past what is used. */
enum h1_event h1_next(struct h1 *h1, const char **bytes, size_t *len, struct h1_piece *body,
		      struct err *err);

/* The connection has ended.  True if the message ends there in good order: between two
 * messages, or at the end of a reply that lasts until the end. */
bool h1_eof(struct h1 *h1);

/* Whether a message has begun and not ended. */
bool h1_is_inside(const struct h1 *h1);

#endif
