/* SPDX-License-Identifier: Apache-2.0 */
/* http_reply.c - what came back: headers, body, and how it ended. */
#include "base/attr.h"
#include "base/num.h"
#include "wire/http_parts.h"

#include <string.h>
#include <strings.h>
#include <time.h>

void http_reply_reset(struct http_call *call)
{
	call->status = 0;
	call->content_type[0] = '\0';
	call->retry_after_s = -1;
	call->warnings_count = 0;
	strbuf_reset(&call->warnings);
	strbuf_reset(&call->body);
	http_inflate_free(call->inflate);
	call->inflate = NULL;
}

/* Something has come for this call. */
static void heard(struct http_call *call)
{
	call->heard_ms = uv_now(call->http->loop);
}

/* Interim replies (1xx) come before the real one. */
void http_reply_status(struct http_call *call, int status)
{
	heard(call);
	http_reply_reset(call);
	call->status = status;
}

/* Seconds, or a date, of which the time from now is taken. */
static int64_t retry_after(const char *value, size_t len)
{
	char text[64];
	int64_t seconds;

	if (parse_i64(value, len, &seconds) == 0)
		return seconds < 0 ? -1 : seconds;
	if (len >= sizeof(text))
		return -1;
	memcpy(text, value, len);
	text[len] = '\0';
	time_t date = curl_getdate(text, NULL);
	return date < 0 ? -1 : MAX((int64_t)date - (int64_t)time(NULL), 0);
}

static void take_warning(struct http_call *call, const char *value, size_t len)
{
	if (call->warnings_count == HTTP_WARNINGS_MAX)
		return;
	strbuf_add(&call->warnings, value, MIN(len, HTTP_WARNING_BYTES));
	strbuf_putc(&call->warnings, '\0');
	if (!call->warnings.failed)
		call->warnings_count++;
}

static bool is_header(const char *name, size_t len, const char *known)
{
	return strlen(known) == len && strncasecmp(name, known, len) == 0;
}

void http_reply_field(struct http_call *call, const char *name, size_t name_len, const char *value,
		      size_t len)
{
	if (is_header(name, name_len, "content-type")) {
		len = MIN(len, sizeof(call->content_type) - 1);
		memcpy(call->content_type, value, len);
		call->content_type[len] = '\0';
	} else if (is_header(name, name_len, "retry-after")) {
		call->retry_after_s = retry_after(value, len);
	} else if (is_header(name, name_len, "warning")) {
		take_warning(call, value, len);
	}
}

static bool gather(struct http_call *call, const char *bytes, size_t len)
{
	size_t max = call->request.max_bytes ? call->request.max_bytes : HTTP_BODY_BYTES;

	call->body.max = max;
	if (len > max - call->body.len) {
		call->too_big = true;
		return false;
	}
	strbuf_add(&call->body, bytes, len);
	call->no_memory = call->body.failed;
	return !call->no_memory;
}

static bool stream(struct http_call *call, const char *bytes, size_t len)
{
	size_t max = call->request.max_bytes;

	call->streamed += len;
	if (max && call->streamed > max) {
		call->too_big = true;
		return false;
	}
	if (call->request.data(call->request.context, bytes, len) == 0)
		return !call->cancelled;
	call->stopped = true;
	return false;
}

bool http_reply_body(struct http_call *call, const char *bytes, size_t len)
{
	heard(call);
	bool streams = call->request.data && call->status >= 200 && call->status < 300;
	return streams ? stream(call, bytes, len) : gather(call, bytes, len);
}

/* The TLS library's words for alerts about certificates, of GnuTLS and of OpenSSL. */
static bool is_certificate_alert(const char *reason)
{
	static const char *const words[] = { "certificate", "CA is unknown", "unknown ca",
					     "access was denied", "access denied" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasestr(reason, words[i]))
			return true;
	return false;
}

static bool is_refusal(const struct http_call *call, CURLcode code)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CRL_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
	case CURLE_SSL_CLIENTCERT:
		return true;
	case CURLE_SSL_CONNECT_ERROR:
		return is_certificate_alert(call->reason);
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
		/* TLS 1.3: a client is through with the handshake before the server has
		 * looked at its certificate, so the alert meets a request on its way. */
		return call->fresh && !call->status && strcasestr(call->reason, "alert");
	default:
		return false;
	}
}

enum http_result http_reply_result(const struct http_call *call, CURLcode code)
{
	if (call->too_big)
		return HTTP_TOO_BIG;
	if (call->stopped)
		return HTTP_STOPPED;
	if (code == CURLE_OK && call->status)
		return HTTP_ANSWERED;
	/* A refusal is of the last connection.  A write may have gone over another before,
	 * or have met an alert about something else than certificates: it is in doubt. */
	if ((call->sends == 0 || call->safe) && is_refusal(call, code))
		return HTTP_REFUSED;
	return call->sends == 0 ? HTTP_NOT_SENT : HTTP_LOST;
}

const char *http_reply_reason(const struct http_call *call, enum http_result result, CURLcode code)
{
	if (result == HTTP_ANSWERED)
		return "";
	if (result == HTTP_TOO_BIG)
		return "the reply is too big";
	if (result == HTTP_STOPPED)
		return "stopped by its reader";
	if (result == HTTP_DEADLINE)
		return "no answer in time";
	if (call->no_memory)
		return "out of memory";
	/* Our own answer to libcurl's wish to send once more. */
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return "the connection broke before the reply";
	return call->reason[0] ? call->reason : curl_easy_strerror(code);
}
