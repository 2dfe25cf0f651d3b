/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.h - from a pending pod to a bound one with its GPUs locked.
 *
 * Follows nodes, pods, leases, claims and what else matters (caches), decides on what waits
 * by priority and arrival (the engine), locks the GPUs (locks.h) and binds.  Deciding is
 * serial and takes microseconds; locking and binding go on for hundreds of pods at a time,
 * which the engine sees as placed meanwhile.
 *
 * It works while it leads and knows everything: scheduler_lead().  What it knew dies with it;
 * the next one rebuilds it from nodes, pods and leases.  One loop, one thread.
 */
#ifndef GS_SCHEDULER_SCHEDULER_H
#define GS_SCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/locks.h"

struct clock;
struct err;
struct kube_client;
struct log;
struct metrics;
struct scheduler;
struct strbuf;

#define SCHEDULER_NAMES_MAX 16

struct scheduler_options {
	struct kube_client *client; /* closed after the scheduler is */
	const struct clock *clock;
	const struct log *log;
	struct metrics *metrics;
	const char *const *names; /* spec.schedulerName of our pods; copied, as all strings */
	size_t names_count;
	const char *instance; /* of this process, for events */
	const char *lock_namespace;
	enum lock_mode lock_mode;
	const char *config_file; /* NULL: what the cluster has */
	uint64_t seed;
	uint32_t max_flights; /* decisions on their way; 0: 512 */
	/* It cannot go on (locks of the other mode, ...): one sentence.  May close it. */
	void (*failed)(void *context, const char *why);
	void *context;
};

/* Begins to follow the cluster.  0, -EINVAL, -ENOMEM. */
int scheduler_new(const struct scheduler_options *options, struct scheduler **ret,
		  struct err *err);

/* Decides from now on (once all is known), or no longer: what is on its way goes on. */
void scheduler_lead(struct scheduler *s, bool lead);

/* No new decisions; drained() comes when nothing is on its way any more, or after grace_ms.  Events
 * that wait are sent as far as that takes no more than two seconds. */
void scheduler_drain(struct scheduler *s, uint32_t grace_ms, void (*drained)(void *context),
		     void *context);
/* What is on its way may still happen.  The loop must run once more.  NULL is fine. */
void scheduler_free(struct scheduler *s);

/* Whether everything is known; if not, appends what is missing. */
bool scheduler_ready(const struct scheduler *s, struct strbuf *why);
/* Brings the figures up to date that are not counted as things happen. */
void scheduler_measure(struct scheduler *s);

#endif
