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
}

static const char *skip_blanks(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	return s;
}

/* "HTTP/1.1 200 OK", "HTTP/2 200": interim replies (1xx) come before the real one. */
static void status_line(struct http_call *call, const char *line, const char *end)
{
	const char *blank = memchr(line, ' ', (size_t)(end - line));
	int32_t status = 0;

	http_reply_reset(call);
	if (blank && end - blank >= 4)
		parse_i32(blank + 1, 3, &status);
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

static void take_header(struct http_call *call, const char *line, const char *end)
{
	const char *colon = memchr(line, ':', (size_t)(end - line));
	if (!colon)
		return;
	const char *value = skip_blanks(colon + 1, end);
	size_t name_len = (size_t)(colon - line), len = (size_t)(end - value);

	if (is_header(line, name_len, "content-type")) {
		len = MIN(len, sizeof(call->content_type) - 1);
		memcpy(call->content_type, value, len);
		call->content_type[len] = '\0';
	} else if (is_header(line, name_len, "retry-after")) {
		call->retry_after_s = retry_after(value, len);
	} else if (is_header(line, name_len, "warning")) {
		take_warning(call, value, len);
	}
}

/* Something has come for this call. */
static void heard(struct http_call *call)
{
	call->heard_ms = uv_now(call->http->loop);
}

size_t http_reply_header(char *line, size_t size, size_t count, void *context)
{
	struct http_call *call = context;
	const char *end = line + size * count;

	if (call->cancelled)
		return CURL_WRITEFUNC_ERROR;
	heard(call);
	while (end > line && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (end - line >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		struct http_socket *socket = http_socket_find(call->http, call->fd);
		if (socket && socket->serial == call->serial)
			socket->answered = true;
		status_line(call, line, end);
	} else {
		take_header(call, line, end);
	}
	return size * count;
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

size_t http_reply_body(char *bytes, size_t size, size_t count, void *context)
{
	struct http_call *call = context;
	size_t len = size * count;

	if (call->cancelled)
		return CURL_WRITEFUNC_ERROR;
	heard(call);
	bool streams = call->request.data && call->status >= 200 && call->status < 300;
	bool taken = streams ? stream(call, bytes, len) : gather(call, bytes, len);
	return taken ? len : CURL_WRITEFUNC_ERROR;
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
		return call->sends ? "no answer in time" : "no connection in time";
	if (call->no_memory)
		return "out of memory";
	/* Our own answer to libcurl's wish to send once more. */
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return "the connection broke before the reply";
	return call->reason[0] ? call->reason : curl_easy_strerror(code);
}
