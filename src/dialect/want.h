/* SPDX-License-Identifier: Apache-2.0 */
/* want.h - what one container's limits want; for resources.c and init.c. */
#ifndef GS_DIALECT_WANT_H
#define GS_DIALECT_WANT_H

#include "dialect/draft.h"

struct want {
	enum ask_kind kind; /* 0: nothing */
	uint8_t count;
	uint16_t core_milli;
	uint32_t mem_mib;
	const char *profile; /* of slices; NULL: none */
	const char *named;   /* the resource that said so */
};

/* GPUs of its own for the container. */
int want_add(struct draft *d, struct wish_container *box, const struct want *want,
	     struct err *err);

/* GPUs for a container that runs before the others, all of whose wants are known: it uses
 * theirs, and what they lack is added.  `beside`: asks of the sidecars that run already. */
int init_want(struct draft *d, struct wish_container *box, uint16_t beside,
	      const struct want *want, struct err *err);

#endif
