/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mig.h"

#include "base/attr.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define WORTH_BITS 3 /* a digit of mig_worth(): at most 7 of a profile */
#define WORTH_MAX  ((1U << WORTH_BITS) - 1)

const struct mig_geometry *mig_geometry_find(const char *name)
{
	const struct mig_geometry *geometry;

	for (size_t i = 0; (geometry = mig_geometry_at(i)); i++)
		if (strcasecmp(geometry->name, name) == 0)
			return geometry;
	return NULL;
}

/* The length of a profile's name without "+me" or ".me", which it may end with. */
static size_t plain_length(const char *name, size_t len, bool *media)
{
	*media = len > 3 && (name[len - 3] == '+' || name[len - 3] == '.') &&
		 name[len - 2] == 'm' && name[len - 1] == 'e';
	return *media ? len - 3 : len;
}

int mig_profile_find(const struct mig_geometry *geometry, const char *name, size_t len)
{
	bool media, own_media;

	if (len > 4 && memcmp(name, "mig-", 4) == 0) {
		name += 4;
		len -= 4;
	}
	len = plain_length(name, len, &media);
	for (unsigned i = 0; i < geometry->profile_count; i++) {
		const char *own = geometry->profiles[i].name;
		size_t own_len = plain_length(own, strlen(own), &own_media);
		if (own_len == len && own_media == media && memcmp(own, name, len) == 0)
			return (int)i;
	}
	return -ENOENT;
}

/* The memory slices of an instance that begins at `start`. */
static uint8_t slices_at(const struct mig_profile *profile, unsigned start)
{
	return (uint8_t)(((1U << profile->size) - 1) << start);
}

static bool has_compute(const struct mig_geometry *geometry, struct mig_state state,
			const struct mig_profile *profile)
{
	return state.compute + profile->compute <= geometry->compute &&
	       !(profile->media && state.media);
}

static bool is_free_at(struct mig_state state, const struct mig_profile *profile, unsigned start)
{
	return start < MIG_SLICES_MAX && (profile->starts >> start & 1) &&
	       !(state.used & slices_at(profile, start));
}

bool mig_fits_at(const struct mig_geometry *geometry, struct mig_state state, unsigned profile,
		 unsigned start)
{
	assert(profile < geometry->profile_count);
	return has_compute(geometry, state, &geometry->profiles[profile]) &&
	       is_free_at(state, &geometry->profiles[profile], start);
}

bool mig_fits(const struct mig_geometry *geometry, struct mig_state state, unsigned profile)
{
	for (unsigned start = 0; start < geometry->slices; start++)
		if (mig_fits_at(geometry, state, profile, start))
			return true;
	return false;
}

/* How many instances of one profile fit.  They are equally long, so taking each at the
 * lowest start that is free leaves no room for more. */
static unsigned count_alone(const struct mig_geometry *geometry, struct mig_state state,
			    const struct mig_profile *profile)
{
	unsigned by_compute = (geometry->compute - state.compute) / profile->compute;
	unsigned count = 0;

	for (unsigned start = 0; start < geometry->slices; start++) {
		if (!is_free_at(state, profile, start))
			continue;
		state.used |= slices_at(profile, start);
		count++;
	}
	return MIN(MIN(count, by_compute), MIN(profile->max_count, WORTH_MAX));
}

uint32_t mig_worth(const struct mig_geometry *geometry, struct mig_state state)
{
	uint32_t worth = 0;

	for (unsigned i = 0; i < geometry->profile_count; i++) {
		const struct mig_profile *profile = &geometry->profiles[i];
		if (!profile->media)
			worth = worth << WORTH_BITS | count_alone(geometry, state, profile);
	}
	return worth;
}

bool mig_pick(const struct mig_geometry *geometry, struct mig_state state, unsigned profile,
	      struct mig_choice *ret)
{
	uint32_t best = 0;
	bool found = false;

	for (unsigned start = geometry->slices; start-- > 0;) {
		struct mig_state after = state;
		if (!mig_fits_at(geometry, state, profile, start))
			continue;
		mig_place(geometry, &after, profile, start);
		uint32_t worth = mig_worth(geometry, after);
		if (found && worth <= best)
			continue;
		found = true;
		best = worth;
		ret->start = (uint8_t)start;
	}
	if (found)
		ret->loss = mig_worth(geometry, state) - best;
	return found;
}

bool mig_pick_made(const struct mig_geometry *geometry, struct mig_state state,
		   const uint8_t made[MIG_SLICES_MAX], unsigned profile, struct mig_choice *ret)
{
	for (unsigned start = MIG_SLICES_MAX; start-- > 0;) {
		if (made[start] != profile + 1 || !mig_fits_at(geometry, state, profile, start))
			continue;
		*ret = (struct mig_choice){ .start = (uint8_t)start };
		return true;
	}
	return false;
}

void mig_place(const struct mig_geometry *geometry, struct mig_state *state, unsigned profile,
	       unsigned start)
{
	const struct mig_profile *own = &geometry->profiles[profile];

	assert(mig_fits_at(geometry, *state, profile, start));
	state->used |= slices_at(own, start);
	state->compute = (uint8_t)(state->compute + own->compute);
	state->media = (uint8_t)(state->media + own->media);
}

void mig_free(const struct mig_geometry *geometry, struct mig_state *state, unsigned profile,
	      unsigned start)
{
	const struct mig_profile *own = &geometry->profiles[profile];
	uint8_t slices = slices_at(own, start);

	assert((state->used & slices) == slices && state->compute >= own->compute &&
	       state->media >= own->media);
	state->used &= (uint8_t)~slices;
	state->compute = (uint8_t)(state->compute - own->compute);
	state->media = (uint8_t)(state->media - own->media);
}
