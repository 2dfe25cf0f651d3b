/* SPDX-License-Identifier: Apache-2.0 */
/* http_stage.h - a loop with a server and a client on it, for the tests of the client.
 *
 *	struct stage stage;
 *	stage_open(&stage, &(struct stage_plan){ .tls = true, .http2 = true });
 *	struct answer *answer = stage_get(&stage, "/hello");
 *	stage_wait(&stage, answer);
 *	CHECK_STR(answer->body, "hello");
 *	stage_close(&stage);
 *
 * The server answers by the path; a test gives its own serve() for what is not here:
 *
 *	/hello         "hello", text/plain
 *	/echo          the body, after a line with the method and the path
 *	/silent        nothing, ever
 *	/close         "bye", and the connection is closed
 *	/cut           the connection is closed before any answer
 *	anything else  404
 */
#ifndef GS_TESTS_UNIT_HTTP_STAGE_H
#define GS_TESTS_UNIT_HTTP_STAGE_H

#include "base/err.h"
#include "base/strbuf.h"
#include "test.h"
#include "unit/http_certs.h"
#include "unit/http_peer.h"
#include "wire/http.h"

#include <dirent.h>
#include <unistd.h>

#define STAGE_ANSWERS 4096
#define STAGE_HANG_MS 30000 /* a test that takes so long hangs */

struct stage_plan {
	bool tls, http2, http1_client, no_trust;
	const struct http_options *options; /* the rest of the client's */
	struct peer_options peer;	    /* the rest of the server's */
};

struct stage;

/* What has become of a request. */
struct answer {
	struct stage *stage;
	struct http_call *call;
	bool done;
	enum http_result result;
	int status;
	char *body;
	size_t len, streamed, pieces;
	char content_type[128], reason[256], warning[1100];
	int64_t retry_after_s;
	size_t warnings_count;
	uint32_t http_major;
	uint64_t bytes_in;
	int stop; /* what data() returns */
	void (*on_data)(struct answer *answer);
	void (*on_done)(struct answer *answer);
	void *test;
};

struct stage {
	uv_loop_t loop;
	struct peer *peer;
	struct http *http;
	uv_timer_t hang;
	uint32_t served;
	uint32_t asked; /* connections that only found out that HTTP/2 is not spoken */
	void (*serve)(struct stage *stage, struct peer_request *request);
	struct answer *answers[STAGE_ANSWERS];
	size_t answers_count;
	struct peer_request *held[STAGE_ANSWERS]; /* by tests that answer later */
	size_t held_count;
	bool starting; /* inside http_start() */
	int closed;    /* how often closed() was called */
};

/* Made once: keys take time under valgrind. */
static struct cert stage_authority, stage_server, stage_client;

static inline void stage_certs(void)
{
	if (stage_authority.cert_file[0])
		return;
	cert_make(&stage_authority, CERT_AUTHORITY, NULL, 2);
	cert_make(&stage_server, CERT_SERVER, &stage_authority, 1);
	cert_make(&stage_client, CERT_CLIENT, &stage_authority, 1);
}

static inline void stage_echo(struct peer_request *request)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&text, "%s %s\n", request->method, request->path);
	strbuf_add(&text, request->body, request->body_len);
	peer_reply(request, 200, NULL, text.s, text.len);
}

static inline void stage_serve(void *context, struct peer_request *request)
{
	struct stage *stage = context;
	struct peer_link *link = request->link;

	stage->served++;
	if (stage->serve) {
		stage->serve(stage, request);
	} else if (strcmp(request->path, "/hello") == 0) {
		peer_reply(request, 200, "content-type: text/plain\n", "hello", 5);
	} else if (strncmp(request->path, "/echo", 5) == 0) {
		stage_echo(request);
	} else if (strcmp(request->path, "/close") == 0) {
		peer_reply(request, 200, "connection: close\n", "bye", 3);
		peer_cut(link, false);
	} else if (strcmp(request->path, "/cut") == 0) {
		peer_cut(link, false);
	} else if (strcmp(request->path, "/silent") != 0) {
		peer_reply(request, 404, NULL, "no", 2);
	}
}

static inline void stage_hangs(uv_timer_t *timer)
{
	(void)timer;
	test_fail(__FILE__, __LINE__, "nothing has happened for %d s", STAGE_HANG_MS / 1000);
}

static inline void stage_open(struct stage *stage, const struct stage_plan *plan)
{
	struct peer_options peer = plan->peer;
	struct http_options options = plan->options ? *plan->options : (struct http_options){ 0 };
	struct err err = ERR_INIT;

	memset(stage, 0, sizeof(*stage));
	stage_certs();
	uv_loop_init(&stage->loop);
	uv_timer_init(&stage->loop, &stage->hang);
	uv_timer_start(&stage->hang, stage_hangs, STAGE_HANG_MS, STAGE_HANG_MS);
	if (plan->tls && !peer.cert_file) {
		peer.cert_file = stage_server.cert_file;
		peer.key_file = stage_server.key_file;
	}
	peer.http2 = plan->http2;
	peer.serve = stage_serve;
	peer.context = stage;
	stage->peer = peer_new(&stage->loop, &peer);
	stage->asked = plan->tls && !plan->http2 && !plan->http1_client;
	options.http1 = plan->http1_client;
	if (!options.ca_file && !plan->no_trust)
		options.ca_file = stage_authority.cert_file;
	if (http_new(&stage->loop, &options, &stage->http, &err) < 0)
		test_fail(__FILE__, __LINE__, "http_new: %s", err.text);
}

static inline void stage_take(struct answer *answer, const struct http_reply *reply)
{
	answer->result = reply->result;
	answer->status = reply->status;
	answer->body = malloc(reply->len + 1);
	memcpy(answer->body, reply->body, reply->len + 1);
	answer->len = reply->len;
	answer->retry_after_s = reply->retry_after_s;
	answer->warnings_count = reply->warnings_count;
	answer->http_major = reply->http_major;
	answer->bytes_in = reply->bytes_in;
	snprintf(answer->content_type, sizeof(answer->content_type), "%s", reply->content_type);
	snprintf(answer->reason, sizeof(answer->reason), "%s", reply->reason);
	if (reply->warnings_count)
		snprintf(answer->warning, sizeof(answer->warning), "%s",
			 reply->warnings[reply->warnings_count - 1]);
}

static inline void stage_done(void *context, const struct http_reply *reply)
{
	struct answer *answer = context;

	CHECK(!answer->stage->starting);
	CHECK(!answer->done);
	stage_take(answer, reply);
	answer->done = true;
	answer->call = NULL;
	uv_timer_again(&answer->stage->hang);
	if (answer->on_done)
		answer->on_done(answer);
}

static inline int stage_data(void *context, const char *bytes, size_t len)
{
	struct answer *answer = context;

	(void)bytes;
	CHECK(!answer->done);
	CHECK(len > 0);
	answer->streamed += len;
	answer->pieces++;
	if (answer->on_data)
		answer->on_data(answer);
	return answer->stop;
}

static inline struct answer *stage_answer(struct stage *stage)
{
	CHECK(stage->answers_count < STAGE_ANSWERS);
	struct answer *answer = calloc(1, sizeof(*answer));
	CHECK(answer != NULL);
	stage->answers[stage->answers_count++] = answer;
	answer->stage = stage;
	return answer;
}

/* Starts it; a URL that begins with / is a path of the server. */
static inline struct answer *stage_send(struct stage *stage, struct http_request request,
					bool streams)
{
	struct answer *answer = stage_answer(stage);
	struct err err = ERR_INIT;

	request.done = stage_done;
	request.data = streams ? stage_data : NULL;
	request.context = answer;
	if (!request.method)
		request.method = "GET";
	if (request.url[0] == '/')
		request.url = peer_url(stage->peer, request.url);
	stage->starting = true;
	int r = http_start(stage->http, &request, &answer->call, &err);
	stage->starting = false;
	CHECKF(r == 0, "%s", err.text);
	return answer;
}

static inline struct answer *stage_get(struct stage *stage, const char *path)
{
	return stage_send(stage, (struct http_request){ .url = path }, false);
}

static inline struct answer *stage_stream(struct stage *stage, const char *path)
{
	return stage_send(stage, (struct http_request){ .url = path }, true);
}

static inline struct answer *stage_post(struct stage *stage, const char *path, const char *body)
{
	return stage_send(
		stage,
		(struct http_request){
			.method = "POST", .url = path, .body = body, .body_len = strlen(body) },
		false);
}

/* Connections for requests. */
static inline uint32_t stage_accepted(const struct stage *stage)
{
	return peer_accepted(stage->peer) - stage->asked;
}

static inline void stage_turn(struct stage *stage)
{
	uv_run(&stage->loop, UV_RUN_ONCE);
}

static inline void stage_wait(struct stage *stage, const struct answer *answer)
{
	while (!answer->done)
		stage_turn(stage);
}

static inline void stage_wait_all(struct stage *stage)
{
	while (http_in_flight(stage->http))
		stage_turn(stage);
}

/* Turns of the loop for so long. */
static inline void stage_pass(struct stage *stage, uint64_t ms)
{
	uint64_t end_ms;

	uv_update_time(&stage->loop);
	for (end_ms = uv_now(&stage->loop) + ms; uv_now(&stage->loop) < end_ms;) {
		uv_run(&stage->loop, UV_RUN_NOWAIT);
		usleep(1000);
	}
}

static inline void stage_closed(void *context)
{
	((struct stage *)context)->closed++;
}

/* Everything ends, and nothing of it is left on the loop. */
static inline void stage_close(struct stage *stage)
{
	http_close(stage->http, stage_closed, stage);
	peer_close(stage->peer);
	uv_close((uv_handle_t *)&stage->hang, NULL);
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	CHECK_INT(stage->closed, 1);
	CHECK_INT(uv_loop_close(&stage->loop), 0);
	for (size_t i = 0; i < stage->answers_count; i++) {
		free(stage->answers[i]->body);
		free(stage->answers[i]);
	}
}

/* Descriptors of this process. */
static inline unsigned stage_descriptors(void)
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

#endif
