/* SPDX-License-Identifier: Apache-2.0 */
#include "writing.h"

#include "test.h"

#include "kube/client.h"
#include "kube/kind.h"
#include "wire/json.h"

void writing_open(struct writing *writing, const char *kubeconfig)
{
	*writing = (struct writing){ .err = ERR_INIT };
	live_open(&writing->live, kubeconfig);
}

void writing_close(struct writing *writing)
{
	json_doc_free(writing->object);
	live_close(&writing->live);
}

static void on_written(void *context, const struct kube_write_result *result)
{
	struct writing *writing = context;
	const struct kube_reply *shown = result->current ? result->current : result->reply;
	writing->done = true;
	writing->reread = result->reread;
	writing->code = result->reply->code;
	writing->reason = result->reply->reason;
	snprintf(writing->message, sizeof(writing->message), "%s", result->reply->message);
	json_doc_free(writing->object);
	writing->object = NULL;
	if (shown->body)
		CHECK_INT(json_parse("reply", shown->bytes, shown->len, NULL, &writing->object,
				     NULL),
			  0);
}

static bool is_done(void *context)
{
	return ((const struct writing *)context)->done;
}

static int begin(struct writing *writing, struct kube_write *write)
{
	if (write->kind->namespaced && !write->namespace)
		write->namespace = writing->live.namespace;
	if (write->body && !write->body_len)
		write->body_len = strlen(write->body);
	write->done = on_written;
	write->context = writing;
	writing->done = false;
	return kube_write(writing->live.client, write, NULL, &writing->err);
}

enum kube_reason write_now(struct writing *writing, struct kube_write write)
{
	CHECKF(begin(writing, &write) == 0, "%s", writing->err.text);
	live_until(&writing->live, is_done, writing, write.name);
	return writing->reason;
}

int write_refused(struct writing *writing, struct kube_write write)
{
	int result = begin(writing, &write);
	CHECK(result < 0);
	CHECK_INT(kube_in_flight(writing->live.client) + kube_waiting(writing->live.client), 0);
	return result;
}

const char *writing_uid(const struct writing *writing)
{
	return json_str(json_root(writing->object), "metadata", "uid");
}

const char *writing_version(const struct writing *writing)
{
	return json_str(json_root(writing->object), "metadata", "resourceVersion");
}
