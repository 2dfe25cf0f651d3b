/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler_private.h - shared by the files of scheduler.h. */
#ifndef GS_SCHEDULER_SCHEDULER_PRIVATE_H
#define GS_SCHEDULER_SCHEDULER_PRIVATE_H

#include <uv.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "dialect/annotations.h"
#include "dialect/wish.h"
#include "engine/gang.h"
#include "scheduler/asked.h"
#include "scheduler/gangs.h"
#include "scheduler/scheduler.h"
#include "scheduler/task.h"
#include "scheduler/turns.h"

struct err;
struct budgets;
struct claims;
struct config;
struct inventory;
struct json;
struct json_doc;
struct kube_binding;
struct kube_cache;
struct kube_caches;
struct kube_events;
struct kube_object;
struct lookup;
struct meters;
struct nomination;
struct residents;
struct volume_binder;
struct volume_binding;

enum flight_stage {
	FLIGHT_LOCKING,
	FLIGHT_LOCKED, /* waits for volumes, and for the others of its gang */
	FLIGHT_BINDING,
	FLIGHT_PAUSED, /* the same Binding goes again at due_ms */
};

/* A decision on its way: booked in the engine, locked, bound. */
struct flight {
	struct scheduler *scheduler;
	struct task *task;
	struct flight *peer, *before; /* a ring of all that must be ready before one is bound */
	struct flight *lead;	      /* of the ring, since it was started */
	uint32_t awaited;	      /* of a lead: how many are not locked, or lack volumes */
	struct flight *next;	      /* of those that are paused, or spare */
	enum flight_stage stage;
	struct volume_binding *volumes; /* to be bound before the pod; NULL: none */
	struct lock *lock;		/* NULL: it needs none, or has none yet */
	struct kube_binding *binding;	/* on its way, or NULL */
	struct arena arena;		/* of the next six */
	struct annotations *annotations;
	struct lock_entry *entry; /* NULL: no GPU */
	const char *node, *version, *decision;
	const char *gpus_text; /* "GPUs 0-3"; NULL: no GPU */
	uint32_t attempt;
	uint32_t gpus; /* set of ids */
	uint32_t resends;
	bool failed;	 /* is given up at due_ms */
	bool superseded; /* another has bound it: what the engine has is not ours any more */
	uint64_t sent_ns, due_ms;
};

/* A request that was refused, as long as nothing changes. */
struct refusal {
	uint64_t hash, epoch;
	uint64_t gist;
	uint32_t wakes;
	uint32_t by_verdict[VERDICT_COUNT];
	struct strbuf message;
};

/* A request for which nobody of lower priority can make room, as long as nothing changes. */
struct hopeless {
	uint64_t hash, epoch;
	int32_t priority;
};

/* Below it is room for those that come before all others of their priority. */
#define ARRIVALS_BEGIN (UINT64_C(1) << 32)

struct scheduler {
	struct scheduler_options options;
	char *names[SCHEDULER_NAMES_MAX];
	uv_loop_t *loop;
	struct kube_client *client;
	const struct clock *clock;
	const struct log *log;
	struct engine *engine;
	struct cluster *cluster;
	struct gang_planner *planner;
	struct kube_caches *caches;
	struct kube_cache *pods;
	struct lookup *lookup;
	struct inventory *inventory;
	struct residents *residents;
	struct locks *locks;
	struct budgets *budgets;
	struct claims *claims;
	struct volume_binder *volumes;
	struct config *config;
	struct meters *meters;
	struct kube_events *events;
	struct pending *pending;
	struct tasks tasks;
	struct gangs gangs;
	struct turns turns; /* to get a reservation */
	struct asked_set asked;
	struct arena arena;	/* of one decision */
	struct refusal refusal; /* the last one */
	struct hopeless hopeless;
	struct rng rng;
	uint64_t epoch;	   /* changes with every change of the engine's cluster */
	uint64_t arrivals; /* so far, from ARRIVALS_BEGIN on */
	uint64_t reserve_after_ms, collect_ms, lead_ms;
	uv_timer_t *timer; /* frees itself */
	uv_idle_t *idle;   /* likewise; of both there is none or both */
	struct flight *paused, *spare;
	uint32_t flights, spares;
	VEC(char *) closed; /* names of nodes: closed.h */
	uint64_t closed_ms; /* when they are looked at next */
	uint64_t stalled_ms;
	struct nomination *nominations;
	struct map victims;	   /* uid -> struct victim */
	struct task *untold;	   /* tasks with something to be told, a ring; the oldest */
	struct task *untold_later; /* likewise those with other figures, in no order */
	uint64_t later_ms;	   /* when the first of these is due */
	uint32_t telling;	   /* writes of status on their way */
	bool leading, active, draining, freeing, ticking;
	bool stalled; /* it leads and cannot begin: stalled.h */
	void (*drained)(void *context);
	void *drained_context;
	uint64_t drain_by_ms, drain_events_by_ms;
};

static inline uint64_t now_ms(const struct scheduler *s)
{
	return clock_monotonic_ms(s->clock);
}

/* scheduler.c: something is due: look soon. */
void scheduler_kick(struct scheduler *s);
bool scheduler_is_ours(const struct scheduler *s, const char *scheduler_name);

/* pods.c: what the cache of pods says. */
int pods_watch(struct scheduler *s, struct err *err);
/* Every bound pod that holds GPUs must have its lock. */
void pods_require_locks(struct scheduler *s);
/* Pod left, or came to, the node: who may be helped is woken. */
void pods_left(struct scheduler *s, uint32_t node);
void pods_came(struct scheduler *s);
/* The engine forgets the pod; books it anew, as the cache has it, on what is left.  To others that
 * is no news: it has been there all along. */
void pods_unbook(struct scheduler *s, const char *uid);
void pods_rebook(struct scheduler *s, const char *uid, const char *namespace, const char *name);

/* read.c: the pod as the cache has it, translated.  0 with the wish in s->arena and the
 * version of the pod (valid until the cache changes); -ENOENT with an empty text: the pod is
 * not there (any more); else as dialect_read(). */
int task_read(struct scheduler *s, struct task *task, struct wish *ret, const char **version,
	      struct err *err);
/* The index of a map that it was read with is its own from now on, while it waits too: siblings
 * get others.  What a lock of another scheduler says that it has stands.  0, -ENOMEM. */
int task_take_index(struct scheduler *s, const struct task *task, const struct wish *wish);
void task_drop_index(struct scheduler *s, const struct task *task);

/* cycle.c */
void cycle_run(struct scheduler *s);
/* One that was popped and has neither been placed nor refused. */
void cycle_decide_unit(struct scheduler *s, struct unit *unit);
/* There is no room for it; whether that has been so for long enough to reserve some. */
void unit_waits(struct scheduler *s, struct unit *unit);
/* It has a place, or is no more. */
void unit_waits_no_more(struct scheduler *s, struct unit *unit);
bool unit_is_patient(const struct scheduler *s, const struct unit *unit);
void task_spec(const struct task *task, const struct wish *wish, struct pod_spec *ret);

/* flight.c: begins one for a pod that the engine has placed.  NULL with what is wrong. */
struct flight *flight_new(struct scheduler *s, struct task *task, const struct wish *wish,
			  const struct decision *decision, const char *version, struct err *err);
/* flight_ring.c: `b`, alone so far, joins: all must be locked before one is bound. */
void flight_join(struct flight *a, struct flight *b);
void flight_start(struct flight *f);
/* flight.c: the pod is gone, or is no longer ours: gives everything up. */
void flight_abort(struct flight *f);
/* The cache shows the pod bound. */
void flight_seen(struct flight *f, const struct json *pod);
/* Forgets it and leaves everything on the server as it is. */
void flight_drop(struct flight *f);
void flights_tick(struct scheduler *s, uint64_t now_ms);
void flights_done(struct scheduler *s);

/* tasks and the queue, task_life.c */
struct task *task_seen(struct scheduler *s, const struct kube_object *pod);
/* The cache has another version of it; `hash` is of what it asks for. */
void task_changed(struct scheduler *s, struct task *task, int32_t priority, bool held,
		  uint64_t hash);
void task_gone(struct scheduler *s, struct task *task);
/* It is bound, or gone: forgotten as soon as the cache shows that. */
void task_landed(struct scheduler *s, struct task *task);
/* What was decided for it is off: it waits again, at once or after a pause. */
void task_requeue(struct scheduler *s, struct task *task, bool pause);
void task_unassume(struct scheduler *s, struct task *task);
struct pending_item *task_item(struct task *task);

/* refuse.c */
void refuse_wrong(struct scheduler *s, struct task *task, int rc, const struct err *err,
		  bool index_chosen);
/* There is no room, and nobody can be evicted for it. */
void refuse_request(struct scheduler *s, struct task *task, const struct wish *wish);
/* `r`: what all of them ask for, or NULL; `by_verdict`: nodes, if it is for room that it waits, and
 * nobody can be evicted; `reason`: "" tells nobody. */
void refuse_gang(struct scheduler *s, struct gang *gang, const struct request *r,
		 const uint32_t *by_verdict, bool preempts, const char *reason);
/* There is no room for one more of a gang that has all it needs. */
void refuse_extra(struct scheduler *s, struct gang *gang, const struct request *r, bool preempts);
uint32_t refuse_wakes(enum verdict verdict);

/* report.c: what people are told.  `why` is a sentence without a full stop; unless it is an error
 * it is told as kube-scheduler tells what no node could mend: "0/4 nodes are available: why." */
void report_waits(struct scheduler *s, struct task *task, const char *why, bool is_error);
/* The same in the form already; messages with one gist give the same reasons, with other
 * figures. */
void report_refused(struct scheduler *s, struct task *task, const char *message, uint64_t gist);
/* As report_waits(), of what is likely over in a moment: told if it is not. */
void report_hopes(struct scheduler *s, struct task *task, const char *why);
/* It could not be read, or never be bound as it is: its claim has failed.  `rc` is of
 * dialect_read() or flight_new(). */
void report_wrong(struct scheduler *s, struct task *task, int rc, const char *why);
/* That is over: what has not been told is not. */
void report_over(struct scheduler *s, struct task *task);
/* Its Binding is not accepted, and goes again. */
void report_in_doubt(struct scheduler *s, const struct task *task, const char *node,
		     const char *why);
/* `gpus` says which of the node's it has; NULL: none. */
void report_bound(struct scheduler *s, const struct task *task, const char *node,
		  const char *gpus);
/* The others go for it; or, unless it is nominated, it waits for them to end. */
void report_preempts(struct scheduler *s, struct task *task, uint32_t victims);
void report_forget(struct scheduler *s, struct task *task);
/* What it has not been told yet it is not told: it is about to be decided on. */
void report_unsay(struct scheduler *s, struct task *task);
void report_tick(struct scheduler *s);

#endif
