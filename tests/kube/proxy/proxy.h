/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.h - what all connections of the proxy share.  One loop, one thread. */
#ifndef GS_TESTS_KUBE_PROXY_PROXY_H
#define GS_TESTS_KUBE_PROXY_PROXY_H

#include <stdint.h>
#include <uv.h>

struct decider;
struct exchange;
struct record;
struct server;
struct strbuf;
struct upstream;

#define PROXY_TOKEN_MAX 64

struct proxy {
	uv_loop_t *loop;
	struct decider *decider;
	struct record *record;
	struct upstream *upstream;
	struct server *server;
	char token[PROXY_TOKEN_MAX]; /* that clients show */
	uint64_t start_ms;
	uint64_t exchanges;	/* begun so far */
	struct exchange *holds; /* those that wait for a later one */
};

uint64_t proxy_ms(const struct proxy *proxy); /* since the start */

/* {"on":true,"requests":12,"connections":3,"faults":{"cut":1}} */
void proxy_stats(const struct proxy *proxy, struct strbuf *out);

#endif
