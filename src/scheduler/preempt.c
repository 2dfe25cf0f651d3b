/* SPDX-License-Identifier: Apache-2.0 */
/* preempt.c - room that is being made or kept: for whom, and who has to leave first. */
#include "scheduler/preempt_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/log.h"
#include "scheduler/evict.h"
#include "scheduler/meters.h"

#define RESERVATION_MS 10000 /* after which a better one is looked for */
#define VICTIMS_MS     60000 /* of waiting for them, likewise */
/* As many times as long as it takes to get a reservation, one is kept while nobody leaves: those
 * who hold the room may never end, and others have waited too. */
#define RESERVATION_TIMES 5

/* Members that the engine has placed on what their victims will leave. */
struct nomination {
	struct scheduler *scheduler;
	struct unit *unit;
	VEC(struct victim *) victims; /* that are still there */
	VEC(struct task *) tasks;
	VEC(struct asked *) asked; /* what each of them asks for */
	bool reserves;		   /* nobody is asked to go: it waits for them to end */
	uint64_t since_ms;
	uint64_t again_ms; /* it is looked at anew then */
	struct nomination *next;
};

static void unlink_nomination(struct nomination *n)
{
	struct nomination **at = &n->scheduler->nominations;

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
}

static void nomination_free(struct nomination *n)
{
	for (size_t i = 0; i < n->tasks.len; i++) {
		n->tasks.items[i]->nomination = NULL;
		free(n->tasks.items[i]->nominated);
		n->tasks.items[i]->nominated = NULL;
	}
	for (size_t i = 0; i < n->asked.len; i++)
		asked_release(&n->scheduler->asked, n->asked.items[i]);
	vec_done(&n->victims);
	vec_done(&n->tasks);
	vec_done(&n->asked);
	free(n);
}

typedef VEC(uint32_t) node_numbers;

/* The engine forgets that its members were to be there: on these nodes. */
static void unplace(struct nomination *n, node_numbers *nodes)
{
	struct scheduler *s = n->scheduler;

	for (size_t i = 0; i < n->tasks.len; i++) {
		uint32_t number = cluster_pod_find(s->cluster, n->tasks.items[i]->uid);

		if (number == POD_NONE)
			continue;
		uint32_t node = cluster_pod(s->cluster, number)->node;

		engine_remove(s->engine, number);
		locks_tell(s->locks, n->tasks.items[i]->uid);
		if (vec_push(nodes, node) < 0)
			pods_left(s, node);
	}
	s->epoch++;
}

static void tell_left(struct scheduler *s, node_numbers *nodes)
{
	for (size_t i = 0; i < nodes->len; i++)
		pods_left(s, nodes->items[i]);
	vec_done(nodes);
}

/* All victims are gone: decided at once, before anybody else is. */
static void complete(struct nomination *n)
{
	struct scheduler *s = n->scheduler;
	struct unit *unit = n->unit;
	node_numbers nodes = { 0 };

	unlink_nomination(n);
	unplace(n, &nodes);
	nomination_free(n);
	tell_left(s, &nodes);
	cycle_decide_unit(s, unit);
}

static void forget_victim(struct nomination *n, struct victim *victim)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->victims.len; i++)
		if (n->victims.items[i] != victim)
			n->victims.items[kept++] = n->victims.items[i];
	n->victims.len = kept;
	victim_free(victim);
}

void preempt_pod_gone(struct scheduler *s, const char *uid)
{
	struct victim *victim;

	while ((victim = victim_find(s, uid))) {
		struct nomination *n = victim->nomination;

		victim_gone(victim);
		forget_victim(n, victim);
		if (n->reserves)
			n->unit->reserved_ms = now_ms(s);
		scheduler_kick(s); /* preempt_tick() goes on */
	}
}

/* Whether the node would take one of its members as things are. */
static bool fits_there(const struct nomination *n, uint32_t node)
{
	const struct asked *last = NULL;

	for (size_t i = 0; i < n->asked.len; i++) {
		const struct asked *asked = n->asked.items[i];

		if (asked != last &&
		    fit_node(n->scheduler->cluster, &asked->request, node) == FITS)
			return true;
		last = asked;
	}
	return false;
}

/* A pod has its turn among all that wait, and does not give up what it has.  A gang is planned
 * without it, which takes time. */
static void try_elsewhere(struct nomination *n)
{
	struct pending_item *item = &n->unit->item;

	if (n->reserves && !n->unit->is_gang)
		n->again_ms = 0;
	else if (n->unit->is_gang)
		n->again_ms = MIN(n->again_ms, n->since_ms + RESERVATION_MS);
	else if (item->place == PENDING_OUT)
		pending_again(n->scheduler->pending, item);
}

void preempt_left(struct scheduler *s, uint32_t node)
{
	for (struct nomination *n = s->nominations; n; n = n->next)
		if (fits_there(n, node))
			try_elsewhere(n);
}

/* Whether a member has lost its place: its node is gone, or takes it no more whoever leaves. */
static bool is_lost(const struct nomination *n, uint32_t node)
{
	const struct cluster *c = n->scheduler->cluster;

	for (size_t i = 0; i < n->tasks.len; i++) {
		const struct request *r = &n->asked.items[i]->request;
		uint32_t number = cluster_pod_find(c, n->tasks.items[i]->uid);
		enum verdict v;

		if (number == POD_NONE)
			return true;
		if (cluster_pod(c, number)->node != node)
			continue;
		v = fit_node(c, r, node);
		if (v != FITS && !verdict_curable(v))
			return true;
	}
	return false;
}

void preempt_node(struct scheduler *s, uint32_t node)
{
	for (struct nomination *n = s->nominations; n; n = n->next) {
		if (is_lost(n, node))
			n->again_ms = 0;
		else if (fits_there(n, node))
			try_elsewhere(n);
	}
}

/* Books the victims beside who takes their place: as much of theirs as is left, so that
 * nobody is given what they still use. */
static void book_victims(const struct nomination *n)
{
	for (size_t i = 0; i < n->victims.len; i++) {
		const struct victim *victim = n->victims.items[i];

		pods_rebook(n->scheduler, victim->uid, victim->namespace, victim->name);
	}
}

/* Others hear of it when the victims have again what is theirs. */
static void give_up(struct nomination *n)
{
	struct scheduler *s = n->scheduler;
	node_numbers nodes = { 0 };

	unlink_nomination(n);
	unplace(n, &nodes);
	book_victims(n);
	while (n->victims.len) {
		victim_spare(n->victims.items[n->victims.len - 1]);
		forget_victim(n, n->victims.items[n->victims.len - 1]);
	}
	nomination_free(n);
	tell_left(s, &nodes);
}

void preempt_cancel(struct scheduler *s, struct task *task)
{
	struct nomination *n = task->nomination;
	struct unit *unit = n ? n->unit : NULL;

	if (!n)
		return;
	give_up(n);
	if (unit->is_gang) /* the others wait on */
		pending_again(s->pending, &unit->item);
}

bool preempt_keeps(struct scheduler *s, struct task *task, const struct request *r)
{
	struct nomination *n = task->nomination;
	struct decision d;

	if (!n)
		return false;
	if (r && n->victims.len && engine_decide(s->engine, r, &d) != FITS)
		return true;
	give_up(n);
	return false;
}

/* A victim could not be asked to go. */
static void failed(void *context, const char *why)
{
	struct nomination *n = context;
	struct scheduler *s = n->scheduler;
	struct unit *unit = n->unit;

	log_warn(s->log, "a pod could not be preempted", LOG_STR("why", why));
	give_up(n);
	pending_failed(s->pending, &unit->item, now_ms(s));
}

static int add_victim(struct nomination *n, uint32_t number, const struct task *for_task)
{
	struct scheduler *s = n->scheduler;
	const struct pod *pod = cluster_pod(s->cluster, number);
	struct victim *victim = victim_new(s, pod, for_task);

	if (!victim)
		return -ENOMEM;
	victim->nomination = n;
	victim->failed = failed;
	if (vec_push(&n->victims, victim) < 0) {
		victim_free(victim);
		return -ENOMEM;
	}
	return 0;
}

/* Pods that are being bound, or asked to go, right now are no victims: it is tried again in a
 * moment.  *other is somebody for whom room is kept there. */
static bool is_any_flying(const struct scheduler *s, const struct proposal *want,
			  const struct preemption *p, struct nomination **other)
{
	bool any = false;

	for (uint32_t i = 0; i < p->victims_count; i++) {
		const struct pod *pod = cluster_pod(s->cluster, p->victims[i]);
		const struct task *task = tasks_find(&s->tasks, pod->uid);
		const struct victim *victim = victim_find(s, pod->uid);

		if (task && task->nomination)
			*other = task->nomination;
		else
			any |= task != NULL;
		for (; victim && !pod->ending && !want->reserves; victim = victim->twin)
			any |= !victim->nomination->reserves;
	}
	return any;
}

/* Room that is kept for somebody less important is not kept any more: it waits again. */
static void make_way(struct nomination *n)
{
	struct scheduler *s = n->scheduler;
	struct unit *unit = n->unit;

	give_up(n);
	if (unit->item.place == PENDING_OUT)
		pending_again(s->pending, &unit->item);
}

/* The engine's view of afterwards: victims off, members on. */
static int rearrange(struct nomination *n, const struct preemption *p,
		     const struct pod_spec *specs, const struct request *const *requests)
{
	struct scheduler *s = n->scheduler;
	int rc = 0;

	assert(n->tasks.len);
	for (uint32_t i = 0; i < p->victims_count && rc == 0; i++)
		rc = add_victim(n, p->victims[i], n->tasks.items[0]);
	for (size_t i = 0; i < n->victims.len; i++)
		pods_unbook(s, n->victims.items[i]->uid);
	for (uint32_t i = 0; i < p->decisions_count && rc == 0; i++) {
		uint32_t number;

		rc = engine_place(s->engine, &specs[i], requests[i], &p->decisions[i], &number);
	}
	book_victims(n);
	s->epoch++;
	return rc;
}

static void nominate(struct nomination *n, const struct preemption *p)
{
	struct scheduler *s = n->scheduler;

	for (size_t i = 0; i < n->tasks.len; i++) {
		struct task *task = n->tasks.items[i];
		const char *node = cluster_node(s->cluster, p->decisions[i].node)->name;

		free(task->nominated);
		task->nominated = strdup(node);
	}
}

static int add_member(struct nomination *n, struct task *task, const struct request *r)
{
	struct asked *asked = asked_take(&n->scheduler->asked, r);

	if (!asked)
		return -ENOMEM;
	if (vec_push(&n->asked, asked) < 0) {
		asked_release(&n->scheduler->asked, asked);
		return -ENOMEM;
	}
	return vec_push(&n->tasks, task);
}

static struct nomination *nomination_new(struct scheduler *s, const struct proposal *want)
{
	struct nomination *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->scheduler = s;
	n->unit = want->unit;
	n->reserves = want->reserves;
	n->since_ms = now_ms(s);
	n->again_ms = n->since_ms + (want->reserves ? RESERVATION_MS : VICTIMS_MS);
	for (uint32_t i = 0; i < want->count; i++) {
		if (add_member(n, want->tasks[i], want->requests[i]) == 0)
			continue;
		nomination_free(n);
		return NULL;
	}
	n->next = s->nominations;
	s->nominations = n;
	return n;
}

static int ask_victims(struct nomination *n)
{
	int rc = 0;

	for (size_t i = 0; i < n->victims.len && rc == 0; i++)
		rc = victim_ask(n->victims.items[i]);
	return rc;
}

/* Those who are going already were asked before, or by others. */
static uint32_t asked_count(const struct nomination *n)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n->victims.len; i++)
		count += !n->victims.items[i]->ending;
	return count;
}

enum preempting preempt_carry_out(struct scheduler *s, const struct proposal *want,
				  const struct preemption *p)
{
	struct nomination *n, *other = NULL;

	if (is_any_flying(s, want, p, &other) || (other && want->reserves))
		return PREEMPT_LATER;
	if (other) {
		make_way(other);
		return PREEMPT_AGAIN;
	}
	n = nomination_new(s, want);
	if (!n)
		return PREEMPT_LATER;
	if (rearrange(n, p, want->specs, want->requests) < 0 ||
	    (!n->reserves && ask_victims(n) < 0)) {
		give_up(n);
		return PREEMPT_LATER;
	}
	if (!n->reserves) {
		nominate(n, p);
		meters_victims(s->meters, asked_count(n));
	} else if (!want->unit->reserved_ms) {
		want->unit->reserved_ms = now_ms(s);
	}
	for (uint32_t i = 0; i < want->count; i++) {
		want->tasks[i]->nomination = n;
		report_preempts(s, want->tasks[i], p->victims_count);
	}
	return PREEMPT_ROOM;
}

bool preempt_reserves(const struct scheduler *s)
{
	for (const struct nomination *n = s->nominations; n; n = n->next)
		if (n->reserves)
			return true;
	return false;
}

/* While the status of a member is being written it cannot be decided on; until then the
 * engine keeps its place. */
static bool is_being_told(const struct nomination *n)
{
	for (size_t i = 0; i < n->tasks.len; i++)
		if (n->tasks.items[i]->telling || n->tasks.items[i]->stale)
			return true;
	return false;
}

static bool is_of_no_use(const struct nomination *n, uint64_t now)
{
	uint64_t after_ms = n->scheduler->reserve_after_ms;

	return n->reserves &&
	       now - n->unit->reserved_ms >= MAX(RESERVATION_MS, RESERVATION_TIMES * after_ms);
}

/* Those whose victims are gone, and those that have waited: there may be room elsewhere by
 * now.  One at a time, for deciding changes the list. */
void preempt_tick(struct scheduler *s, uint64_t now)
{
	for (struct nomination *n = s->nominations; n; n = n->next) {
		bool done = !n->victims.len;

		if (is_being_told(n) || (!done && n->again_ms > now) ||
		    n->unit->item.place != PENDING_OUT) /* its turn comes */
			continue;
		if (done) {
			complete(n);
		} else {
			struct unit *unit = n->unit;

			if (is_of_no_use(n, now))
				unit_waits_no_more(s, unit); /* others have their turn */
			give_up(n);
			cycle_decide_unit(s, unit);
		}
		scheduler_kick(s);
		return;
	}
}

void preempt_done(struct scheduler *s)
{
	while (s->nominations) {
		struct nomination *n = s->nominations;

		s->nominations = n->next;
		for (size_t i = 0; i < n->victims.len; i++)
			victim_free(n->victims.items[i]);
		nomination_free(n);
	}
	map_done(&s->victims);
}
