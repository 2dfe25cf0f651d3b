/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"
#include "decide.h"
#include "exchange_private.h"
#include "proxy.h"
#include "record.h"
#include "upstream.h"

#include <stdlib.h>
#include <string.h>

#define CONTROL "/__proxy/"

static void on_timer_closed(uv_handle_t *handle)
{
	struct exchange *exchange = handle->data;
	target_done(&exchange->target);
	strbuf_done(&exchange->body);
	strbuf_done(&exchange->held);
	free(exchange);
}

/* Out of everybody's sight; its memory goes with the loop's next turn. */
static void leave(struct exchange *exchange)
{
	if (exchange->phase == PHASE_OVER)
		return;
	exchange->phase = PHASE_OVER;
	exchange->stream->exchange = NULL;
	for (struct exchange **at = &exchange->proxy->holds; *at; at = &(*at)->next) {
		if (*at != exchange)
			continue;
		*at = exchange->next;
		break;
	}
	if (exchange->call)
		upstream_cancel(exchange->call);
	exchange->call = NULL;
	uv_close((uv_handle_t *)&exchange->timer, on_timer_closed);
}

void exchange_end(struct exchange *exchange, enum stream_end how)
{
	struct stream *stream = exchange->stream;
	leave(exchange);
	stream->ops->end(stream, how);
}

void exchange_gone(struct exchange *exchange)
{
	if (exchange)
		leave(exchange);
}

void exchange_effect(struct exchange *exchange, const char *effect)
{
	if (exchange->seq)
		record_effect(exchange->proxy->record, proxy_ms(exchange->proxy), exchange->seq,
			      effect, exchange->passed, exchange->events.count);
}

void exchange_update_pause(struct exchange *exchange)
{
	const struct stream *stream = exchange->stream;
	if (exchange->phase != PHASE_SENT || !exchange->call)
		return;
	size_t most = exchange->paused ? STREAM_LOW : STREAM_HIGH;
	bool pause = exchange->silent || stream->ops->pending(stream) > most ||
		     gate_held(exchange) > gate_held_max(exchange);
	if (pause == exchange->paused)
		return;
	exchange->paused = pause;
	upstream_pause(exchange->call, pause);
}

void exchange_drained(struct exchange *exchange)
{
	exchange_update_pause(exchange);
}

/* Lets the client send more once the server takes it. */
static void consume(struct exchange *exchange)
{
	if (exchange->phase == PHASE_SENT && exchange->call &&
	    upstream_pending(exchange->call) > STREAM_HIGH)
		return;
	size_t n = exchange->unconsumed;
	exchange->unconsumed = 0;
	if (n > 0)
		exchange->stream->ops->consume(exchange->stream, n);
}

static void forward(struct exchange *exchange);

/* Those that wait for somebody to go before them. */
static void release_holds(const struct exchange *passed)
{
	struct exchange *next;
	for (struct exchange *each = passed->proxy->holds; each; each = next) {
		next = each->next;
		if (each->order > passed->order || each->stream->conn == passed->stream->conn)
			continue;
		exchange_effect(each, "released");
		forward(each);
		next = passed->proxy->holds; /* the list has changed */
	}
}

static void on_head(void *context, const struct head *head)
{
	struct exchange *exchange = context;
	release_holds(exchange);
	gate_head(exchange, head);
	exchange_update_pause(exchange);
}

static void on_data(void *context, const char *bytes, size_t len)
{
	struct exchange *exchange = context;
	gate_push(exchange, bytes, len);
	exchange_update_pause(exchange);
}

static void on_drained(void *context)
{
	consume(context);
}

static void record_lost(struct exchange *exchange, const char *reason)
{
	const struct stream *stream = exchange->stream;
	record_trouble(exchange->proxy->record, proxy_ms(exchange->proxy),
		       &(struct record_origin){ stream->conn, stream->id, stream->head.target },
		       reason);
}

static void on_end(void *context, const char *reason, bool sent)
{
	struct exchange *exchange = context;
	exchange->call = NULL;
	exchange->ended = true;
	if (!*reason) {
		gate_end(exchange);
		return;
	}
	record_lost(exchange, reason);
	exchange_end(exchange, sent ? STREAM_BROKEN : STREAM_REFUSED);
}

static const struct upstream_callbacks callbacks = {
	.head = on_head,
	.data = on_data,
	.drained = on_drained,
	.end = on_end,
};

/* To the server, once and for all. */
static void forward(struct exchange *exchange)
{
	struct proxy *proxy = exchange->proxy;
	for (struct exchange **at = &proxy->holds; *at; at = &(*at)->next) {
		if (*at != exchange)
			continue;
		*at = exchange->next;
		break;
	}
	uv_timer_stop(&exchange->timer);
	exchange->phase = PHASE_SENT;
	exchange->call = upstream_start(proxy->upstream, &exchange->stream->head,
					exchange->as_config, &callbacks, exchange);
	if (!exchange->call) {
		record_lost(exchange, "no connection can be made");
		exchange_end(exchange, STREAM_REFUSED);
		return;
	}
	gate_sent(exchange);
	upstream_write(exchange->call, exchange->body.s, exchange->body.len);
	strbuf_done(&exchange->body);
	if (exchange->body_ended)
		upstream_write_end(exchange->call);
	consume(exchange);
}

/* The request's body has come and gone: what happens instead of the server's reply. */
static void act(struct exchange *exchange)
{
	struct stream *stream = exchange->stream;
	const struct fault fault = exchange->fault;
	exchange_effect(exchange, fault_kind_name(fault.kind));
	if (fault.kind == FAULT_ANSWER) {
		leave(exchange);
		answer_fault(stream, &fault, NULL);
	} else if (fault.kind == FAULT_GOAWAY) {
		leave(exchange);
		stream->ops->goaway(stream, true);
	} else {
		exchange_end(exchange, fault.kind == FAULT_RESET ? STREAM_RESET : STREAM_CUT);
	}
}

static bool stops_here(const struct fault *fault)
{
	return fault->kind == FAULT_ANSWER || fault->kind == FAULT_RESET ||
	       (fault->kind == FAULT_GOAWAY && fault->refuse) ||
	       (fault->kind == FAULT_CUT && fault->point == POINT_BEFORE_WRITE);
}

static void hold(struct exchange *exchange)
{
	struct exchange **at = &exchange->proxy->holds;
	while (*at)
		at = &(*at)->next;
	*at = exchange;
	exchange->phase = PHASE_HELD;
}

static void on_timer(uv_timer_t *timer);

/* After the delay. */
static void proceed(struct exchange *exchange)
{
	if (stops_here(&exchange->fault)) {
		exchange->phase = PHASE_DRAIN;
		consume(exchange);
		if (exchange->body_ended)
			act(exchange);
		return;
	}
	if (exchange->fault.kind != FAULT_HOLD) {
		forward(exchange);
		return;
	}
	hold(exchange);
	uv_timer_start(&exchange->timer, on_timer, exchange->fault.ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct exchange *exchange = timer->data;
	switch (exchange->phase) {
	case PHASE_DELAY:
		proceed(exchange);
		break;
	case PHASE_HELD:
		exchange_effect(exchange, "expired");
		forward(exchange);
		break;
	case PHASE_SENT:
		gate_timer(exchange);
		exchange_update_pause(exchange);
		break;
	case PHASE_DRAIN:
	case PHASE_OVER:
		break;
	}
}

void exchange_start_timer(struct exchange *exchange, uint32_t ms, uint32_t repeat_ms)
{
	if (ms != FAULT_FOREVER)
		uv_timer_start(&exchange->timer, on_timer, ms, repeat_ms);
}

void exchange_body(struct exchange *exchange, const char *bytes, size_t len)
{
	exchange->unconsumed += len;
	if (exchange->phase == PHASE_SENT && exchange->call)
		upstream_write(exchange->call, bytes, len);
	else if (exchange->phase == PHASE_DELAY || exchange->phase == PHASE_HELD)
		strbuf_add(&exchange->body, bytes, len); /* no more than the window */
	if (exchange->phase == PHASE_SENT || exchange->phase == PHASE_DRAIN)
		consume(exchange);
}

void exchange_body_end(struct exchange *exchange)
{
	exchange->body_ended = true;
	if (exchange->phase == PHASE_SENT && exchange->call)
		upstream_write_end(exchange->call);
	else if (exchange->phase == PHASE_DRAIN)
		act(exchange);
}

/* /__proxy/stats, /__proxy/off, /__proxy/on */
static void control(struct stream *stream)
{
	struct proxy *proxy = stream->proxy;
	const char *word = stream->head.target + strlen(CONTROL);
	if (strcmp(word, "on") == 0 || strcmp(word, "off") == 0) {
		decider_switch(proxy->decider, strcmp(word, "on") == 0);
	} else if (strcmp(word, "stats") != 0) {
		answer_fault(stream, &(struct fault){ .status = 404 },
			     "the proxy has /__proxy/stats, /__proxy/on and /__proxy/off");
		return;
	}
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	proxy_stats(proxy, &text);
	answer_json(stream, text.s);
}

enum who { WHO_NOBODY, WHO_PROXY, WHO_SELF };

/* With the proxy's token, a client is who the proxy is; with another, who it says. */
static enum who authenticate(const struct stream *stream)
{
	const char *value = head_get(&stream->head, "authorization");
	if (!value)
		return WHO_NOBODY;
	bool ours = strncasecmp(value, "Bearer ", 7) == 0 &&
		    strcmp(value + 7, stream->proxy->token) == 0;
	return ours ? WHO_PROXY : WHO_SELF;
}

static struct exchange *exchange_new(struct stream *stream)
{
	struct proxy *proxy = stream->proxy;
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	if (!exchange)
		return NULL;
	if (target_read(stream->head.method, stream->head.target, &exchange->target) < 0) {
		free(exchange);
		return NULL;
	}
	exchange->proxy = proxy;
	exchange->stream = stream;
	exchange->order = ++proxy->exchanges;
	exchange->body = (struct strbuf)STRBUF_INIT;
	exchange->held = (struct strbuf)STRBUF_INIT;
	exchange->body_ended = !stream->head.has_body;
	uv_timer_init(proxy->loop, &exchange->timer);
	exchange->timer.data = exchange;
	stream->exchange = exchange;
	return exchange;
}

/* Asks for the fault, writes it down and begins with its delay. */
static void start(struct exchange *exchange)
{
	struct proxy *proxy = exchange->proxy;
	const struct stream *stream = exchange->stream;
	struct decision decision = { 0 };
	uint32_t delay_ms = 0;
	uint64_t now_ms = proxy_ms(proxy);
	if (decide(proxy->decider, &exchange->target, now_ms, &decision) < 0)
		record_lost(exchange, "out of memory");
	for (size_t i = 0; i < decision.count; i++) {
		if (decision.parts[i].fault.kind == FAULT_DELAY)
			delay_ms = decision.parts[i].fault.ms;
		else
			exchange->fault = decision.parts[i].fault;
	}
	if (decision.count > 0)
		exchange->seq = record_decision(
			proxy->record, now_ms,
			&(struct record_origin){ stream->conn, stream->id, stream->head.target },
			&exchange->target, &decision);
	if (delay_ms > 0)
		uv_timer_start(&exchange->timer, on_timer, delay_ms, 0);
	else
		proceed(exchange);
}

void exchange_begin(struct stream *stream)
{
	enum who who = authenticate(stream);
	if (who == WHO_NOBODY) {
		answer_fault(stream, &(struct fault){ .status = 401 }, NULL);
		return;
	}
	if (who == WHO_PROXY && strncmp(stream->head.target, CONTROL, strlen(CONTROL)) == 0) {
		control(stream);
		return;
	}
	struct exchange *exchange = exchange_new(stream);
	if (!exchange) {
		answer_fault(stream, &(struct fault){ .status = 500 }, "the path is too long");
		return;
	}
	exchange->as_config = who == WHO_PROXY;
	start(exchange);
}
