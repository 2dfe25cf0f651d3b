/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are an AdmissionReview that gets an answer, or one sentence.  An answer is JSON;
 * its patch fits the object that it was made for, and the patched object gets none. */
#include "fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yyjson.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "dialect/dialect.h"
#include "kube/base64.h"
#include "webhook/review.h"
#include "wire/json.h"

static struct json_doc *around;

/* A claim that wants everything, or a Job, whatever the name. */
static const struct json *find(void *context, const char *kind, const char *namespace,
			       const char *name)
{
	(void)context;
	(void)namespace;
	return *name ? json_get(json_root(around), kind) : NULL;
}

static void make_around(void)
{
	static const char text[] =
		"{\"GpuClaim\":{\"spec\":{\"devices\":{\"core\":20,\"memoryMiB\":9},\"network\":"
		"{\"rdmaRequired\":true,\"preferredHcas\":[\"m0\",\"m1\"]},"
		"\"storage\":{\"cuFile\":true}}},"
		"\"Job\":{\"kind\":\"Job\",\"metadata\":{\"name\":\"j\",\"annotations\":"
		"{\"topology.scheduler/gpu-count\":\"4\",\"gpu-scheduling-map\":\"0=n:1\"}},"
		"\"spec\":{\"parallelism\":2}}}";

	if (!around)
		REQUIRE(json_parse("around", text, sizeof(text) - 1, NULL, &around, NULL) == 0);
}

static struct webhook_options options_of(uint8_t choice, const struct dialect_lookup *lookup)
{
	static const char *const accounts[] = { "scheduler" };
	struct webhook_options options = webhook_options_default;

	options.accounts = accounts;
	options.accounts_count = 1;
	options.injection = (enum injection_mode)(choice % (INJECTION_ALL + 1));
	options.inject = choice & 4 ? INJECT_NVIDIA | INJECT_MPS : 0;
	options.runtime_class = choice & 8 ? "nvidia" : NULL;
	options.set_scheduler = choice & 16 ? "gpu-scheduler" : NULL;
	options.other_schedulers = choice & 32;
	options.lookup = choice & 64 ? lookup : NULL;
	options.copy_owner_annotations = choice & 64;
	return options;
}

/* The review again, with the object as the patch leaves it. */
static char *patched_review(const char *body, size_t len, const char *encoded)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	yyjson_doc *review = yyjson_read(body, len, 0);
	yyjson_mut_doc *copy = yyjson_doc_mut_copy(review, NULL);
	yyjson_patch_err why = { 0 };

	REQUIRE(base64_decode(&text, encoded, strlen(encoded)) == 0);
	yyjson_doc *patch = yyjson_read(text.s, text.len, 0);
	REQUIRE(review && copy && patch);
	yyjson_mut_val *request = yyjson_mut_obj_get(yyjson_mut_doc_get_root(copy), "request");
	yyjson_mut_val *object = yyjson_mut_obj_get(request, "object");
	yyjson_mut_val *operations = yyjson_val_mut_copy(copy, yyjson_doc_get_root(patch));
	yyjson_mut_val *after = yyjson_mut_patch(copy, object, operations, &why);
	REQUIRE(after);
	yyjson_mut_obj_replace(request, yyjson_mut_str(copy, "object"), after);
	char *written = yyjson_mut_write(copy, 0, NULL);
	yyjson_doc_free(patch);
	yyjson_mut_doc_free(copy);
	yyjson_doc_free(review);
	return written;
}

static void check_again(const struct webhook_options *options, const char *body, size_t len,
			const struct strbuf *answer)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct strbuf second CLEANUP(strbuf_done) = STRBUF_INIT;

	REQUIRE(json_parse("answer", answer->s, answer->len, NULL, &doc, NULL) == 0);
	char *again = patched_review(body, len, json_str(json_root(doc), "response", "patch"));
	if (!again) /* too large to be written */
		return;
	int rc = webhook_review(options, WEBHOOK_MUTATE, again, strlen(again), &second, NULL);
	REQUIRE(rc == WEBHOOK_UNTOUCHED || rc == -E2BIG);
	free(again);
}

/* Keys that come twice are read by some as the first and by others as the last; the API
 * server, which writes the review, has them once. */
static bool has_twins(const struct json *value)
{
	struct json_iter outer = json_members(value), items = json_items(value);
	struct json_member m, other;

	while (json_next_member(&outer, &m)) {
		struct json_iter inner = outer;

		while (json_next_member(&inner, &other))
			if (m.key_len == other.key_len && memcmp(m.key, other.key, m.key_len) == 0)
				return true;
		if (has_twins(m.value))
			return true;
	}
	for (const struct json *item; (item = json_next(&items));)
		if (has_twins(item))
			return true;
	return false;
}

static bool is_plain(const char *body, size_t len)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

	return json_parse("body", body, len, NULL, &doc, NULL) == 0 && !has_twins(json_root(doc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dialect_lookup lookup = { .find = find };
	struct strbuf answer CLEANUP(strbuf_done) = STRBUF_INIT_MAX(WEBHOOK_ANSWER_MAX);
	struct err err = ERR_INIT;

	if (size == 0)
		return 0;
	make_around();
	struct webhook_options options = options_of(data[0], &lookup);
	enum webhook_path path = data[0] & 128 ? WEBHOOK_VALIDATE : WEBHOOK_MUTATE;
	const char *body = (const char *)data + 1;
	int rc = webhook_review(&options, path, body, size - 1, &answer, &err);
	REQUIRE(rc < 0 ? err.text[0] != 0 && answer.len == 0 : rc < WEBHOOK_OUTCOMES);
	REQUIRE(path != WEBHOOK_VALIDATE || rc != WEBHOOK_PATCHED);
	REQUIRE(path != WEBHOOK_MUTATE || rc != WEBHOOK_REFUSED);
	if (rc == WEBHOOK_PATCHED && is_plain(body, size - 1))
		check_again(&options, body, size - 1, &answer);
	return 0;
}
