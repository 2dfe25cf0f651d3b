/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - whole cards, shares and slices inside one node. */
#include "engine/choose.h"
#include "base/hash.h"
#include "engine/links.h"
#include "engine/pick.h"
#include "engine/score.h"

#include <string.h>

/* GPUs of an acceptable model. */
static uint32_t acceptable(const struct ask *a, const struct node *n)
{
	uint32_t gpus = gpuset_range(0, n->gpus_count);

	if (!modelset_any(&a->models))
		for (uint32_t i = 0; i < n->gpus_count; i++)
			if (!modelset_has(&a->models, n->gpus[i].model))
				gpus &= ~gpuset_one(i);
	return gpus;
}

/* GPUs of earlier asks of the pod that this one keeps off. */
static uint32_t kept_apart(const struct ask *a, const struct assignment *so_far)
{
	return a->apart ? so_far->gpus : so_far->apart;
}

static uint32_t unhealthy(const struct node *n)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < n->gpus_count; i++)
		if (!n->gpus[i].healthy)
			gpus |= gpuset_one(i);
	return gpus;
}

/* Those that could be had whole if they were well. */
static uint32_t unhealthy_idle(const struct node *n)
{
	uint32_t gpus = unhealthy(n);

	gpuset_each(gpu, gpus)
		if (n->gpus[gpu].use != GPU_IDLE || n->gpus[gpu].mig_mode)
			gpus &= ~gpuset_one(gpu);
	return gpus;
}

static void add_hold(struct assignment *ret, const struct ask *a, uint8_t ask, struct hold hold)
{
	hold.ask = ask;
	hold.kind = a->kind;
	hold.group = a->group;
	ret->holds[ret->count++] = hold;
	ret->gpus |= gpuset_one(hold.gpu);
	if (a->apart)
		ret->apart |= gpuset_one(hold.gpu);
}

/* Why there are fewer than `count` among the usable ones. */
static enum verdict too_few(const struct ask *a, const struct node *n, uint32_t models,
			    uint32_t usable)
{
	if (n->gpus_count < a->count)
		return NO_GPU;
	if (gpuset_count(models) < a->count)
		return WRONG_MODEL;
	if (gpuset_count(usable | (models & unhealthy_idle(n))) >= a->count)
		return UNHEALTHY_GPU;
	return NO_FREE_GPU;
}

/* Exactly the pinned ids: each must exist, be acceptable and usable. */
static enum verdict pinned(const struct ask *a, const struct node *n, uint32_t models,
			   uint32_t usable)
{
	if (a->pinned & ~gpuset_range(0, n->gpus_count) || gpuset_count(a->pinned) != a->count)
		return NO_SUCH_GPU;
	if (a->pinned & ~models)
		return WRONG_MODEL;
	if (a->pinned & unhealthy(n))
		return UNHEALTHY_GPU;
	return a->pinned & ~usable ? PINNED_GPU_BUSY : FITS;
}

/* The lowest run of ids that follow each other, or 0. */
static uint32_t lowest_run(uint32_t usable, uint32_t count)
{
	for (uint32_t first = 0; first + count <= GPU_MAX; first++)
		if (!(gpuset_range(first, count) & ~usable))
			return gpuset_range(first, count);
	return 0;
}

/* Without links all pairs are alike: adjacent or preferred ids, then the lowest. */
static uint32_t pick_unlinked(const struct ask *a, uint32_t usable)
{
	uint32_t gpus = 0;

	if (a->policy == PICK_CONTIGUOUS && a->bandwidth_mode != PICK_IGNORE)
		gpus = lowest_run(usable, a->count);
	if (a->policy == PICK_PREFER)
		for (uint32_t i = 0; i < a->prefer_count; i++)
			if (gpuset_has(usable, a->prefer[i]) && gpuset_count(gpus) < a->count)
				gpus |= gpuset_one(a->prefer[i]);
	return gpus | gpuset_lowest(usable & ~gpus, a->count - gpuset_count(gpus));
}

static enum verdict pick_linked(const struct ask *a, const struct node *n, uint32_t usable,
				uint32_t *gpus)
{
	struct pick_query query = {
		.links = n->links,
		.free = usable,
		.count = a->count,
		.policy = (enum pick_policy)a->policy,
		.mode = (enum pick_mode)a->bandwidth_mode,
		.min_gbps = a->min_gbps,
		.prefer_ids = a->prefer,
		.prefer_len = a->prefer_count,
	};
	struct pick pick;

	if (pick_gpus(&query, &pick) != PICK_OK)
		return NO_BANDWIDTH;
	*gpus = pick.gpus;
	return FITS;
}

/* Pinned cards are not picked, so what is required of them is looked at here. */
static bool fast_enough(const struct ask *a, const struct node *n, uint32_t gpus)
{
	if (a->bandwidth_mode != PICK_REQUIRED || !a->min_gbps || a->count < 2)
		return true;
	return n->links && links_weakest(n->links, gpus) >= a->min_gbps;
}

static enum verdict choose_whole(const struct ask *a, uint8_t ask, const struct node *n,
				 struct assignment *ret)
{
	uint32_t models = acceptable(a, n), gpus = 0;
	uint32_t usable = n->idle & models & ~kept_apart(a, ret);
	enum verdict v = FITS;

	if (a->pinned) {
		v = pinned(a, n, models, usable);
		gpus = a->pinned;
	} else if (gpuset_count(usable) < a->count) {
		return too_few(a, n, models, usable);
	} else if (n->links) {
		v = pick_linked(a, n, usable, &gpus);
	} else {
		gpus = pick_unlinked(a, usable);
	}
	if (v != FITS)
		return v;
	if (!fast_enough(a, n, gpus))
		return NO_BANDWIDTH;
	gpuset_each(gpu, gpus)
		add_hold(ret, a, ask, (struct hold){ .gpu = (uint8_t)gpu });
	if (n->links && a->count > 1) {
		uint16_t weakest = links_weakest(n->links, gpus);

		if (weakest < ret->weakest_gbps)
			ret->weakest_gbps = weakest;
	}
	return FITS;
}

static bool is_seat(const struct ask *a, const struct gpu *g)
{
	return !a->core_milli && !ask_mem_mib(a, g) && !a->group;
}

/* FITS, or why this card cannot take the share. */
static enum verdict share_fits(const struct ask *a, const struct gpu *g, uint16_t seats)
{
	if (!g->healthy)
		return UNHEALTHY_GPU;
	if (g->mig_mode || (g->use != GPU_IDLE && g->use != GPU_SHARED) ||
	    (g->use == GPU_SHARED && g->group != a->group))
		return NO_FREE_GPU;
	if (a->core_milli > g->core_free_milli)
		return NO_GPU_CORE;
	if (g->mem_mib && (int64_t)ask_mem_mib(a, g) > g->mem_free_mib)
		return NO_GPU_MEMORY;
	if (is_seat(a, g) && g->tenants >= seats)
		return NO_SHARED_SEAT;
	return FITS;
}

/* The refusal to report: the one that came nearest to a fit. */
static enum verdict nearest(enum verdict a, enum verdict b)
{
	static const uint8_t distance[VERDICT_COUNT] = {
		[FITS] = 9,	      [NO_GPU_MEMORY] = 1, [NO_GPU_CORE] = 2,
		[NO_SHARED_SEAT] = 3, [NO_FREE_GPU] = 4,   [UNHEALTHY_GPU] = 5,
	};

	return distance[b] < distance[a] ? b : a;
}

/* The better of two cards for the share, by the ask's own policy. */
static bool share_better(const struct ask *a, const struct node *n, uint32_t x, uint32_t y)
{
	const struct gpu *gx = &n->gpus[x], *gy = &n->gpus[y];
	int sign = a->share_policy == SHARE_SPREAD ? -1 : 1;

	if (a->share_policy == SHARE_RANDOM)
		return hash_bytes(&x, sizeof(x), a->prefer_seed) <
		       hash_bytes(&y, sizeof(y), a->prefer_seed);
	if (gx->core_free_milli != gy->core_free_milli)
		return sign * (gx->core_free_milli - gy->core_free_milli) < 0;
	if (gx->mem_free_mib != gy->mem_free_mib)
		return sign * ((int64_t)gx->mem_free_mib - gy->mem_free_mib) < 0;
	if (gx->tenants != gy->tenants)
		return sign * (gy->tenants - gx->tenants) < 0;
	return x < y;
}

static uint32_t share_best(const struct choose *ch, const struct ask *a, const struct node *n,
			   uint32_t usable)
{
	uint32_t best = gpuset_first(usable);

	for (uint32_t i = 0; i < a->prefer_count; i++)
		if (gpuset_has(usable, a->prefer[i]))
			return a->prefer[i];
	if (a->share_policy == SHARE_LEASTFRAG && ch->scorer && (usable & (usable - 1)))
		return scorer_pick_share(ch->scorer, ch->request, a, n, usable);
	gpuset_each(gpu, usable)
		if (share_better(a, n, gpu, best))
			best = gpu;
	return best;
}

static enum verdict choose_share(const struct choose *ch, uint8_t ask, const struct node *n,
				 struct assignment *ret)
{
	const struct ask *a = &ch->request->asks[ask];
	uint32_t models = acceptable(a, n), usable = 0;
	enum verdict v = FITS;

	if (n->gpus_count < a->count)
		return NO_GPU;
	if (gpuset_count(models) < a->count)
		return WRONG_MODEL;
	gpuset_each(gpu, models & ~kept_apart(a, ret)) {
		enum verdict fits = share_fits(a, &n->gpus[gpu], ch->seats);

		if (fits == FITS)
			usable |= gpuset_one(gpu);
		else
			v = nearest(v, fits);
	}
	if (a->pinned) {
		v = pinned(a, n, models, usable);
		usable = a->pinned;
		if (v != FITS)
			return v;
	}
	if (gpuset_count(usable) < a->count)
		return v == FITS ? NO_FREE_GPU : v;
	for (uint8_t i = 0; i < a->count; i++) {
		uint32_t gpu = share_best(ch, a, n, usable);

		usable &= ~gpuset_one(gpu);
		add_hold(ret, a, ask,
			 (struct hold){
				 .gpu = (uint8_t)gpu,
				 .core_milli = a->core_milli,
				 .mem_mib = ask_mem_mib(a, &n->gpus[gpu]),
			 });
	}
	return FITS;
}

/* The card that loses least by one more slice; its choice in *ret.  False: none fits. */
static bool slice_best(const struct node *n, const struct mig_state *states, uint32_t usable,
		       unsigned profile, uint32_t *best, struct mig_choice *ret)
{
	bool found = false;

	gpuset_each(gpu, usable) {
		const struct gpu *g = &n->gpus[gpu];
		struct mig_choice choice;
		bool fits =
			g->mig_mode == MIG_MADE
				? mig_pick_made(n->mig, states[gpu], g->mig_made, profile, &choice)
				: mig_pick(n->mig, states[gpu], profile, &choice);

		if (!fits)
			continue;
		if (found && choice.loss >= ret->loss)
			continue;
		found = true;
		*best = gpu;
		*ret = choice;
	}
	return found;
}

static uint32_t sliceable(const struct node *n, uint32_t models)
{
	uint32_t gpus = 0;

	gpuset_each(gpu, models)
		if (n->gpus[gpu].mig_mode)
			gpus |= gpuset_one(gpu);
	return gpus;
}

static enum verdict choose_slices(const struct ask *a, uint8_t ask, const struct node *n,
				  struct assignment *ret)
{
	struct mig_state states[GPU_MAX];
	size_t len = strnlen(a->mig_profile, sizeof(a->mig_profile));
	uint32_t models = acceptable(a, n), usable;
	int profile;

	if (!n->gpus_count)
		return NO_GPU;
	if (!models)
		return WRONG_MODEL;
	profile = n->mig ? mig_profile_find(n->mig, a->mig_profile, len) : -1;
	usable = sliceable(n, models);
	if (profile < 0 || !usable)
		return NO_MIG_PROFILE;
	if (a->pinned & ~gpuset_range(0, n->gpus_count))
		return NO_SUCH_GPU;
	if (a->pinned & ~usable)
		return NO_MIG_PROFILE;
	if (a->pinned)
		usable = a->pinned;
	usable &= ~unhealthy(n);
	if (!usable)
		return UNHEALTHY_GPU;
	usable &= ~kept_apart(a, ret);
	gpuset_each(gpu, usable)
		states[gpu] = n->gpus[gpu].mig;
	for (uint8_t i = 0; i < a->count; i++) {
		struct mig_choice choice = { 0 };
		uint32_t gpu = 0;

		if (!slice_best(n, states, usable, (unsigned)profile, &gpu, &choice))
			return NO_MIG_SLICE;
		mig_place(n->mig, &states[gpu], (unsigned)profile, choice.start);
		add_hold(ret, a, ask,
			 (struct hold){
				 .gpu = (uint8_t)gpu,
				 .mig_start = choice.start,
				 .mig_profile = (uint8_t)profile,
			 });
	}
	return FITS;
}

enum verdict choose_gpus(const struct choose *ch, uint8_t ask, const struct node *n,
			 struct assignment *ret)
{
	const struct ask *a = &ch->request->asks[ask];

	if (ret->count + a->count > HOLD_MAX)
		return NO_GPU;
	switch (a->kind) {
	case ASK_WHOLE:
		return choose_whole(a, ask, n, ret);
	case ASK_SHARE:
		return choose_share(ch, ask, n, ret);
	default:
		return choose_slices(a, ask, n, ret);
	}
}
