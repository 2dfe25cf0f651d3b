/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a request in, and taking it back. */
#include "kube/client_private.h"

#include "base/attr.h"
#include "wire/http.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The verbs of Kubernetes, for what does not name its own. */
static const struct {
	const char *method, *verb;
	bool reads;
} methods[] = {
	{ "DELETE", "delete", false }, { "GET", "get", true },	   { "PATCH", "patch", false },
	{ "POST", "create", false },   { "PUT", "update", false },
};

/* Copies s behind the struct and moves *at on. */
static const char *store(char **at, const char *s, size_t len)
{
	char *copy = *at;
	memcpy(copy, s, len);
	copy[len] = '\0';
	*at += len + 1;
	return copy;
}

static const char *store_name(char **at, const char *name)
{
	return store(at, name, strnlen(name, CLIENT_NAME_MAX));
}

struct parts {
	const char *path, *content_type, *accept, *what, *verb, *resource, *body;
	size_t what_len, body_len;
};

static size_t parts_size(const struct parts *parts)
{
	/* each with its NUL; verb and resource are cut */
	return strlen(parts->path) + strlen(parts->content_type) + strlen(parts->accept) +
	       parts->what_len + 2 * CLIENT_NAME_MAX + parts->body_len + 7;
}

static struct kube_call *call_new(struct kube_client *client, const struct parts *parts)
{
	struct kube_call *call = malloc(sizeof(*call) + parts_size(parts));
	if (!call)
		return NULL;
	*call = (struct kube_call){ .client = client, .due_ms = NEVER_MS, .give_up_ms = NEVER_MS };
	if (heap_push(&client->due, (union heap_item){ .ptr = call }) < 0) {
		free(call);
		return NULL;
	}
	char *at = (char *)(call + 1);
	call->path = store(&at, parts->path, strlen(parts->path));
	call->content_type = store(&at, parts->content_type, strlen(parts->content_type));
	call->accept = store(&at, parts->accept, strlen(parts->accept));
	call->what = store(&at, parts->what, parts->what_len);
	call->verb = store_name(&at, parts->verb);
	call->resource = store_name(&at, parts->resource);
	if (parts->body) {
		call->body = store(&at, parts->body, parts->body_len);
		call->body_len = parts->body_len;
	}
	return call;
}

static int check_path(const char *path, struct err *err)
{
	size_t len = strlen(path);
	if (path[0] != '/' || len > KUBE_PATH_MAX)
		return err_set(err, EINVAL, "not a path of the API server: %.100s", path);
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)path[i] <= ' ' || path[i] == 0x7f)
			return err_set(err, EINVAL, "unescaped character in the path %.100s",
				       path);
	}
	return 0;
}

static const char * or (const char *s, const char *otherwise)
{
	return s ? s : otherwise;
}

int kube_send(struct kube_client *client, const struct kube_request *request,
	      struct kube_call **ret, struct err *err)
{
	size_t m = 0;
	while (m < ARRAY_SIZE(methods) && strcmp(methods[m].method, request->method) != 0)
		m++;
	assert(m < ARRAY_SIZE(methods) && request->done && !client->closing);
	int result = check_path(request->path, err);
	if (result < 0)
		return result;
	struct parts parts = {
		.path = request->path,
		.content_type = or (request->content_type, "application/json"),
		.accept = or (request->accept, "application/json"),
		.what = or (request->what, request->path),
		.verb = or (request->verb, methods[m].verb),
		.resource = or (request->resource, "other"),
		.body = request->body,
		.body_len = request->body ? request->body_len : 0,
	};
	parts.what_len = request->what ? strlen(request->what) : strcspn(request->path, "?");
	struct kube_call *call = call_new(client, &parts);
	if (!call)
		return err_set(err, ENOMEM, "out of memory");
	call->method = methods[m].method;
	call->lane = request->urgent	   ? LANE_URGENT
		     : request->background ? LANE_BACKGROUND
					   : LANE_USUAL;
	call->raw = request->raw;
	call->gzip = methods[m].reads;
	call->deadline_ms =
		request->deadline_ms ? request->deadline_ms : client->options.deadline_ms;
	call->done = request->done;
	call->dropped = request->dropped;
	call->context = request->context;
	call->retry.max_tries = request->tries ? request->tries : RETRY_TRIES;
	call->retry.timed = request->within_ms != 0;
	call->retry.reads = methods[m].reads || request->harmless;
	call_list_add(&client->lanes[call->lane], call);
	if (request->within_ms) {
		call->give_up_ms = client_now_ms(client) + request->within_ms;
		client_set_due(call, call->give_up_ms);
	}
	if (ret)
		*ret = call;
	client_pump(client);
	return 0;
}

int kube_stream(struct kube_client *client, const struct kube_stream *stream,
		struct kube_call **ret, struct err *err)
{
	assert(stream->data && stream->done && !client->closing);
	int result = check_path(stream->path, err);
	if (result < 0)
		return result;
	struct parts parts = {
		.path = stream->path,
		.content_type = "",
		.accept = or (stream->accept, "application/json"),
		.what = stream->path,
		.what_len = strcspn(stream->path, "?"),
		.verb = or (stream->verb, "watch"),
		.resource = or (stream->resource, "other"),
	};
	struct kube_call *call = call_new(client, &parts);
	if (!call)
		return err_set(err, ENOMEM, "out of memory");
	call->method = "GET";
	call->stream = true;
	call->gzip = strcmp(parts.verb, "list") == 0; /* a watch could wait in a compressor */
	call->idle_ms = stream->idle_ms;
	call->data = stream->data;
	call->done = stream->done;
	call->context = stream->context;
	call->retry = (struct retry){ .max_tries = 1, .reads = true };
	call_list_add(&client->active, call);
	if (ret)
		*ret = call;
	call_start(call);
	return 0;
}

void kube_cancel(struct kube_call *call)
{
	struct kube_client *client = call->client;
	if (call->state == CALL_ASKING)
		kube_auth_cancel(&call->wait);
	if (call->http)
		http_cancel(call->http);
	client_take_out(call);
	call_free(call);
	client_pump(client);
}
