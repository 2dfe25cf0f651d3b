/* SPDX-License-Identifier: Apache-2.0 */
/* What is written for the volumes of a pod, and what is waited for. */
#include "scheduler_bench.h"

#include "base/clock.h"
#include "base/strbuf.h"
#include "kube/client.h"
#include "kube/write.h"
#include "scheduler/lookup.h"
#include "scheduler/storage.h"
#include "scheduler/volume_bind.h"

/* As much of a client as is asked for: what is written stays until it is answered. */
static struct {
	uv_loop_t loop;
	struct kube_write last;
	struct strbuf body;
	char name[64];
	unsigned writes, cancelled;
	bool pending;
} server;

uv_loop_t *kube_loop(const struct kube_client *client)
{
	(void)client;
	return &server.loop;
}

int kube_write(struct kube_client *client, const struct kube_write *write,
	       struct kube_writing **ret, struct err *err)
{
	(void)client, (void)err;
	CHECK(!server.pending);
	CHECK_INT(write->verb, KUBE_MERGE_PATCH);
	server.last = *write;
	strbuf_reset(&server.body);
	strbuf_add(&server.body, write->body, write->body_len);
	snprintf(server.name, sizeof(server.name), "%s %s", write->kind->kind, write->name);
	server.pending = true;
	server.writes++;
	if (ret)
		*ret = (struct kube_writing *)&server;
	return 0;
}

void kube_write_cancel(struct kube_writing *writing)
{
	CHECK(writing == (struct kube_writing *)&server);
	server.pending = false;
	server.cancelled++;
}

static struct {
	struct lookup *lookup;
	struct volume_binder *binder;
	struct volume_binding *binding;
	unsigned answers;
	bool ok;
	char why[512];
	uint64_t now_ns;
} stage;

static uint64_t stage_now(void *context)
{
	(void)context;
	return stage.now_ns;
}

static const struct clock stage_clock = { .monotonic_ns = stage_now };

static void add_node(const char *name)
{
	struct label host = { cluster_intern(bench.cluster, "kubernetes.io/hostname"),
			      cluster_intern(bench.cluster, name) };
	struct node_spec spec = {
		.name = name, .allocatable.pods = 9, .labels = &host, .labels_count = 1
	};
	uint32_t node;

	CHECK_INT(cluster_node_add(bench.cluster, &spec, &node, NULL), 0);
}

static void stage_open(void)
{
	struct err err = ERR_INIT;

	bench_open();
	memset(&stage, 0, sizeof(stage));
	memset(&server, 0, sizeof(server));
	server.body = (struct strbuf)STRBUF_INIT;
	CHECK_INT(uv_loop_init(&server.loop), 0);
	add_node("alpha");
	add_node("beta");
	struct lookup_options options = {
		.caches = &bench.caches, .cluster = bench.cluster, .log = &bench.log, .seed = 1
	};
	CHECKF(lookup_new(&options, &stage.lookup, &err) == 0, "%s", err.text);
	struct volume_binder_options binder = { .clock = &stage_clock,
						.log = &bench.log,
						.lookup = stage.lookup,
						.cluster = bench.cluster,
						.timeout_ms = 5000 };
	CHECK_INT(volume_binder_new(&binder, &stage.binder, &err), 0);
}

static void stage_close(void)
{
	volume_binding_free(stage.binding);
	volume_binder_free(stage.binder);
	uv_run(&server.loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&server.loop), 0);
	bench_close();
	lookup_free(stage.lookup);
	strbuf_done(&server.body);
}

/* All that is due at once. */
static void turn(void)
{
	volume_binder_changed(stage.binder);
	uv_run(&server.loop, UV_RUN_NOWAIT);
}

static void done(void *context, bool ok, const char *why)
{
	(void)context;
	stage.answers++;
	stage.ok = ok;
	snprintf(stage.why, sizeof(stage.why), "%s", why);
}

#define GLOBAL(name, more) \
	"metadata: {name: " name ", uid: u-" name ", resourceVersion: RV" more "}\n"
#define META(name, more)                                                                          \
	"metadata: {name: " name ", namespace: ml, uid: u-" name ", resourceVersion: RV" more "}" \
	"\n"
#define CLASS(name, provisioner)                            \
	GLOBAL(name, "")                                    \
	"provisioner: " provisioner "\nvolumeBindingMode: " \
	"WaitForFirstConsumer\n"
#define CLAIM(name, class, annotations, more)                                       \
	META(name, ", annotations: {" annotations "}")                              \
	"spec: {" more "storageClassName: " class ", accessModes: [ReadWriteMany]," \
						  " resources: {requests: {storage: 1Gi}}}\n"
#define ON(host)                                                                   \
	"nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: " \
	"kubernetes.io/hostname, operator: In, values: [" host "]}]}]}}, "
#define VOLUME(name, phase, more)                                      \
	GLOBAL(name, "")                                               \
	"spec: {" more "storageClassName: local, capacity: {storage: " \
	"2Gi}, accessModes: [ReadWriteMany]}\nstatus: {phase: " phase "}\n"
#define OF(claim)  "claimRef: {namespace: ml, name: " claim ", uid: u-" claim "}, "
#define SELECTED   "volume.kubernetes.io/selected-node: alpha"
#define COMPLETED  "pv.kubernetes.io/bind-completed: 'yes'"
#define USE(claim) "{name: " claim ", persistentVolumeClaim: {claimName: " claim "}}"
#define POD(name, volumes) \
	META(name, "") "spec: {containers: [{name: c}], volumes: [" volumes "]}\n"

static void add_classes(void)
{
	bench_put(KUBE_STORAGE_CLASS, CLASS("local", "kubernetes.io/no-provisioner"));
	bench_put(KUBE_STORAGE_CLASS, CLASS("made", "csi.example"));
}

static int reserve(const char *yaml, const char *node, struct volume_binding **ret)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = bench_parse(yaml);
	struct keep *keep CLEANUP(keep_freep) = NULL;
	struct kube_object *pod CLEANUP(kube_object_freep) = NULL;
	struct err err = ERR_INIT;
	int rc;

	CHECK_INT(keep_new(kube_kinds[KUBE_POD].keep, &keep, NULL), 0);
	CHECK_INT(kube_object_new(json_root(doc), keep, &pod, NULL), 0);
	rc = volume_reserve(stage.binder, pod, node, ret, &err);
	snprintf(stage.why, sizeof(stage.why), "%s", err.text);
	return rc;
}

static void begin(const char *yaml)
{
	CHECK_INT(reserve(yaml, "alpha", &stage.binding), 0);
	CHECK(stage.binding != NULL);
	volume_bind(stage.binding, done, NULL);
	CHECK_INT(server.writes, 0);
	turn();
}

/* The server has done it, and says what the object is now. */
static void answer(const char *yaml)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = yaml ? bench_parse(yaml) : NULL;
	struct kube_reply reply = { .reason = yaml ? KUBE_OK : KUBE_CONFLICT,
				    .message = "it has changed",
				    .body = yaml ? json_root(doc) : NULL };
	struct kube_write_result result = { .reply = &reply };

	CHECK(server.pending);
	server.pending = false;
	server.last.done(server.last.context, &result);
	turn();
}

TEST(a_volume_that_exists_gets_the_name_of_its_claim)
{
	stage_open();
	add_classes();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "local", "", ""));
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("v", "Available", ON("alpha")));
	begin(POD("p", USE("a")));
	CHECK_STR(server.name, "PersistentVolume v");
	CHECK_STR(server.body.s,
		  "{\"metadata\":{\"uid\":\"u-v\",\"resourceVersion\":\"4\",\"annotations\":{\"pv."
		  "kubernetes.io/bound-by-controller\":\"yes\"}},\"spec\":{\"claimRef\":{\"kind\":"
		  "\"PersistentVolumeClaim\",\"apiVersion\":\"v1\",\"namespace\":\"ml\",\"name\":"
		  "\"a\",\"uid\":\"u-a\"}}}");
	answer(VOLUME("v", "Available", ON("alpha") OF("a")));
	CHECK_INT(stage.answers, 0);
	/* The claim is bound before the cache has the volume. */
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "local", COMPLETED, "volumeName: v, "));
	turn();
	CHECK_INT(stage.answers, 0);
	CHECK(storage_promised(lookup_storage(stage.lookup), "PersistentVolume", "", "v") != NULL);
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("v", "Bound", ON("alpha") OF("a")));
	turn();
	CHECK_INT(stage.answers, 1);
	CHECK(stage.ok);
	CHECK(!storage_promised(lookup_storage(stage.lookup), "PersistentVolume", "", "v"));
	CHECK_INT(server.writes, 1);
	stage_close();
}

TEST(a_volume_that_is_to_be_made_gets_a_node)
{
	stage_open();
	add_classes();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", "", ""));
	begin(POD("p", USE("a")));
	CHECK_STR(server.name, "PersistentVolumeClaim a");
	CHECK_STR(server.last.namespace, "ml");
	CHECK_STR(server.body.s,
		  "{\"metadata\":{\"uid\":\"u-a\",\"resourceVersion\":\"3\","
		  "\"annotations\":{\"volume.kubernetes.io/selected-node\":\"alpha\""
		  "}}}");
	answer(CLAIM("a", "made", SELECTED, ""));
	CHECK_INT(stage.answers, 0); /* what the cache has is older */
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", SELECTED, ""));
	turn();
	CHECK_INT(stage.answers, 0);
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("v", "Bound", ON("alpha") OF("a")));
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM,
		  CLAIM("a", "made", SELECTED ", " COMPLETED, "volumeName: v, "));
	turn();
	CHECK_INT(stage.answers, 1);
	CHECK(stage.ok);
	stage_close();
}

TEST(a_provisioner_that_gives_up_ends_it)
{
	stage_open();
	add_classes();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", "", ""));
	begin(POD("p", USE("a")));
	answer(CLAIM("a", "made", SELECTED, ""));
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", "", ""));
	turn();
	CHECK_INT(stage.answers, 1);
	CHECK(!stage.ok);
	CHECK_STR(stage.why, "provisioning failed for PVC \"a\"");
	stage_close();
}

TEST(what_cannot_be_bound_any_more_is_told)
{
	static const struct {
		const char *claim, *volume, *why;
	} rows[] = {
		{ NULL, NULL, "persistentvolumeclaim \"a\" not found" },
		{ CLAIM("a", "made", SELECTED, "volumeName: v, "),
		  VOLUME("v", "Bound", ON("beta")),
		  "pv \"v\" node affinity doesn't match node \"alpha\"" },
		{ CLAIM("a", "made", SELECTED, ""), NULL,
		  "binding volumes: timed out waiting for the claims to be bound" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		stage_open();
		add_classes();
		bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", "", ""));
		begin(POD("p", USE("a")));
		answer(CLAIM("a", "made", SELECTED, ""));
		if (rows[i].volume)
			bench_put(KUBE_PERSISTENT_VOLUME, rows[i].volume);
		if (rows[i].claim)
			bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, rows[i].claim);
		else
			bench_delete(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", "", ""));
		stage.now_ns = i == 2 ? UINT64_C(5000000000) : 0;
		turn();
		CHECK_INT(stage.answers, 1);
		CHECK(!stage.ok);
		CHECK_STR(stage.why, rows[i].why);
		stage_close();
	}
}

TEST(a_volume_that_somebody_took_meanwhile_ends_it)
{
	stage_open();
	add_classes();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "local", "", ""));
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("v", "Available", ""));
	begin(POD("p", USE("a")));
	answer(NULL);
	CHECK_INT(stage.answers, 1);
	CHECK(!stage.ok);
	CHECK_STR(stage.why, "it has changed");
	CHECK(!storage_promised(lookup_storage(stage.lookup), "PersistentVolume", "", "v"));
	stage_close();
}

TEST(an_answer_that_was_lost_is_looked_up)
{
	struct kube_reply lost = { .reason = KUBE_UNKNOWN, .message = "no answer" };
	struct kube_reply current = { .reason = KUBE_OK };
	struct kube_write_result result = { .reply = &lost, .reread = true, .current = &current };

	stage_open();
	add_classes();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", "", ""));
	begin(POD("p", USE("a")));
	struct json_doc *doc CLEANUP(json_doc_freep) =
		bench_parse(CLAIM("a", "made", SELECTED, ""));
	current.body = json_root(doc);
	server.pending = false;
	server.last.done(server.last.context, &result);
	turn();
	CHECK_INT(stage.answers, 0); /* it was done, after all */
	stage_close();
}

TEST(what_is_written_already_is_not_written_again)
{
	stage_open();
	add_classes();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", SELECTED, ""));
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("b", "local", "", ""));
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("v", "Available", OF("b")));
	begin(POD("p", USE("a") ", " USE("b")));
	CHECK_INT(server.writes, 0);
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("w", "Bound", ""));
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM,
		  CLAIM("a", "made", SELECTED ", " COMPLETED, "volumeName: w, "));
	turn();
	CHECK_INT(stage.answers, 0);
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("b", "local", COMPLETED, "volumeName: v, "));
	turn();
	CHECK_INT(stage.answers, 1);
	CHECK(stage.ok);
	stage_close();
}

TEST(two_pods_do_not_get_one_volume)
{
	struct volume_binding *other = NULL;

	stage_open();
	add_classes();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "local", "", ""));
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("b", "local", "", ""));
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("v", "Available", ""));
	CHECK_INT(reserve(POD("p", USE("a")), "alpha", &stage.binding), 0);
	CHECK_INT(reserve(POD("q", USE("b")), "alpha", &other), -ENOENT);
	CHECK_STR(stage.why, "alpha: node(s) didn't find available persistent volumes to bind");
	volume_binding_free(stage.binding);
	stage.binding = NULL;
	CHECK_INT(reserve(POD("q", USE("b")), "alpha", &other), 0);
	volume_binding_free(other);
	stage_close();
}

TEST(pods_with_bound_claims_have_nothing_to_do)
{
	stage_open();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "local", COMPLETED, "volumeName: v, "));
	bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("v", "Bound", ""));
	CHECK_INT(reserve(POD("p", USE("a")), "alpha", &stage.binding), 0);
	CHECK(!stage.binding);
	CHECK_INT(reserve(POD("p", USE("a")), "nowhere", &stage.binding), -ENOENT);
	stage_close();
}

/* Members of a gang with one claim, on two nodes. */
TEST(who_shares_a_claim_follows_the_first)
{
	struct volume_binding *other = NULL;

	for (unsigned fails = 0; fails < 2; fails++) {
		stage_open();
		add_classes();
		bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", "", ""));
		CHECK_INT(reserve(POD("p", USE("a")), "alpha", &stage.binding), 0);
		CHECK_INT(reserve(POD("q", USE("a")), "beta", &other), 0);
		volume_bind(other, done, NULL);
		turn();
		CHECK_INT(server.writes, 0);
		CHECK_INT(stage.answers, 0);
		if (fails) {
			volume_binding_free(stage.binding);
			stage.binding = NULL;
			turn();
			CHECK_INT(stage.answers, 1);
			CHECK(!stage.ok);
		} else {
			volume_bind(stage.binding, done, NULL);
			turn();
			answer(CLAIM("a", "made", SELECTED, ""));
			CHECK_INT(stage.answers, 0);
			bench_put(KUBE_PERSISTENT_VOLUME, VOLUME("v", "Bound", OF("a")));
			bench_put(KUBE_PERSISTENT_VOLUME_CLAIM,
				  CLAIM("a", "made", SELECTED ", " COMPLETED, "volumeName: v, "));
			turn();
			CHECK_INT(stage.answers, 2);
			CHECK(stage.ok);
		}
		volume_binding_free(other);
		stage_close();
	}
}

TEST(one_that_is_given_up_cancels_its_write)
{
	stage_open();
	add_classes();
	bench_put(KUBE_PERSISTENT_VOLUME_CLAIM, CLAIM("a", "made", "", ""));
	begin(POD("p", USE("a")));
	CHECK(server.pending);
	volume_binding_free(stage.binding);
	stage.binding = NULL;
	CHECK_INT(server.cancelled, 1);
	turn();
	CHECK_INT(stage.answers, 0);
	stage_close();
}

TEST_MAIN()
