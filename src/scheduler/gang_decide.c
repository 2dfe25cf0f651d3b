/* SPDX-License-Identifier: Apache-2.0 */
/* gang_decide.c - gangs: whole at first, and made whole again when members were lost.
 *
 * Either all members that the gang needs are booked, locked and then bound, or none is.
 * Members beyond that number are placed as they come. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/log.h"
#include "dialect/dialect.h"
#include "engine/gang.h"
#include "engine/rules.h"
#include "engine/soft.h"
#include "scheduler/lookup.h"
#include "scheduler/meters.h"
#include "scheduler/preempt.h"

/* One try of a gang.  Arrays lie in the scheduler's arena. */
struct muster {
	struct scheduler *scheduler;
	struct gang *gang;
	struct task **tasks; /* that can be placed, in order of arrival */
	uint8_t *class_of;   /* beside tasks */
	uint32_t count;
	struct request *requests; /* one for each class; they hold their rules */
	uint32_t classes;
	int32_t priority; /* of the least important */
	bool preempts;
	uint8_t leaves; /* enum gang_leaves */
	VEC(uint32_t) placed;
};

static int by_arrival(const void *a, const void *b)
{
	const struct task *const *x = a, *const *y = b;

	return (*x)->unit.item.arrival < (*y)->unit.item.arrival ? -1 : 1;
}

/* Whether not all are locked yet that it needs. */
static bool is_being_locked(const struct gang *gang)
{
	for (size_t i = 0; i < gang->tasks.len; i++) {
		const struct flight *f = gang->tasks.items[i]->flight;

		if (f && f->peer != f)
			return true;
	}
	return false;
}

/* Whether the cache is behind what was written to a member. */
static bool is_any_stale(const struct gang *gang)
{
	for (size_t i = 0; i < gang->tasks.len; i++) {
		const struct task *task = gang->tasks.items[i];

		if (task->stale && !task->flight && !task->held && !task->landed)
			return true;
	}
	return false;
}

/* Whether some member's status is being written; it says when that is done. */
static bool is_being_told(struct gang *gang)
{
	for (size_t i = 0; i < gang->tasks.len; i++) {
		struct task *task = gang->tasks.items[i];

		if (task->telling && gang_can_place(task)) {
			task->again = true;
			return true;
		}
	}
	return false;
}

static int line_up(struct muster *m)
{
	struct gang *gang = m->gang;
	struct arena *arena = &m->scheduler->arena;

	m->tasks = arena_array(arena, gang->tasks.len, sizeof(struct task *));
	m->class_of = arena_array(arena, gang->tasks.len, 1);
	m->requests = arena_array(arena, GANG_CLASSES_MAX, sizeof(*m->requests));
	if (!m->tasks || !m->class_of || !m->requests)
		return -ENOMEM;
	for (size_t i = 0; i < gang->tasks.len; i++)
		if (gang_can_place(gang->tasks.items[i]))
			m->tasks[m->count++] = gang->tasks.items[i];
	if (m->count)
		qsort(m->tasks, m->count, sizeof(struct task *), by_arrival);
	return 0;
}

static void muster_done(struct muster *m)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (!m->tasks[i]->flight)
			lookup_drop_index(m->scheduler->lookup, m->tasks[i]->uid);
	for (uint32_t i = 0; i < m->classes; i++) {
		subject_release(m->scheduler->cluster, m->requests[i].subject);
		rules_release(m->scheduler->cluster, m->requests[i].rules);
		soft_release(m->scheduler->cluster, m->requests[i].soft);
	}
	vec_done(&m->placed);
}

/* The class of members that ask for the same; takes over what the wish holds. */
static int class_of(struct muster *m, struct wish *wish)
{
	uint32_t i = 0;

	while (i < m->classes && !(request_equal(&m->requests[i], &wish->request) &&
				   m->requests[i].subject == wish->request.subject &&
				   m->requests[i].soft == wish->request.soft))
		i++;
	if (i == GANG_CLASSES_MAX)
		return -1;
	if (i < m->classes) {
		wish_release(m->scheduler->cluster, wish);
		return (int)i;
	}
	m->requests[m->classes++] = wish->request;
	return (int)i;
}

static void learn(struct muster *m, struct task *task, const struct wish *wish)
{
	if (!task->learned)
		engine_arrived(m->scheduler->engine, &wish->request);
	task->learned = true;
	m->gang->members = wish->gang.members;
	m->leaves = wish->gang.leaves;
	m->priority = MIN(m->priority, wish->priority);
	m->preempts &= wish->preempts;
}

/* The next one that is read gets another. */
static void take_index(struct scheduler *s, const struct task *task, const struct wish *wish)
{
	if (wish->workload && wish->index != WISH_INDEX_NONE)
		lookup_take_index(s->lookup, wish->workload, wish->index, task->uid);
}

/* One member: in with its class, or out. */
static bool read_member(struct muster *m, struct task *task, uint8_t *class)
{
	struct scheduler *s = m->scheduler;
	struct err err = ERR_INIT;
	const char *version;
	struct wish wish;
	int rc = task_read(s, task, &wish, &version, &err);

	task->wrong = rc < 0;
	if (rc < 0) {
		if (err.text[0])
			report_waits(s, task, err.text, rc == -ENOMEM);
		return false;
	}
	if (!wish.gang.name || strcmp(wish.gang.name, m->gang->name) != 0) {
		/* It belongs elsewhere now. */
		wish_release(s->cluster, &wish);
		gang_leave(s, task);
		task_requeue(s, task, false);
		return false;
	}
	learn(m, task, &wish);
	int number = class_of(m, &wish);
	if (number < 0) {
		wish_release(s->cluster, &wish);
		report_waits(s, task, "its gang has more kinds of members than are possible",
			     false);
		return false;
	}
	take_index(s, task, &wish);
	*class = (uint8_t)number;
	return true;
}

static void read_members(struct muster *m)
{
	uint32_t kept = 0;

	m->priority = INT32_MAX;
	m->preempts = true;
	for (uint32_t i = 0; i < m->count; i++) {
		uint8_t class;

		if (!read_member(m, m->tasks[i], &class))
			continue;
		m->tasks[kept] = m->tasks[i];
		m->class_of[kept++] = class;
	}
	m->count = kept;
}

static int find_placed(struct muster *m)
{
	const struct cluster *c = m->scheduler->cluster;

	for (uint32_t i = 0; i < cluster_pods_end(c); i++) {
		const struct pod *pod = cluster_pod(c, i);

		if (pod && !pod->ending && pod->gang == m->gang->number &&
		    vec_push(&m->placed, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Whether members it needs are still being bound.  Their Bindings may be refused, and then a
 * member that took the others for placed would be bound without them. */
static bool is_under_way(const struct muster *m)
{
	size_t flying = 0;

	for (size_t i = 0; i < m->gang->tasks.len; i++)
		flying += m->gang->tasks.items[i]->flight != NULL;
	return flying && m->placed.len < m->gang->members + flying;
}

/* A member that the engine has placed. */
static struct flight *fly(struct scheduler *s, struct task *task, const struct decision *d)
{
	struct err err = ERR_INIT;
	struct flight *f = NULL;
	const char *version;
	struct wish wish;

	if (task_read(s, task, &wish, &version, &err) == 0) {
		take_index(s, task, &wish);
		f = flight_new(s, task, &wish, d, version, &err);
		wish_release(s->cluster, &wish);
	}
	if (!f && err.text[0])
		report_waits(s, task, err.text, true);
	return f;
}

struct placing {
	struct task *task;
	const struct decision *decision;
};

/* Locks say how many of the gang must be locked: those that need no GPU are not. */
static void count_locks(const struct muster *m, const struct flight *ring)
{
	uint32_t locked = 0;
	const struct flight *at = ring;

	for (size_t i = 0; i < m->placed.len; i++)
		locked += cluster_pod(m->scheduler->cluster, m->placed.items[i])->holds_count > 0;
	do {
		locked += at->entry != NULL;
		at = at->peer;
	} while (at != ring);
	do {
		if (at->entry)
			at->entry->gang_members = MIN(at->entry->gang_members, locked);
		at = at->peer;
	} while (at != ring);
}

/* All of them, or none; the gang waits again if others of it do. */
static void fly_together(struct muster *m, const struct placing *list, uint32_t count)
{
	struct scheduler *s = m->scheduler;
	struct flight *first = NULL;
	uint32_t i;

	s->epoch++;
	for (i = 0; i < count; i++) {
		struct flight *f = fly(s, list[i].task, list[i].decision);

		if (!f)
			break;
		if (first)
			flight_join(first, f);
		first = f;
	}
	if (i == count) {
		count_locks(m, first);
		unit_waits_no_more(s, &m->gang->unit);
		pending_placed(s->pending, &m->gang->unit.item);
		flight_start(first);
		return;
	}
	for (uint32_t j = 0; j < count; j++) {
		if (list[j].task->flight)
			flight_abort(list[j].task->flight);
		else
			task_unassume(s, list[j].task);
	}
	pending_failed(s->pending, &m->gang->unit.item, now_ms(s));
}

/* Members by class, each class side by side, as gang_plan() wants them. */
struct ranks {
	struct gang_class classes[GANG_CLASSES_MAX + 1];
	uint8_t class_of[GANG_CLASSES_MAX + 1]; /* which of the muster's it is */
	uint32_t count;
	struct pod_spec *specs;
	struct task **tasks;
};

static int make_ranks(const struct muster *m, uint32_t members, struct ranks *r)
{
	struct arena *arena = &m->scheduler->arena;
	uint32_t filled = 0;

	r->specs = arena_array(arena, members, sizeof(*r->specs));
	r->tasks = arena_array(arena, members, sizeof(struct task *));
	if (!r->specs || !r->tasks)
		return -ENOMEM;
	for (uint32_t class = 0; class < m->classes; class ++) {
		uint32_t start = filled, number = r->count;

		for (uint32_t i = 0; i < members; i++) {
			if (m->class_of[i] != class)
				continue;
			r->specs[filled] = (struct pod_spec){ .uid = m->tasks[i]->uid,
							      .name = m->tasks[i]->key,
							      .priority = m->priority,
							      .gang = m->gang->number,
							      .started = UINT64_MAX };
			r->tasks[filled++] = m->tasks[i];
		}
		/* Those beyond the members that it needs may be of a kind of their own. */
		r->class_of[number] = (uint8_t) class;
		r->classes[number] = (struct gang_class){ &m->requests[class], &r->specs[start],
							  filled - start };
		r->count += filled > start;
	}
	return 0;
}

static void settle(struct muster *m, const struct ranks *r, struct gang_result *g)
{
	struct placing *list = arena_array(&m->scheduler->arena, g->members_count, sizeof(*list));

	if (!list) {
		plan_rollback(g->plan);
		pending_failed(m->scheduler->pending, &m->gang->unit.item, now_ms(m->scheduler));
		return;
	}
	plan_commit(g->plan);
	for (uint32_t i = 0; i < g->members_count; i++) {
		const struct gang_member *one = &g->members[i];
		size_t at = one->index;

		if (r->specs)
			at += (size_t)(r->classes[one->class_index].pods - r->specs);
		list[i] = (struct placing){ r->tasks[at], &one->decision };
	}
	meters_gang(m->scheduler->meters, METERS_SCHEDULED);
	log_info(m->scheduler->log, "gang placed", LOG_STR("gang", m->gang->name),
		 LOG_U64("members", g->members_count), LOG_U64("nodes", g->nodes_count));
	fly_together(m, list, g->members_count);
}

static void refused(struct muster *m, const struct gang_result *g)
{
	meters_gang(m->scheduler->meters, METERS_UNSCHEDULABLE);
	refuse_gang(m->scheduler, m->gang,
		    m->classes ? &m->requests[MIN(g->refused_class, m->classes - 1)] : NULL,
		    g->by_verdict, g->reason);
}

static void make_room(struct muster *m, const struct gang_spec *spec, const struct gang_result *g)
{
	struct strbuf more CLEANUP(strbuf_done) = STRBUF_INIT;
	struct scheduler *s = m->scheduler;
	enum preempting how = PREEMPT_NOBODY;

	if (m->preempts)
		how = preempt_for_gang(s, m->gang, spec, m->priority, false, &more);
	if (how == PREEMPT_NOBODY && unit_is_patient(s, &m->gang->unit))
		how = preempt_for_gang(s, m->gang, spec, m->priority, true, &more);
	unit_waits(s, &m->gang->unit);
	if (how == PREEMPT_NOBODY)
		refused(m, g);
	else if (how == PREEMPT_LATER)
		pending_failed(s->pending, &m->gang->unit.item, now_ms(s));
}

/* Another scheduler may have locked GPUs for a member: what becomes of that is seen. */
static void cannot_plan(struct muster *m, int rc, const struct err *err)
{
	struct scheduler *s = m->scheduler;

	if (rc == -EEXIST)
		pending_failed(s->pending, &m->gang->unit.item, now_ms(s));
	else
		refuse_gang(s, m->gang, NULL, NULL, rc == -ENOMEM ? "out of memory" : err->text);
}

static void place_whole(struct muster *m)
{
	struct scheduler *s = m->scheduler;
	struct gang_result g CLEANUP(gang_result_done) = { 0 };
	struct ranks r = { .specs = NULL };
	struct err err = ERR_INIT;
	struct gang_spec spec = {
		.classes = r.classes,
		.strategy = m->requests[0].strategy,
		.leaf_rules = m->leaves == LEAVES_REQUIRED ? GANG_REQUIRED : GANG_PREFERRED,
		.latency_sensitive = m->requests[0].latency_sensitive,
	};
	int rc = make_ranks(m, m->gang->members, &r);

	spec.classes_count = r.count;
	if (rc == 0)
		rc = gang_plan(s->planner, &spec, &g, &err);
	if (rc < 0) {
		cannot_plan(m, rc, &err);
		return;
	}
	if (g.placed) {
		settle(m, &r, &g);
		return;
	}
	g.refused_class = r.class_of[MIN(g.refused_class, r.count - 1)];
	make_room(m, &spec, &g);
}

/* New members in the place of those that were lost; the others stay where they are. */
static void repair(struct muster *m, uint32_t missing)
{
	struct scheduler *s = m->scheduler;
	struct gang_result g CLEANUP(gang_result_done) = { 0 };
	struct gang_failed *failed = arena_array(&s->arena, missing, sizeof(*failed));
	struct pod_spec *specs = arena_array(&s->arena, missing, sizeof(*specs));
	struct ranks r = { .tasks = m->tasks };
	struct err err = ERR_INIT;
	struct gang_repair want = { .kept = m->placed.items,
				    .kept_count = (uint32_t)m->placed.len,
				    .failed = failed,
				    .failed_count = missing };

	for (uint32_t i = 0; failed && specs && i < missing; i++) {
		specs[i] = (struct pod_spec){ .uid = m->tasks[i]->uid,
					      .name = m->tasks[i]->key,
					      .priority = m->priority,
					      .gang = m->gang->number,
					      .started = UINT64_MAX };
		failed[i] = (struct gang_failed){ &m->requests[m->class_of[i]], &specs[i],
						  DOMAIN_NONE };
	}
	int rc = failed && specs ? gang_replace(s->planner, &want, &g, &err) : -ENOMEM;
	if (rc < 0) {
		cannot_plan(m, rc, &err);
		return;
	}
	if (g.placed)
		settle(m, &r, &g);
	else
		refused(m, &g);
}

/* The gang has all it needs: one more of it as it comes; the next is woken when that is
 * bound. */
static void place_extra(struct muster *m)
{
	struct scheduler *s = m->scheduler;
	const struct request *request = &m->requests[m->class_of[0]];
	struct task *task = m->tasks[0];
	struct pod_spec spec = { .uid = task->uid,
				 .name = task->key,
				 .priority = m->priority,
				 .gang = m->gang->number,
				 .started = UINT64_MAX };
	uint32_t by_verdict[VERDICT_COUNT] = { [NO_FREE_GPU] = 1 };
	struct decision d;
	uint32_t number;

	if (engine_decide(s->engine, request, &d) == FITS &&
	    engine_place(s->engine, &spec, request, &d, &number) == 0)
		fly_together(m, &(struct placing){ task, &d }, 1);
	else
		refuse_gang(s, m->gang, request, by_verdict,
			    "no room for a further member of its gang");
}

/* With each that comes the number is another one for all: those who know one already hear of it
 * later, or a gang of a thousand would be half a million writes. */
static void wait_for_members(struct muster *m)
{
	struct gang *gang = m->gang;
	uint64_t now = now_ms(m->scheduler);
	char text[320];

	snprintf(text, sizeof(text), "gang %.200s waits for %u more of its %u members", gang->name,
		 gang->members - m->count - (uint32_t)m->placed.len, gang->members);
	gang->is_behind = gang->told_ms && now - gang->told_ms < GANG_TELL_MS;
	if (gang->is_behind) {
		refuse_gang_quietly(m->scheduler, gang, text);
		return;
	}
	gang->told_ms = now;
	refuse_gang(m->scheduler, gang, NULL, NULL, text);
}

static void decide(struct muster *m)
{
	uint32_t members = m->gang->members, placed = (uint32_t)m->placed.len;

	if (m->count == 0)
		/* Nobody to place: whoever comes wakes it. */
		refuse_gang(m->scheduler, m->gang, NULL, NULL, "");
	else if (placed >= members)
		place_extra(m);
	else if (m->count < members - placed)
		wait_for_members(m);
	else if (placed)
		repair(m, members - placed);
	else
		place_whole(m);
}

void gang_decide(struct scheduler *s, struct gang *gang)
{
	struct muster m = { .scheduler = s, .gang = gang };

	if (is_being_told(gang))
		return;
	/* Who ends, or changes, puts it into the queue again. */
	if (is_being_locked(gang) || is_any_stale(gang)) {
		pending_placed(s->pending, &gang->unit.item);
		return;
	}
	arena_reset(&s->arena);
	int rc = find_placed(&m);
	if (rc == 0 && is_under_way(&m)) {
		pending_placed(s->pending, &gang->unit.item);
		muster_done(&m);
		return;
	}
	if (rc == 0)
		rc = line_up(&m);
	if (rc == 0)
		read_members(&m);
	if (rc == 0 && gang->members > GANG_MEMBERS_MAX)
		refuse_gang(s, gang, NULL, NULL, "its gang has more members than are possible");
	else if (rc == 0)
		decide(&m);
	else
		pending_failed(s->pending, &gang->unit.item, now_ms(s));
	muster_done(&m);
}
