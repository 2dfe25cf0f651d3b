/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/object.h"
#include "wire/http.h"
#include "wire/json.h"

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
}

static void live_connect(struct live *live, uv_loop_t *loop, const char *kubeconfig)
{
	struct err err = ERR_INIT;
	struct kube_config_source source = { .path = kubeconfig };
	const char *namespace = getenv("KUBE_NAMESPACE");
	live->namespace = namespace ? namespace : "default";
	live->loop = loop;
	uv_timer_init(loop, &live->tick);
	live->tick.data = live;
	uv_timer_start(&live->tick, on_tick, 20, 20);
	CHECKF(kube_config_load(&source, &live->config, &err) == 0, "%s", err.text);
	struct kube_client_options options = {
		.loop = loop,
		.config = live->config,
		.clock = &clock_system,
		.user_agent = "gpu-scheduler-tests",
	};
	CHECKF(kube_client_new(&options, &live->client, &err) == 0, "%s", err.text);
}

void live_open(struct live *live, const char *kubeconfig)
{
	*live = (struct live){ .text = STRBUF_INIT };
	CHECK_INT(uv_loop_init(&live->own), 0);
	live_connect(live, &live->own, kubeconfig);
}

void live_open_beside(struct live *live, struct live *other, const char *kubeconfig)
{
	*live = (struct live){ .text = STRBUF_INIT };
	live_connect(live, other->loop, kubeconfig);
}

static void on_client_closed(void *context)
{
	((struct live *)context)->closes++;
}

static void on_tick_closed(uv_handle_t *handle)
{
	((struct live *)handle->data)->closes++;
}

void live_close(struct live *live)
{
	kube_client_close(live->client, on_client_closed, live);
	uv_close((uv_handle_t *)&live->tick, on_tick_closed);
	while (live->closes < 2)
		uv_run(live->loop, UV_RUN_ONCE);
	if (live->loop == &live->own) {
		uv_run(live->loop, UV_RUN_DEFAULT);
		CHECK_INT(uv_loop_close(live->loop), 0);
	}
	kube_config_free(live->config);
	strbuf_done(&live->text);
}

void live_until(struct live *live, bool (*holds)(void *context), void *context, const char *what)
{
	uint64_t end_ms = clock_monotonic_ms(&clock_system) + LIVE_PATIENCE_MS;
	while (!holds(context)) {
		CHECKF(clock_monotonic_ms(&clock_system) < end_ms, "waiting for: %s", what);
		uv_run(live->loop, UV_RUN_ONCE);
	}
}

static bool is_past(void *context)
{
	return clock_monotonic_ms(&clock_system) >= *(const uint64_t *)context;
}

void live_for(struct live *live, uint64_t ms)
{
	uint64_t until_ms = clock_monotonic_ms(&clock_system) + ms;
	live_until(live, is_past, &until_ms, "time to pass");
}

struct call {
	struct live *live;
	int code;
	bool done;
};

static void on_called(void *context, const struct kube_reply *reply)
{
	struct call *call = context;
	call->code = reply->code;
	call->done = true;
	call->live->reason = reply->reason;
	strbuf_reset(&call->live->text);
	if (reply->bytes)
		strbuf_add(&call->live->text, reply->bytes, reply->len);
}

static bool is_called(void *context)
{
	return ((const struct call *)context)->done;
}

int live_call(struct live *live, const char *method, const char *path, const char *body)
{
	struct call call = { .live = live };
	struct err err = ERR_INIT;
	struct kube_request request = {
		.method = method,
		.path = path,
		.body = body,
		.body_len = body ? strlen(body) : 0,
		.content_type =
			strcmp(method, "PATCH") == 0 ? "application/merge-patch+json" : NULL,
		.done = on_called,
		.context = &call,
	};
	CHECKF(kube_send(live->client, &request, NULL, &err) == 0, "%s", err.text);
	live_until(live, is_called, &call, path);
	return call.code;
}

static void on_started(void *context, const struct kube_reply *reply)
{
	struct live *live = context;
	CHECKF(reply->reason == KUBE_OK, "%s", reply->message);
	live->calls--;
}

void live_start(struct live *live, const char *method, const char *path, const char *body)
{
	struct err err = ERR_INIT;
	struct kube_request request = {
		.method = method,
		.path = path,
		.body = body,
		.body_len = body ? strlen(body) : 0,
		.content_type =
			strcmp(method, "PATCH") == 0 ? "application/merge-patch+json" : NULL,
		.done = on_started,
		.context = live,
	};
	live->calls++;
	CHECKF(kube_send(live->client, &request, NULL, &err) == 0, "%s", err.text);
}

static bool is_settled(void *context)
{
	return ((const struct live *)context)->calls == 0;
}

void live_settle(struct live *live)
{
	live_until(live, is_settled, live, "all requests to be answered");
}

static void put(struct live *live, const char *name, const char *app, unsigned n)
{
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	/* server-side apply makes it or changes it */
	strbuf_addf(&path, "/api/v1/namespaces/%s/configmaps/%s?fieldManager=test&force=true",
		    live->namespace, name);
	strbuf_addf(&body,
		    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\","
		    "\"labels\":{\"app\":\"%s\"}},\"data\":{\"n\":\"%u\"}}",
		    name, app, n);
	struct err err = ERR_INIT;
	struct kube_request request = {
		.method = "PATCH",
		.path = path.s,
		.body = body.s,
		.body_len = body.len,
		.content_type = "application/apply-patch+yaml",
		.done = on_started,
		.context = live,
	};
	live->calls++;
	CHECKF(kube_send(live->client, &request, NULL, &err) == 0, "%s", err.text);
}

void live_put(struct live *live, const char *name, const char *app, unsigned n)
{
	put(live, name, app, n);
	live_settle(live);
}

void live_put_many(struct live *live, const char *prefix, const char *app, unsigned count,
		   unsigned n)
{
	for (unsigned i = 0; i < count; i++) {
		char name[128];
		snprintf(name, sizeof(name), "%s-%u", prefix, i);
		put(live, name, app, n);
	}
	live_settle(live);
}

void live_delete(struct live *live, const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/configmaps/%s", live->namespace, name);
	live_start(live, "DELETE", path, NULL);
	live_settle(live);
}

void live_delete_all(struct live *live, const char *app)
{
	char path[256];
	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/configmaps?labelSelector=app%%3D%s",
		 live->namespace, app);
	CHECK_INT(live_call(live, "DELETE", path, NULL), 200);
}

/* Whether the cache has what this list has. */
static bool equals(const struct kube_cache *cache, const struct strbuf *list)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;
	CHECKF(json_parse("list", list->s, list->len, NULL, &doc, &err) == 0, "%s", err.text);
	const struct json *root = json_root(doc);
	if (json_len(root, "items") != kube_cache_count(cache))
		return false;
	struct json_iter items = json_items(root, "items");
	for (const struct json *item; (item = json_next(&items));) {
		const char *namespace = json_str(item, "metadata", "namespace");
		const struct kube_object *object = kube_cache_get(
			cache, namespace ? namespace : "", json_str(item, "metadata", "name"));
		if (!object ||
		    strcmp(object->version, json_str(item, "metadata", "resourceVersion")) != 0 ||
		    strcmp(object->uid, json_str(item, "metadata", "uid")) != 0)
			return false;
	}
	return true;
}

void live_equal(struct live *live, const struct kube_cache *cache, const char *path)
{
	uint64_t end_ms = clock_monotonic_ms(&clock_system) + LIVE_PATIENCE_MS;
	for (;;) {
		CHECK_INT(live_call(live, "GET", path, NULL), 200);
		if (equals(cache, &live->text))
			return;
		CHECKF(clock_monotonic_ms(&clock_system) < end_ms,
		       "the cache never became what %s is", path);
		live_for(live, 100);
	}
}

static void on_posted(void *context, const struct http_reply *reply)
{
	struct call *call = context;
	call->code = reply->status;
	call->done = true;
	strbuf_reset(&call->live->text);
	strbuf_add(&call->live->text, reply->body, reply->len);
}

int live_post_plain(struct live *live, const char *url, const char *body)
{
	struct call call = { .live = live };
	struct http_options options = { .user_agent = "gpu-scheduler-tests" };
	struct http *http = NULL;
	struct http_call *on_its_way = NULL;
	struct err err = ERR_INIT;
	CHECKF(http_new(live->loop, &options, &http, &err) == 0, "%s", err.text);
	struct http_request request = { .method = "POST",
					.url = url,
					.body = body,
					.body_len = strlen(body),
					.done = on_posted,
					.context = &call };
	CHECKF(http_start(http, &request, &on_its_way, &err) == 0, "%s", err.text);
	live_until(live, is_called, &call, url);
	http_close(http, NULL, NULL);
	return call.code;
}
