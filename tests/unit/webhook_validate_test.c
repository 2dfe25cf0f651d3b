/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook_stage.h"

#include "samples.h"

#define ACCOUNT(name) "system:serviceaccount:gpu-scheduler:" name

static const char *const deciders[] = { ACCOUNT("scheduler"), ACCOUNT("extender"),
					ACCOUNT("controller") };

static void stage_guards(struct stage *s)
{
	stage_init(s);
	s->options.accounts = deciders;
	s->options.accounts_count = 3;
}

/* One case of tests/samples/webhook_cases.json as a review.  "on" with an old pod is an
 * update, but for a Binding. */
static int run_case(struct stage *s, const struct json *row)
{
	struct strbuf object CLEANUP(strbuf_done) = STRBUF_INIT,
			     old CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer object_writer = JSON_WRITER_INIT(&object);
	struct json_writer old_writer = JSON_WRITER_INIT(&old);
	const char *on = json_str(row, "on"), *user = json_str(row, "user");
	const char *part = on ? strchr(on, '/') : NULL;
	bool binding = part && strcmp(part, "/binding") == 0;
	char account[128];

	snprintf(account, sizeof(account), ACCOUNT("%s"), user ? user : "");
	json_add_value(&object_writer, json_get(row, "pod"));
	json_add_value(&old_writer, json_get(row, "old"));
	struct stage_review review = { .operation = on && !binding ? "UPDATE" : "CREATE",
				       .subresource = part ? part + 1 : NULL,
				       .username = user ? account : NULL,
				       .object = object.s,
				       .old = on && !binding ? old.s : NULL };
	return stage_run(s, WEBHOOK_VALIDATE, &review);
}

TEST(every_case_is_decided_as_the_policy_of_the_api_server_decides_it)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	unsigned refused = 0, allowed = 0;
	struct stage s;

	stage_guards(&s);
	sample_read("webhook_cases.json", &text);
	CHECKF(json_parse("cases", text.s, text.len, NULL, &doc, &s.err) == 0, "%s", s.err.text);
	struct json_iter iter = json_items(json_root(doc));
	for (const struct json *row; (row = json_next(&iter));) {
		const char *name = json_str(row, "name"), *reason = json_str(row, "refused");
		int rc = run_case(&s, row);

		CHECKF(rc == (reason ? WEBHOOK_REFUSED : WEBHOOK_UNTOUCHED), "%s: %d %s", name, rc,
		       stage_message(&s) ? stage_message(&s) : "");
		CHECKF(!reason || strstr(stage_message(&s), reason), "%s: %s", name,
		       stage_message(&s));
		refused += reason != NULL;
		allowed += !reason;
	}
	CHECK(refused > 30 && allowed > 20);
	stage_done(&s);
}

#define POD(metadata) "{metadata: {" metadata "}, spec: {containers: [{name: a}]}}"
#define DECIDED	      POD("annotations: {gpu.scheduling/allocated: \"n:0\"}")

/* Ways into a pod on which the API server itself keeps annotations as they are, today. */
TEST(decisions_are_guarded_on_every_way_into_a_pod)
{
	static const char *const parts[] = { "status", "ephemeralcontainers", "resize" };
	struct stage s;

	stage_guards(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
		struct stage_review review = { .operation = "UPDATE",
					       .subresource = parts[i],
					       .object = DECIDED,
					       .old = POD("") };

		CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &review), WEBHOOK_REFUSED);
		review.username = deciders[2];
		CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &review), WEBHOOK_UNTOUCHED);
	}
	CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE,
			    &(struct stage_review){ .resource = "bindings", .object = DECIDED }),
		  WEBHOOK_REFUSED);
	stage_done(&s);
}

TEST(a_refusal_says_why_in_the_words_of_the_api)
{
	struct stage s;
	int64_t code;

	stage_guards(&s);
	CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &(struct stage_review){ .object = DECIDED }),
		  WEBHOOK_REFUSED);
	const struct json *status = json_get(json_root(s.response), "response", "status");
	CHECK_STR(json_str(status, "reason"), "Forbidden");
	CHECK_INT(json_i64(status, &code, "code"), 0);
	CHECK_INT(code, 403);
	CHECK_STR(json_str(status, "message"), "annotation gpu.scheduling/allocated says what was "
					       "decided: only the scheduler writes it, "
					       "leave it out; alice is no account "
					       "that it may run as");
	stage_done(&s);
}

#define EPHEMERAL(name, value) \
	"{name: " name ", env: [{name: NVIDIA_VISIBLE_DEVICES, value: " value "}]}"
#define WITH_EPHEMERAL(list) "{spec: {containers: [{name: a}], ephemeralContainers: [" list "]}}"

TEST(ephemeral_containers_that_are_there_do_not_keep_others_out)
{
	struct stage s;
	struct stage_review review = {
		.operation = "UPDATE",
		.subresource = "ephemeralcontainers",
		.object = WITH_EPHEMERAL(EPHEMERAL("x", "all") ", {name: y}"),
		.old = WITH_EPHEMERAL(EPHEMERAL("x", "all")),
	};

	stage_guards(&s);
	CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &review), WEBHOOK_UNTOUCHED);
	review.old = WITH_EPHEMERAL("{name: z}");
	CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &review), WEBHOOK_REFUSED);
	stage_done(&s);
}

#define CHOSEN(metadata)                                                               \
	"{metadata: {" metadata "}, spec: {schedulerName: gpu-scheduler, containers: " \
	"[{name: a, env: [{name: CUDA_VISIBLE_DEVICES, value: \"7\"}]}]}}"

#define REFERS(list)                                                          \
	"{spec: {containers: [{name: a}], " list ": [{name: b, env: [{name: " \
	"NVIDIA_VISIBLE_DEVICES, valueFrom: {fieldRef: {fieldPath: "          \
	"\"metadata.annotations['elasticgpu.io/container-b']\"}}}]}]}}"

/* Elsewhere the annotation counts GPUs that are visible, and NVIDIA's runtime all of them. */
TEST(the_nvidia_variable_refers_to_the_annotation_only_in_mode_env)
{
	struct stage s;
	const struct stage_review created = { .object = REFERS("initContainers") };
	const struct stage_review debugged = { .operation = "UPDATE",
					       .subresource = "ephemeralcontainers",
					       .object = REFERS("ephemeralContainers"),
					       .old = POD("") };

	stage_guards(&s);
	for (int mode = INJECTION_UNKNOWN; mode <= INJECTION_ALL; mode++) {
		int outcome = mode == INJECTION_ENV ? WEBHOOK_UNTOUCHED : WEBHOOK_REFUSED;

		s.options.injection = (enum injection_mode)mode;
		CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &created), outcome);
		CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &debugged), outcome);
	}
	stage_done(&s);
}

/* They were there before the webhook was. */
TEST(pods_with_devices_of_their_own_may_change_in_other_ways)
{
	static const struct {
		const char *object;
		int outcome;
	} rows[] = {
		{ CHOSEN("labels: {x: y}, finalizers: [f]"), WEBHOOK_UNTOUCHED },
		{ CHOSEN("ownerReferences: [{kind: Workflow, name: w}]"), WEBHOOK_UNTOUCHED },
		{ CHOSEN("ownerReferences: [{kind: Workflow, name: w}, {kind: Job, name: j}]"),
		  WEBHOOK_REFUSED },
		{ CHOSEN("annotations: {gpu-scheduling-map: \"0=n:0\"}"), WEBHOOK_REFUSED },
		{ CHOSEN("labels: {apps.kubernetes.io/pod-index: \"1\"}"), WEBHOOK_REFUSED },
	};
	struct stage s;

	stage_guards(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage_review review = { .operation = "UPDATE",
					       .object = rows[i].object,
					       .old = CHOSEN("") };

		CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &review), rows[i].outcome);
	}
	stage_done(&s);
}

/* A NUL ends a string in C and not in JSON. */
TEST(a_nul_does_not_hide_what_follows_it)
{
	static const char *const pods[] = {
		"{spec: {containers: [{name: a, env: [{name: CUDA_VISIBLE_DEVICES, value: "
		"\"void\\0all\"}]}]}}",
		POD("annotations: {gpu.scheduling/allocated: \"n\\0\"}"),
	};
	struct stage s;

	stage_guards(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(pods); i++)
		CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE,
				    &(struct stage_review){ .object = pods[i] }),
			  WEBHOOK_REFUSED);
	stage_done(&s);
}

TEST(nobody_is_trusted_unless_named)
{
	struct stage s;
	struct stage_review review = { .object = DECIDED, .username = deciders[0] };

	stage_init(&s);
	s.options.accounts_count = 0;
	CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &review), WEBHOOK_REFUSED);
	stage_done(&s);
}

TEST(claims_that_no_pod_could_use_are_refused)
{
	static const struct {
		const char *spec, *reason; /* NULL: allowed */
	} rows[] = {
		{ "{devices: {count: 2}}", NULL },
		{ "{}", NULL },
		{ "{devices: {count: 0}}", "devices.count is 0, it must be from 1 to 32" },
		{ "{devices: {count: 33}}", "devices.count is 33" },
		{ "{devices: {count: two}}", "devices.count is no whole number" },
		{ "{devices: {policy: tight}}", "devices.policy is \"tight\"" },
		{ "{devices: {policy: preferIds}}", "policy preferIds needs devices.preferIds" },
		{ "{devices: {policy: preferIds, preferIds: [-1]}}", "no GPU id" },
		{ "{devices: {exclusivity: Mine}}", "devices.exclusivity is \"Mine\"" },
		{ "{devices: {exclusivity: MIG}}", "exclusivity MIG needs devices.migProfile" },
		{ "{devices: {migProfile: 1g.5gb}}", "migProfile needs exclusivity MIG" },
		{ "{devices: {core: 50}}", "need exclusivity Shared" },
		{ "{devices: {exclusivity: Shared, core: 101}}", "devices.core is 101" },
		{ "{devices: {exclusivity: Shared, core: 50, memoryMiB: 1000}}", NULL },
		{ "{topology: {mode: Always}}", "topology.mode is \"Always\"" },
		{ "{topology: {minBandwidthGBps: -1}}", "topology.minBandwidthGBps is -1" },
		{ "{network: {rdmaRequired: perhaps}}", "neither true nor false" },
		{ "{network: {minPorts: 2000}}", "network.minPorts is 2000" },
		{ "{storage: {cuFile: 1}}", "neither true nor false" },
		{ "{gangRef: g, gangMinMembers: 0}", "gangMinMembers must be" },
	};
	char claim[256];
	struct stage s;

	stage_guards(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage_review review = { .group = "gpu.scheduling",
					       .resource = "gpuclaims",
					       .operation = i % 2 ? "UPDATE" : "CREATE",
					       .object = claim };

		snprintf(claim, sizeof(claim), "{metadata: {name: c}, spec: %s}", rows[i].spec);
		int rc = stage_run(&s, WEBHOOK_VALIDATE, &review);
		CHECKF(rc == (rows[i].reason ? WEBHOOK_REFUSED : WEBHOOK_UNTOUCHED), "%s: %s",
		       rows[i].spec, stage_message(&s) ? stage_message(&s) : "");
		CHECKF(!rows[i].reason || strstr(stage_message(&s), rows[i].reason), "%s: %s",
		       rows[i].spec, stage_message(&s));
	}
	stage_done(&s);
}

#define BAD_CLAIM(finalizers, count) \
	"{metadata: {finalizers: [" finalizers "]}, spec: {devices: {count: " count "}}}"

/* It was there before the rule was, and could not even be deleted. */
TEST(a_claim_that_stays_as_it_was_is_not_judged_again)
{
	struct stage s;
	struct stage_review review = { .group = "gpu.scheduling",
				       .resource = "gpuclaims",
				       .operation = "UPDATE",
				       .object = BAD_CLAIM("", "0"),
				       .old = BAD_CLAIM("f", "0") };

	stage_guards(&s);
	CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &review), WEBHOOK_UNTOUCHED);
	review.old = BAD_CLAIM("f", "1");
	CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &review), WEBHOOK_REFUSED);
	stage_done(&s);
}

TEST(all_else_is_allowed)
{
	static const struct stage_review reviews[] = {
		{ .operation = "DELETE", .old = DECIDED },
		{ .operation = "CONNECT", .subresource = "exec", .object = DECIDED },
		{ .resource = "deployments", .group = "apps", .object = DECIDED },
		{ .subresource = "eviction", .object = DECIDED },
		{ .resource = "pods", .group = "metrics.k8s.io", .object = DECIDED },
		{ .resource = "gpuclaims",
		  .group = "example.org",
		  .object = "{spec: {devices: 1}}" },
		{ .operation = "UPDATE", .old = DECIDED, .object = DECIDED },
	};
	struct stage s;

	stage_guards(&s);
	for (unsigned i = 0; i < ARRAY_SIZE(reviews); i++)
		CHECK_INT(stage_run(&s, WEBHOOK_VALIDATE, &reviews[i]), WEBHOOK_UNTOUCHED);
	stage_done(&s);
}

TEST_MAIN()
