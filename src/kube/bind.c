/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/bind.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/check.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kube_binding {
	struct kube_writing *writing;
	/* copies, by which the pod is known again */
	char *uid, *version, *node, *attempt_key, *attempt;
	void (*done)(void *context, const struct kube_bind_result *result);
	void (*dropped)(void *context);
	void *context;
};

static const char *const outcome_names[] = {
	[KUBE_BIND_DONE] = "done",	 [KUBE_BIND_SAME] = "same version",
	[KUBE_BIND_MOVED] = "moved on",	 [KUBE_BIND_ELSEWHERE] = "bound elsewhere",
	[KUBE_BIND_GONE] = "gone",	 [KUBE_BIND_UNSENT] = "not sent",
	[KUBE_BIND_REFUSED] = "refused", [KUBE_BIND_UNKNOWN] = "unknown",
};

const char *kube_bind_outcome_name(enum kube_bind_outcome outcome)
{
	return outcome_names[outcome];
}

static void binding_free(struct kube_binding *binding)
{
	if (!binding)
		return;
	free(binding->uid);
	free(binding->version);
	free(binding->node);
	free(binding->attempt_key);
	free(binding->attempt);
	free(binding);
}

static const char *attempt_of(const struct kube_bind *bind)
{
	for (size_t i = 0; bind->attempt_key && i < bind->annotations_count; i++) {
		if (strcmp(bind->annotations[i].key, bind->attempt_key) == 0)
			return bind->annotations[i].value;
	}
	return NULL;
}

static struct kube_binding *binding_new(const struct kube_bind *bind)
{
	struct kube_binding *binding = calloc(1, sizeof(*binding));
	if (!binding)
		return NULL;
	binding->uid = strdup(bind->uid);
	binding->version = strdup(bind->version);
	binding->node = strdup(bind->node);
	binding->attempt_key = strdup(bind->attempt_key);
	binding->attempt = strdup(attempt_of(bind));
	binding->done = bind->done;
	binding->dropped = bind->dropped;
	binding->context = bind->context;
	if (binding->uid && binding->version && binding->node && binding->attempt_key &&
	    binding->attempt)
		return binding;
	binding_free(binding);
	return NULL;
}

static int check(const struct kube_bind *bind, struct err *err)
{
	int result = kube_check_label_name("namespace", bind->namespace, err);
	if (result == 0)
		result = kube_check_subdomain("pod name", bind->pod, err);
	if (result == 0)
		result = kube_check_uid("pod uid", bind->uid, err);
	if (result == 0)
		result = kube_check_version("pod resourceVersion", bind->version, err);
	if (result == 0)
		result = kube_check_subdomain("node name", bind->node, err);
	if (result == 0)
		result = kube_check_annotations("annotations", bind->annotations,
						bind->annotations_count, err);
	if (result == 0 && !attempt_of(bind))
		result = err_set(err, EINVAL, "no annotation tells the attempt");
	return result;
}

static void add_member(struct json_writer *w, const char *key, const char *value)
{
	json_add_key(w, key);
	json_add_str(w, value);
}

static void add_body(struct strbuf *out, const struct kube_bind *bind)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	json_open_object(&w);
	add_member(&w, "apiVersion", "v1");
	add_member(&w, "kind", "Binding");
	json_add_key(&w, "metadata");
	json_open_object(&w);
	add_member(&w, "namespace", bind->namespace);
	add_member(&w, "name", bind->pod);
	add_member(&w, "uid", bind->uid);
	add_member(&w, "resourceVersion", bind->version);
	json_add_key(&w, "annotations");
	json_open_object(&w);
	for (size_t i = 0; i < bind->annotations_count; i++)
		add_member(&w, bind->annotations[i].key, bind->annotations[i].value);
	json_close_object(&w);
	json_close_object(&w);
	json_add_key(&w, "target");
	json_open_object(&w);
	add_member(&w, "apiVersion", "v1");
	add_member(&w, "kind", "Node");
	add_member(&w, "name", bind->node);
	json_close_object(&w);
	json_close_object(&w);
}

static bool is_equal(const char *a, const char *b)
{
	return a && strcmp(a, b) == 0;
}

/* The pod as it is now. */
static enum kube_bind_outcome judge_pod(const struct kube_binding *binding, const struct json *pod)
{
	const char *node = json_str(pod, "spec", "nodeName");
	if (!is_equal(json_str(pod, "metadata", "uid"), binding->uid))
		return KUBE_BIND_GONE;
	if (!node || !node[0])
		return is_equal(json_str(pod, "metadata", "resourceVersion"), binding->version)
			       ? KUBE_BIND_SAME
			       : KUBE_BIND_MOVED;
	const char *attempt = json_str(pod, "metadata", "annotations", binding->attempt_key);
	return is_equal(attempt, binding->attempt) && is_equal(node, binding->node)
		       ? KUBE_BIND_DONE
		       : KUBE_BIND_ELSEWHERE;
}

/* Without the pod: by what the server said to the Binding. */
static enum kube_bind_outcome judge_reply(const struct kube_write_result *result)
{
	switch (result->reply->reason) {
	case KUBE_OK:
		return KUBE_BIND_DONE;
	case KUBE_UNREACHABLE:
	case KUBE_NO_CREDENTIALS:
	case KUBE_TOO_MANY_REQUESTS:
		return KUBE_BIND_UNSENT;
	case KUBE_UNAUTHORIZED:
	case KUBE_FORBIDDEN:
	case KUBE_INVALID:
	case KUBE_BAD_REQUEST:
		return KUBE_BIND_REFUSED;
	default:
		return KUBE_BIND_UNKNOWN;
	}
}

static void written(void *context, const struct kube_write_result *result)
{
	struct kube_binding *binding = context;
	struct kube_bind_result bound = { .reply = result->reply };
	if (!result->current)
		bound.outcome = judge_reply(result);
	else if (result->current->reason == KUBE_NOT_FOUND)
		bound.outcome = KUBE_BIND_GONE;
	else
		bound.outcome = judge_pod(binding, bound.pod = result->current->body);
	binding->done(binding->context, &bound);
	binding_free(binding);
}

static void binding_dropped(void *context)
{
	struct kube_binding *binding = context;
	if (binding->dropped)
		binding->dropped(binding->context);
	binding_free(binding);
}

static int post(struct kube_client *client, const struct kube_bind *bind,
		struct kube_binding *binding, struct err *err)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf what CLEANUP(strbuf_done) = STRBUF_INIT;
	add_body(&body, bind);
	strbuf_addf(&what, "Binding %s/%s", bind->namespace, bind->pod);
	if (body.failed || what.failed)
		return err_set(err, ENOMEM, "out of memory");
	struct kube_write write = {
		.verb = KUBE_CREATE,
		.kind = &kube_kinds[KUBE_POD],
		.namespace = bind->namespace,
		.name = bind->pod,
		.subresource = "binding",
		.body = body.s,
		.body_len = body.len,
		.what = what.s,
		.reread_refused = true,
		.reread_ms = bind->reread_ms,
		.done = written,
		.dropped = binding_dropped,
		.context = binding,
	};
	return kube_write(client, &write, &binding->writing, err);
}

int kube_bind(struct kube_client *client, const struct kube_bind *bind, struct kube_binding **ret,
	      struct err *err)
{
	int result = check(bind, err);
	if (result < 0) {
		err_prefix(err, "cannot bind %s/%s", bind->namespace ? bind->namespace : "",
			   bind->pod ? bind->pod : "");
		return result;
	}
	struct kube_binding *binding = binding_new(bind);
	if (!binding)
		return err_set(err, ENOMEM, "out of memory");
	result = post(client, bind, binding, err);
	if (result < 0) {
		binding_free(binding);
		return result;
	}
	if (ret)
		*ret = binding;
	return 0; /* NOLINT(clang-analyzer-unix.Malloc): the request has it, and gives it back */
}

void kube_bind_cancel(struct kube_binding *binding)
{
	kube_write_cancel(binding->writing);
	binding_free(binding);
}
