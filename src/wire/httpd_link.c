/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_link.c - a connection, and how long it may take.
 *
 * libmicrohttpd's own timeout begins anew with every byte, so a client that sends one now
 * and then would stay for ever.  Here each phase has its end.
 */
#include "wire/httpd_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct httpd_links *list_of(struct httpd *httpd, enum httpd_phase phase)
{
	if (phase == HTTPD_IDLE)
		return &httpd->idle;
	return phase == HTTPD_BUSY ? &httpd->busy : NULL;
}

static void list_remove(struct httpd_links *list, struct httpd_link *link)
{
	if (!list)
		return;
	*(link->prev ? &link->prev->next : &list->first) = link->next;
	*(link->next ? &link->next->prev : &list->last) = link->prev;
}

static void list_append(struct httpd_links *list, struct httpd_link *link)
{
	link->next = NULL;
	link->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = link;
	list->last = link;
}

static bool is_crowded(const struct httpd *httpd)
{
	return httpd->connections >= httpd->options.max_connections;
}

static uint64_t due_of(const struct httpd *httpd, const struct httpd_link *link)
{
	uint32_t busy_ms =
		is_crowded(httpd) ? httpd->options.crowded_ms : httpd->options.request_ms;

	return link->since_ms + (link->phase == HTTPD_IDLE ? httpd->options.idle_ms : busy_ms);
}

/* The timer is moved only if it would come too late: one that comes early finds nothing
 * and is set anew, which is cheaper than to set it with every request. */
static void expect(struct httpd *httpd, uint64_t due_ms)
{
	uint64_t now_ms = uv_now(httpd->loop);

	if (httpd->stopped || (httpd->due_ms && httpd->due_ms <= due_ms))
		return;
	httpd->due_ms = due_ms;
	uv_timer_start(&httpd->due_timer, httpd_link_due, due_ms > now_ms ? due_ms - now_ms : 0,
		       0);
}

void httpd_link_phase(struct httpd_link *link, enum httpd_phase phase)
{
	struct httpd *httpd = link->httpd;
	struct httpd_links *list = list_of(httpd, phase);

	if (link->phase == HTTPD_CUT)
		return;
	list_remove(list_of(httpd, link->phase), link);
	link->phase = phase;
	link->since_ms = uv_now(httpd->loop);
	if (list) {
		list_append(list, link);
		expect(httpd, due_of(httpd, link));
	}
}

void httpd_link_greeted(struct httpd_link *link)
{
	link->httpd->greeting -= link->greeting;
	link->greeting = false;
}

/* libmicrohttpd cannot answer while a body is on its way, so this goes past it: nothing of
 * an answer has been written before, and nothing is after. */
static void say_late(const struct httpd_link *link, int fd)
{
	static const char text[] = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
				   "Content-Length: 0\r\n\r\n";
	const union MHD_ConnectionInfo *info = NULL;

	if (link->pair)
		info = MHD_get_connection_info(link->connection,
					       MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (info)
		gnutls_record_send(info->tls_session, text, sizeof(text) - 1);
	else
		send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* libmicrohttpd sees its socket at an end and does the rest. */
static void cut(struct httpd_link *link)
{
	/* What it points to is gone with the next question. */
	int fd = MHD_get_connection_info(link->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
			 ->connect_fd;

	if (link->asking)
		say_late(link, fd);
	httpd_link_phase(link, HTTPD_CUT);
	shutdown(fd, SHUT_RDWR);
}

static void cut_late(struct httpd *httpd, const struct httpd_links *list)
{
	while (list->first && due_of(httpd, list->first) <= uv_now(httpd->loop))
		cut(list->first);
}

void httpd_link_due(uv_timer_t *timer)
{
	struct httpd *httpd = timer->data;

	httpd->due_ms = 0;
	cut_late(httpd, &httpd->idle);
	cut_late(httpd, &httpd->busy);
	if (httpd->idle.first)
		expect(httpd, due_of(httpd, httpd->idle.first));
	if (httpd->busy.first)
		expect(httpd, due_of(httpd, httpd->busy.first));
}

/* libmicrohttpd takes a message of TLS that carries no bytes for the end of what there is
 * to read, and its epoll tells only of what comes after that: the request right behind a
 * client's new key would lie there.  Setting the low-water mark has Linux tell again. */
static int new_key(gnutls_session_t session, unsigned int type, unsigned int when,
		   unsigned int incoming, const gnutls_datum_t *message)
{
	const int one = 1;

	(void)type, (void)when, (void)incoming, (void)message;
	setsockopt(gnutls_transport_get_int(session), SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	return 0;
}

static void link_use_tls(struct httpd_link *link)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(link->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	gnutls_handshake_set_hook_function(info->tls_session, GNUTLS_HANDSHAKE_KEY_UPDATE,
					   GNUTLS_HOOK_POST, new_key);
	link->pair = httpd_pair_get(link->httpd->certs);
	link->greeting = true;
	link->httpd->greeting++;
}

/* For the next one: who is idle goes; else whoever takes too long, and that soon. */
static void make_room(struct httpd *httpd)
{
	if (httpd->idle.first)
		cut(httpd->idle.first);
	else if (httpd->busy.first)
		expect(httpd, due_of(httpd, httpd->busy.first));
}

static void link_open(struct httpd *httpd, struct MHD_Connection *connection, void **ret)
{
	struct httpd_link *link = calloc(1, sizeof(*link));

	*ret = link;
	if (!link)
		return; /* its first request is refused */
	link->httpd = httpd;
	link->connection = connection;
	if (httpd->certs)
		link_use_tls(link);
	link->phase = HTTPD_WAITING; /* in no list yet */
	httpd_link_phase(link, HTTPD_BUSY);
	httpd->connections++;
	if (is_crowded(httpd))
		make_room(httpd);
}

static void link_close(struct httpd_link *link)
{
	struct httpd *httpd = link->httpd;

	httpd_link_phase(link, HTTPD_CUT);
	httpd_link_greeted(link);
	if (link->pair)
		httpd_pair_put(httpd->certs, link->pair);
	httpd->connections--;
	/* With too many connections, or descriptors, nothing was accepted; MHD_run() begins
	 * again when it finds that there are less, but nobody calls it for that. */
	httpd_kick(httpd);
	free(link);
}

void httpd_link_notify(void *context, struct MHD_Connection *connection, void **link,
		       enum MHD_ConnectionNotificationCode code)
{
	((struct httpd *)context)->progress = true;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		link_open(context, connection, link);
	else if (*link)
		link_close(*link);
}
