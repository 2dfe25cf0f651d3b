/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.h - the modes of schedule_bench.  See schedule.c. */
#ifndef GS_TESTS_KUBE_BENCH_SCHEDULE_H
#define GS_TESTS_KUBE_BENCH_SCHEDULE_H

#include <stdbool.h>

struct bench;
struct kube_cache;
struct strbuf;

/* All pods of the namespace default that the field selector takes (NULL: all), listed. */
struct kube_cache *schedule_pods(struct bench *b, const char *field_selector);

/* Says that it is ready, and waits for a line on stdin. */
void schedule_wait_for_go(void);

/* bare.c's client takes the place of a scheduler for the pods that wait.  With locks: a Lease
 * is PUT before each Binding. */
int schedule_bare(struct bench *b, unsigned pods, bool locks);

/* Tells when so many pods more were seen bound. */
int schedule_watch(struct bench *b, unsigned pods, unsigned seconds);
/* Makes pods for that scheduler at a steady rate and tells how long each took to be bound. */
int schedule_online(struct bench *b, unsigned pods, unsigned per_second, const char *scheduler);

/* A pod of one GPU, for that scheduler. */
void schedule_put_pod(struct strbuf *out, unsigned i, const char *scheduler);

#endif
