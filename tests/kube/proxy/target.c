/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#define PARTS_MAX 10 /* of "apis/G/V/watch/namespaces/NS/pods/NAME/SUB" */

struct part {
	const char *s;
	size_t len;
};

static bool part_is(struct part part, const char *word)
{
	return part.len == strlen(word) && memcmp(part.s, word, part.len) == 0;
}

static size_t split(const char *s, struct part *parts)
{
	size_t count = 0;
	while (*s && count < PARTS_MAX) {
		s += strspn(s, "/");
		size_t len = strcspn(s, "/");
		if (len > 0)
			parts[count++] = (struct part){ s, len };
		s += len;
	}
	return count;
}

/* The value of a parameter of the query, as it is written. */
static bool query_get(const char *query, const char *name, struct part *ret)
{
	size_t n = strlen(name);
	while (*query) {
		size_t len = strcspn(query, "&");
		if (len >= n && memcmp(query, name, n) == 0 && (len == n || query[n] == '=')) {
			size_t skip = len == n ? n : n + 1;
			*ret = (struct part){ query + skip, len - skip };
			return true;
		}
		query += len;
		query += *query == '&';
	}
	return false;
}

static bool query_is_true(const char *query, const char *name)
{
	struct part value;
	return query_get(query, name, &value) && (part_is(value, "1") || part_is(value, "true"));
}

/* "GET" is one of three verbs, the others are one each. */
static const char *verb_of(const struct target *target)
{
	static const char *const verbs[][2] = { { "POST", "create" }, { "PUT", "update" },
						{ "PATCH", "patch" }, { "DELETE", "delete" },
						{ "GET", "get" },     { "HEAD", "get" } };
	if (target->watch)
		return "watch";
	bool collection = target->resource.len > 0 && target->name.len == 0;
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(target->method, verbs[i][0]) != 0)
			continue;
		if (collection && strcmp(verbs[i][1], "get") == 0)
			return "list";
		if (collection && strcmp(verbs[i][1], "delete") == 0)
			return "deletecollection";
		return verbs[i][1];
	}
	return "other";
}

/* What lies below /api/v1 or /apis/GROUP/VERSION. */
static void read_resource(struct target *target, const struct part *parts, size_t count)
{
	if (count > 0 && part_is(parts[0], "watch")) { /* the old form of a watch */
		target->watch = true;
		parts++;
		count--;
	}
	if (count > 2 && part_is(parts[0], "namespaces") && !part_is(parts[2], "status") &&
	    !part_is(parts[2], "finalize")) {
		strbuf_add(&target->namespace, parts[1].s, parts[1].len);
		parts += 2;
		count -= 2;
	}
	if (count > 0)
		strbuf_add(&target->resource, parts[0].s, parts[0].len);
	if (count > 1)
		strbuf_add(&target->name, parts[1].s, parts[1].len);
	if (count > 2) {
		strbuf_putc(&target->resource, '/');
		strbuf_add(&target->resource, parts[2].s, parts[2].len);
	}
}

static void add_identity(struct target *target, const char *query)
{
	static const char *const kept[] = { "labelSelector", "fieldSelector" };
	struct strbuf *identity = &target->identity;
	strbuf_addf(identity, "%s ", target->method);
	strbuf_add(identity, target->path.s, target->path.len);
	if (target->watch)
		strbuf_puts(identity, "?watch");
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		struct part value;
		if (!query_get(query, kept[i], &value))
			continue;
		strbuf_addf(identity, "%s%s=", strchr(identity->s, '?') ? "&" : "?", kept[i]);
		strbuf_add(identity, value.s, value.len);
	}
}

int target_read(const char *method, const char *path, struct target *ret)
{
	size_t len = strcspn(path, "?");
	const char *query = path[len] ? path + len + 1 : "";
	if (strlen(path) > TARGET_MAX || strlen(method) > 32)
		return -E2BIG;
	struct strbuf empty = STRBUF_INIT_MAX(2 * TARGET_MAX);
	struct target target = { .method = method,
				 .path = empty,
				 .resource = empty,
				 .namespace = empty,
				 .name = empty,
				 .identity = empty };
	strbuf_add(&target.path, path, len);
	struct part parts[PARTS_MAX];
	size_t count = split(target.path.s, parts);
	if (count > 1 && part_is(parts[0], "api"))
		read_resource(&target, parts + 2, count - 2);
	else if (count > 2 && part_is(parts[0], "apis"))
		read_resource(&target, parts + 3, count - 3);
	target.watch =
		(target.watch || query_is_true(query, "watch")) && strcmp(method, "GET") == 0;
	target.verb = verb_of(&target);
	add_identity(&target, query);
	*ret = target;
	if (target.path.failed || target.resource.failed || target.namespace.failed ||
	    target.name.failed || target.identity.failed) {
		target_done(ret);
		return -ENOMEM;
	}
	return 0;
}

void target_done(struct target *target)
{
	strbuf_done(&target->path);
	strbuf_done(&target->resource);
	strbuf_done(&target->namespace);
	strbuf_done(&target->name);
	strbuf_done(&target->identity);
}
