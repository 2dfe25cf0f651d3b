/* SPDX-License-Identifier: Apache-2.0 */
/* residents_holds.c - which parts of which cards a pod has, as the engine counts them. */
#include <string.h>

#include "base/attr.h"
#include "base/num.h"
#include "engine/cluster.h"
#include "scheduler/residents_private.h"

bool holds_card(const struct cluster *cluster, uint32_t node, const char *uuid, uint8_t *ret)
{
	uint32_t on, index;

	if (cluster_gpu_find(cluster, uuid, &on, ret))
		return on == node;
	if (parse_u32(uuid, strlen(uuid), &index) < 0 ||
	    index >= cluster_node(cluster, node)->gpus_count)
		return false;
	*ret = (uint8_t)index;
	return true;
}

static void add_hold(struct assignment *a, const struct hold *hold)
{
	if (a->count == HOLD_MAX)
		return;
	a->holds[a->count++] = *hold;
	a->gpus |= gpuset_one(hold->gpu);
}

/* Pods that share a card by one map are a group of their own. */
static uint32_t group_of(const struct request *asks, uint8_t ask)
{
	if (!asks || ask >= asks->asks_count || asks->asks[ask].kind != ASK_SHARE)
		return 0;
	return asks->asks[ask].group;
}

void holds_of_decision(const struct cluster *cluster, uint32_t node, const struct decided *decided,
		       const struct request *asks, struct assignment *ret)
{
	const struct mig_geometry *mig = cluster_node(cluster, node)->mig;

	*ret = (struct assignment){ .weakest_gbps = UINT32_MAX };
	for (uint32_t i = 0; i < decided->holds_count; i++) {
		const struct decided_hold *from = &decided->holds[i];
		struct hold hold = { .ask = from->ask, .kind = ASK_WHOLE };
		int profile = -1;

		if (!holds_card(cluster, node, from->uuid, &hold.gpu))
			continue;
		if (from->mig_profile && mig)
			profile = mig_profile_find(mig, from->mig_profile,
						   strlen(from->mig_profile));
		if (from->mig_profile && profile < 0)
			continue;
		if (from->mig_profile) {
			hold.kind = ASK_MIG;
			hold.mig_profile = (uint8_t)profile;
			hold.mig_start = from->mig_start;
		} else if (from->core_milli < CORE_WHOLE) {
			hold.kind = ASK_SHARE;
			hold.core_milli = from->core_milli;
			hold.mem_mib = from->mem_mib;
			hold.group = group_of(asks, from->ask);
		}
		add_hold(ret, &hold);
	}
}

/* As many more idle cards as the pod asks for beyond those that it is seen on: it may not
 * have begun to use them. */
static uint32_t more_cards(const struct node *n, const struct request *r, uint32_t gpus)
{
	uint32_t asked = 0, seen = gpuset_count(gpus), idle = n->idle & ~gpus;

	for (unsigned i = 0; i < r->asks_count; i++)
		asked += r->asks[i].count;
	return gpus |
	       (asked > seen ? gpuset_lowest(idle, MIN(asked - seen, gpuset_count(idle))) : 0);
}

void holds_of_use(const struct cluster *cluster, uint32_t node, const struct request *r,
		  uint32_t gpus, struct assignment *ret)
{
	const struct node *n = cluster_node(cluster, node);
	const struct ask *ask = r->asks_count ? &r->asks[0] : NULL;
	bool share = ask && ask->kind == ASK_SHARE;

	*ret = (struct assignment){ .weakest_gbps = UINT32_MAX };
	gpus &= gpuset_range(0, n->gpus_count);
	if (!share)
		gpus = more_cards(n, r, gpus);
	for (uint32_t left = gpus; left; left &= left - 1) {
		struct hold hold = { .gpu = (uint8_t)gpuset_first(left),
				     .kind = share ? ASK_SHARE : ASK_WHOLE };

		if (share) {
			hold.core_milli = ask->core_milli;
			hold.mem_mib = ask_mem_mib(ask, &n->gpus[hold.gpu]);
		}
		add_hold(ret, &hold);
	}
}

/* A share of all of a card is the card. */
static uint16_t core_of(const struct hold *h)
{
	return h->kind == ASK_WHOLE ? CORE_WHOLE : h->core_milli;
}

static bool hold_equal(const struct hold *a, const struct hold *b)
{
	if (a->gpu != b->gpu || (a->kind == ASK_MIG) != (b->kind == ASK_MIG))
		return false;
	if (a->kind == ASK_MIG)
		return a->mig_profile == b->mig_profile && a->mig_start == b->mig_start;
	if (core_of(a) != core_of(b))
		return false;
	return core_of(a) == CORE_WHOLE || a->mem_mib == b->mem_mib;
}

bool holds_equal(const struct pod *pod, const struct assignment *a)
{
	uint64_t matched = 0;

	if (pod->holds_count != a->count)
		return false;
	for (uint16_t i = 0; i < a->count; i++) {
		uint16_t j = 0;

		while (j < a->count &&
		       ((matched >> j & 1) || !hold_equal(&pod->holds[j], &a->holds[i])))
			j++;
		if (j == a->count)
			return false;
		matched |= UINT64_C(1) << j;
	}
	return true;
}
