/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_listen.c - from "host:port" to a socket that listens. */
#include "base/err.h"
#include "base/num.h"
#include "wire/httpd_parts.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG	 1024
#define HOST_MAX 256

/* A descriptor, or -1 with errno. */
static int listen_on(const struct sockaddr *address, socklen_t len)
{
	const int yes = 1, no = 0;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (address->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, address, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

/* A socket of IPv6 hears IPv4 too; where the kernel has no IPv6, that of IPv4 alone. */
static int listen_on_any(uint16_t port)
{
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = listen_on((const struct sockaddr *)&six, sizeof(six));

	if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
		fd = listen_on((const struct sockaddr *)&four, sizeof(four));
	return fd;
}

static int listen_on_host(const char *addr, const char *host, const char *port, int *ret_fd,
			  struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	int fd = -1, code = getaddrinfo(host, port, &hints, &found);

	if (code)
		return err_set(err, EINVAL, "cannot listen on %s: %s", addr, gai_strerror(code));
	for (struct addrinfo *one = found; one && fd < 0; one = one->ai_next)
		fd = listen_on(one->ai_addr, one->ai_addrlen);
	int reason = errno;
	freeaddrinfo(found);
	if (fd < 0)
		return err_set(err, reason, "cannot listen on %s: %s", addr, strerror(reason));
	*ret_fd = fd;
	return 0;
}

/* Splits at the last colon; brackets around an address of IPv6 fall off. */
static bool split(const char *addr, char host[HOST_MAX], const char **ret_port, uint32_t *ret)
{
	const char *colon = strrchr(addr, ':'), *first = addr, *last = colon;

	if (!colon || parse_u32(colon + 1, strlen(colon + 1), ret) < 0 || *ret > UINT16_MAX)
		return false;
	if (*first == '[' && last[-1] == ']' && last - first > 2) {
		first++;
		last--;
	} else if (memchr(first, ':', (size_t)(last - first))) {
		return false;
	}
	if (last - first >= HOST_MAX)
		return false;
	memcpy(host, first, (size_t)(last - first));
	host[last - first] = '\0';
	*ret_port = colon + 1;
	return true;
}

static int port_of(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
	socklen_t len = sizeof(address);

	memset(&address, 0, sizeof(address));
	if (getsockname(fd, &address.any, &len) < 0)
		return 0;
	return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port
						       : address.v4.sin_port);
}

int httpd_listen(const char *addr, int *ret_fd, int *ret_port, struct err *err)
{
	char host[HOST_MAX];
	const char *port;
	uint32_t number;
	int fd = -1;

	if (!split(addr, host, &port, &number))
		return err_set(err, EINVAL,
			       "'%s' is no address to listen on, like :8080 or "
			       "127.0.0.1:8080 or [::1]:8080",
			       addr);
	if (*host) {
		int r = listen_on_host(addr, host, port, &fd, err);
		if (r < 0)
			return r;
	} else if ((fd = listen_on_any((uint16_t)number)) < 0) {
		return err_set(err, errno, "cannot listen on %s: %s", addr, strerror(errno));
	}
	*ret_fd = fd;
	*ret_port = port_of(fd);
	return 0;
}
