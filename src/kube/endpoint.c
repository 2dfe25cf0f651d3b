/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/endpoint.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/num.h"
#include "base/utf8.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define URL_MAX 2048

struct span {
	const char *s;
	size_t len;
};

struct url {
	struct span scheme, user, host, port, path; /* s NULL: not there */
};

static int wrong(struct err *err, const char *url, const char *what)
{
	char shown[UTF8_SHOW_MAX];
	if (strchr(url, '@')) /* there may be a password in it */
		return err_set(err, EINVAL, "the URL %s", what);
	return err_set(err, EINVAL, "\"%s\" %s", utf8_show(url, strlen(url), shown), what);
}

static bool scheme_is(const struct url *url, const char *scheme)
{
	return url->scheme.len == strlen(scheme) &&
	       strncasecmp(url->scheme.s, scheme, url->scheme.len) == 0;
}

/* Visible ASCII, and nothing that has to be quoted. */
static bool is_plain(const char *url)
{
	for (const char *c = url; *c; c++)
		if (!isgraph((unsigned char)*c) || strchr("\"<>\\^`{|}", *c))
			return false;
	return true;
}

static bool is_ipv6(struct span host)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	if (host.len >= sizeof(text))
		return false;
	memcpy(text, host.s, host.len);
	text[host.len] = '\0';
	return inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_host_name(struct span host)
{
	if (host.len == 0 || host.len > 253)
		return false;
	for (size_t i = 0; i < host.len; i++)
		if (!isalnum((unsigned char)host.s[i]) && !strchr("-._", host.s[i]))
			return false;
	return true;
}

static bool is_port(struct span port)
{
	uint32_t number;
	return parse_u32(port.s, port.len, &number) == 0 && number > 0 && number < 65536;
}

/* [user@]host[:port], the host of an IPv6 address in brackets. */
static const char *split_authority(struct span authority, struct url *ret)
{
	const char *end = authority.s + authority.len;
	const char *at = memrchr(authority.s, '@', authority.len);
	if (at) {
		ret->user = (struct span){ authority.s, (size_t)(at - authority.s) };
		authority = (struct span){ at + 1, (size_t)(end - at - 1) };
	}
	bool bracket = authority.len > 0 && authority.s[0] == '[';
	const char *close = bracket ? memchr(authority.s, ']', authority.len) : NULL;
	if (bracket && !close)
		return "has '[' without ']'";
	const char *from = close ? close + 1 : authority.s;
	const char *colon = memchr(from, ':', (size_t)(end - from));
	const char *stop = colon ? colon : end;
	if (close && stop != close + 1)
		return "has something behind ']' that is no port";
	ret->host = close ? (struct span){ authority.s + 1, (size_t)(close - authority.s - 1) }
			  : (struct span){ authority.s, (size_t)(stop - authority.s) };
	if (bracket ? !is_ipv6(ret->host) : !is_host_name(ret->host))
		return "has no proper host";
	if (colon) {
		ret->port = (struct span){ colon + 1, (size_t)(end - colon - 1) };
		if (!is_port(ret->port))
			return "has no proper port (1 to 65535)";
	}
	return NULL;
}

/* NULL, or what is wrong with it. */
static const char *split(const char *url, struct url *ret)
{
	*ret = (struct url){ 0 };
	if (strlen(url) > URL_MAX)
		return "is too long";
	if (!is_plain(url))
		return "has characters that a URL cannot have";
	const char *colon = strstr(url, "://");
	if (!colon)
		return "does not begin with https:// or the like";
	ret->scheme = (struct span){ url, (size_t)(colon - url) };
	const char *authority = colon + 3;
	size_t len = strcspn(authority, "/?#");
	ret->path = (struct span){ authority + len, strlen(authority + len) };
	return split_authority((struct span){ authority, len }, ret);
}

int endpoint_server(struct arena *arena, const char *text, const char **ret, struct err *err)
{
	struct url url;
	const char *what = split(text, &url);
	if (!what && !scheme_is(&url, "https") && !scheme_is(&url, "http"))
		what = "is neither https:// nor http://";
	else if (!what && url.user.s)
		what = "has a user in it; that belongs below users";
	else if (!what &&
		 (memchr(url.path.s, '?', url.path.len) || memchr(url.path.s, '#', url.path.len)))
		what = "has a query or fragment; only a path may follow the host";
	if (what)
		return wrong(err, text, what);
	size_t len = strlen(text);
	while (text[len - 1] == '/')
		len--;
	char *copy = arena_strndup(arena, text, len);
	if (!copy)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < url.scheme.len; i++)
		copy[i] = (char)tolower((unsigned char)copy[i]);
	*ret = copy;
	return 0;
}

int endpoint_proxy(const char *text, struct err *err)
{
	struct url url;
	const char *what = split(text, &url);
	if (!what && !scheme_is(&url, "http") && !scheme_is(&url, "https") &&
	    !scheme_is(&url, "socks5"))
		what = "is none of http://, https:// and socks5://";
	else if (!what && url.path.len > 0 && strcmp(url.path.s, "/") != 0)
		what = "has a path; a proxy has none";
	return what ? wrong(err, text, what) : 0;
}

int endpoint_of(struct arena *arena, const char *host, const char *port, const char **ret,
		struct err *err)
{
	char url[URL_MAX];
	if (!is_port((struct span){ port, strlen(port) }))
		return wrong(err, port, "is no proper port (1 to 65535)");
	bool bracket = strchr(host, ':') && host[0] != '[';
	snprintf(url, sizeof(url), "https://%s%s%s:%s", bracket ? "[" : "", host,
		 bracket ? "]" : "", port);
	return endpoint_server(arena, url, ret, err);
}
