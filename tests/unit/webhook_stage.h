/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_stage.h - for the tests of reviews: a review from YAML, and the pod that the API
 * server would have afterwards.  The patch is applied by yyjson, not by code of ours. */
#ifndef GS_TESTS_UNIT_WEBHOOK_STAGE_H
#define GS_TESTS_UNIT_WEBHOOK_STAGE_H

#include <errno.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "dialect/dialect.h"
#include "kube/base64.h"
#include "test.h"
#include "webhook/review.h"
#include "wire/json.h"
#include "wire/json_write.h"
#include "wire/yaml.h"

/* What the API server asks; NULL is the usual: an object of a user is created, a pod. */
struct stage_review {
	const char *operation, *group, *resource, *subresource, *username;
	const char *object, *old; /* YAML */
};

struct stage {
	struct webhook_options options;
	struct dialect_lookup lookup; /* finds `around`; options.lookup points here if told */
	struct yaml around;
	struct strbuf answer;
	struct json_doc *response;
	struct json_doc *patched; /* the object after the patch */
	struct strbuf patch;	  /* as it was, decoded; empty: none */
	struct err err;
};

static inline const struct json *stage_find(void *context, const char *kind, const char *namespace,
					    const char *name)
{
	const struct stage *s = context;

	CHECK_STR(namespace, "ml");
	for (size_t i = 0; i < s->around.len; i++) {
		const struct json *object = json_root(s->around.items[i].doc);

		if (strcmp(json_str(object, "kind"), kind) == 0 &&
		    strcmp(json_str(object, "metadata", "name"), name) == 0)
			return object;
	}
	return NULL;
}

static inline void stage_init(struct stage *s)
{
	static const char *const accounts[] = { "system:serviceaccount:gpu-scheduler:scheduler" };

	*s = (struct stage){ .options = webhook_options_default,
			     .answer = STRBUF_INIT_MAX(WEBHOOK_ANSWER_MAX),
			     .patch = STRBUF_INIT };
	s->options.accounts = accounts;
	s->options.accounts_count = 1;
	s->lookup = (struct dialect_lookup){ .context = s, .find = stage_find };
}

static inline void stage_forget(struct stage *s)
{
	json_doc_free(s->response);
	json_doc_free(s->patched);
	s->response = s->patched = NULL;
	strbuf_reset(&s->answer);
	strbuf_reset(&s->patch);
}

static inline void stage_done(struct stage *s)
{
	stage_forget(s);
	yaml_done(&s->around);
	strbuf_done(&s->answer);
	strbuf_done(&s->patch);
}

/* Objects that the webhook can find. */
static inline void stage_around(struct stage *s, const char *text)
{
	CHECKF(yaml_parse("around", text, strlen(text), NULL, &s->around, &s->err) == 0, "%s",
	       s->err.text);
	s->options.lookup = &s->lookup;
}

static inline void stage_put_yaml(struct json_writer *w, const char *key, const char *text)
{
	struct yaml yaml CLEANUP(yaml_done) = YAML_INIT;
	struct err err = ERR_INIT;

	if (!text)
		return;
	CHECKF(yaml_parse(key, text, strlen(text), NULL, &yaml, &err) == 0, "%s", err.text);
	json_add_key(w, key);
	json_add_value(w, json_root(yaml.items[0].doc));
}

static inline void stage_put(struct json_writer *w, const char *key, const char *value,
			     const char *otherwise)
{
	json_add_key(w, key);
	json_add_str(w, value ? value : otherwise);
}

static inline void stage_put_request(struct json_writer *w, const struct stage_review *r)
{
	json_open_object(w);
	stage_put(w, "uid", NULL, "705ab4f5");
	json_add_key(w, "resource");
	json_open_object(w);
	stage_put(w, "group", r->group, "");
	stage_put(w, "version", NULL, "v1");
	stage_put(w, "resource", r->resource, "pods");
	json_close_object(w);
	if (r->subresource)
		stage_put(w, "subResource", r->subresource, "");
	stage_put(w, "operation", r->operation, "CREATE");
	stage_put(w, "namespace", NULL, "ml");
	json_add_key(w, "userInfo");
	json_open_object(w);
	stage_put(w, "username", r->username, "alice");
	json_close_object(w);
	stage_put_yaml(w, "object", r->object);
	stage_put_yaml(w, "oldObject", r->old);
	json_close_object(w);
}

static inline void stage_write(const struct stage_review *r, struct strbuf *body)
{
	struct json_writer w = JSON_WRITER_INIT(body);

	json_open_object(&w);
	stage_put(&w, "apiVersion", NULL, "admission.k8s.io/v1");
	stage_put(&w, "kind", NULL, "AdmissionReview");
	json_add_key(&w, "request");
	stage_put_request(&w, r);
	json_close_object(&w);
}

static inline void stage_apply(struct stage *s, const char *body)
{
	const char *text = json_str(json_root(s->response), "response", "patch");
	yyjson_doc *review = yyjson_read(body, strlen(body), 0);
	yyjson_val *object = yyjson_ptr_get(yyjson_doc_get_root(review), "/request/object");
	yyjson_mut_val *after = NULL;
	yyjson_patch_err why = { 0 };

	CHECK_STR(json_str(json_root(s->response), "response", "patchType"), "JSONPatch");
	CHECK(base64_decode(&s->patch, text, strlen(text)) == 0);
	yyjson_doc *patch = yyjson_read(s->patch.s, s->patch.len, 0);
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	CHECK(patch && doc);
	after = yyjson_patch(doc, object, yyjson_doc_get_root(patch), &why);
	CHECKF(after, "operation %zu: %s, of %s", why.idx, why.msg, s->patch.s);
	char *written = yyjson_mut_val_write(after, 0, NULL);
	CHECK(json_parse("patched", written, strlen(written), NULL, &s->patched, &s->err) == 0);
	free(written);
	yyjson_mut_doc_free(doc);
	yyjson_doc_free(patch);
	yyjson_doc_free(review);
}

/* What webhook_review() returns; its answer is checked for form, and its patch applied. */
static inline int stage_run(struct stage *s, enum webhook_path path, const struct stage_review *r)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;

	stage_forget(s);
	stage_write(r, &body);
	int rc = webhook_review(&s->options, path, body.s, body.len, &s->answer, &s->err);
	if (rc < 0)
		return rc;
	CHECK(json_parse("answer", s->answer.s, s->answer.len, NULL, &s->response, &s->err) == 0);
	const struct json *answer = json_root(s->response);
	bool allowed = false;
	CHECK_STR(json_str(answer, "apiVersion"), "admission.k8s.io/v1");
	CHECK_STR(json_str(answer, "kind"), "AdmissionReview");
	CHECK_STR(json_str(answer, "response", "uid"), "705ab4f5");
	CHECK(json_bool(answer, &allowed, "response", "allowed") == 0);
	CHECK(allowed == (rc != WEBHOOK_REFUSED));
	CHECK((json_str(answer, "response", "patch") != NULL) == (rc == WEBHOOK_PATCHED));
	if (rc == WEBHOOK_PATCHED)
		stage_apply(s, body.s);
	return rc;
}

static inline const char *stage_message(const struct stage *s)
{
	return json_str(json_root(s->response), "response", "status", "message");
}

static inline const char *stage_warning(const struct stage *s)
{
	struct json_iter iter = json_items(json_root(s->response), "response", "warnings");
	const struct json *first = json_next(&iter);

	return first ? json_str(first) : NULL;
}

#endif
