/* SPDX-License-Identifier: Apache-2.0 */
/* world_gang.c - gangs: whole at first, and made whole again when members fail. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "engine/gang.h"
#include "engine/preempt.h"
#include "sim/world_private.h"

/* The members of one gang. */
struct troop {
	const struct wish_gang *gang;
	VEC(struct world_pod *) waiting; /* in order of arrival */
	VEC(uint32_t) placed;		 /* their numbers */
};

static void troop_done(struct troop *t)
{
	vec_done(&t->waiting);
	vec_done(&t->placed);
}

static int gang_of(struct world *w, const char *name, struct world_gang **ret, struct err *err)
{
	struct world_gang *g = name ? map_get(&w->gang_names, name, strlen(name)) : NULL;

	*ret = g;
	if (g || !name)
		return 0;
	g = arena_alloc(&w->arena, sizeof(*g));
	if (!g)
		return err_set(err, ENOMEM, "out of memory");
	*g = (struct world_gang){ .name = name, .number = (uint32_t)w->gangs.len + 1 };
	if (vec_push(&w->gangs, g) < 0 || map_put(&w->gang_names, name, strlen(name), g) < 0)
		return err_set(err, ENOMEM, "out of memory");
	*ret = g;
	return 0;
}

static void leave(struct world_pod *pod)
{
	struct world_gang *g = pod->gang;
	size_t kept = 0;

	for (size_t i = 0; g && i < g->members.len; i++)
		if (g->members.items[i] != pod)
			g->members.items[kept++] = g->members.items[i];
	if (g)
		g->members.len = kept;
	pod->gang = NULL;
}

int world_join(struct world *w, struct world_pod *pod, struct err *err)
{
	struct world_gang *g;
	int rc = gang_of(w, pod->wish->gang.name, &g, err);

	if (rc < 0 || pod->gang == g)
		return rc;
	leave(pod);
	if (g && vec_push(&g->members, pod) < 0)
		return err_set(err, ENOMEM, "out of memory");
	pod->gang = g;
	return 0;
}

static int by_arrival(const void *a, const void *b)
{
	const struct world_pod *const *x = a, *const *y = b;

	return (*x)->arrival < (*y)->arrival ? -1 : 1;
}

static int muster(struct world *w, const struct world_pod *first, struct troop *t, struct err *err)
{
	const struct world_gang *g = first->gang;

	t->gang = &first->wish->gang;
	for (size_t i = 0; i < g->members.len; i++) {
		struct world_pod *pod = g->members.items[i];
		int rc = 0;

		if (pod->state == WORLD_GONE || !pod->wish)
			continue;
		pod->round = w->round;
		if (pod->state == WORLD_PLACED)
			rc = vec_push(&t->placed, pod->number);
		else
			rc = vec_push(&t->waiting, pod);
		if (rc < 0)
			return err_set(err, ENOMEM, "out of memory");
	}
	if (t->waiting.len)
		qsort(t->waiting.items, t->waiting.len, sizeof(t->waiting.items[0]), by_arrival);
	return 0;
}

static void all_wait(struct world *w, const struct troop *t, const char *text)
{
	for (size_t i = 0; i < t->waiting.len; i++)
		world_waits(w, t->waiting.items[i], text);
}

/* Members that ask for the same, side by side. */
struct ranks {
	struct gang_class classes[GANG_CLASSES_MAX];
	uint32_t count;
	struct pod_spec *specs;
	struct world_pod **pods; /* beside specs */
};

static void ranks_done(struct ranks *r)
{
	free(r->specs);
	free(r->pods);
}

/* Of those that are not in line yet, all that ask for what the first of them does. */
static void line_up_class(struct world *w, const struct troop *t, uint32_t members, bool *in_line,
			  uint32_t *filled, struct ranks *r)
{
	const struct request *request = NULL;
	uint32_t start = *filled;

	for (uint32_t i = 0; i < members; i++) {
		struct world_pod *pod = t->waiting.items[i];
		const struct request *own = &pod->wish->request;

		if (in_line[i] || (request && request != own && !request_equal(request, own)))
			continue;
		request = own;
		in_line[i] = true;
		world_pod_spec(w, pod, &r->specs[*filled]);
		r->pods[(*filled)++] = pod;
	}
	r->classes[r->count++] = (struct gang_class){ request, &r->specs[start], *filled - start };
}

static int line_up(struct world *w, const struct troop *t, uint32_t members, struct ranks *r,
		   struct err *err)
{
	bool *in_line = calloc(members, sizeof(*in_line));
	uint32_t filled = 0;

	r->specs = calloc(members, sizeof(*r->specs));
	r->pods = calloc(members, sizeof(*r->pods));
	while (in_line && r->specs && r->pods && filled < members && r->count < GANG_CLASSES_MAX)
		line_up_class(w, t, members, in_line, &filled, r);
	free(in_line);
	if (filled == members)
		return 0;
	return r->count ? err_set(err, EINVAL, "gang %s has more than %d kinds of members",
				  t->gang->name, GANG_CLASSES_MAX)
			: err_set(err, ENOMEM, "out of memory");
}

/* "gang default/train: 8 pods on 8 nodes in 2 adjacent leaves below spine-0" */
static void describe(const struct world *w, const struct troop *t, const struct gang_result *g,
		     uint32_t members, struct strbuf *why)
{
	const struct domain *common = cluster_domain(world_cluster(w), g->common);

	strbuf_addf(why, "gang %s: %u pods on %u node%s in ", t->gang->name, members,
		    g->nodes_count, g->nodes_count == 1 ? "" : "s");
	if (g->leaves_count == 1)
		strbuf_addf(why, "%s", cluster_domain(world_cluster(w), g->leaves[0])->name);
	else
		strbuf_addf(why, "%u %sleaves below %s", g->leaves_count,
			    g->adjacent ? "adjacent " : "",
			    common->level ? common->name : "the root");
}

static void settle_members(struct world *w, const struct troop *t, struct world_pod **pods,
			   const struct ranks *r, struct gang_result *g, uint32_t members,
			   struct strbuf *why)
{
	describe(w, t, g, members, why);
	plan_commit(g->plan);
	g->plan = NULL;
	for (uint32_t i = 0; i < g->members_count; i++) {
		const struct gang_member *m = &g->members[i];
		size_t at = m->index;

		if (r)
			at += (size_t)(r->classes[m->class_index].pods - r->specs);
		world_placed(w, pods[at], m->pod, &m->decision, why);
	}
}

/* The members' own priority: that of the least important one. */
static int32_t priority_of(const struct troop *t, bool *preempts)
{
	int32_t priority = INT32_MAX;

	*preempts = true;
	for (size_t i = 0; i < t->waiting.len; i++) {
		priority = MIN(priority, t->waiting.items[i]->wish->priority);
		*preempts &= t->waiting.items[i]->wish->preempts;
	}
	return priority;
}

/* Evicts what is in the gang's way and plans it again; as it was if nothing helps. */
static int make_room(struct world *w, const struct troop *t, const struct gang_spec *spec,
		     struct gang_result *g, struct strbuf *why, struct err *err)
{
	struct preemption p CLEANUP(preemption_done) = { 0 };
	bool preempts;
	int32_t priority = priority_of(t, &preempts);

	if (w->config.no_preemption || !preempts)
		return 0;
	int rc = preempt_gang(w->engine, w->planner, spec, priority, &p, err);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0 || (rc = world_evict(w, &p, t->waiting.items[0], why, err)) < 0)
		return rc;
	gang_result_done(g);
	return gang_plan(w->planner, spec, g, err);
}

/* Whether a gang that asks for the same was refused, and nothing has changed since. */
static bool is_stuck(const struct world *w, const struct troop *t, const struct ranks *r)
{
	const struct world_stuck_gang *s = &w->stuck_gang;
	const struct wish *own = t->waiting.items[0]->wish;
	bool preempts;

	return s->wish && r->count == 1 && s->wish->gang.members == t->gang->members &&
	       s->wish->gang.leaves == t->gang->leaves &&
	       s->priority >= priority_of(t, &preempts) && (s->preempts || !preempts) &&
	       request_equal(&s->wish->request, &own->request);
}

static void refuse_gang(struct world *w, const struct troop *t, const struct ranks *r,
			const char *reason)
{
	struct world_stuck_gang *s = &w->stuck_gang;

	all_wait(w, t, reason);
	if (r->count != 1)
		return;
	s->wish = t->waiting.items[0]->wish;
	s->priority = priority_of(t, &s->preempts);
	snprintf(s->reason, sizeof(s->reason), "%s", reason);
}

static int place_ranks(struct world *w, const struct troop *t, const struct ranks *r,
		       struct err *err)
{
	const struct wish *first = t->waiting.items[0]->wish;
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;
	struct gang_result g CLEANUP(gang_result_done) = { 0 };
	struct gang_spec spec = {
		.classes = r->classes,
		.classes_count = r->count,
		.strategy = first->request.strategy,
		.leaf_rules = t->gang->leaves == LEAVES_REQUIRED ? GANG_REQUIRED : GANG_PREFERRED,
		.latency_sensitive = first->request.latency_sensitive,
	};
	if (is_stuck(w, t, r)) {
		all_wait(w, t, w->stuck_gang.reason);
		return 0;
	}
	int rc = gang_plan(w->planner, &spec, &g, err);

	if (rc == 0 && !g.placed)
		rc = make_room(w, t, &spec, &g, &why, err);
	if (rc < 0)
		return rc;
	if (g.placed)
		settle_members(w, t, r->pods, r, &g, t->gang->members, &why);
	else
		refuse_gang(w, t, r, g.reason);
	return 0;
}

static int place_whole(struct world *w, const struct troop *t, struct err *err)
{
	struct ranks r = { .count = 0 };
	int rc = line_up(w, t, t->gang->members, &r, err);

	if (rc == 0)
		rc = place_ranks(w, t, &r, err);
	ranks_done(&r);
	return rc;
}

static int replace(struct world *w, const struct troop *t, const struct gang_failed *failed,
		   uint32_t missing, struct err *err)
{
	struct gang_result g CLEANUP(gang_result_done) = { 0 };
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;
	struct gang_repair r = { .kept = t->placed.items,
				 .kept_count = (uint32_t)t->placed.len,
				 .failed = failed,
				 .failed_count = missing };
	int rc = gang_replace(w->planner, &r, &g, err);

	if (rc < 0)
		return rc;
	if (g.placed)
		settle_members(w, t, t->waiting.items, NULL, &g, missing + r.kept_count, &why);
	else
		all_wait(w, t, g.reason);
	return 0;
}

/* New members in the place of those that failed; the others stay where they are. */
static int repair(struct world *w, const struct troop *t, uint32_t missing, struct err *err)
{
	struct gang_failed *failed = calloc(missing, sizeof(*failed));
	struct pod_spec *specs = calloc(missing, sizeof(*specs));
	int rc = -ENOMEM;

	if (failed && specs) {
		for (uint32_t i = 0; i < missing; i++) {
			struct world_pod *pod = t->waiting.items[i];

			world_pod_spec(w, pod, &specs[i]);
			failed[i] =
				(struct gang_failed){ &pod->wish->request, &specs[i], pod->leaf };
		}
		rc = replace(w, t, failed, missing, err);
	} else {
		err_set(err, ENOMEM, "out of memory");
	}
	free(failed);
	free(specs);
	return rc;
}

static int try_singly(struct world *w, const struct troop *t, size_t from, struct err *err)
{
	int rc = 0;

	for (size_t i = from; i < t->waiting.len && rc == 0; i++)
		if (t->waiting.items[i]->state == WORLD_PENDING)
			rc = world_try_pod(w, t->waiting.items[i], err);
	return rc;
}

int world_try_gang(struct world *w, struct world_pod *first, struct err *err)
{
	struct troop t CLEANUP(troop_done) = { .gang = NULL };
	int rc = muster(w, first, &t, err);
	size_t placed = t.placed.len, members = rc < 0 ? 0 : t.gang->members;

	if (rc < 0)
		return rc;
	if (placed >= members)
		return try_singly(w, &t, 0, err);
	if (placed == 0 && t.waiting.len < members) {
		char text[256];

		snprintf(text, sizeof(text), "gang %.100s waits for %zu more of its %zu members",
			 t.gang->name, members - t.waiting.len, members);
		all_wait(w, &t, text);
		return 0;
	}
	if (members > GANG_MEMBERS_MAX) {
		char text[256];

		snprintf(text, sizeof(text),
			 "gang %.100s has %zu members, at most %d are possible", t.gang->name,
			 members, GANG_MEMBERS_MAX);
		all_wait(w, &t, text);
		return 0;
	}
	size_t missing = MIN(members - placed, t.waiting.len);
	rc = placed ? repair(w, &t, (uint32_t)missing, err) : place_whole(w, &t, err);
	/* More pods than the gang needs: whoever is left over is placed as it comes. */
	if (rc == 0 && t.waiting.items[0]->state == WORLD_PLACED)
		rc = try_singly(w, &t, missing, err);
	return rc;
}
