/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of write, on a real API server.
 *
 * cluster: --nodes 0
 */
#include "faults.h"
#include "writing.h"

#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/kind.h"
#include "wire/json.h"

#include <errno.h>

#define LEASE(...)                                           \
	(struct kube_write)                                  \
	{                                                    \
		.kind = &kube_kinds[KUBE_LEASE], __VA_ARGS__ \
	}
#define MAP(...)                                                  \
	(struct kube_write)                                       \
	{                                                         \
		.kind = &kube_kinds[KUBE_CONFIG_MAP], __VA_ARGS__ \
	}

/* The body of a Lease; valid until the next.  NULL uid, version: none. */
static const char *lease(const char *name, const char *uid, const char *version,
			 const char *holder)
{
	static char body[1024];
	char more[512] = "";
	if (uid)
		snprintf(more, sizeof(more), ",\"uid\":\"%s\",\"resourceVersion\":\"%s\"", uid,
			 version);
	snprintf(body, sizeof(body),
		 "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
		 "\"name\":\"%s\"%s},\"spec\":{\"holderIdentity\":\"%s\"}}",
		 name, more, holder);
	return body;
}

/* A ConfigMap with members of metadata (with a comma at its begin) and of data. */
static const char *map(const char *name, const char *metadata, const char *data)
{
	static char body[1024];
	snprintf(body, sizeof(body),
		 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"%s},"
		 "\"data\":{%s}}",
		 name, metadata, data);
	return body;
}

static const char *holder(const struct writing *w)
{
	return json_str(json_root(w->object), "spec", "holderIdentity");
}

static const char *data(const struct writing *w, const char *key)
{
	return json_str(json_root(w->object), "data", key);
}

/* Who a Lease is, apart from the answers. */
struct version {
	char uid[64], version[32];
};

static struct version version_of(const struct writing *w)
{
	struct version v;
	snprintf(v.uid, sizeof(v.uid), "%s", writing_uid(w));
	snprintf(v.version, sizeof(v.version), "%s", writing_version(w));
	return v;
}

TEST(what_is_made_is_there_and_not_made_twice)
{
	struct writing w;
	writing_open(&w, NULL);
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_GET, .name = "made")), KUBE_NOT_FOUND);
	CHECK(strstr(w.message, "Lease default/made"));
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_CREATE, .name = "made",
				      .body = lease("made", NULL, NULL, "a"))),
		  KUBE_OK);
	CHECK_INT(w.code, 201);
	struct version v = version_of(&w);
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_GET, .name = "made")), KUBE_OK);
	CHECK_STR(writing_uid(&w), v.uid);
	CHECK_STR(holder(&w), "a");
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_CREATE, .name = "made",
				      .body = lease("made", NULL, NULL, "b"))),
		  KUBE_ALREADY_EXISTS);
	CHECK_INT(w.code, 409);
	CHECK(!w.reread && strstr(w.message, "\"made\" already exists"));
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_CREATE, .name = "made", .reread_refused = true,
				      .body = lease("made", NULL, NULL, "b"))),
		  KUBE_ALREADY_EXISTS);
	CHECK(w.reread);
	CHECK_STR(holder(&w), "a");
	writing_close(&w);
}

TEST(a_replacement_is_of_that_object_in_that_version)
{
	struct writing w;
	writing_open(&w, NULL);
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_CREATE, .name = "cas",
				      .body = lease("cas", NULL, NULL, "a"))),
		  KUBE_OK);
	struct version first = version_of(&w);
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_REPLACE, .name = "cas",
				      .body = lease("cas", first.uid, first.version, "b"))),
		  KUBE_OK);
	CHECK_INT(w.code, 200);
	struct version second = version_of(&w);
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_REPLACE, .name = "cas",
				      .body = lease("cas", first.uid, first.version, "c"))),
		  KUBE_CONFLICT);
	CHECK(strstr(w.message, "the object has been modified"));
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_REPLACE, .name = "cas", .reread_refused = true,
				      .body = lease("cas", "b4b1c8c0-0000-4000-8000-000000000000",
						    second.version, "c"))),
		  KUBE_CONFLICT);
	CHECK(w.reread);
	CHECK_STR(holder(&w), "b");
	CHECK_STR(writing_version(&w), second.version);
	/* to make the blind one is not even tried */
	CHECK_INT(write_refused(&w, LEASE(.verb = KUBE_REPLACE, .name = "cas",
					  .body = lease("cas", NULL, NULL, "c"))),
		  -EINVAL);
	writing_close(&w);
}

TEST(a_deleted_lease_is_not_brought_back)
{
	struct writing w;
	writing_open(&w, NULL);
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_CREATE, .name = "dead",
				      .body = lease("dead", NULL, NULL, "a"))),
		  KUBE_OK);
	struct version v = version_of(&w);
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_DELETE, .name = "dead", .uid = v.uid)),
		  KUBE_OK);
	enum kube_reason reason =
		write_now(&w, LEASE(.verb = KUBE_REPLACE, .name = "dead",
				    .body = lease("dead", v.uid, v.version, "b")));
	CHECKF(reason == KUBE_CONFLICT || reason == KUBE_NOT_FOUND, "%s",
	       kube_reason_name(reason));
	CHECK_INT(write_now(&w, LEASE(.verb = KUBE_GET, .name = "dead")), KUBE_NOT_FOUND);
	writing_close(&w);
}

TEST(a_deletion_is_of_that_object_in_that_version)
{
	struct writing w;
	writing_open(&w, NULL);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_CREATE, .name = "victim",
				    .body = map("victim", "", "\"n\":\"1\""))),
		  KUBE_OK);
	struct version first = version_of(&w);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_MERGE_PATCH, .name = "victim",
				    .body = "{\"data\":{\"n\":\"2\"}}")),
		  KUBE_OK);
	struct version second = version_of(&w);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_DELETE, .name = "victim", .uid = first.uid,
				    .version = first.version, .reread_refused = true)),
		  KUBE_CONFLICT);
	CHECK(w.reread);
	CHECK_STR(data(&w, "n"), "2");
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_DELETE, .name = "victim",
				    .uid = "b4b1c8c0-0000-4000-8000-000000000000")),
		  KUBE_CONFLICT);
	CHECK(strstr(w.message, "UID"));
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_DELETE, .name = "victim", .uid = second.uid,
				    .version = second.version, .dry_run = true)),
		  KUBE_OK);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_DELETE, .name = "victim", .uid = second.uid,
				    .version = second.version, .has_grace = true,
				    .propagation = "Background")),
		  KUBE_OK);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_DELETE, .name = "victim", .uid = second.uid)),
		  KUBE_NOT_FOUND);
	writing_close(&w);
}

TEST(each_kind_of_patch_does_what_it_says)
{
	struct writing w;
	writing_open(&w, NULL);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_CREATE, .name = "patched",
				    .body = map("patched", "", "\"a\":\"1\",\"b\":\"1\""))),
		  KUBE_OK);
	struct version v = version_of(&w);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_MERGE_PATCH, .name = "patched",
				    .body = "{\"data\":{\"a\":null,\"c\":\"2\"}}")),
		  KUBE_OK);
	CHECK(!data(&w, "a"));
	CHECK_STR(data(&w, "b"), "1");
	CHECK_STR(data(&w, "c"), "2");
	CHECK_INT(write_now(&w,
			    MAP(.verb = KUBE_JSON_PATCH, .name = "patched",
				.body = "[{\"op\":\"test\",\"path\":\"/data/c\",\"value\":\"2\"},"
					"{\"op\":\"remove\",\"path\":\"/data/c\"}]")),
		  KUBE_OK);
	CHECK(!data(&w, "c"));
	CHECK_INT(write_now(&w,
			    MAP(.verb = KUBE_JSON_PATCH, .name = "patched",
				.body = "[{\"op\":\"test\",\"path\":\"/data/b\",\"value\":\"2\"},"
					"{\"op\":\"remove\",\"path\":\"/data/b\"}]")),
		  KUBE_INVALID);
	CHECK_INT(w.code, 422);
	char stale[256];
	snprintf(stale, sizeof(stale),
		 "{\"metadata\":{\"uid\":\"%s\",\"resourceVersion\":\"%s\"},"
		 "\"data\":{\"b\":\"3\"}}",
		 v.uid, v.version);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_MERGE_PATCH, .name = "patched", .body = stale,
				    .reread_refused = true)),
		  KUBE_CONFLICT);
	CHECK_STR(data(&w, "b"), "1");
	writing_close(&w);
}

#define POD "\"apiVersion\":\"v1\",\"kind\":\"Pod\""

TEST(a_strategic_patch_merges_lists_by_key)
{
	struct writing w;
	char body[512];
	writing_open(&w, NULL);
	const struct kube_kind *pods = &kube_kinds[KUBE_POD];
	CHECK_INT(write_now(&w,
			    (struct kube_write){
				    .verb = KUBE_CREATE,
				    .kind = pods,
				    .name = "merged",
				    .body = "{" POD ",\"metadata\":{\"name\":\"merged\"},"
					    "\"spec\":{\"schedulerName\":\"none\",\"containers\":["
					    "{\"name\":\"a\",\"image\":\"i\"},"
					    "{\"name\":\"b\",\"image\":\"i\"}]}}" }),
		  KUBE_OK);
	snprintf(body, sizeof(body),
		 "{\"metadata\":{\"uid\":\"%s\"},\"spec\":{\"containers\":["
		 "{\"name\":\"b\",\"image\":\"j\"}]}}",
		 writing_uid(&w));
	CHECK_INT(write_now(&w, (struct kube_write){ .verb = KUBE_STRATEGIC_PATCH,
						     .kind = pods,
						     .name = "merged",
						     .body = body }),
		  KUBE_OK);
	CHECK_INT(json_len(json_root(w.object), "spec", "containers"), 2);
	/* a pod's patch without its uid would be of whoever has the name by then */
	CHECK_INT(write_refused(&w,
				(struct kube_write){
					.verb = KUBE_MERGE_PATCH,
					.kind = pods,
					.name = "merged",
					.body = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}" }),
		  -EINVAL);
	writing_close(&w);
}

static const char crd[] =
	"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
	"\"metadata\":{\"name\":\"gpuclaims.gpu.scheduling\"},\"spec\":{"
	"\"group\":\"gpu.scheduling\",\"scope\":\"Namespaced\",\"names\":{\"plural\":"
	"\"gpuclaims\","
	"\"kind\":\"GpuClaim\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"
	"\"subresources\":{\"status\":{}},\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\","
	"\"x-kubernetes-preserve-unknown-fields\":true}}}]}}";

static bool claims_are_served(void *context)
{
	return live_call(context, "GET", "/apis/gpu.scheduling/v1/gpuclaims", NULL) == 200;
}

TEST(a_status_is_written_beside_its_object)
{
	struct writing w;
	writing_open(&w, NULL);
	const struct kube_kind *claims = &kube_kinds[KUBE_GPU_CLAIM];
	CHECK_INT(live_call(&w.live, "POST",
			    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd),
		  201);
	live_until(&w.live, claims_are_served, &w.live, "the API server to know GpuClaims");
	CHECK_INT(write_now(&w,
			    (struct kube_write){ .verb = KUBE_CREATE,
						 .kind = claims,
						 .name = "claim",
						 .body = "{\"apiVersion\":\"gpu.scheduling/v1\","
							 "\"kind\":\"GpuClaim\",\"metadata\":{"
							 "\"name\":\"claim\"},\"spec\":{\"n\":1},"
							 "\"status\":{\"phase\":\"Bound\"}}" }),
		  KUBE_OK);
	CHECK(!json_str(json_root(w.object), "status", "phase"));
	int64_t n = 0;
	CHECK_INT(write_now(&w, (struct kube_write){ .verb = KUBE_MERGE_PATCH,
						     .kind = claims,
						     .name = "claim",
						     .subresource = "status",
						     .body = "{\"spec\":{\"n\":2},\"status\":{"
							     "\"phase\":\"Reserved\"}}" }),
		  KUBE_OK);
	CHECK_STR(json_str(json_root(w.object), "status", "phase"), "Reserved");
	CHECK_INT(json_i64(json_root(w.object), &n, "spec", "n"), 0);
	CHECK_INT(n, 1);
	CHECK_INT(write_refused(&w, (struct kube_write){ .verb = KUBE_STRATEGIC_PATCH,
							 .kind = claims,
							 .name = "claim",
							 .subresource = "status",
							 .body = "{\"status\":{}}" }),
		  -EINVAL);
	writing_close(&w);
}

TEST(an_apply_makes_what_is_not_there_and_takes_nothing_over_unless_told)
{
	struct writing w;
	writing_open(&w, NULL);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_APPLY, .name = "applied", .field_manager = "one",
				    .body = map("applied", "", "\"n\":\"1\""))),
		  KUBE_OK);
	CHECK_INT(w.code, 201);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_APPLY, .name = "applied",
				    .body = map("applied", "", "\"n\":\"2\""))),
		  KUBE_CONFLICT);
	CHECK(strstr(w.message, "conflict with \"one\""));
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_APPLY, .name = "applied", .force = true,
				    .body = map("applied", "", "\"n\":\"2\""))),
		  KUBE_OK);
	CHECK_STR(data(&w, "n"), "2");
	writing_close(&w);
}

TEST(a_dry_run_changes_nothing)
{
	struct writing w;
	writing_open(&w, NULL);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_CREATE, .name = "dry", .dry_run = true,
				    .body = map("dry", "", "\"n\":\"1\""))),
		  KUBE_OK);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_GET, .name = "dry")), KUBE_NOT_FOUND);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_CREATE, .name = "dry",
				    .body = map("dry", "", "\"n\":\"1\""))),
		  KUBE_OK);
	struct version v = version_of(&w);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_MERGE_PATCH, .name = "dry", .dry_run = true,
				    .body = "{\"data\":{\"n\":\"2\"}}")),
		  KUBE_OK);
	CHECK_STR(data(&w, "n"), "2"); /* as it would be */
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_GET, .name = "dry")), KUBE_OK);
	CHECK_STR(data(&w, "n"), "1");
	CHECK_STR(writing_version(&w), v.version);
	writing_close(&w);
}

/* Of a container whose name is too long for it. */
static const char long_key[] = ",\"annotations\":{\"elasticgpu.io/container-"
			       "0123456789012345678901234567890123456789012345678901234\":\"0\"}";

TEST(what_the_server_would_refuse_or_regret_is_never_sent)
{
	static const char *const metadata[] = {
		",\"labels\":{\"a b\":\"c\"}",
		",\"labels\":{\"a\":\"not a value\"}",
		",\"annotations\":{\"/x\":\"c\"}",
		",\"annotations\":{\"a/b/c\":\"d\"}",
		long_key,
	};
	struct writing w;
	writing_open(&w, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(metadata); i++)
		CHECKF(write_refused(&w, MAP(.verb = KUBE_CREATE, .name = "bad",
					     .body = map("bad", metadata[i], ""))) == -EINVAL,
		       "%s", metadata[i]);
	CHECK_INT(write_refused(
			  &w, MAP(.verb = KUBE_CREATE, .name = "Bad", .body = map("Bad", "", ""))),
		  -EINVAL);
	CHECK_INT(write_refused(&w, MAP(.verb = KUBE_DELETE, .name = "bad")), -EINVAL);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_GET, .name = "bad")), KUBE_NOT_FOUND);
	writing_close(&w);
}

TEST(who_may_not_is_told_so_in_the_servers_words)
{
	struct writing w;
	char path[512];
	snprintf(path, sizeof(path), "%s/agent.kubeconfig", getenv("KUBE_DIR"));
	writing_open(&w, path);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_CREATE, .name = "forbidden",
				    .body = map("forbidden", "", ""))),
		  KUBE_FORBIDDEN);
	CHECK_INT(w.code, 403);
	CHECK(strstr(w.message, "ConfigMap default/forbidden"));
	CHECKF(strstr(w.message, "cannot create resource \"configmaps\""), "%s", w.message);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_DELETE, .name = "forbidden", .uid = "u")),
		  KUBE_FORBIDDEN);
	writing_close(&w);
}

/* In doubt the object is read, and both answers are told. */
TEST(a_write_whose_answer_is_lost_is_read_again)
{
	struct faults faults;
	struct writing w;
	faults_start(&faults, "on method=POST nth=1 cut after-write\n"
			      "on method=PATCH nth=1 cut before-write\n"
			      "on method=DELETE nth=1 half-body\n"
			      "on method=PATCH nth=2 answer=500\n");
	writing_open(&w, faults.kubeconfig);
	CHECK_INT(write_now(&w, MAP(.verb = KUBE_CREATE, .name = "lost",
				    .body = map("lost", "", "\"n\":\"1\""))),
		  KUBE_UNKNOWN);
	CHECK(w.reread);
	CHECK_STR(data(&w, "n"), "1"); /* it was done */
	struct version v = version_of(&w);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(write_now(&w, MAP(.verb = KUBE_MERGE_PATCH, .name = "lost",
					    .body = "{\"data\":{\"n\":\"2\"}}")),
			  KUBE_UNKNOWN);
		CHECK(w.reread);
		CHECK_STR(data(&w, "n"), "1"); /* and this was not */
		CHECK_STR(writing_version(&w), v.version);
	}
	write_now(&w, MAP(.verb = KUBE_DELETE, .name = "lost", .uid = v.uid));
	CHECKF(w.reason == KUBE_UNKNOWN || w.reason == KUBE_MALFORMED, "%s",
	       kube_reason_name(w.reason));
	CHECK(w.reread && !w.object);
	writing_close(&w);
	CHECK_INT(faults_end(&faults), 4);
}

TEST_MAIN()
