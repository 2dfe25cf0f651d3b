/* SPDX-License-Identifier: Apache-2.0 */
/* task_life.c - a task comes, changes, waits again, goes. */
#include <string.h>

#include "base/log.h"
#include "engine/engine.h"
#include "kube/object.h"
#include "scheduler/flight.h"
#include "scheduler/lookup.h"
#include "scheduler/preempt.h"

struct pending_item *task_item(struct task *task)
{
	return task->gang ? &task->gang->unit.item : &task->unit.item;
}

static void enqueue(struct scheduler *s, struct pending_item *item)
{
	if (item->added)
		pending_wake_item(s->pending, item, now_ms(s));
	else if (pending_add(s->pending, item, now_ms(s)) < 0)
		log_error(s->log, "the queue is full");
	scheduler_kick(s);
}

struct task *task_seen(struct scheduler *s, const struct kube_object *pod)
{
	struct task *task = tasks_add(&s->tasks, pod->uid, pod->namespace, pod->name);

	if (!task) {
		log_error(s->log, "out of memory", LOG_STR("pod", pod->name));
		return NULL;
	}
	task->scheduler = s;
	task->seen_ms = now_ms(s);
	task->unit.item.arrival = s->arrivals++;
	return task;
}

static void dequeue(struct scheduler *s, struct task *task)
{
	unit_waits_no_more(s, &task->unit);
	if (task->gang)
		gang_leave(s, task);
	pending_remove(s->pending, &task->unit.item);
	task_set_unsorted(&s->tasks, task, false); /* nobody can bind it as it is */
	asked_release(&s->asked, task->asked);
	task->asked = NULL;
}

/* Whether the change is news: our own writes of its status are not, unless it has waited for
 * the cache to have them. */
static bool is_news(struct task *task, bool held, uint64_t hash)
{
	bool waited = task->stale && !task_item(task)->added;
	bool news = waited || task->held != held || task->hash != hash;

	task->hash = hash;
	task->stale = false;
	return news;
}

void task_changed(struct scheduler *s, struct task *task, int32_t priority, bool held,
		  uint64_t hash)
{
	if (!is_news(task, held, hash))
		return;
	task->held = held;
	/* What it holds is free at once, and its gang is not whole any more.  If its Binding is on
	 * its way that may have been done before: the answer says. */
	if (held && task->flight && !task->flight->binding)
		flight_abort_ring(task->flight, false);
	if (task->flight || task->landed)
		return; /* its Binding will be refused, and then it is looked at again */
	if (held) {
		task_drop_index(s, task);
		preempt_cancel(s, task);
		dequeue(s, task);
		return;
	}
	if (task->gang) {
		gang_unread(task);
	} else {
		task->unit.item.priority = priority;
		/* Who waits for victims is read when these are gone. */
		task_set_unsorted(&s->tasks, task, !task->nomination);
	}
	enqueue(s, task_item(task));
}

void task_gone(struct scheduler *s, struct task *task)
{
	task->held = true; /* nothing below puts it into the queue again */
	preempt_cancel(s, task);
	if (task->flight)
		flight_abort_ring(task->flight, false); /* its gang is not whole any more */
	dequeue(s, task);
	report_forget(s, task);
	tasks_remove(&s->tasks, task);
	scheduler_kick(s);
}

void task_landed(struct scheduler *s, struct task *task)
{
	if (task->bound) {
		task_gone(s, task);
		return;
	}
	/* Events of before may still come: they find it, and that it is done. */
	dequeue(s, task);
	task->landed = true;
}

void task_requeue(struct scheduler *s, struct task *task, bool pause)
{
	struct pending_item *item = task_item(task);

	if (pause)
		task->stale = false; /* by then the cache will have what was written */
	if (task->held)
		dequeue(s, task); /* its gang goes on without it */
	if (task->held || task->stale || task->nomination)
		return; /* until the cache tells of a change, or victims are gone */
	if (task->bound) {
		task_gone(s, task);
		return;
	}
	if (task->gang && gang_is_nominated(task->gang))
		return; /* decided on with those, when their victims are gone or time is up */
	if (pause)
		pending_failed(s->pending, item, now_ms(s));
	else
		enqueue(s, item);
	scheduler_kick(s);
}

void task_unassume(struct scheduler *s, struct task *task)
{
	uint32_t number = cluster_pod_find(s->cluster, task->uid);

	lookup_drop_index(s->lookup, task->uid);
	if (number == POD_NONE)
		return;
	uint32_t node = cluster_pod(s->cluster, number)->node;

	engine_remove(s->engine, number);
	locks_tell(s->locks, task->uid); /* another may have locked GPUs for it */
	pods_left(s, node);
}
