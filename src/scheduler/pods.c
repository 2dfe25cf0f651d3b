/* SPDX-License-Identifier: Apache-2.0 */
/* pods.c - what the cache of pods says: who waits, who is where, who is gone. */
#include <errno.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/assign.h"
#include "engine/rules.h"
#include "kube/cache.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "kube/views/pod.h"
#include "scheduler/claims.h"
#include "scheduler/lookup.h"
#include "scheduler/preempt.h"
#include "scheduler/residents.h"
#include "wire/json.h"
#include "wire/json_write.h"

#define ENTRY_ARENA_MAX ((size_t)256 << 10)

/* A class that waits, and the node at which something has become free. */
struct help {
	struct scheduler *scheduler;
	uint32_t node;
};

static const struct request *request_of(struct pending_item *item)
{
	struct unit *unit = unit_of(item);
	const struct gang *gang = (const struct gang *)unit;
	const struct asked *asked = unit->is_gang ? gang->asked : task_of(unit)->asked;

	return asked ? &asked->request : NULL;
}

/* Whether somebody less important is on the node, who could be asked to go. */
static bool has_victims(const struct cluster *c, const struct pending_item *item, uint32_t node)
{
	uint32_t at = cluster_node(c, node)->first_pod;

	for (; at != POD_NONE; at = cluster_pod(c, at)->next)
		if (cluster_pod(c, at)->priority < item->priority)
			return true;
	return false;
}

/* Rules about pods look at other nodes too, and so does who must be evicted first. */
static bool helps(void *context, struct pending_item *item)
{
	const struct help *help = context;
	const struct cluster *c = help->scheduler->cluster;
	const struct request *r = request_of(item);

	if (!r || rules_of_pods(c, r->rules) || subject_matters(c, r->subject))
		return true;
	return fit_node(c, r, help->node) == FITS || has_victims(c, item, help->node);
}

/* Volumes that a pod has used may be wanted anywhere, by those that ask for some. */
static bool wants_volumes(void *context, struct pending_item *item)
{
	(void)context;
	return request_of(item) != NULL;
}

void pods_left(struct scheduler *s, uint32_t node)
{
	struct help help = { s, node };

	residents_again(s->residents, cluster_node(s->cluster, node)->name);
	s->epoch++;
	preempt_left(s, node);
	pending_event(s->pending, WAKE_POD_LEFT, now_ms(s), helps, &help);
	pending_event(s->pending, WAKE_VOLUME, now_ms(s), wants_volumes, NULL);
	scheduler_kick(s);
}

void pods_came(struct scheduler *s)
{
	s->epoch++;
	pending_event(s->pending, WAKE_POD_CAME, now_ms(s), NULL, NULL);
	scheduler_kick(s);
}

static void pod_gone(struct scheduler *s, const char *uid)
{
	struct task *task = tasks_find(&s->tasks, uid);
	uint32_t node;

	if (task)
		task_gone(s, task);
	lookup_drop_index(s->lookup, uid);
	locks_pod_over(s->locks, uid);
	claims_pod_gone(s->claims, uid);
	if (residents_remove(s->residents, uid, &node))
		pods_left(s, node);
	preempt_pod_gone(s, uid);
}

void pods_unbook(struct scheduler *s, const char *uid)
{
	uint32_t node;

	residents_remove(s->residents, uid, &node);
}

/* A pod of ours that has no lock, whatever became of it, gets one before others do. */
static void require_lock(struct scheduler *s, const char *node, const struct json *pod)
{
	struct arena arena CLEANUP(arena_done);
	struct err err = ERR_INIT;
	struct lock_entry entry;

	arena_init(&arena, ENTRY_ARENA_MAX);
	int rc = resident_entry(pod, &arena, &entry, &err);
	if (rc == 0)
		rc = locks_require(s->locks, node, &entry, &err);
	if (rc < 0 && rc != -ENOENT)
		log_warn(s->log, "a bound pod cannot be locked", LOG_STR("why", err.text));
}

void pods_require_locks(struct scheduler *s)
{
	struct kube_object *pod;

	for (uint32_t at = 0; (pod = kube_cache_next(s->pods, &at));) {
		struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
		struct pod_view view;

		if (kube_object_parse(pod, &doc) < 0)
			continue;
		if (pod_view_read(json_root(doc), &view, NULL) == 0 && *view.node &&
		    !pod_view_is_finished(&view))
			require_lock(s, view.node, json_root(doc));
	}
}

static void pod_bound(struct scheduler *s, const struct kube_object *pod,
		      const struct pod_view *view, const struct json *object)
{
	struct task *task = tasks_find(&s->tasks, pod->uid);
	bool ours = false;

	if (task && task->flight) {
		flight_seen(task->flight, object);
		ours = !task->flight->superseded;
		task->bound = true;
	} else if (task) {
		ours = task->landed;
		if (!ours) /* which one it has its decision says */
			lookup_drop_index(s->lookup, pod->uid);
		task_gone(s, task);
	}
	switch (residents_put(s->residents, pod, object)) {
	case RESIDENT_SAME:
		break;
	case RESIDENT_CAME:
		if (s->active && !ours)
			require_lock(s, view->node, object);
		pods_came(s);
		break;
	case RESIDENT_CHANGED:
		pods_came(s);
		break;
	case RESIDENT_SHRANK:
		if (cluster_node_find(s->cluster, view->node) != NODE_NONE)
			pods_left(s, cluster_node_find(s->cluster, view->node));
		break;
	}
}

/* What it asks for, not how it stands.  Annotations of others matter by their size, where that
 * leaves no room for every decision. */
static uint64_t hash_of(const struct kube_object *pod, const struct json *object)
{
	uint32_t bytes = pod->annotations_bytes;
	bool is_full = bytes > ANNOTATIONS_BYTES_ALL - ANNOTATIONS_BYTES_MAX;

	static const char *const parts[] = { "labels", "annotations", "ownerReferences" };
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(&text);

	json_open_array(&w);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const struct json *part = json_get(object, "metadata", parts[i]);

		if (part)
			json_add_value(&w, part);
	}
	if (json_get(object, "spec"))
		json_add_value(&w, json_get(object, "spec"));
	json_close_array(&w);
	return hash_bytes(text.s, text.len, is_full ? bytes : 0);
}

static void pod_unbound(struct scheduler *s, const struct kube_object *pod,
			const struct pod_view *view, const struct json *object)
{
	struct task *task = tasks_find(&s->tasks, pod->uid);

	if (!scheduler_is_ours(s, view->scheduler)) {
		if (task)
			task_gone(s, task);
		return;
	}
	if (!task) {
		task = task_seen(s, pod);
		locks_tell(s->locks, pod->uid); /* another may have been faster */
	}
	/* Who leads now nominates; we take it over when we do. */
	if (task && !s->active && !task->nomination)
		task->nominated_before = task->nomination_told = *view->nominated != '\0';
	if (task)
		task_changed(s, task, view->priority, view->gated || view->meta.deleting,
			     hash_of(pod, object));
}

/* What it was before counts on. */
static void pod_unreadable(struct scheduler *s, const struct kube_object *pod,
			   const struct json *object, const struct err *err)
{
	log_warn(s->log, "a pod cannot be read", LOG_STR("why", err->text));
	if (residents_find(s->residents, pod->uid))
		residents_put(s->residents, pod, object);
}

static void pod_now(struct scheduler *s, const struct kube_object *pod, const struct json *object)
{
	struct err err = ERR_INIT;
	struct pod_view view;

	claims_pod(s->claims, pod, object);
	if (pod_view_read(object, &view, &err) < 0)
		pod_unreadable(s, pod, object, &err);
	else if (pod_view_is_finished(&view))
		pod_gone(s, pod->uid);
	else if (*view.node)
		pod_bound(s, pod, &view, object);
	else
		pod_unbound(s, pod, &view, object);
}

void pods_rebook(struct scheduler *s, const char *uid, const char *namespace, const char *name)
{
	const struct kube_object *pod = kube_cache_get(s->pods, namespace, name);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	uint32_t node;

	residents_remove(s->residents, uid, &node);
	s->epoch++;
	if (pod && strcmp(pod->uid, uid) == 0 && kube_object_parse(pod, &doc) == 0)
		residents_put(s->residents, pod, json_root(doc));
}

static void changed(void *context, enum kube_change change, const struct kube_object *before,
		    struct kube_object *now, const struct json *object)
{
	struct scheduler *s = context;

	(void)change;
	if (now)
		pod_now(s, now, object);
	else
		pod_gone(s, before->uid);
}

int pods_watch(struct scheduler *s, struct err *err)
{
	struct kube_cache_options options = {
		.kind = &kube_kinds[KUBE_POD],
		.field_selector = "status.phase!=Succeeded,status.phase!=Failed",
		.log = s->log,
		.changed = changed,
		.context = s,
	};

	return kube_caches_add(s->caches, &options, &s->pods, err);
}
