/* SPDX-License-Identifier: Apache-2.0 */
/* task.h - an unbound pod of ours, from when it is first seen until it is bound or gone.
 *
 * A task waits in the queue alone or as a member of its gang (gangs.h), is decided, and then
 * is on its flight (flight.h): booked in the engine, locked, bound.  What it is and asks for
 * is read from the pod's cache whenever it is decided (read.c); here is only what must be
 * remembered between two tries.
 *
 * Tasks are found by uid: a StatefulSet makes a new pod of the same name within milliseconds.
 */
#ifndef GS_SCHEDULER_TASK_H
#define GS_SCHEDULER_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "scheduler/pending.h"

struct asked;
struct flight;
struct gang;
struct gang_kind;
struct kube_writing;
struct nomination;
struct scheduler;

/* What is decided at once: a pod, or a gang. */
struct unit {
	struct pending_item item;
	bool is_gang;
	uint64_t waits_ms; /* since when there is no room for it; 0: that is not known */
	/* Since when room is reserved for it without anybody leaving; 0: there is none. */
	uint64_t reserved_ms;
	/* turns.h */
	bool is_in_turn;
	uint64_t turn_ms;
	struct unit *turn_next, *turn_previous;
};

struct task {
	struct unit unit; /* in the queue unless it has a gang */
	struct scheduler *scheduler;
	const char *uid, *namespace, *name;
	const char *key;       /* "namespace/name" */
	struct gang *gang;     /* NULL: alone */
	struct flight *flight; /* NULL: it waits */
	struct asked *asked;   /* what it was refused for, while it is parked; or NULL */
	uint64_t hash;	       /* of what the cache last had of what it asks for */
	uint64_t seen_ms;      /* when it was first seen */
	uint32_t lost;	       /* locks lost in a row */
	bool unsorted;	       /* it was not read since it came or changed: it may be of a gang */
	bool held;	       /* gated, or being deleted: not in the queue */
	bool learned;	       /* the engine knows of its arrival */
	bool landed;	       /* bound, or gone: only the cache does not show it yet */
	bool bound;	       /* the cache shows it bound */
	bool stale;	       /* changed on the server: waits for the cache to have it */
	bool again;	       /* is due, as soon as what is told of it has been written */
	/* What is told of it: see report.c. */
	struct kube_writing *telling; /* a write of its status on its way, or NULL */
	uint64_t told;		      /* hash of what was to be told last; 0: nothing */
	uint64_t said;		      /* ... and of what was an event last */
	uint64_t writing;	      /* hash of what is on its way, with `telling` */
	uint64_t gist;		      /* of `told`: the same for other figures */
	uint64_t due_ms;	      /* only then is it told; 0: at once */
	uint8_t figures;	      /* how often nothing but figures was told */
	char *message;		      /* to be told; NULL: nothing */
	bool message_is_error;
	bool hopes;	 /* what it waits for likely comes before it is told */
	char *nominated; /* node where its victims are, or NULL */
	struct nomination *nomination;
	bool nomination_told;  /* its status names a node */
	bool nominated_before; /* ... by who led before us, and it was not decided since */
	/* Of a member of a gang: see gangs.h. */
	struct gang_kind *kind; /* what it asks for, as last read; NULL: not known */
	uint32_t subject;	/* its own, held; with `kind` */
	uint32_t gang_at;	/* among its tasks */
	uint32_t gang_members;	/* of its gang, as last read */
	int32_t priority;
	bool preempts;
	bool read;  /* and nothing has changed since */
	bool wrong; /* it could not be read when its gang was last tried or, if `read`, not bound */
	struct task *next, *previous; /* of those with a message, a ring; NULL: not there */
};

/* All tasks. */
struct tasks {
	struct map by_uid;
	uint32_t unsorted; /* so many of them are */
};

void tasks_init(struct tasks *tasks, uint64_t seed);
void tasks_done(struct tasks *tasks); /* frees them; nobody may hold one any more */

struct task *tasks_find(const struct tasks *tasks, const char *uid); /* or NULL */
/* NULL: out of memory. */
struct task *tasks_add(struct tasks *tasks, const char *uid, const char *namespace,
		       const char *name);
/* The task must be out of queue, gang and flight. */
void tasks_remove(struct tasks *tasks, struct task *task);
void task_set_unsorted(struct tasks *tasks, struct task *task, bool unsorted);

/* The unit that an item of the queue belongs to, and the task of a unit that is no gang. */
static inline struct unit *unit_of(struct pending_item *item)
{
	return (struct unit *)item;
}

static inline struct task *task_of(struct unit *unit)
{
	return (struct task *)unit;
}

/* A number for one try to bind a pod, never 0: how it is known again. */
uint32_t task_attempt(uint64_t random);

#endif
