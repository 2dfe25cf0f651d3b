/* SPDX-License-Identifier: Apache-2.0 */
/* gangs.h - members that wait and are decided together, all or none.
 *
 * A gang is known as long as a member of it waits or is placed.  It is in the queue in the place
 * of its members, with the lowest of their priorities and the arrival of the first.
 *
 * What members ask for is remembered between two tries, and a member is read again when its pod
 * has changed, when an object has that was looked at to read one of them, and when nodes have.
 * So a member that comes to a gang that lacks more costs the same however many are there: it is
 * read, and told a little later, together with others that came meanwhile, how many are missing.
 * A try costs a few steps for each member besides the plan.
 *
 * Up to GANG_MEMBERS_MAX members (engine/gang.h); more of them are refused in words.
 */
#ifndef GS_SCHEDULER_GANGS_H
#define GS_SCHEDULER_GANGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "engine/request.h"
#include "scheduler/task.h"

struct asked;
struct cluster;
struct scheduler;
struct wish;

#define GANG_TELL_MS	  5000 /* from one number of missing members to the next */
#define GANG_TELL_SOON_MS 1000 /* until one that came is told; most gangs are whole by then */

/* What one member or more ask for, if no rule tells their subjects apart: each pod of an Indexed
 * Job or a StatefulSet has labels of its own. */
struct gang_kind {
	struct request request; /* holds its rules and the subject of the first */
	uint32_t users;		/* tasks */
	uint32_t number;	/* of the try that is being made */
};

struct gang {
	struct unit unit;
	const char *name;	       /* "namespace/name" */
	uint32_t number;	       /* as the engine knows it, from 1 */
	uint32_t members;	       /* so many must be placed together */
	VEC(struct task *) tasks;      /* its unbound members, in no order */
	VEC(struct gang_kind *) kinds; /* that its tasks ask for */
	struct asked *asked; /* what it was refused for, if all ask for the same; or NULL */
	uint32_t flying;     /* of its tasks */
	uint32_t wrong;	     /* of its tasks, which could not be read */
	uint8_t leaves;	     /* enum gang_leaves */
	bool unsure;	     /* it may be of another size: members must be read again */
	bool lacks;	     /* members, when it was last tried */
	uint64_t met;	     /* what its members were read with: lookup_met() */
	uint64_t epoch;	     /* of struct gangs, when all of them were read; 0: all anew */
	uint64_t tell_ms;    /* when it is told how many are missing; 0: all know */
	uint64_t told_ms;    /* when all were last told that; 0: never */
};

struct gangs {
	struct map by_name;
	uint32_t last_number;
	uint64_t epoch;	  /* of the nodes: members are read anew when it moves */
	uint64_t tell_ms; /* the earliest of any gang; 0: none */
};

void gangs_init(struct gangs *gangs, uint64_t seed);
void gangs_done(struct scheduler *s);
struct gang *gangs_get(struct scheduler *s, const char *name); /* NULL: out of memory */
/* Forgets those without a member that waits or is placed. */
void gangs_collect(struct scheduler *s);
/* Those who do not know how many their gang lacks are told, when it is time; cheap before. */
void gangs_tell(struct scheduler *s, uint64_t now_ms);
/* Such an object has changed: gangs that were read with it are read anew. */
void gangs_object(struct scheduler *s, const char *kind, const char *namespace, const char *name);
/* Nodes have: members may be read otherwise by now. */
void gangs_nodes(struct scheduler *s);

/* The task, just read, waits with its gang from now on.  0, -ENOMEM. */
int gang_join(struct scheduler *s, struct gang *gang, struct task *task, const struct wish *wish);
void gang_leave(struct scheduler *s, struct task *task);
/* Its pod has changed. */
void gang_unread(struct task *task);
/* Some of its members may be placed now, if any waits. */
void gang_wake(struct scheduler *s, struct gang *gang);
/* Whether room is being made for one of its members, and its item is out until that is over. */
bool gang_is_nominated(const struct gang *gang);
/* Whether it cannot be whole, however its members stand: nothing to decide. */
bool gang_is_short(const struct scheduler *s, const struct gang *gang);
/* How many are placed, those that are being bound among them, but not those that end. */
uint32_t gang_placed(const struct scheduler *s, const struct gang *gang);
/* Its members are told in a moment how many are missing. */
void gang_tell_soon(struct scheduler *s, struct gang *gang);
bool gang_can_place(const struct task *task);

/* gang_decide.c */
void gang_decide(struct scheduler *s, struct gang *gang);

/* gang_read.c: what a member asks for is remembered, or is wrong.  0, -E2BIG: its gang has as
 * many kinds as are possible, -ENOMEM; then it is as if it had not been read. */
int gang_note(struct scheduler *s, struct task *task, const struct wish *wish);
void gang_note_wrong(struct scheduler *s, struct task *task);
bool gang_kind_is(const struct cluster *c, const struct gang_kind *kind, const struct request *r);
/* Rules that have come since it was read may tell it from others of its kind: then it is of
 * another.  Fails as gang_note(). */
int gang_sort(struct scheduler *s, struct task *task);
void gang_forget(struct scheduler *s, struct task *task);

#endif
