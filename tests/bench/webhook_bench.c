/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_bench - what a review costs, from its bytes to those of the answer.
 *
 * The pod is one as kube-apiserver sends it, with everything that it fills in.  It is the
 * CPU's time, and the best of several rounds, for others use the machine too.  Fails if a pod
 * without GPUs takes longer than the target and more than twice what the JSON parser alone
 * takes (else it is the machine that is slow).
 */
#include "samples.h"

#include "base/attr.h"
#include "dialect/keys.h"
#include "webhook/review.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

#define REVIEWS	   4096 /* of a round */
#define ROUNDS	   15
#define TARGET_NS  10000
#define PARSER_MAX 2.0

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* The same pod, asking for as much of something else. */
static void ask_for_no_gpus(struct strbuf *body)
{
	static const char gpu[] = RESOURCE_GPU, other[] = "example.io/nic";

	_Static_assert(sizeof(gpu) == sizeof(other), "the text keeps its length");
	for (char *at = body->s; (at = strstr(at, gpu)); at++)
		memcpy(at, other, sizeof(other) - 1);
}

static void write_review(struct strbuf *out, const struct json *pod)
{
	struct json_writer w = JSON_WRITER_INIT(out);

	json_open_object(&w);
	json_add_key(&w, "apiVersion");
	json_add_str(&w, "admission.k8s.io/v1");
	json_add_key(&w, "kind");
	json_add_str(&w, "AdmissionReview");
	json_add_key(&w, "request");
	json_open_object(&w);
	json_add_key(&w, "uid");
	json_add_str(&w, "705ab4f5-6393-11e8-b7cc-42010a800002");
	json_add_key(&w, "resource");
	json_open_object(&w);
	json_add_key(&w, "group");
	json_add_str(&w, "");
	json_add_key(&w, "resource");
	json_add_str(&w, "pods");
	json_close_object(&w);
	json_add_key(&w, "operation");
	json_add_str(&w, "CREATE");
	json_add_key(&w, "namespace");
	json_add_str(&w, "ml");
	json_add_key(&w, "object");
	json_add_value(&w, pod);
	json_close_object(&w);
	json_close_object(&w);
}

static double round_parse(const struct strbuf *body)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < REVIEWS; i++) {
		struct json_doc *doc = NULL;

		if (json_parse("review", body->s, body->len, NULL, &doc, NULL) < 0)
			abort();
		json_doc_free(doc);
	}
	return (double)(now_ns() - start) / REVIEWS;
}

static double round_review(const struct strbuf *body, enum webhook_path path, int expected)
{
	struct strbuf answer CLEANUP(strbuf_done) = STRBUF_INIT_MAX(WEBHOOK_ANSWER_MAX);
	uint64_t start = now_ns();

	for (unsigned i = 0; i < REVIEWS; i++) {
		strbuf_reset(&answer);
		if (webhook_review(&webhook_options_default, path, body->s, body->len, &answer,
				   NULL) != expected)
			abort();
	}
	return (double)(now_ns() - start) / REVIEWS;
}

struct best {
	double parse, mutate, validate;
};

static struct best measure(const struct strbuf *body, int expected)
{
	struct best best = { 1e18, 1e18, 1e18 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		double parse = round_parse(body);
		double mutate = round_review(body, WEBHOOK_MUTATE, expected);
		double validate = round_review(body, WEBHOOK_VALIDATE, WEBHOOK_UNTOUCHED);

		best.parse = MIN(best.parse, parse);
		best.mutate = MIN(best.mutate, mutate);
		best.validate = MIN(best.validate, validate);
	}
	return best;
}

static void print(const char *name, const struct strbuf *body, const struct best *best)
{
	printf("%-16s %6zu bytes  parse %6.2f us  mutate %6.2f us  validate %6.2f us\n", name,
	       body->len, best->parse / 1e3, best->mutate / 1e3, best->validate / 1e3);
}

int main(void)
{
	struct strbuf event CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf plain CLEANUP(strbuf_done) = STRBUF_INIT,
			    gpus CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

	sample_read("pod_pending.json", &event);
	if (json_parse("sample", event.s, event.len, NULL, &doc, NULL) < 0)
		abort();
	const struct json *sample = json_get(json_root(doc), "object");
	write_review(&plain, sample);
	write_review(&gpus, sample);
	ask_for_no_gpus(&plain);
	struct best without = measure(&plain, WEBHOOK_UNTOUCHED);
	struct best with = measure(&gpus, WEBHOOK_PATCHED);
	print("pod without GPUs", &plain, &without);
	print("pod with GPUs", &gpus, &with);
	double worst = MAX(without.mutate, without.validate);
	if (worst > TARGET_NS && worst > without.parse * PARSER_MAX) {
		printf("a pod without GPUs takes more than %d us\n", TARGET_NS / 1000);
		return 1;
	}
	return 0;
}
