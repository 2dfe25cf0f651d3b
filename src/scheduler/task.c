/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/task.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(offsetof(struct task, unit) == 0 && offsetof(struct unit, item) == 0,
	       "unit_of() and task_of() rest on it");

uint32_t task_attempt(uint64_t random)
{
	uint32_t attempt = (uint32_t)(random ^ random >> 32);

	return attempt ? attempt : 1;
}

void tasks_init(struct tasks *tasks, uint64_t seed)
{
	*tasks = (struct tasks){ 0 };
	map_init(&tasks->by_uid, seed);
}

static void task_free(struct task *task)
{
	free(task->message);
	free(task->nominated);
	free(task);
}

void tasks_done(struct tasks *tasks)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&tasks->by_uid, &at, &entry);)
		task_free(entry.value);
	map_done(&tasks->by_uid);
}

struct task *tasks_find(const struct tasks *tasks, const char *uid)
{
	return map_get(&tasks->by_uid, uid, strlen(uid));
}

struct task *tasks_add(struct tasks *tasks, const char *uid, const char *namespace,
		       const char *name)
{
	size_t uid_len = strlen(uid), space_len = strlen(namespace), name_len = strlen(name);
	size_t text_len = uid_len + 1 + 2 * (space_len + 1) + name_len + 1;
	struct task *task = calloc(1, sizeof(*task) + text_len);

	if (!task)
		return NULL;
	char *text = (char *)(task + 1);
	task->uid = memcpy(text, uid, uid_len + 1);
	text += uid_len + 1;
	task->namespace = memcpy(text, namespace, space_len + 1);
	text += space_len + 1;
	memcpy(text, namespace, space_len);
	text[space_len] = '/';
	task->key = text;
	task->name = memcpy(text + space_len + 1, name, name_len + 1);
	if (map_put(&tasks->by_uid, task->uid, uid_len, task) == 0)
		return task;
	free(task);
	return NULL;
}

void task_set_unsorted(struct tasks *tasks, struct task *task, bool unsorted)
{
	if (unsorted != task->unsorted)
		tasks->unsorted += unsorted ? 1 : -1;
	task->unsorted = unsorted;
}

void tasks_remove(struct tasks *tasks, struct task *task)
{
	task_set_unsorted(tasks, task, false);
	map_del(&tasks->by_uid, task->uid, strlen(task->uid));
	task_free(task);
}
