/* SPDX-License-Identifier: Apache-2.0 */
/* bind.h - putting a pod onto its node.
 *
 * The Binding carries the pod's uid, the resourceVersion on which the decision was made,
 * and the annotations, which the server merges into the pod in the same transaction.  So
 * a Binding that comes late cannot land after the world has moved on, and no pod is ever
 * seen bound without its decision.
 *
 * The server does not check the annotations, and a pod with an illegal key can never be
 * updated again: they are checked here.
 *
 * Refused or unanswered, the pod is read again and the result says what became of it.
 */
#ifndef GS_KUBE_BIND_H
#define GS_KUBE_BIND_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct json;
struct kube_client;
struct kube_pair;
struct kube_reply;
struct kube_binding; /* one that is on its way */

enum kube_bind_outcome {
	KUBE_BIND_DONE, /* by us, with our annotations */
	/* Not bound, same version: the identical may be sent again; unless `pod` has gates or is
	 * being deleted, for which the server refuses it every time. */
	KUBE_BIND_SAME,
	KUBE_BIND_MOVED,     /* not bound, but changed: this decision is over */
	KUBE_BIND_ELSEWHERE, /* bound, by another or by another attempt of ours */
	KUBE_BIND_GONE,	     /* deleted, or another pod has its name */
	KUBE_BIND_UNSENT,    /* certainly not done: unreachable, overloaded, no credentials */
	KUBE_BIND_REFUSED,   /* for good: forbidden, invalid */
	KUBE_BIND_UNKNOWN,   /* nothing is known; whatever it holds must stay held */
};

struct kube_bind_result {
	enum kube_bind_outcome outcome;
	const struct kube_reply *reply; /* to the Binding; its message says why */
	const struct json *pod;		/* as read again; NULL if it was not */
};

/* Everything is copied. */
struct kube_bind {
	const char *namespace, *pod, *uid;
	const char *version; /* resourceVersion of the pod that was decided on */
	const char *node;
	const struct kube_pair *annotations;
	size_t annotations_count;
	/* The key among them whose value no other attempt has: how ours is known again. */
	const char *attempt_key;
	uint32_t reread_ms; /* as in kube_write */
	void (*done)(void *context, const struct kube_bind_result *result);
	void (*dropped)(void *context); /* as in kube_request */
	void *context;
};

/* 0 (done() comes later, from the loop), -EINVAL or -E2BIG for what must not be sent,
 * -ENOMEM.  `ret` (may be NULL) is valid until done() or kube_bind_cancel(). */
int kube_bind(struct kube_client *client, const struct kube_bind *bind, struct kube_binding **ret,
	      struct err *err);

/* done() is not called any more.  The pod may have been bound. */
void kube_bind_cancel(struct kube_binding *binding);

/* "done", "same version", ...: for logs and metrics. */
const char *kube_bind_outcome_name(enum kube_bind_outcome outcome);

#endif
