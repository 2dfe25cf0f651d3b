/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "dialect/annotations.h"
#include "dialect/keys.h"
#include "engine/explain.h"
#include "sim/world.h"
#include "wire/json_write.h"

#define ARENA_MAX ((size_t)1 << 20)

struct slices {
	const struct cluster *cluster;
	struct arena *arena;
};

static const char *slice_uuid(void *context, uint32_t node, const struct hold *hold)
{
	const struct slices *s = context;
	const struct node *n = cluster_node(s->cluster, node);
	char text[256];
	int len = snprintf(text, sizeof(text), "MIG-%s-%s-%u",
			   cluster_string(s->cluster, n->gpus[hold->gpu].uuid),
			   n->mig->profiles[hold->mig_profile].name, hold->mig_start);

	return arena_strndup(s->arena, text, MIN((size_t)len, sizeof(text) - 1));
}

int report_annotations(const struct world *w, const struct world_pod *pod, struct arena *arena,
		       struct annotations *ret, struct err *err)
{
	struct slices slices = { world_cluster(w), arena };
	const char *scheduler = pod->wish->scheduler;
	struct annotations_input input = {
		.cluster = slices.cluster,
		.wish = pod->wish,
		.decision = &pod->decision,
		.scheduler = *scheduler ? scheduler : SCHEDULER_DEFAULT,
		.attempt = 1,
		.visibility = VISIBLE_ALL,
		.slice_uuid = slice_uuid,
		.context = &slices,
	};

	return annotations_make(&input, arena, ret, err);
}

void report_place(const struct world *w, const struct world_pod *pod, struct strbuf *out)
{
	strbuf_puts(out, cluster_node(world_cluster(w), pod->decision.node)->name);
	if (!pod->decision.assignment.count)
		return;
	strbuf_puts(out, ", ");
	explain_assignment(world_engine(w), pod->decision.node, &pod->decision.assignment, out);
}

static void count_pods(const struct world *w, uint32_t *placed, uint32_t *pending, int *width)
{
	*placed = *pending = 0;
	*width = 3;
	for (uint32_t i = 0; i < world_pods(w); i++) {
		const struct world_pod *pod = world_pod(w, i);

		*placed += pod->state == WORLD_PLACED;
		*pending += pod->state == WORLD_PENDING;
		if (pod->state != WORLD_GONE)
			*width = MAX(*width, (int)strlen(pod->key));
	}
	*width = MIN(*width, 50);
}

/* Pods of one workload that wait for the same thing are one entry. */
static bool is_same_wait(const struct world_pod *a, const struct world_pod *b)
{
	return a->state == WORLD_PENDING && b->state == WORLD_PENDING && a->text && b->text &&
	       strcmp(a->workload, b->workload) == 0 && strcmp(a->text, b->text) == 0;
}

/* How many pods from the i-th on belong into one entry. */
static uint32_t run_length(const struct world *w, uint32_t i)
{
	uint32_t n = 1;

	while (i + n < world_pods(w) && is_same_wait(world_pod(w, i), world_pod(w, i + n)))
		n++;
	return n;
}

/* The reason of a single pod begins with its place; that of a gang does not. */
static void put_placed(const struct world *w, const struct world_pod *pod, struct strbuf *out)
{
	struct strbuf place CLEANUP(strbuf_done) = STRBUF_INIT;
	const char *text = pod->text ? pod->text : "";

	report_place(w, pod, &place);
	if (strncmp(text, place.s, place.len) == 0)
		strbuf_addf(out, "%s\n", text);
	else
		strbuf_addf(out, "%s: %s\n", place.s, text);
}

void report_table(const struct world *w, struct strbuf *out)
{
	uint32_t placed, pending, n;
	int width;

	count_pods(w, &placed, &pending, &width);
	for (uint32_t i = 0; i < world_pods(w); i += n) {
		const struct world_pod *pod = world_pod(w, i);

		n = run_length(w, i);
		if (pod->state == WORLD_GONE)
			continue;
		strbuf_addf(out, "%-*s  ", width, pod->key);
		if (pod->state == WORLD_PLACED)
			put_placed(w, pod, out);
		else if (n == 1)
			strbuf_addf(out, "pending: %s\n", pod->text ? pod->text : "");
		else
			strbuf_addf(out, "pending, with %u more: %s\n", n - 1, pod->text);
	}
	strbuf_addf(out, "\n%u placed, %u pending\n", placed, pending);
}

static void write_ids(struct json_writer *j, uint32_t gpus)
{
	json_open_array(j);
	for (; gpus; gpus &= gpus - 1)
		json_add_u64(j, gpuset_first(gpus));
	json_close_array(j);
}

static void write_annotations(const struct world *w, const struct world_pod *pod,
			      struct json_writer *j)
{
	struct arena arena CLEANUP(arena_done);
	struct annotations list;

	arena_init(&arena, ARENA_MAX);
	if (report_annotations(w, pod, &arena, &list, NULL) < 0)
		return;
	json_add_key(j, "annotations");
	json_open_object(j);
	for (uint32_t i = 0; i < list.count; i++) {
		json_add_key(j, list.items[i].key);
		json_add_str(j, list.items[i].value);
	}
	json_close_object(j);
}

static void write_pod(const struct world *w, const struct world_pod *pod, struct json_writer *j)
{
	json_open_object(j);
	json_add_key(j, "pod");
	json_add_str(j, pod->key);
	if (pod->state == WORLD_PLACED) {
		json_add_key(j, "node");
		json_add_str(j, cluster_node(world_cluster(w), pod->decision.node)->name);
		json_add_key(j, "gpus");
		write_ids(j, pod->decision.assignment.gpus);
		json_add_key(j, "why");
		json_add_str(j, pod->text);
		write_annotations(w, pod, j);
	} else {
		json_add_key(j, "message");
		json_add_str(j, pod->text);
	}
	json_close_object(j);
}

static void write_state(const struct world *w, enum world_state state, struct json_writer *j)
{
	json_open_array(j);
	for (uint32_t i = 0; i < world_pods(w); i++)
		if (world_pod(w, i)->state == state)
			write_pod(w, world_pod(w, i), j);
	json_close_array(j);
}

void report_json(const struct world *w, struct strbuf *out)
{
	struct json_writer j = JSON_WRITER_INIT(out);

	json_open_object(&j);
	json_add_key(&j, "placed");
	write_state(w, WORLD_PLACED, &j);
	json_add_key(&j, "pending");
	write_state(w, WORLD_PENDING, &j);
	json_close_object(&j);
	strbuf_putc(out, '\n');
}
