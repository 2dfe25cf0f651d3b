/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings on a real API server: whole or not at all, and on no other version.
 *
 * cluster: --nodes 0
 */
#include "faults.h"
#include "writing.h"

#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/bind.h"
#include "kube/check.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "wire/json.h"

#include <errno.h>

#define OTHER_UID "b4b1c8c0-0000-4000-8000-000000000000"

struct binding {
	struct writing w;
	bool done;
	enum kube_bind_outcome outcome;
	enum kube_reason reason;
	char message[1024];
	char name[64], uid[64], version[32]; /* of the pod */
	char node[64];			     /* as it was read again, "" if not */
};

static void read_pod(struct binding *b)
{
	CHECK_INT(write_now(&b->w, (struct kube_write){ .verb = KUBE_GET,
							.kind = &kube_kinds[KUBE_POD],
							.name = b->name }),
		  KUBE_OK);
	snprintf(b->uid, sizeof(b->uid), "%s", writing_uid(&b->w));
	snprintf(b->version, sizeof(b->version), "%s", writing_version(&b->w));
}

/* A pod with these members of metadata and of spec, each with a comma at its begin. */
static void make_pod(struct binding *b, const char *name, const char *metadata, const char *spec)
{
	char body[512];
	snprintf(b->name, sizeof(b->name), "%s", name);
	snprintf(
		body, sizeof(body),
		"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"%s},"
		"\"spec\":{"
		"\"schedulerName\":\"none\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]%s}}",
		name, metadata, spec);
	CHECK_INT(write_now(&b->w, (struct kube_write){ .verb = KUBE_CREATE,
							.kind = &kube_kinds[KUBE_POD],
							.name = name,
							.body = body }),
		  KUBE_OK);
	read_pod(b);
}

static void on_bound(void *context, const struct kube_bind_result *result)
{
	struct binding *b = context;
	const char *node = json_str(result->pod, "spec", "nodeName");
	b->done = true;
	b->outcome = result->outcome;
	b->reason = result->reply->reason;
	snprintf(b->message, sizeof(b->message), "%s", result->reply->message);
	snprintf(b->node, sizeof(b->node), "%s", node ? node : "");
}

static bool is_done(void *context)
{
	return ((const struct binding *)context)->done;
}

static int begin(struct binding *b, const char *attempt, const char *key)
{
	const struct kube_pair annotations[] = { { "gpu.scheduling/attempt", attempt },
						 { key, "0,1" } };
	struct kube_bind bind = { .namespace = b->w.live.namespace,
				  .pod = b->name,
				  .uid = b->uid,
				  .version = b->version,
				  .node = "gpu-0",
				  .annotations = annotations,
				  .annotations_count = 2,
				  .attempt_key = "gpu.scheduling/attempt",
				  .done = on_bound,
				  .context = b };
	b->done = false;
	return kube_bind(b->w.live.client, &bind, NULL, &b->w.err);
}

static enum kube_bind_outcome bind_now(struct binding *b, const char *attempt)
{
	CHECKF(begin(b, attempt, "gpu.scheduling/visible-devices") == 0, "%s", b->w.err.text);
	live_until(&b->w.live, is_done, b, b->name);
	return b->outcome;
}

static const char *annotation(struct binding *b, const char *key)
{
	return json_str(json_root(b->w.object), "metadata", "annotations", key);
}

TEST(a_pod_is_bound_with_its_annotations_or_not_at_all)
{
	struct binding b = { 0 };
	writing_open(&b.w, NULL);
	make_pod(&b, "whole", ",\"annotations\":{\"mine\":\"yes\"}", "");
	CHECK_INT(bind_now(&b, "1"), KUBE_BIND_DONE);
	read_pod(&b);
	CHECK_STR(json_str(json_root(b.w.object), "spec", "nodeName"), "gpu-0");
	CHECK_STR(annotation(&b, "gpu.scheduling/attempt"), "1");
	CHECK_STR(annotation(&b, "gpu.scheduling/visible-devices"), "0,1");
	CHECK_STR(annotation(&b, "mine"), "yes");
	/* and not again, not even with the version that it has now */
	CHECK_INT(bind_now(&b, "2"), KUBE_BIND_ELSEWHERE);
	CHECK_INT(b.reason, KUBE_CONFLICT);
	CHECKF(strstr(b.message, "already assigned"), "%s", b.message);
	read_pod(&b);
	CHECK_STR(annotation(&b, "gpu.scheduling/attempt"), "1");
	writing_close(&b.w);
}

TEST(a_pod_that_has_changed_is_not_bound)
{
	struct binding b = { 0 };
	char body[256];
	writing_open(&b.w, NULL);
	make_pod(&b, "stale", "", "");
	snprintf(body, sizeof(body), "{\"metadata\":{\"uid\":\"%s\",\"labels\":{\"a\":\"b\"}}}",
		 b.uid);
	CHECK_INT(write_now(&b.w, (struct kube_write){ .verb = KUBE_MERGE_PATCH,
						       .kind = &kube_kinds[KUBE_POD],
						       .name = "stale",
						       .body = body }),
		  KUBE_OK);
	CHECK_INT(bind_now(&b, "1"), KUBE_BIND_MOVED);
	CHECK_INT(b.reason, KUBE_CONFLICT);
	CHECK_STR(b.node, "");
	read_pod(&b);
	CHECK(!annotation(&b, "gpu.scheduling/attempt"));
	CHECK_INT(bind_now(&b, "2"), KUBE_BIND_DONE);
	writing_close(&b.w);
}

TEST(a_pod_of_the_same_name_is_not_bound_for_another)
{
	struct binding b = { 0 };
	writing_open(&b.w, NULL);
	make_pod(&b, "other", "", "");
	snprintf(b.uid, sizeof(b.uid), OTHER_UID);
	CHECK_INT(bind_now(&b, "1"), KUBE_BIND_GONE);
	CHECK_INT(b.reason, KUBE_CONFLICT);
	snprintf(b.name, sizeof(b.name), "never");
	CHECK_INT(bind_now(&b, "1"), KUBE_BIND_GONE);
	CHECK_INT(b.reason, KUBE_NOT_FOUND);
	writing_close(&b.w);
}

TEST(a_pod_that_is_gated_or_being_deleted_is_not_bound)
{
	struct binding b = { 0 };
	writing_open(&b.w, NULL);
	make_pod(&b, "gated", "", ",\"schedulingGates\":[{\"name\":\"wait\"}]");
	CHECK_INT(bind_now(&b, "1"), KUBE_BIND_SAME);
	CHECK_INT(b.reason, KUBE_CONFLICT);
	CHECKF(strstr(b.message, "schedulingGates"), "%s", b.message);
	make_pod(&b, "deleted", ",\"finalizers\":[\"test.io/stay\"]", "");
	CHECK_INT(write_now(&b.w, (struct kube_write){ .verb = KUBE_DELETE,
						       .kind = &kube_kinds[KUBE_POD],
						       .name = "deleted",
						       .uid = b.uid }),
		  KUBE_OK);
	read_pod(&b);
	CHECK_INT(bind_now(&b, "1"), KUBE_BIND_SAME);
	CHECKF(strstr(b.message, "being deleted"), "%s", b.message);
	writing_close(&b.w);
}

/* Of a container whose name is too long for it. */
static const char long_key[] = "elasticgpu.io/container-0123456789012345678901234567890123456789"
			       "012345678901234";

TEST(keys_that_would_wedge_the_pod_are_never_sent)
{
	static const char *const keys[] = {
		"", "a b", "/a", "a/", "a/b/c", "gpu.scheduling/attempt", "-a", long_key,
	};
	struct binding b = { 0 };
	writing_open(&b.w, NULL);
	make_pod(&b, "wedged", "", "");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		CHECKF(begin(&b, "1", keys[i]) == -EINVAL, "%s", keys[i]);
	CHECK_INT(kube_in_flight(b.w.live.client) + kube_waiting(b.w.live.client), 0);
	CHECK_INT(bind_now(&b, "1"), KUBE_BIND_DONE);
	writing_close(&b.w);
}

TEST(who_may_not_bind_is_told_so)
{
	struct binding b = { 0 }, agent = { 0 };
	char path[512];
	snprintf(path, sizeof(path), "%s/agent.kubeconfig", getenv("KUBE_DIR"));
	writing_open(&b.w, NULL);
	make_pod(&b, "unbound", "", "");
	writing_open(&agent.w, path);
	memcpy(agent.name, b.name, sizeof(b.name));
	memcpy(agent.uid, b.uid, sizeof(b.uid));
	memcpy(agent.version, b.version, sizeof(b.version));
	CHECK_INT(bind_now(&agent, "1"), KUBE_BIND_REFUSED);
	CHECK_INT(agent.reason, KUBE_FORBIDDEN);
	CHECKF(strstr(agent.message, "pods/binding"), "%s", agent.message);
	writing_close(&agent.w);
	writing_close(&b.w);
}

TEST(a_binding_whose_answer_is_lost_is_known_again_by_its_attempt)
{
	struct faults faults;
	struct binding b = { 0 };
	faults_start(&faults, "on resource=pods/binding nth=1 cut after-write\n"
			      "on resource=pods/binding nth=2 cut before-write\n"
			      "on resource=pods/binding nth=3 answer=500\n");
	writing_open(&b.w, faults.kubeconfig);
	make_pod(&b, "lost-1", "", "");
	CHECK_INT(bind_now(&b, "1"), KUBE_BIND_DONE);
	CHECK_INT(b.reason, KUBE_UNKNOWN);
	CHECK_STR(b.node, "gpu-0");
	make_pod(&b, "lost-2", "", "");
	for (int i = 0; i < 2; i++) {
		CHECK_INT(bind_now(&b, "2"), KUBE_BIND_SAME);
		CHECK_INT(b.reason, KUBE_UNKNOWN);
	}
	CHECK_INT(bind_now(&b, "2"), KUBE_BIND_DONE);
	writing_close(&b.w);
	CHECK_INT(faults_end(&faults), 3);
}

TEST_MAIN()
