/* SPDX-License-Identifier: Apache-2.0 */
/* client_bench - what our client costs and reaches on a real API server.
 *
 *	tests/kube/cluster run -- build/tests/kube/bench/client_bench [NODES PODS BINDINGS]
 *
 * Fills the server with nodes and pods, follows all of them with a fresh process, and binds
 * pods by turns with a bare client that only posts.  CPU is counted, not the clock, where
 * one core is meant: others use the machine too.  Fails when a target is missed. */
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

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

int main(int argc, char **argv)
{
	struct bench b;
	int missed;

	bench_open(&b);
	if (argc == 2 && strcmp(argv[1], "cache") == 0) {
		missed = bench_cache(&b);
	} else {
		missed = bench_fill(&b, bench_number(argc, argv, 1, 5000),
				    bench_number(argc, argv, 2, 50000));
		missed |= again("/proc/self/exe", "cache");
		missed |= bench_bind(&b, bench_number(argc, argv, 3, 32000));
	}
	bench_close(&b);
	return missed;
}
