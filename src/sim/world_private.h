/* SPDX-License-Identifier: Apache-2.0 */
/* world_private.h - shared by the files of world.h. */
#ifndef GS_SIM_WORLD_PRIVATE_H
#define GS_SIM_WORLD_PRIVATE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "engine/gang.h"
#include "sim/world.h"

struct preemption;

#define STUCK_MAX 16

/* What a workload makes its pods of.  Pods without an index of their own ask for the
 * same, so it is read once for all of them. */
struct world_template {
	const struct wish *wish; /* NULL: not read, or each pod is another */
	uint32_t generation;	 /* of the world when it was read */
	uint32_t explained;	 /* how many of its placements were compared in words */
	const char *example;	 /* one of these pods */
};

struct world_gang {
	const char *name;
	uint32_t number;		 /* as the cluster knows it, from 1 */
	VEC(struct world_pod *) members; /* those that are gone, too */
};

/* The gang that was refused last, as long as no pod is placed or leaves. */
struct world_stuck_gang {
	const struct wish *wish; /* of its members, who are all alike; NULL: none */
	int32_t priority;
	bool preempts;
	char reason[GANG_REASON_MAX];
};

/* A request that nothing helps as long as no pod is placed or leaves. */
struct world_stuck {
	const struct request *request;
	int32_t priority;
	bool preempts;
};

struct world {
	const struct fleet *fleet;
	struct world_config config;
	struct engine *engine;
	struct gang_planner *planner;
	struct arena arena;   /* wishes and names */
	struct arena scratch; /* of reading one pod */
	VEC(struct world_pod *) pods;
	struct map by_key;     /* "namespace/name" -> pod */
	struct map objects;    /* "kind/namespace/name" -> struct json */
	struct map owners;     /* "kind/namespace/name" of those whose pods are given */
	struct map taken;      /* "index workload" -> pod */
	struct map gang_names; /* -> struct world_gang */
	VEC(struct world_gang *) gangs;
	struct dialect_lookup lookup;
	uint32_t generation; /* changes with objects and nodes */
	uint64_t evictions;  /* so far */
	uint32_t round;	     /* of trying what waits */
	uint64_t explained;  /* nodes compared for words, so far */
	struct world_stuck stuck[STUCK_MAX];
	uint32_t stuck_count, stuck_next;
	struct world_stuck_gang stuck_gang;
};

/* world_pods.c: objects become pods. */
int world_expand(struct world *w, const char *kind, const char *namespace, const char *name,
		 const struct json *object, struct err *err);
/* Remembers that the owners of the object need not be expanded. */
int world_note_owners(struct world *w, const struct json *object, struct err *err);
/* Reads the pod again if anything has changed; a complaint becomes its text. */
int world_read_pod(struct world *w, struct world_pod *pod, struct err *err);
/* The index that it has of a map is free again. */
void world_drop_index(struct world *w, struct world_pod *pod);
bool world_index_taken(const struct world *w, const char *workload, uint32_t index);
char *world_printf(struct world *w, const char *format, ...) PRINTF(2, 3);

/* world_kinds.c: 0 for a kind that has no pods and may be there; 1 for one that has; else
 * -EINVAL. */
int world_kind(const char *kind, const char *name, const struct json *object, struct err *err);

/* world_refuse.c: what cannot be placed in this round, and why. */
bool world_is_stuck(const struct world *w, const struct world_pod *pod);
void world_add_stuck(struct world *w, const struct world_pod *pod);
/* Something has changed: what was refused may be tried again. */
void world_unstick(struct world *w);
int world_tell_refused(struct world *w, struct world_pod **turn, size_t count, struct err *err);

/* world_place.c */
void world_pod_spec(struct world *w, const struct world_pod *pod, struct pod_spec *ret);
int world_try_pod(struct world *w, struct world_pod *pod, struct err *err);
/* It is booked under that number. */
void world_placed(struct world *w, struct world_pod *pod, uint32_t number,
		  const struct decision *d, struct strbuf *why);
void world_waits(struct world *w, struct world_pod *pod, const char *text);
/* Off its node, waiting again. */
void world_unplace(struct world *w, struct world_pod *pod, enum world_event event);
void world_tell(struct world *w, enum world_event event, const struct world_pod *pod);
/* Takes the victims off their nodes, and says so in `why`. */
int world_evict(struct world *w, const struct preemption *p, const struct world_pod *for_pod,
		struct strbuf *why, struct err *err);

/* world_gang.c: the pod joins the gang that it names.  0, -ENOMEM. */
int world_join(struct world *w, struct world_pod *pod, struct err *err);
/* Tries the gang of which `first` is a waiting member. */
int world_try_gang(struct world *w, struct world_pod *first, struct err *err);

#endif
