/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "kube_fixture.h"

#include "base/attr.h"
#include "kube/bind.h"
#include "kube/check.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "wire/json.h"

/* The end of a write, copied. */
struct written {
	bool done;
	enum kube_reason reason;
	bool reread, current;
	enum kube_reason now;
	char message[512], name[64];
};

static void write_ended(void *context, const struct kube_write_result *result)
{
	struct written *written = context;
	CHECK(!written->done);
	written->done = true;
	written->reason = result->reply->reason;
	written->reread = result->reread;
	written->current = result->current != NULL;
	written->now = result->current ? result->current->reason : KUBE_REASONS;
	snprintf(written->message, sizeof(written->message), "%s", result->reply->message);
	const struct kube_reply *last = result->current ? result->current : result->reply;
	const char *name = json_str(last->body, "metadata", "name");
	snprintf(written->name, sizeof(written->name), "%s", name ? name : "");
}

static int try_write(struct kube_write write, struct written *written, struct err *err)
{
	write.body_len = write.body ? strlen(write.body) : 0;
	write.done = write_ended;
	write.context = written;
	return kube_write(s.client, &write, NULL, err);
}

static struct written do_write(struct kube_write write)
{
	struct written written = { 0 };
	struct err err = ERR_INIT;
	CHECKF(try_write(write, &written, &err) == 0, "%s", err.text);
	CHECK(!written.done);
	wait_for(&written.done);
	return written;
}

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/locks/leases"
#define LEASE  .kind = &kube_kinds[KUBE_LEASE], .namespace = "locks", .name = "gpus-n1"
#define BODY(more)                                                                     \
	"{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{" \
	"\"name\":\"gpus-n1\",\"namespace\":\"locks\"" more "}}"
#define POD .kind = &kube_kinds[KUBE_POD], .namespace = "ml", .name = "p"

TEST(each_verb_has_its_method_path_and_type)
{
	static const struct {
		struct kube_write write;
		const char *line, *type, *body;
	} cases[] = {
		{ { .verb = KUBE_GET, LEASE }, "GET " LEASES "/gpus-n1\n", NULL, "" },
		{ { .verb = KUBE_CREATE, LEASE, .body = BODY(""), .field_validation = "Strict" },
		  "POST " LEASES "?fieldManager=gpu-scheduler&fieldValidation=Strict\n",
		  "application/json",
		  NULL },
		{ { .verb = KUBE_REPLACE,
		    LEASE,
		    .body = BODY(",\"uid\":\"u-1\",\"resourceVersion\":\"7\""),
		    .dry_run = true },
		  "PUT " LEASES "/gpus-n1?fieldManager=gpu-scheduler&dryRun=All\n",
		  "application/json",
		  NULL },
		{ { .verb = KUBE_MERGE_PATCH, LEASE, .body = "{}", .field_manager = "a&b" },
		  "PATCH " LEASES "/gpus-n1?fieldManager=a%26b\n",
		  "application/merge-patch+json",
		  "{}" },
		{ { .verb = KUBE_STRATEGIC_PATCH,
		    POD,
		    .subresource = "status",
		    .body = "{\"metadata\":{\"uid\":\"u\"}}" },
		  "PATCH /api/v1/namespaces/ml/pods/p/status?fieldManager=gpu-scheduler\n",
		  "application/strategic-merge-patch+json",
		  NULL },
		{ { .verb = KUBE_JSON_PATCH, LEASE, .body = "[]" },
		  "PATCH " LEASES "/gpus-n1?fieldManager=gpu-scheduler\n",
		  "application/json-patch+json",
		  "[]" },
		{ { .verb = KUBE_APPLY, LEASE, .body = BODY(""), .force = true },
		  "PATCH " LEASES "/gpus-n1?fieldManager=gpu-scheduler&force=true\n",
		  "application/apply-patch+yaml",
		  NULL },
		{ { .verb = KUBE_DELETE, LEASE, .uid = "u-1" },
		  "DELETE " LEASES "/gpus-n1\n",
		  "application/json",
		  "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":"
		  "\"u-1\"}}" },
		{ { .verb = KUBE_DELETE,
		    LEASE,
		    .uid = "u-1",
		    .version = "9",
		    .has_grace = true,
		    .propagation = "Background",
		    .dry_run = true },
		  "DELETE " LEASES "/gpus-n1\n",
		  "application/json",
		  "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":"
		  "\"u-1\",\"resourceVersion\":\"9\"},\"gracePeriodSeconds\":0,"
		  "\"propagationPolicy\":\"Background\",\"dryRun\":[\"All\"]}" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char type[128] = "";
		setup();
		struct written written = do_write(cases[i].write);
		CHECKF(written.reason == KUBE_OK && !written.reread, "case %zu: %s", i,
		       written.message);
		CHECK_STR(s.lines, cases[i].line);
		if (cases[i].type)
			snprintf(type, sizeof(type), "\r\nContent-Type: %s\r\n", cases[i].type);
		CHECKF(strstr(s.head, type), "case %zu: %s", i, s.head);
		if (cases[i].body)
			CHECK_STR(s.body, cases[i].body);
		teardown();
	}
}

TEST(what_must_not_be_sent_is_refused)
{
	static const struct {
		struct kube_write write;
		const char *why;
	} cases[] = {
		{ { .verb = KUBE_GET, .kind = &kube_kinds[KUBE_LEASE], .name = "a" },
		  "namespace is missing" },
		{ { .verb = KUBE_GET,
		    .kind = &kube_kinds[KUBE_NODE],
		    .namespace = "a",
		    .name = "a" },
		  "a Node has no namespace" },
		{ { .verb = KUBE_GET, .kind = &kube_kinds[KUBE_NODE], .name = "A/b" },
		  "name \"A/b\" is no DNS name" },
		{ { .verb = KUBE_CREATE, LEASE }, "the body is missing" },
		{ { .verb = KUBE_CREATE, LEASE, .body = "{" }, "body:1:" },
		{ { .verb = KUBE_CREATE, LEASE, .body = "[]" }, "the body is no object" },
		{ { .verb = KUBE_CREATE, LEASE, .body = "{\"kind\":\"Pod\"}" },
		  "the body is of another kind" },
		{ { .verb = KUBE_CREATE,
		    LEASE,
		    .body = "{\"kind\":\"Lease\",\"metadata\":{\"generateName\":\"a\"}}" },
		  "the body has another name" },
		{ { .verb = KUBE_MERGE_PATCH, LEASE, .body = "{\"metadata\":{\"name\":\"b\"}}" },
		  "the body has another name" },
		{ { .verb = KUBE_MERGE_PATCH,
		    LEASE,
		    .body = "{\"metadata\":{\"namespace\":\"b\"}}" },
		  "the body has another namespace" },
		{ { .verb = KUBE_REPLACE, LEASE, .body = BODY(",\"resourceVersion\":\"7\"") },
		  "metadata.uid is missing" },
		{ { .verb = KUBE_REPLACE, LEASE, .body = BODY(",\"uid\":\"u\"") },
		  "metadata.resourceVersion is missing" },
		{ { .verb = KUBE_REPLACE,
		    LEASE,
		    .body = BODY(",\"uid\":\"u\",\"resourceVersion\":\"0\"") },
		  "metadata.resourceVersion \"0\" is no version" },
		{ { .verb = KUBE_CREATE, LEASE, .body = BODY(",\"labels\":{\"a\":\"b c\"}") },
		  "labels: label value \"b c\"" },
		{ { .verb = KUBE_CREATE, LEASE, .body = BODY(",\"annotations\":{\"a b\":\"\"}") },
		  "annotations: annotation key \"a b\"" },
		{ { .verb = KUBE_CREATE, LEASE, .body = BODY(",\"annotations\":{\"a\":1}") },
		  "annotations: the value of a is no string" },
		{ { .verb = KUBE_MERGE_PATCH, POD, .body = "{}" }, "metadata.uid is missing" },
		{ { .verb = KUBE_JSON_PATCH, POD, .body = "[]" },
		  "the patch of a pod does not test its uid" },
		{ { .verb = KUBE_JSON_PATCH, LEASE, .body = "{}" }, "a JSON patch is a list" },
		{ { .verb = KUBE_STRATEGIC_PATCH,
		    .kind = &kube_kinds[KUBE_GPU_CLAIM],
		    .namespace = "a",
		    .name = "b",
		    .body = "{}" },
		  "custom resources take no strategic merge patch" },
		{ { .verb = KUBE_DELETE, LEASE }, "uid is missing" },
		{ { .verb = KUBE_DELETE, LEASE, .uid = "u", .version = "x" },
		  "resourceVersion \"x\" is no version" },
		{ { .verb = KUBE_DELETE, LEASE, .uid = "u", .body = "{}" },
		  "a delete makes its own body" },
	};
	setup();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct written written = { 0 };
		struct err err = ERR_INIT;
		CHECKF(try_write(cases[i].write, &written, &err) < 0, "case %zu", i);
		const char *why = strstr(err.text, ": ");
		CHECKF(why && strncmp(why + 2, cases[i].why, strlen(cases[i].why)) == 0,
		       "case %zu: %s", i, err.text);
	}
	CHECK_INT(s.server.requests, 0);
	teardown();
}

TEST(nulls_of_a_patch_delete_and_are_fine)
{
	setup();
	struct written written = do_write((struct kube_write){
		.verb = KUBE_MERGE_PATCH,
		LEASE,
		.body = "{\"metadata\":{\"labels\":{\"a\":null},\"annotations\":{\"b\":null}}}" });
	CHECK_INT(written.reason, KUBE_OK);
	teardown();
}

static const struct kube_write create = { .verb = KUBE_CREATE, LEASE, .body = BODY("") };

TEST(a_write_in_doubt_is_read_again_before_anything_else)
{
	static const struct server_answer doubts[] = {
		{ .code = 500 },
		{ .how = SERVER_DROP },
		{ .how = SERVER_CUT, .code = 201, .body = BODY("") },
		{ .code = 201, .body = "<html>" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(doubts); i++) {
		setup();
		s.script[0] = doubts[i];
		s.script[1] = (struct server_answer){ .code = 503 }; /* the reading goes on */
		s.script[2] = (struct server_answer){ .code = 200, .body = BODY("") };
		struct written written = do_write(create);
		CHECK_INT(written.reason, i == 3 ? KUBE_MALFORMED : KUBE_UNKNOWN);
		CHECK(written.reread && written.current);
		CHECK_INT(written.now, KUBE_OK);
		CHECK_STR(written.name, "gpus-n1");
		CHECK(strncmp(written.message, "cannot create Lease locks/gpus-n1: ", 35) == 0);
		CHECK_STR(s.lines, "POST " LEASES "?fieldManager=gpu-scheduler\n"
				   "GET " LEASES "/gpus-n1\nGET " LEASES "/gpus-n1\n");
		teardown();
	}
}

TEST(what_is_not_there_is_an_answer)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 500 };
	s.script[1] = (struct server_answer){ .code = 404 };
	struct written written = do_write(create);
	CHECK(written.reread && written.current);
	CHECK_INT(written.now, KUBE_NOT_FOUND);
	teardown();
}

TEST(a_reading_that_is_never_answered_ends)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 500 };
	struct kube_write write = create;
	write.reread_ms = 300;
	struct written written = do_write(write);
	CHECK_INT(written.reason, KUBE_UNKNOWN);
	CHECK(written.reread && !written.current);
	CHECK(s.server.requests >= 2);
	teardown();
}

TEST(a_refusal_is_read_again_only_if_asked)
{
	for (unsigned asked = 0; asked < 2; asked++) {
		setup();
		s.script[0] = (struct server_answer){ .code = 409 };
		s.script[1] = (struct server_answer){ .code = 200, .body = BODY("") };
		struct kube_write write = create;
		write.reread_refused = asked;
		struct written written = do_write(write);
		CHECK_INT(written.reason, KUBE_CONFLICT);
		CHECK_INT(written.current, asked);
		CHECK_INT(s.server.requests, 1 + asked);
		teardown();
	}
}

TEST(a_dry_run_changes_nothing_and_may_be_sent_again)
{
	setup();
	s.script[0] = (struct server_answer){ .how = SERVER_DROP };
	s.script[1] = (struct server_answer){ .code = 201, .body = BODY("") };
	struct kube_write write = create;
	write.dry_run = true;
	struct written written = do_write(write);
	CHECK_INT(written.reason, KUBE_OK);
	CHECK(!written.reread);
	teardown();
}

static void count_drop(void *context)
{
	++*(unsigned *)context;
}

static void never_done(void *context, const struct kube_write_result *result)
{
	(void)context, (void)result;
	CHECKF(false, "done() was called");
}

TEST(a_write_can_be_cancelled_or_dropped_at_any_point)
{
	for (unsigned i = 0; i < 4; i++) {
		bool rereads = i & 1, cancels = i & 2;
		unsigned dropped = 0;
		struct kube_writing *writing = NULL;
		setup();
		s.script[0] = (struct server_answer){ .code = 200, .delay_ms = 100000 };
		if (rereads)
			s.script[0] = (struct server_answer){ .code = 500 };
		s.script[1] = (struct server_answer){ .code = 200, .delay_ms = 100000 };
		struct kube_write write = create;
		write.body_len = strlen(write.body);
		write.done = never_done;
		write.dropped = count_drop;
		write.context = &dropped;
		CHECK_INT(kube_write(s.client, &write, &writing, NULL), 0);
		while (s.server.requests < (rereads ? 2 : 1))
			uv_run(&s.loop, UV_RUN_ONCE);
		if (cancels)
			kube_write_cancel(writing);
		teardown();
		CHECK_INT(dropped, !cancels);
	}
}

/* Binding. */
struct bound {
	bool done, pod;
	enum kube_bind_outcome outcome;
	char message[512];
};

static void bind_ended(void *context, const struct kube_bind_result *result)
{
	struct bound *bound = context;
	CHECK(!bound->done);
	bound->done = true;
	bound->outcome = result->outcome;
	bound->pod = result->pod != NULL;
	snprintf(bound->message, sizeof(bound->message), "%s", result->reply->message);
}

static const struct kube_pair annotations[] = {
	{ "gpu.scheduling/allocated", "n1:0,1" },
	{ "gpu.scheduling/decision", "{\"attempt\":\"a1\"}" },
};

static const struct kube_bind to_n1 = {
	.namespace = "ml",
	.pod = "p",
	.uid = "u-1",
	.version = "7",
	.node = "n1",
	.annotations = annotations,
	.annotations_count = 2,
	.attempt_key = "gpu.scheduling/decision",
	.reread_ms = 300,
};

static struct bound do_bind(void)
{
	struct bound bound = { 0 };
	struct kube_bind bind = to_n1;
	struct err err = ERR_INIT;
	bind.done = bind_ended;
	bind.context = &bound;
	CHECKF(kube_bind(s.client, &bind, NULL, &err) == 0, "%s", err.text);
	wait_for(&bound.done);
	return bound;
}

TEST(a_binding_carries_both_preconditions_and_the_annotations)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 201, .body = "{\"kind\":\"Status\"}" };
	struct bound bound = do_bind();
	CHECK_INT(bound.outcome, KUBE_BIND_DONE);
	CHECK_STR(s.lines,
		  "POST /api/v1/namespaces/ml/pods/p/binding?fieldManager=gpu-scheduler\n");
	CHECK_STR(s.body,
		  "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"namespace\":"
		  "\"ml\",\"name\":\"p\",\"uid\":\"u-1\",\"resourceVersion\":\"7\","
		  "\"annotations\":{\"gpu.scheduling/allocated\":\"n1:0,1\","
		  "\"gpu.scheduling/decision\":\"{\\\"attempt\\\":\\\"a1\\\"}\"}},"
		  "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\"}}");
	teardown();
}

#define PODDOC(uid, version, attempt, spec)                                            \
	"{\"metadata\":{\"uid\":\"" uid "\",\"resourceVersion\":\"" version "\","      \
	"\"annotations\":{\"gpu.scheduling/decision\":\"{\\\"attempt\\\":\\\"" attempt \
	"\\\"}\"}},\"spec\":{" spec "}}"

TEST(what_became_of_a_binding_is_told_by_the_pod)
{
	static const struct {
		const char *pod; /* NULL: 404 */
		enum kube_bind_outcome outcome;
	} cases[] = {
		{ PODDOC("u-1", "8", "a1", "\"nodeName\":\"n1\""), KUBE_BIND_DONE },
		{ PODDOC("u-1", "8", "a2", "\"nodeName\":\"n1\""), KUBE_BIND_ELSEWHERE },
		{ PODDOC("u-1", "8", "a1", "\"nodeName\":\"n2\""), KUBE_BIND_ELSEWHERE },
		{ PODDOC("u-1", "7", "a0", ""), KUBE_BIND_SAME },
		{ PODDOC("u-1", "7", "a0", "\"nodeName\":\"\""), KUBE_BIND_SAME },
		{ PODDOC("u-1", "8", "a0", ""), KUBE_BIND_MOVED },
		{ PODDOC("u-2", "8", "a1", "\"nodeName\":\"n1\""), KUBE_BIND_GONE },
		{ NULL, KUBE_BIND_GONE },
	};
	static const struct server_answer firsts[] = {
		{ .code = 409 }, { .code = 500 }, { .how = SERVER_DROP }, { .code = 404 }
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(firsts); i++) {
		size_t which = i / ARRAY_SIZE(firsts);
		setup();
		s.script[0] = firsts[i % ARRAY_SIZE(firsts)];
		s.script[1] = (struct server_answer){ .code = cases[which].pod ? 200 : 404,
						      .body = cases[which].pod };
		struct bound bound = do_bind();
		CHECKF(bound.outcome == cases[which].outcome, "case %zu: %s", i,
		       kube_bind_outcome_name(bound.outcome));
		CHECK_INT(bound.pod, cases[which].pod != NULL);
		CHECK_INT(s.server.requests, 2);
		CHECK(strncmp(bound.message, "cannot create Binding ml/p: ", 28) == 0);
		teardown();
	}
}

TEST(some_refusals_need_no_reading)
{
	static const struct {
		struct server_answer answer;
		enum kube_bind_outcome outcome;
	} cases[] = {
		{ { .code = 403 }, KUBE_BIND_REFUSED },
		{ { .code = 422 }, KUBE_BIND_REFUSED },
		{ { .code = 400 }, KUBE_BIND_REFUSED },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setup();
		s.script[0] = cases[i].answer;
		CHECK_INT(do_bind().outcome, cases[i].outcome);
		CHECK_INT(s.server.requests, 1);
		teardown();
	}
}

TEST(a_binding_of_which_nothing_is_known_says_so)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 500 };
	CHECK_INT(do_bind().outcome, KUBE_BIND_UNKNOWN);
	teardown();
}

TEST(a_binding_without_credentials_was_not_sent)
{
	setup();
	creds.failure = "none";
	struct bound bound = { 0 };
	struct kube_bind bind = to_n1;
	bind.done = bind_ended;
	bind.context = &bound;
	CHECK_INT(kube_bind(s.client, &bind, NULL, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		uv_run(&s.loop, UV_RUN_NOWAIT);
	creds.failure = NULL;
	s.script[0] = (struct server_answer){ .code = 201, .body = "{}" };
	wait_for(&bound.done);
	CHECK_INT(bound.outcome, KUBE_BIND_DONE); /* it was tried again, for nothing was sent */
	teardown();
}

TEST(a_binding_that_would_wedge_its_pod_is_not_sent)
{
	static char huge[KUBE_ANNOTATIONS_MAX];
	memset(huge, 'x', sizeof(huge) - 1);
	const struct kube_pair long_key[] = {
		{ "elasticgpu.io/"
		  "container-0123456789012345678901234567890123456789012345678901234",
		  "0" },
		{ "gpu.scheduling/decision", "1" },
	};
	const struct kube_pair too_much[] = { { "gpu.scheduling/decision", huge } };
	struct kube_bind cases[8];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cases[i] = to_n1;
	cases[0].annotations = long_key;
	cases[1].annotations = too_much;
	cases[1].annotations_count = 1;
	cases[2].uid = "";
	cases[3].version = NULL;
	cases[4].node = "N1";
	cases[5].attempt_key = "gpu.scheduling/other";
	cases[6].attempt_key = NULL;
	cases[7].namespace = "a/b";
	setup();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		cases[i].done = bind_ended;
		CHECKF(kube_bind(s.client, &cases[i], NULL, &err) < 0, "case %zu", i);
		CHECKF(strncmp(err.text, "cannot bind ", 12) == 0, "%s", err.text);
	}
	CHECK_INT(s.server.requests, 0);
	teardown();
}

TEST(a_binding_can_be_cancelled_or_dropped)
{
	for (unsigned cancels = 0; cancels < 2; cancels++) {
		unsigned dropped = 0;
		struct kube_binding *binding = NULL;
		struct kube_bind bind = to_n1;
		setup();
		s.script[0] = (struct server_answer){ .code = 200, .delay_ms = 100000 };
		bind.done = bind_ended;
		bind.dropped = count_drop;
		bind.context = &dropped;
		CHECK_INT(kube_bind(s.client, &bind, &binding, NULL), 0);
		while (s.server.requests < 1)
			uv_run(&s.loop, UV_RUN_ONCE);
		if (cancels)
			kube_bind_cancel(binding);
		teardown();
		CHECK_INT(dropped, !cancels);
	}
}

TEST_MAIN()
