/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/write.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "kube/write_check.h"
#include "wire/json_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *method, *verb, *content_type;
} verbs[] = {
	[KUBE_GET] = { "GET", "get", NULL },
	[KUBE_CREATE] = { "POST", "create", NULL },
	[KUBE_REPLACE] = { "PUT", "update", NULL },
	[KUBE_MERGE_PATCH] = { "PATCH", "patch", "application/merge-patch+json" },
	[KUBE_STRATEGIC_PATCH] = { "PATCH", "patch", "application/strategic-merge-patch+json" },
	[KUBE_JSON_PATCH] = { "PATCH", "patch", "application/json-patch+json" },
	[KUBE_APPLY] = { "PATCH", "apply", "application/apply-patch+yaml" },
	[KUBE_DELETE] = { "DELETE", "delete", NULL },
};

struct kube_writing {
	struct kube_client *client;
	struct kube_call *call;
	bool in_doubt, refused; /* after which it is read again */
	uint32_t reread_ms;
	struct strbuf path;   /* of the object itself, to read it again */
	struct strbuf what;   /* for messages */
	const char *resource; /* of the kind's table */
	struct kube_reply first;
	struct strbuf message; /* of the first reply */
	void (*done)(void *context, const struct kube_write_result *result);
	void (*dropped)(void *context);
	void *context;
};

static void writing_free(struct kube_writing *writing)
{
	if (!writing)
		return;
	strbuf_done(&writing->path);
	strbuf_done(&writing->what);
	strbuf_done(&writing->message);
	free(writing);
}

static void report(struct kube_writing *writing, const struct kube_write_result *result)
{
	writing->done(writing->context, result);
	writing_free(writing);
}

static void writing_dropped(void *context)
{
	struct kube_writing *writing = context;
	if (writing->dropped)
		writing->dropped(writing->context);
	writing_free(writing);
}

/* Only these two tell what the server has. */
static void reread_done(void *context, const struct kube_reply *reply)
{
	struct kube_writing *writing = context;
	bool told = reply->reason == KUBE_OK || reply->reason == KUBE_NOT_FOUND;
	report(writing, &(struct kube_write_result){
				.reply = &writing->first,
				.reread = true,
				.current = told ? reply : NULL,
			});
}

static int reread(struct kube_writing *writing, const struct kube_reply *reply)
{
	writing->first = *reply;
	writing->first.body = NULL;
	writing->first.bytes = "";
	writing->first.len = 0;
	strbuf_puts(&writing->message, reply->message);
	writing->first.message = writing->message.s;
	/* urgent: who waits for it holds GPUs meanwhile */
	struct kube_request request = {
		.method = "GET",
		.path = writing->path.s,
		.tries = UINT32_MAX,
		.within_ms = writing->reread_ms,
		.urgent = true,
		.what = writing->what.s,
		.resource = writing->resource,
		.done = reread_done,
		.dropped = writing_dropped,
		.context = writing,
	};
	return kube_send(writing->client, &request, &writing->call, NULL);
}

static bool needs_reread(const struct kube_writing *writing, enum kube_reason reason)
{
	switch (reason) {
	case KUBE_UNKNOWN:
	case KUBE_MALFORMED:
		return writing->in_doubt;
	case KUBE_CONFLICT:
	case KUBE_ALREADY_EXISTS:
	case KUBE_NOT_FOUND:
		return writing->refused;
	default:
		return false;
	}
}

static void sent(void *context, const struct kube_reply *reply)
{
	struct kube_writing *writing = context;
	writing->call = NULL;
	if (needs_reread(writing, reply->reason) && reread(writing, reply) == 0)
		return;
	report(writing, &(struct kube_write_result){ .reply = reply });
}

/* What a delete says is in its body: with one, the server does not look at the query. */
static void add_delete_options(struct strbuf *out, const struct kube_write *write)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	json_open_object(&w);
	json_add_key(&w, "apiVersion");
	json_add_str(&w, "v1");
	json_add_key(&w, "kind");
	json_add_str(&w, "DeleteOptions");
	json_add_key(&w, "preconditions");
	json_open_object(&w);
	json_add_key(&w, "uid");
	json_add_str(&w, write->uid);
	if (write->version) {
		json_add_key(&w, "resourceVersion");
		json_add_str(&w, write->version);
	}
	json_close_object(&w);
	if (write->has_grace) {
		json_add_key(&w, "gracePeriodSeconds");
		json_add_u64(&w, write->grace_s);
	}
	if (write->propagation) {
		json_add_key(&w, "propagationPolicy");
		json_add_str(&w, write->propagation);
	}
	if (write->dry_run) {
		json_add_key(&w, "dryRun");
		json_open_array(&w);
		json_add_str(&w, "All");
		json_close_array(&w);
	}
	json_close_object(&w);
}

static void add_option(struct strbuf *out, const char *key, const char *value)
{
	strbuf_addf(out, "%c%s=", strchr(out->s, '?') ? '&' : '?', key);
	kube_escape(out, value, strlen(value));
}

static void add_query(struct strbuf *out, const struct kube_write *write)
{
	if (write->verb == KUBE_GET || write->verb == KUBE_DELETE)
		return;
	add_option(out, "fieldManager",
		   write->field_manager ? write->field_manager : KUBE_FIELD_MANAGER);
	if (write->dry_run)
		add_option(out, "dryRun", "All");
	if (write->field_validation)
		add_option(out, "fieldValidation", write->field_validation);
	if (write->verb == KUBE_APPLY && write->force)
		add_option(out, "force", "true");
}

/* A collection takes new objects; all else is said to the object or below it. */
static void add_path(struct strbuf *out, const struct kube_write *write)
{
	bool collection = write->verb == KUBE_CREATE && !write->subresource;
	kube_path(out, write->kind, write->namespace, collection ? NULL : write->name,
		  write->subresource);
	add_query(out, write);
}

static struct kube_writing *writing_new(struct kube_client *client, const struct kube_write *write)
{
	struct kube_writing *writing = malloc(sizeof(*writing));
	if (!writing)
		return NULL;
	*writing = (struct kube_writing){
		.client = client,
		.in_doubt = write->verb != KUBE_GET && !write->dry_run,
		.refused = write->reread_refused && write->verb != KUBE_GET && !write->dry_run,
		.reread_ms = write->reread_ms ? write->reread_ms : KUBE_REREAD_MS,
		.path = STRBUF_INIT,
		.what = STRBUF_INIT,
		.message = STRBUF_INIT,
		.resource = write->kind->plural,
		.done = write->done,
		.dropped = write->dropped,
		.context = write->context,
	};
	kube_path(&writing->path, write->kind, write->namespace, write->name, NULL);
	if (write->what)
		strbuf_puts(&writing->what, write->what);
	else if (write->kind->namespaced)
		strbuf_addf(&writing->what, "%s %s/%s", write->kind->kind, write->namespace,
			    write->name);
	else
		strbuf_addf(&writing->what, "%s %s", write->kind->kind, write->name);
	return writing;
}

static int send_first(struct kube_writing *writing, const struct kube_write *write,
		      struct err *err)
{
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf resource CLEANUP(strbuf_done) = STRBUF_INIT;
	add_path(&path, write);
	strbuf_puts(&resource, writing->resource);
	if (write->subresource)
		strbuf_addf(&resource, "/%s", write->subresource);
	if (write->verb == KUBE_DELETE)
		add_delete_options(&body, write);
	bool failed = path.failed || body.failed || resource.failed || writing->path.failed ||
		      writing->what.failed;
	if (failed)
		return err_set(err, ENOMEM, "out of memory");
	bool deletes = write->verb == KUBE_DELETE;
	struct kube_request request = {
		.method = verbs[write->verb].method,
		.path = path.s,
		.content_type = verbs[write->verb].content_type,
		.body = deletes ? body.s : write->body,
		.body_len = deletes ? body.len : write->body_len,
		.deadline_ms = write->deadline_ms,
		.tries = write->tries,
		.urgent = write->urgent,
		.background = write->background,
		.harmless = write->dry_run,
		.what = writing->what.s,
		.verb = verbs[write->verb].verb,
		.resource = resource.s,
		.done = sent,
		.dropped = writing_dropped,
		.context = writing,
	};
	return kube_send(writing->client, &request, &writing->call, err);
}

int kube_write(struct kube_client *client, const struct kube_write *write,
	       struct kube_writing **ret, struct err *err)
{
	int result = kube_write_check(write, err);
	struct kube_writing *writing = writing_new(client, write);
	if (!writing)
		return err_set(err, ENOMEM, "out of memory");
	if (result < 0)
		err_prefix(err, "cannot %s %s", verbs[write->verb].verb, writing->what.s);
	else
		result = send_first(writing, write, err);
	if (result < 0) {
		writing_free(writing);
		return result;
	}
	if (ret)
		*ret = writing;
	return 0;
}

void kube_write_cancel(struct kube_writing *writing)
{
	kube_cancel(writing->call);
	writing_free(writing);
}
