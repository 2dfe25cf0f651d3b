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
#include "scheduler/meters.h"
#include "scheduler/preempt.h"

/* One try of a gang.  Arrays lie in the scheduler's arena. */
struct muster {
	struct scheduler *scheduler;
	struct gang *gang;
	struct task **tasks; /* that can be placed, in order of arrival */
	uint32_t count;
	struct gang_kind **classes; /* that these ask for */
	uint32_t classes_count;
	int32_t priority; /* of the least important */
	bool preempts;
	VEC(uint32_t) placed;
};

static int by_arrival(const void *a, const void *b)
{
	const struct task *const *x = a, *const *y = b;

	return (*x)->unit.item.arrival < (*y)->unit.item.arrival ? -1 : 1;
}

/* Whether not all that it needs are locked yet, and have their volumes. */
static bool is_being_locked(const struct gang *gang)
{
	for (size_t i = 0; gang->flying && i < gang->tasks.len; i++) {
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

/* Whether it was found wrong, and reading it again would change nothing. */
static bool is_left_out(const struct scheduler *s, const struct task *task)
{
	return task->wrong && task->read && task->gang->epoch == s->gangs.epoch;
}

/* Whether some member's status is being written; it says when that is done.  What others have
 * not been told yet would only be in the way, unless nobody will tell them again. */
static bool is_being_told(struct scheduler *s, struct gang *gang)
{
	struct task *telling = NULL;

	for (size_t i = 0; i < gang->tasks.len; i++) {
		struct task *task = gang->tasks.items[i];

		if (!gang_can_place(task) || is_left_out(s, task))
			continue;
		if (task->telling)
			telling = task;
		else
			report_unsay(s, task);
	}
	if (telling)
		telling->again = true;
	return telling != NULL;
}

static int line_up(struct muster *m)
{
	struct gang *gang = m->gang;
	struct arena *arena = &m->scheduler->arena;

	m->tasks = arena_array(arena, gang->tasks.len, sizeof(struct task *));
	m->classes = arena_array(arena, GANG_CLASSES_MAX, sizeof(struct gang_kind *));
	if (!m->tasks || !m->classes)
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
			task_drop_index(m->scheduler, m->tasks[i]);
	vec_done(&m->placed);
}

static bool is_of(const struct gang *gang, const struct wish *wish)
{
	return wish->gang.name && strcmp(wish->gang.name, gang->name) == 0;
}

static void read_wrong(struct scheduler *s, struct task *task, int rc, const struct err *err)
{
	gang_note_wrong(s, task);
	report_wrong(s, task, rc,
		     rc == -E2BIG ? "its gang has more kinds of members than are possible"
				  : err->text);
}

/* One member, anew: in, or out. */
static bool read_member(struct muster *m, struct task *task)
{
	struct scheduler *s = m->scheduler;
	struct err err = ERR_INIT;
	const char *version;
	struct wish wish;
	int rc = task_read(s, task, &wish, &version, &err);

	if (rc < 0) {
		read_wrong(s, task, rc, &err);
		return false;
	}
	if (!is_of(m->gang, &wish)) {
		/* It belongs elsewhere now. */
		wish_release(s->cluster, &wish);
		gang_leave(s, task);
		task_set_unsorted(&s->tasks, task, true);
		task_requeue(s, task, false);
		return false;
	}
	task_take_index(s, task, &wish); /* the next one that is read gets another */
	rc = gang_note(s, task, &wish);
	wish_release(s->cluster, &wish);
	if (rc < 0)
		read_wrong(s, task, rc, &err);
	return rc == 0;
}

/* Those who cannot be placed now are read when they can. */
static void unread_all(struct muster *m)
{
	for (size_t i = 0; i < m->gang->tasks.len; i++)
		m->gang->tasks.items[i]->read = false;
	m->gang->epoch = m->scheduler->gangs.epoch;
	m->gang->met = 0;
}

static void read_members(struct muster *m)
{
	uint32_t kept = 0;

	if (m->gang->epoch != m->scheduler->gangs.epoch)
		unread_all(m);
	m->gang->unsure = false;
	for (uint32_t i = 0; i < m->count; i++) {
		struct task *task = m->tasks[i];
		bool known = task->read && (task->wrong || gang_sort(m->scheduler, task) == 0);

		if (known ? !task->wrong : read_member(m, task))
			m->tasks[kept++] = task;
	}
	m->count = kept;
}

/* What they are together.  Kinds are numbered in the order of those who came. */
static void sum_up(struct muster *m)
{
	struct gang *gang = m->gang;
	uint32_t members = 0;

	m->priority = INT32_MAX;
	m->preempts = true;
	for (size_t i = 0; i < gang->kinds.len; i++)
		gang->kinds.items[i]->number = UINT32_MAX;
	for (uint32_t i = 0; i < m->count; i++) {
		const struct task *task = m->tasks[i];

		members = MAX(members, task->gang_members);
		m->priority = MIN(m->priority, task->priority);
		m->preempts &= task->preempts;
		if (task->kind->number != UINT32_MAX)
			continue;
		task->kind->number = m->classes_count;
		m->classes[m->classes_count++] = task->kind;
	}
	if (!m->count)
		return;
	gang->members = gang->unit.item.members = members;
	gang->unit.item.priority = m->priority;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int find_placed(struct muster *m)
{
	const struct cluster *c = m->scheduler->cluster;
	uint32_t at = cluster_gang_first(c, m->gang->number);

	for (; at != POD_NONE; at = cluster_pod(c, at)->gang_next)
		if (!cluster_pod(c, at)->ending && vec_push(&m->placed, at) < 0)
			return -ENOMEM;
	if (m->placed.len)
		qsort(m->placed.items, m->placed.len, sizeof(uint32_t), compare_numbers);
	return 0;
}

/* Whether members it needs are still being bound.  Their Bindings may be refused, and then a
 * member that took the others for placed would be bound without them. */
static bool is_under_way(const struct scheduler *s, const struct gang *gang)
{
	return gang->flying && gang_placed(s, gang) < gang->members + gang->flying;
}

/* Whether it is still what was decided on.  Where its volumes or its line of a map are chosen
 * anew with every reading, that decides. */
static bool is_as_read(const struct cluster *c, const struct task *task, const struct wish *wish)
{
	return is_of(task->gang, wish) &&
	       (!task->read || gang_kind_is(c, task->kind, &wish->request));
}

/* It was placed as one of its kind, and is booked as the pod that it is. */
static void book_subject(struct scheduler *s, const struct task *task, const struct wish *wish)
{
	uint32_t number = cluster_pod_find(s->cluster, task->uid);
	uint32_t subject = wish->request.subject;

	if (number != POD_NONE &&
	    subjects_alike(s->cluster, cluster_pod(s->cluster, number)->subject, subject))
		subject_give(s->cluster, number, subject);
}

/* Its own annotations leave no room for the decision.  That is remembered until it changes, or
 * nodes do: its gang is decided on without it. */
static void too_big(struct scheduler *s, struct task *task, const struct err *err)
{
	gang_note_wrong(s, task);
	task->read = true;
	report_wrong(s, task, -E2BIG, err->text);
}

/* A member that the engine has placed; NULL: it cannot start, and is wrong by now or tries again
 * later. */
static struct flight *fly(struct scheduler *s, struct task *task, const struct decision *d)
{
	struct err err = ERR_INIT;
	struct flight *f = NULL;
	const char *version;
	struct wish wish;

	if (task_read(s, task, &wish, &version, &err) == 0) {
		task_take_index(s, task, &wish);
		if (is_as_read(s->cluster, task, &wish)) {
			book_subject(s, task, &wish);
			f = flight_new(s, task, &wish, d, version, &err);
		} else {
			gang_unread(task); /* it was decided on as something else */
		}
		wish_release(s->cluster, &wish);
	}
	if (!f && err.code == E2BIG)
		too_big(s, task, &err);
	else if (!f && err.text[0])
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

static void take_back(struct scheduler *s, const struct placing *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (list[i].task->flight)
			flight_abort(list[i].task->flight);
		else
			task_unassume(s, list[i].task);
	}
}

/* All of them, or none; the gang waits again if others of it do. */
static void fly_together(struct muster *m, const struct placing *list, uint32_t count)
{
	struct scheduler *s = m->scheduler;
	struct pending_item *item = &m->gang->unit.item;
	struct flight *first = NULL;
	uint32_t flown = 0, wrong = 0;

	s->epoch++;
	for (uint32_t i = 0; i < count && flown + wrong == i; i++) {
		struct flight *f = fly(s, list[i].task, list[i].decision);

		if (f && first)
			flight_join(first, f);
		first = f ? f : first;
		flown += f != NULL;
		wrong += list[i].task->wrong;
	}
	if (flown == count) {
		count_locks(m, first);
		unit_waits_no_more(s, &m->gang->unit);
		pending_placed(s->pending, item);
		flight_start(first);
		return;
	}
	take_back(s, list, count);
	if (flown + wrong == count)
		pending_again(s->pending, item); /* without those who are wrong */
	else
		pending_failed(s->pending, item, now_ms(s));
}

/* Members by class, each class side by side, as gang_plan() wants them. */
struct ranks {
	struct gang_class classes[GANG_CLASSES_MAX + 1];

	uint32_t count;
	struct pod_spec *specs;
	struct task **tasks;
};

static struct pod_spec member_spec(const struct muster *m, const struct task *task)
{
	return (struct pod_spec){ .uid = task->uid,
				  .name = task->key,
				  .priority = m->priority,
				  .gang = m->gang->number,
				  .started = UINT64_MAX };
}

static int make_ranks(const struct muster *m, uint32_t members, struct ranks *r)
{
	struct arena *arena = &m->scheduler->arena;
	uint32_t filled = 0;

	r->specs = arena_array(arena, members, sizeof(*r->specs));
	r->tasks = arena_array(arena, members, sizeof(struct task *));
	if (!r->specs || !r->tasks)
		return -ENOMEM;
	for (uint32_t class = 0; class < m->classes_count; class ++) {
		uint32_t start = filled, number = r->count;

		for (uint32_t i = 0; i < members; i++) {
			if (m->tasks[i]->kind->number != class)
				continue;
			r->specs[filled] = member_spec(m, m->tasks[i]);
			r->tasks[filled++] = m->tasks[i];
		}
		/* Those beyond the members that it needs may be of a kind of their own. */
		r->classes[number] = (struct gang_class){ &m->classes[class]->request,
							  &r->specs[start], filled - start };
		r->count += filled > start;
	}
	return 0;
}

static int make_spec(const struct muster *m, uint32_t members, uint8_t leaf_rules, struct ranks *r,
		     struct gang_spec *ret)
{
	const struct request *first = &m->classes[0]->request;

	*r = (struct ranks){ 0 };
	int rc = make_ranks(m, members, r);
	*ret = (struct gang_spec){ .classes = r->classes,
				   .classes_count = r->count,
				   .strategy = first->strategy,
				   .leaf_rules = leaf_rules,
				   .latency_sensitive = first->latency_sensitive };
	return rc;
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

/* Room for one kind may be made by moving another: then any that leaves helps. */
static void refused(struct muster *m, const struct gang_result *g)
{
	meters_gang(m->scheduler->meters, METERS_UNSCHEDULABLE);
	refuse_gang(m->scheduler, m->gang, m->classes_count == 1 ? &m->classes[0]->request : NULL,
		    g->by_verdict, m->preempts, g->reason);
}

/* Room for the first so many, at the cost of others or when these have ended.  False: none. */
static bool make_room(struct muster *m, uint32_t members, uint8_t leaf_rules)
{
	struct scheduler *s = m->scheduler;
	enum preempting how = PREEMPT_NOBODY;
	struct gang_spec spec;
	struct ranks r;

	if (make_spec(m, members, leaf_rules, &r, &spec) < 0)
		return false;
	if (m->preempts)
		how = preempt_for_gang(s, m->gang, &spec, m->priority, false);
	if (how == PREEMPT_NOBODY && unit_is_patient(s, &m->gang->unit))
		how = preempt_for_gang(s, m->gang, &spec, m->priority, true);
	unit_waits(s, &m->gang->unit);
	if (how == PREEMPT_LATER)
		pending_failed(s->pending, &m->gang->unit.item, now_ms(s));
	if (how == PREEMPT_AGAIN)
		pending_again(s->pending, &m->gang->unit.item);
	return how != PREEMPT_NOBODY;
}

/* Another scheduler may have locked GPUs for a member: what becomes of that is seen.  Nor can
 * nodes help where memory is short. */
static void cannot_plan(struct muster *m, int rc, const struct err *err)
{
	struct scheduler *s = m->scheduler;

	if (rc == -EEXIST || rc == -ENOMEM)
		pending_failed(s->pending, &m->gang->unit.item, now_ms(s));
	else
		refuse_gang(s, m->gang, NULL, NULL, false, err->text);
}

static void place_whole(struct muster *m)
{
	struct scheduler *s = m->scheduler;
	struct gang_result g CLEANUP(gang_result_done) = { 0 };
	uint8_t leaf_rules = m->gang->leaves == LEAVES_REQUIRED ? GANG_REQUIRED : GANG_PREFERRED;
	struct err err = ERR_INIT;
	struct gang_spec spec;
	struct ranks r;
	int rc = make_spec(m, m->gang->members, leaf_rules, &r, &spec);

	if (rc == 0)
		rc = gang_plan(s->planner, &spec, &g, &err);
	if (rc < 0) {
		cannot_plan(m, rc, &err);
		return;
	}
	if (g.placed)
		settle(m, &r, &g);
	else if (!make_room(m, m->gang->members, leaf_rules))
		refused(m, &g);
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
		specs[i] = member_spec(m, m->tasks[i]);
		failed[i] = (struct gang_failed){ &m->tasks[i]->kind->request, &specs[i],
						  DOMAIN_NONE };
	}
	int rc = failed && specs ? gang_replace(s->planner, &want, &g, &err) : -ENOMEM;
	if (rc < 0) {
		cannot_plan(m, rc, &err);
		return;
	}
	if (g.placed)
		settle(m, &r, &g);
	else if (!make_room(m, missing, GANG_PREFERRED))
		refused(m, &g);
}

/* The first of those that wait for whom there is room.  Kinds have their numbers in this order.
 */
static struct task *first_that_fits(const struct muster *m, struct decision *ret)
{
	uint32_t kind = 0;

	for (uint32_t i = 0; i < m->count; i++) {
		struct task *task = m->tasks[i];

		if (task->kind->number < kind)
			continue;
		if (engine_decide(m->scheduler->engine, &task->kind->request, ret) == FITS)
			return task;
		kind = task->kind->number + 1;
	}
	return NULL;
}

/* The gang has all it needs: one more of it as it comes; the next is woken when that is
 * locked. */
static void place_extra(struct muster *m)
{
	struct scheduler *s = m->scheduler;
	struct decision d;
	struct task *task = first_that_fits(m, &d);
	uint32_t number;

	if (!task) {
		if (!make_room(m, 1, GANG_PREFERRED))
			refuse_extra(s, m->gang, &m->tasks[0]->kind->request, m->preempts);
		return;
	}
	struct pod_spec spec = member_spec(m, task);

	if (engine_place(s->engine, &spec, &task->kind->request, &d, &number) == 0)
		fly_together(m, &(struct placing){ task, &d }, 1);
	else
		pending_failed(s->pending, &m->gang->unit.item, now_ms(s));
}

static void wait_for_members(struct scheduler *s, struct gang *gang)
{
	gang->lacks = true;
	unit_waits_no_more(s, &gang->unit); /* it is not for room that it waits */
	refuse_gang(s, gang, NULL, NULL, false, "");
	gang_tell_soon(s, gang);
}

static void decide(struct muster *m)
{
	uint32_t members = m->gang->members, placed = (uint32_t)m->placed.len;

	if (m->count == 0)
		/* Nobody to place: whoever comes wakes it. */
		refuse_gang(m->scheduler, m->gang, NULL, NULL, false, "");
	else if (members > GANG_MEMBERS_MAX)
		refuse_gang(m->scheduler, m->gang, NULL, NULL, false,
			    "its gang has more members than are possible");
	else if (placed >= members)
		place_extra(m);
	else if (m->count < members - placed)
		wait_for_members(m->scheduler, m->gang);
	else if (placed)
		repair(m, members - placed);
	else
		place_whole(m);
}

/* Whether others must end, or change, first: who does puts it into the queue again. */
static bool must_wait(struct scheduler *s, struct gang *gang)
{
	if (is_being_told(s, gang))
		return true;
	if (!is_being_locked(gang) && !is_any_stale(gang) && !is_under_way(s, gang))
		return false;
	pending_placed(s->pending, &gang->unit.item);
	return true;
}

void gang_decide(struct scheduler *s, struct gang *gang)
{
	struct muster m = { .scheduler = s, .gang = gang };

	if (gang_is_short(s, gang)) {
		wait_for_members(s, gang);
		return;
	}
	if (must_wait(s, gang))
		return;
	gang->lacks = false;
	arena_reset(&s->arena);
	int rc = line_up(&m);
	if (rc == 0)
		read_members(&m);
	sum_up(&m);
	if (rc == 0)
		rc = find_placed(&m);
	if (rc == 0)
		decide(&m);
	else
		pending_failed(s->pending, &gang->unit.item, now_ms(s));
	muster_done(&m);
}
