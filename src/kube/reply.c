/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/reply.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "wire/json.h"

#include <string.h>

static const char *const names[KUBE_REASONS] = {
	[KUBE_OK] = "OK",
	[KUBE_ALREADY_EXISTS] = "AlreadyExists",
	[KUBE_CONFLICT] = "Conflict",
	[KUBE_NOT_FOUND] = "NotFound",
	[KUBE_EXPIRED] = "Expired",
	[KUBE_INVALID] = "Invalid",
	[KUBE_BAD_REQUEST] = "BadRequest",
	[KUBE_UNAUTHORIZED] = "Unauthorized",
	[KUBE_FORBIDDEN] = "Forbidden",
	[KUBE_TOO_MANY_REQUESTS] = "TooManyRequests",
	[KUBE_VERSION_TOO_LARGE] = "ResourceVersionTooLarge",
	[KUBE_SERVER_ERROR] = "ServerError",
	[KUBE_UNREACHABLE] = "Unreachable",
	[KUBE_UNKNOWN] = "Unknown",
	[KUBE_MALFORMED] = "Malformed",
	[KUBE_NO_CREDENTIALS] = "NoCredentials",
};

/* The words of metav1.StatusReason, with the class of code that each comes with. */
static const struct {
	const char *word;
	enum kube_reason reason;
	int class;
} words[] = {
	{ "AlreadyExists", KUBE_ALREADY_EXISTS, 4 },
	{ "BadRequest", KUBE_BAD_REQUEST, 4 },
	{ "Conflict", KUBE_CONFLICT, 4 },
	{ "Expired", KUBE_EXPIRED, 4 },
	{ "Forbidden", KUBE_FORBIDDEN, 4 },
	{ "Gone", KUBE_EXPIRED, 4 },
	{ "InternalError", KUBE_SERVER_ERROR, 5 },
	{ "Invalid", KUBE_INVALID, 4 },
	{ "MethodNotAllowed", KUBE_BAD_REQUEST, 4 },
	{ "NotAcceptable", KUBE_BAD_REQUEST, 4 },
	{ "NotFound", KUBE_NOT_FOUND, 4 },
	{ "RequestEntityTooLarge", KUBE_BAD_REQUEST, 4 },
	{ "ServerTimeout", KUBE_SERVER_ERROR, 5 },
	{ "ServiceUnavailable", KUBE_SERVER_ERROR, 5 },
	{ "StoreReadError", KUBE_SERVER_ERROR, 5 },
	{ "Timeout", KUBE_SERVER_ERROR, 5 },
	{ "TooManyRequests", KUBE_TOO_MANY_REQUESTS, 4 },
	{ "Unauthorized", KUBE_UNAUTHORIZED, 4 },
	{ "UnsupportedMediaType", KUBE_BAD_REQUEST, 4 },
};

const char *kube_reason_name(enum kube_reason reason)
{
	return (unsigned)reason < KUBE_REASONS ? names[reason] : "Unknown";
}

static enum kube_reason reason_of_code(int code)
{
	switch (code) {
	case 401:
		return KUBE_UNAUTHORIZED;
	case 403:
		return KUBE_FORBIDDEN;
	case 404:
		return KUBE_NOT_FOUND;
	case 409:
		return KUBE_CONFLICT;
	case 410:
		return KUBE_EXPIRED;
	case 422:
		return KUBE_INVALID;
	case 429:
		return KUBE_TOO_MANY_REQUESTS;
	default:
		if (code >= 200 && code < 300)
			return KUBE_OK;
		return code >= 300 && code < 500 ? KUBE_BAD_REQUEST : KUBE_SERVER_ERROR;
	}
}

/* The cause since 1.18; the message is all that some servers give. */
static bool version_is_too_large(const struct json *status)
{
	struct json_iter causes = json_items(status, "details", "causes");
	for (const struct json *cause; (cause = json_next(&causes));) {
		const char *reason = json_str(cause, "reason");
		if (reason && strcmp(reason, "ResourceVersionTooLarge") == 0)
			return true;
	}
	const char *message = json_str(status, "message");
	return message && strstr(message, "Too large resource version");
}

enum kube_reason kube_reason_of(int code, const struct json *status)
{
	const char *kind = json_str(status, "kind");
	const char *word = json_str(status, "reason");
	if ((code >= 200 && code < 300) || !kind || strcmp(kind, "Status") != 0 || !word)
		return reason_of_code(code);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(words[i].word, word) != 0 || (code && words[i].class != code / 100))
			continue;
		if (strcmp(word, "Timeout") == 0 && version_is_too_large(status))
			return KUBE_VERSION_TOO_LARGE;
		return words[i].reason;
	}
	return reason_of_code(code);
}

int64_t kube_status_retry_after_s(const struct json *status)
{
	int64_t seconds;
	if (json_i64(status, &seconds, "details", "retryAfterSeconds") < 0 || seconds <= 0)
		return -1;
	return seconds;
}

/* Text of others as one line: no control characters, no half characters. */
static void add_line(struct strbuf *out, const char *bytes, size_t len)
{
	size_t end = MIN(len, KUBE_SAID_MAX);
	for (size_t i = 0; i < end;) {
		size_t n = utf8_length(bytes + i, len - i);
		if (i + n > end)
			break;
		if (n == 0 || (n == 1 && ((unsigned char)bytes[i] < ' ' || bytes[i] == 0x7f)))
			strbuf_putc(out, ' ');
		else
			strbuf_add(out, bytes + i, n);
		i += n ? n : 1;
	}
}

void kube_reply_say(struct strbuf *out, int code, const struct json *status, const char *bytes,
		    size_t len)
{
	size_t message_len = 0;
	const char *message = json_strn(status, &message_len, "message");
	if (message && message_len) {
		add_line(out, message, message_len);
		return;
	}
	strbuf_addf(out, "the server answered %d", code);
	while (len && strchr(" \t\r\n", bytes[len - 1]))
		len--;
	/* a page of HTML says nothing in one line */
	if (status || !len || bytes[0] == '<')
		return;
	strbuf_puts(out, ", ");
	add_line(out, bytes, MIN(len, KUBE_SAID_MAX / 2));
}
