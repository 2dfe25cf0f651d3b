/* SPDX-License-Identifier: Apache-2.0 */
/* search.c - several asks of one pod, when serving them one after the other has failed.
 *
 * Each ask takes what is best for itself, and an earlier one can take the only card that
 * a later one could have used.  Here every unit (one card or slice of one ask) tries every
 * card, depth first, with the cards that are in the same state tried once.  Bounded: after
 * STEPS_MAX tries the node counts as full, which in tests on nodes of eight cards happened
 * to none of the pods with up to eleven containers that fit. */
#include "base/attr.h"
#include "engine/choose.h"
#include "engine/cluster_private.h"
#include "engine/links.h"
#include "engine/pick.h"

#include <string.h>

#define STEPS_MAX 4096

struct unit {
	uint8_t ask;
	uint8_t last;  /* 1: the last unit of its ask */
	uint8_t next;  /* card to try next */
	uint8_t start; /* slice to try next */
};

struct search {
	const struct choose *choose;
	struct node trial;
	struct gpu gpus[GPU_MAX];
	struct unit units[HOLD_MAX];
	uint16_t units_count;
	struct assignment *result;
};

static bool same_state(const struct gpu *a, const struct gpu *b)
{
	return a->model == b->model && a->mem_mib == b->mem_mib &&
	       a->mem_free_mib == b->mem_free_mib && a->group == b->group &&
	       a->core_free_milli == b->core_free_milli && a->tenants == b->tenants &&
	       a->use == b->use && a->healthy == b->healthy && a->mig_mode == b->mig_mode &&
	       !memcmp(&a->mig, &b->mig, sizeof(a->mig)) &&
	       !memcmp(a->mig_made, b->mig_made, sizeof(a->mig_made));
}

/* The cards that units of the pod placed so far use: by this ask, or by any. */
static uint32_t cards_used(const struct search *s, uint16_t depth, uint8_t ask, bool any)
{
	uint32_t gpus = 0;

	for (uint16_t i = 0; i < depth; i++)
		if (any || s->result->holds[i].ask == ask)
			gpus |= gpuset_one(s->result->holds[i].gpu);
	return gpus;
}

/* Whether `gpu` may serve the unit at `depth` as far as the pod's own rules go. */
static bool allowed(const struct search *s, uint16_t depth, const struct ask *a, uint32_t gpu)
{
	uint8_t ask = s->units[depth].ask;

	if (!modelset_has(&a->models, s->gpus[gpu].model) || !s->gpus[gpu].healthy)
		return false;
	if (a->pinned && !gpuset_has(a->pinned, gpu))
		return false;
	if (a->kind != ASK_MIG && gpuset_has(cards_used(s, depth, ask, false), gpu))
		return false;
	for (uint16_t i = 0; i < depth; i++) {
		const struct hold *h = &s->result->holds[i];
		bool apart = a->apart || s->choose->request->asks[h->ask].apart;

		if (h->gpu == gpu && h->ask != ask && apart)
			return false;
	}
	return true;
}

/* A card in the same state with a lower id was tried at this depth: this one is no news.
 * Where links matter to the ask, cards are all different. */
static bool tried_alike(const struct search *s, uint16_t depth, const struct ask *a, uint32_t gpu)
{
	if (a->pinned || (s->trial.links && a->min_gbps && a->bandwidth_mode == PICK_REQUIRED))
		return false;
	for (uint32_t i = 0; i < gpu; i++)
		if (same_state(&s->gpus[i], &s->gpus[gpu]) && allowed(s, depth, a, i))
			return true;
	return false;
}

static bool fast_enough(const struct search *s, uint16_t depth)
{
	uint8_t ask = s->units[depth].ask;
	const struct ask *a = &s->choose->request->asks[ask];

	if (!s->units[depth].last || a->kind != ASK_WHOLE || a->count < 2 || !a->min_gbps ||
	    a->bandwidth_mode != PICK_REQUIRED)
		return true;
	return s->trial.links &&
	       links_weakest(s->trial.links, cards_used(s, (uint16_t)(depth + 1), ask, false)) >=
		       a->min_gbps;
}

/* A slice that nobody has made, on a card where they are made beforehand. */
static bool is_unmade(const struct gpu *g, uint8_t start, int profile)
{
	return g->mig_mode == MIG_MADE && g->mig_made[start] != profile + 1;
}

static bool book(struct search *s, uint16_t depth, uint32_t gpu, uint8_t start, int profile)
{
	const struct ask *a = &s->choose->request->asks[s->units[depth].ask];
	struct hold *h = &s->result->holds[depth];

	*h = (struct hold){
		.gpu = (uint8_t)gpu, .ask = s->units[depth].ask, .kind = a->kind, .group = a->group
	};
	if (a->kind == ASK_SHARE) {
		h->core_milli = a->core_milli;
		h->mem_mib = ask_mem_mib(a, &s->gpus[gpu]);
	} else if (a->kind == ASK_MIG) {
		if (is_unmade(&s->gpus[gpu], start, profile))
			return false;
		h->mig_start = start;
		h->mig_profile = (uint8_t)profile;
	}
	if (!hold_book(&s->trial, h, s->choose->seats))
		return false;
	if (fast_enough(s, depth))
		return true;
	hold_release(&s->trial, h);
	return false;
}

/* The next card (and slice) for the unit, booked; false when there is none left. */
static bool advance(struct search *s, uint16_t depth)
{
	struct unit *u = &s->units[depth];
	const struct ask *a = &s->choose->request->asks[u->ask];
	int profile = 0;

	if (a->kind == ASK_MIG) {
		size_t len = strnlen(a->mig_profile, sizeof(a->mig_profile));

		profile = s->trial.mig ? mig_profile_find(s->trial.mig, a->mig_profile, len) : -1;
		if (profile < 0)
			return false;
	}
	for (; u->next < s->trial.gpus_count; u->next++, u->start = 0) {
		if (!allowed(s, depth, a, u->next) || tried_alike(s, depth, a, u->next))
			continue;
		while (u->start < (a->kind == ASK_MIG ? MIG_SLICES_MAX : 1))
			if (book(s, depth, u->next, u->start++, profile))
				return true;
	}
	return false;
}

/* False if there are more than an assignment holds. */
static bool list_units(struct search *s, const uint8_t *order)
{
	const struct request *r = s->choose->request;

	for (uint8_t i = 0; i < r->asks_count; i++)
		for (uint8_t j = 0; j < r->asks[order[i]].count; j++) {
			if (s->units_count == HOLD_MAX)
				return false;
			s->units[s->units_count++] = (struct unit){
				.ask = order[i],
				.last = j + 1 == r->asks[order[i]].count,
			};
		}
	return true;
}

/* What the holds say together, for those who read the assignment. */
static void summarise(const struct search *s)
{
	struct assignment *a = s->result;
	const struct request *r = s->choose->request;

	a->count = s->units_count;
	a->gpus = cards_used(s, a->count, 0, true);
	a->weakest_gbps = UINT32_MAX;
	for (uint8_t i = 0; i < r->asks_count && s->trial.links; i++) {
		uint32_t gpus = assignment_gpus(a, i);

		if (r->asks[i].kind == ASK_WHOLE && r->asks[i].count > 1)
			a->weakest_gbps =
				MIN(a->weakest_gbps, links_weakest(s->trial.links, gpus));
	}
}

/* The cards of one ask have no order among themselves: each begins behind the one before. */
static uint8_t first_card(const struct search *s, uint16_t depth)
{
	const struct unit *before = &s->units[depth - 1];

	if (before->ask != s->units[depth].ask ||
	    s->choose->request->asks[before->ask].kind == ASK_MIG)
		return 0;
	return (uint8_t)(before->next + 1);
}

bool search_gpus(const struct choose *ch, const uint8_t *order, const struct node *n,
		 struct assignment *ret)
{
	struct search s = { .choose = ch, .trial = *n, .result = ret };
	uint16_t depth = 0;

	memcpy(s.gpus, n->gpus, n->gpus_count * sizeof(*s.gpus));
	s.trial.gpus = s.gpus;
	if (!list_units(&s, order))
		return false;
	for (uint32_t steps = 0; steps < STEPS_MAX; steps++) {
		if (advance(&s, depth)) {
			if (++depth == s.units_count) {
				summarise(&s);
				return true;
			}
			s.units[depth].next = first_card(&s, depth);
			s.units[depth].start = 0;
			continue;
		}
		if (!depth--)
			return false;
		hold_release(&s.trial, &ret->holds[depth]);
	}
	return false;
}
