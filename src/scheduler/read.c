/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - a task's pod, translated from what the cache keeps of it; its index of a map. */
#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "kube/cache.h"
#include "kube/object.h"
#include "scheduler/lookup.h"
#include "scheduler/meters.h"
#include "scheduler/scheduler_private.h"
#include "wire/json.h"

int task_read(struct scheduler *s, struct task *task, struct wish *ret, const char **version,
	      struct err *err)
{
	const struct kube_object *pod = kube_cache_get(s->pods, task->namespace, task->name);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct pod_source source;

	*ret = (struct wish){ .index = WISH_INDEX_NONE };
	if (!pod || strcmp(pod->uid, task->uid) != 0)
		return err_set(err, ENOENT, "%s", "");
	if (kube_object_parse(pod, &doc) < 0)
		return err_set(err, ENOMEM, "out of memory");
	const struct dialect_lookup *lookup = lookup_dialect_of(s->lookup, task->uid);

	meters_read(s->meters);
	int rc = pod_source_read(json_root(doc), lookup, &source, err);
	if (rc == 0)
		rc = dialect_read(s->cluster, lookup, &source, &s->arena, ret, err);
	lookup_reset(s->lookup);
	if (rc == 0)
		report_over(s, task);
	*version = pod->version;
	return rc;
}

int task_take_index(struct scheduler *s, const struct task *task, const struct wish *wish)
{
	if (!wish->workload || wish->index == WISH_INDEX_NONE)
		task_drop_index(s, task);
	else if (!locks_has_guest(s->locks, task->uid))
		return lookup_take_index(s->lookup, wish->workload, wish->index, task->uid);
	return 0;
}

void task_drop_index(struct scheduler *s, const struct task *task)
{
	if (!locks_has_guest(s->locks, task->uid))
		lookup_drop_index(s->lookup, task->uid);
}
