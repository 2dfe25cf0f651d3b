/* SPDX-License-Identifier: Apache-2.0 */
/* decided.h - a decision, read from the pod that carries it: the way back of annotations.h. */
#ifndef GS_DIALECT_DECIDED_H
#define GS_DIALECT_DECIDED_H

#include <stdint.h>

struct arena;
struct err;
struct json;

#define DECIDED_HOLDS_MAX  256
#define DECIDED_INDEX_NONE UINT32_MAX

/* A part of one card. */
struct decided_hold {
	const char *uuid; /* an index in digits where nobody has reported a UUID */
	uint16_t core_milli;
	uint32_t mem_mib;
	const char *mig_profile; /* NULL: no slice */
	uint8_t mig_start;
	uint8_t ask;
};

struct decided {
	const char *node;
	uint32_t attempt; /* never 0 */
	uint32_t index;	  /* of its map, or DECIDED_INDEX_NONE */
	const struct decided_hold *holds;
	uint32_t holds_count;
};

/* Everything lies in the arena.  0; -ENOENT the pod has no decision; -EINVAL it cannot be
 * read, or was made for another node than the pod's or for another pod; -ENOMEM. */
int decided_read(const struct json *pod, struct arena *arena, struct decided *ret,
		 struct err *err);

#endif
