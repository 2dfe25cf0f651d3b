/* SPDX-License-Identifier: Apache-2.0 */
/* http_easy.c - a request as options of libcurl's handle. */
#include "base/attr.h"
#include "base/num.h"
#include "wire/http_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What libcurl reads at once.  TLS hands out at most 16 KiB, a record.  libcurl does not
 * let it be changed once a handle was used. */
#define BUFFER_BYTES 32768L

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

static bool set_headers(struct http_call *call)
{
	const char *header = NULL;
	bool typed = false, ok = true;

	while (ok && (header = http_call_next_header(call, header))) {
		ok = add_given_header(call, header);
		typed = typed || strncasecmp(header, "content-type:", 13) == 0;
	}
	/* What libcurl would add by itself: a type of its own, and a wait for "100". */
	return ok && (typed || add_header(call, "Content-Type:")) && add_header(call, "Expect:") &&
	       curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK;
}

static bool set_method(struct http_call *call)
{
	CURL *easy = call->easy;
	const char *method = call->head.s;
	curl_off_t len = (curl_off_t)call->sent.len;

	/* HTTPGET undoes what POST and NOBODY of an earlier request have set. */
	return curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L) == CURLE_OK &&
	       (!call->has_body ||
		(curl_easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
		 curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, len) == CURLE_OK &&
		 curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->sent.s) == CURLE_OK)) &&
	       (strcmp(method, "HEAD") != 0 ||
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK) &&
	       curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK;
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
static bool set_version(struct http_call *call)
{
	bool http2 = !call->http->options.http1 &&
		     strncasecmp(call->head.s + call->url_at, "https:", 6) == 0;
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

/* The call's URL as the one that is taken apart. */
static bool parse_url(const struct http_call *call)
{
	return curl_url_set(call->http->url, CURLUPART_URL, call->head.s + call->url_at,
			    CURLU_PATH_AS_IS) == CURLUE_OK;
}

bool http_easy_has_proxy(const struct http_call *call)
{
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "all_proxy",
					     "ALL_PROXY" };
	char *host = NULL;
	bool named = false;

	if (call->http->options.proxy_url)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		named = named || getenv(names[i]);
	if (!named)
		return false;
	bool here = parse_url(call) &&
		    curl_url_get(call->http->url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
		    is_this_machine(host);
	curl_free(host);
	return !here; /* what NO_PROXY says, libcurl knows */
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
	http_call_sent(call);
	return CURL_PREREQFUNC_OK;
}

static const char *skip_blanks(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	return s;
}

/* "HTTP/1.1 200 OK", "HTTP/2 200" */
static void status_line(struct http_call *call, const char *line, const char *end)
{
	struct http_socket *socket = http_socket_find(call->http, call->fd);
	const char *blank = memchr(line, ' ', (size_t)(end - line));
	int32_t status = 0;

	if (socket && socket->serial == call->serial)
		socket->answered = true;
	if (blank && end - blank >= 4)
		parse_i32(blank + 1, 3, &status);
	http_reply_status(call, status);
}

static size_t header_came(char *line, size_t size, size_t count, void *context)
{
	struct http_call *call = context;
	const char *end = line + size * count, *colon;

	if (call->cancelled)
		return CURL_WRITEFUNC_ERROR;
	while (end > line && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
		end--;
	if (end - line >= 5 && memcmp(line, "HTTP/", 5) == 0) {
		status_line(call, line, end);
	} else if ((colon = memchr(line, ':', (size_t)(end - line)))) {
		const char *value = skip_blanks(colon + 1, end);
		http_reply_field(call, line, (size_t)(colon - line), value, (size_t)(end - value));
	}
	return size * count;
}

static size_t body_came(char *bytes, size_t size, size_t count, void *context)
{
	struct http_call *call = context;
	size_t len = size * count;

	return !call->cancelled && http_reply_body(call, bytes, len) ? len : CURL_WRITEFUNC_ERROR;
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

/* What never changes. */
static bool set_always(struct http_call *call)
{
	CURL *easy = call->easy;

	return curl_easy_setopt(easy, CURLOPT_PRIVATE, call) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->reason) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_came) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_HEADERDATA, call) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_came) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_WRITEDATA, call) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, sending) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_PREREQDATA, call) == CURLE_OK &&
	       set_trust(easy, &call->http->options) && set_ways(easy, &call->http->options) &&
	       http_socket_options(easy, call->http) == 0;
}

static bool make_easy(struct http_call *call)
{
	if (call->easy)
		return true;
	call->easy = curl_easy_init();
	if (call->easy && set_always(call))
		return true;
	curl_easy_cleanup(call->easy);
	call->easy = NULL;
	return false;
}

int http_easy_set(struct http_call *call)
{
	const char *gzip = call->request.gzip ? "gzip" : NULL;
	bool ok = make_easy(call) && parse_url(call) && set_headers(call) && set_method(call) &&
		  set_version(call) && set_bypass(call) &&
		  curl_easy_setopt(call->easy, CURLOPT_ACCEPT_ENCODING, gzip) == CURLE_OK &&
		  (call->http->options.server_name
			   ? set_named_url(call)
			   : curl_easy_setopt(call->easy, CURLOPT_URL,
					      call->head.s + call->url_at) == CURLE_OK);
	return ok ? 0 : -ENOMEM;
}

void http_easy_unset(struct http_call *call)
{
	if (!call->easy)
		return;
	curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, (struct curl_slist *)NULL);
	curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, (struct curl_slist *)NULL);
	curl_slist_free_all(call->headers);
	curl_slist_free_all(call->connect_to);
	call->headers = call->connect_to = NULL;
}
