/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - a task's pod, translated from what the cache keeps of it. */
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

	if (!pod || strcmp(pod->uid, task->uid) != 0)
		return err_set(err, ENOENT, "%s", "");
	if (kube_object_parse(pod, &doc) < 0)
		return err_set(err, ENOMEM, "out of memory");
	const struct dialect_lookup *lookup = lookup_dialect(s->lookup);

	meters_read(s->meters);
	if (!task->flight)
		lookup_drop_index(s->lookup, task->uid); /* its own is not taken to itself */
	int rc = pod_source_read(json_root(doc), lookup, &source, err);
	if (rc == 0)
		rc = dialect_read(s->cluster, lookup, &source, &s->arena, ret, err);
	lookup_reset(s->lookup);
	if (rc == 0)
		report_over(s, task);
	*version = pod->version;
	return rc;
}
