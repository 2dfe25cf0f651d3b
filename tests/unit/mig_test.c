/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "engine/mig.h"

#include <errno.h>

static unsigned profile(const struct mig_geometry *g, const char *name)
{
	int index = mig_profile_find(g, name, strlen(name));

	CHECKF(index >= 0, "%s has no %s", g->name, name);
	return (unsigned)index;
}

TEST(geometries_are_found_by_name_and_model)
{
	static const struct {
		const char *model, *geometry;
	} rows[] = {
		{ "NVIDIA-A30", "a30-24gb" },
		{ "NVIDIA-A100-SXM4-40GB", "a100-40gb" },
		{ "nvidia-a100-80gb-pcie", "a100-80gb" },
		{ "NVIDIA-H100-80GB-HBM3-SHARED", "h100-80gb" },
		{ "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "h100-80gb" },
		{ "NVIDIA-H100-NVL", "h100-94gb" },
		{ "NVIDIA-H200", "h200-141gb" },
		{ "NVIDIA-H200-NVL", "h200-141gb" },
		{ "NVIDIA-B200", "b200-180gb" },
		{ "NVIDIA-GB200", "gb200-186gb" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct mig_geometry *g = mig_geometry_of_model(rows[i].model);
		CHECKF(g && g == mig_geometry_find(rows[i].geometry), "%s", rows[i].model);
	}
	CHECK(mig_geometry_of_model("Tesla-T4") == NULL);
	CHECK(mig_geometry_of_model("NVIDIA-H2000") == NULL);
	CHECK(mig_geometry_of_model("") == NULL);
	CHECK(mig_geometry_find("H200-141GB") == &mig_h200_141gb);
	CHECK(mig_geometry_find("l4") == NULL);
}

TEST(profiles_answer_to_all_their_spellings)
{
	const struct mig_geometry *g = &mig_a100_40gb;

	CHECK_INT(profile(g, "mig-1g.5gb"), profile(g, "1g.5gb"));
	CHECK_INT(profile(g, "1g.5gb.me"), profile(g, "1g.5gb+me"));
	CHECK_INT(profile(g, "mig-1g.5gb.me"), profile(g, "1g.5gb+me"));
	CHECK(profile(g, "1g.5gb") != profile(g, "1g.5gb+me"));
	CHECK_INT(mig_profile_find(g, "1g.5gbXYZ", 6), profile(g, "1g.5gb"));
	CHECK_INT(mig_profile_find(g, "1g.20gb", 7), -ENOENT);
	CHECK_INT(mig_profile_find(g, "", 0), -ENOENT);
	CHECK_INT(mig_profile_find(g, "mig-", 4), -ENOENT);
	CHECK_INT(mig_profile_find(g, ".me", 3), -ENOENT);
	CHECK_INT(mig_profile_find(g, "2g.10gb+me", 10), -ENOENT);
}

TEST(one_name_is_two_things_on_two_cards)
{
	const struct mig_profile *small =
		&mig_a100_40gb.profiles[profile(&mig_a100_40gb, "1g.10gb")];
	const struct mig_profile *large =
		&mig_a100_80gb.profiles[profile(&mig_a100_80gb, "1g.10gb")];

	CHECK_INT(small->id, 15);
	CHECK_INT(small->size, 2);
	CHECK_INT(small->max_count, 4);
	CHECK_INT(large->id, 19);
	CHECK_INT(large->size, 1);
	CHECK_INT(large->max_count, 7);
}

static unsigned fill(const struct mig_geometry *g, unsigned index)
{
	struct mig_state state = { 0 };
	struct mig_choice choice;
	unsigned count = 0;

	for (; mig_pick(g, state, index, &choice); count++)
		mig_place(g, &state, index, choice.start);
	return count;
}

TEST(tables_agree_with_themselves)
{
	const struct mig_geometry *g;

	for (size_t i = 0; (g = mig_geometry_at(i)); i++) {
		unsigned digits = 0;
		CHECK(g->profile_count <= MIG_PROFILES_MAX && g->slices <= MIG_SLICES_MAX);
		for (unsigned p = 0; p < g->profile_count; p++) {
			const struct mig_profile *own = &g->profiles[p];
			const struct mig_profile *next = own + (p + 1U < g->profile_count);
			CHECK_INT(profile(g, own->name), p);
			CHECK(own->size > next->size ||
			      (own->size == next->size && own->compute >= next->compute));
			CHECKF(fill(g, p) == own->max_count, "%s %s", g->name, own->name);
			CHECK(!(own->starts >> (g->slices - own->size + 1)));
			CHECK(own->mem_mib && own->sm_count && own->compute);
			digits += !own->media;
		}
		CHECK(digits <= 10);
	}
	CHECK_INT(mig_a100_40gb.profiles[0].mem_mib, 40192);
}

TEST(small_instances_gather_at_the_end)
{
	const struct mig_geometry *g = &mig_h100_80gb;
	struct mig_state state = { 0 };
	const uint8_t starts[] = { 6, 5, 4, 3, 2, 1, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct mig_choice choice = { 0 };
		CHECK(mig_pick(g, state, profile(g, "1g.10gb"), &choice));
		CHECK_INT(choice.start, starts[i]);
		mig_place(g, &state, profile(g, "1g.10gb"), choice.start);
		CHECK(mig_fits(g, state, profile(g, "4g.40gb")) == (i < 3));
	}
	CHECK(!mig_fits(g, state, profile(g, "1g.10gb")));
	CHECK_INT(state.compute, 7);
}

TEST(each_profile_goes_where_it_harms_least)
{
	static const struct {
		const char *name;
		uint8_t used, start;
	} rows[] = {
		{ "3g.40gb", 0x00, 4 }, { "4g.40gb", 0x00, 0 }, { "2g.20gb", 0x00, 4 },
		{ "1g.20gb", 0x00, 6 }, { "2g.20gb", 0xf0, 2 }, { "1g.10gb", 0xf0, 3 },
		{ "1g.10gb", 0x0f, 6 }, { "1g.10gb", 0x30, 6 }, { "1g.10gb+me", 0x00, 6 },
		{ "1g.20gb", 0x0f, 6 }, { "1g.20gb", 0x40, 4 }, { "3g.40gb", 0xf0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct mig_state state = { .used = rows[i].used };
		struct mig_choice choice = { 0 };
		state.compute = (uint8_t)(rows[i].used ? 3 : 0);
		CHECKF(mig_pick(&mig_h100_80gb, state, profile(&mig_h100_80gb, rows[i].name),
				&choice),
		       "row %zu", i);
		CHECKF(choice.start == rows[i].start, "row %zu: %u", i, choice.start);
	}
}

static bool fits_after(const struct mig_geometry *g, const char *first, const char *second)
{
	struct mig_state state = { 0 };
	struct mig_choice choice;

	CHECK(mig_pick(g, state, profile(g, first), &choice));
	mig_place(g, &state, profile(g, first), choice.start);
	return mig_fits(g, state, profile(g, second));
}

TEST(combinations_are_those_of_the_hardware)
{
	CHECK(fits_after(&mig_a100_40gb, "4g.20gb", "3g.20gb"));
	CHECK(fits_after(&mig_a100_40gb, "3g.20gb", "4g.20gb"));
	CHECK(fits_after(&mig_a100_40gb, "3g.20gb", "3g.20gb"));
	CHECK(!fits_after(&mig_a100_40gb, "4g.20gb", "4g.20gb"));
	CHECK(!fits_after(&mig_a100_40gb, "1g.5gb", "7g.40gb"));
	CHECK(fits_after(&mig_a100_40gb, "1g.5gb", "4g.20gb"));
	CHECK(!fits_after(&mig_a100_40gb, "1g.5gb+me", "1g.5gb+me"));
	CHECK(fits_after(&mig_a100_40gb, "1g.5gb+me", "1g.5gb"));
	CHECK(!fits_after(&mig_a30_24gb, "2g.12gb+me", "1g.6gb+me"));
	CHECK(fits_after(&mig_a30_24gb, "2g.12gb+me", "2g.12gb"));
}

TEST(a_start_that_is_not_legal_does_not_fit)
{
	const struct mig_geometry *g = &mig_a100_40gb;
	struct mig_state empty = { 0 };

	CHECK(!mig_fits_at(g, empty, profile(g, "2g.10gb"), 1));
	CHECK(!mig_fits_at(g, empty, profile(g, "2g.10gb"), 6));
	CHECK(!mig_fits_at(g, empty, profile(g, "1g.5gb"), 7));
	CHECK(!mig_fits_at(g, empty, profile(g, "1g.5gb"), 8));
	CHECK(!mig_fits_at(g, empty, profile(g, "1g.5gb"), 200));
	CHECK(mig_fits_at(g, empty, profile(g, "1g.10gb"), 6));
}

TEST(compute_slices_are_a_limit_of_their_own)
{
	const struct mig_geometry *g = &mig_a100_40gb;
	struct mig_state state = { .used = 0x0f, .compute = 5 };

	CHECK(!mig_fits(g, state, profile(g, "3g.20gb")));
	CHECK(mig_fits(g, state, profile(g, "2g.10gb")));
}

TEST(a_card_that_is_broken_into_loses_least)
{
	const struct mig_geometry *g = &mig_a100_80gb;
	struct mig_state empty = { 0 }, started = { 0 };
	struct mig_choice whole, part;

	mig_place(g, &started, profile(g, "1g.10gb"), 6);
	CHECK(mig_pick(g, empty, profile(g, "1g.10gb"), &whole));
	CHECK(mig_pick(g, started, profile(g, "1g.10gb"), &part));
	CHECK(part.loss < whole.loss);
	CHECK(mig_worth(g, empty) > mig_worth(g, started));
	CHECK_INT(mig_worth(g, empty), 01123 * 0100 + 047);
}

TEST(of_slices_that_are_made_the_highest_free_one_is_picked)
{
	const struct mig_geometry *g = &mig_h100_80gb;
	unsigned small = profile(g, "1g.10gb"), large = profile(g, "3g.40gb");
	uint8_t made[MIG_SLICES_MAX] = {
		[0] = (uint8_t)(large + 1), [4] = (uint8_t)(small + 1), [6] = (uint8_t)(small + 1)
	};
	struct mig_state state = { 0 };
	struct mig_choice choice = { .loss = 7 };

	CHECK(mig_pick_made(g, state, made, small, &choice));
	CHECK_INT(choice.start, 6);
	CHECK_INT(choice.loss, 0);
	mig_place(g, &state, small, 6);
	CHECK(mig_pick_made(g, state, made, small, &choice));
	CHECK_INT(choice.start, 4);
	mig_place(g, &state, small, 4);
	/* There would be room for one, but nobody has made it. */
	CHECK(mig_fits(g, state, small));
	CHECK(!mig_pick_made(g, state, made, small, &choice));
	CHECK(!mig_pick_made(g, state, made, profile(g, "2g.20gb"), &choice));
	CHECK(mig_pick_made(g, state, made, large, &choice));
	CHECK_INT(choice.start, 0);
}

TEST_MAIN()
