/* SPDX-License-Identifier: Apache-2.0 */
/* From an HTTP reply to a kube_reply. */
#include "kube/client_private.h"

#include "base/attr.h"
#include "wire/http.h"
#include "wire/json.h"

#include <string.h>

/* A page of 500 pods has 5 to 10 MiB and less than half a million values. */
static const struct json_limits limits = { .max_bytes = KUBE_BODY_MAX };

static struct json_doc *parse(const struct http_reply *reply, struct err *err)
{
	struct json_doc *doc = NULL;
	if (reply->len && reply->body)
		json_parse("reply", reply->body, reply->len, &limits, &doc, err);
	return doc;
}

bool call_version_is_too_large(const struct http_reply *reply)
{
	if (reply->result != HTTP_ANSWERED || reply->status != 504)
		return false;
	struct json_doc *doc CLEANUP(json_doc_freep) = parse(reply, NULL);
	return doc && kube_reason_of(504, json_root(doc)) == KUBE_VERSION_TOO_LARGE;
}

/* `cannot create Lease locks/gpus-n1: Forbidden: ` */
static void begin_message(const struct kube_call *call, enum kube_reason reason,
			  struct strbuf *out)
{
	strbuf_addf(out, "cannot %s %.512s: %s: ", call->verb, call->what,
		    kube_reason_name(reason));
}

/* Of a reply that is whole. */
static void report_answer(const struct kube_call *call, const struct http_reply *http,
			  const struct json_doc *doc, const struct err *parse_err,
			  struct kube_reply *reply, struct strbuf *message)
{
	const struct json *root = doc ? json_root(doc) : NULL;
	reply->reason = kube_reason_of(http->status, root);
	if (reply->reason == KUBE_OK) {
		reply->bytes = http->body;
		reply->len = http->len;
		reply->body = root;
		if (call->raw || call->stream || !http->len || doc)
			return;
		reply->reason = KUBE_MALFORMED;
		begin_message(call, KUBE_MALFORMED, message);
		strbuf_puts(message, parse_err->text);
		return;
	}
	if (!call->retry.reads && (reply->reason == KUBE_SERVER_ERROR || call->retry.maybe_done))
		reply->reason = KUBE_UNKNOWN;
	begin_message(call, reply->reason, message);
	kube_reply_say(message, http->status, root, http->body, http->len);
}

static enum kube_reason reason_of_result(const struct kube_call *call, enum http_result result)
{
	switch (result) {
	case HTTP_NOT_SENT:
	case HTTP_REFUSED:
		if (call->retry.maybe_done)
			return KUBE_UNKNOWN;
		return call->no_credentials ? KUBE_NO_CREDENTIALS : KUBE_UNREACHABLE;
	case HTTP_TOO_BIG:
	case HTTP_STOPPED:
		return KUBE_MALFORMED;
	default:
		return call->retry.reads ? KUBE_SERVER_ERROR : KUBE_UNKNOWN;
	}
}

void call_report(struct kube_call *call, const struct http_reply *http)
{
	struct strbuf message CLEANUP(strbuf_done) = STRBUF_INIT_MAX(4 * KUBE_SAID_MAX);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct kube_reply reply = {
		.code = http->status,
		.retry_after_s = http->retry_after_s,
		.tries = call->retry.tries,
		.bytes = "",
		.message = "",
	};
	if (http->result == HTTP_ANSWERED) {
		struct err err = ERR_INIT;
		bool ok = http->status >= 200 && http->status < 300;
		if (!ok || (!call->raw && !call->stream))
			doc = parse(http, &err);
		report_answer(call, http, doc, &err, &reply, &message);
	} else {
		reply.reason = reason_of_result(call, http->result);
		begin_message(call, reply.reason, &message);
		strbuf_puts(&message, http->reason[0] ? http->reason : "no answer");
	}
	reply.message = message.s ? message.s : "";
	call->done(call->context, &reply);
}
