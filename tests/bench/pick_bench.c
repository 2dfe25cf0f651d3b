/* SPDX-License-Identifier: Apache-2.0 */
/* pick_bench - what one pick costs, for every preset and for machines that are hard.
 *
 * For each machine all sets of free GPUs with all counts (above 8 GPUs a sample of the
 * sets).  A query is timed over several rounds, which leave out the clock's own cost.
 * Fails if the median of a preset is over the target.
 */
#include "base/attr.h"
#include "base/rng.h"
#include "engine/links.h"
#include "engine/machine.h"
#include "engine/pick.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SEED	    7
#define QUERIES_MAX 20000
#define TARGET_NS   2000

struct samples {
	uint32_t ns[QUERIES_MAX];
	size_t count;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t time_query(const struct pick_query *query)
{
	unsigned rounds = query->links->state_count ? 16 : 1;
	volatile uint32_t keep = 0; /* or the compiler leaves the work out */
	struct pick pick = { 0 };
	uint64_t start = now_ns();

	for (unsigned i = 0; i < rounds; i++) {
		pick_gpus(query, &pick);
		keep = keep + pick.gpus;
	}
	return (uint32_t)((now_ns() - start) / rounds);
}

static void run_policy(const struct links *links, enum pick_policy policy, struct samples *samples)
{
	struct pick_query query = { .links = links, .policy = policy };
	uint32_t masks = links->count <= 8 ? 1U << links->count : 200;
	struct rng rng;

	rng_seed(&rng, SEED);
	samples->count = 0;
	for (uint32_t i = 0; i < masks; i++) {
		query.free = links->count <= 8 ? i : (uint32_t)rng_next(&rng) & links_all(links);
		for (unsigned count = 1; count <= gpuset_count(query.free); count++) {
			query.count = (uint8_t)count;
			if (samples->count < QUERIES_MAX)
				samples->ns[samples->count++] = time_query(&query);
		}
	}
	qsort(samples->ns, samples->count, sizeof(samples->ns[0]), ascending);
}

/* The greatest median of all policies. */
static uint32_t print_rows(const char *name, const struct links *links, struct samples *samples)
{
	static const struct {
		enum pick_policy policy;
		const char *name;
	} policies[] = { { PICK_BANDWIDTH, "bandwidth" },
			 { PICK_CONTIGUOUS, "contiguous" },
			 { PICK_SPREAD, "spread" } };
	uint32_t worst = 0;

	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		run_policy(links, policies[i].policy, samples);
		size_t n = samples->count;
		printf("%-18s %5u %7u  %-10s %8zu %9u %9u %9u\n", name, links->count,
		       links->state_count, policies[i].name, n, samples->ns[n / 2],
		       samples->ns[n * 99 / 100], samples->ns[n - 1]);
		worst = MAX(worst, samples->ns[n / 2]);
	}
	return worst;
}

/* `speeds` different bandwidths, at random: 1 makes all GPUs alike. */
static struct links *synthetic(unsigned count, unsigned speeds)
{
	uint16_t gbps[GPU_MAX * GPU_MAX] = { 0 };
	struct links *links = NULL;
	struct rng rng;

	rng_seed(&rng, SEED);
	for (unsigned a = 0; a < count; a++)
		for (unsigned b = 0; b < a; b++)
			gbps[a * count + b] = gbps[b * count + a] =
				(uint16_t)(20 + 10 * rng_below(&rng, speeds));
	struct links_input input = { .count = count, .gbps = gbps };
	return links_new(&input, &links, NULL) < 0 ? NULL : links;
}

int main(void)
{
	static struct samples samples;
	static const struct {
		const char *name;
		unsigned count, speeds;
	} hard[] = { { "16 unlike", 16, 900 }, { "32 alike", 32, 1 }, { "32 unlike", 32, 900 } };
	const struct machine *machine;
	uint32_t worst = 0;

	printf("%-18s %5s %7s  %-10s %8s %9s %9s %9s\n", "machine", "GPUs", "states", "policy",
	       "queries", "p50 ns", "p99 ns", "max ns");
	for (size_t i = 0; (machine = machine_at(i)); i++) {
		struct links *links CLEANUP(links_freep) = NULL;
		if (machine_links(machine, &links, NULL) < 0)
			return 1;
		uint32_t median = print_rows(machine->name, links, &samples);
		worst = MAX(worst, median);
	}
	for (size_t i = 0; i < ARRAY_SIZE(hard); i++) {
		struct links *links CLEANUP(links_freep) =
			synthetic(hard[i].count, hard[i].speeds);
		if (!links)
			return 1;
		print_rows(hard[i].name, links, &samples);
	}
	printf("pick: greatest median of a preset %u ns, target %d ns: %s\n", worst, TARGET_NS,
	       worst <= TARGET_NS ? "met" : "missed");
	return worst <= TARGET_NS ? 0 : 1;
}
