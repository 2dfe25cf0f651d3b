/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - shares of several containers on few cards. */
#ifndef GS_DIALECT_PACK_H
#define GS_DIALECT_PACK_H

#include <stdint.h>

#include "engine/request.h"

/* What is left of a card. */
struct pack_card {
	uint32_t core_milli;
	uint32_t mem_mib;
	uint32_t shares; /* that lie on it */
};

/* Puts the share on the card with the fewest shares, the first of equals, of those that
 * have room.  The number of the card, or -1 if none has. */
int pack_share(struct pack_card *cards, unsigned count, const struct ask *share);

#endif
