/* SPDX-License-Identifier: Apache-2.0 */
/* kube_follow.h - a cache's rules with a server that is the test itself.
 *
 * Changes are written down as "+a1" (ADDED, name and version), "~a2" (MODIFIED), "-a2"
 * (DELETED), "!a2" (GONE: of the former version), "S" (synced), with blanks between.
 */
#ifndef GS_TESTS_UNIT_KUBE_FOLLOW_H
#define GS_TESTS_UNIT_KUBE_FOLLOW_H

#include "test.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "kube/cache_follow.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "wire/json.h"

struct server {
	struct kube_cache_options options;
	struct kube_kind kind;
	struct keep *keep;
	bool streams;
	struct follow follow;
	struct follow_request asked;
	struct strbuf seen; /* changes since server_seen() */
	struct strbuf shown;
	uint64_t now_ms;
};

static inline void server_changed(void *context, enum kube_change change,
				  const struct kube_object *before, struct kube_object *now,
				  const struct json *object)
{
	struct server *server = context;
	const struct kube_object *of = now ? now : before;
	strbuf_addf(&server->seen, "%s%c%s%s", server->seen.len ? " " : "", "+~-!"[change],
		    of -> name, of -> version);
	CHECK((now == NULL) == (object == NULL));
	CHECK((before == NULL) == (change == KUBE_ADDED));
	CHECK((now == NULL) == (change == KUBE_DELETED || change == KUBE_GONE));
	if (now) {
		CHECK_STR(json_str(object, "metadata", "name"), now->name);
		CHECK(cache_store_get(&server->follow.store, now->namespace, now->name) == now);
	} else {
		CHECK(!cache_store_get(&server->follow.store, before->namespace, before->name));
	}
	if (before && now)
		CHECK_STR(before->uid, now->uid);
}

static inline void server_synced(void *context)
{
	struct server *server = context;
	strbuf_addf(&server->seen, "%sS", server->seen.len ? " " : "");
}

/* Of pods, listed page by page; change the options before server_open(). */
static inline void server_init(struct server *server)
{
	*server = (struct server){ .streams = true, .seen = STRBUF_INIT, .shown = STRBUF_INIT };
	server->now_ms = 1000000;
	server->kind = kube_kinds[KUBE_POD];
	server->options = (struct kube_cache_options){ .kind = &server->kind,
						       .no_streaming = true,
						       .changed = server_changed,
						       .synced = server_synced,
						       .context = server };
}

static inline void server_open(struct server *server)
{
	struct err err = ERR_INIT;
	CHECK_INT(keep_new(server->kind.keep, &server->keep, &err), 0);
	follow_init(&server->follow, &server->options, server->keep, &server->streams, 7);
}

static inline void server_done(struct server *server)
{
	follow_done(&server->follow);
	keep_free(server->keep);
	strbuf_done(&server->seen);
	strbuf_done(&server->shown);
}

/* What has changed since the last call. */
static inline const char *server_seen(struct server *server)
{
	strbuf_reset(&server->shown);
	strbuf_puts(&server->shown, server->seen.s);
	strbuf_reset(&server->seen);
	return server->shown.s;
}

/* Waits if it wants to, then takes its next request: the path.  How long it waited is in
 * *waited_ms. */
static inline const char *server_next(struct server *server, uint64_t *waited_ms)
{
	*waited_ms = 0;
	follow_next(&server->follow, server->now_ms, &server->asked);
	if (server->asked.waits) {
		*waited_ms = server->asked.wait_ms;
		server->now_ms += server->asked.wait_ms;
		follow_next(&server->follow, server->now_ms, &server->asked);
	}
	CHECK(!server->asked.waits);
	return server->asked.path;
}

/* The same, and it must not wait. */
static inline const char *server_asked(struct server *server)
{
	uint64_t waited_ms;
	const char *path = server_next(server, &waited_ms);
	CHECK_INT(waited_ms, 0);
	return path;
}

static inline int server_send(struct server *server, const char *text)
{
	return follow_data(&server->follow, server->now_ms, text, strlen(text));
}

static inline void server_end_as(struct server *server, enum kube_reason reason, int code)
{
	struct kube_reply reply = {
		.reason = reason, .code = code, .retry_after_s = -1, .message = "as the test says"
	};
	follow_end(&server->follow, server->now_ms, &reply);
}

static inline void server_end(struct server *server)
{
	server_end_as(server, KUBE_OK, 200);
}

/* {"metadata":...} of "name version", or "name version uid"; without uid it is "u-name". */
static inline void server_object(struct strbuf *out, const char *words)
{
	char name[64], version[64], uid[64];
	int found = sscanf(words, "%63s %63s %63s", name, version, uid);
	CHECK(found >= 2);
	if (found == 2)
		snprintf(uid, sizeof(uid), "u-%.50s", name);
	strbuf_addf(out,
		    "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\","
		    "\"resourceVersion\":\"%s\",\"labels\":{\"app\":\"x\"}},"
		    "\"spec\":{\"nodeName\":\"n1\"}}",
		    name, uid, version);
}

/* An answer to a request for a page: objects are separated by commas. */
static inline void server_page(struct server *server, const char *version, const char *token,
			       const char *objects)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	char words[256];
	strbuf_addf(&text,
		    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"%s\","
		    "\"continue\":\"%s\"},\"items\":[",
		    version, token);
	for (const char *at = objects; *at;) {
		size_t n = strcspn(at, ",");
		snprintf(words, sizeof(words), "%.*s", (int)n, at);
		if (at != objects)
			strbuf_putc(&text, ',');
		server_object(&text, words);
		at += n + (at[n] == ',');
	}
	strbuf_puts(&text, "]}\n");
	CHECK_INT(server_send(server, text.s), 0);
	server_end(server);
}

/* An event of a watch. */
static inline int server_event(struct server *server, const char *type, const char *words)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&text, "{\"type\":\"%s\",\"object\":", type);
	server_object(&text, words);
	strbuf_puts(&text, "}\n");
	return server_send(server, text.s);
}

static inline int server_bookmark(struct server *server, const char *version, bool end)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&text,
		    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":"
		    "{\"resourceVersion\":\"%s\"%s}}}\n",
		    version,
		    end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
	return server_send(server, text.s);
}

static inline int server_error(struct server *server, int code, const char *reason,
			       const char *details)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&text,
		    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\","
		    "\"code\":%d,\"reason\":\"%s\",\"message\":\"so it is\",\"details\":%s}}\n",
		    code, reason, details);
	return server_send(server, text.s);
}

/* Lists these at version 10 and opens the watch. */
static inline void server_watch(struct server *server, const char *objects)
{
	server_asked(server);
	server_page(server, "10", "", objects);
	server_asked(server);
	server_seen(server);
}

static inline bool has(const char *path, const char *part)
{
	return strstr(path, part) != NULL;
}

#endif
