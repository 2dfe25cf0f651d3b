/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c - what a reply goes through on its way to the client. */
#include "base/attr.h"
#include "exchange_private.h"

#include <string.h>

#define TICK_MS	   20
#define GATHER_MAX ((size_t)4 << 20) /* of an event or body that is to be cut */
#define BODY_MAX   ((size_t)1 << 20) /* of a body: the cut comes not later than this */
/* A silent watch: the API server ends one that does not read for long. */
#define SHUT_MAX ((size_t)16 << 20)
#define SLOW_MAX ((size_t)256 << 10)

static void pass(struct exchange *exchange, const char *bytes, size_t len)
{
	if (len == 0)
		return;
	exchange->passed += len;
	exchange->stream->ops->body(exchange->stream, bytes, len);
}

size_t gate_held(const struct exchange *exchange)
{
	return exchange->held.len - exchange->held_at;
}

size_t gate_held_max(const struct exchange *exchange)
{
	return exchange->gate == GATE_SHUT   ? SHUT_MAX
	       : exchange->gate == GATE_SLOW ? SLOW_MAX
					     : SIZE_MAX;
}

static void shut(struct exchange *exchange)
{
	exchange->gate = GATE_SHUT;
	exchange_effect(exchange, "silent");
	if (exchange->fault.whole)
		exchange->stream->ops->freeze(exchange->stream, true);
	exchange_start_timer(exchange, exchange->fault.ms, 0);
}

/* What happens at the point up to which the gate counts. */
static void reach(struct exchange *exchange)
{
	if (exchange->fault.kind == FAULT_SILENCE) {
		shut(exchange);
	} else if (exchange->fault.point == POINT_MID_EVENT) {
		exchange->gate = GATE_GATHER;
	} else {
		exchange_effect(exchange, "cut");
		exchange_end(exchange, STREAM_CUT);
	}
}

/* A part of what was gathered, never all of it; then the end. */
static void cut_gathered(struct exchange *exchange, enum stream_end how)
{
	size_t len = exchange->held.len;
	size_t part = len * exchange->fault.permille / 1000;
	part = MAX(part, (size_t)1);
	pass(exchange, exchange->held.s, len < 2 ? 0 : MIN(part, len - 1));
	exchange_effect(exchange, "cut");
	exchange_end(exchange, how);
}

/* Takes bytes up to the point.  Returns how many; at the point the gate is another. */
static size_t count(struct exchange *exchange, const char *bytes, size_t len)
{
	const struct fault *fault = &exchange->fault;
	size_t used = 0;
	if (fault->point == POINT_BYTES) {
		used = (size_t)MIN(fault->count - exchange->passed, (uint64_t)len);
		pass(exchange, bytes, used);
		if (exchange->passed >= fault->count)
			reach(exchange);
		return used;
	}
	events_next(&exchange->events, bytes, len, &used);
	pass(exchange, bytes, used);
	if (exchange->events.count >= fault->count)
		reach(exchange);
	return used;
}

static size_t gather(struct exchange *exchange, const char *bytes, size_t len)
{
	bool event = exchange->fault.point == POINT_MID_EVENT;
	size_t used = len;
	bool whole = event && events_next(&exchange->events, bytes, len, &used);
	strbuf_add(&exchange->held, bytes, used);
	if (whole || exchange->held.len >= (event ? GATHER_MAX : BODY_MAX))
		cut_gathered(exchange, event ? STREAM_CUT : STREAM_BROKEN);
	return used;
}

static void push_held(struct exchange *exchange, const char *bytes, size_t len)
{
	struct strbuf *held = &exchange->held;
	size_t left = gate_held(exchange);
	if (exchange->held_at > 0)
		memmove(held->s, held->s + exchange->held_at, left);
	strbuf_truncate(held, left);
	exchange->held_at = 0;
	strbuf_add(held, bytes, len);
	if (!held->failed)
		return;
	exchange_effect(exchange, "overflow");
	exchange_end(exchange, STREAM_BROKEN);
}

void gate_push(struct exchange *exchange, const char *bytes, size_t len)
{
	while (len > 0 && exchange->phase == PHASE_SENT) {
		size_t used = len;
		switch (exchange->gate) {
		case GATE_OPEN:
			pass(exchange, bytes, len);
			break;
		case GATE_COUNT:
			used = count(exchange, bytes, len);
			break;
		case GATE_GATHER:
			used = gather(exchange, bytes, len);
			break;
		case GATE_SHUT:
		case GATE_SLOW:
			push_held(exchange, bytes, len);
			break;
		case GATE_DROP:
			break;
		}
		bytes += used;
		len -= used;
	}
}

void gate_sent(struct exchange *exchange)
{
	const struct fault *fault = &exchange->fault;
	exchange->silent = fault->kind == FAULT_SILENCE && fault->point == POINT_NONE &&
			   !exchange->target.watch;
	if (!exchange->silent)
		return;
	exchange_effect(exchange, "silent");
	if (fault->whole)
		exchange->stream->ops->freeze(exchange->stream, true);
	exchange_start_timer(exchange, fault->ms, 0);
	exchange_update_pause(exchange);
}

/* The gate that the fault asks for, for a reply with this head. */
static enum gate gate_for(const struct exchange *exchange, const struct head *head)
{
	const struct fault *fault = &exchange->fault;
	bool events = fault->point == POINT_EVENTS || fault->point == POINT_MID_EVENT;
	if (fault->kind == FAULT_CUT && fault->point == POINT_AFTER_WRITE)
		return GATE_DROP;
	bool was_silent = fault->kind == FAULT_SILENCE && fault->point == POINT_NONE &&
			  !exchange->target.watch;
	if (!head->has_body || was_silent || (events && head->status != 200))
		return GATE_OPEN;
	switch (fault->kind) {
	case FAULT_CUT:
	case FAULT_SILENCE:
		return GATE_COUNT;
	case FAULT_HALF_BODY:
		return exchange->target.watch && head->status == 200 ? GATE_COUNT : GATE_GATHER;
	case FAULT_SLOW:
		return GATE_SLOW;
	default:
		return GATE_OPEN;
	}
}

void gate_head(struct exchange *exchange, const struct head *head)
{
	struct fault *fault = &exchange->fault;
	struct stream *stream = exchange->stream;
	exchange->gate = gate_for(exchange, head);
	events_init(&exchange->events, head_get(head, "content-type"));
	if (exchange->gate == GATE_DROP) {
		/* A watch has no end to wait for. */
		if (exchange->target.watch)
			gate_end(exchange);
		return;
	}
	/* The middle of a watch is the middle of an event. */
	if (fault->kind == FAULT_HALF_BODY && exchange->gate == GATE_COUNT)
		fault->point = POINT_MID_EVENT;
	if (fault->kind == FAULT_GOAWAY) {
		exchange_effect(exchange, "goaway");
		stream->ops->goaway(stream, false);
	}
	stream->ops->head(stream, head);
	if (exchange->gate == GATE_COUNT && fault->count == 0)
		reach(exchange);
	if (exchange->gate == GATE_SLOW) {
		exchange_effect(exchange, "slow");
		exchange->slow_since_ms = uv_now(exchange->timer.loop);
		exchange_start_timer(exchange, TICK_MS, TICK_MS);
	}
}

/* Passes on at most n bytes of what is held; the end too if that was the last. */
static void release(struct exchange *exchange, size_t n)
{
	n = MIN(n, gate_held(exchange));
	exchange->slow_passed += n;
	exchange->held_at += n;
	pass(exchange, exchange->held.s + exchange->held_at - n, n);
	if (gate_held(exchange) > 0)
		return;
	strbuf_reset(&exchange->held);
	exchange->held_at = 0;
	if (exchange->ended)
		exchange_end(exchange, STREAM_WHOLE);
}

static void open_gate(struct exchange *exchange)
{
	exchange_effect(exchange, "resumed");
	if (exchange->fault.whole)
		exchange->stream->ops->freeze(exchange->stream, false);
	exchange->silent = false;
	exchange->gate = GATE_OPEN;
	release(exchange, SIZE_MAX);
}

void gate_timer(struct exchange *exchange)
{
	if (exchange->gate != GATE_SLOW) {
		open_gate(exchange);
		return;
	}
	uint64_t elapsed_ms = uv_now(exchange->timer.loop) - exchange->slow_since_ms;
	uint64_t allowed = exchange->fault.bytes_per_s * elapsed_ms / 1000;
	if (allowed > exchange->slow_passed)
		release(exchange, (size_t)(allowed - exchange->slow_passed));
}

void gate_end(struct exchange *exchange)
{
	bool body = exchange->fault.kind == FAULT_HALF_BODY;
	switch (exchange->gate) {
	case GATE_DROP:
		exchange_effect(exchange, "cut");
		exchange_end(exchange, STREAM_CUT);
		return;
	case GATE_SHUT:
	case GATE_SLOW:
		if (exchange->gate == GATE_SLOW && gate_held(exchange) == 0)
			exchange_end(exchange, STREAM_WHOLE);
		return;
	case GATE_GATHER:
		if (body && !exchange->target.watch) {
			cut_gathered(exchange, STREAM_BROKEN);
			return;
		}
		pass(exchange, exchange->held.s, exchange->held.len);
		break;
	case GATE_OPEN:
	case GATE_COUNT:
		break;
	}
	if (exchange->gate != GATE_OPEN || body)
		exchange_effect(exchange, "missed");
	exchange_end(exchange, STREAM_WHOLE);
}
