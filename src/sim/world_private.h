/* SPDX-License-Identifier: Apache-2.0 */
/* world_private.h - shared by the files of world.h. */
#ifndef GS_SIM_WORLD_PRIVATE_H
#define GS_SIM_WORLD_PRIVATE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "sim/world.h"

struct gang_planner;
struct preemption;

struct world {
	const struct fleet *fleet;
	struct world_config config;
	struct engine *engine;
	struct gang_planner *planner;
	struct arena arena; /* wishes and names */
	VEC(struct world_pod *) pods;
	struct map by_key;	 /* "namespace/name" -> pod */
	struct map objects;	 /* "kind/namespace/name" -> struct json */
	VEC(const char *) gangs; /* gang number - 1 -> name */
	struct dialect_lookup lookup;
	uint32_t generation; /* changes with objects and nodes */
	uint64_t evictions;  /* so far */
};

/* world_pods.c: objects become pods. */
int world_expand(struct world *w, const char *kind, const char *namespace, const char *name,
		 const struct json *object, struct err *err);
/* Reads the pod again if anything has changed; a complaint becomes its text. */
int world_read_pod(struct world *w, struct world_pod *pod, struct err *err);
char *world_printf(struct world *w, const char *format, ...) PRINTF(2, 3);

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
uint32_t world_gang_number(struct world *w, const char *gang);

/* world_gang.c: tries the gang of which `first` is a waiting member. */
int world_try_gang(struct world *w, struct world_pod *first, struct err *err);

#endif
