/* SPDX-License-Identifier: Apache-2.0 */
/* What outsiders can make the server hold, wait for and swallow. */
#include "test.h"
#include "unit/httpd_stand.h"

#include "base/attr.h"

#include <sys/resource.h>

#define MAX_BODY 100000

static char *filler(size_t len)
{
	char *text = malloc(len + 1);

	CHECK(text != NULL);
	memset(text, 'f', len);
	text[len] = '\0';
	return text;
}

/* A POST of so many bytes, with their number in front or in chunks; its status. */
static int post(struct stand *stand, size_t len, bool chunked)
{
	struct caller *caller = caller_new(stand);
	char head[256], *body = filler(len);

	if (chunked)
		snprintf(head, sizeof(head),
			 "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
			 "%zx\r\n",
			 len);
	else
		snprintf(head, sizeof(head),
			 "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", len);
	bool sent = caller_say(caller, head) && caller_send(caller, body, len) &&
		    (!chunked || caller_say(caller, "\r\n0\r\n\r\n"));
	int status = sent ? caller_read(caller) : -1;
	free(body);
	caller_free(caller);
	return status;
}

TEST(a_body_has_a_greatest_size)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .max_body = MAX_BODY });
	for (int chunked = 0; chunked < 2; chunked++) {
		CHECK_INT(post(&stand, MAX_BODY, chunked), 200);
		CHECK_INT(post(&stand, MAX_BODY + 1, chunked), 413);
		/* a client that sends on is heard out, so that it sees the answer */
		CHECK_INT(post(&stand, 80 * MAX_BODY, chunked), 413);
	}
	CHECK_INT(stand.handled, 2);
	stand_settle(&stand);
	stand_still_serves(&stand);
	stand_close(&stand);
}

TEST(three_mebibytes_are_the_default)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	CHECK_INT(post(&stand, 3 << 20, false), 200);
	CHECK_INT(post(&stand, (3 << 20) + 1, false), 413);
	stand_close(&stand);
}

TEST(who_announces_too_much_is_refused_at_once)
{
	static const char *const rows[] = {
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551614\r\n\r\n",
		("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n"
		 "Expect: 100-continue\r\n\r\n"),
	};
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .max_body = MAX_BODY });
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct caller *caller = stand_call(&stand, rows[i]);
		CHECK_INT(caller_read(caller), 413);
		caller_wait_end(caller);
		caller_free(caller);
	}
	CHECK_INT(stand.handled, 0);
	stand_close(&stand);
}

TEST(who_asks_before_it_sends_is_told_to_go_on)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .max_body = MAX_BODY });
	struct caller *caller =
		stand_call(&stand, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
				   "Expect: 100-continue\r\n\r\n");
	CHECK_INT(caller_read(caller), 100);
	CHECK(caller_say(caller, "ok"));
	CHECK_INT(caller_read(caller), 200);
	CHECK_STR(caller->body, "POST /echo ? [] 2\nok");
	caller_free(caller);
	stand_close(&stand);
}

TEST(a_client_that_never_stops_is_cut_off)
{
	struct stand stand;
	char *block = filler(0x10000);
	size_t sent = 0;

	stand_open(&stand, &(struct httpd_options){ .max_body = MAX_BODY });
	struct caller *caller = stand_call(&stand, "POST /echo HTTP/1.1\r\nHost: x\r\n"
						   "Transfer-Encoding: chunked\r\n\r\n");
	while (caller_say(caller, "10000\r\n") && caller_send(caller, block, 0x10000) &&
	       caller_say(caller, "\r\n") && sent < (size_t)1 << 30)
		sent += 0x10000;
	CHECK(sent < (size_t)64 << 20);
	caller_wait_end(caller);
	caller_free(caller);
	free(block);
	stand_still_serves(&stand);
	stand_close(&stand);
}

TEST(all_bodies_together_have_a_greatest_size)
{
	static const char head[] =
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
	char *body = filler(MAX_BODY);
	struct caller *callers[4];
	struct stand stand;

	stand_open(&stand,
		   &(struct httpd_options){ .max_body = MAX_BODY, .max_bodies = 3 * MAX_BODY });
	for (size_t i = 0; i < 4; i++) {
		callers[i] = stand_call(&stand, head);
		CHECK(caller_send(callers[i], body, MAX_BODY - 1));
		stand_pass(&stand, 20);
	}
	CHECK(caller_say(callers[3], "f"));
	CHECK_INT(caller_read(callers[3]), 503);
	CHECK(strstr(callers[3]->head, "\r\nRetry-After: 1\r\n"));
	for (size_t i = 0; i < 3; i++) {
		CHECK(caller_say(callers[i], "f"));
		CHECK_INT(caller_read(callers[i]), 200);
	}
	/* what they held is free again */
	for (int i = 0; i < 5; i++)
		CHECK_INT(post(&stand, MAX_BODY, false), 200);
	for (size_t i = 0; i < 4; i++)
		caller_free(callers[i]);
	free(body);
	stand_close(&stand);
}

TEST(headers_have_a_greatest_size)
{
	char *filling = filler(2 * HTTPD_HEAD_MAX);
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ 0 });
	for (int row = 0; row < 2; row++) {
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		strbuf_addf(&text,
			    row ? "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"
				: "GET / HTTP/1.1\r\nHost: x\r\nX-Filler: %s\r\n\r\n",
			    filling);
		struct caller *caller = caller_new(&stand);
		caller_send(caller, text.s, text.len);
		int status = caller_read(caller);
		CHECKF(status == 431 || status == 414 || (status == 0 && caller->ended), "%d",
		       status);
		caller_free(caller);
	}
	CHECK_INT(stand.handled, 0);
	stand_still_serves(&stand);
	free(filling);
	stand_close(&stand);
}

/* ---- what is no HTTP ---- */

/* Status 0: it may as well be closed without a word. */
TEST(garbage_gets_an_answer_or_a_close)
{
	static const struct {
		const char *text;
		size_t len; /* 0: up to the NUL */
		int status;
	} rows[] = {
		{ "GARBAGE\r\n\r\n", 0, 0 },
		{ "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 0, 400 },
		{ "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 0, 400 },
		{ "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\nx", 0, 400 },
		{ "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 0,
		  413 },
		{ "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 0,
		  400 },
		{ "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "fffffffffffffffff\r\n",
		  0, 413 },
		{ "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
		  0, 400 },
		{ "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: "
		  "chunked\r\n\r\n0\r\n\r\n",
		  0, 400 },
		{ "GET / HTTP/1.1\r\n\r\n", 0, 400 },
		{ "\0\0\0\0\r\n\r\n", 8, 0 },
		{ "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n", 14, 0 },
		{ "GET / HTTP/9.9\r\nHost: x\r\n\r\n", 0, 505 },
		{ "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 0, 400 },
	};
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .request_ms = 200 });
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct caller *caller = caller_new(&stand);
		caller_send(caller, rows[i].text,
			    rows[i].len ? rows[i].len : strlen(rows[i].text));
		int status = caller_read(caller);
		CHECKF(status == rows[i].status || (!rows[i].status && status == 400),
		       "row %zu: %d: %s", i, status, caller->in.s);
		caller_free(caller);
	}
	stand_still_serves(&stand);
	CHECK_INT(stand.handled, 1);
	stand_close(&stand);
}

TEST(a_body_that_ends_too_early_is_no_request)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .request_ms = 200 });
	struct caller *caller = stand_call(&stand, "POST /echo HTTP/1.1\r\nHost: x\r\n"
						   "Content-Length: 10\r\n\r\nhalf");
	CHECK_INT(shutdown(caller->fd, SHUT_WR), 0);
	int status = caller_read(caller);
	CHECKF(status == 0 || status == 408 || status == 400, "%d", status);
	caller_wait_end(caller);
	CHECK_INT(stand.handled, 0);
	while (httpd_connections(stand.httpd))
		stand_turn(&stand);
	stand_settle(&stand);
	caller_free(caller);
	stand_close(&stand);
}

/* ---- time ---- */

/* Sends a byte now and then, so that it is never silent, until the server has enough. */
static void drip(struct caller *caller)
{
	for (int i = 0; !caller->ended && i < 10000; i++) {
		send(caller->fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		stand_pass(caller->stand, 10);
		caller_take(caller);
	}
	CHECK(caller->ended);
}

TEST(a_request_that_drips_has_an_end)
{
	static const struct {
		const char *begin;
		bool answered;
	} rows[] = {
		{ "", false },
		{ "GET /", false },
		{ "GET /hello HTTP/1.1\r\nHost: x\r\nX-Y: ", true },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n", true },
		{ "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n", true },
		{ HELLO, false },	  /* was answered; what comes next drips */
		{ HELLO "GET /", false }, /* so does the second */
	};
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .request_ms = 150, .idle_ms = 150 });
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct caller *caller = stand_call(&stand, rows[i].begin);
		if (strncmp(rows[i].begin, HELLO, strlen(HELLO)) == 0)
			CHECK_INT(caller_read(caller), 200);
		drip(caller);
		bool late = strstr(caller->in.s, "HTTP/1.1 408 ") != NULL;
		CHECKF(late == rows[i].answered, "row %zu: %s", i, caller->in.s);
		caller_free(caller);
		uv_timer_again(&stand.hang);
	}
	while (httpd_connections(stand.httpd))
		stand_turn(&stand);
	stand_settle(&stand);
	stand_still_serves(&stand);
	stand_close(&stand);
}

TEST(who_does_not_read_its_answer_is_cut_off)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .request_ms = 100 });
	struct caller *caller = stand_call(&stand, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!stand.handled || httpd_in_flight(stand.httpd))
		stand_turn(&stand);
	CHECK_INT(httpd_connections(stand.httpd), 0);
	caller_free(caller);
	stand_still_serves(&stand);
	stand_close(&stand);
}

TEST(an_idle_connection_is_closed_in_the_end)
{
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .idle_ms = 100, .request_ms = 20000 });
	struct caller *caller = stand_call(&stand, HELLO);
	CHECK_INT(caller_read(caller), 200);
	caller_wait_end(caller);
	CHECK(!caller->reset);
	CHECK_INT(caller->used, caller->in.len); /* without a word */
	caller_free(caller);
	stand_close(&stand);
}

/* ---- connections ---- */

TEST(more_clients_than_may_be_wait_for_their_turn)
{
	struct caller *callers[3];
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .max_connections = 2 });
	for (size_t i = 0; i < 3; i++)
		callers[i] = stand_call(&stand, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
	stand_pass(&stand, 50);
	CHECK_INT(httpd_connections(stand.httpd), 2);
	CHECK_INT(stand.handled, 2);
	caller_free(callers[0]); /* its answer goes nowhere */
	for (size_t i = 0; i < 3; i++) {
		struct httpd_reply reply = HTTPD_REPLY_INIT;
		while (stand.held_count == i)
			stand_turn(&stand);
		reply.status = 200;
		httpd_answer(stand.held[i], &reply);
	}
	for (size_t i = 1; i < 3; i++) {
		CHECK_INT(caller_read(callers[i]), 200);
		caller_free(callers[i]);
	}
	stand_close(&stand);
}

TEST(who_has_been_idle_for_longest_makes_room)
{
	struct caller *callers[6];
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .max_connections = 4 });
	for (size_t i = 0; i < 6; i++) {
		callers[i] = stand_call(&stand, HELLO);
		CHECK_INT(caller_read(callers[i]), 200);
		stand_settle(&stand);
		if (i == 1) { /* the second has come later than the first has asked again */
			CHECK(caller_say(callers[0], HELLO));
			CHECK_INT(caller_read(callers[0]), 200);
			stand_settle(&stand);
		}
	}
	/* one place is kept free: of six, those that asked last are here */
	for (size_t i = 0; i < 6; i++) {
		if (i < 3)
			caller_wait_end(callers[i]);
		else
			CHECK(caller_say(callers[i], HELLO) && caller_read(callers[i]) == 200);
		caller_free(callers[i]);
	}
	CHECK_INT(stand.handled, 6 + 1 + 3);
	stand_close(&stand);
}

/* Without it they would keep others out for request_ms, and come again. */
TEST(in_a_crowd_who_takes_long_makes_room)
{
	static const char *const begins[] = {
		"",
		"GET /he",
		"GET /hello HTTP/1.1\r\nHost: x\r\n",
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
	};
	struct caller *callers[ARRAY_SIZE(begins)];
	struct stand stand;

	stand_open(&stand, &(struct httpd_options){ .max_connections = ARRAY_SIZE(begins),
						    .request_ms = 3600000,
						    .crowded_ms = 50 });
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		callers[i] = stand_call(&stand, begins[i]);
	stand_still_serves(&stand);
	caller_wait_end(callers[0]);
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		caller_free(callers[i]);
	while (httpd_connections(stand.httpd))
		stand_turn(&stand);
	/* Alone again, a client has its time. */
	callers[0] = stand_call(&stand, "GET /he");
	stand_pass(&stand, 200);
	CHECK(caller_say(callers[0], &HELLO[7]));
	CHECK_INT(caller_read(callers[0]), 200);
	caller_free(callers[0]);
	stand_close(&stand);
}

#define IDLE_CALLERS 1000

static bool may_open(rlim_t count)
{
	struct rlimit limit;

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur >= count)
		return true;
	limit.rlim_cur = count;
	return limit.rlim_max >= count && setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST(a_thousand_idle_connections_disturb_nobody)
{
	struct caller **callers = calloc(IDLE_CALLERS, sizeof(*callers));
	struct stand stand;

	CHECK(callers != NULL);
	if (!may_open(2 * IDLE_CALLERS + 100)) {
		free(callers);
		SKIP("this process may not open as many sockets");
	}
	stand_open(&stand, &(struct httpd_options){ .request_ms = 20000 });
	for (size_t i = 0; i < IDLE_CALLERS; i++) {
		/* half of them have asked something, a quarter is in the middle of it */
		callers[i] = stand_call(&stand, i % 2 ? HELLO : i % 4 ? "GET /he" : "");
		if (i % 2)
			CHECK_INT(caller_read(callers[i]), 200);
	}
	while (httpd_connections(stand.httpd) < IDLE_CALLERS)
		stand_turn(&stand);
	for (int i = 0; i < 100; i++)
		stand_still_serves(&stand);
	for (size_t i = 0; i < IDLE_CALLERS; i++) {
		CHECK(caller_say(callers[i], i % 2 ? HELLO : i % 4 ? &HELLO[7] : HELLO));
		CHECK_INT(caller_read(callers[i]), 200);
	}
	for (size_t i = 0; i < IDLE_CALLERS; i++)
		caller_free(callers[i]);
	free(callers);
	stand_close(&stand);
}

TEST_MAIN()
