/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - our client on a loop, for measurements against a real API server.
 *
 * Whatever goes wrong ends the program with a sentence: a figure that was half measured is
 * worse than none.
 */
#ifndef GS_TESTS_KUBE_BENCH_BENCH_H
#define GS_TESTS_KUBE_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct kube_client;
struct kube_config;
struct strbuf;

struct bench {
	uv_loop_t loop;
	struct kube_config *config;
	struct kube_client *client;
	unsigned left; /* requests of bench_send() on their way */
	bool closed;
};

void bench_open(struct bench *b); /* of KUBECONFIG */
void bench_close(struct bench *b);
void bench_turn(struct bench *b); /* one round of the loop; waits for something */

/* Sends it when there is room (a PATCH merges); what is there already, or gone already, is
 * fine. */
void bench_send(struct bench *b, const char *method, const char *path, const struct strbuf *body);
void bench_settle(struct bench *b); /* until all of them are answered */

__attribute__((noreturn, format(printf, 1, 2))) void bench_fail(const char *format, ...);

/* That word of the command line as a number. */
unsigned bench_number(int argc, char **argv, int at, unsigned otherwise);

uint64_t bench_wall_ns(void);
uint64_t bench_cpu_ns(void); /* of this process, all threads */
uint64_t bench_resident_bytes(void);

/* A node node-<i> with 8 GPUs, in a leaf of four, as JSON. */
void bench_put_node(struct strbuf *out, unsigned i);
/* A pod <name>-<i> as JSON, bound to the node; NULL: it waits for one. */
void bench_put_pod(struct strbuf *out, const char *name, unsigned i, const char *node);

/* The measurements of client_bench, each a mode of the program.  0, or 1 when a target is
 * missed. */
int bench_fill(struct bench *b, unsigned nodes, unsigned pods);
int bench_cache(struct bench *b);
int bench_bind(struct bench *b, unsigned pods);

#endif
