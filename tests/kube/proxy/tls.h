/* SPDX-License-Identifier: Apache-2.0 */
/* tls.h - a TLS connection on an event loop: GnuTLS over libuv, either side of it.
 *
 * Bytes come by data(), at most 16 KiB at a time, unless the connection is paused.
 * What is written waits in memory until the other side takes it: who writes looks at
 * tls_pending() and waits for drained() before it writes more than TLS_HIGH.
 *
 * An owner leaves a connection by exactly one of tls_finish(), tls_cut(), tls_reset() and
 * tls_close(), or is left by closed(); after either it must not use it any more, and
 * no callback comes.  All of them may be called from inside callbacks.
 */
#ifndef GS_TESTS_KUBE_PROXY_TLS_H
#define GS_TESTS_KUBE_PROXY_TLS_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct err;
struct tls;

#define TLS_HIGH ((size_t)256 << 10) /* bytes that wait: stop writing */
#define TLS_LOW	 ((size_t)64 << 10)  /* and go on */

struct tls_callbacks {
	void (*ready)(void *context); /* greeted: bytes may flow, tls_is_h2() is known */
	void (*data)(void *context, const char *bytes, size_t len);
	void (*drained)(void *context); /* less than TLS_LOW waits again */
	/* The other side has left, properly ("") or not (why). */
	void (*closed)(void *context, const char *reason);
};

struct tls_side {
	uv_loop_t *loop;
	gnutls_certificate_credentials_t credentials; /* borrowed */
	const char *server_name; /* of the server that is verified; NULL: do not */
	const struct tls_callbacks *callbacks;
	void *context;
};

/* The next client of the listener: offers h2 and http/1.1.  0 or why not. */
int tls_accept(uv_stream_t *listener, const struct tls_side *side, struct tls **ret,
	       struct err *err);

/* To a server; speaks http/1.1 there.  A failure to connect comes by closed(). */
int tls_connect(const struct sockaddr *address, const struct tls_side *side, struct tls **ret,
		struct err *err);

bool tls_is_h2(const struct tls *tls);

/* Nothing is written twice or in part: what cannot be written closes the connection. */
void tls_write(struct tls *tls, const void *bytes, size_t len);
size_t tls_pending(const struct tls *tls);

/* No data() until it is called with false; then also for what came before. */
void tls_pause(struct tls *tls, bool paused);

/* Neither reads nor writes nor closes: what a cable does when it is pulled. */
void tls_freeze(struct tls *tls, bool frozen);

void tls_finish(struct tls *tls); /* writes what waits, says goodbye, closes */
void tls_cut(struct tls *tls);	  /* writes what waits, closes without goodbye */
void tls_reset(struct tls *tls);  /* TCP RST, now */
void tls_close(struct tls *tls);  /* closes now; NULL is fine */

#endif
