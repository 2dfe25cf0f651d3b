/* SPDX-License-Identifier: Apache-2.0 */
/* bare.h - a client that does nothing but send: the ceiling for all others.
 *
 * libcurl on one connection, a fixed number of slots, prepared bodies.  No retry, no check
 * but that the caller looks at the code.
 */
#ifndef GS_TESTS_KUBE_BENCH_BARE_H
#define GS_TESTS_KUBE_BENCH_BARE_H

#define BARE_SLOTS	64 /* in flight */
#define BARE_BODY_MAX	16384
#define BARE_ANSWER_MAX 16384

struct bare;
struct kube_config;

/* A request has ended; `answer` is the begin of its body.  What is sent from here on that slot
 * goes before anybody waits; a slot on which nothing is sent stays free. */
typedef void (*bare_ended_fn)(void *context, unsigned slot, long code, const char *answer);

/* The kubeconfig must have its certificates inside.  Fails by bench_fail(). */
struct bare *bare_new(const struct kube_config *config, bare_ended_fn ended, void *context);
void bare_free(struct bare *bare);

/* `path` below the server's URL.  Copied. */
void bare_send(struct bare *bare, unsigned slot, const char *method, const char *path,
	       const char *body);
/* Until every slot is free. */
void bare_run(struct bare *bare);

#endif
