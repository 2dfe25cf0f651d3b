/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, their bodies, their answers, and the life of the server. */
#include "test.h"
#include "unit/httpd_stand.h"

#include "base/attr.h"

#include <dirent.h>
#include <pthread.h>

TEST(a_request_is_answered)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	struct caller *caller = stand_call(&stand, HELLO);
	CHECK_INT(caller_read(caller), 200);
	CHECK_STR(caller->body, "hello");
	CHECK(strstr(caller->head, "Content-Type: text/plain\r\n"));
	CHECK_INT(httpd_connections(stand.httpd), 1);
	stand_settle(&stand);
	caller_free(caller);
	while (httpd_connections(stand.httpd))
		stand_turn(&stand);
	stand_close(&stand);
}

TEST(what_was_asked_comes_as_it_was_sent)
{
	static const struct {
		const char *text, *answer;
	} rows[] = {
		{ "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", "GET /echo ? [] 0\n" },
		{ "GET /echo? HTTP/1.1\r\nHost: x\r\n\r\n", "GET /echo ? [] 0\n" },
		{ "GET /echo/%41%2f?a=%20&b HTTP/1.1\r\nHost: x\r\n\r\n",
		  "GET /echo/%41%2f ?a=%20&b [] 0\n" },
		{ "PATCH /echo?a?b HTTP/1.1\r\nHost: x\r\ncontent-type: a/b; c=d\r\n"
		  "content-length: 3\r\n\r\nxyz",
		  "PATCH /echo ?a?b [a/b; c=d] 3\nxyz" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		  "POST /echo ? [] 0\n" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\n\r\n", "POST /echo ? [] 0\n" },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
		  "POST /echo ? [] 5\nabcde" },
	};
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct caller *caller = stand_call(&stand, rows[i].text);
		int status = caller_read(caller);
		CHECKF(status == 200, "row %zu: %d %s", i, status, caller->body);
		CHECK_STR(caller->body, rows[i].answer);
		caller_free(caller);
	}
	stand_close(&stand);
}

TEST(a_request_may_come_byte_by_byte)
{
	static const char *const rows[] = {
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
		"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
	};
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
		struct caller *caller = caller_new(&stand);
		for (const char *byte = rows[row]; *byte; byte++) {
			CHECK(caller_send(caller, byte, 1));
			stand_turn(&stand);
		}
		CHECK_INT(caller_read(caller), 200);
		CHECK_STR(caller->body, "POST /echo ? [] 5\nhello");
		caller_free(caller);
	}
	stand_close(&stand);
}

TEST(requests_on_one_connection_are_answered_in_their_order)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	struct caller *caller = caller_new(&stand);
	for (int i = 0; i < 50; i++) {
		char text[128], expected[64];
		snprintf(text, sizeof(text),
			 "POST /echo/%d HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab", i);
		CHECK(caller_say(caller, text));
		if (i % 2 == 0)
			continue;
		for (int k = i - 1; k <= i; k++) {
			CHECK_INT(caller_read(caller), 200);
			snprintf(expected, sizeof(expected), "POST /echo/%d ? [] 2\nab", k);
			CHECK_STR(caller->body, expected);
		}
	}
	CHECK_INT(httpd_connections(stand.httpd), 1);
	CHECK_INT(stand.handled, 50);
	caller_free(caller);
	stand_close(&stand);
}

static bool serve_fields(struct stand *stand, const struct httpd_request *request,
			 struct httpd_reply *reply)
{
	const char *accept = httpd_request_header(request, "accept");

	(void)stand;
	CHECK(!httpd_request_header(request, "X-Missing"));
	CHECK_STR(accept, "a/b");
	reply->status = 405;
	reply->fields[reply->fields_count++] = (struct httpd_field){ "Allow", "GET" };
	reply->fields[reply->fields_count++] = (struct httpd_field){ "Retry-After", "7" };
	return true;
}

TEST(headers_go_both_ways)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	stand.serve = serve_fields;
	struct caller *caller =
		stand_call(&stand, "POST / HTTP/1.1\r\nHost: x\r\nAccept: a/b\r\n\r\n");
	CHECK_INT(caller_read(caller), 405);
	CHECK(strstr(caller->head, "\r\nAllow: GET\r\n"));
	CHECK(strstr(caller->head, "\r\nRetry-After: 7\r\n"));
	caller_free(caller);
	stand_close(&stand);
}

TEST(the_body_of_a_head_stays_here)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	struct caller *caller = stand_call(&stand, "HEAD /hello HTTP/1.1\r\nHost: x\r\n"
						   "Connection: close\r\n\r\n");
	caller_wait_end(caller);
	CHECK(strncmp(caller->in.s, "HTTP/1.1 200 ", 13) == 0);
	CHECK(strstr(caller->in.s, "Content-Length: 5\r\n"));
	CHECK(strstr(caller->in.s, "\r\n\r\n") == caller->in.s + caller->in.len - 4);
	caller_free(caller);
	stand_close(&stand);
}

TEST(a_handler_that_fails_is_an_error_of_the_server)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	CHECK_INT(stand_ask(&stand, "GET /failed HTTP/1.1\r\nHost: x\r\n\r\n"), 500);
	CHECK_INT(stand_ask(&stand, "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"), 500);
	CHECK_INT(stand_ask(&stand, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
	stand_close(&stand);
}

TEST(a_large_answer_arrives_whole)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	struct caller *caller = stand_call(&stand, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
	CHECK_INT(caller_read(caller), 200);
	CHECK_INT(caller->body_len, BIG_LEN);
	CHECK_INT(strspn(caller->body, "b"), BIG_LEN);
	caller_free(caller);
	stand_close(&stand);
}

/* ---- answers that come later ---- */

static void answer(struct stand *stand, size_t which, const char *text)
{
	struct httpd_reply reply = HTTPD_REPLY_INIT;

	reply.status = 202;
	reply.content_type = "text/plain";
	strbuf_puts(&reply.body, text);
	httpd_answer(stand->held[which], &reply);
	strbuf_done(&reply.body);
}

#define LATER "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"

TEST(an_answer_may_come_later_and_in_any_order)
{
	struct stand stand;
	struct caller *callers[8];

	stand_open(&stand, &(struct httpd_options){ .request_ms = 50, .idle_ms = 50 });
	for (size_t i = 0; i < 8; i++) {
		callers[i] = stand_call(&stand, LATER);
		while (stand.held_count == i)
			stand_turn(&stand);
	}
	stand_pass(&stand, 200); /* the time is ours, not theirs */
	CHECK_INT(httpd_in_flight(stand.httpd), 8);
	for (size_t i = 8; i-- > 0;) {
		char text[32];
		snprintf(text, sizeof(text), "answer %zu", i);
		answer(&stand, i, text);
		CHECK_INT(caller_read(callers[i]), 202);
		CHECK_STR(callers[i]->body, text);
		caller_free(callers[i]);
	}
	stand_settle(&stand);
	stand_close(&stand);
}

static bool serve_at_once(struct stand *stand, const struct httpd_request *request,
			  struct httpd_reply *reply)
{
	(void)reply;
	stand->held[0] = httpd_suspend(request);
	answer(stand, 0, "at once");
	return true;
}

TEST(later_may_be_at_once)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	stand.serve = serve_at_once;
	struct caller *caller = stand_call(&stand, LATER LATER);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(caller_read(caller), 202);
		CHECK_STR(caller->body, "at once");
	}
	caller_free(caller);
	stand_close(&stand);
}

TEST(a_client_that_has_left_is_answered_into_nothing)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	struct caller *caller = stand_call(&stand, LATER);
	while (!stand.held_count)
		stand_turn(&stand);
	caller_free(caller);
	stand_pass(&stand, 20);
	answer(&stand, 0, "who is there");
	while (httpd_connections(stand.httpd))
		stand_turn(&stand);
	stand_settle(&stand);
	stand_still_serves(&stand);
	stand_close(&stand);
}

/* ---- the end ---- */

TEST(what_is_in_flight_is_answered_before_the_end)
{
	struct stand stand;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

	stand_open(&stand, &(struct httpd_options){ 0 });
	struct caller *waits = stand_call(&stand, LATER);
	struct caller *idle = stand_call(&stand, HELLO);
	CHECK_INT(caller_read(idle), 200);
	while (!stand.held_count)
		stand_turn(&stand);
	to.sin_port = htons((uint16_t)httpd_port(stand.httpd));
	httpd_close(stand.httpd, 20000, stand_closed, &stand);
	stand_pass(&stand, 20);
	CHECK_INT(stand.closed, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno == ECONNREFUSED);
	close(fd);
	/* who is connected may still ask, once */
	CHECK(caller_say(idle, HELLO));
	CHECK_INT(caller_read(idle), 200);
	CHECK(strcasestr(idle->head, "\r\nConnection: close\r\n"));
	caller_wait_end(idle);
	CHECK_INT(stand.closed, 0);
	answer(&stand, 0, "the last");
	CHECK_INT(caller_read(waits), 202);
	CHECK_STR(waits->body, "the last");
	caller_wait_end(waits);
	CHECK_INT(stand.closed, 1);
	caller_free(waits);
	caller_free(idle);
	stand_close(&stand);
}

TEST(a_server_that_retires_closes_each_connection_with_an_answer)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	struct caller *caller = stand_call(&stand, HELLO);
	CHECK_INT(caller_read(caller), 200);
	httpd_retire(stand.httpd);
	CHECK(caller_say(caller, HELLO));
	CHECK_INT(caller_read(caller), 200);
	CHECK(strcasestr(caller->head, "\r\nConnection: close\r\n"));
	caller_wait_end(caller);
	caller_free(caller);
	stand_still_serves(&stand); /* on a new one */
	stand_close(&stand);
}

TEST(the_wait_for_the_last_answers_has_an_end)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	struct caller *waits = stand_call(&stand, LATER);
	struct caller *asks = stand_call(&stand, "POST /echo HTTP/1.1\r\nHost: x\r\n"
						 "Content-Length: 9\r\n\r\nhalf");
	while (httpd_in_flight(stand.httpd) < 2)
		stand_turn(&stand);
	httpd_close(stand.httpd, 10, stand_closed, &stand);
	CHECK_INT(stand.closed, 0);
	while (!stand.closed)
		stand_turn(&stand);
	CHECK_INT(caller_read(waits), 503);
	CHECK_INT(caller_read(asks), 0);
	answer(&stand, 0, "nobody hears it, but it has to be said");
	caller_free(waits);
	caller_free(asks);
	stand_close(&stand);
}

static bool serve_end(struct stand *stand, const struct httpd_request *request,
		      struct httpd_reply *reply)
{
	(void)request;
	httpd_close(stand->httpd, 10000, stand_closed, stand);
	strbuf_puts(&reply->body, "goodbye");
	return true;
}

TEST(a_request_may_end_the_server)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	stand.serve = serve_end;
	struct caller *caller = stand_call(&stand, HELLO);
	CHECK_INT(caller_read(caller), 200);
	CHECK_STR(caller->body, "goodbye");
	caller_wait_end(caller);
	caller_free(caller);
	while (!stand.closed)
		stand_turn(&stand);
	stand_close(&stand);
}

static unsigned descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	CHECK(folder != NULL);
	/* cppcheck-suppress readdirCalled; one thread has the folder */
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

TEST(nothing_stays_open)
{
	unsigned before = descriptors();

	for (int i = 0; i < 3; i++) {
		struct stand stand;
		stand_open(&stand, &(struct httpd_options){ 0 });
		struct caller *caller = stand_call(&stand, HELLO);
		CHECK_INT(caller_read(caller), 200);
		stand_close(&stand);
		caller_free(caller);
	}
	CHECK_INT(descriptors(), before);
	httpd_close(NULL, 0, NULL, NULL);
}

/* ---- addresses ---- */

static void ignore(void *context, const struct httpd_request *request, struct httpd_reply *reply)
{
	(void)context, (void)request, (void)reply;
}

TEST(an_address_is_a_host_and_a_port)
{
	static const struct {
		const char *addr;
		int code;
	} rows[] = {
		{ ":0", 0 },
		{ "127.0.0.1:0", 0 },
		{ "localhost:0", 0 },
		{ "0.0.0.0:0", 0 },
		{ "", -EINVAL },
		{ ":", -EINVAL },
		{ "8080", -EINVAL },
		{ "127.0.0.1", -EINVAL },
		{ "127.0.0.1:", -EINVAL },
		{ ":65536", -EINVAL },
		{ ":-1", -EINVAL },
		{ ":http", -EINVAL },
		{ "::1:80", -EINVAL },
		{ "[]:80", -EINVAL },
		{ "[::1:80", -EINVAL },
		{ "256.1.1.1:0", -EINVAL },
		{ "192.0.2.1:0", -EADDRNOTAVAIL },
	};
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct httpd_options options = { .addr = rows[i].addr, .handler = ignore };
		struct httpd *httpd = NULL;
		struct err err = ERR_INIT;
		int r = httpd_new(&stand.loop, &options, &httpd, &err);
		CHECKF(r == rows[i].code, "%s: %d %s", rows[i].addr, r, err.text);
		CHECKF(r == 0 || strstr(err.text, rows[i].addr), "%s", err.text);
		if (r == 0)
			CHECK(httpd_port(httpd) > 0);
		httpd_close(httpd, 0, NULL, NULL);
	}
	stand_close(&stand);
}

TEST(an_address_belongs_to_one)
{
	struct stand stand;
	struct httpd *other = NULL;
	struct err err = ERR_INIT;
	char addr[32];

	stand_open(&stand, &(struct httpd_options){ 0 });
	snprintf(addr, sizeof(addr), "127.0.0.1:%d", httpd_port(stand.httpd));
	struct httpd_options options = { .addr = addr, .handler = ignore };
	CHECK_INT(httpd_new(&stand.loop, &options, &other, &err), -EADDRINUSE);
	CHECK(strstr(err.text, addr));
	CHECK(!other);
	stand_close(&stand);
}

TEST(without_a_host_both_families_are_heard)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .addr = ":0" });
	stand_still_serves(&stand);
	to.sin6_port = htons((uint16_t)httpd_port(stand.httpd));
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ||
			(errno != EADDRNOTAVAIL && errno != ENETUNREACH))) {
		struct caller caller = { .stand = &stand, .fd = fd, .in = STRBUF_INIT };
		CHECK(caller_say(&caller, HELLO));
		CHECK_INT(caller_read(&caller), 200);
		strbuf_done(&caller.in);
		free(caller.body);
	}
	if (fd >= 0)
		close(fd);
	stand_close(&stand);
}

/* ---- clients on other threads ---- */

#define THREADS	 4
#define REQUESTS 200

struct thread_plan {
	int port;
	int answered;
};

static void *ask_again_and_again(void *context)
{
	static const char wanted[] = "HTTP/1.1 200 OK\r\n";
	struct thread_plan *plan = context;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)plan->port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	char text[1024] = "";

	for (int i = 0; i < REQUESTS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		size_t len = 0;
		ssize_t n = connect(fd, (struct sockaddr *)&to, sizeof(to));
		if (n == 0)
			n = send(fd, HELLO, strlen(HELLO), MSG_NOSIGNAL);
		while (n > 0 && (len < 5 || memcmp(text + len - 5, "hello", 5) != 0)) {
			n = recv(fd, text + len, sizeof(text) - len, 0);
			len += n > 0 ? (size_t)n : 0;
		}
		plan->answered += len > sizeof(wanted) && memcmp(text, wanted, 17) == 0;
		close(fd);
	}
	return NULL;
}

TEST(many_clients_at_once_are_all_answered)
{
	struct thread_plan plans[THREADS];
	pthread_t threads[THREADS];
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	for (int i = 0; i < THREADS; i++) {
		plans[i] = (struct thread_plan){ .port = httpd_port(stand.httpd) };
		CHECK_INT(pthread_create(&threads[i], NULL, ask_again_and_again, &plans[i]), 0);
	}
	while (stand.handled < THREADS * REQUESTS || httpd_connections(stand.httpd))
		uv_run(&stand.loop, UV_RUN_ONCE);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK_INT(plans[i].answered, REQUESTS);
	}
	stand_settle(&stand);
	stand_close(&stand);
}

TEST_MAIN()
