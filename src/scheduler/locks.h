/* SPDX-License-Identifier: Apache-2.0 */
/* locks.h - GPUs locked by entries in Leases, so that nothing is ever booked twice.
 *
 * The protocol is modelled in tests/model, its form is in tests/kube/LOCKS.md.  One Lease has
 * one writer here: while a PUT is on its way, what else is wanted of that Lease gathers
 * and goes with the next one.  Every PUT carries the uid and the resourceVersion of exactly
 * the state on which its entries were added up, drops what is known to be dead, and adds
 * what is wanted.  A PUT that is refused or unanswered is followed by a GET, and what is
 * wanted is judged anew on what is there.
 *
 * Leases have a finalizer, so that one that is missing never had an entry: a Lease that
 * could vanish with a lock in it would let a Binding land that nobody expects.
 *
 * Who is dead.  A pod that is gone (a DELETED event, a GET), finished, bound to another node or
 * by another attempt, or unbound with another resourceVersion (a GET after the Lease was
 * read).  A live unbound pod is fenced first: its status is patched, so that a Binding which
 * is still on its way is refused.  Of a gang all unbound members are fenced before the first
 * entry goes, also those that are not locked yet, if another is at it.
 *
 * A Lease without entries whose node is not there, twice in a row, is deleted; who wants to lock
 * on a node that has come back meanwhile makes another.
 *
 * Used by the loop's thread alone.  Nothing here allocates per GPU of the cluster: memory
 * goes with the Leases and their entries.
 */
#ifndef GS_SCHEDULER_LOCKS_H
#define GS_SCHEDULER_LOCKS_H

#include "scheduler/entries.h"

struct clock;
struct json;
struct kube_caches;
struct kube_client;
struct lock; /* of one pod: being taken, or held until its fate is known */
struct locks;
struct log;
struct metrics;

enum lock_mode { LOCKS_BY_NODE, LOCKS_BY_GPU };

enum lock_outcome {
	LOCK_TAKEN,   /* all of it: the Binding may be sent */
	LOCK_LOST,    /* somebody else has it, or has changed it: decide again */
	LOCK_BUSY,    /* another entry of this very pod is there (of another scheduler, or of
		       * one that died): wait until it is gone */
	LOCK_CLOSED,  /* nothing can be taken on that node, until locks_can_take() */
	LOCK_REFUSED, /* the server will not have it: forbidden, namespace missing, or the mode is
		       * not on record any more */
};

/* What the caches know of the pod that an entry is of. */
enum lock_pod {
	LOCK_POD_UNKNOWN, /* not there: which proves nothing */
	LOCK_POD_UNBOUND,
	LOCK_POD_BOUND, /* on this node, by this attempt */
	LOCK_POD_OVER,	/* finished, bound elsewhere, or by another attempt */
};

struct locks_options {
	struct kube_client *client;
	struct kube_caches *caches; /* the cache of Leases is added to these */
	const struct clock *clock;
	const struct log *log;
	struct metrics *metrics; /* NULL: nobody asks */
	const char *namespace;
	enum lock_mode mode;
	uint32_t collect_ms; /* dead entries go at the latest then; 0: 5 s */
	uint32_t orphan_ms;  /* an unbound pod's entry of somebody else that has not changed
			      * for so long is fenced; 0: 5 s */
	uint32_t vacant_ms;  /* how often it is looked whether the node of a Lease without
			      * entries is still there; 0: 30 s */
	/* Whether there is such a node, as far as is known.  NULL: each that is named. */
	bool (*node)(void *context, const char *node);
	/* The card with that UUID on the node, and its index there; false: not known. */
	bool (*card)(void *context, const char *node, const char *uuid, struct lock_card *ret,
		     uint32_t *index);
	/* LOCKS_BY_GPU: the UUID of the card with that index, NULL if there is none. */
	const char *(*card_at)(void *context, const char *node, uint32_t index);
	enum lock_pod (*pod)(void *context, const char *node, const struct lock_entry *entry);
	/* found() for each unbound pod of the entry's gang, from inside; false: it is not known yet
	 * which these are.  NULL: there are no gangs. */
	bool (*mates)(void *context, const struct lock_entry *entry,
		      void (*found)(void *to, const char *name, const char *uid), void *to);
	/* An entry that no lock of ours has made is there, or is no longer: what it holds is not
	 * free.  Also after a restart, for our own of before.  With LOCKS_BY_GPU the entries of a
	 * pod come as one, and leave when the last one has.  Valid during the call. */
	void (*came)(void *context, const char *node, const struct lock_entry *entry);
	void (*left)(void *context, const char *node, const struct lock_entry *entry);
	/* The Leases are known and the mode is ours: from now on locks can be taken.  Or not: the
	 * cluster is locked in the other mode, and `why` says what to do. */
	void (*ready)(void *context);
	void (*wrong)(void *context, const char *why);
	void *context;
};

int locks_new(const struct locks_options *options, struct locks **ret, struct err *err);
/* No callback comes any more; what is on its way may still happen, and locks that are held stay
 * on the server.  Then the caches are freed, before the loop runs again, and the client.  Not
 * from inside a callback.  NULL is fine. */
void locks_free(struct locks *locks);

/* Why none can be taken now; "": they can.  Whether that is so because the server refused
 * something, and not merely because it has not answered yet. */
const char *locks_why_not(const struct locks *locks);
bool locks_is_troubled(const struct locks *locks);

/* Only who is active writes: collects, fences, restores. */
void locks_activate(struct locks *locks, bool active);

/* Takes what the entry says on the node, all or nothing; everything is copied.  What is wanted
 * of one Lease until the loop comes round goes in one write.  done() comes later, from the
 * loop, never from inside.  After LOCK_TAKEN the lock is held until lock_bound() or
 * locks_release(); after any other outcome it is gone, and what was already taken with
 * LOCKS_BY_GPU is being given up (fenced first).  A lock of a pod whose former one is being
 * given up waits for that.  0, -EINVAL, -ENOMEM, -EAGAIN before ready(). */
int locks_take(struct locks *locks, const char *node, const struct lock_entry *entry,
	       void (*done)(void *context, enum lock_outcome outcome, const char *why),
	       void *context, struct lock **ret, struct err *err);

/* Whether something on the node can be taken at all, as far as is known: whether its Leases can
 * be read and written and have room, and with LOCKS_BY_GPU, whether each is about the card of its index or can
 * come to be, for it holds nothing. */
bool locks_can_take(struct locks *locks, const char *node);

/* The pod is bound with this lock: the entry stays until the pod is gone.  Frees the lock. */
void lock_bound(struct lock *lock);

/* Gives these locks (of one gang, or one) up, taken or being taken: fences all their pods that
 * are alive and unbound, then drops their entries; goes on until that is done.  Frees the
 * locks; done() of takes under way is not called any more. */
void locks_release(struct locks *locks, struct lock **list, uint32_t count);

/* That pod is gone, finished, or bound elsewhere: all its entries are dead, for good.  They go
 * with the next PUT of their Lease, or after collect_ms; of a gang when no other one's Binding
 * can be under way.  An entry that pod() calls bound is first asked about on the server. */
void locks_pod_over(struct locks *locks, const char *uid);

/* A pod is bound to the node with this decision and must have an entry: it is added, whatever
 * else is there, before anything is taken on that node, once we are active.  Nothing happens
 * if it is there, or if the server says that the pod is gone or bound otherwise.  came()
 * tells of it like of any entry that no lock of ours made. */
int locks_require(struct locks *locks, const char *node, const struct lock_entry *entry,
		  struct err *err);

/* came() once more, if there is such an entry of that pod. */
void locks_tell(struct locks *locks, const char *uid);

/* Whether an entry of that pod is anywhere, of ours or of others; or one that came() tells of. */
bool locks_has(const struct locks *locks, const char *uid);
bool locks_has_guest(const struct locks *locks, const char *uid);

/* Writes on their way, and entries that should go but have not yet. */
uint32_t locks_in_flight(const struct locks *locks);
uint32_t locks_doomed(const struct locks *locks);

#endif
