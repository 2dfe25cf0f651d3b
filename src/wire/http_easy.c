/* SPDX-License-Identifier: Apache-2.0 */
/* http_easy.c - a request as options of libcurl's handle. */
#include "base/attr.h"
#include "base/err.h"
#include "wire/http_parts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define METHOD_MAX  16
#define URL_MAX	    ((size_t)64 << 10)
#define HEADERS_MAX 64
#define HEADER_MAX  ((size_t)64 << 10)

/* What libcurl reads at once.  TLS hands out at most 16 KiB, a record.  libcurl does not
 * let it be changed once a handle was used. */
#define BUFFER_BYTES 32768L

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

static int check_url(struct http *http, const char *url, struct err *err)
{
	if (strncasecmp(url, "https://", 8) != 0 && strncasecmp(url, "http://", 7) != 0)
		return err_set(err, EINVAL, "a URL must begin with https:// or http://");
	for (const char *s = url; *s; s++)
		if ((unsigned char)*s <= ' ' || *s == 0x7f || s - url > (ptrdiff_t)URL_MAX)
			return err_set(err, EINVAL,
				       "the URL holds a blank or is longer than %zu bytes",
				       URL_MAX);
	CURLUcode code = curl_url_set(http->url, CURLUPART_URL, url,
				      CURLU_PATH_AS_IS | CURLU_DISALLOW_USER);
	if (code == CURLUE_OUT_OF_MEMORY)
		return -ENOMEM;
	return code ? err_set(err, EINVAL, "URL %.200s: %s", url, curl_url_strerror(code)) : 0;
}

int http_easy_check(struct http *http, const struct http_request *request, struct err *err)
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
	return check_url(http, request->url, err);
}

static bool add_header(struct http_call *call, const char *header)
{
	struct curl_slist *longer = curl_slist_append(call->headers, header);

	if (longer)
		call->headers = longer;
	return longer != NULL;
}

/* To libcurl "Name:" says to leave a header out and "Name;" that it is empty. */
static bool add_given_header(struct http_call *call, const char *header)
{
	const char *colon = strchr(header, ':');

	if (colon[1 + strspn(colon + 1, " \t")])
		return add_header(call, header);
	struct strbuf empty CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_add(&empty, header, (size_t)(colon - header));
	strbuf_putc(&empty, ';');
	return !empty.failed && add_header(call, empty.s);
}

static bool set_headers(struct http_call *call, const struct http_request *request)
{
	bool typed = false, ok = true;

	for (size_t i = 0; ok && i < request->headers_count; i++) {
		ok = add_given_header(call, request->headers[i]);
		typed = typed || strncasecmp(request->headers[i], "content-type:", 13) == 0;
	}
	/* What libcurl would add by itself: a type of its own, and a wait for "100". */
	return ok && (typed || add_header(call, "Content-Type:")) && add_header(call, "Expect:") &&
	       curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK;
}

static bool needs_length(const char *method)
{
	return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
	       strcmp(method, "PATCH") == 0;
}

static bool set_method(struct http_call *call, const struct http_request *request)
{
	CURL *easy = call->easy;
	bool head = strcmp(request->method, "HEAD") == 0;

	call->safe = head || strcmp(request->method, "GET") == 0;
	strbuf_reset(&call->sent);
	call->sent.max = MAX(request->body_len, 1);
	strbuf_add(&call->sent, request->body ? request->body : "",
		   request->body ? request->body_len : 0);
	if (call->sent.failed)
		return false;
	bool sends = request->body || needs_length(request->method);
	curl_off_t len = (curl_off_t)call->sent.len;
	/* HTTPGET undoes what POST and NOBODY of an earlier request have set. */
	return curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L) == CURLE_OK &&
	       (!sends ||
		(curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
		 curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, len) == CURLE_OK &&
		 curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->sent.s) == CURLE_OK)) &&
	       (!head || curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK) &&
	       curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK;
}

/* libcurl takes the name for SNI and for the certificate from the URL.  So another name
 * is put there, and connections and the Host header led back to the real one. */
static bool set_named_url(struct http_call *call)
{
	CURLU *url = call->http->url;
	const char *name = call->http->options.server_name;
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	char *host = NULL, *port = NULL, *whole = NULL;
	bool ok = curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
		  curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
		  curl_url_set(url, CURLUPART_HOST, name, 0) == CURLUE_OK &&
		  curl_url_get(url, CURLUPART_URL, &whole, 0) == CURLUE_OK;

	if (ok) {
		strbuf_addf(&text, "%s:%s:%s:%s", name, port, host, port);
		call->connect_to = curl_slist_append(NULL, text.s);
		strbuf_reset(&text);
		strbuf_addf(&text, "Host: %s:%s", host, port);
		ok = !text.failed && call->connect_to && add_header(call, text.s) &&
		     curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK &&
		     curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, call->connect_to) ==
			     CURLE_OK &&
		     curl_easy_setopt(call->easy, CURLOPT_URL, whole) == CURLE_OK;
	}
	curl_free(host);
	curl_free(port);
	curl_free(whole);
	return ok;
}

/* HTTP/2 is agreed on in the TLS greeting.  A second request waits for the first one's to
 * see whether it can share the connection.  In the clear libcurl would wait for the
 * reply, and with a watch that may be for ever. */
static bool set_version(struct http_call *call, const char *url)
{
	bool http2 = !call->http->options.http1 && strncasecmp(url, "https:", 6) == 0;
	long version = http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;

	return curl_easy_setopt(call->easy, CURLOPT_HTTP_VERSION, version) == CURLE_OK &&
	       curl_easy_setopt(call->easy, CURLOPT_PIPEWAIT, http2 ? 1L : 0L) == CURLE_OK;
}

static bool is_this_machine(char *host)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	if (host[0] == '[') {
		host[strcspn(host, "]")] = '\0';
		return inet_pton(AF_INET6, host + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
	}
	return strcasecmp(host, "localhost") == 0;
}

/* As kubectl has it: a proxy that was named is always used, whatever NO_PROXY says, and one
 * of the environment never for this machine. */
static bool set_bypass(struct http_call *call)
{
	const char *bypass = call->http->options.proxy_url ? "" : NULL;
	char *host = NULL;

	if (curl_url_get(call->http->url, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		return false;
	if (!bypass && is_this_machine(host))
		bypass = "*";
	curl_free(host);
	return curl_easy_setopt(call->easy, CURLOPT_NOPROXY, bypass) == CURLE_OK;
}

int http_easy_set(struct http_call *call, const struct http_request *request)
{
	CURL *easy = call->easy;
	bool ok = set_headers(call, request) && set_method(call, request) &&
		  set_version(call, request->url) && set_bypass(call) &&
		  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, request->gzip ? "gzip" : NULL) ==
			  CURLE_OK &&
		  (call->http->options.server_name
			   ? set_named_url(call)
			   : curl_easy_setopt(easy, CURLOPT_URL, request->url) == CURLE_OK);
	return ok ? 0 : -ENOMEM;
}

/* Called before each sending.  libcurl sends again by itself when a connection that was
 * used before has broken without a byte of reply.  The server may have done what we
 * asked by then, so only what changes nothing is sent twice. */
/* NOLINTNEXTLINE(readability-non-const-parameter): libcurl's type */
static int sending(void *context, char *remote, char *local, int remote_port, int local_port)
{
	struct http_call *call = context;
	struct http *http = call->http;

	(void)remote, (void)local;
	if (call->cancelled || (call->sends > 0 && !call->safe))
		return CURL_PREREQFUNC_ABORT;
	struct http_socket *socket = http_socket_by_ports(http, local_port, remote_port);
	if (socket && socket->over)
		return CURL_PREREQFUNC_OK; /* not a byte will leave, and libcurl tries again */
	if (socket)
		socket->used = true;
	call->fd = socket ? socket->fd : -1;
	call->serial = socket ? socket->serial : 0;
	call->fresh = socket && !socket->answered;
	call->sends++;
	call->heard_ms = uv_now(http->loop);
	http_call_watch(call);
	return CURL_PREREQFUNC_OK;
}

/* Instead of the system's, which are a folder and would be trusted beside the file. */
static bool set_authority(CURL *easy, const char *file)
{
	return curl_easy_setopt(easy, CURLOPT_CAINFO, file) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_CAPATH, (char *)NULL) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, file) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, (char *)NULL) == CURLE_OK;
}

static bool set_trust(CURL *easy, const struct http_options *options)
{
	long verify = options->insecure ? 0 : 1;
	const char *ca = options->ca_file;

	return curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify * 2) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYPEER, verify) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PROXY_SSL_VERIFYHOST, verify * 2) == CURLE_OK &&
	       (!ca || set_authority(easy, ca)) &&
	       curl_easy_setopt(easy, CURLOPT_SSLCERT, options->cert_file) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_SSLKEY, options->key_file) == CURLE_OK &&
	       /* each connection looks at the certificates as they are then */
	       curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) ==
		       CURLE_OK;
}

static bool set_ways(CURL *easy, const struct http_options *options)
{
	long keep_s = ((long)options->keep_ms + 999) / 1000;
	const char *proxy = options->proxy_url;

	return curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_ms) ==
		       CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, keep_s) == CURLE_OK &&
	       (!proxy || curl_easy_setopt(easy, CURLOPT_PROXY, proxy) == CURLE_OK) &&
	       /* our headers, tokens among them, are not for the proxy, nor its for us */
	       curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       /* a cancelled request does not wait for its name to be resolved */
	       curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER_BYTES) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_USERAGENT, options->user_agent) == CURLE_OK;
}

int http_easy_always(struct http_call *call)
{
	CURL *easy = call->easy;
	bool ok = curl_easy_setopt(easy, CURLOPT_PRIVATE, call) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->reason) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, http_reply_header) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_HEADERDATA, call) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, http_reply_body) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_WRITEDATA, call) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, sending) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_PREREQDATA, call) == CURLE_OK &&
		  set_trust(easy, &call->http->options) && set_ways(easy, &call->http->options);

	return ok ? http_socket_options(easy, call->http) : -ENOMEM;
}
