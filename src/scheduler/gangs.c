/* SPDX-License-Identifier: Apache-2.0 */
/* gangs.c - who is in which gang.  What becomes of them: gang_decide.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "engine/cluster.h"
#include "scheduler/scheduler_private.h"

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
	if (map_put(&s->gangs.by_name, gang->name, len, gang) == 0)
		return gang;
	free(gang);
	return NULL;
}

static void gang_free(struct scheduler *s, struct gang *gang)
{
	unit_waits_no_more(s, &gang->unit);
	vec_done(&gang->tasks);
	free(gang);
}

void gangs_done(struct scheduler *s)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->gangs.by_name, &at, &entry);)
		gang_free(s, entry.value);
	map_done(&s->gangs.by_name);
}

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Gangs without a member that waits and without one that is placed are forgotten. */
void gangs_collect(struct scheduler *s)
{
	VEC(uint32_t) used CLEANUP(vec_cleanup) = { 0 };
	VEC(struct gang *) idle CLEANUP(vec_cleanup) = { 0 };
	struct map_entry entry;

	for (uint32_t i = 0; i < cluster_pods_end(s->cluster); i++) {
		const struct pod *pod = cluster_pod(s->cluster, i);

		if (pod && pod->gang && vec_push(&used, pod->gang) < 0)
			return;
	}
	if (used.len)
		qsort(used.items, used.len, sizeof(*used.items), compare_numbers);
	for (uint32_t at = 0; map_next(&s->gangs.by_name, &at, &entry);) {
		struct gang *gang = entry.value;

		if (gang->tasks.len == 0 &&
		    (!used.len || !bsearch(&gang->number, used.items, used.len,
					   sizeof(*used.items), compare_numbers)) &&
		    vec_push(&idle, gang) < 0)
			return;
	}
	for (size_t i = 0; i < idle.len; i++) {
		map_del(&s->gangs.by_name, idle.items[i]->name, strlen(idle.items[i]->name));
		gang_free(s, idle.items[i]);
	}
}

void gangs_tell(struct scheduler *s)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->gangs.by_name, &at, &entry);) {
		struct gang *gang = entry.value;

		if (!gang->is_behind)
			continue;
		gang->is_behind = false;
		gang->told_ms = 0;
		if (gang->unit.item.added && gang->unit.item.place == PENDING_PARKED)
			pending_wake_item(s->pending, &gang->unit.item, now_ms(s));
	}
}

int gang_join(struct scheduler *s, struct gang *gang, struct task *task, const struct wish *wish)
{
	struct pending_item *item = &gang->unit.item;
	bool first = gang->tasks.len == 0;

	if (vec_push(&gang->tasks, task) < 0)
		return -ENOMEM;
	pending_remove(s->pending, &task->unit.item);
	task->gang = gang;
	gang->members = wish->gang.members;
	if (first || wish->priority < item->priority)
		item->priority = wish->priority;
	if (first || task->unit.item.arrival < item->arrival)
		item->arrival = task->unit.item.arrival;
	item->members = gang->members;
	if (item->added)
		pending_wake_item(s->pending, item, now_ms(s));
	else
		return pending_add(s->pending, item, now_ms(s));
	return 0;
}

void gang_leave(struct scheduler *s, struct task *task)
{
	struct gang *gang = task->gang;
	struct pending_item *item = &gang->unit.item;
	size_t kept = 0;

	for (size_t i = 0; i < gang->tasks.len; i++)
		if (gang->tasks.items[i] != task)
			gang->tasks.items[kept++] = gang->tasks.items[i];
	gang->tasks.len = kept;
	task->gang = NULL;
	/* The others are told how many it lacks now. */
	if (kept == 0)
		pending_remove(s->pending, item);
	else if (item->added && item->place == PENDING_OUT && task->again)
		pending_again(s->pending, item); /* it waited for what was told of this one */
	else if (!item->added || item->place == PENDING_PARKED)
		gang_wake(s, gang);
	task->again = false;
}

bool gang_can_place(const struct task *task)
{
	return !task->flight && !task->nomination && !task->held && !task->stale && !task->landed;
}

void gang_wake(struct scheduler *s, struct gang *gang)
{
	struct pending_item *item = &gang->unit.item;
	bool any = false;

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
