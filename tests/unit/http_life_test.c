/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that start, cancel and close each other, and sets that end. */
#include "test.h"
#include "unit/http_stage.h"

static const struct stage_plan ways[] = {
	{ .tls = false },
	{ .tls = true },
	{ .tls = true, .http2 = true },
};

static void serve_hold(struct stage *stage, struct peer_request *request)
{
	stage->held[stage->held_count++] = request;
}

/* A stream of which the first piece has come; the server has its request as held[]. */
static struct answer *open_stream(struct stage *stage, void (*on_data)(struct answer *answer),
				  void *test)
{
	size_t held = stage->held_count;

	stage->serve = serve_hold;
	struct answer *answer = stage_stream(stage, "/watch");
	answer->on_data = on_data;
	answer->test = test;
	while (stage->held_count == held)
		stage_turn(stage);
	peer_begin(stage->held[held], 200, NULL);
	return answer;
}

TEST(a_cancelled_request_is_never_done)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		struct answer *queued = stage_get(&stage, "/hello");
		http_cancel(queued->call);
		CHECK_INT(http_in_flight(stage.http), 0);
		struct answer *silent = stage_get(&stage, "/silent");
		while (!stage.served)
			stage_turn(&stage);
		http_cancel(silent->call);
		CHECK_INT(http_in_flight(stage.http), 0);
		stage_wait(&stage, stage_get(&stage, "/hello"));
		CHECK(!queued->done && !silent->done);
		CHECK_INT(stage.served, 2);
		stage_close(&stage);
	}
}

static void cancel_self(struct answer *answer)
{
	http_cancel(answer->call);
}

TEST(a_stream_may_cancel_itself)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		struct answer *answer = open_stream(&stage, cancel_self, NULL);
		peer_write(stage.held[0], "event", 5);
		while (!answer->pieces)
			stage_turn(&stage);
		CHECK_INT(http_in_flight(stage.http), 0);
		stage_pass(&stage, 10);
		CHECK(!answer->done);
		CHECK_INT(answer->pieces, 1);
		stage.serve = NULL;
		stage_wait(&stage, stage_get(&stage, "/hello"));
		stage_close(&stage);
	}
}

static void cancel_other(struct answer *answer)
{
	struct answer *other = answer->test;

	if (other->call)
		http_cancel(other->call);
	other->call = NULL;
}

/* Both have data waiting in the same read of the connection. */
TEST(a_stream_may_cancel_another_that_is_about_to_get_data)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		struct answer *first = open_stream(&stage, cancel_other, NULL);
		struct answer *second = open_stream(&stage, cancel_other, first);
		first->test = second;
		peer_write(stage.held[0], "event", 5);
		peer_write(stage.held[1], "event", 5);
		while (!first->pieces && !second->pieces)
			stage_turn(&stage);
		stage_pass(&stage, 10);
		CHECK_INT(first->pieces + second->pieces, 1);
		CHECK_INT(http_in_flight(stage.http), 1);
		stage_close(&stage);
	}
}

static void start_more(struct answer *answer)
{
	struct stage *stage = answer->stage;

	if (stage->answers_count < 50)
		stage_get(stage, "/hello")->on_done = start_more;
}

TEST(data_and_done_may_start_requests)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		struct answer *answer = open_stream(&stage, start_more, NULL);
		stage.serve = NULL;
		peer_write(stage.held[0], "event", 5);
		while (!answer->pieces || http_in_flight(stage.http) > 1)
			stage_turn(&stage);
		CHECK_INT(stage.answers_count, 50);
		CHECK_INT(stage.served, 50);
		peer_end(stage.held[0]);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		stage_close(&stage);
	}
}

static void close_set(struct answer *answer)
{
	http_close(answer->stage->http, stage_closed, answer->stage);
	answer->stage->http = NULL;
}

/* After the client's end the rest of the stage. */
static void close_rest(struct stage *stage)
{
	while (!stage->closed)
		stage_turn(stage);
	CHECK_INT(stage->closed, 1);
	stage->closed = 0;
	stage_close(stage); /* with http NULL: closed() at once */
}

TEST(data_may_close_the_set_with_all_that_is_on_its_way)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		for (int i = 0; i < 5; i++)
			open_stream(&stage, close_set, NULL);
		stage_get(&stage, "/queued");
		for (int i = 0; i < 5; i++)
			peer_write(stage.held[i], "event", 5);
		close_rest(&stage);
	}
}

TEST(done_may_close_the_set_with_all_that_is_on_its_way)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		for (int i = 0; i < 10; i++)
			stage_get(&stage, i % 2 ? "/silent" : "/hello")->on_done = close_set;
		while (stage.http)
			stage_turn(&stage);
		close_rest(&stage);
	}
}

TEST(done_may_cancel_another_that_is_through_too)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		stage_wait(&stage, stage_get(&stage, "/hello"));
		struct answer *first = stage_get(&stage, "/hello");
		struct answer *second = stage_get(&stage, "/hello");
		first->on_done = second->on_done = cancel_other;
		first->test = second;
		second->test = first;
		stage_wait_all(&stage);
		CHECK_INT(first->done + second->done, 1);
		stage_pass(&stage, 10);
		CHECK_INT(first->done + second->done, 1);
		stage_close(&stage);
	}
}

TEST(data_may_stop_a_stream)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		struct answer *answer = open_stream(&stage, NULL, NULL);
		answer->stop = 1;
		peer_write(stage.held[0], "event", 5);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_STOPPED);
		CHECK_INT(answer->status, 200);
		CHECK(answer->reason[0]);
		stage_close(&stage);
	}
}

/* From every moment of a request: each turn of the loop is one more step on its way. */
TEST(a_set_closes_cleanly_at_any_moment)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		for (int turns = 0; turns < 25; turns++) {
			struct stage stage;
			stage_open(&stage, &ways[way]);
			for (int i = 0; i < 6; i++)
				stage_send(
					&stage,
					(struct http_request){ .url = i % 3 ? "/hello" : "/silent",
							       .deadline_ms = 60000,
							       .idle_ms = 50000 },
					i % 2);
			for (int i = 0; i < turns; i++)
				uv_run(&stage.loop, UV_RUN_NOWAIT);
			stage_close(&stage);
		}
}

TEST(every_request_may_be_cancelled_at_any_moment)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++)
		for (int turns = 0; turns < 25; turns++) {
			struct stage stage;
			stage_open(&stage, &ways[way]);
			for (int i = 0; i < 6; i++)
				stage_get(&stage, i % 3 ? "/hello" : "/silent");
			for (int i = 0; i < turns; i++)
				uv_run(&stage.loop, UV_RUN_NOWAIT);
			for (size_t i = 0; i < stage.answers_count; i++)
				if (stage.answers[i]->call)
					http_cancel(stage.answers[i]->call);
			CHECK_INT(http_in_flight(stage.http), 0);
			struct answer *after = stage_get(&stage, "/hello");
			stage_wait(&stage, after);
			CHECK_INT(after->result, HTTP_ANSWERED);
			stage_close(&stage);
		}
}

TEST(a_set_retires_when_the_last_request_has_ended)
{
	struct stage stage;
	struct http_call *call = NULL;

	stage_open(&stage, &ways[2]);
	struct answer *answer = open_stream(&stage, NULL, NULL);
	http_retire(stage.http, stage_closed, &stage);
	struct http_request request = { .method = "GET",
					.url = peer_url(stage.peer, "/hello"),
					.done = stage_done };
	CHECK_INT(http_start(stage.http, &request, &call, NULL), -ESHUTDOWN);
	stage_pass(&stage, 20);
	CHECK_INT(stage.closed, 0);
	CHECK_INT(peer_open(stage.peer), 1);
	peer_end(stage.held[0]);
	while (!stage.closed)
		stage_turn(&stage);
	CHECK(answer->done);
	while (peer_open(stage.peer))
		stage_turn(&stage);
	stage.http = NULL;
	close_rest(&stage);
}

TEST(a_set_without_requests_retires_at_once)
{
	struct stage stage;

	stage_open(&stage, &ways[2]);
	stage_wait(&stage, stage_get(&stage, "/hello"));
	http_retire(stage.http, stage_closed, &stage);
	CHECK_INT(stage.closed, 0);
	stage.http = NULL;
	close_rest(&stage);
}

TEST(a_set_retires_when_its_last_request_is_cancelled_from_inside)
{
	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		open_stream(&stage, cancel_self, NULL);
		http_retire(stage.http, stage_closed, &stage);
		peer_write(stage.held[0], "event", 5);
		stage.http = NULL;
		close_rest(&stage);
	}
}

TEST(a_set_that_retires_can_be_closed)
{
	struct stage stage;

	stage_open(&stage, &ways[2]);
	open_stream(&stage, NULL, NULL);
	http_retire(stage.http, stage_closed, &stage);
	http_close(stage.http, stage_closed, &stage);
	stage.http = NULL;
	while (stage.closed < 2)
		stage_turn(&stage);
	stage.closed = 1;
	close_rest(&stage);
}

/* Else a deadline would begin when the loop last turned, perhaps long ago. */
TEST(a_request_begins_now_however_long_the_loop_has_waited)
{
	struct stage stage;
	stage_open(&stage, &ways[0]);
	uint64_t before = uv_now(&stage.loop);
	uv_sleep(20);
	CHECK_INT(uv_now(&stage.loop), before);
	struct answer *answer = stage_get(&stage, "/hello");
	CHECK(uv_now(&stage.loop) >= before + 20);
	stage_wait(&stage, answer);
	CHECK_INT(answer->result, HTTP_ANSWERED);
	stage_close(&stage);
}

TEST(the_body_may_go_as_soon_as_its_request_is_cancelled)
{
	const size_t size = (size_t)8 << 20;

	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		struct stage stage;
		stage_open(&stage, &ways[way]);
		char *body = calloc(1, size);
		struct answer *watch = open_stream(&stage, cancel_other, NULL);
		stage.serve = NULL;
		struct answer *upload = stage_send(
			&stage,
			(struct http_request){
				.method = "PUT", .url = "/echo", .body = body, .body_len = size },
			false);
		watch->test = upload;
		for (int i = 0; i < 3; i++)
			stage_turn(&stage);
		peer_write(stage.held[0], "event", 5);
		while (upload->call && !upload->done)
			stage_turn(&stage);
		free(body);
		stage_pass(&stage, 10);
		stage_close(&stage);
	}
}

TEST_MAIN()
