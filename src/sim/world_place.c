/* SPDX-License-Identifier: Apache-2.0 */
/* world_place.c - the queue: who is tried when, and what comes of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "dialect/keys.h"
#include "engine/explain.h"
#include "engine/preempt.h"
#include "sim/fleet.h"
#include "sim/world_private.h"

#define COMPARED_MAX	  UINT64_C(4000000) /* nodes, over all placements: some seconds */
#define TEMPLATE_EXAMPLES 16

void world_tell(struct world *w, enum world_event event, const struct world_pod *pod)
{
	if (w->config.on_event)
		w->config.on_event(w->config.context, event, pod);
}

static void set_text(struct world_pod *pod, const char *text)
{
	free(pod->text);
	pod->text = strdup(text);
}

void world_pod_spec(struct world *w, const struct world_pod *pod, struct pod_spec *ret)
{
	(void)w;
	*ret = (struct pod_spec){ .uid = pod->key,
				  .name = pod->name,
				  .priority = pod->wish->priority,
				  .gang = pod->gang ? pod->gang->number : 0,
				  .started = pod->arrival };
}

void world_placed(struct world *w, struct world_pod *pod, uint32_t number,
		  const struct decision *d, struct strbuf *why)
{
	pod->state = WORLD_PLACED;
	pod->number = number;
	pod->decision = *d;
	pod->leaf = cluster_node(world_cluster(w), d->node)->domain;
	pod->evicted_by = NULL;
	pod->refused = false;
	world_unstick(w);
	set_text(pod, why->s);
	world_tell(w, WORLD_EVENT_PLACED, pod);
}

void world_waits(struct world *w, struct world_pod *pod, const char *text)
{
	struct strbuf full CLEANUP(strbuf_done) = STRBUF_INIT;

	if (pod->evicted_by)
		strbuf_addf(&full, "preempted by %s; ", pod->evicted_by);
	strbuf_puts(&full, text);
	if (pod->text && strcmp(pod->text, full.s) == 0)
		return;
	set_text(pod, full.s);
	world_tell(w, WORLD_EVENT_WAITS, pod);
}

void world_unplace(struct world *w, struct world_pod *pod, enum world_event event)
{
	engine_remove(w->engine, pod->number);
	world_unstick(w);
	pod->state = WORLD_PENDING;
	/* It was read for a node that may be gone. */
	pod->generation = w->generation - 1;
	set_text(pod, event == WORLD_EVENT_LOST ? "its node or GPU failed" : "preempted");
	world_tell(w, event, pod);
}

/* Whether the placement is compared with all other nodes in words.  That looks at every
 * node, so there is an end to it, which pods of one template reach earlier. */
static bool is_worth_words(const struct world *w, const struct world_pod *pod)
{
	uint64_t nodes = fleet_count(w->fleet);
	uint64_t left = w->explained < COMPARED_MAX ? COMPARED_MAX - w->explained : 0;

	if (pod->template && pod->template->explained >= TEMPLATE_EXAMPLES)
		return nodes + COMPARED_MAX * 3 / 4 <= left;
	return nodes <= left;
}

/* The comparison, or whose comparison may be read for it. */
static void explain_place(struct world *w, struct world_pod *pod, const struct decision *d,
			  struct strbuf *why)
{
	bool pinned = pod->wish->request.node != NODE_NONE;
	struct explanation x;

	if (!pinned && is_worth_words(w, pod)) {
		explain_request(w->engine, &pod->wish->request, &x);
		explain_why(w->engine, &pod->wish->request, &x, why);
		w->explained += x.nodes;
		if (pod->template) {
			pod->template->explained++;
			pod->template->example = pod->name;
		}
		return;
	}
	strbuf_puts(why, cluster_node(world_cluster(w), d->node)->name);
	strbuf_puts(why, d->assignment.count ? ", " : "");
	explain_assignment(w->engine, d->node, &d->assignment, why);
	if (pod->wish->workload)
		strbuf_addf(why, ": pinned there, index %u of its " KEY_MAP, pod->wish->index);
	else if (pinned)
		strbuf_puts(why, ": pinned to this node");
	else if (pod->template && pod->template->example)
		strbuf_addf(why, ": best of the nodes that fit, as for %s",
			    pod->template->example);
	else
		strbuf_puts(why, ": best of the nodes that fit");
}

/* Where it fits as things are; the explanation is of the same state. */
static int place_pod(struct world *w, struct world_pod *pod, const struct decision *d,
		     struct strbuf *why, struct err *err)
{
	struct pod_spec spec;
	uint32_t number;

	explain_place(w, pod, d, why);
	world_pod_spec(w, pod, &spec);
	int rc = engine_place(w->engine, &spec, &pod->wish->request, d, &number);
	if (rc < 0)
		return err_set(err, -rc, "cannot book pod %s", pod->key);
	world_placed(w, pod, number, d, why);
	return 0;
}

int world_evict(struct world *w, const struct preemption *p, const struct world_pod *for_pod,
		struct strbuf *why, struct err *err)
{
	/* By their records: numbers change while they are removed. */
	VEC(struct world_pod *) victims CLEANUP(vec_cleanup) = { 0 };

	for (uint32_t i = 0; i < p->victims_count; i++) {
		const struct pod *record = cluster_pod(world_cluster(w), p->victims[i]);
		struct world_pod *victim = map_get(&w->by_key, record->uid, strlen(record->uid));

		if (vec_push(&victims, victim) < 0)
			return err_set(err, ENOMEM, "out of memory");
		strbuf_addf(why, "%s%s", i ? ", " : "in the place of ", victim->name);
	}
	for (size_t i = 0; i < victims.len; i++) {
		victims.items[i]->evicted_by = for_pod->name;
		w->evictions++;
		world_unplace(w, victims.items[i], WORLD_EVENT_EVICTED);
	}
	strbuf_puts(why, victims.len ? ": " : "");
	return 0;
}

/* 1 placed, 0 no eviction helps. */
static int preempt_for(struct world *w, struct world_pod *pod, struct err *err)
{
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;
	struct preemption p CLEANUP(preemption_done) = { 0 };
	int rc = preempt_find(w->engine, &pod->wish->request, pod->wish->priority, &p);

	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_set(err, -rc, "out of memory");
	rc = world_evict(w, &p, pod, &why, err);
	if (rc == 0)
		rc = place_pod(w, pod, &p.decisions[0], &why, err);
	return rc < 0 ? rc : 1;
}

int world_try_pod(struct world *w, struct world_pod *pod, struct err *err)
{
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;
	struct decision d;
	int rc = 0;

	pod->refused = true;
	if (world_is_stuck(w, pod))
		return 0;
	if (engine_decide(w->engine, &pod->wish->request, &d) == FITS)
		return place_pod(w, pod, &d, &why, err);
	if (!w->config.no_preemption && pod->wish->preempts)
		rc = preempt_for(w, pod, err);
	if (rc == 0)
		world_add_stuck(w, pod);
	return rc < 0 ? rc : 0;
}

/* Higher priority first, then who came first. */
static int by_turn(const void *a, const void *b)
{
	const struct world_pod *const *x = a, *const *y = b;

	if ((*x)->wish->priority != (*y)->wish->priority)
		return (*x)->wish->priority > (*y)->wish->priority ? -1 : 1;
	return (*x)->arrival < (*y)->arrival ? -1 : 1;
}

/* Reads what is new or may have changed; true pods without complaints into `ret`. */
static int waiting(struct world *w, struct world_pod **ret, size_t *count, struct err *err)
{
	int rc = 0;

	*count = 0;
	for (size_t i = 0; i < w->pods.len && rc == 0; i++) {
		struct world_pod *pod = w->pods.items[i];

		if (pod->state != WORLD_PENDING)
			continue;
		rc = world_read_pod(w, pod, err);
		if (rc == 0 && pod->wish)
			ret[(*count)++] = pod;
	}
	if (*count)
		qsort(ret, *count, sizeof(*ret), by_turn);
	return rc;
}

static void learn(struct world *w, struct world_pod *pod)
{
	if (!pod->learned)
		engine_arrived(w->engine, &pod->wish->request);
	pod->learned = true;
}

static int try_all(struct world *w, struct world_pod **turn, size_t count, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < count; i++)
		learn(w, turn[i]);
	for (size_t i = 0; i < count && rc == 0; i++) {
		/* A gang is tried once for all its members. */
		if (turn[i]->state != WORLD_PENDING || turn[i]->round == w->round)
			continue;
		rc = turn[i]->wish->gang.name ? world_try_gang(w, turn[i], err)
					      : world_try_pod(w, turn[i], err);
	}
	return rc;
}

static int settle_once(struct world *w, struct err *err)
{
	struct world_pod **turn = calloc(w->pods.len + 1, sizeof(*turn));
	size_t count;

	if (!turn)
		return err_set(err, ENOMEM, "out of memory");
	w->round++;
	world_unstick(w);
	int rc = waiting(w, turn, &count, err);
	if (rc == 0)
		rc = try_all(w, turn, count, err);
	if (rc == 0)
		rc = world_tell_refused(w, turn, count, err);
	free(turn);
	return rc;
}

int world_settle(struct world *w, struct err *err)
{
	uint64_t before;
	int rc;

	/* Who lost its place is tried again.  A pod evicts only pods of lower priority, so
	 * there is a last round. */
	do {
		before = w->evictions;
		rc = settle_once(w, err);
	} while (rc == 0 && w->evictions != before);
	return rc;
}
