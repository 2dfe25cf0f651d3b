/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h - GpuClaim.status: where each claim stands, by what became of its pods.
 *
 * A claim describes what each pod gets that names it.  Its phase, in this order:
 *
 *	Bound		a pod of it is bound with a decision; `allocated`, nodeName and gpuIds are
 *			those of the first by name, `allocated` counts the others ("n1:0,1 +3"),
 *			allocations[] lists the first CLAIM_ALLOCATIONS_MAX
 *	Reserved	GPUs are locked for one; nodeName and gpuIds say which
 *	Failed		it has pods, and all are wrong in themselves
 *	Pending		else
 *
 * and `message` has why the first one waits that does, also of a claim that is Bound; of a
 * claim with several pods it ends with "(pod <name>)", or "(pod <name> and 3 more)".
 *
 * Who watches a claim sees it go Pending -> Reserved -> Bound or Failed -> Pending, and Bound
 * -> Pending when its last bound pod has ended, never another step: where the pods were
 * faster, the steps between are written too, so that a pod's claim is Reserved once before it
 * is Bound, and Failed once if a reservation came to nothing.  A step back is taken only if
 * nothing was reserved or bound for CLAIM_LEAVE_MS, for mostly the next pod comes at once;
 * a claim that is Bound and has a reservation of another pod stays so until that is bound.
 *
 * A claim is written at most every CLAIM_PAUSE_MS (CLAIM_MESSAGE_MS if only the message is
 * another), once at a time, CLAIM_WRITES_MAX of all together, in the background, behind all
 * Bindings.  A write is a merge patch of the status that carries the claim's resourceVersion:
 * what comes next depends on what is there, and another scheduler may have written meanwhile.
 * (The server ignores a uid in it, but no other claim of that name ever had that version.)
 * After each the cache must show a later version before the next.  What the status says
 * already is not written; what has become wrong before its turn came is not sent.
 *
 * Several schedulers may have pods of one claim.  All see who is bound; of pods that are not,
 * each knows only what its own calls below said.  What another has written about pods of
 * which we know nothing stands; a reservation for CLAIM_FOREIGN_MS, and so does Bound while
 * there are pods of it, none of which we have seen bound: that we may only not have heard.
 *
 * Work: a change costs a search among the pods of its claim; a write goes over all of them.
 * Used by the loop's thread alone.
 */
#ifndef GS_SCHEDULER_CLAIMS_H
#define GS_SCHEDULER_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

struct claims;
struct clock;
struct err;
struct json;
struct kube_client;
struct kube_object;
struct log;

#define CLAIM_ALLOCATIONS_MAX 256  /* 40 KiB as usual, 230 KiB with the longest names */
#define CLAIM_MESSAGE_MAX     1024 /* bytes of it that are written */
#define CLAIM_WRITES_MAX      4
#define CLAIM_SETTLE_MS	      50 /* from a change to the first look */
#define CLAIM_PAUSE_MS	      200
#define CLAIM_MESSAGE_MS      5000
#define CLAIM_LEAVE_MS	      1000
#define CLAIM_FOREIGN_MS      30000

struct claims_options {
	struct kube_client *client; /* outlives this */
	const struct clock *clock;
	const struct log *log;
	uint64_t seed;
	/* The claim's record in its cache, or NULL: then it does not exist, nor may its kind. */
	const struct kube_object *(*claim)(void *context, const char *namespace, const char *name);
	void *context;
};

/* Does not write before claims_activate().  0, -ENOMEM. */
int claims_new(const struct claims_options *options, struct claims **ret, struct err *err);
void claims_free(struct claims *claims); /* what is on its way may still happen */

/* Only who leads writes, and only when the caches of pods and claims are full: else a claim
 * would lose the pods that are not there yet.  All that is known is looked at again. */
void claims_activate(struct claims *claims, bool active);

/* A pod as the cache has it now, any pod; nothing to do (0.2 us) for one that names no
 * claim.  A bound pod without a decision of ours has nothing by its claim; one that is
 * finished counts as gone. */
void claims_pod(struct claims *claims, const struct kube_object *pod, const struct json *document);
void claims_pod_gone(struct claims *claims, const char *uid);

/* What we do with an unbound pod; ignored for those that name no claim.  Reserved holds until
 * the pod is bound or gone, or claims_waits().  An empty message: it waits, nobody knows why
 * yet.  `failed`: no room would help, the pod or its claim is wrong. */
void claims_reserved(struct claims *claims, const char *uid, const char *node, uint32_t gpus);
void claims_waits(struct claims *claims, const char *uid, const char *message, bool failed);

/* Writes on their way. */
uint32_t claims_in_flight(const struct claims *claims);

/* The cache has another version of the claim, or has it no more.  Without this call for a change
 * of the status alone all goes on, but what somebody else writes there stays until a pod of
 * the claim changes. */
void claims_changed(struct claims *claims, const char *namespace, const char *name);

#endif
