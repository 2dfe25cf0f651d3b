/* SPDX-License-Identifier: Apache-2.0 */
/* pick_wide.c - pick for machines with too many states for a table: more than 16 GPUs
 * whose links follow no pattern.
 *
 * Finding the heaviest set is NP-hard there, so the work is bounded.  First every
 * free GPU grows a set greedily: good answers, and the only candidates for ties.
 * Then branch and bound over the groups either proves the best of them, or finds a
 * better one, or stops after PICK_STEPS_MAX steps.  A branch is cut when a pair is
 * too slow, or when the best so far serves the policy as well as can be and the
 * branch cannot have more bandwidth.
 */
#include "engine/pick_search.h"

#include "base/attr.h"

struct wide {
	struct search *s;
	uint32_t steps;
	uint64_t ceiling;		    /* no set serves the policy better */
	uint32_t fastest[GPU_MAX][GPU_MAX]; /* by group, m: sum of its m fastest links
						   to free GPUs */
};

/* What is chosen on the way down to a group. */
struct chosen {
	uint32_t gpus;
	uint32_t total_gbps;
	uint32_t gain_gbps[GPU_MAX]; /* by group: what a member would add */
};

static void sort_descending(uint32_t *values, unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		uint32_t value = values[i];
		unsigned at = i;
		for (; at && values[at - 1] < value; at--)
			values[at] = values[at - 1];
		values[at] = value;
	}
}

static void fill_fastest(struct wide *w)
{
	const struct links *links = w->s->links;

	for (unsigned g = 0; g < w->s->group_count; g++) {
		unsigned gpu = w->s->groups[g].gpu, count = 0;
		uint32_t gbps[GPU_MAX];
		gpuset_each(other, w->s->free & ~gpuset_one(gpu))
			gbps[count++] = links->gbps[gpu][other];
		sort_descending(gbps, count);
		w->fastest[g][0] = 0;
		for (unsigned m = 0; m < count; m++)
			w->fastest[g][m + 1] = w->fastest[g][m] + gbps[m];
	}
}

/* The evenest way to put `count` members into parts with so many free GPUs. */
static uint32_t most_even(const uint32_t *parts, unsigned part_count, uint32_t gpus,
			  unsigned count)
{
	uint32_t taken = 0;

	for (unsigned i = 0; count; i = (i + 1) % part_count) {
		uint32_t left = gpus & parts[i] & ~taken;
		if (!left)
			continue;
		taken |= gpuset_one(gpuset_first(left));
		count--;
	}
	return taken;
}

/* The best that the policy could be served, by sets that look at one thing only. */
static uint64_t policy_ceiling(const struct search *s)
{
	const struct links *links = s->links;
	unsigned count = s->query->count;
	uint32_t by_island, by_numa, wanted = 0;

	switch (s->query->policy) {
	case PICK_SPREAD:
		by_island = most_even(links->island_gpus, links->island_count, s->free, count);
		by_numa = most_even(links->numa_gpus, links->numa_count, s->free, count);
		return (search_policy(s, by_island, false) & ~UINT64_C(0xffff)) |
		       (search_policy(s, by_numa, false) & 0xffff);
	case PICK_PREFER:
		for (; count; count--) {
			uint32_t left = s->free & ~wanted;
			unsigned best = gpuset_first(left);
			gpuset_each(gpu, left)
				if (s->rank[gpu] > s->rank[best])
					best = gpu;
			wanted |= gpuset_one(best);
		}
		return search_policy(s, wanted, false);
	case PICK_CONTIGUOUS:
	case PICK_BANDWIDTH:
		break;
	}
	return 0;
}

static uint32_t gain(const struct links *links, unsigned gpu, uint32_t gpus)
{
	uint32_t sum = 0;

	gpuset_each(other, gpus)
		sum += links->gbps[gpu][other];
	return sum;
}

static bool is_fast_enough(const struct search *s, unsigned gpu, uint32_t gpus)
{
	gpuset_each(other, gpus & ~gpuset_one(gpu))
		if (s->links->gbps[gpu][other] < s->floor_gbps)
			return false;
	return true;
}

/* The GPU that adds most to the set: by policy, bandwidth, id.  0 if none may join. */
static uint32_t best_joiner(const struct search *s, uint32_t gpus)
{
	uint32_t best = 0, best_gain = 0;
	uint64_t best_policy = 0;

	gpuset_each(gpu, s->free & ~gpus) {
		if (!is_fast_enough(s, gpu, gpus))
			continue;
		uint32_t adds = search_by_bandwidth(s) ? gain(s->links, gpu, gpus) : 0;
		uint64_t policy = search_policy(s, gpus | gpuset_one(gpu), false);
		if (best && (policy < best_policy || (policy == best_policy && adds <= best_gain)))
			continue;
		best = gpuset_one(gpu);
		best_gain = adds;
		best_policy = policy;
	}
	return best;
}

static void search_greedy(struct search *s)
{
	if (!s->query->count)
		return;
	gpuset_each(first, s->free) {
		uint32_t gpus = gpuset_one(first), joiner = 1;
		while (joiner && gpuset_count(gpus) < s->query->count) {
			joiner = best_joiner(s, gpus);
			gpus |= joiner;
		}
		if (joiner)
			search_offer_set(s, gpus, false);
	}
}

/* No completion of what is chosen has a greater total: `left` more members bring at
 * most what they have with those chosen, and half of their fastest links, which are
 * counted from both ends. */
static uint32_t bound(const struct wide *w, const struct chosen *chosen, unsigned group,
		      unsigned left)
{
	uint32_t twice[GPU_MAX], sum = 0;
	unsigned count = 0;

	for (unsigned g = group; g < w->s->group_count; g++)
		for (unsigned m = 0; m < MIN(w->s->groups[g].size, left); m++)
			twice[count++] = 2 * chosen->gain_gbps[g] + w->fastest[g][left - 1];
	sort_descending(twice, count);
	for (unsigned i = 0; i < MIN(left, count); i++)
		sum += twice[i];
	return chosen->total_gbps + sum / 2;
}

static bool can_improve(const struct wide *w, const struct chosen *chosen, unsigned group,
			unsigned left)
{
	const struct search *s = w->s;

	if (!s->found || (s->policy & ~POLICY_REACHES) < w->ceiling)
		return true;
	return search_by_bandwidth(s) && bound(w, chosen, group, left) > s->total_gbps;
}

/* Takes `take` members of the group as well.  False if that makes a pair too slow. */
static bool choose(const struct wide *w, const struct chosen *from, unsigned group, unsigned take,
		   struct chosen *ret)
{
	const struct search *s = w->s;
	const struct group *own = &s->groups[group];
	uint32_t joining = own->members[take];

	*ret = *from;
	if (!take)
		return true;
	unsigned gpu = gpuset_first(joining);
	ret->gpus |= joining;
	if (!is_fast_enough(s, gpu, ret->gpus))
		return false;
	uint32_t among = gain(s->links, gpu, joining); /* take - 1 equal links */
	ret->total_gbps += take * from->gain_gbps[group] + take * among / 2;
	for (unsigned g = group + 1; g < s->group_count; g++)
		ret->gain_gbps[g] += take * s->links->gbps[s->groups[g].gpu][gpu];
	return true;
}

/* Goes no deeper than there are groups. */
static void branch(struct wide *w, const struct chosen *chosen, unsigned group, unsigned left)
{
	const struct group *own = &w->s->groups[group];
	struct chosen next;

	if (w->steps >= PICK_STEPS_MAX)
		return;
	w->steps++;
	if (!left) {
		search_offer_set(w->s, chosen->gpus, false);
		return;
	}
	if (!can_improve(w, chosen, group, left))
		return;
	unsigned behind = own[1].room;
	unsigned least = left > behind ? left - behind : 0;
	for (unsigned take = MIN(own->size, left) + 1; take-- > least;)
		if (choose(w, chosen, group, take, &next))
			branch(w, &next, group + 1, left - take);
}

static bool search_wide(struct search *s)
{
	struct wide w;
	struct chosen nothing = { 0 };

	w.s = s;
	w.steps = 0;
	w.ceiling = policy_ceiling(s);
	search_greedy(s);
	fill_fastest(&w);
	branch(&w, &nothing, 0, s->query->count);
	return w.steps < PICK_STEPS_MAX;
}

/* A preferred minimum is first searched for as if it were required.  What may have
 * been found before is a run that does not reach it: the next best thing. */
bool pick_wide(struct search *s)
{
	struct search before = *s;
	bool proven = true;

	if (s->query->mode == PICK_PREFERRED && s->query->min_gbps) {
		s->floor_gbps = s->query->min_gbps;
		s->found = false;
		proven = search_wide(s);
		if (s->found)
			return proven;
		*s = before;
	}
	return s->found ? proven : search_wide(s) && proven;
}
