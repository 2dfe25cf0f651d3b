/* SPDX-License-Identifier: Apache-2.0 */
/* evict.h - one pod is asked to go: a condition that says why, then its deletion. */
#ifndef GS_SCHEDULER_EVICT_H
#define GS_SCHEDULER_EVICT_H

#include <stdbool.h>

struct kube_writing;
struct nomination;
struct pod;
struct scheduler;
struct task;

struct victim {
	struct scheduler *scheduler;
	char *uid, *namespace, *name;
	struct {
		char *uid, *namespace, *name;
	} preemptor;
	bool ending;   /* it is going already */
	bool marked;   /* its status says, or may say, that it goes; but it does not yet */
	bool deleting; /* its deletion is on its way: `writing` */
	struct kube_writing *writing;
	struct nomination *nomination;
	struct victim *twin; /* the same pod, for another nomination; or NULL */
	/* The server refuses; not from inside victim_ask().  Frees the victim. */
	void (*failed)(void *context, const char *why); /* context: nomination */
};

struct victim *victim_new(struct scheduler *s, const struct pod *pod,
			  const struct task *preemptor); /* NULL: out of memory */
void victim_free(struct victim *victim);		 /* what is on its way may still happen */
/* The first of those who are that pod, or NULL; its twins follow. */
struct victim *victim_find(const struct scheduler *s, const char *uid);
/* 0, or it cannot be asked at all. */
int victim_ask(struct victim *victim);
/* It may stay: unless its deletion is on its way, its status says so. */
void victim_spare(struct victim *victim);
/* The cache shows that it is gone, perhaps before the server has answered us. */
void victim_gone(struct victim *victim);

#endif
