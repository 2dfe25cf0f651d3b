/* SPDX-License-Identifier: Apache-2.0 */
/* http_check.c - a request that can be sent at all. */
#include "base/err.h"
#include "wire/http_parts.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define METHOD_MAX  16
#define URL_MAX	    ((size_t)64 << 10)
#define HEADERS_MAX 64
#define HEADER_MAX  ((size_t)64 << 10)

static bool is_token(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("!#$%&'*+-.^_`|~", s[i]))
			return false;
	return len > 0;
}

static int check_header(const char *header, struct err *err)
{
	const char *colon = strchr(header, ':');

	if (!colon || !is_token(header, (size_t)(colon - header)))
		return err_set(err, EINVAL, "a header needs a name and a colon");
	if (strlen(header) > HEADER_MAX)
		return err_set(err, EINVAL, "header %.*s is longer than %zu bytes",
			       (int)(colon - header), header, HEADER_MAX);
	for (const char *s = colon; *s; s++)
		if ((unsigned char)*s < ' ' && *s != '\t')
			return err_set(err, EINVAL, "header %.*s holds a control character",
				       (int)(colon - header), header);
	return 0;
}

/* What a URL begins with is nearly always what the last one began with, and was found right
 * then.  0: it is another. */
static size_t known_origin(const struct http *http, const char *url)
{
	size_t len = http->origin.len;
	bool same = len && strncmp(url, http->origin.s, len) == 0 && url[len] == '/';

	return same ? len : 0;
}

static int check_url(struct http *http, const char *url, size_t *origin_len, struct err *err)
{
	if (strncasecmp(url, "https://", 8) != 0 && strncasecmp(url, "http://", 7) != 0)
		return err_set(err, EINVAL, "a URL must begin with https:// or http://");
	for (const char *s = url; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f || s - url > (ptrdiff_t)URL_MAX)
			return err_set(err, EINVAL,
				       "the URL holds a blank or is longer than %zu bytes",
				       URL_MAX);
	*origin_len = known_origin(http, url);
	if (*origin_len)
		return 0;
	CURLUcode code = curl_url_set(http->url, CURLUPART_URL, url,
				      CURLU_PATH_AS_IS | CURLU_DISALLOW_USER);
	if (code == CURLUE_OUT_OF_MEMORY)
		return -ENOMEM;
	if (code)
		return err_set(err, EINVAL, "URL %.200s: %s", url, curl_url_strerror(code));
	const char *host = strstr(url, "://") + 3;
	*origin_len = (size_t)(host - url) + strcspn(host, "/?#");
	strbuf_reset(&http->origin);
	strbuf_add(&http->origin, url, *origin_len);
	return http->origin.failed ? -ENOMEM : 0;
}

int http_check(struct http *http, const struct http_request *request, size_t *origin_len,
	       struct err *err)
{
	int r;

	if (http->retiring || http->closing)
		return err_set(err, ESHUTDOWN, "these connections are being closed");
	if (!is_token(request->method, strlen(request->method)) ||
	    strlen(request->method) > METHOD_MAX)
		return err_set(err, EINVAL, "%.32s is no method", request->method);
	if (request->headers_count > HEADERS_MAX)
		return err_set(err, EINVAL, "more than %d headers", HEADERS_MAX);
	for (size_t i = 0; i < request->headers_count; i++)
		if ((r = check_header(request->headers[i], err)) < 0)
			return r;
	return check_url(http, request->url, origin_len, err);
}
