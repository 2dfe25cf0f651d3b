/* SPDX-License-Identifier: Apache-2.0 */
#include "answer.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "stream.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <string.h>

static const struct {
	uint32_t code;
	const char *reason, *message;
} words[] = {
	{ 400, "BadRequest", "the fault proxy does not like this request" },
	{ 401, "Unauthorized", "Unauthorized" },
	{ 403, "Forbidden", "the fault proxy forbids it" },
	{ 404, "NotFound", "the fault proxy cannot find it" },
	{ 409, "Conflict",
	  "Operation cannot be fulfilled: the object has been modified; please apply your changes "
	  "to the latest version and try again" },
	{ 410, "Expired", "too old resource version: 1 (2)" },
	{ 429, "TooManyRequests", "Too many requests, please try again later." },
	{ 500, "InternalError", "Internal error occurred: by the fault proxy" },
	{ 503, "ServiceUnavailable", "the server is currently unable to handle the request" },
	{ 504, "Timeout", "Timeout: request did not complete within the allotted timeout" },
};

static const char html[] = "<html>\r\n<head><title>%u Bad Gateway</title></head>\r\n"
			   "<body><center><h1>%u Bad Gateway</h1></center></body>\r\n</html>\r\n";

static void add_str(struct json_writer *w, const char *key, const char *s)
{
	json_add_key(w, key);
	json_add_str(w, s);
}

static void add_status(struct json_writer *w, const struct fault *fault, const char *message)
{
	const char *reason = "";
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].code != fault->status)
			continue;
		reason = words[i].reason;
		message = message ? message : words[i].message;
	}
	json_open_object(w);
	add_str(w, "kind", "Status");
	add_str(w, "apiVersion", "v1");
	json_add_key(w, "metadata");
	json_open_object(w);
	json_close_object(w);
	add_str(w, "status", "Failure");
	add_str(w, "message", message ? message : "by the fault proxy");
	add_str(w, "reason", reason);
	if (fault->retry_after_s) {
		json_add_key(w, "details");
		json_open_object(w);
		json_add_key(w, "retryAfterSeconds");
		json_add_u64(w, fault->retry_after_s);
		json_close_object(w);
	}
	json_add_key(w, "code");
	json_add_u64(w, fault->status);
	json_close_object(w);
}

static void add_body(struct strbuf *out, const struct fault *fault, const char *message)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	if (fault->form == FORM_HTML) {
		strbuf_addf(out, html, fault->status, fault->status);
		return;
	}
	if (fault->form == FORM_EVENT) {
		json_open_object(&w);
		add_str(&w, "type", "ERROR");
		json_add_key(&w, "object");
	}
	add_status(&w, fault, message);
	if (fault->form == FORM_EVENT)
		json_close_object(&w);
	strbuf_putc(out, '\n');
}

static void send(struct stream *stream, int status, const struct strbuf *body,
		 const char *content_type, uint32_t retry_after_s)
{
	char length[32];
	char after[32];
	snprintf(length, sizeof(length), "%zu", body->len);
	snprintf(after, sizeof(after), "%u", retry_after_s);
	const struct header headers[] = { { "content-type", content_type },
					  { "content-length", length },
					  { "retry-after", after } };
	const struct head head = { .status = status,
				   .headers = headers,
				   .count = retry_after_s ? 3 : 2,
				   .length = (int64_t)body->len,
				   .has_body = strcmp(stream->head.method, "HEAD") != 0 };
	stream->ops->head(stream, &head);
	if (head.has_body)
		stream->ops->body(stream, body->s, body->len);
	stream->ops->end(stream, STREAM_WHOLE);
}

void answer_fault(struct stream *stream, const struct fault *fault, const char *message)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	add_body(&body, fault, message);
	bool event = fault->form == FORM_EVENT;
	send(stream, event ? 200 : (int)fault->status, &body,
	     fault->form == FORM_HTML ? "text/html" : "application/json", fault->retry_after_s);
}

void answer_json(struct stream *stream, const char *json)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&body, "%s\n", json);
	send(stream, 200, &body, "application/json", 0);
}
