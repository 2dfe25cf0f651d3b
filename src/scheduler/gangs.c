/* SPDX-License-Identifier: Apache-2.0 */
/* gangs.c - who is in which gang.  What they ask for: gang_read.c; what becomes of them:
 * gang_decide.c. */
#include "scheduler/gangs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "engine/cluster.h"
#include "scheduler/lookup.h"
#include "scheduler/scheduler_private.h"

void gangs_init(struct gangs *gangs, uint64_t seed)
{
	map_init(&gangs->by_name, seed);
	gangs->epoch = 1;
}

struct gang *gangs_get(struct scheduler *s, const char *name)
{
	size_t len = strlen(name);
	struct gang *gang = map_get(&s->gangs.by_name, name, len);

	if (gang)
		return gang;
	gang = calloc(1, sizeof(*gang) + len + 1);
	if (!gang)
		return NULL;
	gang->name = memcpy(gang + 1, name, len + 1);
	gang->unit.is_gang = true;
	gang->number = ++s->gangs.last_number;
	gang->epoch = s->gangs.epoch;
	if (map_put(&s->gangs.by_name, gang->name, len, gang) == 0)
		return gang;
	free(gang);
	return NULL;
}

static void gang_free(struct scheduler *s, struct gang *gang)
{
	unit_waits_no_more(s, &gang->unit);
	for (size_t i = 0; i < gang->tasks.len; i++)
		gang_forget(s, gang->tasks.items[i]);
	asked_release(&s->asked, gang->asked);
	vec_done(&gang->tasks);
	vec_done(&gang->kinds);
	free(gang);
}

void gangs_done(struct scheduler *s)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->gangs.by_name, &at, &entry);)
		gang_free(s, entry.value);
	map_done(&s->gangs.by_name);
}

void gangs_collect(struct scheduler *s)
{
	VEC(struct gang *) idle CLEANUP(vec_cleanup) = { 0 };
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->gangs.by_name, &at, &entry);) {
		struct gang *gang = entry.value;

		if (gang->tasks.len == 0 &&
		    cluster_gang_first(s->cluster, gang->number) == POD_NONE &&
		    vec_push(&idle, gang) < 0)
			return;
	}
	for (size_t i = 0; i < idle.len; i++) {
		map_del(&s->gangs.by_name, idle.items[i]->name, strlen(idle.items[i]->name));
		gang_free(s, idle.items[i]);
	}
}

void gangs_nodes(struct scheduler *s)
{
	s->gangs.epoch++;
}

static bool is_of_namespace(const struct gang *gang, const char *namespace)
{
	size_t len = strlen(namespace);

	return !len || (strncmp(gang->name, namespace, len) == 0 && gang->name[len] == '/');
}

void gangs_object(struct scheduler *s, const char *kind, const char *namespace, const char *name)
{
	uint64_t bit = lookup_bit(kind, name);
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->gangs.by_name, &at, &entry);) {
		struct gang *gang = entry.value;

		if (!(gang->met & bit) || !is_of_namespace(gang, namespace))
			continue;
		gang->epoch = 0;
		gang->unsure = true;
	}
}

uint32_t gang_placed(const struct scheduler *s, const struct gang *gang)
{
	const struct cluster *c = s->cluster;
	uint32_t at = cluster_gang_first(c, gang->number), count = 0;

	for (; at != POD_NONE; at = cluster_pod(c, at)->gang_next)
		count += !cluster_pod(c, at)->ending;
	return count;
}

bool gang_is_short(const struct scheduler *s, const struct gang *gang)
{
	return !gang->unsure && !gang->flying && gang->tasks.len < gang->members &&
	       gang->tasks.len + gang_placed(s, gang) < gang->members;
}

void gang_tell_soon(struct scheduler *s, struct gang *gang)
{
	if (!gang->tell_ms)
		gang->tell_ms = now_ms(s) + GANG_TELL_SOON_MS;
	if (!s->gangs.tell_ms || gang->tell_ms < s->gangs.tell_ms)
		s->gangs.tell_ms = gang->tell_ms;
}

/* With each that comes the number is another one for all: those who know one already hear of it
 * later, or a gang of a thousand would be half a million writes. */
static void tell(struct scheduler *s, struct gang *gang, uint64_t now)
{
	bool all = !gang->told_ms || now - gang->told_ms >= GANG_TELL_MS;
	size_t here = gang->tasks.len - gang->wrong + gang_placed(s, gang);
	char text[320];

	gang->tell_ms = 0;
	if (!gang->lacks || here >= gang->members)
		return; /* it is decided on */
	snprintf(text, sizeof(text), "gang %.200s waits for %zu more of its %u members",
		 gang->name, gang->members - here, gang->members);
	for (size_t i = 0; i < gang->tasks.len; i++) {
		struct task *task = gang->tasks.items[i];

		if (!task->flight && !task->wrong && (all || !task->told))
			report_waits(s, task, text, false);
	}
	if (all)
		gang->told_ms = now;
	else
		gang->tell_ms = gang->told_ms + GANG_TELL_MS;
}

void gangs_tell(struct scheduler *s, uint64_t now)
{
	struct map_entry entry;

	if (!s->gangs.tell_ms || now < s->gangs.tell_ms)
		return;
	s->gangs.tell_ms = 0;
	for (uint32_t at = 0; map_next(&s->gangs.by_name, &at, &entry);) {
		struct gang *gang = entry.value;

		if (gang->tell_ms && gang->tell_ms <= now)
			tell(s, gang, now);
		if (gang->tell_ms)
			gang_tell_soon(s, gang);
	}
}

static int push_task(struct gang *gang, struct task *task)
{
	if (vec_push(&gang->tasks, task) < 0)
		return -ENOMEM;
	task->gang = gang;
	task->gang_at = (uint32_t)gang->tasks.len - 1;
	return 0;
}

static void drop_task(struct gang *gang, struct task *task)
{
	struct task *last = gang->tasks.items[--gang->tasks.len];

	gang->tasks.items[task->gang_at] = last;
	last->gang_at = task->gang_at;
	task->gang = NULL;
}

int gang_join(struct scheduler *s, struct gang *gang, struct task *task, const struct wish *wish)
{
	struct pending_item *item = &gang->unit.item;
	bool first = gang->tasks.len == 0;

	if (push_task(gang, task) < 0)
		return -ENOMEM;
	task_set_unsorted(&s->tasks, task, false);
	gang->members = MAX(first ? 0 : gang->members, wish->gang.members);
	if (gang_note(s, task, wish) < 0)
		gang_unread(task);
	pending_remove(s->pending, &task->unit.item);
	if (first || wish->priority < item->priority)
		item->priority = wish->priority;
	if (first || task->unit.item.arrival < item->arrival)
		item->arrival = task->unit.item.arrival;
	item->members = gang->members;
	if (!item->added)
		return pending_add(s->pending, item, now_ms(s));
	if (gang->lacks && item->place == PENDING_PARKED && gang_is_short(s, gang))
		gang_tell_soon(s, gang);
	else
		pending_wake_item(s->pending, item, now_ms(s));
	return 0;
}

/* Nobody of it waits any more: whoever comes has not waited yet. */
static void begin_anew(struct scheduler *s, struct gang *gang)
{
	pending_remove(s->pending, &gang->unit.item);
	unit_waits_no_more(s, &gang->unit);
	gang->lacks = false;
	gang->told_ms = gang->tell_ms = 0;
}

void gang_leave(struct scheduler *s, struct task *task)
{
	struct gang *gang = task->gang;
	struct pending_item *item = &gang->unit.item;

	gang_forget(s, task);
	drop_task(gang, task);
	if (gang->tasks.len == 0)
		begin_anew(s, gang);
	else if (item->added && item->place == PENDING_OUT && task->again)
		pending_again(s->pending, item); /* it waited for what was told of this one */
	else if (gang->lacks && item->place == PENDING_PARKED && gang_is_short(s, gang))
		gang_tell_soon(s, gang);
	else if (!item->added || item->place == PENDING_PARKED)
		gang_wake(s, gang);
	task->again = false;
}

void gang_unread(struct task *task)
{
	task->read = false;
	task->gang->unsure = true;
}

bool gang_can_place(const struct task *task)
{
	return !task->flight && !task->nomination && !task->held && !task->stale && !task->landed;
}

bool gang_is_nominated(const struct gang *gang)
{
	for (size_t i = 0; i < gang->tasks.len; i++)
		if (gang->tasks.items[i]->nomination)
			return true;
	return false;
}

void gang_wake(struct scheduler *s, struct gang *gang)
{
	struct pending_item *item = &gang->unit.item;
	bool any = false;

	if (gang->flying == gang->tasks.len)
		return;
	for (size_t i = 0; i < gang->tasks.len && !any; i++)
		any = gang_can_place(gang->tasks.items[i]);
	if (!any)
		return;
	if (item->added)
		pending_wake_item(s->pending, item, now_ms(s));
	else
		pending_add(s->pending, item, now_ms(s));
	scheduler_kick(s);
}
