/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "identity.h"
#include "tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MAX_MS 20000 /* well below what the API server allows */

/* A connection: idle in a list of the upstream's, or with its call. */
struct link {
	struct upstream *upstream;
	struct tls *tls;
	struct upstream_call *call; /* NULL: idle */
	struct h1 h1;
	bool ready, as_config;
	bool busy, gone; /* inside on_data(); to be freed after it */
	uint64_t idle_since_ms;
	struct link *next, **at; /* in the list of all links */
};

struct upstream_call {
	struct link *link;
	const struct upstream_callbacks *callbacks;
	void *context;
	struct strbuf waiting; /* until the connection is ready */
	bool chunked;	       /* the request's body */
	bool request_ended, sent, paused;
};

struct upstream {
	uv_loop_t *loop;
	struct identity identity;
	struct link *links;
};

int upstream_new(uv_loop_t *loop, const struct kube_config *config, struct upstream **ret,
		 struct err *err)
{
	struct upstream *upstream = calloc(1, sizeof(*upstream));
	if (!upstream)
		return err_set(err, ENOMEM, "out of memory");
	upstream->loop = loop;
	int result = identity_load(config, &upstream->identity, err);
	if (result < 0) {
		free(upstream);
		return result;
	}
	*ret = upstream;
	return 0;
}

static void call_free(struct upstream_call *call)
{
	strbuf_done(&call->waiting);
	free(call);
}

static void link_free(struct link *link)
{
	h1_done(&link->h1);
	free(link);
}

/* Out of the list, and its memory too unless somebody is still looking at it. */
static void link_drop(struct link *link)
{
	*link->at = link->next;
	if (link->next)
		link->next->at = link->at;
	link->gone = true;
	if (!link->busy)
		link_free(link);
}

static void link_close(struct link *link)
{
	tls_close(link->tls);
	link_drop(link);
}

void upstream_close(struct upstream *upstream)
{
	while (upstream->links) {
		if (upstream->links->call)
			call_free(upstream->links->call);
		link_close(upstream->links);
	}
}

void upstream_free(struct upstream *upstream)
{
	if (!upstream)
		return;
	identity_done(&upstream->identity);
	free(upstream);
}

/* The end of a call; the link is gone or idle before the callback. */
static void call_end(struct upstream_call *call, const char *reason)
{
	const struct upstream_callbacks *callbacks = call->callbacks;
	void *context = call->context;
	bool sent = call->sent;
	call_free(call);
	callbacks->end(context, reason, sent);
}

/* The reply is whole; `left` bytes came after it, which is nothing a server should do. */
static void finish_reply(struct link *link, size_t left)
{
	struct upstream_call *call = link->call;
	link->call = NULL;
	/* A server that answers before it has read all of a request is not asked again
	 * on that connection. */
	if (link->h1.close || !call->request_ended || left > 0) {
		link_close(link);
	} else {
		tls_pause(link->tls, false);
		link->idle_since_ms = uv_now(link->upstream->loop);
	}
	call_end(call, "");
}

/* One step of the reply.  False: there are no more, or nobody is there to take them. */
static bool read_reply(struct link *link, const char **bytes, size_t *len)
{
	struct upstream_call *call = link->call;
	struct h1_piece body;
	struct err err = ERR_INIT;
	switch (h1_next(&link->h1, bytes, len, &body, &err)) {
	case H1_MORE:
		return false;
	case H1_HEAD:
		if (link->h1.head.status >= 200)
			call->callbacks->head(call->context, &link->h1.head);
		break;
	case H1_BODY:
		call->callbacks->data(call->context, body.bytes, body.len);
		break;
	case H1_END:
		if (link->h1.head.status < 200)
			break;
		finish_reply(link, *len);
		return false;
	case H1_BAD:
		link_close(link);
		call_end(call, err.text);
		return false;
	}
	return !link->gone;
}

static void on_data(void *context, const char *bytes, size_t len)
{
	struct link *link = context;
	if (!link->call) { /* nobody has asked */
		link_close(link);
		return;
	}
	link->busy = true;
	while (read_reply(link, &bytes, &len))
		;
	link->busy = false;
	if (link->gone)
		link_free(link);
}

static void on_drained(void *context)
{
	const struct link *link = context;
	if (link->call)
		link->call->callbacks->drained(link->call->context);
}

static void on_closed(void *context, const char *reason)
{
	struct link *link = context;
	struct upstream_call *call = link->call;
	bool whole = call && h1_is_inside(&link->h1) && h1_eof(&link->h1);
	link_drop(link);
	if (call)
		call_end(call, whole ? "" : *reason ? reason : "the server has closed");
}

static void on_ready(void *context)
{
	struct link *link = context;
	struct upstream_call *call = link->call;
	link->ready = true;
	if (!call)
		return;
	if (call->waiting.failed) {
		link_close(link);
		call_end(call, "out of memory");
		return;
	}
	tls_pause(link->tls, call->paused);
	call->sent = true;
	tls_write(link->tls, call->waiting.s, call->waiting.len);
	strbuf_done(&call->waiting);
	call->callbacks->drained(call->context);
}

static const struct tls_callbacks callbacks = {
	.ready = on_ready,
	.data = on_data,
	.drained = on_drained,
	.closed = on_closed,
};

static struct link *link_new(struct upstream *upstream, bool as_config)
{
	struct link *link = calloc(1, sizeof(*link));
	if (!link)
		return NULL;
	const struct identity *identity = &upstream->identity;
	const struct tls_side side = {
		.loop = upstream->loop,
		.credentials = as_config ? identity->credentials : identity->nobody,
		.server_name = identity->server_name,
		.callbacks = &callbacks,
		.context = link,
	};
	if (tls_connect((const struct sockaddr *)&identity->address, &side, &link->tls, NULL) <
	    0) {
		free(link);
		return NULL;
	}
	link->upstream = upstream;
	link->as_config = as_config;
	h1_init(&link->h1, H1_REPLIES);
	link->next = upstream->links;
	link->at = &upstream->links;
	if (link->next)
		link->next->at = &link->next;
	upstream->links = link;
	return link;
}

/* An idle connection of that identity, or a new one. */
static struct link *link_get(struct upstream *upstream, bool as_config)
{
	uint64_t now_ms = uv_now(upstream->loop);
	for (struct link *link = upstream->links, *next; link; link = next) {
		next = link->next;
		if (link->call || !link->ready)
			continue;
		if (now_ms - link->idle_since_ms > IDLE_MAX_MS)
			link_close(link);
		else if (link->as_config == as_config)
			return link;
	}
	return link_new(upstream, as_config);
}

static void send_bytes(struct upstream_call *call, const char *bytes, size_t len)
{
	if (call->link->ready)
		tls_write(call->link->tls, bytes, len);
	else
		strbuf_add(&call->waiting, bytes, len);
}

static void write_head(struct upstream_call *call, const struct head *request,
		       const struct identity *identity, bool as_config)
{
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&out, "%s %s%s HTTP/1.1\r\nHost: %s\r\n", request->method, identity->prefix,
		    request->target, identity->host);
	for (size_t i = 0; i < request->count; i++) {
		const struct header *header = &request->headers[i];
		if (header->name[0] == ':' || header_is_of_hop(header->name) ||
		    (as_config && strcmp(header->name, "authorization") == 0))
			continue;
		strbuf_addf(&out, "%s: %s\r\n", header->name, header->value);
	}
	if (as_config && identity->authorization)
		strbuf_addf(&out, "Authorization: %s\r\n", identity->authorization);
	call->chunked = request->has_body && request->length < 0;
	strbuf_puts(&out, call->chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
	send_bytes(call, out.s, out.len);
}

struct upstream_call *upstream_start(struct upstream *upstream, const struct head *request,
				     bool as_config, const struct upstream_callbacks *call_backs,
				     void *context)
{
	struct link *link = link_get(upstream, as_config);
	struct upstream_call *call = link ? calloc(1, sizeof(*call)) : NULL;
	if (!call)
		return NULL; /* a new link stays, idle */
	*call = (struct upstream_call){ .link = link,
					.callbacks = call_backs,
					.context = context,
					.waiting = STRBUF_INIT,
					.sent = link->ready };
	link->call = call;
	link->h1.bodyless = strcmp(request->method, "HEAD") == 0;
	write_head(call, request, &upstream->identity, as_config);
	return call;
}

void upstream_write(struct upstream_call *call, const char *bytes, size_t len)
{
	char size[24];
	if (len == 0)
		return;
	if (call->chunked) {
		snprintf(size, sizeof(size), "%zx\r\n", len);
		send_bytes(call, size, strlen(size));
	}
	send_bytes(call, bytes, len);
	if (call->chunked)
		send_bytes(call, "\r\n", 2);
}

void upstream_write_end(struct upstream_call *call)
{
	if (call->chunked)
		send_bytes(call, "0\r\n\r\n", 5);
	call->request_ended = true;
}

size_t upstream_pending(const struct upstream_call *call)
{
	return call->link->ready ? tls_pending(call->link->tls) : call->waiting.len;
}

void upstream_pause(struct upstream_call *call, bool paused)
{
	call->paused = paused;
	if (call->link->ready)
		tls_pause(call->link->tls, paused);
}

void upstream_cancel(struct upstream_call *call)
{
	struct link *link = call->link;
	call_free(call);
	link->call = NULL;
	link_close(link);
}
