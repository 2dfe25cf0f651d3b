/* SPDX-License-Identifier: Apache-2.0 */
/* decide.h - which fault a request gets.
 *
 * The draw of a rule for a request is a function of the seed, the rule, the request's
 * identity (target.h) and how many requests of that identity the rule has met before:
 * it does not depend on what other connections do meanwhile.  (nth=, every= and the
 * limits count over all identities and do, as far as requests race.)
 *
 * All rules that match count the request; the first that fires is the one.  A delay lets
 * the rules after it fire too.
 *
 * With a log to replay, the rules are not asked: the n-th request of an identity gets
 * what the log says it got.
 */
#ifndef GS_TESTS_KUBE_PROXY_DECIDE_H
#define GS_TESTS_KUBE_PROXY_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fault.h"

struct decider;
struct err;
struct script;
struct target;

#define DECIDE_IDENTITIES_MAX ((uint32_t)1 << 20) /* those beyond share one */

struct decision_part {
	size_t rule; /* from 1; 0: of a replayed log without it */
	struct fault fault;
};

struct decision {
	uint64_t n;		       /* the request is the n-th of its identity, from 1 */
	struct decision_part parts[2]; /* a delay, then something else; or one of them */
	size_t count;
};

/* The script is borrowed; NULL: no rules. */
struct decider *decider_new(const struct script *script, uint64_t seed); /* NULL: no memory */
void decider_free(struct decider *decider);

/* Replays the faults of this log (record.h) from now on.  0, -EINVAL, -ENOMEM. */
int decider_replay(struct decider *decider, const char *name, const char *text, size_t len,
		   struct err *err);

/* 0 or -ENOMEM. */
int decide(struct decider *decider, const struct target *target, uint64_t now_ms,
	   struct decision *ret);

/* While it is off, requests are counted and get no faults. */
void decider_switch(struct decider *decider, bool on);
bool decider_is_on(const struct decider *decider);

uint64_t decider_requests(const struct decider *decider);
uint64_t decider_faults(const struct decider *decider, enum fault_kind kind);

#endif
