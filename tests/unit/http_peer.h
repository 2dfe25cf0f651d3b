/* SPDX-License-Identifier: Apache-2.0 */
/* http_peer.h - a small HTTP server that does what a test tells it.
 *
 * HTTP/1.1 and HTTP/2, in the clear or over TLS, on this machine and on the loop that it is
 * given: the client's in tests, one of another thread in benchmarks.  serve() is called
 * with each whole request and answers when it likes, or never, or with a broken wire.
 * Aborts when it lacks something: it is no part of the program.
 */
#ifndef GS_TESTS_UNIT_HTTP_PEER_H
#define GS_TESTS_UNIT_HTTP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct peer;
struct peer_link; /* a connection */

/* One request.  It lives until it is answered whole or its connection ends. */
struct peer_request {
	struct peer_link *link;
	int32_t stream; /* of HTTP/2, 0 else */
	const char *method, *path;
	const char *headers; /* "\nname: value\n..." in lower case, ends in a newline */
	const char *body;
	size_t body_len;
};

struct peer_options {
	const char *host;		  /* NULL: 127.0.0.1 */
	int port;			  /* 0: any */
	const char *cert_file, *key_file; /* NULL: no TLS */
	const char *client_ca_file;	  /* demand a client's certificate of this one */
	bool client_optional;		  /* ask for it, and take any or none */
	bool http2;			  /* offer h2 */
	bool tls12;			  /* speak TLS 1.2 at most */
	bool small_records;		  /* of TLS, so that a certificate needs several */
	uint32_t max_streams;		  /* at once on a connection; 0: 100 */
	bool proxy, socks; /* TLS only behind peer_tunnel(), or a SOCKS 5 greeting */
	bool mute;	   /* accept and never say a word, not even of TLS */
	bool big_window;   /* HTTP/2: a request's body is taken as fast as it comes */
	bool goaway_first, cut_first, no_streams; /* HTTP/2: greet, and take no request */
	bool noise_first;			  /* agree on HTTP/2, and speak another */
	bool early; /* HTTP/2: serve() is called before the body has come */
	void (*serve)(void *context, struct peer_request *request);
	void *context;
};

struct peer *peer_new(uv_loop_t *loop, const struct peer_options *options);
int peer_port(const struct peer *peer);
/* Closes everything; all is freed when the loop has run. */
void peer_close(struct peer *peer);

/* "https://127.0.0.1:PORT" and the path, valid until the next call. */
const char *peer_url(const struct peer *peer, const char *path);

/* So far accepted, and open now. */
uint32_t peer_accepted(const struct peer *peer);
uint32_t peer_open(const struct peer *peer);

/* The whole answer.  Headers are lines "name: value\n" (NULL: none). */
void peer_reply(struct peer_request *request, int status, const char *headers, const void *body,
		size_t len);

/* The answer in parts: chunks of HTTP/1.1, DATA of HTTP/2. */
void peer_begin(struct peer_request *request, int status, const char *headers);
void peer_write(struct peer_request *request, const void *bytes, size_t len);
void peer_end(struct peer_request *request);

/* HTTP/2: a reply before the reply; fields that follow the body, told before it ends. */
void peer_interim(struct peer_request *request, int status, const char *headers);
void peer_trailers(struct peer_request *request, const char *headers);

/* After peer_begin(): as many bytes as are asked for, as fast as they go, and the end. */
void peer_flood(struct peer_request *request, uint64_t bytes);

/* The value of a header, cut at the line's end; false if it is not there. */
bool peer_header(const struct peer_request *request, const char *name, char *value, size_t size);

/* The name in the client's TLS greeting; false: none. */
bool peer_server_name(const struct peer_link *link, char *name, size_t size);

/* Whether the client has shown a certificate. */
bool peer_knows_client(const struct peer_link *link);

/* Says yes to CONNECT and is then the server that was asked for, with TLS. */
void peer_tunnel(struct peer_request *request);
const char *peer_asked(const struct peer *peer); /* the name that SOCKS was to reach */

/* HTTP/2: RST_STREAM with this code; GOAWAY with this as the last stream. */
void peer_reset(struct peer_request *request, uint32_t code);
void peer_goaway(struct peer_link *link, int32_t last_stream);

/* These bytes as they are, below HTTP and above TLS. */
void peer_raw(struct peer_link *link, const void *bytes, size_t len);

/* Closes the connection, now: with a TCP reset, or after what was written has left. */
void peer_cut(struct peer_link *link, bool reset);

/* No byte more is read from the link. */
void peer_freeze(struct peer_link *link);

#endif
