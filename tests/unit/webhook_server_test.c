/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews over HTTP: what is answered how, and certificates that change under load. */
#include "test.h"
#include "unit/http_certs.h"
#include "unit/httpd_folder.h"
#include "unit/httpd_stand.h"

#include "base/attr.h"
#include "webhook/review.h"
#include "webhook/server.h"
#include "wire/http.h"
#include "wire/metrics.h"

/* A server, on the loop of another that is there for its callers. */
struct bench {
	struct stand stand;
	struct metrics *metrics;
	struct webhook_server *server;
	uint32_t reviewed;
	int closed;
};

static void reviewed(void *context)
{
	((struct bench *)context)->reviewed++;
}

static void bench_open(struct bench *bench, const struct folder *folder)
{
	struct err err = ERR_INIT;

	memset(bench, 0, sizeof(*bench));
	stand_open(&bench->stand, &(struct httpd_options){ 0 });
	bench->metrics = metrics_new();
	struct webhook_server_options options = { .loop = &bench->stand.loop,
						  .metrics = bench->metrics,
						  .addr = "127.0.0.1:0",
						  .cert_file = folder ? folder->cert_file : NULL,
						  .key_file = folder ? folder->key_file : NULL,
						  .reviews = &webhook_options_default,
						  .reviewed = reviewed,
						  .context = bench,
						  .certs_ms = 5 };
	if (webhook_server_new(&options, &bench->server, &err) < 0)
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void bench_closed(void *context)
{
	((struct bench *)context)->closed++;
}

static void bench_close(struct bench *bench)
{
	webhook_server_close(bench->server, 0, bench_closed, bench);
	stand_close(&bench->stand);
	CHECK_INT(bench->closed, 1);
	metrics_free(bench->metrics);
}

#define REVIEW(object)                                                                       \
	"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{" \
	"\"uid\":\"u-1\",\"operation\":\"CREATE\",\"namespace\":\"ml\","                     \
	"\"userInfo\":{\"username\":\"jane\"},"                                              \
	"\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"            \
	"\"object\":" object "}}"

#define POD(metadata, limits)                                                                \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" metadata                    \
	"\"name\":\"p\"},\"spec\":{\"schedulerName\":\"gpu-scheduler\","                     \
	"\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"limits\":{" limits \
	"}}}]}}"

#define PLAIN	 REVIEW(POD("", ""))
#define WITH_GPU REVIEW(POD("", "\"nvidia.com/gpu\":\"1\""))
#define FORGED	 REVIEW(POD("\"annotations\":{\"gpu.scheduling/allocated\":\"n:0\"},", ""))

/* A request of its own connection; its status, and the answer in *ret for free(). */
static int ask(struct bench *bench, const char *method, const char *path, const char *type,
	       const char *body, size_t len, char **ret)
{
	struct caller *caller = caller_new_at(&bench->stand, webhook_server_port(bench->server));
	char head[512];

	snprintf(head, sizeof(head),
		 "%s %s HTTP/1.1\r\nHost: x\r\n%s%s%sContent-Length: %zu\r\n\r\n", method, path,
		 type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "", len);
	CHECK(caller_say(caller, head) && caller_send(caller, body, len));
	int status = caller_read(caller);
	if (ret)
		*ret = strdup(caller->body);
	caller_free(caller);
	return status;
}

static int post(struct bench *bench, const char *path, const char *body, char **ret)
{
	return ask(bench, "POST", path, "application/json", body, strlen(body), ret);
}

static void check_review(struct bench *bench, const char *path, const char *body,
			 const char *expected, const char *unexpected)
{
	char *answer = NULL;
	int status = post(bench, path, body, &answer);

	CHECKF(status == 200 && strstr(answer, "\"uid\":\"u-1\""), "%d %s", status, answer);
	CHECKF(strstr(answer, expected) && !strstr(answer, unexpected), "%s", answer);
	free(answer);
}

TEST(reviews_are_answered)
{
	struct bench bench;

	bench_open(&bench, NULL);
	check_review(&bench, "/mutate", PLAIN, "\"allowed\":true", "\"patch\"");
	check_review(&bench, "/mutate", WITH_GPU, "\"patchType\":\"JSONPatch\"", "\"status\"");
	check_review(&bench, "/mutate?timeout=5s", WITH_GPU, "\"patch\"", "\"status\"");
	check_review(&bench, "/validate", PLAIN, "\"allowed\":true", "\"status\"");
	check_review(&bench, "/validate?timeout=5s", FORGED, "\"allowed\":false", "\"patch\"");
	CHECK_INT(bench.reviewed, 5);
	bench_close(&bench);
}

TEST(what_is_no_review_is_told_so)
{
	static const struct {
		const char *method, *path, *type, *body;
		int status;
	} rows[] = {
		{ "POST", "/", "application/json", PLAIN, 404 },
		{ "POST", "/mutate/", "application/json", PLAIN, 404 },
		{ "POST", "/health", "application/json", PLAIN, 404 },
		{ "GET", "/mutate", NULL, "", 405 },
		{ "PUT", "/validate", "application/json", PLAIN, 405 },
		{ "POST", "/mutate", NULL, PLAIN, 415 },
		{ "POST", "/mutate", "text/plain", PLAIN, 415 },
		{ "POST", "/mutate", "application/jsonx", PLAIN, 415 },
		{ "POST", "/mutate", "application/vnd.kubernetes.protobuf", PLAIN, 415 },
		{ "POST", "/mutate", "application/json; charset=utf-8", PLAIN, 200 },
		{ "POST", "/mutate", "Application/JSON", PLAIN, 200 },
		{ "POST", "/mutate", "application/json", "", 400 },
		{ "POST", "/validate", "application/json", "{", 400 },
		{ "POST", "/validate", "application/json", "{}", 400 },
		{ "POST", "/validate", "application/json", "[]", 400 },
		{ "POST", "/validate", "application/json", "\xff\xfe", 400 },
		{ "POST", "/mutate", "application/json", PLAIN "}", 400 },
	};
	struct bench bench;

	bench_open(&bench, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *answer = NULL;
		int status = ask(&bench, rows[i].method, rows[i].path, rows[i].type, rows[i].body,
				 strlen(rows[i].body), &answer);
		CHECKF(status == rows[i].status, "row %zu: %d %s", i, status, answer);
		CHECKF(answer[0], "row %zu has no words", i);
		free(answer);
	}
	bench_close(&bench);
}

TEST(a_review_that_is_cut_short_is_none)
{
	struct bench bench;

	bench_open(&bench, NULL);
	for (size_t len = 0; len < sizeof(WITH_GPU) - 1; len++)
		CHECK_INT(ask(&bench, "POST", len % 2 ? "/mutate" : "/validate",
			      "application/json", WITH_GPU, len, NULL),
			  400);
	bench_close(&bench);
}

TEST(deep_and_large_reviews_are_refused)
{
	struct bench bench;
	size_t len = WEBHOOK_BODY_MAX + 1;
	char *body = malloc(len + 1), *answer = NULL;

	CHECK(body != NULL);
	bench_open(&bench, NULL);
	memset(body, '[', len);
	int status = ask(&bench, "POST", "/mutate", "application/json", body, 100000, &answer);
	CHECKF(status == 400 || status == 413, "%d %s", status, answer);
	free(answer);
	status = ask(&bench, "POST", "/mutate", "application/json", body, len - 1, &answer);
	CHECKF(status == 400 || status == 413, "%d %s", status, answer);
	free(answer);
	CHECK_INT(ask(&bench, "POST", "/mutate", "application/json", body, len, NULL), 413);
	memset(body, ' ', len);
	memcpy(body, WITH_GPU, strlen(WITH_GPU));
	CHECK_INT(ask(&bench, "POST", "/mutate", "application/json", body, len - 1, NULL), 200);
	CHECK_INT(ask(&bench, "POST", "/mutate", "application/json", body, len, NULL), 413);
	free(body);
	bench_close(&bench);
}

TEST(reviews_are_counted)
{
	struct bench bench;

	bench_open(&bench, NULL);
	for (int i = 0; i < 3; i++)
		CHECK_INT(post(&bench, "/mutate", WITH_GPU, NULL), 200);
	CHECK_INT(post(&bench, "/mutate", PLAIN, NULL), 200);
	CHECK_INT(post(&bench, "/validate", FORGED, NULL), 200);
	CHECK_INT(post(&bench, "/validate", "{}", NULL), 400);
	CHECK_INT(post(&bench, "/other", "{}", NULL), 404);
	struct metric *reviews =
		metrics_find(bench.metrics, "gpu_scheduler_webhook_reviews_total");
	CHECK_INT(metric_value(reviews, METRIC_LABELS("mutate", "patched")), 3);
	CHECK_INT(metric_value(reviews, METRIC_LABELS("mutate", "untouched")), 1);
	CHECK_INT(metric_value(reviews, METRIC_LABELS("validate", "refused")), 1);
	CHECK_INT(metric_value(reviews, METRIC_LABELS("validate", "failed")), 1);
	struct metric *duration =
		metrics_find(bench.metrics, "gpu_scheduler_webhook_review_duration_seconds");
	CHECK_INT(metric_value(duration, METRIC_LABELS("mutate")), 4);
	webhook_server_measure(bench.server);
	CHECK(metrics_find(bench.metrics, "gpu_scheduler_webhook_connections"));
	bench_close(&bench);
}

/* ---- certificates that change under load ---- */

#define CALLS	16
#define CHANGES 25

struct load {
	struct bench *bench;
	struct http *http;
	char url[64];
	bool ending;
	uint32_t on_the_way, answered;
};

static void load_ask(struct load *load);

static void load_answered(void *context, const struct http_reply *reply)
{
	struct load *load = context;

	CHECKF(reply->result == HTTP_ANSWERED && reply->status == 200, "%d %d %s", reply->result,
	       reply->status, reply->reason);
	CHECK(strstr(reply->body, "\"patch\""));
	load->on_the_way--;
	load->answered++;
	if (!load->ending)
		load_ask(load);
}

/* Every third on a connection of its own, for only these are greeted. */
static void load_ask(struct load *load)
{
	static const char *const headers[] = { "Content-Type: application/json",
					       "Connection: close" };
	struct http_request request = { .method = "POST",
					.url = load->url,
					.headers = headers,
					.headers_count = load->answered % 3 ? 1 : 2,
					.body = WITH_GPU,
					.body_len = strlen(WITH_GPU),
					.done = load_answered,
					.context = load };
	struct http_call *call;
	struct err err = ERR_INIT;

	CHECKF(http_start(load->http, &request, &call, &err) == 0, "%s", err.text);
	load->on_the_way++;
}

TEST(a_change_of_certificates_fails_no_request)
{
	struct cert authority, certs[2];
	struct folder folder;
	struct bench bench;
	struct load load = { .bench = &bench };
	struct err err = ERR_INIT;

	cert_make(&authority, CERT_AUTHORITY, NULL, 2);
	for (int i = 0; i < 2; i++)
		cert_make(&certs[i], CERT_SERVER, &authority, 1);
	folder_open(&folder, &certs[0]);
	bench_open(&bench, &folder);
	struct http_options options = { .ca_file = authority.cert_file, .http1 = true };
	CHECK_INT(http_new(&bench.stand.loop, &options, &load.http, &err), 0);
	snprintf(load.url, sizeof(load.url), "https://127.0.0.1:%d/mutate?timeout=5s",
		 webhook_server_port(bench.server));
	struct metric *changes =
		metrics_find(bench.metrics, "gpu_scheduler_webhook_certificate_changes_total");
	for (int i = 0; i < CALLS; i++)
		load_ask(&load);
	for (int i = 1; i <= CHANGES; i++) {
		uint32_t seen = load.answered;
		folder_fill(&folder, &certs[i % 2]);
		while (metric_value(changes, METRIC_LABELS("taken")) < i ||
		       load.answered < seen + 2 * CALLS)
			uv_run(&bench.stand.loop, UV_RUN_ONCE);
		uv_timer_again(&bench.stand.hang);
	}
	for (load.ending = true; load.on_the_way;)
		uv_run(&bench.stand.loop, UV_RUN_ONCE);
	CHECK_INT(metric_value(changes, METRIC_LABELS("refused")), 0);
	CHECK(load.answered >= 2 * CALLS * CHANGES);
	http_close(load.http, NULL, NULL);
	bench_close(&bench);
	folder_close(&folder);
	for (int i = 0; i < 2; i++)
		cert_done(&certs[i]);
	cert_done(&authority);
}

TEST_MAIN()
