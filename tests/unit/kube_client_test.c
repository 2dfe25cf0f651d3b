/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a server that answers as told, with credentials of our own making. */
#include "test.h"

#include "kube_fixture.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/client.h"
#include "kube/telemetry.h"
#include "wire/json.h"
#include "wire/metrics.h"

#include <errno.h>
#include <unistd.h>

/* The end of a call, copied. */
struct ended {
	bool done;
	enum kube_reason reason;
	int code;
	uint32_t tries;
	char message[1024], bytes[256];
	char name[64]; /* metadata.name of the body */
	char order;
};

static char order_of_ends[64];

static void ended(void *context, const struct kube_reply *reply)
{
	struct ended *end = context;
	CHECK(!end->done);
	end->done = true;
	end->reason = reply->reason;
	end->code = reply->code;
	end->tries = reply->tries;
	snprintf(end->message, sizeof(end->message), "%s", reply->message);
	snprintf(end->bytes, sizeof(end->bytes), "%.*s", (int)reply->len, reply->bytes);
	const char *name = json_str(reply->body, "metadata", "name");
	snprintf(end->name, sizeof(end->name), "%s", name ? name : "");
	if (end->order)
		strncat(order_of_ends, &end->order, 1);
}

static struct kube_call *send_request(struct kube_request request, struct ended *end)
{
	struct kube_call *call = NULL;
	struct err err = ERR_INIT;
	request.done = ended;
	request.context = end;
	CHECKF(kube_send(s.client, &request, &call, &err) == 0, "%s", err.text);
	CHECK(!end->done);
	return call;
}

static struct ended ask(struct kube_request request)
{
	struct ended end = { 0 };
	send_request(request, &end);
	wait_for(&end.done);
	return end;
}

#define GET(where) ((struct kube_request){ .method = "GET", .path = (where) })
#define POST(where) \
	((struct kube_request){ .method = "POST", .path = (where), .body = "{}", .body_len = 2 })
#define FAILURE(why) "{\"kind\":\"Status\",\"reason\":\"" why "\",\"message\":\"because\"}"

TEST(a_request_says_who_we_are_and_gives_the_answer)
{
	setup_with(0, "/k8s/clusters/c-1");
	s.script[0] =
		(struct server_answer){ .code = 201, .body = "{\"metadata\":{\"name\":\"n\"}}" };
	struct ended end = ask((struct kube_request){ .method = "POST",
						      .path = "/api/v1/pods?dryRun=All",
						      .body = "[1]",
						      .body_len = 3 });
	CHECK_INT(end.reason, KUBE_OK);
	CHECK_INT(end.code, 201);
	CHECK_INT(end.tries, 1);
	CHECK_STR(end.name, "n");
	CHECK_STR(end.message, "");
	CHECK_STR(end.bytes, "{\"metadata\":{\"name\":\"n\"}}");
	CHECK_STR(s.method, "POST");
	CHECK_STR(s.path, "/k8s/clusters/c-1/api/v1/pods?dryRun=All");
	CHECK_STR(s.body, "[1]");
	CHECK(strstr(s.head, "\r\nAuthorization: Bearer t1\r\n"));
	CHECK(strstr(s.head, "\r\nImpersonate-User: someone\r\n"));
	CHECK(strstr(s.head, "\r\nAccept: application/json\r\n"));
	CHECK(strstr(s.head, "\r\nContent-Type: application/json\r\n"));
	CHECK(strstr(s.head, "\r\nUser-Agent: gpu-scheduler/"));
	teardown();
}

TEST(only_so_many_are_on_their_way)
{
	setup_with(3, "");
	s.script[0] = (struct server_answer){ .code = 200, .body = "{}", .delay_ms = 2 };
	struct ended ends[20] = { 0 };
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		send_request(GET("/a"), &ends[i]);
	CHECK_INT(kube_in_flight(s.client), 3);
	CHECK_INT(kube_waiting(s.client), 17);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		wait_for(&ends[i].done);
	CHECK_INT(s.server.most_open, 3);
	CHECK_INT(s.server.requests, 20);
	CHECK_INT(kube_in_flight(s.client) + kube_waiting(s.client), 0);
	teardown();
}

TEST(the_urgent_go_first_and_the_background_last)
{
	setup_with(1, "");
	order_of_ends[0] = '\0';
	struct ended ends[5] = { { .order = 'b' },
				 { .order = '1' },
				 { .order = 'c' },
				 { .order = '2' },
				 { .order = 'u' } };
	struct kube_request background = GET("/b"), urgent = GET("/u");
	background.background = true;
	urgent.urgent = true;
	s.script[0] = (struct server_answer){ .code = 200, .body = "{}", .delay_ms = 20 };
	s.script[1] = (struct server_answer){ .code = 200, .body = "{}" };
	send_request(GET("/1"), &ends[1]);
	send_request(background, &ends[0]);
	send_request(GET("/2"), &ends[3]);
	send_request(urgent, &ends[4]);
	CHECK_INT(kube_in_flight(s.client), 2); /* the urgent one has a place of its own */
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (i != 2)
			wait_for(&ends[i].done);
	}
	CHECK_STR(order_of_ends + strlen(order_of_ends) - 2, "2b");
	teardown();
}

TEST(an_eighth_of_the_places_is_for_the_background)
{
	setup_with(16, "");
	struct ended ends[20] = { 0 };
	struct kube_request background = GET("/b");
	background.background = true;
	s.script[0] = (struct server_answer){ .code = 200, .body = "{}", .delay_ms = 1 };
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		send_request(background, &ends[i]);
	CHECK_INT(kube_in_flight(s.client), 2);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		wait_for(&ends[i].done);
	CHECK_INT(s.server.most_open, 2);
	teardown();
}

TEST(an_overloaded_server_is_asked_again_later)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 429, .headers = "Retry-After: 0\r\n" };
	s.script[1] = (struct server_answer){ .code = 503, .headers = "Retry-After: 0\r\n" };
	s.script[2] = (struct server_answer){ .code = 201, .body = "{}" };
	struct ended end = ask(POST("/a"));
	CHECK_INT(end.reason, KUBE_OK);
	CHECK_INT(end.tries, 3);
	CHECK_INT(s.server.requests, 3);
	teardown();
}

TEST(a_write_in_doubt_is_never_sent_again)
{
	static const struct server_answer cases[] = {
		{ .code = 500, .body = FAILURE("InternalError") },
		{ .code = 504, .body = "gateway" },
		{ .how = SERVER_DROP },
		{ .how = SERVER_CUT, .code = 201, .body = "{\"a\":1}" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setup();
		s.script[0] = cases[i];
		struct ended end = ask(POST("/a"));
		CHECKF(end.reason == KUBE_UNKNOWN, "case %zu: %s", i, end.message);
		CHECK_INT(s.server.requests, 1);
		CHECK(end.message[0]);
		teardown();
	}
}

TEST(what_only_reads_is_sent_again)
{
	static const struct server_answer cases[] = {
		{ .code = 500, .body = FAILURE("InternalError") },
		{ .code = 504, .body = "gateway" },
		{ .how = SERVER_DROP },
		{ .how = SERVER_CUT, .code = 200, .body = "{\"a\":1}" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setup();
		s.script[0] = cases[i];
		s.script[1] = (struct server_answer){ .code = 200, .body = "{}" };
		struct kube_request dry = POST("/a?dryRun=All");
		dry.harmless = true;
		struct ended end = ask(i % 2 ? dry : GET("/a"));
		CHECKF(end.reason == KUBE_OK, "case %zu: %s", i, end.message);
		CHECK(end.tries >= 2);
		teardown();
	}
}

TEST(a_refusal_after_a_5xx_leaves_a_write_in_doubt)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 503, .headers = "Retry-After: 0\r\n" };
	s.script[1] = (struct server_answer){ .code = 409, .body = FAILURE("AlreadyExists") };
	struct ended end = ask(POST("/a"));
	CHECK_INT(end.reason, KUBE_UNKNOWN);
	CHECK_INT(end.code, 409);
	teardown();
}

TEST(a_failure_is_told_in_one_sentence)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 403, .body = FAILURE("Forbidden") };
	struct kube_request request = POST("/apis/coordination.k8s.io/v1/leases?x=y");
	struct ended plain = ask(request);
	request.what = "Lease gpu-scheduler-locks/gpus-n1";
	struct ended named = ask(request);
	CHECK_STR(plain.message,
		  "cannot create /apis/coordination.k8s.io/v1/leases: Forbidden: because");
	CHECK_STR(named.message,
		  "cannot create Lease gpu-scheduler-locks/gpus-n1: Forbidden: because");
	CHECK_INT(named.reason, KUBE_FORBIDDEN);
	teardown();
}

TEST(after_a_401_fresh_credentials_are_tried_once)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 401 };
	s.script[1] = (struct server_answer){ .code = 200, .body = "{}" };
	struct kube_request request = POST("/a");
	request.tries = 1;
	struct ended end = ask(request);
	CHECK_INT(end.reason, KUBE_OK);
	CHECK_INT(creds.refusals, 1);
	CHECK_INT(creds.refused, 1);
	CHECK(strstr(s.head, "\r\nAuthorization: Bearer t2\r\n"));
	s.script[1] = (struct server_answer){ .code = 401 };
	end = ask(request);
	CHECK_INT(end.reason, KUBE_UNAUTHORIZED);
	CHECK_INT(s.server.requests, 4);
	teardown();
}

TEST(credentials_are_waited_for)
{
	setup();
	creds.waiting = true;
	struct ended one = { 0 }, two = { 0 };
	send_request(GET("/a"), &one);
	struct kube_call *call = send_request(GET("/b"), &two);
	for (unsigned i = 0; i < 3; i++)
		uv_run(&s.loop, UV_RUN_NOWAIT);
	CHECK_INT(s.server.requests, 0);
	CHECK_INT(kube_in_flight(s.client), 2);
	kube_cancel(call);
	creds_arrive();
	wait_for(&one.done);
	CHECK(one.reason == KUBE_OK && !two.done);
	CHECK_INT(s.server.requests, 1);
	teardown();
}

TEST(without_credentials_nothing_is_sent)
{
	setup();
	creds.failure = "the plugin has failed";
	struct kube_request request = POST("/a");
	request.tries = 2;
	struct ended end = ask(request);
	CHECK_INT(end.reason, KUBE_NO_CREDENTIALS);
	CHECK_STR(end.message, "cannot create /a: NoCredentials: the plugin has failed");
	CHECK_INT(end.tries, 2);
	CHECK_INT(s.server.requests, 0);
	teardown();
}

TEST(nobody_listens)
{
	setup();
	server_unlisten(&s.server);
	uv_run(&s.loop, UV_RUN_NOWAIT);
	struct kube_request request = POST("/a");
	request.tries = 2;
	struct ended end = ask(request);
	CHECK_INT(end.reason, KUBE_UNREACHABLE);
	CHECK_INT(end.tries, 2);
	CHECK_INT(end.code, 0);
	CHECK(strncmp(end.message, "cannot create /a: Unreachable: ", 31) == 0);
	teardown();
}

TEST(new_certificates_mean_new_connections)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 200, .body = "{}", .delay_ms = 30 };
	s.script[1] = (struct server_answer){ .code = 200, .body = "{}" };
	struct ended slow = { 0 };
	send_request(GET("/slow"), &slow);
	while (s.server.requests < 1)
		uv_run(&s.loop, UV_RUN_ONCE);
	creds.tls_generation++;
	CHECK_INT(ask(GET("/next")).reason, KUBE_OK);
	wait_for(&slow.done);
	CHECK_INT(slow.reason, KUBE_OK); /* on the old connection */
	creds.tls_generation++;
	CHECK_INT(ask(GET("/next")).reason, KUBE_OK);
	teardown();
}

TEST(closing_while_connections_retire)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 200, .body = "{}", .delay_ms = 10000 };
	s.script[1] = (struct server_answer){ .code = 200, .body = "{}" };
	struct ended slow = { 0 };
	send_request(GET("/slow"), &slow);
	while (s.server.requests < 1)
		uv_run(&s.loop, UV_RUN_ONCE);
	creds.tls_generation++;
	CHECK_INT(ask(GET("/next")).reason, KUBE_OK);
	teardown();
	CHECK(!slow.done);
}

TEST(a_200_that_is_not_json_is_malformed)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 200, .body = "<html>" };
	struct kube_request raw = GET("/a");
	raw.raw = true;
	struct ended end = ask(GET("/a"));
	CHECK_INT(end.reason, KUBE_MALFORMED);
	CHECK(strncmp(end.message, "cannot get /a: Malformed: reply:1:1: ", 37) == 0);
	end = ask(raw);
	CHECK_INT(end.reason, KUBE_OK);
	CHECK_STR(end.bytes, "<html>");
	s.script[0] = (struct server_answer){ .code = 200, .body = "" };
	CHECK_INT(ask(GET("/a")).reason, KUBE_OK);
	teardown();
}

TEST(a_version_of_the_future_is_not_waited_for)
{
	setup();
	s.script[0] =
		(struct server_answer){ .code = 504,
					.headers = "Retry-After: 1\r\n",
					.body = "{\"kind\":\"Status\",\"reason\":\"Timeout\","
						"\"message\":\"Timeout: Too large "
						"resource version: 9, current: 1\"}" };
	struct ended end = ask(GET("/a"));
	CHECK_INT(end.reason, KUBE_VERSION_TOO_LARGE);
	CHECK_INT(s.server.requests, 1);
	teardown();
}

TEST(all_tries_together_have_an_end)
{
	setup_with(1, "");
	s.script[0] = (struct server_answer){ .code = 500 };
	struct kube_request request = GET("/a");
	request.tries = UINT32_MAX;
	request.within_ms = 250;
	struct ended end = ask(request);
	CHECK_INT(end.reason, KUBE_SERVER_ERROR);
	CHECK_INT(end.tries, s.server.requests);

	/* also while it waits for a place, and while it is on its way */
	s.script[0] = (struct server_answer){ .how = SERVER_OPEN };
	struct ended first = { 0 }, second = { 0 };
	request.within_ms = 60;
	send_request(request, &first);
	request.within_ms = 20;
	send_request(request, &second);
	wait_for(&second.done);
	CHECK(!first.done);
	CHECK_INT(second.reason, KUBE_UNREACHABLE);
	wait_for(&first.done);
	CHECK_INT(first.reason, KUBE_SERVER_ERROR);
	teardown();
}

TEST(warnings_are_logged_once)
{
	setup();
	s.script[0] = (struct server_answer){
		.code = 200,
		.body = "{}",
		.headers = "Warning: 299 - \"old\"\r\nWarning: 299 - \"x\"\r\n"
	};
	ask(GET("/a"));
	ask(GET("/a"));
	char text[4096] = "";
	CHECK(pread(s.log_fd, text, sizeof(text) - 1, 0) > 0);
	const char *first = strstr(text, "old");
	CHECK(first && !strstr(first + 1, "old") && strstr(text, "\\\"x\\\""));
	teardown();
}

static unsigned count_said(const char *words)
{
	char text[16384] = "";
	unsigned count = 0;
	CHECK(pread(s.log_fd, text, sizeof(text) - 1, 0) >= 0);
	for (const char *at = text; (at = strstr(at, words)); at++)
		count++;
	return count;
}

TEST(a_server_that_is_not_there_is_told_of_once)
{
	setup();
	const char *there = s.config.server;
	s.config.server = "http://127.0.0.1:1";
	struct kube_request request = GET("/a");
	request.tries = 2;
	for (unsigned i = 0; i < 5; i++)
		CHECK_INT(ask(request).reason, KUBE_UNREACHABLE);
	CHECK_INT(count_said("level=warn"), 1);
	CHECK_INT(count_said("server=http://127.0.0.1:1 account=none why="), 1);
	CHECK_INT(count_said("serves us again"), 0);
	CHECK(kube_is_unreached(s.client));
	s.config.server = there;
	ask(GET("/a"));
	ask(GET("/a"));
	CHECK_INT(count_said("serves us again"), 1);
	CHECK(!kube_is_unreached(s.client));
	s.config.server = "http://127.0.0.1:1";
	ask(request);
	CHECK_INT(count_said("level=warn"), 2);
	teardown();
}

TEST(a_server_that_does_not_know_us_is_told_of_once)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 401, .body = FAILURE("Unauthorized") };
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(ask(GET("/a")).reason, KUBE_UNAUTHORIZED);
	CHECK_INT(count_said("level=warn"), 1);
	CHECK_INT(count_said("refuses our credentials"), 1);
	CHECK(kube_is_unreached(s.client));
	s.script[0] = (struct server_answer){ .code = 403, .body = FAILURE("Forbidden") };
	CHECK_INT(ask(GET("/a")).reason, KUBE_FORBIDDEN);
	CHECK(!kube_is_unreached(s.client));
	teardown();
}

TEST(every_try_is_counted)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 500 };
	s.script[1] = (struct server_answer){ .code = 200, .body = "{}" };
	struct kube_request request = GET("/a");
	request.resource = "pods";
	ask(request);
	struct metric *requests = metrics_find(s.metrics, "gpu_scheduler_kube_requests_total");
	struct metric *duration =
		metrics_find(s.metrics, "gpu_scheduler_kube_request_duration_seconds");
	struct metric *retries = metrics_find(s.metrics, "gpu_scheduler_kube_retries_total");
	CHECK(metric_value(requests, METRIC_LABELS("get", "pods", "500")) == 1);
	CHECK(metric_value(requests, METRIC_LABELS("get", "pods", "200")) == 1);
	CHECK(metric_value(duration, METRIC_LABELS("get")) == 2);
	CHECK(metric_value(retries, METRIC_LABELS("get", "500")) == 1);
	teardown();
}

TEST(paths_are_checked)
{
	setup();
	struct kube_request request = GET("api");
	struct ended end = { 0 };
	struct err err = ERR_INIT;
	request.done = ended;
	request.context = &end;
	CHECK_INT(kube_send(s.client, &request, NULL, &err), -EINVAL);
	request.path = "/a b";
	CHECK_INT(kube_send(s.client, &request, NULL, &err), -EINVAL);
	request.path = "/a\r\nX: y";
	CHECK_INT(kube_send(s.client, &request, NULL, &err), -EINVAL);
	CHECK(err.text[0]);
	teardown();
}

/* A call in each of its states, to be cancelled or closed there. */
enum where { QUEUED, ASKING, FLYING, PAUSED, FAILED, WHERES };

static struct kube_call *bring(enum where where, struct ended *end, struct ended *other)
{
	setup_with(1, "");
	struct kube_call *call;
	s.script[0] = (struct server_answer){ .code = 200, .delay_ms = 100000 };
	if (where == PAUSED)
		s.script[0] =
			(struct server_answer){ .code = 429, .headers = "Retry-After: 50\r\n" };
	if (where == QUEUED)
		send_request(GET("/other"), other);
	creds.waiting = where == ASKING;
	creds.failure = where == FAILED ? "no" : NULL;
	call = send_request(GET("/a"), end);
	while (where == FLYING && s.server.requests == 0)
		uv_run(&s.loop, UV_RUN_ONCE);
	while (where == PAUSED && kube_waiting(s.client) == 0)
		uv_run(&s.loop, UV_RUN_ONCE);
	return call;
}

TEST(a_call_can_be_cancelled_at_any_point)
{
	for (unsigned where = 0; where < WHERES; where++) {
		struct ended end = { 0 }, other = { 0 };
		kube_cancel(bring((enum where)where, &end, &other));
		CHECK_INT(kube_waiting(s.client), 0);
		CHECK_INT(kube_in_flight(s.client), where == QUEUED ? 1 : 0);
		teardown();
		CHECK(!end.done && !other.done);
	}
}

TEST(a_client_can_be_closed_at_any_point)
{
	for (unsigned where = 0; where < WHERES; where++) {
		struct ended end = { 0 }, other = { 0 };
		bring((enum where)where, &end, &other);
		teardown();
		CHECK(!end.done && !other.done);
	}
}

static void close_in_done(void *context, const struct kube_reply *reply)
{
	CHECK_INT(reply->reason, KUBE_OK);
	kube_client_close(s.client, client_closed, &s.closed);
	s.client = NULL;
	*(bool *)context = true;
}

TEST(a_client_can_be_closed_by_who_got_an_answer)
{
	setup_with(1, "");
	bool done = false;
	struct ended waiting = { 0 };
	struct kube_request request = GET("/a");
	request.done = close_in_done;
	request.context = &done;
	CHECK_INT(kube_send(s.client, &request, NULL, NULL), 0);
	send_request(GET("/b"), &waiting);
	wait_for(&done);
	teardown();
	CHECK(!waiting.done);
}

static struct ended second_end;

static void send_in_done(void *context, const struct kube_reply *reply)
{
	CHECK_INT(reply->reason, KUBE_OK);
	(void)context;
	send_request(GET("/2"), &second_end);
}

TEST(who_got_an_answer_may_send_again)
{
	setup_with(1, "");
	second_end = (struct ended){ 0 };
	struct kube_request request = GET("/1");
	request.done = send_in_done;
	CHECK_INT(kube_send(s.client, &request, NULL, NULL), 0);
	wait_for(&second_end.done);
	CHECK_STR(s.order, "12");
	teardown();
}

/* Streams. */
struct watched {
	struct ended end;
	char text[256];
	size_t stop_at; /* 0: never */
	struct kube_call *cancel;
};

static int take(void *context, const char *bytes, size_t len)
{
	struct watched *watched = context;
	strncat(watched->text, bytes, len);
	if (watched->cancel)
		kube_cancel(watched->cancel);
	return watched->stop_at && strlen(watched->text) >= watched->stop_at;
}

static void watch_ended(void *context, const struct kube_reply *reply)
{
	ended(&((struct watched *)context)->end, reply);
}

static struct kube_call *watch(struct watched *watched, uint32_t idle_ms)
{
	struct kube_call *call = NULL;
	struct kube_stream stream = { .path = "/api/v1/pods?watch=1",
				      .resource = "pods",
				      .idle_ms = idle_ms,
				      .data = take,
				      .done = watch_ended,
				      .context = watched };
	CHECK_INT(kube_stream(s.client, &stream, &call, NULL), 0);
	return call;
}

TEST(a_stream_is_handed_on_as_it_comes)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 200,
					      .how = SERVER_CHUNKED,
					      .body = "{\"type\":\"ADDED\"}\n{\"type\":\"X\"}\n" };
	struct watched watched = { .text = "" };
	watch(&watched, 0);
	wait_for(&watched.end.done);
	CHECK_INT(watched.end.reason, KUBE_OK);
	CHECK_INT(watched.end.code, 200);
	CHECK_STR(watched.text, s.script[0].body);
	CHECK(metric_value(metrics_find(s.metrics, "gpu_scheduler_kube_requests_total"),
			   METRIC_LABELS("watch", "pods", "200")) == 1);
	teardown();
}

TEST(a_stream_ends_for_many_reasons)
{
	static const struct {
		struct server_answer answer;
		enum kube_reason reason;
		size_t stop_at;
	} cases[] = {
		{ { .code = 410, .body = FAILURE("Expired") }, KUBE_EXPIRED, 0 },
		{ { .code = 401 }, KUBE_UNAUTHORIZED, 0 },
		{ { .code = 429, .headers = "Retry-After: 1\r\n" }, KUBE_TOO_MANY_REQUESTS, 0 },
		{ { .code = 500 }, KUBE_SERVER_ERROR, 0 },
		{ { .how = SERVER_DROP }, KUBE_SERVER_ERROR, 0 },
		{ { .how = SERVER_CUT, .code = 200, .body = "{}\n{}\n" }, KUBE_SERVER_ERROR, 0 },
		{ { .how = SERVER_OPEN, .code = 200, .body = "{}\n" }, KUBE_SERVER_ERROR, 0 },
		{ { .how = SERVER_OPEN, .code = 200, .body = "{}\n" }, KUBE_MALFORMED, 2 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setup();
		s.script[0] = cases[i].answer;
		struct watched watched = { .stop_at = cases[i].stop_at };
		watch(&watched, 100);
		wait_for(&watched.end.done);
		CHECKF(watched.end.reason == cases[i].reason, "case %zu: %s", i,
		       watched.end.message);
		CHECK(watched.end.message[0]);
		CHECK_INT(creds.refusals, cases[i].answer.code == 401);
		CHECK_INT(s.server.requests, 1);
		teardown();
	}
}

TEST(a_stream_takes_no_place)
{
	setup_with(1, "");
	s.script[0] = (struct server_answer){ .code = 200, .how = SERVER_OPEN, .body = "{}\n" };
	s.script[1] = (struct server_answer){ .code = 200, .body = "{}" };
	struct watched watched = { .text = "" };
	struct kube_call *call = watch(&watched, 0);
	while (!watched.text[0])
		uv_run(&s.loop, UV_RUN_ONCE);
	CHECK_INT(kube_in_flight(s.client), 0);
	CHECK_INT(ask(GET("/a")).reason, KUBE_OK);
	kube_cancel(call);
	teardown();
	CHECK(!watched.end.done);
}

TEST(a_stream_can_be_cancelled_by_its_reader)
{
	setup();
	s.script[0] = (struct server_answer){ .code = 200, .how = SERVER_OPEN, .body = "{}" };
	struct watched watched = { .text = "" };
	watched.cancel = watch(&watched, 0);
	while (!watched.text[0])
		uv_run(&s.loop, UV_RUN_ONCE);
	for (unsigned i = 0; i < 3; i++)
		uv_run(&s.loop, UV_RUN_NOWAIT);
	CHECK(!watched.end.done);
	teardown();
}

TEST_MAIN()
