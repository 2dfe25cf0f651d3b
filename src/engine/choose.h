/* SPDX-License-Identifier: Apache-2.0 */
/* choose.h - the GPUs of one ask on one node, as the node is now.
 *
 * Used by assign.c alone, which books earlier asks of the same pod first.
 */
#ifndef GS_ENGINE_CHOOSE_H
#define GS_ENGINE_CHOOSE_H

#include "engine/assign.h"

struct choose {
	const struct scorer *scorer; /* may be NULL */
	const struct request *request;
	uint16_t seats;
};

/* FITS with the holds appended to *ret, or why not (then *ret is of no use). */
enum verdict choose_gpus(const struct choose *ch, uint8_t ask, const struct node *n,
			 struct assignment *ret);

/* All asks of the request together, in that order, by trying every way; false if there is
 * none (or it was not found in time).  For when choosing one by one has failed. */
bool search_gpus(const struct choose *ch, const uint8_t *order, const struct node *n,
		 struct assignment *ret);

#endif
