/* SPDX-License-Identifier: Apache-2.0 */
/* scale_bench - what a decision costs in a small cluster and in a large one.
 *
 * Two clusters of DGX H100 machines, 16 to a leaf and 16 leaves to a spine, are filled to
 * about four fifths with a mix of whole GPUs and shares, then kept there: one pod goes, one
 * comes.  Learning, deciding, placing and removing are timed, in slices that alternate
 * between the two, so that whatever else the machine does concerns both.
 */
#include "base/attr.h"
#include "base/err.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "engine/links.h"
#include "engine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SMALL	     1000U
#define LARGE	     100000U
#define KINDS	     48
#define SLICES	     40
#define SLICE	     2500 /* decisions */
#define TARGET_RATIO 2.0
#define TARGET_MIB   512

struct world {
	struct engine *engine;
	struct rng rng;
	struct request kinds[KINDS];
	uint32_t *pods;
	uint32_t pods_count, pods_room, next_uid;
	double best_ns; /* per decision, best slice */
	double total_ns;
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double resident_mib(void)
{
	long pages = 0, skipped;
	FILE *file = fopen("/proc/self/statm", "r");

	if (file && fscanf(file, "%ld %ld", &skipped, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static void add_nodes(struct cluster *c, uint32_t nodes, const struct machine *m,
		      const struct links *links)
{
	for (uint32_t i = 0; i < nodes; i++) {
		char name[32], spine[32], leaf[32], uuids[GPU_MAX][48];
		const char *domains[] = { spine, leaf };
		struct gpu_spec gpus[GPU_MAX] = { 0 };
		struct err err = ERR_INIT;
		uint32_t node;

		snprintf(name, sizeof(name), "node-%06u", i);
		snprintf(leaf, sizeof(leaf), "leaf-%u", i / 16);
		snprintf(spine, sizeof(spine), "spine-%u", i / 256);
		for (uint32_t g = 0; g < m->gpu_count; g++) {
			snprintf(uuids[g], sizeof(uuids[g]), "GPU-%08x-0000-4000-8000-%012x", i,
				 g);
			gpus[g] = (struct gpu_spec){ .uuid = uuids[g],
						     .model = m->model,
						     .mem_mib = m->gpu_mem_mib };
		}
		if (cluster_node_add(
			    c,
			    &(struct node_spec){
				    .name = name,
				    .allocatable = { .cpu_milli = m->cpu_milli,
						     .mem_bytes = (int64_t)m->mem_mib << 20,
						     .pods = 110 },
				    .gpus = gpus,
				    .gpus_count = m->gpu_count,
				    .links = links,
				    .domains = domains,
				    .domains_count = 2,
			    },
			    &node, &err) < 0) {
			fprintf(stderr, "scale_bench: %s\n", err.text);
			exit(1);
		}
	}
}

static void make_kinds(struct world *w)
{
	static const uint8_t counts[] = { 1, 1, 1, 2, 4, 8 };
	static const uint16_t shares[] = { 100, 250, 330, 500, 700 };

	for (uint32_t i = 0; i < KINDS; i++) {
		struct request *r = &w->kinds[i];
		bool whole = i % 3;
		struct ask *a;

		request_init(r);
		r->needs.cpu_milli = 1000 * (1 + rng_below(&w->rng, 12));
		r->needs.mem_bytes = (INT64_C(1) << 30) * (4 + rng_below(&w->rng, 28));
		a = request_add_ask(r, whole ? ASK_WHOLE : ASK_SHARE,
				    whole ? counts[rng_below(&w->rng, ARRAY_SIZE(counts))] : 1);
		if (!whole)
			a->core_milli = shares[rng_below(&w->rng, ARRAY_SIZE(shares))];
	}
}

/* One arrival; false if there was no room. */
static bool arrive(struct world *w)
{
	const struct request *r = &w->kinds[rng_below(&w->rng, KINDS)];
	struct decision d;
	char uid[24];
	uint32_t pod;

	engine_arrived(w->engine, r);
	if (engine_decide(w->engine, r, &d) != FITS)
		return false;
	snprintf(uid, sizeof(uid), "pod-%u", w->next_uid++);
	if (engine_place(w->engine, &(struct pod_spec){ .uid = uid }, r, &d, &pod) < 0)
		exit(1);
	w->pods[w->pods_count++] = pod;
	return true;
}

static void leave(struct world *w)
{
	uint32_t i = rng_below(&w->rng, w->pods_count);

	engine_remove(w->engine, w->pods[i]);
	w->pods[i] = w->pods[--w->pods_count];
}

static void fill(struct world *w)
{
	const struct domain *root = cluster_domain(engine_cluster(w->engine), 0);

	while (root->free_milli * 5 > root->total_milli && w->pods_count < w->pods_room &&
	       arrive(w))
		;
}

static void world_init(struct world *w, uint32_t nodes, const struct machine *m,
		       const struct links *links)
{
	rng_seed(&w->rng, 1);
	w->engine = engine_new(&(struct engine_config){ .seed = 1 });
	w->pods_room = nodes * m->gpu_count * 4;
	w->pods = calloc(w->pods_room, sizeof(*w->pods));
	if (!w->engine || !w->pods)
		exit(1);
	add_nodes(engine_cluster(w->engine), nodes, m, links);
	make_kinds(w);
	w->best_ns = 1e18;
}

static void slice(struct world *w)
{
	double start = now_ns(), each;

	for (uint32_t i = 0; i < SLICE; i++) {
		leave(w);
		arrive(w);
	}
	each = (now_ns() - start) / SLICE;
	w->best_ns = MIN(w->best_ns, each);
	w->total_ns += each;
}

int main(void)
{
	static struct world small, large;
	const struct machine *m = machine_find("dgx-h100");
	struct links *links;
	double mib, ratio;

	if (machine_links(m, &links, NULL) < 0)
		return 1;
	world_init(&large, LARGE, m, links);
	fill(&large);
	mib = resident_mib();
	printf("%u nodes with %u GPUs each, %u pods, %d kinds of them: %.0f MiB resident "
	       "(target %d): %s\n",
	       LARGE, m->gpu_count, large.pods_count, KINDS, mib, TARGET_MIB,
	       mib <= TARGET_MIB ? "ok" : "MISSED");
	world_init(&small, SMALL, m, links);
	fill(&small);
	for (uint32_t i = 0; i < SLICES; i++) {
		slice(&small);
		slice(&large);
	}
	ratio = large.total_ns / small.total_ns;
	printf("\none pod leaves, one comes: learn, decide, place, remove\n");
	printf("%10s %10s %12s %12s\n", "nodes", "pods", "mean ns", "best ns");
	printf("%10u %10u %12.0f %12.0f\n", SMALL, small.pods_count, small.total_ns / SLICES,
	       small.best_ns);
	printf("%10u %10u %12.0f %12.0f\n", LARGE, large.pods_count, large.total_ns / SLICES,
	       large.best_ns);
	printf("ratio %.2f (target %.1f): %s\n\n", ratio, TARGET_RATIO,
	       ratio <= TARGET_RATIO ? "ok" : "MISSED");
	engine_free(small.engine);
	engine_free(large.engine);
	free(small.pods);
	free(large.pods);
	links_free(links);
	return mib > TARGET_MIB || ratio > TARGET_RATIO;
}
