/* SPDX-License-Identifier: Apache-2.0 */
/* claims_private.h - shared by claims.c (who names which claim), claims_status.c (what a
 * claim should say) and claims_write.c (saying it). */
#ifndef GS_SCHEDULER_CLAIMS_PRIVATE_H
#define GS_SCHEDULER_CLAIMS_PRIVATE_H

#include <uv.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"
#include "kube/backoff.h"
#include "kube/object.h"
#include "kube/reply.h"
#include "kube/views/gpu.h"
#include "scheduler/claims.h"

struct kube_writing;
struct strbuf;

enum claimant_state {
	CLAIMANT_UNKNOWN, /* not bound; we have said nothing of it */
	CLAIMANT_WAITS,
	CLAIMANT_FAILED,
	CLAIMANT_RESERVED,
	CLAIMANT_BOUND,
	CLAIMANT_STATES,
};

/* A pod that names a claim. */
struct claimant {
	struct claim *claim;
	char *uid, *name;
	enum claimant_state state;
	uint32_t gpus;	 /* reserved or bound: ids */
	char *node;	 /* likewise; NULL otherwise */
	char *allocated; /* bound: the pod's annotation */
	char *message;	 /* why it waits, or NULL */
};

/* What a claim should say next. */
struct claim_next {
	enum claim_phase phase;
	const struct claimant *shown; /* whose node and ids are shown, or NULL */
	bool back;		      /* a step that is taken only after a while */
	bool holds;		      /* stays as it is, until something happens */
};

struct claim {
	struct claims *claims;
	char *key; /* "namespace/name" */
	char *namespace, *name;
	VEC(struct claimant *) pods; /* by name, then uid */
	uint32_t count[CLAIMANT_STATES];

	uint32_t position; /* in the heap of what is due, or HEAP_NONE */
	uint64_t due_ms;
	uint64_t not_before_ms; /* the next write */
	uint64_t message_ms;	/* the next write of a message alone */
	uint64_t leaving_ms;	/* since when a step back is due; 0: none is */
	bool was_bound;		/* we have seen a bound pod of it, since it was last Pending */
	struct kube_writing *writing;
	struct claim_next written; /* what that says */
	bool touched;		   /* while it was on its way */
	/* The version that was written over: the cache is behind while it has that. */
	char stale[KUBE_VERSION_MAX + 1];
	uint64_t stale_until_ms;
	struct backoff backoff;
};

struct claims {
	struct claims_options options;
	struct map by_key, by_uid;
	struct heap due; /* of claims, while we are active */
	struct rng rng;
	uv_timer_t *timer; /* frees itself */
	uint32_t writes;
	bool active;
	enum kube_reason trouble; /* that was logged last */
};

/* claims_status.c */
void claim_next(const struct claim *claim, enum claim_phase now, struct claim_next *ret);
/* Appends the patch. */
void claim_put_patch(const struct claim *claim, const struct kube_object *object,
		     const struct claim_view *view, const struct claim_next *next,
		     struct strbuf *out);

enum claim_difference { CLAIM_SAME, CLAIM_OTHER_MESSAGE, CLAIM_DIFFERENT };

/* What the patch would change in the document's status. */
enum claim_difference claim_compare(const struct json *document, const struct json *patch);

/* claims_write.c: something about the claim has changed: looks at it soon. */
void claim_touch(struct claim *claim);
/* The same, where a pod has come, gone or been reserved: what is on its way may be wrong by
 * now, and is stopped if it has not gone out yet. */
void claim_pods_changed(struct claim *claim);
void claim_forget_due(struct claim *claim);
void claims_tick(uv_timer_t *timer);
bool claim_due_before(union heap_item a, union heap_item b, void *context);
void claim_due_moved(union heap_item item, uint32_t position, void *context);

/* claims.c: frees it if nobody knows it any more. */
void claim_drop_if_unused(struct claim *claim);

#endif
