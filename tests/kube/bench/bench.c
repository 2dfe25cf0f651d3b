/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "base/strbuf.h"
#include "kube/client.h"
#include "kube/config.h"

void bench_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, arguments);
	fprintf(stderr, "\n");
	va_end(arguments);
	exit(2);
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint64_t bench_wall_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t bench_cpu_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t bench_resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long all, resident = 0;

	if (!f || fscanf(f, "%lu %lu", &all, &resident) != 2)
		bench_fail("/proc/self/statm cannot be read");
	fclose(f);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

unsigned bench_number(int argc, char **argv, int at, unsigned otherwise)
{
	uint32_t n = otherwise;

	if (argc > at && parse_u32(argv[at], strlen(argv[at]), &n) < 0)
		bench_fail("%s is no number", argv[at]);
	return n;
}

static const struct log bench_log = { .fd = 2, .level = LOG_WARN, .clock = &clock_system };

void bench_open(struct bench *b)
{
	struct kube_config_source source = { 0 };
	struct kube_client_options options = { .loop = &b->loop,
					       .clock = &clock_system,
					       .log = &bench_log };
	struct err err = ERR_INIT;

	if (!getenv("KUBECONFIG"))
		bench_fail("run it by tests/kube/cluster run --, or set KUBECONFIG to a cluster "
			   "that may be filled with pods");
	memset(b, 0, sizeof(*b));
	if (uv_loop_init(&b->loop) < 0 || kube_config_load(&source, &b->config, &err) < 0)
		bench_fail("%s", err.text);
	options.config = b->config;
	if (kube_client_new(&options, &b->client, &err) < 0)
		bench_fail("%s", err.text);
}

static void has_closed(void *context)
{
	((struct bench *)context)->closed = true;
}

void bench_close(struct bench *b)
{
	kube_client_close(b->client, has_closed, b);
	while (!b->closed)
		uv_run(&b->loop, UV_RUN_ONCE);
	uv_run(&b->loop, UV_RUN_DEFAULT);
	uv_loop_close(&b->loop);
	kube_config_free(b->config);
}

void bench_turn(struct bench *b)
{
	uv_run(&b->loop, UV_RUN_ONCE);
}

/* Many requests, one after the other */

static void sent(void *context, const struct kube_reply *reply)
{
	struct bench *b = context;

	if (reply->reason != KUBE_OK && reply->reason != KUBE_ALREADY_EXISTS &&
	    reply->reason != KUBE_NOT_FOUND)
		bench_fail("%s", reply->message);
	b->left--;
}

void bench_send(struct bench *b, const char *method, const char *path, const struct strbuf *body)
{
	bool patch = strcmp(method, "PATCH") == 0;
	struct kube_request request = { .method = method,
					.path = path,
					.content_type =
						patch ? "application/merge-patch+json" : NULL,
					.body = body ? body->s : NULL,
					.body_len = body ? body->len : 0,
					.done = sent,
					.context = b };
	struct err err = ERR_INIT;

	b->left++;
	if (kube_send(b->client, &request, NULL, &err) < 0)
		bench_fail("%s", err.text);
	while (kube_waiting(b->client) > 256)
		bench_turn(b);
}

void bench_settle(struct bench *b)
{
	while (b->left)
		bench_turn(b);
}
