/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/pick.h"

#include "base/attr.h"
#include "engine/pick_search.h"

#include <assert.h>

/* No set is spread less evenly. */
#define UNEVEN_MAX (GPU_MAX * GPU_MAX)

/* Sum of squares of the members in each part: least when they are spread evenly,
 * and evenly spread members touch as many parts as there can be. */
static unsigned unevenness(const uint32_t *parts, unsigned count, uint32_t gpus)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned members = gpuset_count(gpus & parts[i]);
		sum += members * members;
	}
	return sum;
}

static uint64_t spread_word(const struct links *links, uint32_t gpus)
{
	unsigned islands = unevenness(links->island_gpus, links->island_count, gpus);
	unsigned numas = unevenness(links->numa_gpus, links->numa_count, gpus);

	return (uint64_t)(UNEVEN_MAX - islands) << 16 | (UNEVEN_MAX - numas);
}

static uint64_t prefer_word(const struct search *s, uint32_t gpus)
{
	uint32_t ranks = 0;

	gpuset_each(gpu, gpus)
		ranks |= s->rank[gpu];
	return (uint64_t)gpuset_count(ranks) << 32 | ranks;
}

uint64_t search_policy(const struct search *s, uint32_t gpus, bool run)
{
	switch (s->query->policy) {
	case PICK_SPREAD:
		return spread_word(s->links, gpus);
	case PICK_PREFER:
		return prefer_word(s, gpus);
	case PICK_CONTIGUOUS:
		return run ? POLICY_RUN : 0;
	case PICK_BANDWIDTH:
		break;
	}
	return 0;
}

/* Whether the new set beats the best so far: by policy, total, remainder, ids. */
static bool is_better(const struct search *s, uint32_t gpus, uint64_t policy,
		      const struct links_state *worth)
{
	if (!s->found || policy != s->policy)
		return !s->found || policy > s->policy;
	if (search_by_bandwidth(s) && worth->total_gbps != s->total_gbps)
		return worth->total_gbps > s->total_gbps;
	if (worth->rest_gbps != s->rest_gbps)
		return worth->rest_gbps > s->rest_gbps;
	return gpuset_before(gpus, s->gpus);
}

/* Remembers the set if it is better than the best so far. */
static void offer(struct search *s, uint32_t gpus, const struct links_state *worth, bool run)
{
	if (worth->weakest_gbps < s->floor_gbps)
		return;
	uint64_t policy = search_policy(s, gpus, run);
	if (s->query->mode == PICK_PREFERRED && worth->weakest_gbps >= s->query->min_gbps)
		policy |= POLICY_REACHES;
	if (!is_better(s, gpus, policy, worth))
		return;
	s->found = true;
	s->gpus = gpus;
	s->policy = policy;
	s->total_gbps = worth->total_gbps;
	s->rest_gbps = worth->rest_gbps;
}

void search_offer_set(struct search *s, uint32_t gpus, bool run)
{
	struct links_state worth = {
		.total_gbps = links_total(s->links, gpus),
		.rest_gbps = links_rest(s->links, s->free & ~gpus),
		.weakest_gbps = links_weakest(s->links, gpus),
	};

	offer(s, gpus, &worth, run);
}

static void offer_state(struct search *s, uint32_t gpus, uint32_t state)
{
	struct links_state worth = s->links->states[state];

	worth.rest_gbps = s->links->states[s->free_state - state].rest_gbps;
	offer(s, gpus, &worth, false);
}

/* All runs of free ids inside an island.  They are searched by themselves because
 * twins differ in their ids. */
static void search_runs(struct search *s)
{
	unsigned count = s->query->count;

	for (unsigned first = 0; first + count <= s->links->count; first++) {
		uint32_t gpus = gpuset_range(first, count);
		if (!(gpus & ~s->free) && links_is_run(s->links, gpus))
			search_offer_set(s, gpus, true);
	}
}

/* Every way to take `left` more GPUs from the groups from `group` on.  Goes no deeper
 * than there are groups. */
static void search_states(struct search *s, const struct group *group, unsigned left,
			  uint32_t gpus, uint32_t state)
{
	if (!left) {
		offer_state(s, gpus, state);
		return;
	}
	assert(group->size > 0); /* what is left is never more than there is room for */
	unsigned most = MIN(group->size, left);
	unsigned behind = group[1].room;
	unsigned least = left > behind ? left - behind : 0;
	for (unsigned take = least; take <= most; take++)
		search_states(s, group + 1, left - take, gpus | group->members[take],
			      state + take * group->stride);
}

static void rank_preferred(struct search *s)
{
	const struct pick_query *query = s->query;
	uint32_t bit = UINT32_C(1) << (GPU_MAX - 1);

	for (uint32_t i = 0; i < query->prefer_len && bit; i++) {
		uint8_t gpu = query->prefer_ids[i];
		if (gpu >= GPU_MAX || s->rank[gpu])
			continue;
		s->rank[gpu] = bit;
		bit >>= 1;
	}
}

/* The members of a group, preferred ones first in their order, then by id. */
static void fill_group(const struct search *s, struct group *group, uint32_t gpus)
{
	uint32_t taken = 0;

	group->gpu = (uint8_t)gpuset_first(gpus);
	group->stride = s->links->stride[group->gpu];
	group->size = 0;
	group->members[0] = 0;
	while (gpus) {
		unsigned next = gpuset_first(gpus);
		gpuset_each(gpu, gpus)
			if (s->rank[gpu] > s->rank[next])
				next = gpu;
		gpus &= ~gpuset_one(next);
		taken |= gpuset_one(next);
		group->members[++group->size] = taken;
	}
}

static void fill_groups(struct search *s)
{
	unsigned room = 0;

	for (unsigned c = 0; c < s->links->class_count; c++)
		if (s->links->class_gpus[c] & s->free)
			fill_group(s, &s->groups[s->group_count++],
				   s->links->class_gpus[c] & s->free);
	for (unsigned g = s->group_count; g-- > 0;) {
		room += s->groups[g].size;
		s->groups[g].room = (uint8_t)room;
	}
	s->groups[s->group_count].room = s->groups[s->group_count].size = 0;
}

static bool is_settled_by_runs(const struct search *s)
{
	return s->found && s->policy & POLICY_RUN &&
	       (s->query->mode != PICK_PREFERRED || s->policy & POLICY_REACHES);
}

/* False if the answer is not proven to be the best. */
static bool search(struct search *s)
{
	if (s->query->policy == PICK_CONTIGUOUS && search_by_bandwidth(s))
		search_runs(s);
	if (is_settled_by_runs(s))
		return true;
	if (s->query->policy == PICK_PREFER)
		rank_preferred(s);
	fill_groups(s);
	if (!s->links->state_count)
		return pick_wide(s);
	s->free_state = links_state_of(s->links, s->free);
	search_states(s, s->groups, s->query->count, 0, 0);
	return true;
}

enum pick_verdict pick_gpus(const struct pick_query *query, struct pick *ret)
{
	struct group groups[GPU_MAX + 1]; /* large: only what is used gets filled */
	struct search s = {
		.links = query->links,
		.query = query,
		.free = query->free & links_all(query->links),
		.floor_gbps = query->mode == PICK_REQUIRED ? query->min_gbps : 0,
		.groups = groups,
	};

	if (query->count > gpuset_count(s.free))
		return PICK_TOO_FEW;
	bool exact = search(&s);
	if (!s.found)
		return PICK_TOO_SLOW;
	ret->gpus = s.gpus;
	ret->total_gbps = s.total_gbps;
	ret->weakest_gbps = links_weakest(s.links, s.gpus);
	ret->reaches_minimum = ret->weakest_gbps >= query->min_gbps;
	ret->exact = exact;
	return PICK_OK;
}
