/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/links.h"

#include "base/attr.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The remainder is measured by the sets that pods ask for most. */
static const uint8_t rest_sizes[] = { 2, 4, 8, 16, 32 };

static int check_pair(const struct links_input *input, unsigned a, unsigned b, struct err *err)
{
	uint16_t there = input->gbps[a * input->count + b];
	uint16_t back = input->gbps[b * input->count + a];

	if (there != back)
		return err_set(err, EINVAL,
			       "link between GPU %u and %u has %u GB/s one way and %u the other",
			       a, b, there, back);
	if (!input->nvlink)
		return 0;
	if (gpuset_has(input->nvlink[a], b) != gpuset_has(input->nvlink[b], a))
		return err_set(err, EINVAL, "NVLink between GPU %u and %u is there one way only",
			       a, b);
	if (gpuset_has(input->nvlink[a], b) && !there)
		return err_set(err, EINVAL, "NVLink between GPU %u and %u has no bandwidth", a, b);
	return 0;
}

static int check_gpu(const struct links_input *input, unsigned gpu, struct err *err)
{
	if (input->gbps[gpu * input->count + gpu])
		return err_set(err, EINVAL, "GPU %u has a link to itself", gpu);
	if (input->nvlink && gpuset_has(input->nvlink[gpu], gpu))
		return err_set(err, EINVAL, "GPU %u has an NVLink to itself", gpu);
	if (input->nvlink && input->nvlink[gpu] & ~gpuset_range(0, input->count))
		return err_set(err, EINVAL, "GPU %u has an NVLink to a GPU that is not there",
			       gpu);
	if (input->numa && input->numa[gpu] < -1)
		return err_set(err, EINVAL, "GPU %u is on NUMA node %d", gpu, input->numa[gpu]);
	return 0;
}

static int check(const struct links_input *input, struct err *err)
{
	if (input->count < 1 || input->count > GPU_MAX)
		return err_set(err, EINVAL, "%u GPUs in a node, from 1 to %d are possible",
			       input->count, GPU_MAX);
	for (unsigned a = 0; a < input->count; a++) {
		int failed = check_gpu(input, a, err);
		for (unsigned b = 0; !failed && b < a; b++)
			failed = check_pair(input, b, a, err);
		if (failed)
			return failed;
	}
	return 0;
}

static void copy_input(struct links *links, const struct links_input *input)
{
	links->count = (uint8_t)input->count;
	for (unsigned a = 0; a < input->count; a++) {
		memcpy(links->gbps[a], input->gbps + (size_t)a * input->count,
		       input->count * sizeof(*input->gbps));
		links->nvlink[a] = input->nvlink ? input->nvlink[a] : 0;
		links->numa[a] = input->numa ? input->numa[a] : -1;
	}
}

/* All GPUs that NVLink joins to `gpus`, through others too. */
static uint32_t nvlink_reach(const struct links *links, uint32_t gpus)
{
	uint32_t before;

	do {
		before = gpus;
		gpuset_each(gpu, before)
			gpus |= links->nvlink[gpu];
	} while (gpus != before);
	return gpus;
}

static uint32_t same_numa(const struct links *links, unsigned gpu)
{
	uint32_t gpus = 0;

	for (unsigned other = 0; other < links->count; other++)
		if (links->numa[other] == links->numa[gpu])
			gpus |= gpuset_one(other);
	return gpus;
}

static uint32_t island_of(const struct links *links, unsigned gpu)
{
	uint32_t gpus = same_numa(links, gpu);

	if (links->nvlink[gpu])
		return nvlink_reach(links, gpuset_one(gpu));
	gpuset_each(other, gpus)
		if (links->nvlink[other])
			gpus &= ~gpuset_one(other);
	return gpus;
}

/* Swapping the two changes nothing.  This is transitive: if a and b can be swapped
 * and b and c too, then a and c by doing the first, the second, and the first again. */
static bool are_twins(const struct links *links, unsigned a, unsigned b)
{
	uint32_t both = gpuset_one(a) | gpuset_one(b);

	if (links->numa[a] != links->numa[b] || (links->nvlink[a] ^ links->nvlink[b]) & ~both)
		return false;
	gpuset_each(other, links_all(links) & ~both)
		if (links->gbps[a][other] != links->gbps[b][other])
			return false;
	return true;
}

static uint32_t class_of(const struct links *links, unsigned gpu)
{
	uint32_t gpus = gpuset_one(gpu);

	for (unsigned other = 0; other < links->count; other++)
		if (other != gpu && are_twins(links, gpu, other))
			gpus |= gpuset_one(other);
	return gpus;
}

/* Islands, NUMA groups and classes are partitions: each GPU that has no part yet
 * opens the next. */
static uint8_t partition(const struct links *links, uint32_t *parts,
			 uint32_t (*part_of)(const struct links *, unsigned))
{
	uint8_t count = 0;

	for (uint32_t left = links_all(links); left; left &= ~parts[count - 1])
		parts[count++] = part_of(links, gpuset_first(left));
	return count;
}

static void divide(struct links *links)
{
	links->island_count = partition(links, links->island_gpus, island_of);
	links->numa_count = partition(links, links->numa_gpus, same_numa);
	links->class_count = partition(links, links->class_gpus, class_of);
	for (uint8_t island = 0; island < links->island_count; island++)
		gpuset_each(gpu, links->island_gpus[island])
			links->island[gpu] = island;
}

/* Numbers the states in mixed radix: class c is the digit worth stride[c], and runs
 * from 0 to the size of the class.  The number of states, 0 if over the limit. */
static uint32_t number_states(struct links *links)
{
	uint32_t stride = 1;

	for (unsigned c = 0; c < links->class_count; c++) {
		gpuset_each(gpu, links->class_gpus[c])
			links->stride[gpu] = stride;
		stride *= gpuset_count(links->class_gpus[c]) + 1;
		if (stride > LINKS_STATES_MAX)
			return 0;
	}
	return stride;
}

/* A state as digits, counted upwards. */
struct digits {
	uint8_t members[GPU_MAX]; /* by class */
	unsigned sum;
};

static void digits_next(const struct links *links, struct digits *digits)
{
	for (unsigned c = 0; c < links->class_count; c++) {
		if (digits->members[c] < gpuset_count(links->class_gpus[c])) {
			digits->members[c]++;
			digits->sum++;
			return;
		}
		digits->sum -= digits->members[c];
		digits->members[c] = 0;
	}
}

static unsigned first_of_class(const struct links *links, unsigned class)
{
	return gpuset_first(links->class_gpus[class]);
}

/* Bandwidth between a GPU of class a and one of class b, or another of class a. */
static uint16_t class_gbps(const struct links *links, unsigned a, unsigned b)
{
	unsigned one = first_of_class(links, a);
	unsigned other = first_of_class(links, b);

	if (a == b)
		other = gpuset_first(links->class_gpus[a] & ~gpuset_one(one));
	return links->gbps[one][other];
}

/* From the state with one member less, which has a smaller number. */
static void fill_state(struct links *links, uint32_t number, const struct digits *digits)
{
	struct links_state *state = &links->states[number];
	unsigned c = 0;

	while (!digits->members[c])
		c++;
	*state = links->states[number - links->stride[first_of_class(links, c)]];
	for (unsigned d = c; d < links->class_count; d++) {
		unsigned others = digits->members[d] - (d == c);
		if (!others)
			continue;
		uint16_t gbps = class_gbps(links, c, d);
		state->total_gbps += others * gbps;
		state->weakest_gbps = MIN(state->weakest_gbps, gbps);
	}
}

static void fill_totals(struct links *links)
{
	struct digits digits = { 0 };

	links->states[0] = (struct links_state){ .weakest_gbps = LINKS_NO_PAIR };
	for (uint32_t number = 1; number < links->state_count; number++) {
		digits_next(links, &digits);
		fill_state(links, number, &digits);
		uint32_t total = links->states[number].total_gbps;
		if (total > links->best_gbps[digits.sum])
			links->best_gbps[digits.sum] = total;
	}
}

/* The greatest total of `size` members of a state: all of it, or the greatest after
 * leaving one out.  best[] holds the answers for all smaller numbers. */
static uint32_t best_inside(const struct links *links, const uint32_t *best, uint32_t number,
			    const struct digits *digits, unsigned size)
{
	uint32_t greatest = 0;

	if (digits->sum <= size)
		return digits->sum == size ? links->states[number].total_gbps : 0;
	for (unsigned c = 0; c < links->class_count; c++) {
		if (!digits->members[c])
			continue;
		uint32_t without = best[number - links->stride[first_of_class(links, c)]];
		greatest = MAX(greatest, without);
	}
	return greatest;
}

static int fill_rests(struct links *links)
{
	uint32_t *best = calloc(links->state_count, sizeof(*best));

	if (!best)
		return -ENOMEM;
	for (unsigned i = 0; i < ARRAY_SIZE(rest_sizes) && rest_sizes[i] <= links->count; i++) {
		struct digits digits = { 0 };
		for (uint32_t number = 0; number < links->state_count; number++) {
			best[number] = best_inside(links, best, number, &digits, rest_sizes[i]);
			links->states[number].rest_gbps += best[number];
			digits_next(links, &digits);
		}
	}
	free(best);
	return 0;
}

static int descending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x < y) - (x > y);
}

/* Without states: k GPUs have at most half the sum of the k greatest sums that a GPU
 * reaches with its k-1 fastest links. */
static void bound_best(struct links *links)
{
	uint32_t fastest[GPU_MAX][GPU_MAX];
	uint32_t sum[GPU_MAX] = { 0 };

	for (unsigned a = 0; a < links->count; a++) {
		for (unsigned b = 0; b < links->count; b++)
			fastest[a][b] = links->gbps[a][b];
		qsort(fastest[a], links->count, sizeof(fastest[a][0]), descending);
	}
	for (unsigned k = 2; k <= links->count; k++) {
		uint32_t sorted[GPU_MAX] = { 0 }, total = 0;
		for (unsigned a = 0; a < links->count; a++)
			sorted[a] = sum[a] += fastest[a][k - 2];
		qsort(sorted, links->count, sizeof(sorted[0]), descending);
		for (unsigned a = 0; a < k; a++)
			total += sorted[a];
		links->best_gbps[k] = total / 2;
	}
}

int links_new(const struct links_input *input, struct links **ret, struct err *err)
{
	int failed = check(input, err);
	if (failed)
		return failed;

	struct links head = { 0 };
	copy_input(&head, input);
	divide(&head);
	head.state_count = number_states(&head);

	size_t states_size = head.state_count * sizeof(struct links_state);
	struct links *links = malloc(sizeof(*links) + states_size);
	if (!links)
		return err_set(err, ENOMEM, "out of memory");
	*links = head;
	if (!links->state_count) {
		bound_best(links);
	} else {
		fill_totals(links);
		if (fill_rests(links) < 0) {
			free(links);
			return err_set(err, ENOMEM, "out of memory");
		}
	}
	*ret = links;
	return 0;
}

void links_free(struct links *links)
{
	free(links);
}

void links_freep(struct links **links)
{
	links_free(*links);
}

static bool is_permutation(const uint8_t *to, unsigned count)
{
	uint32_t seen = 0;

	for (unsigned i = 0; i < count; i++) {
		if (to[i] >= count)
			return false;
		seen |= gpuset_one(to[i]);
	}
	return gpuset_count(seen) == count;
}

int links_permute(const struct links *links, const uint8_t *to, struct links **ret,
		  struct err *err)
{
	uint16_t gbps[GPU_MAX * GPU_MAX];
	uint32_t nvlink[GPU_MAX] = { 0 };
	int8_t numa[GPU_MAX];

	if (!is_permutation(to, links->count))
		return err_set(err, EINVAL, "new GPU ids are no permutation of the old ones");
	for (unsigned a = 0; a < links->count; a++) {
		for (unsigned b = 0; b < links->count; b++)
			gbps[to[a] * links->count + to[b]] = links->gbps[a][b];
		gpuset_each(peer, links->nvlink[a])
			nvlink[to[a]] |= gpuset_one(to[peer]);
		numa[to[a]] = links->numa[a];
	}
	struct links_input input = { links->count, gbps, nvlink, numa };
	return links_new(&input, ret, err);
}

bool links_equal(const struct links *a, const struct links *b)
{
	/* Whole arrays: what is past the last GPU is zero in both. */
	return a->count == b->count && memcmp(a->gbps, b->gbps, sizeof(a->gbps)) == 0 &&
	       memcmp(a->nvlink, b->nvlink, sizeof(a->nvlink)) == 0 &&
	       memcmp(a->numa, b->numa, sizeof(a->numa)) == 0;
}

uint32_t links_total(const struct links *links, uint32_t gpus)
{
	uint32_t total = 0;

	if (links->state_count)
		return links->states[links_state_of(links, gpus)].total_gbps;
	gpuset_each(a, gpus)
		gpuset_each(b, gpus)
			total += links->gbps[a][b];
	return total / 2;
}

uint16_t links_weakest(const struct links *links, uint32_t gpus)
{
	uint16_t weakest = LINKS_NO_PAIR;

	if (links->state_count)
		return links->states[links_state_of(links, gpus)].weakest_gbps;
	gpuset_each(a, gpus)
		gpuset_each(b, gpus & ~gpuset_one(a))
			weakest = MIN(weakest, links->gbps[a][b]);
	return weakest;
}

uint32_t links_rest(const struct links *links, uint32_t gpus)
{
	if (!links->state_count)
		return links_total(links, gpus);
	return links->states[links_state_of(links, gpus)].rest_gbps;
}

bool links_is_run(const struct links *links, uint32_t gpus)
{
	if (!gpus)
		return false;
	unsigned first = gpuset_first(gpus);
	return gpus == gpuset_range(first, gpuset_count(gpus)) &&
	       !(gpus & ~links->island_gpus[links->island[first]]);
}
