/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_private.h - between exchange.c and gate.c. */
#ifndef GS_TESTS_KUBE_PROXY_EXCHANGE_PRIVATE_H
#define GS_TESTS_KUBE_PROXY_EXCHANGE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/strbuf.h"
#include "events.h"
#include "exchange.h"
#include "fault.h"
#include "stream.h"
#include "target.h"

struct upstream_call;

enum phase {
	PHASE_DELAY, /* the timer runs */
	PHASE_HELD,  /* in the proxy's list, and the timer runs */
	PHASE_DRAIN, /* takes the request's body, then acts; nothing goes to the server */
	PHASE_SENT,
	PHASE_OVER, /* freed by the loop */
};

enum gate {
	GATE_OPEN,
	GATE_COUNT,  /* open until the fault's point */
	GATE_GATHER, /* what is to be cut in its middle */
	GATE_SHUT,   /* until the timer */
	GATE_SLOW,   /* with the timer's ticks */
	GATE_DROP,   /* nobody gets it */
};

struct exchange {
	struct proxy *proxy;
	struct stream *stream;
	struct target target;
	struct fault fault; /* but for a delay */
	uint64_t order;	    /* among all exchanges */
	uint64_t seq;	    /* of its line in the log; 0: none */
	enum phase phase;
	uv_timer_t timer;
	struct exchange *next; /* in the list of those held */

	/* the request */
	bool as_config; /* sent with the identity of the proxy's kubeconfig */
	bool body_ended;
	struct strbuf body; /* that waits to be sent */
	size_t unconsumed;  /* bytes that the client may not yet replace by others */
	struct upstream_call *call;

	/* the reply */
	enum gate gate;
	bool ended, paused;
	bool silent; /* not even its head is read until the timer */
	struct events events;
	uint64_t passed;    /* bytes of its body */
	struct strbuf held; /* behind the gate */
	size_t held_at;
	uint64_t slow_since_ms, slow_passed;
};

/* Ends it; nothing of it is touched afterwards but its phase. */
void exchange_end(struct exchange *exchange, enum stream_end how);
void exchange_effect(struct exchange *exchange, const char *effect);

/* gate_timer() is due after ms, and then again if repeat_ms is not 0. */
void exchange_start_timer(struct exchange *exchange, uint32_t ms, uint32_t repeat_ms);

/* Holds the server back while too much waits here. */
void exchange_update_pause(struct exchange *exchange);

/* Before the request is sent, the head, a piece of the body and the end of the reply,
 * and the timer. */
void gate_sent(struct exchange *exchange);
void gate_head(struct exchange *exchange, const struct head *head);
void gate_push(struct exchange *exchange, const char *bytes, size_t len);
void gate_end(struct exchange *exchange);
void gate_timer(struct exchange *exchange);

/* Bytes behind the gate, and how many there may be before the server is held back. */
size_t gate_held(const struct exchange *exchange);
size_t gate_held_max(const struct exchange *exchange);

#endif
