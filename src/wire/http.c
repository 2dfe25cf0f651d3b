/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - a set of connections: its options, its life, and the way through libcurl. */
#include "wire/http.h"
#include "base/attr.h"
#include "base/err.h"
#include "wire/http_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_MS_DEFAULT 10000
#define KEEP_MS_DEFAULT	   90000
#define CONNECTIONS_KEPT   256 /* where nothing bounds them */
#define OWN_TEXTS	   6

/* ---- through libcurl and back ---- */

static void shut(struct http *http);

static void reap(struct http *http)
{
	struct CURLMsg *message;
	int left;

	while (!http->closing && (message = curl_multi_info_read(http->multi, &left))) {
		CURLcode code = message->data.result;
		struct http_call *call = NULL;
		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
		http_call_end(call, code);
	}
}

void http_act(struct http *http, curl_socket_t fd, int events)
{
	struct http_call *call;
	int running;

	if (http->closing)
		return;
	http->inside = true;
	curl_multi_socket_action(http->multi, fd, events, &running);
	http->inside = false;
	if (http->closing) {
		shut(http); /* http_close() was called from inside */
		return;
	}
	while ((call = http->leaving.first)) {
		http_list_remove(&http->leaving, call);
		http_call_drop(call);
	}
	reap(http);
	http_settle(http);
}

static void kicked(uv_idle_t *kick)
{
	struct http *http = kick->data;

	uv_idle_stop(kick);
	while (http->queued.first && !http->closing)
		http_call_add(http->queued.first);
	http_act(http, CURL_SOCKET_TIMEOUT, 0);
}

void http_kick(struct http *http)
{
	if (!http->closing)
		uv_idle_start(&http->kick, kicked);
}

/* ---- options ---- */

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

static int check_options(const struct http_options *options, struct err *err)
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

static void options_done(struct http_options *options)
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

static int options_copy(struct http_options *to, const struct http_options *from)
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

/* ---- its life ---- */

static CURLcode global_code;

static void global_init(void)
{
	global_code = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static int multi_init(struct http *http)
{
	uint32_t max = http->options.max_connections;

	http->multi = curl_multi_init();
	http->url = curl_url();
	if (!http->multi || !http->url)
		return -ENOMEM;
	bool ok = curl_multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX) ==
			  CURLM_OK &&
		  curl_multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)max) ==
			  CURLM_OK &&
		  curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS,
				    (long)(max ? max : CONNECTIONS_KEPT)) == CURLM_OK;
	return ok ? http_socket_attach(http) : -ENOMEM;
}

static void http_free(struct http *http)
{
	curl_multi_cleanup(http->multi);
	curl_url_cleanup(http->url);
	heap_done(&http->due);
	options_done(&http->options);
	free(http);
}

static void handles_init(struct http *http)
{
	uv_timer_init(http->loop, &http->curl_timer);
	uv_timer_init(http->loop, &http->due_timer);
	uv_idle_init(http->loop, &http->kick);
	http->curl_timer.data = http->due_timer.data = http->kick.data = http;
	http->handles = 3;
}

int http_new(uv_loop_t *loop, const struct http_options *options, struct http **ret,
	     struct err *err)
{
	static uv_once_t once = UV_ONCE_INIT;

	uv_once(&once, global_init);
	if (global_code)
		return err_set(err, ENOMEM, "libcurl: %s", curl_easy_strerror(global_code));
	int r = check_options(options, err);
	if (r < 0)
		return r;
	struct http *http = calloc(1, sizeof(*http));
	if (!http)
		return err_set(err, ENOMEM, "no memory for connections");
	http->loop = loop;
	http_due_init(http);
	if (options_copy(&http->options, options) < 0 || multi_init(http) < 0) {
		http_free(http);
		return err_set(err, ENOMEM, "no memory for connections");
	}
	handles_init(http);
	*ret = http;
	return 0;
}

uint32_t http_in_flight(const struct http *http)
{
	return http->in_flight;
}

uint32_t http_connections(const struct http *http)
{
	return http->connections;
}

void http_handle_closed(struct http *http)
{
	if (--http->handles > 0)
		return;
	void (*retired)(void *context) = http->retired, (*closed)(void *context) = http->closed;
	void *retired_context = http->retired_context, *closed_context = http->closed_context;

	http_free(http);
	if (retired)
		retired(retired_context);
	if (closed)
		closed(closed_context);
}

static void handle_closed(uv_handle_t *handle)
{
	http_handle_closed(handle->data);
}

static void drop_all(struct http *http)
{
	struct http_call *call;

	while ((call = http->queued.first))
		http_cancel(call);
	while ((call = http->running.first))
		http_cancel(call);
	while ((call = http->leaving.first)) {
		http_list_remove(&http->leaving, call);
		http_call_drop(call);
	}
	while ((call = http->idle)) {
		http->idle = call->next;
		http_call_free(call);
	}
}

/* Not from inside libcurl. */
static void shut(struct http *http)
{
	http->closing = true;
	drop_all(http);
	curl_multi_cleanup(http->multi);
	http->multi = NULL;
	http_socket_close_all(http);
	uv_close((uv_handle_t *)&http->curl_timer, handle_closed);
	uv_close((uv_handle_t *)&http->due_timer, handle_closed);
	uv_close((uv_handle_t *)&http->kick, handle_closed);
}

void http_settle(struct http *http)
{
	if (http->retiring && !http->closing && !http->inside && http->in_flight == 0)
		shut(http);
}

void http_retire(struct http *http, void (*closed)(void *context), void *context)
{
	http->retiring = true;
	http->retired = closed;
	http->retired_context = context;
	http_settle(http);
}

void http_close(struct http *http, void (*closed)(void *context), void *context)
{
	if (!http) {
		if (closed)
			closed(context);
		return;
	}
	http->closed = closed;
	http->closed_context = context;
	if (http->closing)
		return; /* it had retired */
	http->closing = true;
	if (!http->inside) {
		shut(http);
		return;
	}
	while (http->running.first)
		http_cancel(http->running.first); /* no data() any more; the rest waits */
}
