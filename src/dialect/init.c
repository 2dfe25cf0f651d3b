/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - GPUs of init containers.
 *
 * An init container is gone before those after it start, so the pod needs the greater of
 * what it wants and what the others want together, never the sum.  It runs on their GPUs:
 * those of the containers, of sidecars that start later and of other init containers.
 * Sidecars that started before it keep theirs.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "dialect/want.h"

/* The container gets `count` GPUs of the ask. */
static void give(const struct draft *d, struct wish_container *box, unsigned number, uint8_t count)
{
	box->asks |= (uint16_t)(1u << number);
	box->take[number] = count < d->request->asks[number].count ? count : 0;
}

int want_add(struct draft *d, struct wish_container *box, const struct want *want, struct err *err)
{
	unsigned number = d->request->asks_count;
	struct ask *ask = draft_ask(d, want->kind, want->count, err);

	if (!ask)
		return -EINVAL;
	ask->core_milli = want->core_milli;
	ask->mem_mib = want->mem_mib;
	snprintf(ask->mig_profile, sizeof(ask->mig_profile), "%s",
		 want->profile ? want->profile : "");
	give(d, box, number, want->count);
	return 0;
}

/* Asks whose GPUs are free when an init container runs. */
struct lent {
	struct draft *d;
	uint16_t beside;
};

static struct ask *lent_ask(const struct lent *l, unsigned number, enum ask_kind kind)
{
	struct ask *ask = &l->d->request->asks[number];

	return ask->kind == kind && !(l->beside >> number & 1) ? ask : NULL;
}

static struct ask *lent_like(const struct lent *l, unsigned number, const struct want *want)
{
	struct ask *ask = lent_ask(l, number, want->kind);

	if (ask && want->profile && strcmp(ask->mig_profile, want->profile) != 0)
		return NULL;
	return ask;
}

/* The smallest ask that has enough by itself, for its cards lie together; or -1. */
static int enough_alone(const struct lent *l, const struct want *want)
{
	const struct request *r = l->d->request;
	int best = -1;

	assert(r);
	for (int i = 0; i < r->asks_count; i++) {
		const struct ask *ask = lent_like(l, (unsigned)i, want);

		if (ask && ask->count >= want->count &&
		    (best < 0 || ask->count < r->asks[best].count))
			best = i;
	}
	return best;
}

/* Shares become whole cards, as many as `left`.  Returns how many are left then. */
static uint8_t make_whole(const struct lent *l, struct wish_container *box, uint8_t left)
{
	for (unsigned i = 0; i < l->d->request->asks_count && left; i++) {
		struct ask *ask = lent_ask(l, i, ASK_SHARE);

		if (!ask)
			continue;
		ask->kind = ASK_WHOLE;
		ask->core_milli = 0;
		ask->mem_mib = 0;
		give(l->d, box, i, 1);
		left--;
	}
	return left;
}

/* Whole cards or slices: those of one ask, else of all together, and what is lacking. */
static int borrow_cards(const struct lent *l, struct wish_container *box, const struct want *want,
			struct err *err)
{
	struct want lacking = *want;
	int alone = enough_alone(l, want);

	if (alone >= 0) {
		give(l->d, box, (unsigned)alone, want->count);
		return 0;
	}
	for (unsigned i = 0; i < l->d->request->asks_count && lacking.count; i++) {
		const struct ask *ask = lent_like(l, i, want);

		if (!ask)
			continue;
		uint8_t part = MIN(ask->count, lacking.count);
		give(l->d, box, i, part);
		lacking.count = (uint8_t)(lacking.count - part);
	}
	if (want->kind == ASK_WHOLE)
		lacking.count = make_whole(l, box, lacking.count);
	return lacking.count ? want_add(l->d, box, &lacking, err) : 0;
}

static bool is_covered(const struct ask *ask, const struct want *want)
{
	return ask->core_milli >= want->core_milli && ask->mem_mib >= want->mem_mib;
}

/* Whether share `a` is the better one to use: it is enough, and the other is not or is
 * greater; of two that are not enough, the one that has more. */
static bool is_better(const struct ask *a, const struct ask *b, const struct want *want)
{
	bool a_covers = is_covered(a, want), b_covers = is_covered(b, want);
	bool a_less = a->core_milli != b->core_milli ? a->core_milli < b->core_milli
						     : a->mem_mib < b->mem_mib;

	if (a_covers != b_covers)
		return a_covers;
	return a_covers == a_less && !(a->core_milli == b->core_milli && a->mem_mib == b->mem_mib);
}

static int best_share(const struct lent *l, const struct want *want)
{
	const struct request *r = l->d->request;
	int best = -1;

	for (int i = 0; i < r->asks_count; i++)
		if (lent_ask(l, (unsigned)i, ASK_SHARE) &&
		    (best < 0 || is_better(&r->asks[i], &r->asks[best], want)))
			best = i;
	return best;
}

/* A share: one that is enough, else a part of a whole card, else the best one raised. */
static int borrow_share(const struct lent *l, struct wish_container *box, const struct want *want,
			struct err *err)
{
	int share = best_share(l, want);
	struct ask *ask = share < 0 ? NULL : &l->d->request->asks[share];
	struct want card = { .kind = ASK_WHOLE, .count = 1 };
	int whole = ask && is_covered(ask, want) ? -1 : enough_alone(l, &card);

	if (whole >= 0) {
		give(l->d, box, (unsigned)whole, 1);
		return 0;
	}
	if (!ask)
		return want_add(l->d, box, want, err);
	ask->core_milli = MAX(ask->core_milli, want->core_milli);
	ask->mem_mib = MAX(ask->mem_mib, want->mem_mib);
	give(l->d, box, (unsigned)share, 1);
	return 0;
}

int init_want(struct draft *d, struct wish_container *box, uint16_t beside,
	      const struct want *want, struct err *err)
{
	struct lent lent = { d, beside };

	if (want->kind == ASK_SHARE)
		return borrow_share(&lent, box, want, err);
	return borrow_cards(&lent, box, want, err);
}
