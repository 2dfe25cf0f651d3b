/* SPDX-License-Identifier: Apache-2.0 */
/* gang_read.c - what the members of a gang ask for, as it was last read. */
#include <errno.h>
#include <stdlib.h>

#include "base/attr.h"
#include "dialect/wish.h"
#include "engine/gang.h"
#include "engine/rules.h"
#include "engine/soft.h"
#include "scheduler/gangs.h"
#include "scheduler/lookup.h"
#include "scheduler/scheduler_private.h"

static void kind_release(struct scheduler *s, struct gang *gang, struct gang_kind *kind)
{
	size_t at = 0;

	if (!kind || --kind->users)
		return;
	while (gang->kinds.items[at] != kind)
		at++;
	gang->kinds.items[at] = gang->kinds.items[--gang->kinds.len];
	subject_release(s->cluster, kind->request.subject);
	rules_release(s->cluster, kind->request.rules);
	soft_release(s->cluster, kind->request.soft);
	free(kind);
}

static struct gang_kind *kind_new(struct scheduler *s, struct gang *gang, const struct request *r)
{
	struct gang_kind *kind = malloc(sizeof(*kind));

	if (!kind || vec_push(&gang->kinds, kind) < 0) {
		free(kind);
		return NULL;
	}
	*kind = (struct gang_kind){ .request = *r };
	subject_hold(s->cluster, r->subject);
	rules_hold(s->cluster, r->rules);
	soft_hold(s->cluster, r->soft);
	return kind;
}

bool gang_kind_is(const struct cluster *c, const struct gang_kind *kind, const struct request *r)
{
	return request_equal(&kind->request, r) && kind->request.soft == r->soft &&
	       subjects_alike(c, kind->request.subject, r->subject);
}

/* The kind of those who ask for the same, with one user more. */
static int kind_take(struct scheduler *s, struct gang *gang, const struct request *r,
		     struct gang_kind **ret)
{
	struct gang_kind *kind = NULL;

	for (size_t i = 0; i < gang->kinds.len && !kind; i++)
		if (gang_kind_is(s->cluster, gang->kinds.items[i], r))
			kind = gang->kinds.items[i];
	if (!kind && gang->kinds.len == GANG_CLASSES_MAX)
		return -E2BIG;
	if (!kind)
		kind = kind_new(s, gang, r);
	if (!kind)
		return -ENOMEM;
	kind->users++;
	*ret = kind;
	return 0;
}

static void set_wrong(struct task *task, bool wrong)
{
	if (wrong != task->wrong)
		task->gang->wrong += wrong ? 1 : -1;
	task->wrong = wrong;
}

void gang_note_wrong(struct scheduler *s, struct task *task)
{
	task->gang->met |= lookup_met(s->lookup);
	set_wrong(task, true);
	task->read = false;
}

void gang_forget(struct scheduler *s, struct task *task)
{
	set_wrong(task, false);
	kind_release(s, task->gang, task->kind);
	subject_release(s->cluster, task->subject);
	task->kind = NULL;
	task->subject = 0;
	task->read = false;
}

/* From now on it asks for this. */
static int set_kind(struct scheduler *s, struct task *task, const struct request *r)
{
	struct gang_kind *old_kind = task->kind;
	uint32_t old_subject = task->subject;
	int rc = kind_take(s, task->gang, r, &task->kind);

	if (rc < 0)
		return rc;
	task->subject = r->subject;
	subject_hold(s->cluster, task->subject);
	kind_release(s, task->gang, old_kind);
	subject_release(s->cluster, old_subject);
	return 0;
}

int gang_sort(struct scheduler *s, struct task *task)
{
	struct request own = task->kind->request;

	if (subjects_alike(s->cluster, own.subject, task->subject))
		return 0;
	own.subject = task->subject;
	return set_kind(s, task, &own);
}

int gang_note(struct scheduler *s, struct task *task, const struct wish *wish)
{
	struct gang *gang = task->gang;
	int rc = set_kind(s, task, &wish->request);

	if (rc < 0)
		return rc;
	if (!task->learned)
		engine_arrived(s->engine, &wish->request);
	task->learned = true;
	set_wrong(task, false);
	gang->met |= lookup_met(s->lookup);
	task->priority = wish->priority;
	task->preempts = wish->preempts;
	task->gang_members = wish->gang.members;
	gang->leaves = wish->gang.leaves;
	/* Which line of a map is left, and which volume, is another matter every time. */
	task->read = !wish->workload && !wish->volumes_wait;
	return 0;
}
