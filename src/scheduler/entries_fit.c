/* SPDX-License-Identifier: Apache-2.0 */
/* entries_fit.c - adding up what entries hold of one card after the other. */
#include "scheduler/entries.h"

#include "base/err.h"
#include "engine/mig.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define CORE_WHOLE 1000

/* What is held of one card. */
struct tally {
	const char *uuid;
	struct lock_card card;
	bool known;
	uint32_t shares, slices;
	bool whole; /* one of the shares is all of it */
	uint64_t core_milli, mem_mib;
	struct mig_state mig;
	const char *wrong; /* why it is too much; NULL: it is not */
};

/* All of the core is the whole card unless it leaves memory to others; of a card whose
 * memory nobody knows, nothing is left. */
static bool is_whole(const struct tally *tally, const struct lock_hold *hold)
{
	return hold->core_milli >= CORE_WHOLE &&
	       (hold->mem_mib == 0 || hold->mem_mib >= tally->card.mem_mib);
}

static const char *add_share(struct tally *tally, const struct lock_hold *hold)
{
	tally->shares++;
	tally->whole = tally->whole || is_whole(tally, hold);
	tally->core_milli += hold->core_milli;
	tally->mem_mib += hold->mem_mib;
	if (tally->core_milli > CORE_WHOLE)
		return "has no core left";
	if (tally->card.mem_mib && tally->mem_mib > tally->card.mem_mib)
		return "has no memory left";
	return tally->whole && tally->shares > 1 ? "is taken whole" : NULL;
}

static const char *add_slice(struct tally *tally, const struct lock_hold *hold)
{
	const struct mig_geometry *mig = tally->known ? tally->card.mig : NULL;
	int profile = mig ? mig_profile_find(mig, hold->mig_profile, strlen(hold->mig_profile))
			  : -ENOENT;

	tally->slices++;
	if (!mig)
		return "is not known to have slices";
	if (profile < 0)
		return "has no slices of that profile";
	if (!mig_fits_at(mig, tally->mig, (unsigned)profile, hold->mig_start))
		return "has that slice taken";
	mig_place(mig, &tally->mig, (unsigned)profile, hold->mig_start);
	return NULL;
}

static void add_hold(struct tally *tally, const struct lock_hold *hold)
{
	const char *wrong = hold->mig_profile ? add_slice(tally, hold) : add_share(tally, hold);

	if (!wrong && tally->shares && tally->slices)
		wrong = "is sliced and shared at once";
	if (!tally->wrong)
		tally->wrong = wrong;
}

/* Whether the entry holds any of that card. */
static bool add_entry(struct tally *tally, const struct lock_entry *entry)
{
	bool any = false;

	for (uint32_t i = 0; i < entry->holds_count; i++) {
		if (strcmp(entry->holds[i].uuid, tally->uuid) != 0)
			continue;
		add_hold(tally, &entry->holds[i]);
		any = true;
	}
	return any;
}

static bool is_first_of_card(const struct lock_entry *entry, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++)
		if (strcmp(entry->holds[i].uuid, entry->holds[number].uuid) == 0)
			return false;
	return true;
}

static int fit_card(struct tally *tally, const struct lock_entry *entries, uint32_t count,
		    const struct lock_entry *more, struct err *err)
{
	const struct lock_entry *holder = NULL;

	for (uint32_t i = 0; i < count; i++)
		if (add_entry(tally, &entries[i]))
			holder = &entries[i];
	add_entry(tally, more);
	if (!tally->wrong)
		return 0;
	if (!holder)
		return err_set(err, ENOSPC, "GPU %s %s", tally->uuid, tally->wrong);
	return err_set(err, ENOSPC, "GPU %s %s: %s/%s holds some of it", tally->uuid, tally->wrong,
		       holder->namespace, holder->name);
}

/* Those who chose a free index of a map may have chosen it at the same time: a line is on one
 * node, and its cards are the same, so one of them finds the other here. */
static int fit_index(const struct lock_entry *entry, const struct lock_entry *more,
		     struct err *err)
{
	if (!entry->map || !more->map || entry->map_index != more->map_index ||
	    strcmp(entry->map, more->map) != 0)
		return 0;
	return err_set(err, ENOSPC, "%s/%s has index %" PRIu32 " of its map", entry->namespace,
		       entry->name, more->map_index);
}

int entries_fit(const struct lock_entry *entries, uint32_t count, const struct lock_entry *more,
		bool (*card)(void *context, const char *uuid, struct lock_card *ret),
		void *context, struct err *err)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(entries[i].uid, more->uid) == 0)
			return err_set(err, EEXIST, "%s/%s has an entry of attempt %" PRIu32,
				       more->namespace, more->name, entries[i].attempt);
		int rc = fit_index(&entries[i], more, err);
		if (rc < 0)
			return rc;
	}
	for (uint32_t i = 0; i < more->holds_count; i++) {
		struct tally tally = { .uuid = more->holds[i].uuid };

		if (!is_first_of_card(more, i))
			continue;
		tally.known = card(context, tally.uuid, &tally.card);
		if (!tally.known)
			tally.card = (struct lock_card){ 0 };
		int rc = fit_card(&tally, entries, count, more, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
