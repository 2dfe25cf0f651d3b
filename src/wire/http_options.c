/* SPDX-License-Identifier: Apache-2.0 */
/* http_options.c - what a set of connections was asked to be. */
#include "base/attr.h"
#include "base/err.h"
#include "wire/http_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CONNECT_MS_DEFAULT 10000
#define KEEP_MS_DEFAULT	   90000
#define OWN_TEXTS	   6

static int check_file(const char *what, const char *path, struct err *err)
{
	if (!path || access(path, R_OK) == 0)
		return 0;
	return err_set(err, EINVAL, "%s %s: %s", what, path, strerror(errno));
}

static int check_proxy(const char *proxy, struct err *err)
{
	static const char *const schemes[] = { "http", "https", "socks5", "socks5h" };
	char *scheme = NULL;
	bool known = false;

	if (!proxy)
		return 0;
	CURLU *url = curl_url();
	if (url && curl_url_set(url, CURLUPART_URL, proxy, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
		curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
	for (size_t i = 0; scheme && i < ARRAY_SIZE(schemes); i++)
		known = known || strcmp(scheme, schemes[i]) == 0;
	curl_free(scheme);
	curl_url_cleanup(url);
	/* Not the URL itself: it may hold a password. */
	return known ? 0 : err_set(err, EINVAL, "the proxy's URL is not of http, https or socks5");
}

int http_options_check(const struct http_options *options, struct err *err)
{
	int r;

	if ((r = check_file("certificate authority", options->ca_file, err)) < 0 ||
	    (r = check_file("certificate", options->cert_file, err)) < 0 ||
	    (r = check_file("key", options->key_file, err)) < 0 ||
	    (r = check_proxy(options->proxy_url, err)) < 0)
		return r;
	if (!options->cert_file != !options->key_file)
		return err_set(err, EINVAL, "a certificate needs its key, a key its certificate");
	return 0;
}

static void own_texts(struct http_options *options, const char **texts[OWN_TEXTS])
{
	texts[0] = &options->ca_file;
	texts[1] = &options->cert_file;
	texts[2] = &options->key_file;
	texts[3] = &options->server_name;
	texts[4] = &options->proxy_url;
	texts[5] = &options->user_agent;
}

void http_options_done(struct http_options *options)
{
	const char **texts[OWN_TEXTS];

	own_texts(options, texts);
	for (size_t i = 0; i < OWN_TEXTS; i++)
		free((char *)*texts[i]);
}

/* As kubectl does, a name is resolved behind a SOCKS proxy, not before it. */
static char *copy_proxy(const char *proxy)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	if (strncasecmp(proxy, "socks5://", 9) != 0)
		return strdup(proxy);
	strbuf_addf(&text, "socks5h://%s", proxy + 9);
	return text.failed ? NULL : strdup(text.s);
}

int http_options_copy(struct http_options *to, const struct http_options *from)
{
	const char **texts[OWN_TEXTS];
	bool ok = true;

	*to = *from;
	to->connect_ms = from->connect_ms ? from->connect_ms : CONNECT_MS_DEFAULT;
	to->keep_ms = from->keep_ms ? from->keep_ms : KEEP_MS_DEFAULT;
	own_texts(to, texts);
	for (size_t i = 0; i < OWN_TEXTS; i++) {
		const char *text = *texts[i];
		if (!text)
			continue;
		*texts[i] = texts[i] == &to->proxy_url ? copy_proxy(text) : strdup(text);
		ok = ok && *texts[i];
	}
	return ok ? 0 : -ENOMEM;
}
