/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/pack.h"

#include <stddef.h>

int pack_share(struct pack_card *cards, unsigned count, const struct ask *share)
{
	struct pack_card *best = NULL;

	for (struct pack_card *card = cards; card < cards + count; card++)
		if (card->core_milli >= share->core_milli && card->mem_mib >= share->mem_mib &&
		    (!best || card->shares < best->shares))
			best = card;
	if (!best)
		return -1;
	best->core_milli -= share->core_milli;
	best->mem_mib -= share->mem_mib;
	best->shares++;
	return (int)(best - cards);
}
