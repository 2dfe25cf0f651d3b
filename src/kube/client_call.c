/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one call: credentials, the try, its end, another try. */
#include "kube/client_private.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/vec.h"
#include "kube/config.h"
#include "kube/telemetry.h"
#include "wire/http.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

void call_free(struct kube_call *call)
{
	heap_remove(&call->client->due, call->position);
	free(call->failure);
	free(call);
}

/* The call has ended, with this. */
static void finish(struct kube_call *call, const struct http_reply *reply)
{
	struct kube_client *client = call->client;
	client_take_out(call);
	/* out of every list, so that done() may close the client or send again */
	heap_remove(&client->due, call->position);
	call_report(call, reply);
	free(call->failure);
	free(call);
	client_pump(client);
}

static void judge(struct kube_call *call, const struct http_reply *reply)
{
	struct kube_client *client = call->client;
	uint32_t wait_ms = 0;
	enum retry_verdict verdict = retry_judge(&call->retry, reply, &client->rng, &wait_ms);
	if (verdict == RETRY_CREDENTIALS)
		kube_credentials_refused(client->credentials, call->auth_generation);
	else if (verdict == RETRY_TLS)
		kube_credentials_tls_failed(client->credentials);
	client_note_problem(client);
	if (!call->no_credentials)
		client_note_reach(client, reply);
	if (verdict == RETRY_LATER && call_version_is_too_large(reply))
		verdict = RETRY_NO;
	uint64_t left_ms = call->give_up_ms - MIN(client_now_ms(client), call->give_up_ms);
	if (verdict == RETRY_NO || call->stream || wait_ms >= left_ms) {
		finish(call, reply);
		return;
	}
	kube_telemetry_retry(client->telemetry, call->verb, reply->status);
	free(call->failure);
	call->failure = NULL;
	if (verdict == RETRY_LATER)
		client_pause(call, wait_ms);
	else
		client_requeue(call);
	client_pump(client);
}

/* For tests of what a crash leaves behind: the server has done it, and nobody here knows. */
static void count_write(struct kube_client *client, const struct kube_call *call,
			const struct http_reply *reply)
{
	if (reply->status < 200 || reply->status > 299 || strcmp(call->method, "GET") == 0)
		return;
	if (++client->writes == client->options.stop_after_writes)
		raise(SIGKILL);
}

static void answered(void *context, const struct http_reply *reply)
{
	struct kube_call *call = context;
	struct kube_client *client = call->client;
	call->http = NULL;
	count_write(client, call, reply);
	uint64_t took_ns = clock_monotonic_ns(client->options.clock) - call->sent_ns;
	kube_telemetry_request(client->telemetry, call->verb, call->resource, reply->status,
			       call->stream ? 0 : took_ns);
	client_note_warnings(client, reply);
	judge(call, reply);
}

/* The reader may cancel the call, so nothing of it is touched afterwards. */
static int taken(void *context, const char *bytes, size_t len)
{
	struct kube_call *call = context;
	client_note_answer(call->client);
	return call->data(call->context, bytes, len);
}

/* Why it was not even sent: told in a moment, from the loop. */
static void fail(struct kube_call *call, const struct err *err, bool no_credentials)
{
	call->failure = malloc(sizeof(*call->failure));
	if (call->failure)
		*call->failure = *err;
	call->no_credentials = no_credentials;
	client_pause(call, 0);
}

static void report_failure(struct kube_call *call, const char *why)
{
	struct http_reply reply = {
		.result = HTTP_NOT_SENT,
		.body = "",
		.content_type = "",
		.retry_after_s = -1,
		.reason = why,
	};
	judge(call, &reply);
}

static void give_up(struct kube_call *call)
{
	struct http_reply reply = {
		.result = HTTP_NOT_SENT,
		.body = "",
		.content_type = "",
		.retry_after_s = -1,
		.reason = "no answer in the time given",
	};
	kube_auth_cancel(&call->wait);
	finish(call, &reply);
}

void call_is_due(struct kube_call *call)
{
	bool failed = call->failure != NULL;
	if (call->state != CALL_PAUSED)
		give_up(call);
	else if (failed)
		report_failure(call, call->failure->text);
	else
		client_requeue(call);
}

struct headers {
	VEC(const char *) lines;
	struct strbuf authorization, accept, content_type;
};

static void headers_done(struct headers *headers)
{
	vec_done(&headers->lines);
	strbuf_done(&headers->authorization);
	strbuf_done(&headers->accept);
	strbuf_done(&headers->content_type);
}

static int headers_make(struct headers *headers, const struct kube_call *call,
			const struct kube_auth *auth)
{
	if (vec_reserve(&headers->lines, auth->impersonate_count + 3) < 0)
		return -ENOMEM;
	strbuf_addf(&headers->accept, "Accept: %s", call->accept);
	headers->lines.items[headers->lines.len++] = headers->accept.s;
	if (auth->authorization) {
		strbuf_addf(&headers->authorization, "Authorization: %s", auth->authorization);
		headers->lines.items[headers->lines.len++] = headers->authorization.s;
	}
	if (call->body) {
		strbuf_addf(&headers->content_type, "Content-Type: %s", call->content_type);
		headers->lines.items[headers->lines.len++] = headers->content_type.s;
	}
	for (size_t i = 0; i < auth->impersonate_count; i++)
		headers->lines.items[headers->lines.len++] = auth->impersonate[i];
	bool failed = headers->accept.failed || headers->authorization.failed ||
		      headers->content_type.failed;
	return failed ? -ENOMEM : 0;
}

/* Of this try: the call's own, or what is left for all of them. */
static uint32_t deadline_of_try(const struct kube_call *call)
{
	if (call->give_up_ms == NEVER_MS || call->stream)
		return call->deadline_ms;
	uint64_t now_ms = client_now_ms(call->client);
	uint64_t left_ms = call->give_up_ms > now_ms ? call->give_up_ms - now_ms : 1;
	return (uint32_t)MIN(left_ms, call->deadline_ms);
}

static int fly(struct kube_call *call, const struct kube_auth *auth, struct err *err)
{
	struct kube_client *client = call->client;
	struct connections *connections = client_connect(client, auth, err);
	if (!connections)
		return -err->code;
	struct strbuf url CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_puts(&url, client->options.config->server);
	strbuf_puts(&url, call->path);
	struct headers headers CLEANUP(headers_done) = { .authorization = STRBUF_INIT,
							 .accept = STRBUF_INIT,
							 .content_type = STRBUF_INIT };
	if (headers_make(&headers, call, auth) < 0 || url.failed)
		return err_set(err, ENOMEM, "out of memory");
	struct http_request request = {
		.method = call->method,
		.url = url.s,
		.headers = headers.lines.items,
		.headers_count = headers.lines.len,
		.body = call->body,
		.body_len = call->body_len,
		.deadline_ms = deadline_of_try(call),
		.idle_ms = call->idle_ms,
		/* a stream is not gathered: who reads it bounds what it keeps */
		.max_bytes = call->stream ? 0
			     : call->gzip ? KUBE_BODY_MAX
					  : CLIENT_WRITE_REPLY_MAX,
		.gzip = call->gzip && !client->options.config->disable_compression,
		.data = call->stream ? taken : NULL,
		.done = answered,
		.context = call,
	};
	return http_start(call->stream ? connections->watch : connections->rest, &request,
			  &call->http, err);
}

static void authorized(void *context, const struct kube_auth *auth, const struct err *auth_err)
{
	struct kube_call *call = context;
	struct err err = ERR_INIT;
	client_note_problem(call->client);
	if (!auth) {
		fail(call, auth_err, true);
		return;
	}
	call->state = CALL_FLYING;
	call->auth_generation = auth->generation;
	call->sent_ns = clock_monotonic_ns(call->client->options.clock);
	client_set_due(call, NEVER_MS); /* from here on the try has its own deadline */
	if (fly(call, auth, &err) < 0)
		fail(call, &err, false);
}

void call_start(struct kube_call *call)
{
	call->state = CALL_ASKING;
	call->no_credentials = false;
	call->wait = (struct kube_auth_wait){ .ready = authorized, .context = call };
	kube_credentials_get(call->client->credentials, &call->wait);
}
