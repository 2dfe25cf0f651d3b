/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/review.h"

#include <errno.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "kube/base64.h"
#include "webhook/admission.h"
#include "wire/json.h"
#include "wire/json_write.h"

int webhook_http_status(int rc)
{
	if (rc >= 0)
		return 200;
	return rc == -EINVAL ? 400 : rc == -E2BIG ? 413 : 500;
}

static void write_refusal(struct json_writer *w, const struct err *reason)
{
	json_add_key(w, "status");
	json_open_object(w);
	json_add_key(w, "code");
	json_add_i64(w, 403);
	json_add_key(w, "reason");
	json_add_str(w, "Forbidden");
	json_add_key(w, "message");
	json_add_str(w, reason->text);
	json_close_object(w);
}

/* Base64 needs no escapes, so it goes in without the writer looking at it again. */
static int write_patch(struct json_writer *w, struct patch *patch, struct err *err)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT_MAX(WEBHOOK_ANSWER_MAX);
	size_t len = 0;
	const char *bytes = patch_text(patch, &len);

	if (bytes)
		base64_encode(&text, bytes, len);
	if (!bytes || text.failed)
		return err_set(err, E2BIG, "the pod has too many containers to be changed");
	json_add_key(w, "patchType");
	json_add_str(w, "JSONPatch");
	json_add_key(w, "patch");
	json_add_strn(w, text.s, text.len);
	return 0;
}

static void write_warnings(struct json_writer *w, const struct ruling *ruling)
{
	json_add_key(w, "warnings");
	json_open_array(w);
	for (unsigned i = 0; i < ruling->warnings_count; i++)
		json_add_str(w, ruling->warnings[i]);
	json_close_array(w);
}

static int write_answer(struct strbuf *out, const struct admission *a, struct ruling *ruling,
			struct err *err)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	int rc = 0;

	json_open_object(&w);
	json_add_key(&w, "apiVersion");
	json_add_str(&w, "admission.k8s.io/v1");
	json_add_key(&w, "kind");
	json_add_str(&w, "AdmissionReview");
	json_add_key(&w, "response");
	json_open_object(&w);
	json_add_key(&w, "uid");
	json_add_str(&w, a->uid);
	json_add_key(&w, "allowed");
	json_add_bool(&w, !ruling->refused);
	if (ruling->refused)
		write_refusal(&w, &ruling->reason);
	else if (!patch_is_empty(&ruling->patch))
		rc = write_patch(&w, &ruling->patch, err);
	if (ruling->warnings_count)
		write_warnings(&w, ruling);
	json_close_object(&w);
	json_close_object(&w);
	if (rc == 0 && out->failed)
		rc = err_set(err, ENOMEM, "out of memory");
	return rc;
}

static enum webhook_outcome outcome_of(const struct ruling *ruling)
{
	if (ruling->refused)
		return WEBHOOK_REFUSED;
	return patch_is_empty(&ruling->patch) ? WEBHOOK_UNTOUCHED : WEBHOOK_PATCHED;
}

int webhook_review(const struct webhook_options *options, enum webhook_path path, const char *body,
		   size_t len, struct strbuf *answer, struct err *err)
{
	const struct json_limits limits = { .max_bytes = WEBHOOK_BODY_MAX };
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct ruling ruling CLEANUP(ruling_done) = RULING_INIT;
	size_t before = answer->len;
	struct admission a;
	int rc;

	if ((rc = json_parse("review", body, len, &limits, &doc, err)) < 0 ||
	    (rc = admission_read(json_root(doc), &a, err)) < 0)
		return rc;
	if (path == WEBHOOK_MUTATE)
		webhook_mutate(options, &a, &ruling);
	else
		rc = webhook_validate(options, &a, &ruling, err);
	if (rc == 0)
		rc = write_answer(answer, &a, &ruling, err);
	if (rc < 0) {
		strbuf_truncate(answer, before);
		return rc;
	}
	return outcome_of(&ruling);
}
