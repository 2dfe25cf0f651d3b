/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of HTTP/2 that are ours from the name to the last frame. */
#include "test.h"
#include "unit/http_peer_parts.h"
#include "unit/http_stage.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdatomic.h>
#include <zlib.h>

static const struct stage_plan http2 = { .tls = true, .http2 = true };

static void serve_hold(struct stage *stage, struct peer_request *request)
{
	stage->held[stage->held_count++] = request;
}

/* ---- names: the test is the resolver ---- */

static const char *resolver_addresses[3]; /* of "peer.test" */
static atomic_bool resolver_let_go;	  /* of who asks for "slow.test" */
static atomic_int resolver_inside;	  /* asking for that */

static struct addrinfo *make_address(const char *host, const char *port)
{
	struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_in));
	struct sockaddr_in *address = (struct sockaddr_in *)(info + 1);

	address->sin_family = AF_INET;
	address->sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	inet_pton(AF_INET, host, &address->sin_addr);
	info->ai_family = AF_INET;
	info->ai_socktype = SOCK_STREAM;
	info->ai_addr = (struct sockaddr *)address;
	info->ai_addrlen = sizeof(*address);
	return info;
}

/* As one whose name servers are silent. */
static void wait_in_resolver(void)
{
	resolver_inside++;
	for (int i = 0; i < STAGE_HANG_MS && !resolver_let_go; i++)
		usleep(1000);
	resolver_inside--;
}

/* Instead of the C library's, for this program. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	struct in_addr address;
	bool numeric = inet_pton(AF_INET, host, &address) == 1;

	*ret = NULL;
	if (numeric) {
		*ret = make_address(host, port);
		return 0;
	}
	if (!(hints->ai_flags & AI_NUMERICHOST) && strcmp(host, "slow.test") == 0)
		wait_in_resolver();
	if (hints->ai_flags & AI_NUMERICHOST || strcmp(host, "peer.test") != 0)
		return EAI_NONAME;
	for (size_t i = ARRAY_SIZE(resolver_addresses); i-- > 0;) {
		if (!resolver_addresses[i])
			continue;
		struct addrinfo *info = make_address(resolver_addresses[i], port);
		info->ai_next = *ret;
		*ret = info;
	}
	return *ret ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *info)
{
	for (struct addrinfo *next; info; info = next) {
		next = info->ai_next;
		free(info);
	}
}

static struct answer *get_by_name(struct stage *stage)
{
	char url[64];

	snprintf(url, sizeof(url), "https://peer.test:%d/hello", peer_port(stage->peer));
	struct answer *answer = stage_get(stage, url);
	stage_wait(stage, answer);
	return answer;
}

TEST(addresses_of_a_name_are_tried_one_after_the_other)
{
	static const struct {
		const char *addresses[3];
		enum http_result result;
	} rows[] = {
		{ { "127.0.0.1" }, HTTP_ANSWERED },
		/* nobody listens there */
		{ { "127.0.0.9", "127.0.0.1" }, HTTP_ANSWERED },
		{ { "127.0.0.9", "127.0.0.8", "127.0.0.1" }, HTTP_ANSWERED },
		{ { "127.0.0.9", "127.0.0.8" }, HTTP_NOT_SENT },
		/* cannot be connected to at all */
		{ { "255.255.255.255", "127.0.0.1" }, HTTP_ANSWERED },
		{ { NULL }, HTTP_NOT_SENT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage stage;
		memcpy(resolver_addresses, rows[i].addresses, sizeof(resolver_addresses));
		stage_open(&stage, &http2);
		struct answer *answer = get_by_name(&stage);
		CHECKF(answer->result == rows[i].result, "row %zu: %s", i, answer->reason);
		CHECKF(answer->result == HTTP_ANSWERED || strstr(answer->reason, "peer.test"),
		       "row %zu: %s", i, answer->reason);
		stage_close(&stage);
	}
}

/* A listener that takes no more connections does not answer: the next address gets its
 * share of the time. */
TEST(an_address_that_does_not_answer_leaves_time_for_the_next)
{
	struct http_options options = { .connect_ms = 2000 };
	struct stage_plan plan = http2;
	struct sockaddr_in address = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fillers[8];
	struct stage stage;

	plan.options = &options;
	stage_open(&stage, &plan);
	address.sin_port = htons((uint16_t)peer_port(stage.peer));
	inet_pton(AF_INET, "127.0.0.9", &address.sin_addr);
	CHECK_INT(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_INT(listen(listener, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fillers); i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fillers[i], (struct sockaddr *)&address, sizeof(address));
	}
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.9", "127.0.0.1" },
	       sizeof(resolver_addresses));
	struct answer *answer = get_by_name(&stage);
	CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
	stage_close(&stage);
	for (size_t i = 0; i < ARRAY_SIZE(fillers); i++)
		close(fillers[i]);
	close(listener);
}

/* At the server's port and another address. */
static struct peer *peer_beside(struct stage *stage, const char *host, const struct cert *cert)
{
	return peer_new(&stage->loop, &(struct peer_options){ .host = host,
							      .port = peer_port(stage->peer),
							      .cert_file = cert->cert_file,
							      .key_file = cert->key_file,
							      .http2 = true,
							      .serve = stage_serve,
							      .context = stage });
}

static void end_connections(struct stage *stage, const struct peer *peer)
{
	peer_cut(peer->links, false);
	while (http_connections(stage->http))
		stage_turn(stage);
}

/* Else each connection would wait for one that never answers. */
TEST(the_address_that_worked_is_tried_first_the_next_time)
{
	struct stage stage;

	stage_open(&stage, &http2);
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.9", "127.0.0.1", "127.0.0.8" },
	       sizeof(resolver_addresses));
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	struct peer *stranger = peer_beside(&stage, "127.0.0.9", &stage_client);
	for (uint32_t i = 2; i < 5; i++) {
		end_connections(&stage, stage.peer);
		struct answer *answer = get_by_name(&stage);
		CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
		CHECK_INT(peer_accepted(stage.peer), i);
	}
	CHECK_INT(peer_accepted(stranger), 0);
	peer_close(stranger);
	stage_close(&stage);
}

TEST(when_it_does_not_work_any_more_all_others_are_tried)
{
	struct stage stage;

	stage_open(&stage, &http2);
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.8" }, sizeof(resolver_addresses));
	struct peer *other = peer_beside(&stage, "127.0.0.8", &stage_server);
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	CHECK_INT(peer_accepted(other), 1);
	end_connections(&stage, other);
	peer_close(other);
	/* Before it and behind it. */
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.1", "127.0.0.8", "127.0.0.9" },
	       sizeof(resolver_addresses));
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

TEST(an_address_that_fails_behind_its_greeting_is_not_tried_first_for_ever)
{
	struct stage stage;

	stage_open(&stage, &http2);
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.8" }, sizeof(resolver_addresses));
	struct peer *other = peer_beside(&stage, "127.0.0.8", &stage_server);
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	end_connections(&stage, other);
	peer_close(other);
	stage_pass(&stage, 10);
	other = peer_beside(&stage, "127.0.0.8", &stage_client);
	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.1", "127.0.0.8" },
	       sizeof(resolver_addresses));
	CHECK_INT(get_by_name(&stage)->result, HTTP_REFUSED);
	CHECK_INT(get_by_name(&stage)->result, HTTP_ANSWERED);
	peer_close(other);
	stage_close(&stage);
}

/* A lookup cannot be cancelled and may take a minute; a process has less time to end. */
TEST(nobody_waits_for_a_lookup_that_nobody_wants_any_more)
{
	struct stage stage;

	stage_open(&stage, &http2);
	stage_get(&stage, "https://slow.test/");
	while (!resolver_inside)
		stage_turn(&stage);
	stage_close(&stage); /* also the loop */
	CHECK_INT(resolver_inside, 1);
	resolver_let_go = true;
	while (resolver_inside)
		usleep(1000);
	resolver_let_go = false;
}

TEST(a_lookup_that_takes_too_long_is_left_alone)
{
	struct http_options options = { .connect_ms = 50 };
	struct stage_plan plan = http2;
	struct stage stage;

	plan.options = &options;
	stage_open(&stage, &plan);
	for (int i = 0; i < 3; i++) {
		struct answer *answer = stage_post(&stage, "https://slow.test/", "x");
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_NOT_SENT);
		CHECK(strstr(answer->reason, "slow.test"));
	}
	resolver_let_go = true;
	while (resolver_inside)
		stage_pass(&stage, 1);
	stage_pass(&stage, 10);
	resolver_let_go = false;
	stage_close(&stage);
}

TEST(a_set_closes_at_any_moment_of_a_lookup)
{
	char url[64];

	memcpy(resolver_addresses, (const char *[3]){ "127.0.0.1" }, sizeof(resolver_addresses));
	for (int turns = 0; turns < 20; turns++) {
		struct stage stage;
		stage_open(&stage, &http2);
		snprintf(url, sizeof(url), "https://peer.test:%d/hello", peer_port(stage.peer));
		stage_get(&stage, url);
		for (int i = 0; i < turns; i++)
			uv_run(&stage.loop, UV_RUN_NOWAIT);
		stage_close(&stage);
	}
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

/* ---- replies that are not as they should be ---- */

static void serve_lengths(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 200,
		   strcmp(request->path, "/less") == 0 ? "content-length: 10\n"
						       : "content-length: 3\n",
		   "half", 4);
}

TEST(a_reply_of_another_length_than_it_says_is_lost)
{
	static const char *const paths[] = { "/less", "/more" };
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_lengths;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct answer *answer = stage_post(&stage, paths[i], "x");
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_LOST, "%s", paths[i]);
		CHECK_STR(answer->reason, "the stream was reset: PROTOCOL_ERROR");
	}
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

static void reset_stream(struct peer_request *request)
{
	peer_reset(request, NGHTTP2_INTERNAL_ERROR);
}

/* As a process that is killed, or somebody between us. */
static void end_impolitely(struct peer_request *request)
{
	CHECK_INT(shutdown(request->link->fd, SHUT_WR), 0);
}

TEST(a_reply_that_ends_in_its_middle_is_lost)
{
	void (*const ends[])(struct peer_request *) = { reset_stream, end_impolitely };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(ends); i++) {
		const size_t len = i / ARRAY_SIZE(ends) * 4;
		struct stage stage;
		stage_open(&stage, &http2);
		stage.serve = serve_hold;
		struct answer *answer = stage_stream(&stage, "/watch");
		while (!stage.held_count)
			stage_turn(&stage);
		peer_begin(stage.held[0], 200, NULL);
		peer_write(stage.held[0], "half", len);
		while (answer->streamed < len)
			stage_turn(&stage);
		ends[i % ARRAY_SIZE(ends)](stage.held[0]);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_LOST);
		CHECK_INT(answer->status, 200);
		CHECK_INT(answer->streamed, len);
		stage_close(&stage);
	}
}

/* A server that is overloaded does not read what it will not do. */
TEST(a_reply_may_come_before_the_request_is_all_sent)
{
	const size_t size = (size_t)16 << 20;
	char *body = calloc(1, size);
	struct stage_plan plan = http2;

	plan.peer.early = true;
	for (int told = 0; told < 2; told++) {
		struct stage stage;
		stage_open(&stage, &plan);
		stage.serve = serve_hold;
		struct answer *answer = stage_send(
			&stage,
			(struct http_request){
				.method = "POST", .url = "/", .body = body, .body_len = size },
			false);
		while (!stage.held_count)
			stage_turn(&stage);
		struct peer_link *link = stage.held[0]->link;
		int32_t stream = stage.held[0]->stream;
		peer_freeze(link);
		peer_reply(stage.held[0], 429, "retry-after: 7\n", "slow", 4);
		if (told) /* that it need not go on */
			nghttp2_submit_rst_stream(link->h2, NGHTTP2_FLAG_NONE, stream,
						  NGHTTP2_NO_ERROR);
		peer_flush(link);
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
		CHECK_INT(answer->status, 429);
		CHECK_INT(answer->retry_after_s, 7);
		CHECK_STR(answer->body, "slow");
		stage_close(&stage);
	}
	free(body);
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

/* ---- compressed replies ---- */

static void serve_nothing(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 200, "content-encoding: gzip\n", "", 0);
}

TEST(what_has_no_body_is_not_inflated)
{
	static const char *const methods[] = { "HEAD", "GET" };
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_nothing;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		struct answer *answer = stage_send(
			&stage,
			(struct http_request){ .method = methods[i], .url = "/", .gzip = true },
			false);
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s: %s", methods[i], answer->reason);
		CHECK_INT(answer->len, 0);
	}
	stage_close(&stage);
}

static size_t gzip_cut;	   /* bytes that are left out at the end */
static size_t gzip_extra;  /* that follow it */
static int gzip_flip = -1; /* a byte that is wrong */
static const char *gzip_name = "content-encoding: gzip\n";

static void serve_gzip(struct stage *stage, struct peer_request *request)
{
	unsigned char plain[5000], packed[6000] = { 0 };
	z_stream stream = { .next_in = plain, .next_out = packed };

	(void)stage;
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (unsigned char)(i * i / 7);
	stream.avail_in = sizeof(plain);
	stream.avail_out = sizeof(packed);
	CHECK_INT(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, 0), Z_OK);
	CHECK_INT(deflate(&stream, Z_FINISH), Z_STREAM_END);
	size_t len = stream.total_out;
	deflateEnd(&stream);
	if (gzip_flip >= 0)
		packed[gzip_flip] ^= 0xff;
	peer_reply(request, 200, gzip_name, packed, len - gzip_cut + gzip_extra);
}

TEST(gzip_has_two_names_in_any_case)
{
	static const char *const names[] = { "content-encoding: x-gzip\n",
					     "content-encoding: GZip\n",
					     "content-encoding: gzip\n" };
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_gzip;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		gzip_name = names[i];
		struct answer *answer = stage_send(
			&stage, (struct http_request){ .url = "/", .gzip = true }, false);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		CHECK_INT(answer->len, 5000);
	}
	stage_close(&stage);
}

TEST(a_compressed_reply_that_is_broken_is_lost)
{
	static const struct {
		size_t cut, extra;
		int flip;
		enum http_result result;
	} rows[] = {
		{ 0, 0, -1, HTTP_ANSWERED }, { 1, 0, -1, HTTP_LOST }, { 100, 0, -1, HTTP_LOST },
		{ 0, 3, -1, HTTP_LOST },     { 0, 0, 0, HTTP_LOST },  { 0, 0, 40, HTTP_LOST },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage stage;
		gzip_cut = rows[i].cut;
		gzip_extra = rows[i].extra;
		gzip_flip = rows[i].flip;
		stage_open(&stage, &http2);
		stage.serve = serve_gzip;
		struct answer *answer = stage_send(
			&stage, (struct http_request){ .url = "/", .gzip = true }, i % 2);
		stage_wait(&stage, answer);
		CHECKF(answer->result == rows[i].result, "row %zu: %d %s", i, answer->result,
		       answer->reason);
		stage_close(&stage);
	}
}

/* ---- fields that are not the reply's ---- */

static void serve_fields(struct stage *stage, struct peer_request *request)
{
	static const char *const fields =
		"content-type: a/b\nretry-after: 9\nwarning: 299 - \"a\"\n";

	(void)stage;
	if (strcmp(request->path, "/before") == 0) {
		peer_interim(request, 103, "content-encoding: gzip\nretry-after: 5\n");
		peer_interim(request, 103, "content-type: c/d\nwarning: 299 - \"c\"\n");
	} else if (strcmp(request->path, "/behind") == 0) {
		peer_trailers(request, "content-encoding: gzip\ncontent-type: c/d\n"
				       "retry-after: 5\nwarning: 299 - \"c\"\n");
	}
	peer_reply(request, 200, fields, "body", 4);
}

TEST(neither_early_hints_nor_trailers_change_the_reply)
{
	static const char *const paths[] = { "/alone", "/before", "/behind" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct stage stage;
		stage_open(&stage, &http2);
		stage.serve = serve_fields;
		struct answer *answer = stage_send(
			&stage, (struct http_request){ .url = paths[i], .gzip = true }, false);
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s: %s", paths[i], answer->reason);
		CHECK_INT(answer->status, 200);
		CHECK_STR(answer->body, "body");
		CHECK_STR(answer->content_type, "a/b");
		CHECK_INT(answer->retry_after_s, 9);
		CHECK_INT(answer->warnings_count, 1);
		stage_close(&stage);
	}
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
