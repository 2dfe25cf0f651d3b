/* SPDX-License-Identifier: Apache-2.0 */
/* httpd.c - a server: its options, its life, libmicrohttpd on the loop. */
#include "wire/httpd.h"
#include "base/attr.h"
#include "base/err.h"
#include "wire/httpd_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BODY_DEFAULT	((size_t)3 << 20)
#define BODIES_DEFAULT		16 /* bodies of greatest size */
#define MAX_CONNECTIONS_DEFAULT 4096
#define IDLE_MS_DEFAULT		120000
#define REQUEST_MS_DEFAULT	10000
#define CROWDED_PART		10 /* of request_ms */
#define CERTS_MS_DEFAULT	1000
#define PIECE_MAX		((size_t)8 << 10) /* a buffer for a body grows by that */
#define FRUITLESS_MAX		5 /* runs, each after twice the time of the one before: 32 ms */
#define PRIORITIES		"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* ---- libmicrohttpd on the loop ---- */

/* The server whose MHD_run() this thread is in: GnuTLS does not say whose client it
 * greets. */
static _Thread_local struct httpd *running;

static void plan_run(struct httpd *httpd);
static void settle(struct httpd *httpd);

static void run(struct httpd *httpd)
{
	httpd->inside = true;
	httpd->progress = false;
	running = httpd;
	MHD_run(httpd->daemon);
	running = NULL;
	httpd->inside = false;
	plan_run(httpd);
	settle(httpd);
}

static void run_timed(uv_timer_t *timer)
{
	run(timer->data);
}

/* Not by a timer: one that sets itself to 0 ms keeps older versions of libuv from ever
 * leaving their timers. */
static void run_kicked(uv_idle_t *kick)
{
	uv_idle_stop(kick);
	run(kick->data);
}

static void polled(uv_poll_t *poll, int status, int events)
{
	struct httpd *httpd = poll->data;

	(void)status, (void)events;
	httpd->fruitless = 0;
	run(httpd);
}

void httpd_kick(struct httpd *httpd)
{
	if (!httpd->stopped)
		uv_idle_start(&httpd->kick, run_kicked);
}

/* libmicrohttpd may have bytes that it has taken off a socket, which no descriptor tells,
 * and wants to run again at once.  It also says so all the time that a client takes to
 * greet, for it does not note that there is nothing to read: a client that stops in the
 * middle would keep a processor busy.  So while somebody greets, and nothing comes of it,
 * it runs more and more rarely; bytes that arrive are told by the descriptor.  An answer
 * to somebody else goes on meanwhile, which does not show: 16 KiB with each run. */
static void plan_run(struct httpd *httpd)
{
	unsigned long long wait_ms;

	if (MHD_get_timeout(httpd->daemon, &wait_ms) != MHD_YES)
		return;
	if (wait_ms == 0 && (httpd->progress || httpd->greeting == 0)) {
		httpd->fruitless = 0;
		httpd_kick(httpd);
		return;
	}
	if (wait_ms == 0)
		wait_ms = httpd->answering ? 1 : 1U << httpd->fruitless;
	if (httpd->fruitless < FRUITLESS_MAX)
		httpd->fruitless++;
	uv_timer_start(&httpd->run_timer, run_timed, wait_ms, 0);
}

static int show_pair(gnutls_session_t session, const gnutls_datum_t *authorities, int count,
		     const gnutls_pk_algorithm_t *algorithms, int algorithms_count,
		     gnutls_pcert_st **ret_certs, unsigned int *ret_count,
		     gnutls_privkey_t *ret_key)
{
	(void)session, (void)authorities, (void)count, (void)algorithms, (void)algorithms_count;
	if (!running)
		return -1;
	running->progress = true;
	httpd_pair_use(running->certs, ret_certs, ret_count, ret_key);
	return 0;
}

static void look_at_certs(uv_timer_t *timer)
{
	struct httpd *httpd = timer->data;
	struct err err = ERR_INIT;
	int r = httpd_certs_check(httpd->certs, &err);

	if (httpd->options.certs_changed && (r == 1 || r == -EINVAL))
		httpd->options.certs_changed(httpd->options.context, r == 1 ? NULL : &err);
}

/* ---- its life ---- */

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static void options_copy(struct httpd *httpd, const struct httpd_options *options)
{
	struct httpd_options *own = &httpd->options;

	*own = *options;
	own->addr = own->cert_file = own->key_file = NULL;
	own->max_body = own->max_body ? own->max_body : MAX_BODY_DEFAULT;
	own->max_bodies = own->max_bodies ? own->max_bodies : BODIES_DEFAULT * own->max_body;
	own->max_connections = or_default(own->max_connections, MAX_CONNECTIONS_DEFAULT);
	own->idle_ms = or_default(own->idle_ms, IDLE_MS_DEFAULT);
	own->request_ms = or_default(own->request_ms, REQUEST_MS_DEFAULT);
	own->crowded_ms = or_default(own->crowded_ms, own->request_ms / CROWDED_PART);
	own->certs_ms = or_default(own->certs_ms, CERTS_MS_DEFAULT);
}

static int daemon_start(struct httpd *httpd, int fd, struct err *err)
{
	const struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)show_pair },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};
	const struct MHD_OptionItem none[] = { { MHD_OPTION_END, 0, NULL } };
	unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;

	if (httpd->certs)
		flags |= MHD_USE_TLS;
	httpd->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, httpd_call_serve, httpd, MHD_OPTION_ARRAY,
		httpd->certs ? tls : none, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)httpd->options.max_connections,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, HTTPD_HEAD_MAX, MHD_OPTION_STRICT_FOR_CLIENT,
		1, MHD_OPTION_CONNECTION_MEMORY_INCREMENT, PIECE_MAX, MHD_OPTION_NOTIFY_CONNECTION,
		httpd_link_notify, httpd, MHD_OPTION_NOTIFY_COMPLETED, httpd_call_end, httpd,
		MHD_OPTION_URI_LOG_CALLBACK, httpd_call_new, httpd, MHD_OPTION_END);
	if (httpd->daemon)
		return 0;
	close(fd);
	return err_set(err, ENOMEM, "libmicrohttpd does not start");
}

static void handles_init(struct httpd *httpd)
{
	uv_timer_t *const timers[] = { &httpd->run_timer, &httpd->due_timer, &httpd->certs_timer,
				       &httpd->grace_timer };
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	for (size_t i = 0; i < ARRAY_SIZE(timers); i++) {
		uv_timer_init(httpd->loop, timers[i]);
		timers[i]->data = httpd;
	}
	uv_poll_init(httpd->loop, &httpd->poll, info->epoll_fd);
	uv_idle_init(httpd->loop, &httpd->kick);
	httpd->poll.data = httpd->kick.data = httpd;
	httpd->handles = ARRAY_SIZE(timers) + 2;
	uv_poll_start(&httpd->poll, UV_READABLE, polled);
	if (httpd->certs)
		uv_timer_start(&httpd->certs_timer, look_at_certs, httpd->options.certs_ms,
			       httpd->options.certs_ms);
}

static void httpd_free(struct httpd *httpd)
{
	httpd_certs_free(httpd->certs);
	free(httpd);
}

static int begin(struct httpd *httpd, const struct httpd_options *options, struct err *err)
{
	int fd = -1, r = 0;

	if (options->cert_file)
		r = httpd_certs_new(options->cert_file, options->key_file, &httpd->certs, err);
	if (r == 0)
		r = httpd_listen(options->addr, &fd, &httpd->port, err);
	if (r == 0)
		r = daemon_start(httpd, fd, err);
	if (r == 0)
		handles_init(httpd);
	return r;
}

int httpd_new(uv_loop_t *loop, const struct httpd_options *options, struct httpd **ret,
	      struct err *err)
{
	if (!options->cert_file != !options->key_file)
		return err_set(err, EINVAL, "a certificate needs its key, a key its certificate");
	struct httpd *httpd = calloc(1, sizeof(*httpd));
	if (!httpd)
		return err_set(err, ENOMEM, "no memory for a server");
	httpd->loop = loop;
	options_copy(httpd, options);
	int r = begin(httpd, options, err);
	if (r < 0) {
		httpd_free(httpd);
		return r;
	}
	*ret = httpd;
	return 0;
}

int httpd_port(const struct httpd *httpd)
{
	return httpd->port;
}

uint32_t httpd_connections(const struct httpd *httpd)
{
	return httpd->connections;
}

uint32_t httpd_in_flight(const struct httpd *httpd)
{
	return httpd->in_flight;
}

/* ---- the end ---- */

static void handle_closed(uv_handle_t *handle)
{
	struct httpd *httpd = handle->data;

	if (--httpd->handles > 0)
		return;
	void (*closed)(void *context) = httpd->closed;
	void *context = httpd->closed_context;
	httpd_free(httpd);
	if (closed)
		closed(context);
}

/* Not from inside MHD_run(). */
static void stop(struct httpd *httpd)
{
	httpd->stopped = true;
	if (httpd->waiting.first) {
		httpd_calls_drop(httpd);
		running = httpd;
		MHD_run(httpd->daemon); /* answers them */
		running = NULL;
	}
	uv_close((uv_handle_t *)&httpd->poll, handle_closed);
	uv_close((uv_handle_t *)&httpd->kick, handle_closed);
	uv_close((uv_handle_t *)&httpd->run_timer, handle_closed);
	uv_close((uv_handle_t *)&httpd->due_timer, handle_closed);
	uv_close((uv_handle_t *)&httpd->certs_timer, handle_closed);
	uv_close((uv_handle_t *)&httpd->grace_timer, handle_closed);
	MHD_stop_daemon(httpd->daemon);
}

static void settle(struct httpd *httpd)
{
	if (httpd->closing && !httpd->stopped && !httpd->inside && httpd->in_flight == 0)
		stop(httpd);
}

static void grace_over(uv_timer_t *timer)
{
	struct httpd *httpd = timer->data;

	if (!httpd->stopped)
		stop(httpd);
}

void httpd_retire(struct httpd *httpd)
{
	httpd->retired = true;
}

void httpd_close(struct httpd *httpd, uint32_t grace_ms, void (*closed)(void *context),
		 void *context)
{
	if (!httpd) {
		if (closed)
			closed(context);
		return;
	}
	httpd->retired = httpd->closing = true;
	httpd->closed = closed;
	httpd->closed_context = context;
	MHD_socket fd = MHD_quiesce_daemon(httpd->daemon);
	if (fd != MHD_INVALID_SOCKET)
		close(fd);
	uv_timer_start(&httpd->grace_timer, grace_over, grace_ms, 0);
	/* Once more, for what has arrived and was not looked at. */
	httpd_kick(httpd);
}
