/* SPDX-License-Identifier: Apache-2.0 */
/* openb.h - the public openb trace, for the tests and benchmarks that measure packing.
 *
 * The data is looked for in $OPENB, then beside the checkout in ../shared/data/openb.
 */
#ifndef GS_TESTS_OPENB_H
#define GS_TESTS_OPENB_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/rng.h"
#include "sim/replay.h"
#include "sim/trace.h"

static const char *const openb_traces[] = {
	"default",   "cpu037",	   "cpu050",	 "cpu072",     "cpu100",      "cpu235",
	"cpu250",    "gpushare20", "gpushare40", "gpushare80", "gpushare100", "gpuspec05",
	"gpuspec10", "gpuspec33",  "multigpu20", "multigpu30", "multigpu50",
};
#define OPENB_TRACES ARRAY_SIZE(openb_traces)

/* The folder, or NULL. */
static inline const char *openb_folder(void)
{
	const char *folder = getenv("OPENB");

	if (!folder || !*folder)
		folder = SOURCE_ROOT "/../shared/data/openb";
	return access(folder, R_OK) == 0 ? folder : NULL;
}

/* How many of the published arrival orders of the trace are here, at seeds[]. */
static inline unsigned openb_orders(const char *trace, unsigned *seeds)
{
	unsigned count = 0;
	char path[512];

	for (unsigned seed = 42; seed <= 51; seed++) {
		snprintf(path, sizeof(path), "%s/orders/%s-%u.txt", openb_folder(), trace, seed);
		if (access(path, R_OK) == 0)
			seeds[count++] = seed;
	}
	return count;
}

/* An order by the protocol: the list shuffled, then drawn from until 130 % have arrived. */
static inline int openb_shuffle(struct trace *t, uint64_t seed)
{
	uint64_t capacity = 0, demand = 0;
	uint32_t room = t->pods_count * 8, count = t->pods_count;
	uint32_t *order = calloc(room, sizeof(*order));
	struct rng rng;

	if (!order)
		return -ENOMEM;
	rng_seed(&rng, seed);
	for (uint32_t i = 0; i < t->nodes_count; i++)
		capacity += (uint64_t)t->nodes[i].gpus * 1000;
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_class *k = &t->classes[t->pods[i].class_index];
		uint32_t j = rng_below(&rng, i + 1);

		order[i] = order[j];
		order[j] = i;
		demand += (uint64_t)k->gpus * k->gpu_milli;
	}
	while (demand * 10 < capacity * 13 && count < room) {
		const struct trace_class *k;

		order[count] = rng_below(&rng, t->pods_count);
		k = &t->classes[t->pods[order[count++]].class_index];
		demand += (uint64_t)k->gpus * k->gpu_milli;
	}
	free(t->order);
	t->order = order;
	t->order_count = count;
	return 0;
}

/* The trace in the published order of that seed if it is here, else in one of our own. */
static inline int openb_read(const char *trace, unsigned seed, struct trace *ret, struct err *err)
{
	char nodes[512], pods[512], order[512];
	bool published;
	int rc;

	snprintf(nodes, sizeof(nodes), "%s/openb_node_list_gpu_node.csv", openb_folder());
	snprintf(pods, sizeof(pods), "%s/openb_pod_list_%s.csv", openb_folder(), trace);
	snprintf(order, sizeof(order), "%s/orders/%s-%u.txt", openb_folder(), trace, seed);
	published = access(order, R_OK) == 0;
	rc = trace_read(nodes, pods, published ? order : NULL, ret, err);
	return rc < 0 || published ? rc : openb_shuffle(ret, seed);
}

struct openb_mean {
	double at_80, at_95, at_100;
	unsigned runs;
};

/* The published mean of a policy over seeds 42 to 51; runs is 0 if it was not published. */
static inline struct openb_mean openb_published(const char *trace, const char *policy)
{
	struct openb_mean mean = { 0 };
	char path[512], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/published_alloc.csv", openb_folder());
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		char *save, *field = strtok_r(line, ",", &save), *fields[12] = { 0 };

		for (unsigned i = 0; i < 12 && field; i++, field = strtok_r(NULL, ",", &save))
			fields[i] = field;
		if (!fields[11] || strcmp(fields[0], trace) || strcmp(fields[1], policy))
			continue;
		mean.at_80 += atof(fields[4]);
		mean.at_95 += atof(fields[6]);
		mean.at_100 += atof(fields[7]);
		mean.runs++;
	}
	if (file)
		fclose(file);
	if (mean.runs) {
		mean.at_80 /= mean.runs;
		mean.at_95 /= mean.runs;
		mean.at_100 /= mean.runs;
	}
	return mean;
}

#endif
