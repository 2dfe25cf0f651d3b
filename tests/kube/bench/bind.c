/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c - Bindings at 64 in flight: ours, with all that belongs to one, against a bare
 * client that posts prepared bodies and looks at the status alone.  By turns, in one run. */
#include "bench.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "kube/bind.h"
#include "kube/check.h"
#include "kube/client.h"
#include "kube/config.h"
#include "wire/json.h"

#define IN_FLIGHT 64
#define TURNS	  16
#define TARGET	  0.95

struct target {
	char name[32], uid[64], version[32];
};

struct binding {
	struct bench *bench;
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

struct bare {
	CURLM *multi;
	struct curl_slist *headers;
	char url[512], body[512];
};

/* NOLINTNEXTLINE(readability-non-const-parameter): libcurl says what it looks like */
static size_t ignore(char *bytes, size_t size, size_t count, void *context)
{
	(void)bytes, (void)context;
	return size * count;
}

/* libcurl takes files alone. */
static void file_of(const char *data, char *path, size_t size)
{
	int fd = memfd_create("bench", 0);

	if (!data)
		bench_fail("the bare client needs a kubeconfig with its certificates inside");
	if (fd < 0 || write(fd, data, strlen(data)) != (ssize_t)strlen(data))
		bench_fail("no memory for a certificate");
	snprintf(path, size, "/proc/self/fd/%d", fd);
}

static CURL *bare_handle(const struct kube_config *config)
{
	static char ca[64], cert[64], key[64];
	CURL *easy = curl_easy_init();

	if (!easy)
		bench_fail("out of memory");
	if (!ca[0]) {
		file_of(config->ca_data, ca, sizeof(ca));
		file_of(config->cert_data, cert, sizeof(cert));
		file_of(config->key_data, key, sizeof(key));
	}
	curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
	curl_easy_setopt(easy, CURLOPT_SSLCERT, cert);
	curl_easy_setopt(easy, CURLOPT_SSLKEY, key);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	return easy;
}

static void bare_start(struct binding *x, struct bare *bare, CURL *easy)
{
	const struct target *t = &x->pods.items[x->next++];

	snprintf(bare->url, sizeof(bare->url), "%s/api/v1/namespaces/default/pods/%s/binding",
		 x->bench->config->server, t->name);
	snprintf(
		bare->body, sizeof(bare->body),
		"{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\","
		"\"uid\":"
		"\"%s\",\"resourceVersion\":\"%s\",\"annotations\":{\"gpu.scheduling/allocated\":"
		"\"node-1:0,1\",\"gpu.scheduling/decision\":\"{\\\"attempt\\\":1}\"}},\"target\":{"
		"\"kind\":\"Node\",\"name\":\"node-1\"}}",
		t->name, t->uid, t->version);
	curl_easy_setopt(easy, CURLOPT_URL, bare->url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, bare->headers);
	curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, bare->body);
	curl_multi_add_handle(bare->multi, easy);
	x->left++;
}

static void bare_finish(struct binding *x, struct bare *bare)
{
	CURLMsg *message;
	long code = 0;
	int queued;

	while ((message = curl_multi_info_read(bare->multi, &queued))) {
		CURL *easy = message->easy_handle;

		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
		if (message->data.result != CURLE_OK || code != 201)
			bench_fail("the bare client got %ld", code);
		curl_multi_remove_handle(bare->multi, easy);
		x->left--;
		if (x->next < x->end)
			bare_start(x, bare, easy);
	}
}

static uint64_t run_bare(struct binding *x, struct bare *bare, CURL **handles, unsigned count)
{
	uint64_t start = bench_wall_ns();
	int running;

	x->end = x->next + count;
	for (unsigned i = 0; i < IN_FLIGHT && x->next < x->end; i++)
		bare_start(x, bare, handles[i]);
	while (x->left) {
		unsigned begun;

		if (curl_multi_perform(bare->multi, &running) != CURLM_OK)
			bench_fail("the bare client failed");
		begun = x->next;
		bare_finish(x, bare);
		/* New ones are sent before anybody waits. */
		if (x->next == begun && x->left &&
		    curl_multi_poll(bare->multi, NULL, 0, 1000, NULL) != CURLM_OK)
			bench_fail("the bare client failed");
	}
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
	struct bare bare = { .multi = curl_multi_init() };
	unsigned count = pods / (2 * TURNS);
	uint64_t ours = 0, others = 0;
	double ratios[TURNS], ratio;
	CURL *handles[IN_FLIGHT];

	bare.headers = curl_slist_append(NULL, "Content-Type: application/json");
	for (unsigned i = 0; i < IN_FLIGHT; i++)
		handles[i] = bare_handle(b->config);
	make_pods(&x, 2 * TURNS * count);
	for (unsigned i = 0; i < TURNS; i++) {
		/* Who begins changes too. */
		uint64_t first = i % 2 ? run_ours(&x, count) : run_bare(&x, &bare, handles, count);
		uint64_t second =
			i % 2 ? run_bare(&x, &bare, handles, count) : run_ours(&x, count);

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
	for (unsigned i = 0; i < IN_FLIGHT; i++)
		curl_easy_cleanup(handles[i]);
	curl_multi_cleanup(bare.multi);
	curl_slist_free_all(bare.headers);
	vec_done(&x.pods);
	return ratio < TARGET;
}
