/* SPDX-License-Identifier: Apache-2.0 */
/* Random lives of MIG GPUs, against a model that keeps every instance by itself. */
#include "test.h"

#include "base/attr.h"
#include "base/rng.h"
#include "engine/mig.h"

#define SEED  424243
#define STEPS 20000

struct instance {
	unsigned profile, start;
	struct mig_state before; /* the GPU without it, if it was the last */
};

struct card {
	struct instance instances[MIG_SLICES_MAX];
	unsigned count;
	struct mig_state state;
};

static bool overlap(const struct mig_geometry *g, const struct instance *a, unsigned profile,
		    unsigned start)
{
	unsigned a_end = a->start + g->profiles[a->profile].size;
	unsigned end = start + g->profiles[profile].size;

	return a->start < end && start < a_end;
}

/* Whether the model allows one more, by the rules of the hardware. */
static bool allowed(const struct mig_geometry *g, const struct card *card, unsigned profile,
		    unsigned start)
{
	const struct mig_profile *own = &g->profiles[profile];
	unsigned compute = own->compute, media = own->media;

	if (start >= 8 || !(own->starts & 1U << start))
		return false;
	for (unsigned i = 0; i < card->count; i++) {
		if (overlap(g, &card->instances[i], profile, start))
			return false;
		compute += g->profiles[card->instances[i].profile].compute;
		media += g->profiles[card->instances[i].profile].media;
	}
	return compute <= g->compute && media <= 1;
}

static void add(const struct mig_geometry *g, struct card *card, unsigned profile, unsigned start)
{
	card->instances[card->count++] = (struct instance){ profile, start, card->state };
	mig_place(g, &card->state, profile, start);
}

/* The most instances of one profile that still fit, by trying every way. */
static unsigned most(const struct mig_geometry *g, struct card card, unsigned profile,
		     unsigned from)
{
	unsigned best = 0;

	for (unsigned start = from; start < g->slices; start++) {
		if (!allowed(g, &card, profile, start))
			continue;
		struct card next = card;
		add(g, &next, profile, start);
		unsigned count = 1 + most(g, next, profile, start + 1);
		best = MAX(best, count);
	}
	return best;
}

/* Positive if card a keeps more: the largest profile whose number differs decides. */
static int compare(const struct mig_geometry *g, const struct card *a, const struct card *b)
{
	for (unsigned p = 0; p < g->profile_count; p++) {
		if (g->profiles[p].media)
			continue;
		int difference = (int)most(g, *a, p, 0) - (int)most(g, *b, p, 0);
		if (difference)
			return difference;
	}
	return 0;
}

static bool best_start(const struct mig_geometry *g, const struct card *card, unsigned profile,
		       unsigned *ret)
{
	struct card best = { 0 };
	bool found = false;

	for (unsigned start = 0; start < 8; start++) {
		struct card next = *card;
		if (!allowed(g, card, profile, start))
			continue;
		add(g, &next, profile, start);
		if (found && compare(g, &next, &best) < 0)
			continue;
		found = true;
		best = next;
		*ret = start;
	}
	return found;
}

static void check_pick(const struct mig_geometry *g, struct card *card, unsigned profile,
		       unsigned step)
{
	struct mig_choice choice = { 0 };
	unsigned expected = 0;
	bool fits = best_start(g, card, profile, &expected);

	for (unsigned start = 0; start < 10; start++)
		CHECK(mig_fits_at(g, card->state, profile, start) ==
		      allowed(g, card, profile, start));
	CHECK(mig_fits(g, card->state, profile) == fits);
	CHECK(mig_pick(g, card->state, profile, &choice) == fits);
	if (!fits)
		return;
	CHECKF(choice.start == expected, "seed %d step %u: %s %s used %x: %u, best is %u", SEED,
	       step, g->name, g->profiles[profile].name, card->state.used, choice.start, expected);
	uint32_t before = mig_worth(g, card->state);
	add(g, card, profile, choice.start);
	CHECK(mig_worth(g, card->state) + choice.loss == before);
}

/* Frees an instance: the rest must be as if it had never been. */
static void drop(const struct mig_geometry *g, struct card *card, unsigned which)
{
	struct instance gone = card->instances[which];
	struct card rebuilt = { 0 };

	mig_free(g, &card->state, gone.profile, gone.start);
	if (which == card->count - 1)
		CHECK(memcmp(&card->state, &gone.before, sizeof(gone.before)) == 0);
	for (unsigned i = 0; i < card->count; i++)
		if (i != which)
			add(g, &rebuilt, card->instances[i].profile, card->instances[i].start);
	CHECK(memcmp(&card->state, &rebuilt.state, sizeof(rebuilt.state)) == 0);
	*card = rebuilt;
}

TEST(random_lives_never_overlap_and_every_pick_is_the_best)
{
	struct rng rng;
	struct card cards[8] = { 0 };

	rng_seed(&rng, SEED);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned which = rng_below(&rng, ARRAY_SIZE(cards));
		const struct mig_geometry *g = mig_geometry_at(which);
		struct card *card = &cards[which];
		CHECK(g != NULL);
		if (card->count && rng_chance(&rng, 2, 5))
			drop(g, card, rng_below(&rng, card->count));
		else
			check_pick(g, card, rng_below(&rng, g->profile_count), step);
	}
}

/* Every state that legal placements can reach, every profile. */
static unsigned visit(const struct mig_geometry *g, const struct card *card, bool *seen)
{
	unsigned states = 1;
	unsigned number = card->state.used | (unsigned)card->state.compute << 8 |
			  (unsigned)card->state.media << 12;

	if (seen[number])
		return 0;
	seen[number] = true;
	for (unsigned p = 0; p < g->profile_count; p++) {
		struct card picked = *card;
		check_pick(g, &picked, p, 0);
		for (unsigned start = 0; start < g->slices; start++) {
			struct card next = *card;
			if (!allowed(g, card, p, start))
				continue;
			add(g, &next, p, start);
			states += visit(g, &next, seen);
		}
	}
	return states;
}

TEST(every_reachable_state_of_every_geometry_is_picked_best)
{
	const struct mig_geometry *g;

	for (size_t i = 0; (g = mig_geometry_at(i)); i++) {
		static bool seen[1 << 13];
		struct card empty = { 0 };
		memset(seen, 0, sizeof(seen));
		CHECK(visit(g, &empty, seen) > 10);
	}
}

TEST_MAIN()
