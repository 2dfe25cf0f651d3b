/* SPDX-License-Identifier: Apache-2.0 */
/* claims_stage.h - claims.h with an API server that has a few claims, refuses what carries an
 * old version, and checks that each goes its way.
 *
 *	stage_open(1);
 *	stage_pod("u1", "p1", "c0", NULL, NULL);
 *	stage_turn(CLAIM_SETTLE_MS);
 *	CHECK_STR(claim(0)->phases, "Pending");
 *	stage_close();
 *
 * Time stands still but for stage_turn().  One executable has one of them.
 */
#ifndef GS_TESTS_CLAIMS_STAGE_H
#define GS_TESTS_CLAIMS_STAGE_H

#include "kube_fixture.h"
#include "test.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "scheduler/claims.h"
#include "scheduler/claims_private.h"
#include "wire/json.h"
#include "wire/json_write.h"

#define STAGE_CLAIMS 16
#define MS	     UINT64_C(1000000)

struct stage_claim {
	char name[16];
	unsigned version, generation;
	struct strbuf status; /* JSON, as the server has it */
	struct strbuf reply;
	char phases[1024]; /* that were written, with blanks between */
	unsigned writes;
	struct kube_object *cached; /* NULL: does not exist */
};

static struct stage {
	struct claims *claims;
	struct clock_manual clock;
	struct keep *keep, *pod_keep;
	struct stage_claim list[STAGE_CLAIMS];
	unsigned count;
	bool cache_behind; /* what is written does not get into the cache */
	bool silent;	   /* it gets there and nobody is told */
	int refuse;	   /* with this code; 0: in order */
	unsigned requests;
} stage;

static inline struct stage_claim *claim(unsigned number)
{
	return &stage.list[number];
}

/* The field of the status as the server has it: a string, or other JSON as text. */
static inline const char *stage_status(unsigned number, const char *field)
{
	static char text[65536];
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(&out);
	const struct strbuf *status = &claim(number)->status;

	CHECK_INT(json_parse("status", status->s, status->len, NULL, &doc, NULL), 0);
	const char *string = json_str(json_root(doc), field);
	if (!string && json_get(json_root(doc), field)) {
		json_add_value(&w, json_get(json_root(doc), field));
		string = out.s;
	}
	snprintf(text, sizeof(text), "%s", string ? string : "");
	return text;
}

static inline struct kube_object *stage_record(const char *text, size_t len,
					       const struct keep *keep, struct json_doc **doc)
{
	struct kube_object *object = NULL;
	struct err err = ERR_INIT;

	CHECKF(json_parse("object", text, len, NULL, doc, &err) == 0, "%s", err.text);
	CHECKF(kube_object_new(json_root(*doc), keep, &object, &err) == 0, "%s", err.text);
	return object;
}

/* The cache gets what the server has. */
static inline void stage_publish(struct stage_claim *c)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct kube_object *old = c->cached;

	strbuf_reset(&c->reply);
	strbuf_addf(&c->reply,
		    "{\"apiVersion\":\"gpu.scheduling/v1\",\"kind\":\"GpuClaim\",\"metadata\":{"
		    "\"namespace\":\"ml\",\"name\":\"%s\",\"uid\":\"uid-%s\","
		    "\"resourceVersion\":\"%u\",\"generation\":%u},\"status\":",
		    c->name, c->name, c->version, c->generation);
	strbuf_add(&c->reply, c->status.s, c->status.len);
	strbuf_putc(&c->reply, '}');
	if (stage.cache_behind)
		return;
	c->cached = stage_record(c->reply.s, c->reply.len, stage.keep, &doc);
	if (!stage.silent)
		claims_changed(stage.claims, "ml", c->name);
	kube_object_free(old);
}

/* Somebody else writes. */
static inline void stage_overwrite(unsigned number, const char *status)
{
	strbuf_reset(&claim(number)->status);
	strbuf_puts(&claim(number)->status, status);
	claim(number)->version++;
	stage_publish(claim(number));
}

static inline void stage_remove(unsigned number)
{
	struct kube_object *old = claim(number)->cached;

	claim(number)->cached = NULL;
	claims_changed(stage.claims, "ml", claim(number)->name);
	kube_object_free(old);
}

static inline bool is_a_way(const char *from, const char *to)
{
	static const char *const ways[][2] = { { "", "Pending" },	 { "", "Reserved" },
					       { "", "Failed" },	 { "Pending", "Reserved" },
					       { "Pending", "Failed" },	 { "Reserved", "Bound" },
					       { "Reserved", "Failed" }, { "Failed", "Pending" },
					       { "Bound", "Pending" } };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (strcmp(from, ways[i][0]) == 0 && strcmp(to, ways[i][1]) == 0)
			return true;
	return strcmp(from, to) == 0;
}

static inline void stage_merge(struct stage_claim *c, const struct json *status)
{
	struct json_iter members = json_members(status);
	struct json_writer w = JSON_WRITER_INIT(&c->status);

	strbuf_reset(&c->status);
	json_open_object(&w);
	for (struct json_member member; json_next_member(&members, &member);) {
		if (json_type(member.value) == JSON_NULL)
			continue;
		json_add_key(&w, member.key);
		json_add_value(&w, member.value);
	}
	json_close_object(&w);
}

static inline void stage_patched(struct stage_claim *c, const struct json *patch)
{
	const char *phase = json_str(patch, "status", "phase");
	size_t used = strlen(c->phases);
	const char *before = stage_status((unsigned)(c - stage.list), "phase");

	CHECKF(phase && is_a_way(before, phase), "from %s to %s", before, phase);
	if (strcmp(phase, "Bound") != 0) {
		CHECK_INT(json_type(patch, "status", "allocated"), JSON_NULL);
		CHECK_INT(json_type(patch, "status", "allocations"), JSON_NULL);
	}
	snprintf(c->phases + used, sizeof(c->phases) - used, "%s%s", used ? " " : "", phase);
	stage_merge(c, json_get(patch, "status"));
	c->version++;
	c->writes++;
	stage_publish(c);
}

static inline struct stage_claim *stage_find(const char *path)
{
	char expected[256];

	for (unsigned i = 0; i < stage.count; i++) {
		snprintf(expected, sizeof(expected),
			 "/apis/gpu.scheduling/v1/namespaces/ml/gpuclaims/%s/status?",
			 claim(i)->name);
		if (strncmp(path, expected, strlen(expected)) == 0)
			return claim(i);
	}
	return NULL;
}

static inline bool stage_is_current(const struct stage_claim *c, const struct json *patch)
{
	const char *version = json_str(patch, "metadata", "resourceVersion");

	CHECK(version);
	return strtoul(version, NULL, 10) == c->version;
}

static inline void stage_answer(void *context, const struct server_request *request,
				struct server_answer *ret)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct stage_claim *c = stage_find(request->path);

	(void)context;
	stage.requests++;
	CHECK_STR(request->method, "PATCH");
	CHECK(strstr(request->head, "application/merge-patch+json"));
	CHECKF(c, "%s", request->path);
	CHECK_INT(json_parse("body", request->body, request->body_len, NULL, &doc, NULL), 0);
	ret->body = "{\"kind\":\"Status\"}";
	if (stage.refuse) {
		ret->code = stage.refuse;
	} else if (!stage_is_current(c, json_root(doc))) {
		ret->code = 409;
		ret->body = "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"code\":409}";
	} else {
		stage_patched(c, json_root(doc));
		ret->body = c->reply.s;
	}
}

static const struct kube_object *stage_cached(void *context, const char *namespace,
					      const char *name)
{
	(void)context;
	for (unsigned i = 0; i < stage.count; i++)
		if (strcmp(namespace, "ml") == 0 && strcmp(claim(i)->name, name) == 0)
			return claim(i)->cached;
	return NULL;
}

static inline void stage_add_claim(void)
{
	struct stage_claim *c = claim(stage.count);

	*c = (struct stage_claim){
		.version = 1, .generation = 1, .status = STRBUF_INIT, .reply = STRBUF_INIT
	};
	snprintf(c->name, sizeof(c->name), "c%u", stage.count++);
	strbuf_puts(&c->status, "{}");
	stage_publish(c);
}

static inline void stage_open_with(unsigned claims, const struct clock *clock)
{
	struct claims_options options = { .clock = clock, .claim = stage_cached, .seed = 1 };
	struct err err = ERR_INIT;

	setup();
	memset(&stage, 0, sizeof(stage));
	clock_manual_init(&stage.clock, 0);
	s.server.call = stage_answer;
	options.client = s.client;
	options.log = &s.log;
	CHECK_INT(keep_new(kube_kinds[KUBE_GPU_CLAIM].keep, &stage.keep, &err), 0);
	CHECK_INT(keep_new(kube_kinds[KUBE_POD].keep, &stage.pod_keep, &err), 0);
	CHECK_INT(claims_new(&options, &stage.claims, &err), 0);
	while (claims--)
		stage_add_claim();
}

static inline void stage_open(unsigned claims)
{
	stage_open_with(claims, &stage.clock.clock);
	claims_activate(stage.claims, true);
}

static inline void stage_close(void)
{
	claims_free(stage.claims);
	for (unsigned i = 0; i < stage.count; i++) {
		kube_object_free(claim(i)->cached);
		strbuf_done(&claim(i)->status);
		strbuf_done(&claim(i)->reply);
	}
	keep_free(stage.keep);
	keep_free(stage.pod_keep);
	teardown();
}

/* Time goes on, and everything that is due then happens. */
static inline void stage_turn(uint64_t ms)
{
	clock_manual_advance(&stage.clock, ms * MS);
	do {
		claims_tick(stage.claims->timer);
		while (stage.claims->writes)
			uv_run(&s.loop, UV_RUN_ONCE);
		claims_tick(stage.claims->timer);
	} while (stage.claims->writes);
}

/* Everything is looked at again and again, until nothing is due any more. */
static inline void stage_settle(void)
{
	for (int i = 0; i < 12; i++)
		stage_turn(CLAIM_MESSAGE_MS);
}

static inline void stage_pod_json(const char *text)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct kube_object *object = stage_record(text, strlen(text), stage.pod_keep, &doc);

	claims_pod(stage.claims, object, json_root(doc));
	kube_object_free(object);
}

/* Each NULL: not there. */
static inline void stage_pod(const char *uid, const char *name, const char *claim_name,
			     const char *node, const char *allocated)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&text,
		    "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"%s\",\"uid\":\"%s\","
		    "\"resourceVersion\":\"7\",\"annotations\":{\"a\":\"b\"",
		    name, uid);
	if (claim_name)
		strbuf_addf(&text, ",\"gpu.scheduling/claim\":\"%s\"", claim_name);
	if (allocated)
		strbuf_addf(&text,
			    ",\"gpu.scheduling/allocated\":\"%s\","
			    "\"gpu.scheduling/decision\":\"{}\"",
			    allocated);
	strbuf_puts(&text, "}},\"spec\":{");
	if (node)
		strbuf_addf(&text, "\"nodeName\":\"%s\"", node);
	strbuf_puts(&text, "}}");
	stage_pod_json(text.s);
}

#endif
