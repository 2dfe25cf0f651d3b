/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - the URLs of a configuration: of the server and of a proxy.
 *
 * Checked here once, so that a slip of the pen is told by its field and not as a host
 * that cannot be found.  The errors are phrases to be put behind the field's name.
 */
#ifndef GS_KUBE_ENDPOINT_H
#define GS_KUBE_ENDPOINT_H

struct arena;
struct err;

/* "https://host:6443/prefix": http or https, no user, query or fragment.  `ret` is
 * without '/' at the end.  0, -EINVAL, -ENOMEM. */
int endpoint_server(struct arena *arena, const char *url, const char **ret, struct err *err);

/* "socks5://user:password@host:1080": http, https or socks5, and no path. */
int endpoint_proxy(const char *url, struct err *err);

/* "https://host:port", the host of an IPv6 address in brackets; checked as above. */
int endpoint_of(struct arena *arena, const char *host, const char *port, const char **ret,
		struct err *err);

#endif
