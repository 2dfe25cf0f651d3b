/* SPDX-License-Identifier: Apache-2.0 */
/* client_bench - what our client costs and reaches on a real API server.
 *
 *	tests/kube/cluster run -- build/tests/kube/bench/client_bench [NODES PODS BINDINGS]
 *
 * Fills the server with nodes and pods, follows all of them with a fresh process, and binds
 * pods by turns with a bare client that only posts.  CPU is counted, not the clock, where
 * one core is meant: others use the machine too.  Fails when a target is missed. */
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/num.h"
#include "bench.h"
#include "kube/client.h"
#include "kube/config.h"

extern char **environ;

void bench_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "client_bench: ");
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

static const struct log bench_log = { .fd = 2, .level = LOG_WARN, .clock = &clock_system };

void bench_open(struct bench *b)
{
	struct kube_config_source source = { 0 };
	struct kube_client_options options = { .loop = &b->loop,
					       .clock = &clock_system,
					       .log = &bench_log };
	struct err err = ERR_INIT;

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

/* This program once more, in a process of its own: memory of one measurement is none of
 * another's. */
static int again(const char *self, const char *mode)
{
	char *words[] = { (char *)self, (char *)mode, NULL };
	pid_t child;
	int status;

	if (posix_spawn(&child, self, NULL, NULL, words, environ) != 0 ||
	    waitpid(child, &status, 0) != child)
		bench_fail("%s cannot be run", self);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static unsigned number(int argc, char **argv, int at, unsigned otherwise)
{
	uint32_t n = otherwise;

	if (argc > at && parse_u32(argv[at], strlen(argv[at]), &n) < 0)
		bench_fail("%s is no number", argv[at]);
	return n;
}

int main(int argc, char **argv)
{
	struct bench b;
	int missed;

	if (!getenv("KUBECONFIG"))
		bench_fail("run it by tests/kube/cluster run --, or set KUBECONFIG to a cluster "
			   "that may be filled with pods");
	bench_open(&b);
	if (argc == 2 && strcmp(argv[1], "cache") == 0) {
		missed = bench_cache(&b);
	} else {
		missed = bench_fill(&b, number(argc, argv, 1, 5000), number(argc, argv, 2, 50000));
		missed |= again("/proc/self/exe", "cache");
		missed |= bench_bind(&b, number(argc, argv, 3, 32000));
	}
	bench_close(&b);
	return missed;
}
