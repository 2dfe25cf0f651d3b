/* SPDX-License-Identifier: Apache-2.0 */
/* http_peer_parts.h - what the files of the test's server share. */
#ifndef GS_TESTS_UNIT_HTTP_PEER_PARTS_H
#define GS_TESTS_UNIT_HTTP_PEER_PARTS_H

#include "base/strbuf.h"
#include "unit/http_peer.h"

#include <gnutls/gnutls.h>
#include <nghttp2/nghttp2.h>

#define PEER_CHUNK ((size_t)64 << 10)
#define PEER_QUEUE ((size_t)256 << 10) /* made to be sent before any of it has left */

struct request {
	struct peer_request shown; /* first: what the test has is this */
	struct request *next;
	struct strbuf method, path, headers, body;
	struct strbuf data; /* HTTP/2: of the answer, not yet taken */
	const char *trailers;
	size_t data_at;
	uint64_t flood;	   /* bytes still to make */
	bool begun, ended; /* the answer */
};

struct peer_link {
	struct peer *peer;
	struct peer_link *next, *prev;
	uv_poll_t poll;
	int fd;
	gnutls_session_t tls; /* NULL: none */
	nghttp2_session *h2;  /* NULL: HTTP/1.1 */
	struct strbuf in, out;
	size_t out_at;
	struct request *requests;
	bool greeted, sending, busy, frozen, dead, last, over;
	bool tunnel, socks_greeted;
};

struct peer {
	uv_loop_t *loop;
	struct peer_options options;
	uv_poll_t poll;
	int fd, port;
	gnutls_certificate_credentials_t credentials;
	struct peer_link *links;
	uint32_t accepted, open, handles;
	char url[4096];
	char asked[256]; /* the host that SOCKS was to reach */
};

void peer_must(bool ok, const char *what);
struct request *peer_request_new(struct peer_link *link);
void peer_request_free(struct request *request);
void peer_serve(struct request *request);
void peer_flush(struct peer_link *link);

/* HTTP/2: http_peer_h2.c */
void peer_h2_begin(struct peer_link *link);
void peer_h2_read(struct peer_link *link, const void *bytes, size_t len);
bool peer_h2_fill(struct peer_link *link); /* more to send into out; false: nothing */
void peer_h2_answer(struct request *request, int status, const char *headers);
void peer_h2_resume(struct request *request);

#endif
