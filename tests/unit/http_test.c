/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent and what comes back: methods, headers, bodies, sharing of connections. */
#include "test.h"
#include "unit/http_stage.h"

#include <time.h>

static const struct stage_plan ways[] = {
	{ .tls = false },
	{ .tls = true },
	{ .tls = true, .http2 = true },
	{ .tls = true, .http2 = true, .http1_client = true },
};
static const uint32_t versions[] = { 1, 1, 2, 1 };

TEST(a_reply_comes_whole_over_every_protocol)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct stage stage;
		stage_open(&stage, &ways[i]);
		struct answer *answer = stage_get(&stage, "/hello");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		CHECK_INT(answer->status, 200);
		CHECK_STR(answer->body, "hello");
		CHECK_INT(answer->len, 5);
		CHECK_STR(answer->content_type, "text/plain");
		CHECK_STR(answer->reason, "");
		CHECK_INT(answer->retry_after_s, -1);
		CHECK_INT(answer->bytes_in, 5);
		CHECKF(answer->http_major == versions[i], "way %zu", i);
		stage_close(&stage);
	}
}

TEST(every_method_reaches_the_server_with_its_body)
{
	static const struct {
		const char *method, *body, *seen;
	} rows[] = {
		{ "GET", NULL, "GET /echo?a=b%20c\n" },
		{ "POST", "{}", "POST /echo?a=b%20c\n{}" },
		{ "POST", NULL, "POST /echo?a=b%20c\n" },
		{ "PUT", "text", "PUT /echo?a=b%20c\ntext" },
		{ "PATCH", "[]", "PATCH /echo?a=b%20c\n[]" },
		{ "DELETE", NULL, "DELETE /echo?a=b%20c\n" },
		{ "DELETE", "{\"kind\":1}", "DELETE /echo?a=b%20c\n{\"kind\":1}" },
		{ "HEAD", NULL, "" },
		{ "GET", NULL, "GET /echo?a=b%20c\n" },
	};

	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			struct answer *answer = stage_send(
				&stage,
				(struct http_request){
					.method = rows[i].method,
					.url = "/echo?a=b%20c",
					.body = rows[i].body,
					.body_len = rows[i].body ? strlen(rows[i].body) : 0 },
				false);
			stage_wait(&stage, answer);
			CHECKF(answer->result == HTTP_ANSWERED, "way %zu, row %zu: %s", way, i,
			       answer->reason);
			CHECK_STR(answer->body, rows[i].seen);
		}
		CHECK_INT(stage_accepted(&stage), 1);
		stage_close(&stage);
	}
}

static void serve_headers(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 200, NULL, request->headers, strlen(request->headers));
}

TEST(headers_arrive_as_given_and_no_others_of_note)
{
	static const char *const headers[] = { "Authorization: Bearer t", "X-Empty:", "x-twice: 1",
					       "x-twice: 2" };
	struct http_options options = { .user_agent = "gpu-scheduler/1" };

	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage_plan plan = ways[way];
		struct stage stage;
		plan.options = &options;
		stage_open(&stage, &plan);
		stage.serve = serve_headers;
		struct answer *answer =
			stage_send(&stage,
				   (struct http_request){ .method = "POST",
							  .url = "/",
							  .headers = headers,
							  .headers_count = ARRAY_SIZE(headers),
							  .body = "x",
							  .body_len = 1 },
				   false);
		stage_wait(&stage, answer);
		CHECK(strstr(answer->body, "\nauthorization: Bearer t\n"));
		CHECK(strstr(answer->body, "\nx-empty:"));
		CHECK(strstr(answer->body, "\nx-twice: 1\n"));
		CHECK(strstr(answer->body, "\nx-twice: 2\n"));
		CHECK(strstr(answer->body, "\nuser-agent: gpu-scheduler/1\n"));
		CHECK(!strstr(answer->body, "content-type"));
		CHECK(!strstr(answer->body, "accept-encoding"));
		CHECK(!strstr(answer->body, "expect"));
		stage_close(&stage);
	}
}

TEST(what_could_smuggle_a_header_is_refused)
{
	static const struct {
		const char *method, *url, *header;
	} rows[] = {
		{ "GET", "https://h/\r\nX: 1", "A: b" },
		{ "GET", "https://h/ x", "A: b" },
		{ "GET", "https://h/\tx", "A: b" },
		{ "GET", "ftp://h/", "A: b" },
		{ "GET", "file:///etc/passwd", "A: b" },
		{ "GET", "/relative", "A: b" },
		{ "GET", "", "A: b" },
		{ "GET", "https://", "A: b" },
		{ "GET", "https://user:word@h/", "A: b" },
		{ "GET", "https://h:99999/", "A: b" },
		{ "GET\r\nX:", "https://h/", "A: b" },
		{ "", "https://h/", "A: b" },
		{ "GET /", "https://h/", "A: b" },
		{ "ANMETHODTHATISFARTOOLONG", "https://h/", "A: b" },
		{ "GET", "https://h/", "A: b\r\nX: 1" },
		{ "GET", "https://h/", "A: b\n" },
		{ "GET", "https://h/", "A: b\x01" },
		{ "GET", "https://h/", "A" },
		{ "GET", "https://h/", ": b" },
		{ "GET", "https://h/", "A B: c" },
		{ "GET", "https://h/", "A\r: c" },
	};
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .tls = true });
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct http_request request = { .method = rows[i].method,
						.url = rows[i].url,
						.headers = &rows[i].header,
						.headers_count = 1,
						.done = stage_done };
		struct err err = ERR_INIT;
		struct http_call *call = NULL;
		CHECKF(http_start(stage.http, &request, &call, &err) == -EINVAL, "row %zu", i);
		CHECKF(err.text[0] && !call, "row %zu", i);
	}
	CHECK_INT(http_in_flight(stage.http), 0);
	stage_close(&stage);
}

TEST(options_that_cannot_work_are_refused)
{
	static const struct http_options rows[] = {
		{ .ca_file = "/nowhere/ca.pem" },
		{ .cert_file = "/nowhere/cert.pem", .key_file = "/dev/null" },
		{ .cert_file = "/dev/null", .key_file = "/nowhere/key.pem" },
		{ .cert_file = "/dev/null" },
		{ .key_file = "/dev/null" },
		{ .proxy_url = "ftp://proxy:1" },
		{ .proxy_url = "proxy" },
		{ .proxy_url = "http://" },
		{ .proxy_url = "" },
	};
	uv_loop_t loop;

	uv_loop_init(&loop);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err = ERR_INIT;
		struct http *http = NULL;
		CHECKF(http_new(&loop, &rows[i], &http, &err) == -EINVAL, "row %zu", i);
		CHECKF(!http && err.text[0], "row %zu", i);
	}
	CHECK_INT(uv_loop_close(&loop), 0);
}

TEST(many_at_once_share_one_connection_of_http2)
{
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .tls = true, .http2 = true });
	for (int i = 0; i < 64; i++)
		stage_get(&stage, "/hello");
	CHECK_INT(http_in_flight(stage.http), 64);
	stage_wait_all(&stage);
	for (size_t i = 0; i < stage.answers_count; i++)
		CHECK_STR(stage.answers[i]->body, "hello");
	CHECK_INT(peer_accepted(stage.peer), 1);
	CHECK_INT(http_connections(stage.http), 1);
	stage_close(&stage);
}

TEST(more_than_the_server_allows_at_once_wait_their_turn)
{
	struct http_options options = { .max_connections = 1 };
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .tls = true,
						 .http2 = true,
						 .options = &options,
						 .peer = { .max_streams = 4 } });
	for (int i = 0; i < 100; i++)
		stage_get(&stage, "/hello");
	stage_wait_all(&stage);
	for (size_t i = 0; i < stage.answers_count; i++)
		CHECK_INT(stage.answers[i]->result, HTTP_ANSWERED);
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

TEST(connections_of_http1_are_bounded_and_used_again)
{
	struct http_options options = { .max_connections = 3 };
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .options = &options });
	for (int i = 0; i < 200; i++)
		stage_get(&stage, "/hello");
	while (http_in_flight(stage.http)) {
		stage_turn(&stage);
		CHECK(http_connections(stage.http) <= 3);
	}
	CHECK_INT(peer_accepted(stage.peer), 3);
	stage_close(&stage);
}

TEST(thousands_of_requests_leave_nothing_behind)
{
	for (size_t way = 0; way < 3; way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage_wait(&stage, stage_get(&stage, "/hello"));
		unsigned before = stage_descriptors();
		for (int i = 0; i < 2000; i++)
			stage_wait(&stage, stage_get(&stage, "/hello"));
		CHECK_INT(stage_descriptors(), before);
		CHECKF(stage_accepted(&stage) == 1, "way %zu", way);
		stage_close(&stage);
	}
}

/* A descriptor that the loop still watched when libcurl closed it would come back as
 * another connection's, or as one of ours. */
TEST(connections_that_come_and_go_do_not_confuse_the_loop)
{
	struct stage stage;
	int pipes[2];

	stage_open(&stage, &(struct stage_plan){ .tls = true });
	stage_wait(&stage, stage_get(&stage, "/close"));
	stage_pass(&stage, 20);
	unsigned before = stage_descriptors();
	for (int i = 0; i < 150; i++) {
		for (int j = 0; j < 8; j++)
			stage_get(&stage, j % 4 == 3 ? "/cut" : "/close");
		stage_wait_all(&stage);
		CHECK(pipe(pipes) == 0);
		stage_get(&stage, "/close");
		stage_wait_all(&stage);
		close(pipes[0]);
		close(pipes[1]);
	}
	for (size_t i = 0; i < stage.answers_count; i++)
		CHECKF(stage.answers[i]->result == HTTP_ANSWERED ||
			       stage.answers[i]->result == HTTP_LOST,
		       "%s", stage.answers[i]->reason);
	stage_pass(&stage, 20);
	CHECK_INT(http_connections(stage.http), 0);
	CHECK_INT(stage_descriptors(), before);
	CHECK(peer_accepted(stage.peer) > 1000);
	stage_close(&stage);
}

TEST(an_idle_connection_that_the_server_closes_is_not_used_again)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		struct answer *last = stage_get(&stage, "/close");
		stage_wait(&stage, last);
		CHECK_INT(last->result, HTTP_ANSWERED);
		stage_pass(&stage, 20);
		struct answer *answer = stage_post(&stage, "/echo", "x");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		CHECK_INT(stage_accepted(&stage), 2);
		CHECK_INT(stage.served, 2);
		stage_close(&stage);
	}
}

TEST(an_idle_connection_stays_no_longer_than_asked)
{
	struct http_options options = { .keep_ms = 1000 };
	struct stage stage;

	stage_open(&stage,
		   &(struct stage_plan){ .tls = true, .http2 = true, .options = &options });
	stage_wait(&stage, stage_get(&stage, "/hello"));
	stage_pass(&stage, 2500);
	stage_wait(&stage, stage_get(&stage, "/hello"));
	CHECK_INT(peer_accepted(stage.peer), 2);
	stage_close(&stage);
}

static void serve_big(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_begin(request, 200, NULL);
	peer_flood(request, strtoul(request->path + 1, NULL, 10));
}

TEST(big_bodies_pass_both_ways)
{
	const size_t size = (size_t)5 << 20;
	char *body = malloc(size);

	memset(body, 'b', size);
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		struct answer *up = stage_send(
			&stage,
			(struct http_request){
				.method = "PUT", .url = "/echo", .body = body, .body_len = size },
			false);
		stage_wait(&stage, up);
		CHECK_INT(up->result, HTTP_ANSWERED);
		CHECK_INT(up->len, size + strlen("PUT /echo\n"));
		CHECK(memcmp(up->body + up->len - size, body, size) == 0);
		stage.serve = serve_big;
		struct answer *down = stage_stream(&stage, "/5242880");
		struct answer *gathered = stage_get(&stage, "/5242880");
		stage_wait_all(&stage);
		CHECK_INT(down->streamed, size);
		CHECK_INT(down->len, 0);
		CHECK_INT(gathered->len, size);
		stage_close(&stage);
	}
	free(body);
}

static void serve_hold(struct stage *stage, struct peer_request *request)
{
	stage->held[stage->held_count++] = request;
}

TEST(what_the_server_writes_is_given_at_once)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage.serve = serve_hold;
		struct answer *answer = stage_stream(&stage, "/watch");
		while (!stage.held_count)
			stage_turn(&stage);
		peer_begin(stage.held[0], 200, "content-type: application/json\n");
		for (size_t i = 1; i <= 5; i++) {
			peer_write(stage.held[0], "event", 5);
			while (answer->streamed < i * 5)
				stage_turn(&stage);
			CHECK_INT(answer->pieces, i);
			CHECK(!answer->done);
		}
		peer_end(stage.held[0]);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		CHECK_STR(answer->content_type, "application/json");
		stage_close(&stage);
	}
}

static void serve_refusal(struct stage *stage, struct peer_request *request)
{
	static const char headers[] = "content-type: application/json\nretry-after: 7\n"
				      "warning: 299 - \"old\"\nwarning: 299 - \"new\"\n";

	(void)stage;
	peer_reply(request, 429, headers, "{\"kind\":\"Status\"}", 17);
}

TEST(an_error_is_gathered_even_if_a_stream_was_asked_for)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage.serve = serve_refusal;
		struct answer *answer = stage_stream(&stage, "/watch");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		CHECK_INT(answer->status, 429);
		CHECK_INT(answer->streamed, 0);
		CHECK_STR(answer->body, "{\"kind\":\"Status\"}");
		CHECK_INT(answer->retry_after_s, 7);
		CHECK_INT(answer->warnings_count, 2);
		CHECK_STR(answer->warning, "299 - \"new\"");
		stage_close(&stage);
	}
}

static const char *said_headers;

static void serve_said(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 503, said_headers, "", 0);
}

TEST(retry_after_is_seconds_or_a_date)
{
	time_t later = time(NULL) + 3600;
	char date[64];
	struct tm parts;
	struct stage stage;

	strftime(date, sizeof(date), "retry-after: %a, %d %b %Y %H:%M:%S GMT\n",
		 gmtime_r(&later, &parts));
	const struct {
		const char *headers;
		int64_t least, most;
	} rows[] = {
		{ "retry-after: 0\n", 0, 0 },
		{ "Retry-After: 120\n", 120, 120 },
		{ "retry-after: soon\n", -1, -1 },
		{ "retry-after: -5\n", -1, -1 },
		{ "retry-after: 99999999999999999999\n", -1, -1 },
		{ "x-retry-after: 3\n", -1, -1 },
		{ "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\n", 0, 0 },
		{ date, 3000, 3600 },
	};
	stage_open(&stage, &(struct stage_plan){ .tls = true });
	stage.serve = serve_said;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		said_headers = rows[i].headers;
		struct answer *answer = stage_get(&stage, "/");
		stage_wait(&stage, answer);
		CHECKF(answer->retry_after_s >= rows[i].least &&
			       answer->retry_after_s <= rows[i].most,
		       "%s", rows[i].headers);
	}
	stage_close(&stage);
}

TEST(no_more_than_eight_warnings_are_kept)
{
	struct strbuf headers CLEANUP(strbuf_done) = STRBUF_INIT;
	struct stage stage;

	for (int i = 0; i < 12; i++)
		strbuf_addf(&headers, "warning: 299 - \"%d\"\n", i);
	said_headers = headers.s;
	stage_open(&stage, &(struct stage_plan){ .tls = true });
	stage.serve = serve_said;
	struct answer *answer = stage_get(&stage, "/");
	stage_wait(&stage, answer);
	CHECK_INT(answer->warnings_count, 8);
	CHECK_STR(answer->warning, "299 - \"7\"");
	said_headers = NULL;
	struct answer *next = stage_get(&stage, "/");
	stage_wait(&stage, next);
	CHECK_INT(next->warnings_count, 0);
	stage_close(&stage);
}

static void serve_redirect(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 302, "location: /hello\n", "moved", 5);
}

TEST(redirects_are_answers)
{
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .tls = true, .http2 = true });
	stage.serve = serve_redirect;
	struct answer *answer = stage_get(&stage, "/");
	stage_wait(&stage, answer);
	CHECK_INT(answer->status, 302);
	CHECK_STR(answer->body, "moved");
	CHECK_INT(stage.served, 1);
	stage_close(&stage);
}

static void serve_interim(struct stage *stage, struct peer_request *request)
{
	static const char interim[] = "HTTP/1.1 103 Hints\r\nRetry-After: 9\r\n\r\n";

	(void)stage;
	peer_raw(request->link, interim, sizeof(interim) - 1);
	peer_reply(request, 200, NULL, "real", 4);
}

TEST(an_interim_reply_is_not_the_reply)
{
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .tls = true });
	stage.serve = serve_interim;
	struct answer *answer = stage_get(&stage, "/");
	stage_wait(&stage, answer);
	CHECK_INT(answer->status, 200);
	CHECK_STR(answer->body, "real");
	CHECK_INT(answer->retry_after_s, -1);
	stage_close(&stage);
}

TEST_MAIN()
