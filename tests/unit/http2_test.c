/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of HTTP/2 that are ours: their room, their end, what goes over them. */
#include "test.h"
#include "unit/http_peer_parts.h"
#include "unit/http_stage.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>

static const struct stage_plan http2 = { .tls = true, .http2 = true };

static void serve_hold(struct stage *stage, struct peer_request *request)
{
	stage->held[stage->held_count++] = request;
}

/* ---- room ---- */

TEST(what_a_connection_has_no_room_for_gets_another)
{
	struct stage_plan plan = http2;
	struct stage stage;

	plan.peer.max_streams = 2;
	stage_open(&stage, &plan);
	stage.serve = serve_hold;
	/* None of them ends: as watches. */
	for (int i = 0; i < 7; i++)
		stage_stream(&stage, "/watch");
	while (stage.held_count < 7)
		stage_turn(&stage);
	CHECK_INT(peer_accepted(stage.peer), 4);
	CHECK_INT(http_connections(stage.http), 4);
	stage_close(&stage);
}

TEST(room_that_is_taken_away_is_not_waited_for)
{
	const nghttp2_settings_entry none = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0 };
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_hold;
	struct answer *before = stage_post(&stage, "/before", "x");
	while (!stage.held_count)
		stage_turn(&stage);
	struct peer_link *link = stage.held[0]->link;
	nghttp2_submit_settings(link->h2, NGHTTP2_FLAG_NONE, &none, 1);
	peer_flush(link);
	while (nghttp2_session_get_local_settings(link->h2, none.settings_id) > 0)
		stage_turn(&stage); /* until we say that we know */
	for (int i = 0; i < 3; i++)
		stage_post(&stage, "/after", "x");
	while (stage.held_count < 4)
		stage_turn(&stage);
	CHECK_INT(peer_accepted(stage.peer), 2);
	for (size_t i = 0; i < 4; i++)
		peer_reply(stage.held[i], 200, NULL, "ok", 2);
	stage_wait_all(&stage);
	CHECK_INT(before->result, HTTP_ANSWERED);
	stage_close(&stage);
}

TEST(a_cancelled_request_makes_room_for_the_next)
{
	struct http_options options = { .max_connections = 1 };
	struct stage_plan plan = http2;
	struct stage stage;

	plan.options = &options;
	plan.peer.max_streams = 1;
	stage_open(&stage, &plan);
	stage.serve = serve_hold;
	for (size_t i = 0; i < 20; i++) {
		struct answer *held = stage_stream(&stage, "/watch");
		while (stage.held_count < i + 1)
			stage_turn(&stage);
		http_cancel(held->call);
	}
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

/* ---- servers that will not ---- */

TEST(a_connection_that_the_server_ends_keeps_nobody_waiting)
{
	struct http_options options = { .max_connections = 1 };
	struct stage_plan plan = http2;
	struct stage stage;

	plan.options = &options;
	stage_open(&stage, &plan);
	stage.serve = serve_hold;
	struct answer *watch = stage_stream(&stage, "/watch");
	while (stage.held_count < 1)
		stage_turn(&stage);
	peer_goaway(stage.held[0]->link, stage.held[0]->stream);
	stage_pass(&stage, 20);
	stage_post(&stage, "/bind", "x");
	while (stage.held_count < 2)
		stage_turn(&stage);
	CHECK(!watch->done);
	stage_close(&stage);
}

static void serve_refuse(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reset(request, NGHTTP2_REFUSED_STREAM);
}

TEST(what_is_always_refused_is_not_sent_for_ever)
{
	for (int writes = 0; writes < 2; writes++) {
		struct stage stage;
		stage_open(&stage, &http2);
		stage.serve = serve_refuse;
		struct answer *answer =
			writes ? stage_post(&stage, "/", "x") : stage_get(&stage, "/");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_NOT_SENT);
		CHECK(strstr(answer->reason, "REFUSED_STREAM"));
		CHECK_INT(stage.served, 5);
		stage_close(&stage);
	}
}

static void serve_goaway(struct stage *stage, struct peer_request *request)
{
	struct peer_link *link = request->link;
	int32_t stream = request->stream;

	(void)stage;
	peer_reply(request, 200, NULL, "ok", 2);
	peer_goaway(link, stream);
}

/* As an API server does that spreads its clients (--goaway-chance). */
TEST(a_server_that_says_goodbye_after_each_reply_loses_nothing)
{
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_goaway;
	for (int i = 0; i < 30; i++) {
		struct answer *answer = stage_post(&stage, "/", "x");
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
	}
	CHECK_INT(stage.served, 30);
	while (http_connections(stage.http))
		stage_turn(&stage);
	stage_close(&stage);
}

/* The loop has not looked at the socket since the server closed it. */
TEST(what_the_server_has_ended_gets_no_request_however_late_that_is_seen)
{
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_hold;
	stage_get(&stage, "/a");
	while (!stage.held_count)
		stage_turn(&stage);
	struct peer_link *link = stage.held[0]->link;
	peer_reply(stage.held[0], 200, NULL, "a", 1);
	stage_wait(&stage, stage.answers[0]);
	peer_cut(link, false);
	struct answer *answer = stage_post(&stage, "/b", "x");
	while (stage.held_count < 2 && !answer->done)
		stage_turn(&stage);
	CHECKF(!answer->done, "%s", answer->reason);
	CHECK_INT(peer_accepted(stage.peer), 2);
	stage_close(&stage);
}

TEST(a_server_that_greets_and_takes_nothing_is_not_asked_for_ever)
{
	const struct peer_options rows[] = { { .goaway_first = true },
					     { .cut_first = true },
					     { .no_streams = true } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage_plan plan = http2;
		struct stage stage;
		plan.peer = rows[i];
		stage_open(&stage, &plan);
		struct answer *answer = stage_post(&stage, "/", "x");
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_NOT_SENT, "row %zu: %s", i, answer->reason);
		CHECKF(peer_accepted(stage.peer) < 10, "row %zu", i);
		stage_close(&stage);
	}
}

TEST(what_was_agreed_on_and_is_not_spoken_is_told)
{
	struct stage_plan plan = http2;
	struct stage stage;

	plan.peer.noise_first = true;
	stage_open(&stage, &plan);
	struct answer *answer = stage_post(&stage, "/", "x");
	stage_wait(&stage, answer);
	CHECK_INT(answer->result, HTTP_NOT_SENT);
	CHECKF(strstr(answer->reason, "does not keep to HTTP/2: PROTOCOL_ERROR"), "%s",
	       answer->reason);
	stage_close(&stage);
}

/* A PING of seven bytes instead of eight. */
static void break_frames(const struct peer_request *request)
{
	peer_raw(request->link, "\0\0\7\6\0\0\0\0\0seven..", 16);
}

static void say_why(const struct peer_request *request)
{
	struct peer_link *link = request->link;

	nghttp2_submit_goaway(link->h2, NGHTTP2_FLAG_NONE, request->stream,
			      NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)"slow\1down", 9);
	peer_flush(link);
	peer_cut(link, false);
}

static void say_nothing(const struct peer_request *request)
{
	peer_cut(request->link, false);
}

TEST(why_a_connection_has_ended_is_told)
{
	static const struct {
		void (*end)(const struct peer_request *request);
		const char *reason;
	} rows[] = {
		{ break_frames, "the server does not keep to HTTP/2: FRAME_SIZE_ERROR" },
		{ say_why, "the server has ended the connection: ENHANCE_YOUR_CALM, slow?down" },
		{ say_nothing, "the server has closed the connection" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage stage;
		stage_open(&stage, &http2);
		stage.serve = serve_hold;
		struct answer *answer = stage_post(&stage, "/", "x");
		while (!stage.held_count)
			stage_turn(&stage);
		rows[i].end(stage.held[0]);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_LOST);
		CHECK_STR(answer->reason, rows[i].reason);
		stage_close(&stage);
	}
}

/* ---- what lies behind something else ---- */

/* GnuTLS gives way after each message of its own: a ticket, a change of keys. */
TEST(a_reply_right_behind_a_change_of_keys_is_read)
{
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_hold;
	for (size_t i = 0; i < 6; i++) {
		struct answer *answer = stage_post(&stage, "/", "x");
		while (stage.held_count < i + 1)
			stage_turn(&stage);
		struct peer_link *link = stage.held[i]->link;
		CHECK_INT(setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)),
			  0);
		CHECK_INT(gnutls_session_key_update(link->tls, i % 2 ? GNUTLS_KU_PEER : 0), 0);
		peer_reply(stage.held[i], 200, NULL, "hello", 5);
		stage_wait(&stage, answer);
		CHECK_STR(answer->body, "hello");
	}
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

/* The client's sockets take little at once. */
static void shrink_sockets(const struct stage *stage)
{
	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_in to = { 0 };
		socklen_t size = sizeof(to);
		if (getpeername(fd, (struct sockaddr *)&to, &size) == 0 &&
		    ntohs(to.sin_port) == peer_port(stage->peer))
			(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 4096 }, sizeof(int));
	}
}

/* A socket that takes less than there is to send never sees the end of it. */
TEST(a_slow_socket_does_not_make_us_keep_what_was_sent)
{
	const size_t len = STRBUF_MAX_DEFAULT + ((size_t)4 << 20);
	char *body = calloc(1, len);
	struct stage_plan plan = http2;
	struct stage stage;
	int small = 4096;
	int turns = 0;

	CHECK(body != NULL);
	plan.peer.big_window = true;
	stage_open(&stage, &plan);
	CHECK_INT(setsockopt(stage.peer->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	struct answer *answer =
		stage_send(&stage,
			   (struct http_request){
				   .method = "POST", .url = "/", .body = body, .body_len = len },
			   false);
	while (!answer->done) {
		if (turns++ < 100)
			shrink_sockets(&stage);
		stage_turn(&stage);
		uv_timer_again(&stage.hang);
	}
	CHECKF(answer->status == 404, "%d %s", answer->result, answer->reason);
	stage_close(&stage);
	free(body);
}

TEST(headers_may_be_as_long_as_they_may_be)
{
	static char long_headers[8][60000];
	const char *headers[8];
	struct stage stage;

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		memset(long_headers[i], 'x', sizeof(long_headers[i]) - 1);
		memcpy(long_headers[i], "a: ", 3);
		headers[i] = long_headers[i];
	}
	stage_open(&stage, &http2);
	struct answer *answer =
		stage_send(&stage,
			   (struct http_request){ .url = "/hello",
						  .headers = headers,
						  .headers_count = ARRAY_SIZE(headers) },
			   false);
	stage_wait(&stage, answer);
	/* The peer takes 64 KiB of them, and says so. */
	CHECKF(answer->result == HTTP_LOST, "%d %s", answer->result, answer->reason);
	stage_close(&stage);
}

/* ---- the URL ---- */

static void serve_path(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 200, NULL, request->path, strlen(request->path));
}

TEST(the_path_is_all_behind_the_server)
{
	static const char *const rows[][2] = {
		{ "", "/" },
		{ "/", "/" },
		{ "?a=b", "/?a=b" },
		{ "/a#b", "/a" },
		{ "#b", "/" },
		{ "/a/../b?c#d", "/a/../b?c" },
		{ "/a%2fb", "/a%2fb" },
	};
	struct stage stage;
	char url[64];

	stage_open(&stage, &http2);
	stage.serve = serve_path;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(url, sizeof(url), "https://127.0.0.1:%d%s", peer_port(stage.peer),
			 rows[i][0]);
		struct answer *answer = stage_get(&stage, url);
		stage_wait(&stage, answer);
		CHECK_STR(answer->body, rows[i][1]);
	}
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

TEST_MAIN()
