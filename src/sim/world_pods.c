/* SPDX-License-Identifier: Apache-2.0 */
/* world_pods.c - from objects to pods, as their controllers would make them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "dialect/owner.h"
#include "sim/world_private.h"
#include "wire/json.h"

char *world_printf(struct world *w, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	int n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return n < 0 ? NULL : arena_strndup(&w->arena, text, MIN((size_t)n, sizeof(text) - 1));
}

static int add_pod(struct world *w, const struct pod_source *source, const char *workload,
		   struct err *err)
{
	const char *key = world_printf(w, "%s/%s", source->namespace, source->name);
	struct world_pod *pod;

	if (!key || vec_reserve(&w->pods, w->pods.len + 1) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (w->pods.len == WORLD_PODS_MAX)
		return err_set(err, EINVAL, "there are more than %d pods", WORLD_PODS_MAX);
	if (map_get(&w->by_key, key, strlen(key)))
		return err_set(err, EINVAL, "pod %s is there already", key);
	pod = calloc(1, sizeof(*pod));
	if (!pod || map_put(&w->by_key, key, strlen(key), pod) < 0) {
		free(pod);
		return err_set(err, ENOMEM, "out of memory");
	}
	*pod = (struct world_pod){ .source = *source,
				   .key = key,
				   .name = source->name,
				   .workload = workload,
				   .arrival = (uint32_t)w->pods.len,
				   .leaf = DOMAIN_NONE };
	pod->source.uid = key;
	w->pods.items[w->pods.len++] = pod;
	return 0;
}

/* The i-th pod of a workload. */
static int add_replica(struct world *w, const struct json *owner, const char *namespace,
		       const char *name, int64_t i, bool indexed, struct err *err)
{
	const struct json *template = json_get(owner, "spec", "template");
	struct pod_source source = { .object = template,
				     .namespace = namespace,
				     .owners = { owner },
				     .owners_count = 1,
				     .index = indexed ? i : POD_INDEX_NONE };

	source.name = world_printf(w, "%s-%lld", name, (long long)i);
	if (!source.name)
		return err_set(err, ENOMEM, "out of memory");
	/* Replacing an object leaves the pods it has already. */
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&key, "%s/%s", namespace, source.name);
	if (map_get(&w->by_key, key.s, key.len))
		return 0;
	return add_pod(w, &source, name, err);
}

static bool is_indexed(const struct json *owner)
{
	const char *mode = json_str(owner, "spec", "completionMode");

	return owner_is(owner, "StatefulSet") || (mode && strcmp(mode, "Indexed") == 0);
}

static int add_workload(struct world *w, const char *namespace, const char *name,
			const struct json *owner, struct err *err)
{
	int64_t count;
	int rc = owner_size(owner, &count, err);

	if (rc == 0 && json_type(owner, "spec", "template") != JSON_OBJECT)
		rc = err_set(err, EINVAL, "%s %s has no spec.template", json_str(owner, "kind"),
			     name);
	for (int64_t i = 0; rc == 0 && i < count; i++)
		rc = add_replica(w, owner, namespace, name, i, is_indexed(owner), err);
	return rc;
}

static int add_single(struct world *w, const struct json *object, struct err *err)
{
	struct pod_source source;
	int rc = pod_source_read(object, &w->lookup, &source, err);

	if (rc < 0)
		return rc;
	const char *owner =
		source.owners_count ? json_str(source.owners[0], "metadata", "name") : NULL;
	return add_pod(w, &source, owner ? owner : source.name, err);
}

static bool is_any(const char *kind, const char *const *kinds)
{
	for (; *kinds; kinds++)
		if (strcmp(*kinds, kind) == 0)
			return true;
	return false;
}

int world_expand(struct world *w, const char *kind, const char *namespace, const char *name,
		 const struct json *object, struct err *err)
{
	static const char *const workloads[] = { "Job", "Deployment", "ReplicaSet", "StatefulSet",
						 NULL };
	/* A pod's owner says how it was made: its own pods are in the files already. */
	if (strcmp(kind, "Pod") == 0)
		return add_single(w, object, err);
	if (is_any(kind, workloads))
		return add_workload(w, namespace, name, object, err);
	if (json_get(object, "spec", "template", "spec") ||
	    json_get(object, "spec", "jobTemplate"))
		return err_set(err, EINVAL, "%s %s: pods of this kind cannot be simulated yet",
			       kind, name);
	return 0;
}

int world_read_pod(struct world *w, struct world_pod *pod, struct err *err)
{
	struct err complaint = ERR_INIT;
	struct wish *wish;

	if (pod->wish && pod->generation == w->generation)
		return 0;
	wish = arena_alloc(&w->arena, sizeof(*wish));
	if (!wish)
		return err_set(err, ENOMEM, "out of memory");
	/* Its own index must not look taken. */
	pod->wish = NULL;
	pod->generation = w->generation;
	int rc = dialect_read(world_cluster(w), &w->lookup, &pod->source, &w->arena, wish,
			      &complaint);
	if (rc == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	if (rc < 0) {
		world_waits(w, pod, complaint.text);
		return 0;
	}
	pod->wish = wish;
	return 0;
}
