/* SPDX-License-Identifier: Apache-2.0 */
#include "tls.h"

#include "base/err.h"
#include "base/strbuf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PRIORITY   "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define READ_MAX   ((size_t)64 << 10)
#define RECORD_MAX ((size_t)16 << 10)
#define LINGER_MS  2000 /* how long what is left may take to be written and seen */

enum stage {
	CONNECTING, /* TCP */
	GREETING,   /* TLS */
	OPEN,
	LEAVING, /* the owner is gone, bytes still wait */
	CLOSED,	 /* libuv closes its handles */
};

struct tls {
	enum stage stage;
	const struct tls_callbacks *callbacks;
	void *context;
	gnutls_session_t session;
	char *server_name; /* GnuTLS borrows it for the verification */
	uv_tcp_t tcp;
	uv_timer_t timer; /* LEAVING: its end; else what came during a pause is due */
	unsigned handles; /* not yet closed */
	uv_connect_t connect;
	uv_write_t write;
	uv_shutdown_t shutdown;
	struct strbuf out, flying; /* records that wait, and those that libuv has */
	char *in;		   /* READ_MAX bytes from the network */
	size_t in_at, in_len;
	const char *broken; /* why it ends at the timer; NULL: it does not */
	bool paused, frozen, reading, was_high, eof;
};

static void on_handle_closed(uv_handle_t *handle)
{
	struct tls *tls = handle->data;
	if (--tls->handles > 0)
		return;
	gnutls_deinit(tls->session);
	strbuf_done(&tls->out);
	strbuf_done(&tls->flying);
	free(tls->server_name);
	free(tls->in);
	free(tls);
}

static void close_handles(struct tls *tls, bool reset)
{
	if (tls->stage == CLOSED)
		return;
	tls->stage = CLOSED;
	uv_close((uv_handle_t *)&tls->timer, on_handle_closed);
	if (!reset || uv_tcp_close_reset(&tls->tcp, on_handle_closed) < 0)
		uv_close((uv_handle_t *)&tls->tcp, on_handle_closed);
}

/* Tells the owner, who is then gone. */
static void close_and_tell(struct tls *tls, const char *reason)
{
	bool tell = tls->stage < LEAVING;
	close_handles(tls, false);
	if (tell)
		tls->callbacks->closed(tls->context, reason);
}

void tls_close(struct tls *tls)
{
	if (tls)
		close_handles(tls, false);
}

void tls_reset(struct tls *tls)
{
	close_handles(tls, true);
}

/* What GnuTLS writes: a copy, to be sent when it has written all it wants. */
static ssize_t push(gnutls_transport_ptr_t context, const void *bytes, size_t len)
{
	struct tls *tls = context;
	strbuf_add(&tls->out, bytes, len);
	if (!tls->out.failed)
		return (ssize_t)len;
	gnutls_transport_set_errno(tls->session, ENOMEM);
	return -1;
}

static ssize_t pull(gnutls_transport_ptr_t context, void *bytes, size_t len)
{
	struct tls *tls = context;
	size_t n = tls->in_len - tls->in_at;
	if (n == 0 && tls->eof)
		return 0;
	if (n == 0) {
		gnutls_transport_set_errno(tls->session, EAGAIN);
		return -1;
	}
	n = n < len ? n : len;
	memcpy(bytes, tls->in + tls->in_at, n);
	tls->in_at += n;
	return (ssize_t)n;
}

static int pull_ready(gnutls_transport_ptr_t context, unsigned ms)
{
	const struct tls *tls = context;
	(void)ms;
	return tls->in_len > tls->in_at || tls->eof;
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
	struct tls *tls = request->handle->data;
	/* The other side's end follows, or the timer's: a close before would turn into
	 * a reset if it has sent something that nobody reads. */
	if (status < 0)
		close_handles(tls, false);
}

static void leave_when_written(struct tls *tls)
{
	if (tls->stage != LEAVING || tls_pending(tls) > 0)
		return;
	if (tls->eof || uv_shutdown(&tls->shutdown, (uv_stream_t *)&tls->tcp, on_shutdown) < 0)
		close_handles(tls, false);
}

static void flush(struct tls *tls);

static void on_written(uv_write_t *request, int status)
{
	struct tls *tls = request->handle->data;
	strbuf_reset(&tls->flying);
	if (tls->stage == CLOSED)
		return;
	if (status < 0) {
		close_and_tell(tls, uv_strerror(status));
		return;
	}
	flush(tls);
	leave_when_written(tls);
	if (tls->stage == OPEN && tls->was_high && tls_pending(tls) < TLS_LOW) {
		tls->was_high = false;
		tls->callbacks->drained(tls->context);
	}
}

static void on_timer(uv_timer_t *timer);

/* The end, but not from inside the caller, who may be in the middle of anything. */
static void break_later(struct tls *tls, const char *reason)
{
	tls->broken = reason;
	uv_timer_start(&tls->timer, on_timer, 0, 0);
}

/* Hands what waits to libuv, one write at a time. */
static void flush(struct tls *tls)
{
	if (tls->stage == CLOSED || tls->stage == CONNECTING || tls->frozen || tls->flying.len ||
	    !tls->out.len)
		return;
	struct strbuf empty = tls->flying;
	tls->flying = tls->out;
	tls->out = empty;
	uv_buf_t buf = uv_buf_init(tls->flying.s, (unsigned)tls->flying.len);
	int result = uv_write(&tls->write, (uv_stream_t *)&tls->tcp, &buf, 1, on_written);
	if (result < 0)
		break_later(tls, uv_strerror(result));
}

/* Whether GnuTLS only waits for more bytes. */
static bool is_wait(ssize_t result)
{
	return result == GNUTLS_E_AGAIN || result == GNUTLS_E_INTERRUPTED;
}

static void greet(struct tls *tls)
{
	int result = gnutls_handshake(tls->session);
	flush(tls);
	if (tls->stage == CLOSED || is_wait(result) ||
	    (result < 0 && !gnutls_error_is_fatal(result)))
		return;
	if (result < 0) {
		close_and_tell(tls, gnutls_strerror(result));
		return;
	}
	tls->stage = OPEN;
	tls->callbacks->ready(tls->context);
}

static void receive(struct tls *tls)
{
	char bytes[RECORD_MAX];
	while (tls->stage == OPEN && !tls->paused && !tls->frozen) {
		size_t before = tls->in_at;
		ssize_t n = gnutls_record_recv(tls->session, bytes, sizeof(bytes));
		if (n > 0)
			tls->callbacks->data(tls->context, bytes, (size_t)n);
		else if (n == 0)
			close_and_tell(tls, "");
		else if (is_wait(n) && tls->in_at == before)
			return; /* otherwise it has read a ticket, and more may be here */
		else if (!is_wait(n) && gnutls_error_is_fatal((int)n))
			close_and_tell(tls, gnutls_strerror((int)n));
	}
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct tls *tls = handle->data;
	(void)suggested;
	if (tls->in_at > 0)
		memmove(tls->in, tls->in + tls->in_at, tls->in_len - tls->in_at);
	tls->in_len -= tls->in_at;
	tls->in_at = 0;
	*buf = uv_buf_init(tls->in + tls->in_len, (unsigned)(READ_MAX - tls->in_len));
}

static void update_reading(struct tls *tls);

static void process(struct tls *tls)
{
	if (tls->broken)
		close_and_tell(tls, tls->broken);
	if (tls->stage == GREETING)
		greet(tls);
	receive(tls);
	if (tls->stage == LEAVING && tls->eof)
		close_handles(tls, false);
	if (tls->stage == LEAVING)
		tls->in_at = tls->in_len; /* nobody wants it */
	update_reading(tls);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct tls *tls = stream->data;
	(void)buf;
	if (n == 0 || tls->stage == CLOSED)
		return;
	if (n < 0 && n != UV_EOF) {
		close_and_tell(tls, uv_strerror((int)n));
		return;
	}
	if (n < 0)
		tls->eof = true;
	else
		tls->in_len += (size_t)n;
	process(tls);
}

/* Reads while there is somebody to take it, and room. */
static void update_reading(struct tls *tls)
{
	if (tls->stage == CLOSED || tls->stage == CONNECTING)
		return;
	bool wanted = !tls->frozen && !tls->eof && (!tls->paused || tls->stage == LEAVING) &&
		      tls->in_len - tls->in_at < READ_MAX;
	if (wanted && !tls->reading)
		uv_read_start((uv_stream_t *)&tls->tcp, on_alloc, on_read);
	if (!wanted && tls->reading)
		uv_read_stop((uv_stream_t *)&tls->tcp);
	tls->reading = wanted;
}

static void on_timer(uv_timer_t *timer)
{
	struct tls *tls = timer->data;
	if (tls->stage == LEAVING)
		close_handles(tls, false);
	else if (tls->stage != CLOSED)
		process(tls);
}

void tls_pause(struct tls *tls, bool paused)
{
	if (tls->paused == paused || tls->stage >= LEAVING)
		return;
	tls->paused = paused;
	/* Not at once: the caller may be anywhere. */
	if (!paused)
		uv_timer_start(&tls->timer, on_timer, 0, 0);
	update_reading(tls);
}

void tls_freeze(struct tls *tls, bool frozen)
{
	if (tls->frozen == frozen || tls->stage >= LEAVING)
		return;
	tls->frozen = frozen;
	update_reading(tls);
	if (frozen)
		return;
	flush(tls);
	if (tls->stage < LEAVING)
		uv_timer_start(&tls->timer, on_timer, 0, 0);
}

void tls_write(struct tls *tls, const void *bytes, size_t len)
{
	const char *at = bytes;
	while (len > 0 && tls->stage == OPEN) {
		ssize_t n = gnutls_record_send(tls->session, at, len);
		if (n < 0 && gnutls_error_is_fatal((int)n)) {
			break_later(tls, gnutls_strerror((int)n));
			return;
		}
		at += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	tls->was_high |= tls_pending(tls) >= TLS_LOW;
	flush(tls);
}

size_t tls_pending(const struct tls *tls)
{
	return tls->out.len + tls->flying.len;
}

bool tls_is_h2(const struct tls *tls)
{
	gnutls_datum_t name;
	return gnutls_alpn_get_selected_protocol(tls->session, &name) == 0 && name.size == 2 &&
	       memcmp(name.data, "h2", 2) == 0;
}

static void leave(struct tls *tls)
{
	if (tls->stage >= LEAVING)
		return;
	if (tls->stage != OPEN) {
		close_handles(tls, false);
		return;
	}
	tls->stage = LEAVING;
	tls->frozen = false;
	uv_timer_start(&tls->timer, on_timer, LINGER_MS, 0);
	flush(tls);
	leave_when_written(tls);
	update_reading(tls);
}

void tls_cut(struct tls *tls)
{
	leave(tls);
}

void tls_finish(struct tls *tls)
{
	if (tls->stage == OPEN)
		gnutls_bye(tls->session, GNUTLS_SHUT_WR); /* only writes */
	leave(tls);
}

static int session_new(struct tls *tls, const struct tls_side *side, bool server)
{
	static const gnutls_datum_t names[] = {
		{ (unsigned char *)(uintptr_t) "h2", 2 },
		{ (unsigned char *)(uintptr_t) "http/1.1", 8 },
	};
	unsigned flags = GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL;
	int result = gnutls_init(&tls->session, flags | (server ? GNUTLS_SERVER : GNUTLS_CLIENT));
	if (result < 0)
		return result;
	gnutls_transport_set_ptr(tls->session, tls);
	gnutls_transport_set_push_function(tls->session, push);
	gnutls_transport_set_pull_function(tls->session, pull);
	gnutls_transport_set_pull_timeout_function(tls->session, pull_ready);
	result = gnutls_priority_set_direct(tls->session, PRIORITY, NULL);
	if (result == 0)
		result = gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE,
						side->credentials);
	if (result == 0)
		result = gnutls_alpn_set_protocols(tls->session, server ? names : names + 1,
						   server ? 2 : 1, GNUTLS_ALPN_SERVER_PRECEDENCE);
	if (result < 0 || !tls->server_name)
		return result;
	unsigned char address[sizeof(struct in6_addr)];
	if (inet_pton(AF_INET, tls->server_name, address) != 1 &&
	    inet_pton(AF_INET6, tls->server_name, address) != 1)
		result = gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, tls->server_name,
						strlen(tls->server_name));
	if (result == 0)
		gnutls_session_set_verify_cert(tls->session, tls->server_name, 0);
	return result;
}

/* The struct with its handles; freed by close_handles() from here on. */
static int tls_new(const struct tls_side *side, bool server, struct tls **ret, struct err *err)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	char *in = malloc(READ_MAX);
	char *name = side->server_name ? strdup(side->server_name) : NULL;
	if (!tls || !in || (side->server_name && !name)) {
		free(tls);
		free(in);
		free(name);
		return err_set(err, ENOMEM, "out of memory");
	}
	*tls = (struct tls){ .callbacks = side->callbacks,
			     .context = side->context,
			     .in = in,
			     .server_name = name,
			     .out = STRBUF_INIT,
			     .flying = STRBUF_INIT,
			     .handles = 2 };
	int result = session_new(tls, side, server);
	uv_tcp_init(side->loop, &tls->tcp);
	uv_timer_init(side->loop, &tls->timer);
	tls->tcp.data = tls->timer.data = tls;
	if (result < 0) {
		close_handles(tls, false);
		return err_set(err, EIO, "TLS: %s", gnutls_strerror(result));
	}
	*ret = tls;
	return 0;
}

int tls_accept(uv_stream_t *listener, const struct tls_side *side, struct tls **ret,
	       struct err *err)
{
	struct tls *tls;
	int result = tls_new(side, true, &tls, err);
	if (result < 0)
		return result;
	result = uv_accept(listener, (uv_stream_t *)&tls->tcp);
	if (result < 0) {
		close_handles(tls, false);
		return err_set(err, -result, "accept: %s", uv_strerror(result));
	}
	uv_tcp_nodelay(&tls->tcp, 1);
	tls->stage = GREETING;
	update_reading(tls);
	*ret = tls;
	return 0;
}

static void on_connected(uv_connect_t *request, int status)
{
	struct tls *tls = request->handle->data;
	if (tls->stage == CLOSED)
		return;
	if (status < 0) {
		close_and_tell(tls, uv_strerror(status));
		return;
	}
	uv_tcp_nodelay(&tls->tcp, 1);
	tls->stage = GREETING;
	process(tls);
}

int tls_connect(const struct sockaddr *address, const struct tls_side *side, struct tls **ret,
		struct err *err)
{
	struct tls *tls;
	int result = tls_new(side, false, &tls, err);
	if (result < 0)
		return result;
	result = uv_tcp_connect(&tls->connect, &tls->tcp, address, on_connected);
	if (result < 0) {
		close_handles(tls, false);
		return err_set(err, -result, "connect: %s", uv_strerror(result));
	}
	*ret = tls;
	return 0;
}
