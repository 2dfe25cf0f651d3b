/* SPDX-License-Identifier: Apache-2.0 */
/* http_bench - what the HTTP client carries, over TLS.
 *
 * A server on a thread of its own floods one stream, as a busy watch would, and answers
 * small writes with 64 in flight; each over HTTP/1.1 and over HTTP/2 in turns, so that
 * their ratio stands even where the machine is busy.  A stream is judged by what our
 * side costs: bytes per second of the client's processor time.
 */
#include "base/attr.h"
#include "bench/server_thread.h"
#include "wire/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAM_BYTES ((uint64_t)512 << 20)
#define WRITES	     8000
#define IN_FLIGHT    64
#define ROUNDS	     3
#define TARGET_MB_S  300

struct client {
	uv_loop_t loop;
	struct http *http;
	uint64_t bytes;
	uint32_t started, ended, failed;
	const char *url;
};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the server ---- */

static void serve(void *context, struct peer_request *request)
{
	(void)context;
	if (strcmp(request->method, "GET") != 0) {
		peer_reply(request, 201, "content-type: application/json\n", "{\"ok\":true}", 11);
		return;
	}
	peer_begin(request, 200, NULL);
	peer_flood(request, STREAM_BYTES);
}

/* ---- the client ---- */

static int on_data(void *context, const char *bytes, size_t len)
{
	(void)bytes;
	((struct client *)context)->bytes += len;
	return 0;
}

static void start(struct client *client, const char *method);

static void on_done(void *context, const struct http_reply *reply)
{
	struct client *client = context;

	client->ended++;
	client->failed += reply->result != HTTP_ANSWERED;
	if (client->started > 1 && client->started < WRITES)
		start(client, "POST");
}

static void start(struct client *client, const char *method)
{
	static char pod[1024];
	struct http_call *call;
	bool writes = strcmp(method, "POST") == 0;
	struct http_request request = { .method = method,
					.url = client->url,
					.body = writes ? pod : NULL,
					.body_len = writes ? sizeof(pod) : 0,
					.deadline_ms = 60000,
					.idle_ms = 30000,
					.data = writes ? NULL : on_data,
					.done = on_done,
					.context = client };

	client->started++;
	if (http_start(client->http, &request, &call, NULL) < 0)
		client->failed++, client->ended++;
}

static void client_open(struct client *client, const struct server *server, bool http1)
{
	struct http_options options = { .ca_file = server->authority.cert_file, .http1 = http1 };

	memset(client, 0, sizeof(*client));
	uv_loop_init(&client->loop);
	if (http_new(&client->loop, &options, &client->http, NULL) < 0)
		abort();
	client->url = peer_url(server->peer, "/");
}

static void client_close(struct client *client)
{
	http_close(client->http, NULL, NULL);
	uv_run(&client->loop, UV_RUN_DEFAULT);
	uv_loop_close(&client->loop);
}

struct rate {
	double wall, cpu; /* per second of each */
};

static struct rate run(struct client *client, const char *method, uint32_t count, double amount)
{
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);

	for (uint32_t i = 0; i < MIN(count, IN_FLIGHT); i++)
		start(client, method);
	while (client->ended < count)
		uv_run(&client->loop, UV_RUN_ONCE);
	return (struct rate){ amount / (seconds(CLOCK_MONOTONIC) - wall),
			      amount / (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) };
}

/* The best of the rounds, each of which has both protocols. */
static uint32_t measure(const struct server *server, const char *method, uint32_t count,
			double amount, struct rate best[2])
{
	uint32_t failed = 0;

	for (int round = 0; round < ROUNDS; round++)
		for (int http2 = 0; http2 < 2; http2++) {
			struct client client;
			client_open(&client, server, !http2);
			struct rate rate = run(&client, method, count, amount);
			best[http2].wall = MAX(best[http2].wall, rate.wall);
			best[http2].cpu = MAX(best[http2].cpu, rate.cpu);
			failed += client.failed;
			client_close(&client);
		}
	return failed;
}

static void print(const char *what, const char *unit, const struct rate best[2])
{
	for (int http2 = 0; http2 < 2; http2++)
		printf("%-22s %-8s %10.0f %10.0f %s\n", what, http2 ? "HTTP/2" : "HTTP/1.1",
		       best[http2].wall, best[http2].cpu, unit);
	printf("%-22s HTTP/2 is %.2f times HTTP/1.1, by cost %.2f\n", what,
	       best[1].wall / best[0].wall, best[1].cpu / best[0].cpu);
}

int main(void)
{
	static struct server server = { .serve = serve };
	struct rate streams[2] = { 0 }, writes[2] = { 0 };

	server_start(&server);
	uint32_t failed = measure(&server, "GET", 1, (double)STREAM_BYTES / 1e6, streams);
	failed += measure(&server, "POST", WRITES, WRITES, writes);
	server_stop(&server);
	printf("%-22s %-8s %10s %10s\n", "over TLS", "", "per s", "per CPU s");
	print("one stream", "MB", streams);
	print("writes, 64 in flight", "requests", writes);
	double rate = MAX(streams[0].cpu, streams[1].cpu);
	bool met = failed == 0 && rate >= TARGET_MB_S;
	printf("http: a stream of %.0f MB per second of one core, target %d, %u failed: %s\n",
	       rate, TARGET_MB_S, failed, met ? "met" : "missed");
	return met ? 0 : 1;
}
