/* SPDX-License-Identifier: Apache-2.0 */
/* wish.h - a pod as the engine and the scheduler want it: what it asks for, what it is.
 *
 * The result of the translation (dialect.h).  Nothing that reads a wish can tell in
 * which dialect it was spoken.  Strings lie in the arena that was given to the
 * translation.
 */
#ifndef GS_DIALECT_WISH_H
#define GS_DIALECT_WISH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/request.h"

#define WISH_CONTAINERS_MAX 64
#define WISH_INDEX_NONE	    UINT32_MAX

/* A container, and which of the request's asks are its GPUs. */
struct wish_container {
	const char *name;
	uint16_t asks;	       /* bit i: ask i; 0: it gets no GPU */
	bool init;	       /* runs before the others, on their GPUs */
	uint8_t take[ASK_MAX]; /* of ask i: 0 all its GPUs or slices; else only the first so
				* many (an init container that needs fewer than it borrows) */
	/* Of each of its cards, where its limits ask for a share: the ask may be greater, for
	 * others use it too.  Both 0: all that was booked. */
	uint16_t core_milli;
	uint32_t mem_mib;
};

/* How strictly the members of a gang must lie together. */
enum gang_leaves {
	LEAVES_PREFERRED,
	LEAVES_REQUIRED,
};

struct wish_gang {
	const char *name; /* unique in the cluster: "namespace/name"; NULL: no gang */
	uint32_t members; /* so many must be placed together */
	uint8_t leaves;	  /* enum gang_leaves */
};

struct wish {
	struct request request;
	const char *namespace, *name, *uid;
	const char *scheduler; /* spec.schedulerName, or "" */
	int32_t priority;
	bool preempts;	   /* may take the place of pods of lower priority */
	bool volumes_wait; /* claims that get their volumes once it has a node: dialect/volumes.h */
	struct wish_gang gang;
	const char *workload; /* pods that are pinned by one map; NULL: not pinned */
	uint32_t index;	      /* the index it takes of that map, or WISH_INDEX_NONE */
	bool index_chosen;    /* it has none of its own: this one was the lowest that is free */
	struct wish_container containers[WISH_CONTAINERS_MAX];
	uint8_t containers_count;
};

#endif
