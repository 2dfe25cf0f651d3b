/* SPDX-License-Identifier: Apache-2.0 */
/* preempt_find.c - who could make room, and whether it is being made already. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "kube/cache.h"
#include "kube/object.h"
#include "kube/views/pod.h"
#include "scheduler/preempt_private.h"
#include "scheduler/residents.h"
#include "wire/json.h"

/* Whether such a request had no victims just now.  Thousands that ask for the same are looked
 * at once. */
static bool is_hopeless(const struct scheduler *s, uint64_t hash, int32_t priority)
{
	return s->hopeless.hash == hash && s->hopeless.epoch == s->epoch &&
	       s->hopeless.priority >= priority;
}

enum preempting preempt_for_task(struct scheduler *s, struct task *task, const struct wish *wish,
				 bool reserve)
{
	struct preemption p CLEANUP(preemption_done) = { 0 };
	const struct request *request = &wish->request;
	struct pod_spec spec;
	struct proposal want = { reserve, &task->unit, &task, &spec, &request, 1 };

	if (reserve ? preempt_reserves(s) : !wish->preempts)
		return PREEMPT_NOBODY;
	uint64_t hash = asked_hash(&s->asked, request);
	int32_t priority = reserve ? PREEMPT_AWAITS : wish->priority;
	int rc = -ENOENT;

	if (!is_hopeless(s, hash, priority)) {
		residents_guard(s->residents);
		rc = preempt_find(s->engine, request, priority, &p);
	}
	if (rc < 0 || !p.victims_count) {
		s->hopeless = (struct hopeless){ hash, s->epoch, priority };
		return PREEMPT_NOBODY;
	}
	task_spec(task, wish, &spec);
	return preempt_carry_out(s, &want, &p);
}

uint32_t preempt_nominated(const struct scheduler *s, const struct task *task)
{
	const struct kube_object *pod = kube_cache_get(s->pods, task->namespace, task->name);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct pod_view view;

	if (!pod || strcmp(pod->uid, task->uid) != 0 || kube_object_parse(pod, &doc) < 0 ||
	    pod_view_read(json_root(doc), &view, NULL) < 0 || !*view.nominated)
		return NODE_NONE;
	return cluster_node_find(s->cluster, view.nominated);
}

static bool is_any_ending(const struct cluster *c, const struct preemption *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->victims_count; i++)
		any |= cluster_pod(c, p->victims[i])->ending;
	return any;
}

/* Not all may have been asked before it ended: then the others are now. */
enum preempting preempt_resume(struct scheduler *s, struct task *task, const struct wish *wish,
			       uint32_t node)
{
	struct preemption p CLEANUP(preemption_done) = { 0 };
	const struct request *request = &wish->request;
	struct request there = wish->request;
	struct pod_spec spec;
	struct proposal want = { false, &task->unit, &task, &spec, &request, 1 };

	if (!wish->preempts || (there.node != NODE_NONE && there.node != node))
		return PREEMPT_NOBODY;
	int rc = preempt_await(s->engine, request, wish->priority, node, &p);
	if (rc == -ENOENT) {
		there.node = node;
		residents_guard(s->residents);
		rc = preempt_find(s->engine, &there, wish->priority, &p);
	}
	if (rc < 0 || !is_any_ending(s->cluster, &p))
		return PREEMPT_NOBODY;
	task_spec(task, wish, &spec);
	return preempt_carry_out(s, &want, &p);
}

bool preempt_has_guest(const struct scheduler *s, uint32_t node)
{
	const struct pod *pod;

	for (uint32_t i = cluster_node(s->cluster, node)->first_pod; i != POD_NONE;
	     i = pod->next) {
		pod = cluster_pod(s->cluster, i);
		if (!residents_find(s->residents, pod->uid) && !tasks_find(&s->tasks, pod->uid))
			return true;
	}
	return false;
}

void preempt_restore(struct scheduler *s)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->tasks.by_uid, &at, &entry);) {
		struct task *task = entry.value;
		struct pending_item *item = &task->unit.item;

		if (!task->nominated_before || item->arrival < ARRIVALS_BEGIN)
			continue;
		item->arrival -= ARRIVALS_BEGIN;
		pending_moved(s->pending, item);
	}
}

enum preempting preempt_for_gang(struct scheduler *s, struct gang *gang,
				 const struct gang_spec *spec, int32_t priority, bool reserve)
{
	struct preemption p CLEANUP(preemption_done) = { 0 };
	struct err err = ERR_INIT;
	uint32_t count = 0, at = 0;

	if (reserve && preempt_reserves(s))
		return PREEMPT_NOBODY;
	residents_guard(s->residents);
	if (preempt_gang(s->engine, s->planner, spec, reserve ? PREEMPT_AWAITS : priority, &p,
			 &err) < 0 ||
	    !p.victims_count)
		return PREEMPT_NOBODY;
	for (uint32_t i = 0; i < spec->classes_count; i++)
		count += spec->classes[i].count;
	struct task **tasks = arena_array(&s->arena, count, sizeof(struct task *));
	struct pod_spec *specs = arena_array(&s->arena, count, sizeof(*specs));
	const struct request **requests = arena_array(&s->arena, count, sizeof(struct request *));
	if (!tasks || !specs || !requests || count != p.decisions_count)
		return PREEMPT_LATER;
	for (uint32_t i = 0; i < spec->classes_count; i++) {
		for (uint32_t j = 0; j < spec->classes[i].count; j++, at++) {
			specs[at] = spec->classes[i].pods[j];
			requests[at] = spec->classes[i].request;
			tasks[at] = tasks_find(&s->tasks, specs[at].uid);
		}
	}
	struct proposal want = { reserve, &gang->unit, tasks, specs, requests, count };

	return preempt_carry_out(s, &want, &p);
}
