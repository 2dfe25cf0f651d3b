/* SPDX-License-Identifier: Apache-2.0 */
/* residents_private.h - shared by the files of residents.h. */
#ifndef GS_SCHEDULER_RESIDENTS_PRIVATE_H
#define GS_SCHEDULER_RESIDENTS_PRIVATE_H

#include "base/arena.h"
#include "base/map.h"
#include "dialect/decided.h"
#include "dialect/wish.h"
#include "engine/assign.h"
#include "scheduler/residents.h"

/* A name of a node, and the pods on it. */
struct host {
	struct resident *first;
	bool lacks; /* one of them may */
	char name[];
};

struct resident {
	struct host *host;
	struct resident *next, *previous;
	const struct kube_object *pod; /* of the cache, or NULL: a guest */
	struct guest *guest;
	uint64_t hash;	 /* of what the cache keeps of it: the same is no news */
	uint8_t seen;	 /* it has been read at least once */
	uint8_t decided; /* has a decision */
	uint8_t guessed; /* uses GPUs without one */
	uint8_t unclear; /* something that it names was not there when it was read */
	uint8_t lacks;	 /* holds more than could be booked: somebody else had it in the engine */
	char uid[];
};

struct residents {
	struct residents_options options;
	struct cluster *cluster;
	struct map by_uid;
	struct map hosts;   /* by name */
	struct arena arena; /* of one reading */
};

/* A pod as it has been read. */
struct residence {
	struct wish wish; /* released by its reader */
	struct pod_spec spec;
	struct assignment known;
	bool has_known; /* its GPUs are known; else they are guessed */
	bool unclear;
	uint32_t holds_said; /* by its decision, there or not */
};

/* residents_read.c: what the pod takes of the node.  0, -ENOMEM. */
int residence_read(struct residents *residents, const struct resident *r, uint32_t node,
		   const struct json *object, struct residence *ret);

/* residents_holds.c: the card, by its UUID or by its index in digits; false: not there. */
bool holds_card(const struct cluster *cluster, uint32_t node, const char *uuid, uint8_t *ret);
/* The parts of cards that are there.  `asks` (may be NULL) says whose group they are of. */
void holds_of_decision(const struct cluster *cluster, uint32_t node, const struct decided *decided,
		       const struct request *asks, struct assignment *ret);
/* A pod of others that its node's agent sees on these GPUs. */
void holds_of_use(const struct cluster *cluster, uint32_t node, const struct request *r,
		  uint32_t gpus, struct assignment *ret);
/* Whether the pod holds just these parts. */
bool holds_equal(const struct pod *pod, const struct assignment *a);

/* residents_guest.c */
void guest_free(struct guest *guest);
/* Books it, if its node is there.  0, -ENOMEM. */
int guest_book(struct residents *residents, struct resident *r);

/* residents.c: the record of that pod on that node, made if need be; NULL: out of memory. */
struct resident *resident_get(struct residents *residents, const char *uid, const char *node);
struct resident *resident_find(const struct residents *residents, const char *uid);
void resident_forget(struct residents *residents, struct resident *r);
/* It holds so many parts of cards that are there: remembers whether the engine has fewer. */
void resident_lacks(const struct residents *residents, struct resident *r, uint32_t holds);

#endif
