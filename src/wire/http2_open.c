/* SPDX-License-Identifier: Apache-2.0 */
/* http2_open.c - from a name to a socket that is connected.
 *
 * The addresses of a name are tried one after the other.  Each has its share of the time
 * that is left, so that one that swallows packets leaves some to the next.  The one that
 * worked last comes first, so that this costs one connection its time and not each.
 */
#include "wire/http2.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(struct http2_link *link, CURLcode code, const char *why)
{
	snprintf(link->reason, sizeof(link->reason), "cannot connect to %s port %s: %s",
		 link->host, link->port, why);
	http2_fail(link, code);
}

/* After what the loop has reported. */
static void settle(struct http *http)
{
	http2_work(http);
	http_leave(http);
}

/* ---- one address after the other ---- */

static void try_addresses(struct http2_link *link);
static void set_limit(struct http2_link *link, uint64_t addresses);

static void poll_closed(uv_handle_t *handle)
{
	free(handle);
}

static void drop_socket(struct http2_link *link)
{
	if (link->fd < 0)
		return;
	uv_close((uv_handle_t *)link->poll, poll_closed);
	close(link->fd);
	link->poll = NULL;
	link->fd = -1;
	link->armed = 0;
}

static struct addrinfo *find_worked(const struct http2_link *link)
{
	const struct http *http = link->http;
	struct addrinfo *address = link->addresses;

	while (address && (address->ai_addrlen != http->worked_len ||
			   memcmp(address->ai_addr, &http->worked, http->worked_len) != 0))
		address = address->ai_next;
	return address ? address : link->addresses;
}

void http2_open_worked(const struct http2_link *link, bool worked)
{
	struct http *http = link->http;

	http->worked_len = 0;
	if (!worked || link->address->ai_addrlen > sizeof(http->worked))
		return;
	http->worked_len = link->address->ai_addrlen;
	memcpy(&http->worked, link->address->ai_addr, http->worked_len);
}

/* Round from the first one to the one before it; NULL: that was all. */
static struct addrinfo *next_of(const struct http2_link *link, const struct addrinfo *address)
{
	struct addrinfo *next = address->ai_next ? address->ai_next : link->addresses;

	return next == link->first ? NULL : next;
}

static void try_next(struct http2_link *link, int r)
{
	drop_socket(link);
	link->address = next_of(link, link->address);
	if (link->address)
		try_addresses(link);
	else
		fail(link, CURLE_COULDNT_CONNECT, strerror(-r));
}

static void socket_says(uv_poll_t *poll, int status, int events)
{
	struct http2_link *link = poll->data;
	struct http *http = link->http;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)events;
	http_enter(http);
	if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (!error && status < 0)
		error = -status;
	if (error) {
		try_next(link, -error);
	} else {
		set_limit(link, 1);
		http2_link_connected(link);
	}
	settle(http);
}

static int watch_socket(struct http2_link *link, int fd)
{
	uv_poll_t *poll = malloc(sizeof(*poll));
	int r = poll ? uv_poll_init(link->http->loop, poll, fd) : -ENOMEM;

	if (r < 0) {
		free(poll);
		return r;
	}
	poll->data = link;
	link->poll = poll;
	link->fd = fd;
	return uv_poll_start(poll, UV_WRITABLE, socket_says);
}

/* 0: it is or will be connected; -errno. */
static int try_address(struct http2_link *link)
{
	const struct addrinfo *to = link->address;
	int fd = http_socket_open(to->ai_family, to->ai_socktype, to->ai_protocol);

	if (fd < 0)
		return -errno;
	int r = connect(fd, to->ai_addr, to->ai_addrlen) < 0 ? -errno : 0;
	if (r == 0 || r == -EINPROGRESS)
		r = watch_socket(link, fd);
	if (r < 0 && link->fd < 0)
		close(fd);
	return r;
}

static void too_late(uv_timer_t *timer)
{
	struct http2_link *link = timer->data;
	struct http *http = link->http;

	http_enter(http);
	if (link->state == HTTP2_CONNECTING && next_of(link, link->address))
		try_next(link, -ETIMEDOUT);
	else
		fail(link, CURLE_OPERATION_TIMEDOUT, "no answer in time");
	settle(http);
}

/* So many share the time that is left. */
static void set_limit(struct http2_link *link, uint64_t addresses)
{
	uint64_t now_ms = uv_now(link->http->loop);
	uint64_t left_ms = link->connect_by_ms > now_ms ? link->connect_by_ms - now_ms : 0;

	uv_timer_start(&link->timer, too_late, left_ms / addresses, 0);
}

static uint64_t addresses_left(const struct http2_link *link)
{
	uint64_t count = 0;

	for (const struct addrinfo *next = link->address; next; next = next_of(link, next))
		count++;
	return count;
}

static void try_addresses(struct http2_link *link)
{
	int r = -EHOSTUNREACH;

	for (; link->address; link->address = next_of(link, link->address)) {
		link->state = HTTP2_CONNECTING;
		set_limit(link, addresses_left(link));
		r = try_address(link);
		if (r == 0)
			return;
		drop_socket(link);
	}
	fail(link, CURLE_COULDNT_CONNECT, strerror(-r));
}

static void begin(struct http2_link *link)
{
	link->first = link->address = find_worked(link);
	try_addresses(link);
}

/* ---- the name ---- */

static void resolved(void *context, int error, struct addrinfo *addresses)
{
	struct http2_link *link = context;
	struct http *http = link->http;

	link->lookup = NULL;
	link->addresses = addresses;
	http_enter(http);
	if (error)
		fail(link, CURLE_COULDNT_RESOLVE_HOST, gai_strerror(error));
	else
		begin(link);
	settle(http);
}

void http2_open(struct http2_link *link)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };

	link->connect_by_ms = uv_now(link->http->loop) + link->http->options.connect_ms;
	uv_timer_start(&link->timer, too_late, link->http->options.connect_ms, 0);
	/* An address needs nobody to look it up. */
	if (getaddrinfo(link->host, link->port, &hints, &link->addresses) == 0) {
		begin(link);
		return;
	}
	int r = http2_lookup_new(link, resolved, link, &link->lookup);
	if (r < 0)
		fail(link, CURLE_COULDNT_RESOLVE_HOST, strerror(-r));
}

void http2_open_stop(struct http2_link *link)
{
	if (link->lookup)
		http2_lookup_drop(link->lookup);
	link->lookup = NULL;
	drop_socket(link);
}
