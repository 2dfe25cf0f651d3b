/* SPDX-License-Identifier: Apache-2.0 */
/* How requests end when something goes wrong: broken connections, silence, too much. */
#include "test.h"
#include "unit/http_stage.h"

#include <nghttp2/nghttp2.h>
#include <signal.h>

static const struct stage_plan ways[] = {
	{ .tls = false },
	{ .tls = true },
	{ .tls = true, .http2 = true },
};

static void serve_hold(struct stage *stage, struct peer_request *request)
{
	stage->held[stage->held_count++] = request;
}

static void wait_held(struct stage *stage, size_t count)
{
	while (stage->held_count < count)
		stage_turn(stage);
}

/* ---- not sent ---- */

TEST(what_never_got_a_connection_was_not_sent)
{
	char url[64];

	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		/* A port that was free a moment ago. */
		struct peer *gone = peer_new(&stage.loop, &(struct peer_options){ 0 });
		snprintf(url, sizeof(url), "http%s://127.0.0.1:%d/", way ? "s" : "",
			 peer_port(gone));
		peer_close(gone);
		for (int i = 0; i < 64; i++)
			stage_send(&stage, (struct http_request){ .method = "POST", .url = url },
				   false);
		stage_wait_all(&stage);
		for (size_t i = 0; i < 64; i++) {
			CHECK_INT(stage.answers[i]->result, HTTP_NOT_SENT);
			CHECK_INT(stage.answers[i]->http_major, 0);
			CHECK(stage.answers[i]->reason[0]);
		}
		CHECK_INT(http_connections(stage.http), 0);
		stage_close(&stage);
	}
}

TEST(a_name_that_nobody_has_was_not_sent)
{
	struct stage stage;

	stage_open(&stage, &ways[2]);
	/* Longer than a label may be: no name server is asked. */
	struct answer *answer =
		stage_get(&stage, "https://nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
				  "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn.invalid/");
	stage_wait(&stage, answer);
	CHECK_INT(answer->result, HTTP_NOT_SENT);
	CHECK(answer->reason[0]);
	stage_close(&stage);
}

TEST(a_server_that_does_not_greet_in_time_got_nothing)
{
	struct http_options options = { .connect_ms = 100 };
	struct stage stage;

	stage_open(&stage, &(struct stage_plan){ .tls = true,
						 .http2 = true,
						 .options = &options,
						 .peer = { .mute = true } });
	for (int i = 0; i < 10; i++)
		stage_post(&stage, "/echo", "x");
	stage_wait_all(&stage);
	for (int i = 0; i < 10; i++)
		CHECK_INT(stage.answers[i]->result, HTTP_NOT_SENT);
	stage_close(&stage);
}

TEST(a_server_that_does_not_speak_tls_got_nothing)
{
	struct stage stage;
	char url[64];

	stage_open(&stage, &ways[0]);
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/hello", peer_port(stage.peer));
	struct answer *answer = stage_get(&stage, url);
	while (!answer->done && !stage.served)
		stage_turn(&stage);
	CHECK_INT(stage.served, 0);
	stage_close(&stage);
}

/* ---- lost ---- */

TEST(a_write_on_a_connection_that_breaks_is_lost_and_never_repeated)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		for (int used = 0; used < 2; used++)
			for (int reset = 0; reset < 2; reset++) {
				struct stage stage;
				stage_open(&stage, &ways[way]);
				if (used)
					stage_wait(&stage, stage_get(&stage, "/hello"));
				stage.serve = serve_hold;
				stage.served = 0;
				struct answer *answer = stage_post(&stage, "/bind", "x");
				wait_held(&stage, 1);
				peer_cut(stage.held[0]->link, reset);
				stage_wait(&stage, answer);
				CHECKF(answer->result == HTTP_LOST, "way %zu, used %d, reset %d",
				       way, used, reset);
				CHECK(answer->reason[0]);
				CHECK_INT(answer->status, 0);
				CHECK_INT(stage.served, 1);
				stage_close(&stage);
			}
}

TEST(a_delete_without_a_body_is_not_repeated_either)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage_wait(&stage, stage_get(&stage, "/hello"));
		stage.serve = serve_hold;
		struct answer *answer = stage_send(
			&stage, (struct http_request){ .method = "DELETE", .url = "/pod" }, false);
		wait_held(&stage, 1);
		peer_cut(stage.held[0]->link, true);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_LOST);
		CHECK_INT(stage.served, 2);
		stage_close(&stage);
	}
}

static void serve_second(struct stage *stage, struct peer_request *request)
{
	if (stage->served == 2)
		peer_cut(request->link, true);
	else
		peer_reply(request, 200, NULL, "again", 5);
}

TEST(a_read_on_a_connection_that_was_used_before_is_repeated)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage_wait(&stage, stage_get(&stage, "/hello"));
		stage.serve = serve_second;
		struct answer *answer = stage_get(&stage, "/pods");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		CHECK_STR(answer->body, "again");
		CHECK_INT(stage.served, 3);
		CHECK_INT(stage_accepted(&stage), 2);
		stage_close(&stage);
	}
}

TEST(half_a_reply_is_lost)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		for (int streams = 0; streams < 2; streams++) {
			struct stage stage;
			stage_open(&stage, &ways[way]);
			stage.serve = serve_hold;
			struct answer *answer = stage_send(
				&stage, (struct http_request){ .url = "/watch" }, streams);
			wait_held(&stage, 1);
			peer_begin(stage.held[0], 200, NULL);
			peer_write(stage.held[0], "half", 4);
			peer_cut(stage.held[0]->link, false);
			stage_wait(&stage, answer);
			CHECK_INT(answer->result, HTTP_LOST);
			CHECK_INT(answer->status, 200);
			CHECK_INT(streams ? answer->streamed : answer->len, 4);
			stage_close(&stage);
		}
}

static void serve_short(struct stage *stage, struct peer_request *request)
{
	static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";

	(void)stage;
	peer_raw(request->link, reply, sizeof(reply) - 1);
	peer_cut(request->link, false);
}

static void serve_noise(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_raw(request->link, "\x01\x02 what?\r\n\r\n", 12);
	peer_cut(request->link, false);
}

TEST(a_reply_that_breaks_the_protocol_is_lost)
{
	void (*const serves[])(struct stage *, struct peer_request *) = { serve_short,
									  serve_noise };

	for (size_t i = 0; i < ARRAY_SIZE(serves); i++) {
		struct stage stage;
		stage_open(&stage, &ways[i]);
		stage.serve = serves[i];
		struct answer *answer = stage_post(&stage, "/", "x");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_LOST);
		stage_close(&stage);
	}
}

TEST(streams_that_the_server_resets_are_lost_alone)
{
	struct stage stage;

	stage_open(&stage, &ways[2]);
	stage.serve = serve_hold;
	struct answer *lost = stage_post(&stage, "/a", "x");
	struct answer *kept = stage_post(&stage, "/b", "x");
	wait_held(&stage, 2);
	bool first = strcmp(stage.held[0]->path, "/a") == 0;
	peer_reset(stage.held[!first], NGHTTP2_INTERNAL_ERROR);
	stage_wait(&stage, lost);
	CHECK_INT(lost->result, HTTP_LOST);
	peer_reply(stage.held[first], 201, NULL, "made", 4);
	stage_wait(&stage, kept);
	CHECK_INT(kept->status, 201);
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

static void serve_refuse_once(struct stage *stage, struct peer_request *request)
{
	if (stage->served == 1)
		peer_reset(request, NGHTTP2_REFUSED_STREAM);
	else
		peer_reply(request, 200, NULL, "ok", 2);
}

/* The server says that it has done nothing of it. */
TEST(a_refused_stream_is_sent_again)
{
	for (int writes = 0; writes < 2; writes++) {
		struct stage stage;
		stage_open(&stage, &ways[2]);
		stage.serve = serve_refuse_once;
		struct answer *answer =
			writes ? stage_post(&stage, "/", "x") : stage_get(&stage, "/");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		CHECK_INT(stage.served, 2);
		stage_close(&stage);
	}
}

/* Refused, and then lost: what becomes of the second says nothing of the first. */
TEST(a_write_that_was_refused_may_still_be_lost)
{
	struct stage stage;

	stage_open(&stage, &ways[2]);
	stage.serve = serve_hold;
	struct answer *answer = stage_post(&stage, "/", "x");
	wait_held(&stage, 1);
	peer_reset(stage.held[0], NGHTTP2_REFUSED_STREAM);
	wait_held(&stage, 2);
	peer_cut(stage.held[1]->link, false);
	stage_wait(&stage, answer);
	CHECK_INT(answer->result, HTTP_LOST);
	CHECK_INT(stage.served, 2);
	stage_close(&stage);
}

/* A server that has begun to answer cannot take back that it has read it. */
TEST(a_write_that_is_refused_behind_its_status_is_lost)
{
	struct stage stage;

	stage_open(&stage, &ways[2]);
	stage.serve = serve_hold;
	struct answer *answer = stage_post(&stage, "/", "x");
	wait_held(&stage, 1);
	peer_begin(stage.held[0], 200, NULL);
	peer_reset(stage.held[0], NGHTTP2_REFUSED_STREAM);
	stage_wait(&stage, answer);
	CHECK_INT(answer->result, HTTP_LOST);
	CHECK_INT(stage.served, 1);
	stage_close(&stage);
}

/* As a server does that ends while requests are on their way to it. */
TEST(streams_above_the_last_of_a_goaway_go_to_a_new_connection)
{
	struct stage stage;

	stage_open(&stage, &ways[2]);
	stage.serve = serve_hold;
	struct answer *first = stage_post(&stage, "/a", "x");
	wait_held(&stage, 1);
	struct answer *second = stage_post(&stage, "/b", "x");
	wait_held(&stage, 2);
	peer_goaway(stage.held[0]->link, stage.held[0]->stream);
	wait_held(&stage, 3);
	CHECK_STR(stage.held[2]->path, "/b");
	peer_reply(stage.held[0], 200, NULL, "a", 1);
	peer_reply(stage.held[2], 200, NULL, "b", 1);
	stage_wait_all(&stage);
	CHECK_INT(first->result, HTTP_ANSWERED);
	CHECK_INT(second->result, HTTP_ANSWERED);
	CHECK_STR(second->body, "b");
	CHECK_INT(peer_accepted(stage.peer), 2);
	stage_close(&stage);
}

TEST(after_goaway_requests_go_to_a_new_connection)
{
	struct stage stage;

	stage_open(&stage, &ways[2]);
	stage.serve = serve_hold;
	struct answer *before = stage_post(&stage, "/a", "x");
	wait_held(&stage, 1);
	peer_goaway(stage.held[0]->link, stage.held[0]->stream);
	stage_pass(&stage, 10);
	struct answer *after = stage_post(&stage, "/b", "x");
	wait_held(&stage, 2);
	peer_reply(stage.held[0], 200, NULL, "a", 1);
	peer_reply(stage.held[1], 200, NULL, "b", 1);
	stage_wait_all(&stage);
	CHECK_INT(before->result, HTTP_ANSWERED);
	CHECK_INT(after->result, HTTP_ANSWERED);
	CHECK_INT(peer_accepted(stage.peer), 2);
	stage_close(&stage);
}

TEST(a_broken_pipe_ends_the_request_not_the_process)
{
	const size_t size = (size_t)16 << 20;
	char *body = calloc(1, size);

	CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage.serve = serve_hold;
		struct answer *held = stage_get(&stage, "/hold");
		wait_held(&stage, 1);
		struct answer *answer = stage_send(
			&stage,
			(struct http_request){
				.method = "PUT", .url = "/", .body = body, .body_len = size },
			false);
		for (int i = 0; i < 5; i++)
			stage_turn(&stage);
		peer_close(stage.peer);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_LOST);
		stage_wait(&stage, held);
		stage.peer = peer_new(&stage.loop, &(struct peer_options){ 0 });
		stage_close(&stage);
	}
	free(body);
}

/* ---- time ----
 *
 * A test whose limit has passed because the machine was slow says so (false) and runs
 * again with twice the limit. */

static void with_limit(bool (*run)(size_t way, uint32_t limit_ms), size_t way)
{
	uint32_t limit_ms = 80;

	while (!run(way, limit_ms))
		CHECK((limit_ms *= 2) < 30000);
}

static uint64_t now_ms(struct stage *stage)
{
	uv_update_time(&stage->loop);
	return uv_now(&stage->loop);
}

static bool silent_connection(size_t way, uint32_t limit_ms)
{
	struct stage stage;

	stage_open(&stage, &ways[way]);
	stage_wait(&stage, stage_get(&stage, "/hello"));
	struct answer *dead = stage_send(
		&stage, (struct http_request){ .url = "/silent", .deadline_ms = limit_ms }, false);
	struct answer *beside = stage_post(&stage, "/silent", "x");
	while (stage.served < 3 && !dead->done)
		stage_turn(&stage);
	bool in_time = !dead->done;
	stage_wait(&stage, dead);
	CHECK_INT(dead->result, HTTP_DEADLINE);
	CHECK(dead->reason[0]);
	/* With HTTP/2 what waits on the same connection learns of it. */
	if (in_time && way == 2) {
		stage_wait(&stage, beside);
		CHECK_INT(beside->result, HTTP_LOST);
	}
	struct answer *next = stage_post(&stage, "/echo", "x");
	if (in_time) {
		stage_wait(&stage, next);
		CHECK_INT(next->result, HTTP_ANSWERED);
		/* The other one's own connection of HTTP/1.1 is the third. */
		CHECK_INT(stage_accepted(&stage), way == 2 ? 2 : 3);
	}
	stage_close(&stage);
	return in_time;
}

TEST(a_silent_connection_is_not_used_again)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		with_limit(silent_connection, way);
}

static bool slow_request(size_t way, uint32_t limit_ms)
{
	uint64_t gap_ms = 0;
	struct stage stage;

	stage_open(&stage, &ways[way]);
	stage_wait(&stage, stage_get(&stage, "/hello"));
	struct answer *slow = stage_send(
		&stage, (struct http_request){ .url = "/silent", .deadline_ms = limit_ms }, false);
	while (!slow->done) {
		uint64_t before_ms = now_ms(&stage);
		struct answer *answer = stage_get(&stage, "/hello");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		stage_pass(&stage, 2);
		gap_ms = MAX(gap_ms, now_ms(&stage) - before_ms);
	}
	CHECK_INT(slow->result, HTTP_DEADLINE);
	bool in_time = gap_ms < limit_ms / 4;
	if (in_time)
		CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
	return in_time;
}

TEST(a_slow_request_does_not_cost_others_their_connection)
{
	with_limit(slow_request, 2);
}

static bool dripping(size_t way, uint32_t limit_ms)
{
	struct stage stage;

	stage_open(&stage, &ways[way]);
	stage.serve = serve_hold;
	struct answer *answer = stage_send(
		&stage, (struct http_request){ .url = "/", .deadline_ms = limit_ms }, true);
	while (!stage.held_count && !answer->done)
		stage_turn(&stage);
	if (!answer->done)
		peer_begin(stage.held[0], 200, NULL);
	while (!answer->done) {
		peer_write(stage.held[0], "drip", 4);
		stage_pass(&stage, 1);
	}
	CHECK_INT(answer->result, HTTP_DEADLINE);
	bool in_time = answer->streamed > 0;
	if (in_time)
		CHECK_INT(answer->status, 200);
	stage_close(&stage);
	return in_time;
}

TEST(a_deadline_counts_from_the_start_whatever_comes)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		with_limit(dripping, way);
}

/* A connection of HTTP/2 goes on to be opened, for the next request, while there is time. */
TEST(a_deadline_holds_while_connecting_too)
{
	for (int http1 = 0; http1 < 2; http1++) {
		struct http_options options = { .connect_ms = 200 };
		struct stage stage;
		stage_open(&stage, &(struct stage_plan){ .tls = true,
							 .http1_client = http1,
							 .options = &options,
							 .peer = { .mute = true } });
		struct answer *answer = stage_send(
			&stage,
			(struct http_request){ .method = "POST", .url = "/", .deadline_ms = 50 },
			false);
		stage_wait(&stage, answer);
		/* Nobody has to ask the server what has become of it. */
		CHECK_INT(answer->result, HTTP_NOT_SENT);
		CHECK_STR(answer->reason, "no connection in time");
		CHECK(!http1 || http_connections(stage.http) == 0);
		while (http_connections(stage.http))
			stage_turn(&stage);
		stage_close(&stage);
	}
}

static bool silence(size_t way, uint32_t limit_ms)
{
	struct stage stage;

	stage_open(&stage, &ways[way]);
	stage.serve = serve_hold;
	uint64_t start_ms = now_ms(&stage);
	struct answer *answer =
		stage_send(&stage, (struct http_request){ .url = "/", .idle_ms = limit_ms }, true);
	while (!stage.held_count && !answer->done)
		stage_turn(&stage);
	if (!answer->done)
		peer_begin(stage.held[0], 200, NULL);
	uint64_t gap_ms = now_ms(&stage) - start_ms;
	for (int i = 0; i < 12 && !answer->done; i++) {
		uint64_t before_ms = now_ms(&stage);
		stage_pass(&stage, limit_ms / 8);
		if (!answer->done)
			peer_write(stage.held[0], "drip", 4);
		gap_ms = MAX(gap_ms, now_ms(&stage) - before_ms);
	}
	/* Twelve eighths of the limit have passed, and it lives. */
	bool in_time = stage.held_count && gap_ms < limit_ms / 2;
	CHECK(!in_time || !answer->done);
	stage_wait(&stage, answer);
	CHECK_INT(answer->result, HTTP_DEADLINE);
	if (in_time)
		CHECK_INT(answer->streamed, 48);
	stage_close(&stage);
	return in_time;
}

TEST(silence_ends_a_stream_and_each_byte_breaks_it)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		with_limit(silence, way);
}

/* The reply lies in the socket while the loop is busy elsewhere. */
static bool held_up(size_t way, uint32_t limit_ms)
{
	struct stage stage;

	stage_open(&stage, &ways[way]);
	stage.serve = serve_hold;
	uint64_t start_ms = now_ms(&stage);
	struct answer *answer = stage_send(
		&stage,
		(struct http_request){ .url = "/", .idle_ms = limit_ms, .deadline_ms = limit_ms },
		false);
	while (!stage.held_count && !answer->done)
		stage_turn(&stage);
	if (!answer->done)
		peer_reply(stage.held[0], 200, NULL, "there", 5);
	bool in_time = !answer->done && now_ms(&stage) - start_ms < limit_ms;
	usleep(2 * limit_ms * 1000);
	stage_wait(&stage, answer);
	if (in_time)
		CHECK_INT(answer->result, HTTP_ANSWERED);
	stage_close(&stage);
	return in_time;
}

TEST(a_loop_that_was_held_up_reads_before_it_judges)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		with_limit(held_up, way);
}

TEST(a_peer_that_stops_reading_is_given_up)
{
	const size_t size = (size_t)16 << 20;
	char *body = calloc(1, size);

	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage.serve = serve_hold;
		if (way == 2) {
			stage_get(&stage, "/hold");
			wait_held(&stage, 1);
			peer_freeze(stage.held[0]->link);
		}
		struct answer *answer = stage_send(&stage,
						   (struct http_request){ .method = "PUT",
									  .url = "/",
									  .body = body,
									  .body_len = size,
									  .idle_ms = 100 },
						   false);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_DEADLINE);
		stage_close(&stage);
	}
	free(body);
}

/* ---- size ---- */

static uint32_t crc_of(const char *bytes, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
	}
	return ~crc;
}

static void put_bits(struct strbuf *out, uint32_t *bits, unsigned *count, uint32_t value,
		     unsigned width)
{
	*bits |= value << *count;
	for (*count += width; *count >= 8; *count -= 8, *bits >>= 8)
		strbuf_putc(out, (char)(*bits & 0xff));
}

/* gzip (RFC 1952, 1951) of 1 + 258 * runs times 'a': the letter in the fixed code, then
 * copies of the longest length from a distance of one. */
static void gzip_of_a(struct strbuf *out, size_t runs)
{
	static const char head[10] = { '\x1f', '\x8b', 8, 0, 0, 0, 0, 0, 0, 3 };
	size_t len = 1 + 258 * runs;
	char *plain = malloc(len);
	uint32_t bits = 0;
	unsigned count = 0;

	memset(plain, 'a', len);
	uint32_t tail[2] = { crc_of(plain, len), (uint32_t)len };
	strbuf_add(out, head, sizeof(head));
	put_bits(out, &bits, &count, 3, 3);    /* the last block, fixed codes */
	put_bits(out, &bits, &count, 0x89, 8); /* 'a' is 0x91, most significant bit first */
	for (size_t i = 0; i < runs; i++) {
		put_bits(out, &bits, &count, 0xa3, 8); /* length 258: 0xc5 */
		put_bits(out, &bits, &count, 0, 5);    /* distance 1 */
	}
	put_bits(out, &bits, &count, 0, 7 + 7); /* the end, and up to the next byte */
	for (int i = 0; i < 8; i++)
		strbuf_putc(out, (char)(tail[i / 4] >> 8 * (i % 4) & 0xff));
	free(plain);
}

static size_t gzip_runs;

static void serve_gzip(struct stage *stage, struct peer_request *request)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	char accepted[64] = "";

	(void)stage;
	CHECK(peer_header(request, "accept-encoding", accepted, sizeof(accepted)));
	CHECK_STR(accepted, "gzip");
	gzip_of_a(&body, gzip_runs);
	peer_reply(request, 200, "content-encoding: gzip\n", body.s, body.len);
}

TEST(a_compressed_reply_is_given_inflated)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		for (int streams = 0; streams < 2; streams++) {
			struct stage stage;
			stage_open(&stage, &ways[way]);
			stage.serve = serve_gzip;
			gzip_runs = 1000;
			struct answer *answer = stage_send(
				&stage, (struct http_request){ .url = "/", .gzip = true },
				streams);
			stage_wait(&stage, answer);
			CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
			CHECK_INT(streams ? answer->streamed : answer->len, 258001);
			CHECK(answer->bytes_in < 5000);
			stage_close(&stage);
		}
}

TEST(no_reply_becomes_bigger_than_asked)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		for (int streams = 0; streams < 2; streams++) {
			struct stage stage;
			stage_open(&stage, &ways[way]);
			stage.serve = serve_gzip;
			gzip_runs = 40000; /* 10 MB */
			struct answer *bomb = stage_send(
				&stage,
				(struct http_request){
					.url = "/", .gzip = true, .max_bytes = 1 << 20 },
				streams);
			stage_wait(&stage, bomb);
			CHECK_INT(bomb->result, HTTP_TOO_BIG);
			CHECK(bomb->len <= 1 << 20);
			CHECK(bomb->streamed <= 1 << 20);
			gzip_runs = 1;
			struct answer *exact =
				stage_send(&stage,
					   (struct http_request){
						   .url = "/", .gzip = true, .max_bytes = 259 },
					   streams);
			stage_wait(&stage, exact);
			CHECK_INT(exact->result, HTTP_ANSWERED);
			struct answer *less =
				stage_send(&stage,
					   (struct http_request){
						   .url = "/", .gzip = true, .max_bytes = 258 },
					   streams);
			stage_wait(&stage, less);
			CHECK_INT(less->result, HTTP_TOO_BIG);
			CHECK_INT(less->status, 200);
			stage_close(&stage);
		}
}

static void serve_endless(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_begin(request, strcmp(request->path, "/error") == 0 ? 500 : 200, NULL);
	peer_flood(request, (uint64_t)1 << 40);
}

TEST(an_endless_error_is_cut_even_for_a_stream)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage.serve = serve_endless;
		struct answer *answer = stage_stream(&stage, "/error");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_TOO_BIG);
		CHECK_INT(answer->status, 500);
		CHECK_INT(answer->streamed, 0);
		CHECK(answer->len <= (size_t)32 << 20);
		stage_close(&stage);
	}
}

TEST_MAIN()
