/* SPDX-License-Identifier: Apache-2.0 */
/* locks_private.h - shared by locks*.c.
 *
 *	locks.c		what the scheduler calls
 *	locks_life.c	the beginning, the end, and the watch
 *	locks_cell.c	a Lease as it is on the server
 *	locks_entries.c	the entries of a Lease, as they have come to be
 *	locks_plan.c	what the next write of a Lease has in it
 *	locks_lease.c	the one writer of a Lease
 *	locks_cards.c	the Leases of a node with --locks=gpu
 *	locks_fence.c	whether an entry's pod is dead, and making sure that it is
 *	locks_mates.c	of a gang whose entry goes, the pods without one
 *	locks_collect.c	entries that nobody has taken along, Leases of nodes that are no
 *			more, and other tries
 *	locks_mode.c	the Lease that records the mode
 *	locks_state.c	records: entries in memory, found by pod and by gang
 */
#ifndef GS_SCHEDULER_LOCKS_PRIVATE_H
#define GS_SCHEDULER_LOCKS_PRIVATE_H

#include <stddef.h>
#include <uv.h>

#include "base/err.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "kube/backoff.h"
#include "kube/object.h"
#include "scheduler/locks.h"

struct kube_cache;
struct kube_write_result;
struct kube_writing;
struct metric;

#define LOCKS_FINALIZER	  "gpu.scheduling/locks"
#define LOCKS_MODE_NAME	  "lock-mode"
#define KEY_LOCK_MANAGED  "gpu.scheduling/managed"
#define KEY_LOCK_POD	  "gpu.scheduling/pod"
#define KEY_LOCK_NODE	  "gpu.scheduling/node"
#define KEY_LOCK_GPU	  "gpu.scheduling/gpu"
#define KEY_LOCK_ENTRIES  "gpu.scheduling/entries"
#define LOCKS_RETRY_MS	  1000
#define LOCKS_CARDS_MAX	  64   /* indexes of a node with --locks=gpu */
#define LOCKS_OTHER_BYTES 2048 /* left to the annotations beside the entries */

/* A ring through its items; zero is no valid one. */
struct link {
	struct link *prev, *next;
};

#define LINK_OF(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void link_init(struct link *link)
{
	link->prev = link->next = link;
}

static inline bool link_is_empty(const struct link *link)
{
	return link->next == link;
}

/* Leaves whatever ring it is in; harmless if it is in none. */
static inline void link_leave(struct link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link_init(link);
}

static inline void link_append(struct link *ring, struct link *link)
{
	link_leave(link);
	link->prev = ring->prev;
	link->next = ring;
	ring->prev->next = link;
	ring->prev = link;
}

static inline void link_prepend(struct link *ring, struct link *link)
{
	link_append(ring->next, link);
}

/* What records are found by. */
enum record_chain { BY_POD, BY_GANG, RECORD_CHAINS };

/* An entry in memory: in its Lease, or on its way there with a claim.  One allocation, its
 * strings and holds behind it.  What is `dead` is so for good: it is said of this pod as it
 * was at this version with this attempt, and none of them comes back. */
struct record {
	struct lock_entry entry;
	struct cell *cell;
	struct claim *claim;		/* of the lock of ours that it belongs to; NULL: of none */
	const char *key[RECORD_CHAINS]; /* NULL: not in that chain */
	struct record *prev[RECORD_CHAINS], *next[RECORD_CHAINS];
	struct link due; /* among orphans, dead ones, or those to be judged again */
	uint64_t due_ms;
	struct kube_writing *judging;
	bool fencing;	      /* that one is the patch, not the GET before it */
	uint64_t serial;      /* grows with each record that comes into a Lease */
	uint64_t dead_serial; /* of the moment when it was given up, or found dead */
	uint64_t fenced;      /* when we changed its pod, likewise; 0: never */
	bool listed;	      /* it is in its Lease as we know that */
	bool kept;	      /* while a new state of the Lease is read */
	bool mine;	      /* made by this process: no guest */
	bool shown;	      /* came() was called */
	bool bound;	      /* its pod is, by it */
	bool dead;
	bool leaving;  /* given up by us; to be fenced and dropped */
	bool in_round; /* the rest of its gang was fenced after it had died, or is being */
};

enum claim_state { CLAIM_IDLE, CLAIM_WAITING, CLAIM_SENT, CLAIM_IN };

/* That an entry should come into a Lease: for a lock, or for a bound pod that lacks it. */
struct claim {
	struct link link;  /* in its cell, while waiting or sent */
	struct lock *lock; /* NULL: required, or nobody wants it any more */
	struct cell *cell;
	struct record *record; /* its own until it is in the Lease */
	enum claim_state state;
	bool required; /* goes in whatever else is there */
	bool rescued;  /* of a Lease that vanished: whose it is must be found out anew */
	/* Of one that is required: its pod being asked for; it was bound by this entry when the
	 * Lease was at that version. */
	struct kube_writing *asking;
	bool proven;
	char version[KUBE_VERSION_MAX + 1];
};

/* What is wanted by a caller: one claim with --locks=node, one for each card otherwise. */
struct lock {
	struct locks *locks;
	struct link link; /* among those that prepare, or those that are finished */
	struct link all;
	char *node;
	bool preparing; /* the Leases of the node, with --locks=gpu */
	void (*done)(void *context, enum lock_outcome outcome, const char *why);
	void *context;
	uint64_t begun_ns;
	enum lock_outcome outcome; /* once it is finished */
	char *why;
	bool finished;
	uint32_t count; /* of claims, sorted by the names of their Leases */
	struct claim *claims[];
};

/* A Lease.  `uid` and `version` are of the state that the records were read from; while a
 * write is on its way, events of the watch are not looked at: what it brings back is newer. */
struct cell {
	struct locks *locks;
	char *name, *node;
	uint32_t index;	   /* of the card, with --locks=gpu */
	char *card;	   /* that it is about, or NULL */
	char *card_wanted; /* that it is to be about; NULL: it is fine */
	bool verify;  /* the card has changed, and not by the watch: look at all of the node */
	bool refresh; /* is to be read again */
	bool exists, deleting, has_finalizer;
	bool closed;	  /* being deleted, and nobody adds to it any more: see lease_body() */
	char *unreadable; /* why nothing can be done with it; NULL: it is fine */
	char uid[KUBE_UID_MAX + 1];
	char version[KUBE_VERSION_MAX + 1]; /* the newest seen, even of one that is gone */
	VEC(struct record *) records;
	struct link waiting, sent; /* claims; required ones first */
	uint32_t claims;	   /* that point here, wherever they are */
	struct kube_writing *writing;
	bool creates, skipped; /* what is on its way; an event came meanwhile */
	bool must_drop;	       /* dead entries are worth a write of their own */
	bool full;	       /* one did not fit into it, and none has gone since */
	struct link dirty;     /* something may have to be written */
	struct link retry;
	uint64_t retry_ms;
	struct link vacant; /* while it exists and has no entry */
	uint64_t vacant_ms;
	bool homeless; /* its node was not there when that was last looked at */
};

struct locks_mode_lease {
	bool exists, told;
	char value[16];
	char uid[KUBE_UID_MAX + 1];
	char version[KUBE_VERSION_MAX + 1];
	struct kube_writing *writing;
	struct backoff backoff;
	uint64_t retry_ms; /* 0: now */
};

struct locks_metrics {
	struct metric *writes, *conflicts, *held, *latency, *fences, *collected;
};

struct locks {
	struct locks_options options;
	char *namespace;
	struct kube_cache *cache;
	struct map cells; /* by name of the Lease */
	struct map chains[RECORD_CHAINS];
	struct link dirty;			 /* cells */
	struct link retry_cells, vacant;	 /* cells, each by time */
	struct link orphans, dead, retry_judged; /* records, each by time */
	struct link preparing, finished, all;	 /* locks */
	struct link mates;			 /* locks_mates.c */
	struct locks_mode_lease mode;
	struct locks_metrics metrics;
	struct rng rng;
	uv_timer_t flush, tick;
	unsigned closes;
	uint64_t serial;
	uint32_t records, writes, doomed;
	bool synced, ready, active, closing;
	char hint[512];		    /* what to do where Leases are refused: lease_rights() */
	char trouble[ERR_TEXT_MAX]; /* why the mode cannot be recorded; "": it can */
	bool trouble_told;	    /* why nothing can be written was said once */
};

/* What the next write would have in it. */
struct lease_plan {
	VEC(struct lock_entry) entries; /* borrowed from their records */
	struct strbuf text;		/* the same as JSON, without its end */
	struct link chosen;		/* claims that go with it */
	const struct lock_entry *whole; /* who has all of the card, with --locks=gpu */
	bool worth;			/* something would change that cannot wait */
	bool unproven;			/* something may lack that must come first */
	bool failed;			/* out of memory */
};

/* locks_state.c */
struct record *record_new(const struct lock_entry *entry, const struct lock_hold *holds,
			  uint32_t holds_count); /* NULL: out of memory */
/* Into its Lease (cell is set): 0 or -ENOMEM.  Out of it; and freed. */
int lock_record_enter(struct record *record);
void lock_record_leave(struct record *record);
void record_free(struct record *record);
struct record *records_of(const struct locks *locks, enum record_chain chain, const char *key);
void record_set_leaving(struct record *record, bool leaving);
void record_set_dead(struct record *record);
bool record_same_try(const struct record *a, const struct record *b);
/* Whether the entry may go now: it is dead, and no Binding of its gang is on its way. */
bool record_can_go(struct record *record);
enum lock_pod record_pod(const struct record *record);

/* locks_cell.c */
struct cell *cell_find(struct locks *locks, const char *node, uint32_t index); /* or NULL */
struct cell *cell_get(struct locks *locks, const char *node, uint32_t index);  /* NULL: ENOMEM */
void cell_free(struct cell *cell);
/* Whether it is gone, nobody wants it, and the watch knows that, too: it can be freed. */
bool cell_is_over(const struct cell *cell);
int cell_name(enum lock_mode mode, const char *node, uint32_t index, struct strbuf *out);
/* What the server has: the Lease (NULL: it is gone), at that version (NULL: it says itself). */
void cell_apply(struct cell *cell, const struct json *lease, const char *version, bool by_watch);
/* Ends the wait for the pods of a Lease that is gone, if all have been heard of. */
void cell_settle(struct cell *cell);
/* An event of the watch. */
void cell_watched(struct locks *locks, const struct kube_object *before,
		  const struct kube_object *now, const struct json *object);
/* What was skipped while a write was on its way. */
void cell_catch_up(struct cell *cell);
/* `a` is of a later moment than `b`: a hint, for safety rests on the server's comparison. */
bool version_newer(const char *a, const char *b);

/* locks_entries.c */
void cell_set_entries(struct cell *cell, const struct lock_entry *entries, uint32_t count);

/* locks_plan.c */
void plan_make(struct lease_plan *plan, struct cell *cell);
void plan_done(struct lease_plan *plan);
void lease_body(struct strbuf *out, const struct cell *cell, const struct lease_plan *plan);
void lease_head(struct strbuf *out, const struct locks *locks, const char *name, const char *uid,
		const char *version);

/* locks_lease.c */
void cell_touch(struct cell *cell); /* is looked at before the loop sleeps */
void cell_flush(struct cell *cell); /* may free it */
/* Asks the server to delete it, as it is: the finalizer keeps it until it has been emptied. */
void cell_remove(struct cell *cell);
bool cell_is_writable(const struct cell *cell);
/* Who has to do what, so that we can write Leases there. */
void lease_rights(const struct locks *locks, char *text, size_t size);
const char *lease_trouble(const struct locks *locks, const struct kube_write_result *result,
			  char *text, size_t size);

/* locks_cards.c */
/* Whether all Leases of the lock's node are about the cards that we know; else it is seen to.
 * May finish the lock. */
bool cards_prepare(struct lock *lock);
void cards_look(struct locks *locks);

/* locks_fence.c */
void fence_record(struct record *record);
/* Asks the server, whatever the caches say. */
void fence_verify(struct record *record);
/* Whether the pod of a required entry is bound by it, and was when the Lease was as we know it.
 * If not, the server is asked, and the cell is touched when that is known; the claim is freed
 * then if nothing is required any more. */
bool fence_proves(struct claim *claim);

/* What changes the entry's pod, if it is still at that version. */
void fence_body(struct strbuf *out, const struct locks *locks, const struct lock_entry *entry);

/* locks_mates.c */
/* Whether those of a dead entry's gang that have none cannot be bound any more; if not, that is
 * seen to, and the dead ones of the gang are touched when it is so. */
bool mates_fenced(struct record *record);
void mates_tick(struct locks *locks, uint64_t now_ms);
uint64_t mates_due_ms(const struct locks *locks);
void mates_stop(struct locks *locks);

/* locks_collect.c */
void collect_orphan(struct record *record);
void collect_dead(struct record *record, bool hurry);
void collect_retry(struct record *record);
void collect_retry_cell(struct cell *cell);
void collect_vacant(struct cell *cell);
void collect_arm(struct locks *locks);
void collect_tick(uv_timer_t *timer);

/* locks_mode.c */
void mode_watched(struct locks *locks, const struct kube_object *before,
		  const struct kube_object *now, const struct json *object);
void mode_look(struct locks *locks);
void mode_stop(struct locks *locks);

/* locks.c */
struct claim *claim_new(struct cell *cell, const struct lock_entry *entry,
			const struct lock_hold *holds, uint32_t count); /* NULL: ENOMEM */
void claim_free(struct claim *claim);
void claim_queue(struct claim *claim);
void claim_in(struct claim *claim);
void lock_finish(struct lock *lock, enum lock_outcome outcome, const char *why);
void lock_discard(struct lock *lock); /* without a word to anybody */
void locks_wake(struct locks *locks);
void locks_flush(uv_timer_t *timer);
void locks_dispatch(struct locks *locks);
uint64_t locks_now_ms(const struct locks *locks);
bool locks_card(void *context, const char *uuid, struct lock_card *ret); /* of a cell */

#endif
