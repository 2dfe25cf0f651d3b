/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - a request on its way through the proxy, and what is done to it.
 *
 *	decided -> waiting (delay, hold) -> sent on -> the reply comes back through a gate
 *	       \-> never sent on: answered, cut or reset here
 *
 * See stream.h for who calls whom.  The gate (gate.c) lets the reply pass, counts its
 * events, holds it back, slows it or cuts it.
 */
#ifndef GS_TESTS_KUBE_PROXY_EXCHANGE_H
#define GS_TESTS_KUBE_PROXY_EXCHANGE_H

#include <stddef.h>

struct exchange;
struct stream;

/* The head of a request is there.  May end the stream at once. */
void exchange_begin(struct stream *stream);

void exchange_body(struct exchange *exchange, const char *bytes, size_t len);
void exchange_body_end(struct exchange *exchange);

/* What waits in the stream has become less. */
void exchange_drained(struct exchange *exchange);

/* The client is gone; the stream is not used any more.  NULL is fine. */
void exchange_gone(struct exchange *exchange);

#endif
