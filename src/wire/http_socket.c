/* SPDX-License-Identifier: Apache-2.0 */
/* http_socket.c - libcurl's sockets and its timer on the loop.
 *
 * Sockets are opened and closed here, so that the loop forgets a descriptor before the
 * kernel can give its number to somebody else, and so that a connection has a place for
 * what libcurl does not tell: when it was heard last.
 */
#include "wire/http_parts.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* What was sent and is not acknowledged for so long ends the connection: the other
 * machine is gone.  Keep-alive does the same for a connection on which nothing is sent. */
#define UNHEARD_MS	30000
#define KEEP_IDLE_S	15
#define KEEP_INTERVAL_S 5

static struct http_socket **bucket_of(struct http *http, int fd)
{
	return &http->sockets[(unsigned)fd % HTTP_SOCKET_BUCKETS];
}

struct http_socket *http_socket_find(const struct http *http, int fd)
{
	if (fd < 0)
		return NULL;
	struct http_socket *socket = http->sockets[(unsigned)fd % HTTP_SOCKET_BUCKETS];
	while (socket && socket->fd != fd)
		socket = socket->next;
	return socket;
}

static int port_of(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)address)->sin_port);
	if (address->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	return -1;
}

/* Asked once: a socket whose end has come does not know them any more. */
static bool has_ports(struct http_socket *socket, int local_port, int remote_port)
{
	struct sockaddr_storage local = { 0 }, remote = { 0 };
	socklen_t local_len = sizeof(local), remote_len = sizeof(remote);

	if (!socket->local_port &&
	    getsockname(socket->fd, (struct sockaddr *)&local, &local_len) == 0 &&
	    getpeername(socket->fd, (struct sockaddr *)&remote, &remote_len) == 0) {
		socket->local_port = port_of(&local);
		socket->remote_port = port_of(&remote);
	}
	return socket->local_port == local_port && socket->remote_port == remote_port;
}

struct http_socket *http_socket_by_ports(const struct http *http, int local_port, int remote_port)
{
	for (size_t i = 0; i < HTTP_SOCKET_BUCKETS; i++)
		for (struct http_socket *s = http->sockets[i]; s; s = s->next)
			if (s->connection && has_ports(s, local_port, remote_port))
				return s;
	return NULL;
}

static void socket_freed(uv_handle_t *handle)
{
	struct http_socket *socket = handle->data;
	struct http *http = socket->http;

	free(socket);
	http_handle_closed(http);
}

static void socket_free(struct http_socket *socket)
{
	struct http_socket **at = bucket_of(socket->http, socket->fd);

	while (*at != socket)
		at = &(*at)->next;
	*at = socket->next;
	if (socket->connection)
		socket->http->connections--;
	uv_close((uv_handle_t *)&socket->poll, socket_freed);
}

static void socket_ready(uv_poll_t *poll, int status, int events);

/* Each change costs two calls of the kernel, so there are none without need. */
static void socket_arm(struct http_socket *socket, int events)
{
	if (socket->armed == events)
		return;
	socket->armed = events;
	uv_poll_start(&socket->poll, events, socket_ready);
}

/* libcurl looks whether a connection lives before it uses it again, but with HTTP/2 takes
 * a polite end of TLS for life.  Nothing can be sent on it any more, so what is tried all
 * the same goes to a new connection (see sending() in http_easy.c). */
void http_socket_bury(struct http_socket *socket)
{
	socket->over = true;
	shutdown(socket->fd, SHUT_RDWR);
}

static void socket_ready(uv_poll_t *poll, int status, int events)
{
	struct http_socket *socket = poll->data;
	int curl_events = 0;

	if (!socket->events && (status < 0 || events & UV_DISCONNECT)) {
		http_socket_bury(socket); /* nobody uses it, and the server has closed it */
		socket->armed = 0;
		uv_poll_stop(poll);
		return;
	}
	if (!socket->events) {
		socket_arm(socket, UV_DISCONNECT); /* what came is for the next request */
		return;
	}
	/* libuv has stopped to poll a socket with an error.  libcurl is to read what came
	 * before it, and may then want to read on. */
	if (status < 0) {
		curl_events = CURL_CSELECT_IN | CURL_CSELECT_OUT | CURL_CSELECT_ERR;
		socket->armed = 0;
	} else {
		curl_events |= events & (UV_READABLE | UV_DISCONNECT) ? CURL_CSELECT_IN : 0;
		curl_events |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
	}
	if (curl_events & CURL_CSELECT_IN)
		socket->heard_ms = uv_now(socket->http->loop);
	http_act(socket->http, socket->fd, curl_events);
	if (status < 0 && socket->events && !uv_is_closing((uv_handle_t *)poll))
		socket_arm(socket, socket->events);
}

static struct http_socket *socket_new(struct http *http, int fd, bool connection)
{
	struct http_socket *socket = calloc(1, sizeof(*socket));
	struct http_socket *old = http_socket_find(http, fd);
	int events = old ? old->events : 0;
	struct stat now = { 0 };

	if (old)
		socket_free(old); /* was closed and we were not told */
	if (!socket || fstat(fd, &now) < 0 || uv_poll_init(http->loop, &socket->poll, fd) < 0) {
		free(socket);
		return NULL;
	}
	socket->poll.data = socket;
	socket->http = http;
	socket->fd = fd;
	socket->serial = ++http->serial;
	socket->inode = now.st_ino;
	socket->connection = connection;
	socket->next = *bucket_of(http, fd);
	*bucket_of(http, fd) = socket;
	http->handles++;
	http->connections += connection;
	if (events) { /* libcurl believes that it waits for these already */
		socket->events = events;
		socket_arm(socket, events);
	}
	return socket;
}

/* libcurl closes a socket that never got its connection without asking us, and tells
 * the loop only then. */
static bool is_closed(const struct http_socket *socket)
{
	struct stat now;

	return fstat(socket->fd, &now) < 0 || now.st_ino != socket->inode;
}

static void socket_unwanted(struct http_socket *socket)
{
	socket->events = 0;
	if (!socket->used && (!socket->connection || is_closed(socket)))
		socket_free(socket);
}

/* libcurl keeps no pointer to ours: it takes a new socket for an old one when both had
 * the same number. */
static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *context, void *mine)
{
	struct http *http = context;
	struct http_socket *socket = http_socket_find(http, fd);

	(void)easy, (void)mine;
	if (what == CURL_POLL_REMOVE) {
		if (socket)
			socket_unwanted(socket);
		return 0;
	}
	/* Without memory the resolver's answer is found when its timer rings. */
	if (!socket && !(socket = socket_new(http, fd, false)))
		return 0;
	socket->events = (what & CURL_POLL_IN ? UV_READABLE | UV_DISCONNECT : 0) |
			 (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
	socket_arm(socket, socket->events);
	return 0;
}

static void set_option(int fd, int level, int option, int value)
{
	/* Where the kernel knows it not, deadlines are left. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

int http_socket_open(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd < 0)
		return -1;
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNHEARD_MS);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
	return fd;
}

static curl_socket_t socket_open(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct http *http = context;

	(void)purpose;
	int fd = http_socket_open(to->family, to->socktype, to->protocol);
	if (fd < 0)
		return CURL_SOCKET_BAD;
	if (!socket_new(http, fd, true)) {
		close(fd);
		return CURL_SOCKET_BAD;
	}
	return fd;
}

static int socket_close(void *context, curl_socket_t fd)
{
	struct http_socket *socket = http_socket_find(context, fd);

	if (socket)
		socket_free(socket);
	return close(fd);
}

int http_socket_options(CURL *easy, struct http *http)
{
	bool ok = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket_open) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, http) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, socket_close) == CURLE_OK &&
		  curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, http) == CURLE_OK;

	return ok ? 0 : -ENOMEM;
}

static void timer_rings(uv_timer_t *timer)
{
	http_act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int timer_wanted(CURLM *multi, long timeout_ms, void *context)
{
	struct http *http = context;

	(void)multi;
	uv_timer_stop(&http->curl_timer);
	http->curl_due = timeout_ms == 0;
	if (http->curl_due)
		http_kick(http);
	else if (timeout_ms > 0)
		uv_timer_start(&http->curl_timer, timer_rings, (uint64_t)timeout_ms, 0);
	return 0;
}

int http_socket_attach(struct http *http)
{
	bool ok =
		curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted) ==
			CURLM_OK &&
		curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http) == CURLM_OK &&
		curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, timer_wanted) == CURLM_OK &&
		curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http) == CURLM_OK;

	return ok ? 0 : -ENOMEM;
}

/* libcurl has closed its own; what is left is what it closed without a word. */
void http_socket_close_all(struct http *http)
{
	for (size_t i = 0; i < HTTP_SOCKET_BUCKETS; i++)
		while (http->sockets[i])
			socket_free(http->sockets[i]);
}
