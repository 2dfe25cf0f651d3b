/* SPDX-License-Identifier: Apache-2.0 */
/* rival.h - a scheduler without judgement: it locks any GPUs for any pod that waits, binds
 * some and gives others up, and trusts nothing but locks.h that this ends well.
 *
 * Several of them on one loop want the same pods and the same cards.  What each write did to
 * the Leases is judged afterwards, from etcd's history (tests/kube/history).
 */
#ifndef GS_TESTS_KUBE_CLIENT_RIVAL_H
#define GS_TESTS_KUBE_CLIENT_RIVAL_H

#include "live.h"

#include "base/log.h"
#include "base/rng.h"
#include "scheduler/locks.h"

#define RIVAL_NODES 2
#define RIVAL_CARDS 4 /* of each node */
#define RIVAL_JOBS  6 /* at once */
#define RIVAL_PODS  24

struct rival;

/* A pod, or those of a gang of two that are not bound yet, on their way. */
struct rival_job {
	struct rival *rival;
	bool busy;
	char gang[64];	/* or "" */
	unsigned count; /* of members, 1 or 2 */
	unsigned taken, ended;
	struct rival_member {
		struct rival_job *job;
		struct lock *lock;
		char name[64], uid[64], version[32], node[16];
		char cards[RIVAL_CARDS][32];
		unsigned cards_count;
		uint32_t attempt;
	} members[2];
};

struct rival {
	struct live live;
	struct kube_caches *caches;
	struct kube_cache *pods;
	struct locks *locks;
	struct log log;
	struct rng rng;
	struct rival_job jobs[RIVAL_JOBS];
	bool ready, wrong, paused;
	unsigned takes, wins, losses, binds, gang_binds;
};

/* On the loop of `beside`, or one of its own (NULL). */
void rival_open(struct rival *rival, struct live *beside, const char *kubeconfig,
		enum lock_mode mode, uint64_t seed);
/* As if killed: whatever it holds stays where it is. */
void rival_close(struct rival *rival);

/* Begins jobs as long as there is room for them. */
void rival_go(struct rival *rival);
bool rival_is_idle(const struct rival *rival);

#endif
