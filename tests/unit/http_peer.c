/* SPDX-License-Identifier: Apache-2.0 */
/* http_peer.c - the test's server: sockets, TLS, HTTP/1.1. */
#include "unit/http_peer.h"
#include "base/attr.h"
#include "unit/http_peer_parts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void peer_must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "http_peer: %s: %s\n", what, strerror(errno));
	abort();
}

/* ---- requests ---- */

struct request *peer_request_new(struct peer_link *link)
{
	struct request *request = calloc(1, sizeof(*request));

	peer_must(request != NULL, "memory");
	request->shown.link = link;
	request->method = request->path = request->body = (struct strbuf)STRBUF_INIT;
	request->headers = request->data = (struct strbuf)STRBUF_INIT;
	strbuf_putc(&request->headers, '\n');
	request->next = link->requests;
	link->requests = request;
	return request;
}

void peer_request_free(struct request *request)
{
	struct request **at = &request->shown.link->requests;

	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	strbuf_done(&request->method);
	strbuf_done(&request->path);
	strbuf_done(&request->headers);
	strbuf_done(&request->body);
	strbuf_done(&request->data);
	free(request);
}

void peer_serve(struct request *request)
{
	const struct peer_options *options = &request->shown.link->peer->options;

	request->shown.method = request->method.s;
	request->shown.path = request->path.s;
	request->shown.headers = request->headers.s;
	request->shown.body = request->body.s;
	request->shown.body_len = request->body.len;
	options->serve(options->context, &request->shown);
}

bool peer_server_name(const struct peer_link *link, char *name, size_t size)
{
	unsigned type;
	size_t len = size - 1;

	if (!link->tls || gnutls_server_name_get(link->tls, name, &len, &type, 0) < 0)
		return false;
	name[len] = '\0';
	return true;
}

bool peer_knows_client(const struct peer_link *link)
{
	unsigned count = 0;

	return gnutls_certificate_get_peers(link->tls, &count) && count > 0;
}

bool peer_header(const struct peer_request *request, const char *name, char *value, size_t size)
{
	char start[128];

	snprintf(start, sizeof(start), "\n%s: ", name);
	const char *at = strstr(request->headers, start);
	if (!at)
		return false;
	at += strlen(start);
	snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
	return true;
}

/* ---- the wire ---- */

/* A handle of the loop is closed: frees the server after the last. */
static void peer_freed(struct peer *peer)
{
	if (--peer->handles > 0)
		return;
	if (peer->credentials)
		gnutls_certificate_free_credentials(peer->credentials);
	free(peer);
}

static void link_freed(uv_handle_t *handle)
{
	struct peer_link *link = handle->data;
	struct peer *peer = link->peer;

	while (link->requests)
		peer_request_free(link->requests);
	nghttp2_session_del(link->h2);
	if (link->tls)
		gnutls_deinit(link->tls);
	strbuf_done(&link->in);
	strbuf_done(&link->out);
	free(link);
	peer_freed(peer);
}

static void link_close(struct peer_link *link)
{
	if (link->dead)
		return;
	link->dead = true;
	*(link->prev ? &link->prev->next : &link->peer->links) = link->next;
	if (link->next)
		link->next->prev = link->prev;
	link->peer->open--;
	uv_close((uv_handle_t *)&link->poll, link_freed);
	close(link->fd);
}

static void link_ready(uv_poll_t *poll, int status, int events);

void peer_cut(struct peer_link *link, bool reset)
{
	const struct linger now = { .l_onoff = 1 };

	bool more =
		link->out.len > link->out_at || (link->h2 && nghttp2_session_want_write(link->h2));

	if (!reset && (more || link->busy)) {
		link->last = true;
		return;
	}
	if (reset) {
		setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		link_close(link);
		return;
	}
	/* What comes is still read: a close with unread input would be a reset. */
	if (link->tls)
		gnutls_bye(link->tls, GNUTLS_SHUT_WR);
	shutdown(link->fd, SHUT_WR);
	link->over = true;
	uv_poll_start(&link->poll, UV_READABLE, link_ready);
}

/* Bytes that left, 0: not now, -1: broken.  GnuTLS keeps what it could not send and is
 * then to be called with nothing. */
static ssize_t wire_send(struct peer_link *link, const char *bytes, size_t len)
{
	ssize_t n;

	if (!link->tls) {
		n = send(link->fd, bytes, len, MSG_NOSIGNAL);
		return n < 0 && errno == EAGAIN ? 0 : n;
	}
	n = gnutls_record_send(link->tls, link->sending ? NULL : bytes, link->sending ? 0 : len);
	link->sending = n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED;
	return link->sending ? 0 : n < 0 ? -1 : n;
}

static ssize_t wire_receive(struct peer_link *link, char *bytes, size_t len)
{
	ssize_t n;

	if (!link->tls) {
		n = recv(link->fd, bytes, len, 0);
		return n < 0 && errno == EAGAIN ? 0 : n == 0 ? -1 : n;
	}
	n = gnutls_record_recv(link->tls, bytes, len);
	return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED ? 0 : n <= 0 ? -1 : n;
}

static void add_chunk(struct strbuf *out, const char *bytes, size_t len)
{
	strbuf_addf(out, "%zx\r\n", len);
	strbuf_add(out, bytes, len);
	strbuf_puts(out, "\r\n");
}

static bool h1_fill(struct peer_link *link)
{
	static char chunk[PEER_CHUNK];
	struct request *request = link->requests;

	if (!request || !request->flood)
		return false;
	size_t len = MIN(request->flood, PEER_CHUNK);
	memset(chunk, 'x', len);
	add_chunk(&link->out, chunk, len);
	request->flood -= len;
	if (request->flood == 0)
		peer_end(&request->shown);
	return true;
}

static bool fill(struct peer_link *link)
{
	if (link->out_at < link->out.len)
		return true;
	strbuf_reset(&link->out);
	link->out_at = 0;
	return link->h2 ? peer_h2_fill(link) : h1_fill(link);
}

void peer_flush(struct peer_link *link)
{
	if (link->busy || link->dead || link->over || !link->greeted)
		return;
	link->busy = true; /* what a request writes while it is asked for more is taken here */
	while (fill(link)) {
		ssize_t n =
			wire_send(link, link->out.s + link->out_at, link->out.len - link->out_at);
		if (n < 0) {
			link->busy = false;
			link_close(link);
			return;
		}
		if (n == 0)
			break;
		link->out_at += (size_t)n;
	}
	link->busy = false;
	bool more = link->out_at < link->out.len;
	if (link->last && !more)
		peer_cut(link, false);
	else
		uv_poll_start(&link->poll,
			      (link->frozen ? 0 : UV_READABLE) | (more ? UV_WRITABLE : 0),
			      link_ready);
}

/* ---- HTTP/1.1 ---- */

static void parse_head(struct request *request, char *head)
{
	char *save = NULL, *line = strtok_r(head, "\r\n", &save);
	char *blank = line ? strchr(line, ' ') : NULL;

	if (!blank)
		return;
	strbuf_add(&request->method, line, (size_t)(blank - line));
	strbuf_add(&request->path, blank + 1, strcspn(blank + 1, " "));
	while ((line = strtok_r(NULL, "\r\n", &save))) {
		for (char *s = line; *s && *s != ':'; s++)
			*s = (char)tolower((unsigned char)*s);
		strbuf_addf(&request->headers, "%s\n", line);
	}
}

/* The next whole request of the input, if there is one. */
static bool h1_next(struct peer_link *link)
{
	char *end = link->requests || !link->in.len ? NULL : strstr(link->in.s, "\r\n\r\n");
	char length[32] = "0";

	if (!end || link->dead)
		return false;
	struct request *request = peer_request_new(link);
	char *head = strndup(link->in.s, (size_t)(end - link->in.s));
	parse_head(request, head);
	free(head);
	request->shown.headers = request->headers.s;
	peer_header(&request->shown, "content-length", length, sizeof(length));
	size_t start = (size_t)(end + 4 - link->in.s), len = strtoul(length, NULL, 10);
	if (link->in.len < start + len) {
		peer_request_free(request);
		return false;
	}
	strbuf_add(&request->body, link->in.s + start, len);
	size_t rest = link->in.len - start - len;
	memmove(link->in.s, link->in.s + start + len, rest);
	strbuf_truncate(&link->in, rest);
	peer_serve(request);
	return true;
}

static void link_tls(struct peer_link *link);

/* We are the server behind us, too. */
static void tunnel(struct peer_link *link)
{
	link->tunnel = true;
	link->greeted = false;
	strbuf_reset(&link->in);
	link_tls(link);
}

void peer_tunnel(struct peer_request *shown)
{
	struct peer_link *link = shown->link;

	peer_raw(link, "HTTP/1.1 200 Go\r\n\r\n", 19);
	peer_request_free((struct request *)shown);
	tunnel(link);
}

/* SOCKS 5 (RFC 1928), without authentication, to a host by its name. */
static void socks_read(struct peer_link *link)
{
	const unsigned char *in = (const unsigned char *)link->in.s;
	size_t len = link->in.len;

	if (!link->socks_greeted && len >= 3) {
		link->socks_greeted = true;
		peer_raw(link, "\5\0", 2);
		strbuf_reset(&link->in);
	} else if (link->socks_greeted && len >= 5 && in[3] == 3 && len == 7U + in[4]) {
		snprintf(link->peer->asked, sizeof(link->peer->asked), "%.*s", in[4], in + 5);
		peer_raw(link, "\5\0\0\1\0\0\0\0\0\0", 10);
		tunnel(link);
	}
}

static void h1_read(struct peer_link *link, const char *bytes, size_t len)
{
	strbuf_add(&link->in, bytes, len);
	if (link->peer->options.socks && !link->tunnel)
		socks_read(link);
	else
		while (h1_next(link))
			;
}

const char *peer_asked(const struct peer *peer)
{
	return peer->asked;
}

/* ---- answers ---- */

static struct request *private_of(struct peer_request *shown)
{
	return (struct request *)shown;
}

static void h1_head(struct strbuf *out, int status, const char *headers)
{
	char *lines = strdup(headers ? headers : ""), *save = NULL;

	strbuf_addf(out, "HTTP/1.1 %d Said\r\n", status);
	for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		strbuf_addf(out, "%s\r\n", line);
	free(lines);
}

void peer_reply(struct peer_request *shown, int status, const char *headers, const void *body,
		size_t len)
{
	struct peer_link *link = shown->link;
	struct request *request = private_of(shown);

	bool bodiless = strcmp(shown->method, "HEAD") == 0;

	if (link->h2) {
		strbuf_add(&request->data, body, bodiless ? 0 : len);
		request->begun = request->ended = true;
		peer_h2_answer(request, status, headers);
	} else {
		h1_head(&link->out, status, headers);
		strbuf_addf(&link->out, "Content-Length: %zu\r\n\r\n", len);
		strbuf_add(&link->out, body, bodiless ? 0 : len);
		peer_request_free(request);
	}
	peer_flush(link);
}

void peer_begin(struct peer_request *shown, int status, const char *headers)
{
	struct peer_link *link = shown->link;

	private_of(shown)->begun = true;
	if (link->h2) {
		peer_h2_answer(private_of(shown), status, headers);
	} else {
		h1_head(&link->out, status, headers);
		strbuf_puts(&link->out, "Transfer-Encoding: chunked\r\n\r\n");
	}
	peer_flush(link);
}

void peer_write(struct peer_request *shown, const void *bytes, size_t len)
{
	struct peer_link *link = shown->link;

	if (link->h2) {
		strbuf_add(&private_of(shown)->data, bytes, len);
		peer_h2_resume(private_of(shown));
	} else {
		add_chunk(&link->out, bytes, len);
	}
	peer_flush(link);
}

void peer_end(struct peer_request *shown)
{
	struct peer_link *link = shown->link;
	struct request *request = private_of(shown);

	request->ended = true;
	if (link->h2) {
		peer_h2_resume(request);
	} else {
		strbuf_puts(&link->out, "0\r\n\r\n");
		peer_request_free(request);
	}
	peer_flush(link);
}

void peer_flood(struct peer_request *shown, uint64_t bytes)
{
	private_of(shown)->flood = bytes;
	if (shown->link->h2)
		peer_h2_resume(private_of(shown));
	peer_flush(shown->link);
}

void peer_raw(struct peer_link *link, const void *bytes, size_t len)
{
	strbuf_add(&link->out, bytes, len);
	peer_flush(link);
}

void peer_freeze(struct peer_link *link)
{
	link->frozen = true;
	peer_flush(link);
}

/* ---- connections ---- */

static bool greet(struct peer_link *link)
{
	gnutls_datum_t protocol;
	int r = link->tls ? gnutls_handshake(link->tls) : 0;

	if (r == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED) {
		uv_poll_start(&link->poll,
			      gnutls_record_get_direction(link->tls) ? UV_WRITABLE : UV_READABLE,
			      link_ready);
		return false;
	}
	if (r < 0) {
		/* Some releases call a missing certificate a decoding error. */
		if (r == GNUTLS_E_NO_CERTIFICATE_FOUND && link->peer->options.tls12)
			gnutls_alert_send(link->tls, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
		else
			gnutls_alert_send_appropriate(link->tls, r);
		/* A reset for what lies unread would take the alert along. */
		shutdown(link->fd, SHUT_WR);
		char rest[4096];
		while (recv(link->fd, rest, sizeof(rest), 0) > 0)
			;
		link_close(link);
		return false;
	}
	link->greeted = true;
	if (link->tls && gnutls_alpn_get_selected_protocol(link->tls, &protocol) == 0 &&
	    protocol.size == 2)
		peer_h2_begin(link);
	return true;
}

static void link_read(struct peer_link *link)
{
	char *bytes = malloc(PEER_CHUNK);
	ssize_t n;

	peer_must(bytes != NULL, "memory");
	while (!link->dead && link->greeted && !link->frozen &&
	       (n = wire_receive(link, bytes, PEER_CHUNK)) != 0) {
		if (n < 0)
			link_close(link);
		else if (link->over)
			continue;
		else if (link->h2)
			peer_h2_read(link, bytes, (size_t)n);
		else
			h1_read(link, bytes, (size_t)n);
	}
	free(bytes);
}

static void link_ready(uv_poll_t *poll, int status, int events)
{
	struct peer_link *link = poll->data;

	if (status < 0) {
		link_close(link);
		return;
	}
	if (!link->greeted && !greet(link))
		return;
	if (events & UV_READABLE)
		link_read(link);
	peer_flush(link);
}

static void link_tls(struct peer_link *link)
{
	const struct peer *peer = link->peer;
	const char *client_ca = peer->options.client_ca_file;
	gnutls_datum_t protocols[] = { { (unsigned char *)"h2", 2 },
				       { (unsigned char *)"http/1.1", 8 } };
	bool h2 = peer->options.http2;

	peer_must(gnutls_init(&link->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) == 0,
		  "gnutls");
	gnutls_priority_set_direct(link->tls,
				   peer->options.tls12 ? "NORMAL:-VERS-TLS1.3" : "NORMAL", NULL);
	if (peer->options.small_records)
		peer_must(gnutls_record_set_max_size(link->tls, 512) == 0, "gnutls");
	gnutls_credentials_set(link->tls, GNUTLS_CRD_CERTIFICATE, peer->credentials);
	gnutls_certificate_server_set_request(link->tls, !client_ca ? GNUTLS_CERT_IGNORE
							 : peer->options.client_optional
								 ? GNUTLS_CERT_REQUEST
								 : GNUTLS_CERT_REQUIRE);
	if (client_ca && !peer->options.client_optional)
		gnutls_session_set_verify_cert(link->tls, NULL, 0);
	gnutls_alpn_set_protocols(link->tls, h2 ? protocols : protocols + 1, h2 ? 2 : 1, 0);
	gnutls_transport_set_int(link->tls, link->fd);
}

static void link_new(struct peer *peer, int fd)
{
	struct peer_link *link = calloc(1, sizeof(*link));

	peer_must(link != NULL, "memory");
	link->peer = peer;
	link->fd = fd;
	link->in = link->out = (struct strbuf)STRBUF_INIT;
	link->next = peer->links;
	if (link->next)
		link->next->prev = link;
	peer->links = link;
	peer->accepted++;
	peer->open++;
	peer->handles++;
	peer_must(uv_poll_init(peer->loop, &link->poll, fd) == 0, "poll");
	link->poll.data = link;
	if (peer->options.mute)
		return;
	if (peer->options.cert_file && !peer->options.proxy && !peer->options.socks)
		link_tls(link);
	uv_poll_start(&link->poll, UV_READABLE, link_ready);
}

static void knock(uv_poll_t *poll, int status, int events)
{
	struct peer *peer = poll->data;
	int fd;

	(void)status, (void)events;
	/* cppcheck-suppress nullPointer; nobody asks for the address */
	while ((fd = accept4(peer->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		link_new(peer, fd);
}

static void peer_tls(struct peer *peer)
{
	const struct peer_options *o = &peer->options;

	gnutls_certificate_allocate_credentials(&peer->credentials);
	peer_must(gnutls_certificate_set_x509_key_file(peer->credentials, o->cert_file,
						       o->key_file, GNUTLS_X509_FMT_PEM) == 0,
		  "certificate");
	if (o->client_ca_file)
		peer_must(gnutls_certificate_set_x509_trust_file(
				  peer->credentials, o->client_ca_file, GNUTLS_X509_FMT_PEM) > 0,
			  "authority");
}

struct peer *peer_new(uv_loop_t *loop, const struct peer_options *options)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)options->port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	struct peer *peer = calloc(1, sizeof(*peer));

	peer_must(peer != NULL, "memory");
	peer->loop = loop;
	peer->options = *options;
	if (options->cert_file)
		peer_tls(peer);
	if (options->host)
		inet_pton(AF_INET, options->host, &address.sin_addr);
	peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Another may have been here a moment ago. */
	if (options->port)
		setsockopt(peer->fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	peer_must(peer->fd >= 0 && bind(peer->fd, (struct sockaddr *)&address, len) == 0 &&
			  listen(peer->fd, 1024) == 0 &&
			  getsockname(peer->fd, (struct sockaddr *)&address, &len) == 0 &&
			  uv_poll_init(loop, &peer->poll, peer->fd) == 0,
		  "listen");
	peer->port = ntohs(address.sin_port);
	peer->poll.data = peer;
	peer->handles = 1;
	uv_poll_start(&peer->poll, UV_READABLE, knock);
	return peer;
}

int peer_port(const struct peer *peer)
{
	return peer->port;
}

const char *peer_url(const struct peer *peer, const char *path)
{
	char *url = ((struct peer *)peer)->url;

	snprintf(url, sizeof(peer->url), "http%s://127.0.0.1:%d%s",
		 peer->options.cert_file ? "s" : "", peer->port, path);
	return url;
}

uint32_t peer_accepted(const struct peer *peer)
{
	return peer->accepted;
}

uint32_t peer_open(const struct peer *peer)
{
	return peer->open;
}

static void door_closed(uv_handle_t *handle)
{
	peer_freed(handle->data);
}

void peer_close(struct peer *peer)
{
	while (peer->links)
		link_close(peer->links);
	uv_close((uv_handle_t *)&peer->poll, door_closed);
	close(peer->fd);
}
