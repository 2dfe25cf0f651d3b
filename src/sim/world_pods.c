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

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

static int add_pod(struct world *w, const struct pod_source *source, const char *workload,
		   struct world_template *template, struct err *err)
{
	const char *key = world_printf(w, "%s/%s", source->namespace, source->name);
	struct world_pod *pod;

	if (!key || vec_reserve(&w->pods, w->pods.len + 1) < 0)
		return no_memory(err);
	if (map_get(&w->by_key, key, strlen(key)))
		return err_set(err, EINVAL, "pod %s is there already", key);
	pod = calloc(1, sizeof(*pod));
	if (!pod || map_put(&w->by_key, key, strlen(key), pod) < 0) {
		free(pod);
		return no_memory(err);
	}
	*pod = (struct world_pod){ .source = *source,
				   .key = key,
				   .name = source->name,
				   .workload = workload,
				   .template = template,
				   .arrival = (uint32_t)w->pods.len,
				   .leaf = DOMAIN_NONE };
	pod->source.uid = key;
	w->pods.items[w->pods.len++] = pod;
	return 0;
}

/* The i-th pod of a workload. */
static int add_replica(struct world *w, const struct pod_source *like, const char *workload,
		       struct world_template *template, int64_t i, struct err *err)
{
	struct pod_source source = *like;

	source.name = world_printf(w, "%s-%lld", workload, (long long)i);
	const char *key =
		source.name ? world_printf(w, "%s/%s", source.namespace, source.name) : NULL;
	if (!key)
		return no_memory(err);
	/* Replacing an object leaves the pods it has already. */
	if (map_get(&w->by_key, key, strlen(key)))
		return 0;
	if (!template)
		source.index = i;
	return add_pod(w, &source, workload, template, err);
}

static bool is_indexed(const struct json *owner)
{
	const char *mode = json_str(owner, "spec", "completionMode");

	return owner_is(owner, "StatefulSet") || (mode && strcmp(mode, "Indexed") == 0);
}

/* The workload's own owners are its pods' too. */
static int source_of(struct world *w, const char *namespace, const struct json *owner,
		     struct pod_source *ret, struct err *err)
{
	struct pod_source above;
	int rc = pod_source_read(owner, &w->lookup, &above, err);

	if (rc < 0)
		return rc;
	*ret = (struct pod_source){ .object = json_get(owner, "spec", "template"),
				    .namespace = namespace,
				    .owners = { owner },
				    .owners_count = 1,
				    .index = POD_INDEX_NONE };
	for (uint32_t i = 0; i < above.owners_count && ret->owners_count < POD_OWNERS_MAX; i++)
		ret->owners[ret->owners_count++] = above.owners[i];
	return 0;
}

static int add_workload(struct world *w, const char *namespace, const char *name,
			const struct json *owner, struct err *err)
{
	struct world_template *template = NULL;
	struct pod_source source;
	int64_t count;
	int rc = owner_size(owner, &count, err);

	if (rc == 0 && json_type(owner, "spec", "template") != JSON_OBJECT)
		rc = err_set(err, EINVAL, "%s %s has no spec.template", json_str(owner, "kind"),
			     name);
	if (rc == 0 && w->pods.len + (uint64_t)count > WORLD_PODS_MAX)
		rc = err_set(err, EINVAL,
			     "%s %s has %lld pods: a simulation has at most %d pods in all",
			     json_str(owner, "kind"), name, (long long)count, WORLD_PODS_MAX);
	if (rc < 0 || (rc = source_of(w, namespace, owner, &source, err)) < 0)
		return rc;
	if (!is_indexed(owner) && !(template = arena_alloc(&w->arena, sizeof(*template))))
		return no_memory(err);
	for (int64_t i = 0; rc == 0 && i < count; i++)
		rc = add_replica(w, &source, name, template, i, err);
	return rc;
}

static int add_single(struct world *w, const struct json *object, struct err *err)
{
	struct pod_source source;
	int rc = pod_source_read(object, &w->lookup, &source, err);

	if (rc < 0)
		return rc;
	if (w->pods.len == WORLD_PODS_MAX)
		return err_set(err, EINVAL, "a simulation has at most %d pods", WORLD_PODS_MAX);
	const char *owner =
		source.owners_count ? json_str(source.owners[0], "metadata", "name") : NULL;
	return add_pod(w, &source, owner ? owner : source.name, NULL, err);
}

static char *owner_key(struct world *w, const char *kind, const char *namespace, const char *name)
{
	return world_printf(w, "%s/%s/%s", kind ? kind : "", namespace, name ? name : "");
}

int world_note_owners(struct world *w, const struct json *object, struct err *err)
{
	struct pod_source source;

	if (!json_len(object, "metadata", "ownerReferences"))
		return 0;
	int rc = pod_source_read(object, &w->lookup, &source, err);
	for (uint32_t i = 0; rc == 0 && i < source.owners_count; i++) {
		const char *key =
			owner_key(w, json_str(source.owners[i], "kind"), source.namespace,
				  json_str(source.owners[i], "metadata", "name"));
		if (!key || map_put_u32(&w->owners, key, strlen(key), 1) < 0)
			rc = no_memory(err);
	}
	return rc;
}

int world_expand(struct world *w, const char *kind, const char *namespace, const char *name,
		 const struct json *object, struct err *err)
{
	const char *key = owner_key(w, kind, namespace, name);
	uint32_t unused;
	int rc = world_kind(kind, name, object, err);

	if (rc <= 0)
		return rc;
	if (!key)
		return no_memory(err);
	if (strcmp(kind, "Pod") == 0)
		return add_single(w, object, err);
	/* Its pods, or the ReplicaSets that make them, are in the files already. */
	if (map_get_u32(&w->owners, key, strlen(key), &unused))
		return 0;
	return add_workload(w, namespace, name, object, err);
}

bool world_index_taken(const struct world *w, const char *workload, uint32_t index)
{
	char key[1024];
	int n = snprintf(key, sizeof(key), "%u %s", index, workload);

	return map_get(&w->taken, key, MIN((size_t)n, sizeof(key) - 1)) != NULL;
}

void world_drop_index(struct world *w, struct world_pod *pod)
{
	const char *key = pod->index_key;

	if (key && map_get(&w->taken, key, strlen(key)) == pod)
		map_del(&w->taken, key, strlen(key));
	pod->index_key = NULL;
}

static int take_index(struct world *w, struct world_pod *pod, struct err *err)
{
	if (!pod->wish->workload || pod->wish->index == WISH_INDEX_NONE)
		return 0;
	pod->index_key = world_printf(w, "%u %s", pod->wish->index, pod->wish->workload);
	if (!pod->index_key || map_put(&w->taken, pod->index_key, strlen(pod->index_key), pod) < 0)
		return no_memory(err);
	return 0;
}

static const char *keep(struct world *w, const char *text, bool *failed)
{
	const char *kept = text ? arena_strndup(&w->arena, text, strlen(text)) : NULL;

	*failed |= text && !kept;
	return kept;
}

/* What was read lies in scratch memory, with all that reading took. */
static int keep_strings(struct world *w, struct wish *wish, struct err *err)
{
	bool failed = false;

	wish->namespace = keep(w, wish->namespace, &failed);
	wish->name = keep(w, wish->name, &failed);
	wish->uid = keep(w, wish->uid, &failed);
	wish->scheduler = keep(w, wish->scheduler, &failed);
	wish->gang.name = keep(w, wish->gang.name, &failed);
	wish->workload = keep(w, wish->workload, &failed);
	for (unsigned i = 0; i < wish->containers_count; i++)
		wish->containers[i].name = keep(w, wish->containers[i].name, &failed);
	return failed ? no_memory(err) : 0;
}

/* The pod asks for this. */
static int set_wish(struct world *w, struct world_pod *pod, const struct wish *wish,
		    struct err *err)
{
	pod->wish = wish;
	pod->generation = w->generation;
	int rc = take_index(w, pod, err);
	return rc < 0 ? rc : world_join(w, pod, err);
}

/* What was read is that of all pods of its template, unless each has its own place. */
static void share(struct world *w, struct world_pod *pod)
{
	if (!pod->template || pod->memory->workload)
		return;
	pod->template->wish = pod->memory;
	pod->template->generation = w->generation;
	pod->memory = NULL;
}

int world_read_pod(struct world *w, struct world_pod *pod, struct err *err)
{
	const struct world_template *t = pod->template;
	struct err complaint = ERR_INIT;

	if (pod->wish && pod->generation == w->generation)
		return 0;
	/* Its own index must not look taken. */
	world_drop_index(w, pod);
	pod->wish = NULL;
	if (t && t->wish && t->generation == w->generation)
		return set_wish(w, pod, t->wish, err);
	if (!pod->memory && !(pod->memory = arena_alloc(&w->arena, sizeof(*pod->memory))))
		return no_memory(err);
	memset(pod->memory, 0, sizeof(*pod->memory));
	pod->generation = w->generation;
	arena_reset(&w->scratch);
	int rc = dialect_read(world_cluster(w), &w->lookup, &pod->source, &w->scratch, pod->memory,
			      &complaint);
	if (rc == -ENOMEM)
		return no_memory(err);
	if (rc < 0) {
		world_waits(w, pod, complaint.text);
		return 0;
	}
	const struct wish *wish = pod->memory;
	if ((rc = keep_strings(w, pod->memory, err)) < 0)
		return rc;
	share(w, pod);
	return set_wish(w, pod, wish, err);
}
