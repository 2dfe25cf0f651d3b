/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c - Bindings at 64 in flight: ours, with all that belongs to one, against a bare
 * client that posts prepared bodies and looks at the status alone.  By turns, in one run. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "bare.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "kube/bind.h"
#include "kube/check.h"
#include "kube/client.h"
#include "wire/json.h"

#define IN_FLIGHT BARE_SLOTS
#define TURNS	  64
#define TARGET	  0.95

struct target {
	char name[32], uid[64], version[32];
};

struct binding {
	struct bench *bench;
	struct bare *bare;
	VEC(struct target) pods;
	unsigned next, end, left;
};

static void take_pod(void *context, const struct kube_reply *reply)
{
	struct binding *x = context;
	const char *uid = json_str(reply->body, "metadata", "uid");
	struct target t = { 0 };

	if (reply->reason != KUBE_OK || !uid)
		bench_fail("%s", reply->message);
	snprintf(t.name, sizeof(t.name), "%s", json_str(reply->body, "metadata", "name"));
	snprintf(t.uid, sizeof(t.uid), "%s", uid);
	snprintf(t.version, sizeof(t.version), "%s",
		 json_str(reply->body, "metadata", "resourceVersion"));
	if (vec_push(&x->pods, t) < 0)
		bench_fail("out of memory");
	x->left--;
}

static void make_pods(struct binding *x, unsigned count)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;

	for (unsigned i = 0; i < count; i++) {
		struct kube_request request = { .method = "POST",
						.path = "/api/v1/namespaces/default/pods",
						.done = take_pod,
						.context = x };

		bench_put_pod(&body, "bind", i, NULL);
		request.body = body.s;
		request.body_len = body.len;
		x->left++;
		if (kube_send(x->bench->client, &request, NULL, &err) < 0)
			bench_fail("%s", err.text);
		while (kube_waiting(x->bench->client) > 256)
			bench_turn(x->bench);
	}
	while (x->left)
		bench_turn(x->bench);
}

/* Ours */

static void bound(void *context, const struct kube_bind_result *result)
{
	struct binding *x = context;

	if (result->outcome != KUBE_BIND_DONE)
		bench_fail("%s: %s", kube_bind_outcome_name(result->outcome),
			   result->reply->message);
	x->left--;
}

static void start_ours(struct binding *x)
{
	const struct target *t = &x->pods.items[x->next++];
	struct kube_pair pairs[] = { { "gpu.scheduling/allocated", "node-1:0,1" },
				     { "gpu.scheduling/decision", "{\"attempt\":1}" } };
	struct kube_bind bind = { .namespace = "default",
				  .pod = t->name,
				  .uid = t->uid,
				  .version = t->version,
				  .node = "node-1",
				  .annotations = pairs,
				  .annotations_count = 2,
				  .attempt_key = "gpu.scheduling/decision",
				  .done = bound,
				  .context = x };
	struct err err = ERR_INIT;

	x->left++;
	if (kube_bind(x->bench->client, &bind, NULL, &err) < 0)
		bench_fail("%s", err.text);
}

static uint64_t run_ours(struct binding *x, unsigned count)
{
	uint64_t start = bench_wall_ns();

	x->end = x->next + count;
	while (x->next < x->end || x->left) {
		while (x->next < x->end && x->left < IN_FLIGHT)
			start_ours(x);
		bench_turn(x->bench);
	}
	return bench_wall_ns() - start;
}

/* The bare client */

static void bare_start(struct binding *x, unsigned slot)
{
	const struct target *t = &x->pods.items[x->next++];
	char path[128], body[512];

	snprintf(path, sizeof(path), "/api/v1/namespaces/default/pods/%s/binding", t->name);
	snprintf(
		body, sizeof(body),
		"{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\","
		"\"uid\":"
		"\"%s\",\"resourceVersion\":\"%s\",\"annotations\":{\"gpu.scheduling/allocated\":"
		"\"node-1:0,1\",\"gpu.scheduling/decision\":\"{\\\"attempt\\\":1}\"}},\"target\":{"
		"\"kind\":\"Node\",\"name\":\"node-1\"}}",
		t->name, t->uid, t->version);
	bare_send(x->bare, slot, "POST", path, body);
}

static void bare_ended(void *context, unsigned slot, long code, const char *answer)
{
	struct binding *x = context;

	if (code != 201)
		bench_fail("the bare client got %ld: %.200s", code, answer);
	if (x->next < x->end)
		bare_start(x, slot);
}

static uint64_t run_bare(struct binding *x, unsigned count)
{
	uint64_t start = bench_wall_ns();

	x->end = x->next + count;
	for (unsigned slot = 0; slot < BARE_SLOTS && x->next < x->end; slot++)
		bare_start(x, slot);
	bare_run(x->bare);
	return bench_wall_ns() - start;
}

static int compare_ratio(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int bench_bind(struct bench *b, unsigned pods)
{
	struct binding x = { .bench = b };
	unsigned count = pods / (2 * TURNS);
	uint64_t ours = 0, others = 0;
	double ratios[TURNS], ratio;

	x.bare = bare_new(b->config, bare_ended, &x);
	make_pods(&x, 2 * TURNS * count);
	for (unsigned i = 0; i < TURNS; i++) {
		/* Who begins changes too. */
		uint64_t first = i % 2 ? run_ours(&x, count) : run_bare(&x, count);
		uint64_t second = i % 2 ? run_bare(&x, count) : run_ours(&x, count);

		ours += i % 2 ? first : second;
		others += i % 2 ? second : first;
		ratios[i] =
			i % 2 ? (double)second / (double)first : (double)first / (double)second;
	}
	qsort(ratios, TURNS, sizeof(*ratios), compare_ratio);
	ratio = (ratios[TURNS / 2 - 1] + ratios[TURNS / 2]) / 2;
	printf("client_bench bind: %.0f/s, a bare client %.0f/s, ratio %.3f (median of %d turns, "
	       "target %.2f)\n",
	       TURNS * count / ((double)ours / 1e9), TURNS * count / ((double)others / 1e9), ratio,
	       TURNS, TARGET);
	bare_free(x.bare);
	vec_done(&x.pods);
	return ratio < TARGET;
}
