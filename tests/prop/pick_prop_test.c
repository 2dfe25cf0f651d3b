/* SPDX-License-Identifier: Apache-2.0 */
/* Every answer of pick is compared with the best of all sets, found by trying them. */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/rng.h"
#include "engine/machine.h"
#include "engine/pick.h"

#define SEED 20240611

/* What sets of a machine are worth, by definition: sums over pairs, trying subsets. */
struct oracle {
	const struct links *links;
	uint32_t *total, *rest;
	uint16_t *weakest;
};

static void oracle_done(struct oracle *o)
{
	free(o->total);
	free(o->rest);
	free(o->weakest);
}

static uint32_t slow_total(const struct links *links, uint32_t gpus, uint16_t *weakest)
{
	uint32_t total = 0;

	*weakest = LINKS_NO_PAIR;
	for (unsigned a = 0; a < links->count; a++) {
		for (unsigned b = 0; b < a; b++) {
			if (!(gpus >> a & 1) || !(gpus >> b & 1))
				continue;
			total += links->gbps[a][b];
			*weakest = MIN(*weakest, links->gbps[a][b]);
		}
	}
	return total;
}

static uint32_t slow_rest(const struct oracle *o, uint32_t gpus)
{
	uint32_t best[GPU_MAX + 1] = { 0 };

	for (uint32_t set = gpus; set; set = (set - 1) & gpus) {
		unsigned size = (unsigned)__builtin_popcount(set);
		best[size] = MAX(best[size], o->total[set]);
	}
	return best[2] + best[4] + best[8] + best[16] + best[32];
}

static void oracle_init(struct oracle *o, const struct links *links)
{
	size_t sets = (size_t)1 << links->count;

	o->links = links;
	o->total = calloc(sets, sizeof(*o->total));
	o->rest = calloc(sets, sizeof(*o->rest));
	o->weakest = calloc(sets, sizeof(*o->weakest));
	CHECK(o->total && o->rest && o->weakest);
	for (uint32_t set = 0; set < sets; set++)
		o->total[set] = slow_total(links, set, &o->weakest[set]);
	for (uint32_t set = 0; set < sets; set++)
		o->rest[set] = slow_rest(o, set);
}

static bool same_island(const struct links *links, unsigned from, unsigned to)
{
	uint32_t seen = 1U << from;

	if (!links->nvlink[from])
		return !links->nvlink[to] && links->numa[from] == links->numa[to];
	for (unsigned round = 0; round < links->count; round++)
		for (unsigned gpu = 0; gpu < links->count; gpu++)
			if (seen >> gpu & 1)
				seen |= links->nvlink[gpu];
	return seen >> to & 1;
}

static bool slow_is_run(const struct links *links, uint32_t set)
{
	int last = -1;

	for (unsigned gpu = 0; gpu < links->count; gpu++) {
		if (!(set >> gpu & 1))
			continue;
		if (last >= 0 &&
		    (last + 1 != (int)gpu || !same_island(links, (unsigned)last, gpu)))
			return false;
		last = (int)gpu;
	}
	return true;
}

/* Pairs of members that share a part: grows with the sum of squares. */
static int pairs_together(const struct links *links, uint32_t set, bool by_island)
{
	int pairs = 0;

	for (unsigned a = 0; a < links->count; a++)
		for (unsigned b = 0; b < a; b++)
			if ((set >> a & 1) && (set >> b & 1))
				pairs += by_island ? same_island(links, a, b)
						   : links->numa[a] == links->numa[b];
	return pairs;
}

static int compare_preferred(const struct pick_query *q, uint32_t a, uint32_t b)
{
	uint32_t wanted = 0;

	for (uint32_t i = 0; i < q->prefer_len; i++)
		if (q->prefer_ids[i] < q->links->count)
			wanted |= 1U << q->prefer_ids[i];
	int more = __builtin_popcount(a & wanted) - __builtin_popcount(b & wanted);
	for (uint32_t i = 0; !more && i < q->prefer_len; i++)
		if (q->prefer_ids[i] < q->links->count)
			more = (int)(a >> q->prefer_ids[i] & 1) - (int)(b >> q->prefer_ids[i] & 1);
	return more;
}

static int compare_policy(const struct pick_query *q, uint32_t a, uint32_t b)
{
	const struct links *links = q->links;
	int difference = 0;

	if (q->policy == PICK_CONTIGUOUS && q->mode != PICK_IGNORE)
		return slow_is_run(links, a) - slow_is_run(links, b);
	if (q->policy == PICK_PREFER)
		return compare_preferred(q, a, b);
	if (q->policy == PICK_SPREAD)
		difference = pairs_together(links, b, true) - pairs_together(links, a, true);
	if (q->policy == PICK_SPREAD && !difference)
		difference = pairs_together(links, b, false) - pairs_together(links, a, false);
	return difference;
}

static int compare_numbers(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

/* Positive if set a is the better answer, by the rules of pick.h. */
static int compare(const struct oracle *o, const struct pick_query *q, uint32_t a, uint32_t b)
{
	int difference = 0;

	if (q->mode == PICK_PREFERRED)
		difference = (o->weakest[a] >= q->min_gbps) - (o->weakest[b] >= q->min_gbps);
	if (!difference)
		difference = compare_policy(q, a, b);
	if (!difference && q->mode != PICK_IGNORE)
		difference = compare_numbers(o->total[a], o->total[b]);
	if (!difference)
		difference = compare_numbers(o->rest[q->free & ~a], o->rest[q->free & ~b]);
	for (unsigned gpu = 0; !difference && gpu < GPU_MAX; gpu++)
		difference = (int)(a >> gpu & 1) - (int)(b >> gpu & 1);
	return difference;
}

/* The best set of each size among the free GPUs; UINT32_MAX where there is none. */
static void oracle_pick(const struct oracle *o, const struct pick_query *q, uint32_t *best)
{
	uint32_t set = q->free;

	for (unsigned count = 0; count <= GPU_MAX; count++)
		best[count] = UINT32_MAX;
	for (;; set = (set - 1) & q->free) {
		unsigned count = (unsigned)__builtin_popcount(set);
		if ((q->mode != PICK_REQUIRED || o->weakest[set] >= q->min_gbps) &&
		    (best[count] == UINT32_MAX || compare(o, q, set, best[count]) > 0))
			best[count] = set;
		if (!set)
			break;
	}
}

static void check_one(const struct oracle *o, struct pick_query *q, unsigned count,
		      uint32_t expected, const char *what)
{
	struct pick pick = { 0 };

	q->count = (uint8_t)count;
	enum pick_verdict verdict = pick_gpus(q, &pick);
	if (count > gpuset_count(q->free)) {
		CHECKF(verdict == PICK_TOO_FEW, "%s free %x count %u", what, q->free, count);
		return;
	}
	if (expected == UINT32_MAX) {
		CHECKF(verdict == PICK_TOO_SLOW, "%s free %x count %u", what, q->free, count);
		return;
	}
	CHECKF(verdict == PICK_OK && pick.gpus == expected,
	       "%s free %x count %u policy %d mode %d min %u: picked %x, best is %x", what,
	       q->free, count, q->policy, q->mode, q->min_gbps, pick.gpus, expected);
	CHECK(pick.exact && pick.total_gbps == o->total[expected]);
	CHECK(pick.weakest_gbps == o->weakest[expected]);
	CHECK(pick.reaches_minimum == (o->weakest[expected] >= q->min_gbps));
}

/* All counts for one set of free GPUs. */
static void check_mask(const struct oracle *o, struct pick_query *q, const char *what)
{
	uint32_t best[GPU_MAX + 1];

	oracle_pick(o, q, best);
	for (unsigned count = 0; count <= o->links->count; count++)
		check_one(o, q, count, best[count], what);
}

static uint16_t random_minimum(const struct links *links, struct rng *rng)
{
	unsigned a = rng_below(rng, links->count), b = rng_below(rng, links->count);

	return rng_chance(rng, 1, 3) ? 0 : (uint16_t)(links->gbps[a][b] + rng_below(rng, 2));
}

/* One mask with every policy and mode, and random preferences and minimum. */
static void check_policies(const struct oracle *o, uint32_t mask, struct rng *rng,
			   const char *what)
{
	uint8_t ids[GPU_MAX + 4];
	struct pick_query q = { .links = o->links, .free = mask, .prefer_ids = ids };

	q.prefer_len = rng_below(rng, o->links->count + 4U);
	for (uint32_t i = 0; i < q.prefer_len; i++)
		ids[i] = (uint8_t)rng_below(rng, o->links->count + 2U);
	for (int policy = PICK_CONTIGUOUS; policy <= PICK_BANDWIDTH; policy++) {
		for (int mode = PICK_PREFERRED; mode <= PICK_IGNORE; mode++) {
			q.policy = (enum pick_policy)policy;
			q.mode = (enum pick_mode)mode;
			q.min_gbps = random_minimum(o->links, rng);
			check_mask(o, &q, what);
		}
	}
}

static void check_links(const struct oracle *o)
{
	for (uint32_t set = 0; set < 1U << o->links->count; set++) {
		CHECK(links_total(o->links, set) == o->total[set]);
		CHECK(links_weakest(o->links, set) == o->weakest[set]);
		CHECK(links_rest(o->links, set) == o->rest[set]);
		CHECK(links_is_run(o->links, set) == (set && slow_is_run(o->links, set)));
	}
}

TEST(every_preset_every_mask_every_count_is_the_exact_best)
{
	const struct machine *machine;
	struct rng rng;

	rng_seed(&rng, SEED);
	for (size_t i = 0; (machine = machine_at(i)); i++) {
		struct links *links CLEANUP(links_freep) = NULL;
		struct oracle o CLEANUP(oracle_done) = { 0 };
		if (machine->gpu_count > 8)
			continue;
		CHECK(machine_links(machine, &links, NULL) == 0);
		oracle_init(&o, links);
		check_links(&o);
		for (uint32_t mask = 0; mask < 1U << links->count; mask++)
			check_policies(&o, mask, &rng, machine->name);
	}
}

/* Any pair of a DGX-2 has 300 GB/s, so the best total is known without trying. */
TEST(a_dgx_2_gives_the_best_total_for_every_mask_and_count)
{
	struct links *links CLEANUP(links_freep) = NULL;
	struct pick pick = { 0 };

	CHECK(machine_links(machine_find("dgx-2"), &links, NULL) == 0);
	struct pick_query q = { .links = links, .policy = PICK_BANDWIDTH };
	for (q.free = 0; q.free <= 0xffff; q.free++) {
		for (unsigned count = 1; count <= gpuset_count(q.free); count++) {
			q.count = (uint8_t)count;
			CHECK(pick_gpus(&q, &pick) == PICK_OK);
			CHECK(pick.exact && !(pick.gpus & ~q.free));
			CHECK(gpuset_count(pick.gpus) == count);
			CHECK(pick.total_gbps == 150 * count * (count - 1));
		}
	}
}

/* The GPUs of a DGX-2 are alike but for the socket, so masks with equally many free
 * GPUs on each socket are one case: one of each of the 81 is tried in full, besides
 * random ones. */
TEST(sixteen_gpus_of_a_dgx_2_are_picked_by_all_the_rules)
{
	struct links *links CLEANUP(links_freep) = NULL;
	struct oracle o CLEANUP(oracle_done) = { 0 };
	struct rng rng;

	rng_seed(&rng, SEED);
	CHECK(machine_links(machine_find("dgx-2"), &links, NULL) == 0);
	CHECK_INT(links->state_count, 81);
	oracle_init(&o, links);
	check_links(&o);
	for (uint32_t left = 0; left <= 8; left++) {
		for (uint32_t right = 0; right <= 8; right++) {
			struct pick_query q = { .links = links };
			q.free = gpuset_range(0, left) | gpuset_range(8, right);
			q.policy = PICK_BANDWIDTH;
			check_mask(&o, &q, "dgx-2");
		}
	}
	for (int i = 0; i < 8; i++)
		check_policies(&o, (uint32_t)rng_next(&rng) & rng_next(&rng) & 0xffff, &rng,
			       "dgx-2");
}

/* Few different speeds make twins and ties, many make neither. */
static struct links *random_links(struct rng *rng, unsigned count, unsigned speeds)
{
	uint16_t gbps[GPU_MAX * GPU_MAX] = { 0 };
	uint32_t nvlink[GPU_MAX] = { 0 };
	int8_t numa[GPU_MAX];
	struct links *links = NULL;

	for (unsigned a = 0; a < count; a++) {
		numa[a] = (int8_t)(rng_below(rng, 3) - 1);
		for (unsigned b = 0; b < a; b++) {
			uint16_t speed = (uint16_t)(10 + 50 * rng_below(rng, speeds));
			gbps[a * count + b] = gbps[b * count + a] = speed;
			if (!rng_chance(rng, 1, 6))
				continue;
			nvlink[a] |= gpuset_one(b);
			nvlink[b] |= gpuset_one(a);
		}
	}
	struct links_input input = { count, gbps, nvlink, numa };
	CHECK(links_new(&input, &links, NULL) == 0);
	return links;
}

TEST(random_machines_are_picked_exactly)
{
	struct rng rng;

	rng_seed(&rng, SEED);
	for (unsigned i = 0; i < 60; i++) {
		unsigned count = i < 50 ? 1 + rng_below(&rng, 8) : 9 + rng_below(&rng, 4);
		struct links *links CLEANUP(links_freep) =
			random_links(&rng, count, 1 + rng_below(&rng, i % 3 ? 3 : 1000));
		struct oracle o CLEANUP(oracle_done) = { 0 };
		char what[64];
		snprintf(what, sizeof(what), "seed %d machine %u", SEED, i);
		oracle_init(&o, links);
		check_links(&o);
		for (unsigned m = 0; m < 8; m++)
			check_policies(&o, (uint32_t)rng_next(&rng) & links_all(links), &rng,
				       what);
	}
}

TEST(spread_touches_as_many_islands_as_there_can_be)
{
	struct rng rng;

	rng_seed(&rng, SEED);
	for (unsigned i = 0; i < 300; i++) {
		struct links *links CLEANUP(links_freep) =
			random_links(&rng, 1 + rng_below(&rng, 12), 3);
		uint32_t mask = (uint32_t)rng_next(&rng) & links_all(links);
		struct pick pick;
		struct pick_query q = { .links = links, .free = mask, .policy = PICK_SPREAD };
		unsigned there = 0, touched = 0;
		q.count = (uint8_t)rng_below(&rng, gpuset_count(mask) + 1);
		CHECK(pick_gpus(&q, &pick) == PICK_OK);
		for (unsigned k = 0; k < links->island_count; k++) {
			there += (mask & links->island_gpus[k]) != 0;
			touched += (pick.gpus & links->island_gpus[k]) != 0;
		}
		CHECKF(touched == MIN(there, q.count), "seed %d case %u", SEED, i);
	}
}

TEST(renumbered_gpus_give_the_renumbered_answer)
{
	struct rng rng;

	rng_seed(&rng, SEED);
	for (unsigned i = 0; i < 200; i++) {
		unsigned count = 1 + rng_below(&rng, 10);
		struct links *links CLEANUP(links_freep) = random_links(&rng, count, 4);
		struct links *other CLEANUP(links_freep) = NULL;
		uint8_t to[GPU_MAX] = { 0 };
		struct pick a, b;
		for (unsigned k = 0; k < count; k++) {
			unsigned at = rng_below(&rng, k + 1);
			to[k] = to[at];
			to[at] = (uint8_t)k;
		}
		CHECK(links_permute(links, to, &other, NULL) == 0);
		struct pick_query q = {
			links, links_all(links), 0, PICK_BANDWIDTH, 0, 0, NULL, 0
		};
		q.count = (uint8_t)(1 + rng_below(&rng, count));
		CHECK(pick_gpus(&q, &a) == PICK_OK);
		q.links = other;
		CHECK(pick_gpus(&q, &b) == PICK_OK);
		CHECK(a.total_gbps == b.total_gbps);
		CHECK(links_rest(links, links_all(links) & ~a.gpus) ==
		      links_rest(other, links_all(other) & ~b.gpus));
	}
}

/* The greatest total of `count` of the GPUs, all of them tried. */
static uint32_t greatest_total(const struct links *links, unsigned count, uint16_t min_gbps)
{
	uint32_t greatest = 0;
	uint16_t weakest;

	for (uint32_t set = (1U << count) - 1; set < 1U << links->count;) {
		uint32_t total = slow_total(links, set, &weakest);
		if (weakest >= min_gbps && total > greatest)
			greatest = total;
		uint32_t low = set & -set, carried = set + low;
		set = carried | ((set ^ carried) / low >> 2);
	}
	return greatest;
}

TEST(machines_without_a_table_are_picked_exactly_or_say_so)
{
	struct rng rng;
	unsigned proven = 0, best = 0, all = 0;

	rng_seed(&rng, SEED);
	for (unsigned i = 0; i < 24; i++) {
		struct links *links CLEANUP(links_freep) =
			random_links(&rng, 17, i % 2 ? 1000 : 4);
		struct pick pick = { 0 };
		struct pick_query q = { .links = links, .free = UINT32_MAX };
		q.count = (uint8_t)(2 + i % 15);
		q.policy = PICK_BANDWIDTH;
		q.mode = PICK_REQUIRED;
		q.min_gbps = i % 3 ? 0 : 60;
		CHECK_INT(links->state_count, 0);
		enum pick_verdict verdict = pick_gpus(&q, &pick);
		uint32_t greatest = greatest_total(links, q.count, q.min_gbps);
		CHECKF(verdict == (greatest ? PICK_OK : PICK_TOO_SLOW), "case %u", i);
		CHECK(greatest <= links->best_gbps[q.count]);
		if (!greatest)
			continue;
		CHECK(gpuset_count(pick.gpus) == q.count && !(pick.gpus & ~links_all(links)));
		CHECK(pick.total_gbps == links_total(links, pick.gpus) && pick.reaches_minimum);
		CHECKF(!pick.exact || pick.total_gbps == greatest, "case %u", i);
		CHECKF(pick.total_gbps * 100 >= greatest * 95, "case %u", i);
		proven += pick.exact;
		best += pick.total_gbps == greatest;
		all++;
	}
	CHECKF(proven * 2 >= all && best * 10 >= all * 9, "%u proven, %u best of %u", proven, best,
	       all);
}

TEST(machines_without_a_table_keep_the_policies)
{
	struct rng rng;
	const uint8_t ids[] = { 20, 3, 90, 3, 17, 11 };

	rng_seed(&rng, SEED);
	for (unsigned i = 0; i < 20; i++) {
		struct links *links CLEANUP(links_freep) = random_links(&rng, 24, 1000);
		struct pick pick = { 0 };
		struct pick_query q = { .links = links, .free = 0xfffffff, .count = 3 };
		q.policy = PICK_PREFER;
		q.prefer_ids = ids;
		q.prefer_len = ARRAY_SIZE(ids);
		CHECK(pick_gpus(&q, &pick) == PICK_OK);
		CHECK_INT(pick.gpus, 1U << 20 | 1U << 3 | 1U << 17);
		q.mode = PICK_IGNORE;
		q.count = 6;
		CHECK(pick_gpus(&q, &pick) == PICK_OK);
		CHECK((pick.gpus & (1U << 20 | 1U << 3 | 1U << 17 | 1U << 11)) ==
		      (1U << 20 | 1U << 3 | 1U << 17 | 1U << 11));
		q.policy = PICK_CONTIGUOUS;
		q.mode = PICK_PREFERRED;
		q.count = 1;
		CHECK(pick_gpus(&q, &pick) == PICK_OK && links_is_run(links, pick.gpus));
		q.count = 0;
		CHECK(pick_gpus(&q, &pick) == PICK_OK && pick.gpus == 0);
		q.policy = PICK_SPREAD;
		q.count = links->island_count;
		CHECK(pick_gpus(&q, &pick) == PICK_OK);
		for (unsigned k = 0; k < links->island_count; k++)
			CHECK(pick.gpus & links->island_gpus[k]);
	}
}

TEST_MAIN()
