/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_stand.h - a server on a loop, and clients that are nothing but sockets.
 *
 *	struct stand stand;
 *	stand_open(&stand, &(struct httpd_options){ 0 });
 *	struct caller *caller = stand_call(&stand, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
 *	CHECK_INT(caller_read(caller), 200);
 *	CHECK_STR(caller->body, "hello");
 *	stand_close(&stand);
 *
 * The server answers by the path; a test gives its own serve() for what is not here:
 *
 *	/hello         "hello", text/plain
 *	/echo...       method, path, query, content type and length in a line, then the body
 *	/later         when the test says so: stand.held
 *	/big           BIG_LEN bytes
 *	/failed        a body that did not fit
 *	/nothing       as the handler got it
 *	anything else  404
 */
#ifndef GS_TESTS_UNIT_HTTPD_STAND_H
#define GS_TESTS_UNIT_HTTPD_STAND_H

#include "base/err.h"
#include "base/strbuf.h"
#include "test.h"
#include "wire/httpd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#define STAND_HANG_MS 30000 /* a test that takes so long hangs */
#define STAND_HELD    64
#define BIG_LEN	      ((size_t)16 << 20)

struct stand {
	uv_loop_t loop;
	struct httpd *httpd;
	uv_timer_t hang;
	uint32_t handled;
	bool (*serve)(struct stand *stand, const struct httpd_request *request,
		      struct httpd_reply *reply);
	struct httpd_later *held[STAND_HELD];
	size_t held_count;
	uint32_t changed; /* certificates: taken, and refused */
	uint32_t refused;
	char refusal[ERR_TEXT_MAX];
	int closed;
};

/* One connection. */
struct caller {
	struct stand *stand;
	int fd;
	bool ended, reset; /* by the server */
	struct strbuf in;
	size_t used; /* of `in`: answers that were read */
	const char *head;
	char *body;
	size_t body_len;
};

static inline void stand_big(struct strbuf *body)
{
	char block[4096];

	memset(block, 'b', sizeof(block));
	for (size_t i = 0; i < BIG_LEN / sizeof(block); i++)
		strbuf_add(body, block, sizeof(block));
}

static inline void stand_echo(const struct httpd_request *request, struct httpd_reply *reply)
{
	strbuf_addf(&reply->body, "%s %s ?%s [%s] %zu\n", request->method, request->path,
		    request->query, request->content_type, request->body_len);
	strbuf_add(&reply->body, request->body, request->body_len);
	CHECK_INT(request->body[request->body_len], 0);
}

static inline void stand_handle(void *context, const struct httpd_request *request,
				struct httpd_reply *reply)
{
	struct stand *stand = context;

	stand->handled++;
	reply->status = 200;
	reply->content_type = "text/plain";
	if (stand->serve && stand->serve(stand, request, reply))
		return;
	if (strcmp(request->path, "/hello") == 0) {
		strbuf_puts(&reply->body, "hello");
	} else if (strncmp(request->path, "/echo", 5) == 0) {
		stand_echo(request, reply);
	} else if (strcmp(request->path, "/later") == 0) {
		CHECK(stand->held_count < STAND_HELD);
		stand->held[stand->held_count++] = httpd_suspend(request);
	} else if (strcmp(request->path, "/big") == 0) {
		stand_big(&reply->body);
	} else if (strcmp(request->path, "/failed") == 0) {
		reply->body.max = 1;
		strbuf_puts(&reply->body, "too much");
	} else if (strcmp(request->path, "/nothing") == 0) {
		reply->status = 0;
	} else {
		reply->status = 404;
	}
}

static inline void stand_certs_changed(void *context, const struct err *err)
{
	struct stand *stand = context;

	if (!err) {
		stand->changed++;
		return;
	}
	stand->refused++;
	snprintf(stand->refusal, sizeof(stand->refusal), "%s", err->text);
}

static inline void stand_hangs(uv_timer_t *timer)
{
	(void)timer;
	test_fail(__FILE__, __LINE__, "nothing has happened for %d s", STAND_HANG_MS / 1000);
}

static inline void stand_open(struct stand *stand, const struct httpd_options *options)
{
	struct httpd_options own = *options;
	struct err err = ERR_INIT;

	memset(stand, 0, sizeof(*stand));
	uv_loop_init(&stand->loop);
	uv_timer_init(&stand->loop, &stand->hang);
	uv_timer_start(&stand->hang, stand_hangs, STAND_HANG_MS, STAND_HANG_MS);
	own.addr = own.addr ? own.addr : "127.0.0.1:0";
	own.handler = own.handler ? own.handler : stand_handle;
	own.certs_changed = stand_certs_changed;
	own.context = stand;
	if (httpd_new(&stand->loop, &own, &stand->httpd, &err) < 0)
		test_fail(__FILE__, __LINE__, "httpd_new: %s", err.text);
}

/* One turn of the loop, with a rest if there was nothing to do. */
static inline void stand_turn(struct stand *stand)
{
	uv_run(&stand->loop, UV_RUN_NOWAIT);
	usleep(200);
}

static inline void stand_pass(struct stand *stand, uint64_t ms)
{
	uv_update_time(&stand->loop);
	for (uint64_t end_ms = uv_now(&stand->loop) + ms; uv_now(&stand->loop) < end_ms;)
		stand_turn(stand);
}

/* All answers have gone: libmicrohttpd learns that after the client. */
static inline void stand_settle(struct stand *stand)
{
	while (httpd_in_flight(stand->httpd))
		stand_turn(stand);
}

static inline void stand_closed(void *context)
{
	((struct stand *)context)->closed++;
}

/* Everything ends, and nothing of it is left on the loop. */
static inline void stand_close(struct stand *stand)
{
	if (!stand->closed && stand->httpd)
		httpd_close(stand->httpd, 0, stand_closed, stand);
	uv_close((uv_handle_t *)&stand->hang, NULL);
	uv_run(&stand->loop, UV_RUN_DEFAULT);
	CHECK_INT(stand->closed, 1);
	CHECK_INT(uv_loop_close(&stand->loop), 0);
}

/* ---- callers ---- */

/* Of another server on the same loop. */
static inline struct caller *caller_new_at(struct stand *stand, int port)
{
	struct caller *caller = calloc(1, sizeof(*caller));
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };

	CHECK(caller != NULL);
	caller->stand = stand;
	caller->in = (struct strbuf)STRBUF_INIT;
	caller->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(caller->fd >= 0);
	CHECKF(connect(caller->fd, (struct sockaddr *)&to, sizeof(to)) == 0, "%s",
	       strerror(errno));
	return caller;
}

static inline struct caller *caller_new(struct stand *stand)
{
	return caller_new_at(stand, httpd_port(stand->httpd));
}

static inline void caller_free(struct caller *caller)
{
	close(caller->fd);
	strbuf_done(&caller->in);
	free(caller->body);
	free(caller);
}

/* Sends all of it, with turns of the loop; false: the server does not listen any more. */
static inline bool caller_send(struct caller *caller, const void *bytes, size_t len)
{
	for (size_t sent = 0; sent < len;) {
		ssize_t n = send(caller->fd, (const char *)bytes + sent, len - sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n > 0)
			sent += (size_t)n;
		else
			stand_turn(caller->stand);
	}
	return true;
}

static inline bool caller_say(struct caller *caller, const char *text)
{
	return caller_send(caller, text, strlen(text));
}

static inline struct caller *stand_call(struct stand *stand, const char *text)
{
	struct caller *caller = caller_new(stand);

	CHECK(caller_say(caller, text));
	return caller;
}

/* Takes what is there. */
static inline void caller_take(struct caller *caller)
{
	char block[65536];
	ssize_t n;

	while (!caller->ended &&
	       (n = recv(caller->fd, block, sizeof(block), MSG_DONTWAIT)) != -1) {
		caller->ended = n == 0;
		strbuf_add(&caller->in, block, (size_t)n);
	}
	if (!caller->ended && errno != EAGAIN)
		caller->ended = caller->reset = true;
}

/* Whether a whole answer is there; its status, and where it ends. */
static inline bool caller_whole(const struct caller *caller, int *status, size_t *body,
				size_t *len)
{
	const char *head = caller->in.s + caller->used, *end = strstr(head, "\r\n\r\n");
	const char *field = strcasestr(head, "\r\nContent-Length:");

	if (!end || sscanf(head, "HTTP/1.1 %d", status) != 1)
		return false;
	*body = (size_t)(end + 4 - caller->in.s);
	*len = field && field < end ? strtoul(field + 17, NULL, 10) : 0;
	return caller->in.len - *body >= *len;
}

/* The next answer's status, with its body and head; 0: the connection has ended. */
static inline int caller_read(struct caller *caller)
{
	size_t body = 0, len = 0;
	int status = 0;

	for (caller_take(caller); !caller_whole(caller, &status, &body, &len);) {
		if (caller->ended)
			return 0;
		stand_turn(caller->stand);
		caller_take(caller);
	}
	uv_timer_again(&caller->stand->hang);
	free(caller->body);
	caller->body = strndup(caller->in.s + body, len);
	caller->body_len = len;
	caller->head = caller->in.s + caller->used;
	caller->used = body + len;
	return status;
}

/* The server closes; nothing more comes. */
static inline void caller_wait_end(struct caller *caller)
{
	while (!caller->ended) {
		stand_turn(caller->stand);
		caller_take(caller);
	}
	uv_timer_again(&caller->stand->hang);
}

/* A request and its answer on a connection of its own. */
static inline int stand_ask(struct stand *stand, const char *text)
{
	struct caller *caller = stand_call(stand, text);
	int status = caller_read(caller);

	caller_free(caller);
	return status;
}

#define HELLO "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"

static inline void stand_still_serves(struct stand *stand)
{
	CHECK_INT(stand_ask(stand, HELLO), 200);
}

#endif
