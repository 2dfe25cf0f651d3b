/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - the parts put together: who tells whom, and how it begins and ends. */
#include "scheduler/scheduler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/log.h"
#include "dialect/decided.h"
#include "engine/engine.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "kube/views/pod.h"
#include "scheduler/budgets.h"
#include "scheduler/claims.h"
#include "scheduler/closed.h"
#include "scheduler/config.h"
#include "scheduler/indexes.h"
#include "scheduler/inventory.h"
#include "scheduler/lookup.h"
#include "scheduler/meters.h"
#include "scheduler/preempt.h"
#include "scheduler/residents.h"
#include "scheduler/scheduler_private.h"
#include "scheduler/storage.h"
#include "scheduler/volume_bind.h"
#include "wire/json.h"

#define ARENA_MAX    ((size_t)256 << 20)
#define DECISION_MAX ((size_t)256 << 10)

bool scheduler_is_ours(const struct scheduler *s, const char *scheduler_name)
{
	for (size_t i = 0; i < s->options.names_count; i++)
		if (strcmp(s->names[i], scheduler_name) == 0)
			return true;
	return false;
}

/* What the parts say */

static void node_changed(void *context, const char *name, uint32_t node, uint32_t changes)
{
	struct scheduler *s = context;
	uint64_t now = now_ms(s);

	s->epoch++;
	if (changes &
	    (INVENTORY_NODE_CAME | INVENTORY_NODE_WENT | INVENTORY_LABELS | INVENTORY_GPUS))
		gangs_nodes(s);
	residents_node(s->residents, name, changes);
	preempt_node(s, node);
	if (changes & (INVENTORY_NODE_CAME | INVENTORY_MORE | INVENTORY_LABELS))
		pending_event(s->pending, WAKE_NODE, now, NULL, NULL);
	if (changes & (INVENTORY_GPUS | INVENTORY_NODE_CAME))
		pending_event(s->pending, WAKE_GPU, now, NULL, NULL);
	/* Spread and affinity look at the nodes that are there. */
	if (changes & (INVENTORY_NODE_WENT | INVENTORY_IN_USE))
		pending_event(s->pending, WAKE_POD_LEFT, now, NULL, NULL);
	scheduler_kick(s);
}

struct near {
	const char *namespace;
};

/* An object concerns the pods of its namespace, or all of them; gangs know which. */
static bool is_near(void *context, struct pending_item *item)
{
	const struct near *near = context;
	const struct unit *unit = unit_of(item);
	const struct gang *gang = (const struct gang *)unit;
	const struct task *task = (const struct task *)unit;

	if (unit->is_gang)
		return gang->unsure;
	return !*near->namespace || strcmp(task->namespace, near->namespace) == 0;
}

static void object_changed(void *context, const char *kind, const char *namespace,
			   const char *name)
{
	struct scheduler *s = context;
	struct near near = { namespace ? namespace : "" };

	gangs_object(s, kind, near.namespace, name);
	if (strcmp(kind, "GpuClaim") == 0)
		claims_changed(s->claims, namespace, name);
	if (storage_has(kind)) {
		s->epoch++; /* the engine hears of it, too */
		volume_binder_changed(s->volumes);
		pending_event(s->pending, WAKE_VOLUME, now_ms(s), is_near, &near);
		scheduler_kick(s);
		return;
	}
	pending_event(s->pending, WAKE_OBJECT, now_ms(s), is_near, &near);
	scheduler_kick(s);
}

/* An index of a map, and who of those that wait should look at it: of the later ones the last,
 * so that what it has had concerns nobody; or who has just this. */
struct line {
	const struct lookup *lookup;
	const char *map;
	uint32_t index;
	bool later;
	struct task *who;
	uint32_t has;
};

static void find_who(void *context, struct pending_item *item)
{
	struct line *line = context;
	struct task *task = task_of(unit_of(item));
	uint32_t has = lookup_index_of(line->lookup, line->map, task->uid);

	if (has == INDEXES_NONE || (line->later ? has <= line->index : has != line->index))
		return;
	if (!line->who || has > line->has) {
		line->who = task;
		line->has = has;
	}
}

static void wake_who(struct scheduler *s, struct line *line)
{
	pending_each(s->pending, WAKE_INDEX, find_who, line);
	if (!line->who)
		return;
	pending_wake_item(s->pending, &line->who->unit.item, now_ms(s));
	scheduler_kick(s);
}

static void index_freed(void *context, const char *map, uint32_t index)
{
	struct scheduler *s = context;

	wake_who(s, &(struct line){ s->lookup, map, index, true, NULL, 0 });
}

static void index_lost(void *context, const char *map, uint32_t index)
{
	struct scheduler *s = context;

	wake_who(s, &(struct line){ s->lookup, map, index, false, NULL, 0 });
}

static const struct kube_object *find_pod(void *context, const char *namespace, const char *name)
{
	const struct scheduler *s = context;

	return kube_cache_get(s->pods, namespace, name);
}

static const struct kube_object *find_claim(void *context, const char *namespace, const char *name)
{
	const struct scheduler *s = context;

	return lookup_claim(s->lookup, namespace, name);
}

static uint32_t gang_number(void *context, const char *namespace, const char *name)
{
	struct scheduler *s = context;
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&key, "%s/%s", namespace, name);
	const struct gang *gang = key.failed ? NULL : gangs_get(s, key.s);

	return gang ? gang->number : 0;
}

static bool has_node(void *context, const char *node)
{
	const struct scheduler *s = context;

	return inventory_has(s->inventory, node);
}

static bool card(void *context, const char *node, const char *uuid, struct lock_card *ret,
		 uint32_t *index)
{
	const struct scheduler *s = context;

	return inventory_card(s->inventory, node, uuid, ret, index);
}

static const char *card_at(void *context, const char *node, uint32_t index)
{
	const struct scheduler *s = context;
	uint32_t number = cluster_node_find(s->cluster, node);
	const struct node *n = number == NODE_NONE ? NULL : cluster_node(s->cluster, number);

	return n && index < n->gpus_count ? cluster_string(s->cluster, n->gpus[index].uuid) : NULL;
}

/* The attempt by which the pod was bound; 0: not by us. */
static uint32_t attempt_of(const struct json *pod)
{
	struct arena arena CLEANUP(arena_done);
	struct decided decided;

	arena_init(&arena, DECISION_MAX);
	return decided_read(pod, &arena, &decided, NULL) == 0 ? decided.attempt : 0;
}

/* What the cache knows of the pod that an entry is of; that it is missing proves nothing. */
static enum lock_pod lock_pod(void *context, const char *node, const struct lock_entry *entry)
{
	const struct scheduler *s = context;
	const struct kube_object *pod = kube_cache_get(s->pods, entry->namespace, entry->name);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct pod_view view;

	if (!pod || strcmp(pod->uid, entry->uid) != 0 || kube_object_parse(pod, &doc) < 0 ||
	    pod_view_read(json_root(doc), &view, NULL) < 0)
		return LOCK_POD_UNKNOWN;
	if (pod_view_is_finished(&view))
		return LOCK_POD_OVER;
	if (!*view.node)
		return LOCK_POD_UNBOUND;
	return strcmp(view.node, node) == 0 && attempt_of(json_root(doc)) == entry->attempt
		       ? LOCK_POD_BOUND
		       : LOCK_POD_OVER;
}

/* A pod that has not been read may be of any gang: after a takeover all are such. */
static bool lock_mates(void *context, const struct lock_entry *entry,
		       void (*found)(void *to, const char *name, const char *uid), void *to)
{
	const struct scheduler *s = context;
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_addf(&key, "%s/%s", entry->namespace, entry->gang);
	if (s->tasks.unsorted || key.failed)
		return false;
	const struct gang *gang = map_get(&s->gangs.by_name, key.s, key.len);
	for (size_t i = 0; gang && i < gang->tasks.len; i++)
		found(to, gang->tasks.items[i]->name, gang->tasks.items[i]->uid);
	return true;
}

/* Locks of others, and of ourselves before we were started again. */
static void lock_came(void *context, const char *node, const struct lock_entry *entry)
{
	struct scheduler *s = context;

	s->epoch++;
	residents_put_guest(s->residents, node, entry);
}

static void lock_left(void *context, const char *node, const struct lock_entry *entry)
{
	struct scheduler *s = context;
	struct task *task = tasks_find(&s->tasks, entry->uid);

	residents_remove_guest(s->residents, entry->uid);
	s->epoch++;
	pending_event(s->pending, WAKE_LOCK, now_ms(s), NULL, NULL);
	if (task && !task->flight && !task->held && !task->landed)
		pending_wake_item(s->pending, task_item(task), now_ms(s));
	if (cluster_node_find(s->cluster, node) != NODE_NONE)
		pods_left(s, cluster_node_find(s->cluster, node));
}

static void locks_are_ready(void *context)
{
	scheduler_kick(context);
}

static void locks_are_wrong(void *context, const char *why)
{
	struct scheduler *s = context;

	log_error(s->log, "cannot lock", LOG_STR("why", why));
	if (s->options.failed)
		s->options.failed(s->options.context, why);
}

/* Beginning and end */

/* Other settings hold: what waits may fit by them. */
static void settings_changed(void *context, const struct scheduler_settings *settings)
{
	struct scheduler *s = context;
	const char *keys[NODE_DOMAIN_KEYS_MAX];
	struct engine_config config = *engine_config(s->engine);
	struct err err = ERR_INIT;

	settings_engine(settings, &config);
	settings_domains(settings, keys);
	s->reserve_after_ms = settings->gang_wait_ms;
	pending_set_backoff(s->pending, settings->backoff_ms, settings->backoff_max_ms);
	s->epoch++;
	if (engine_configure(s->engine, &config) < 0 ||
	    inventory_set_domains(s->inventory, keys, settings->domain_keys_count, &err) < 0)
		log_error(s->log, "settings cannot be used", LOG_STR("why", err.text));
	pending_event(s->pending, WAKE_CONFIG, now_ms(s), NULL, NULL);
	scheduler_kick(s);
}

static int start_config(struct scheduler *s, struct err *err)
{
	struct config_options options = { .caches = s->caches,
					  .file = s->options.config_file,
					  .clock = s->clock,
					  .log = s->log,
					  .changed = settings_changed,
					  .context = s };

	return config_new(&options, &s->config, err);
}

static int start_engine(struct scheduler *s, struct err *err)
{
	const struct scheduler_settings *settings = config_settings(s->config);
	struct engine_config config = { .cluster = { .seed = rng_next(&s->rng) },
					.seed = rng_next(&s->rng) };
	struct pending_options queue = { .seed = rng_next(&s->rng),
					 .backoff_ms = settings->backoff_ms,
					 .backoff_max_ms = settings->backoff_max_ms };

	s->reserve_after_ms = settings->gang_wait_ms;
	settings_engine(settings, &config);
	s->engine = engine_new(&config);
	s->cluster = s->engine ? engine_cluster(s->engine) : NULL;
	s->planner = s->engine ? gang_planner_new(s->engine) : NULL;
	s->pending = pending_new(&queue);
	s->meters =
		s->engine && s->options.metrics ? meters_new(s->options.metrics, s->engine) : NULL;
	if (!s->planner || !s->pending || (s->options.metrics && !s->meters))
		return err_set(err, ENOMEM, "out of memory");
	asked_init(&s->asked, s->cluster, rng_next(&s->rng));
	return 0;
}

static int start_volumes(struct scheduler *s, struct err *err)
{
	struct volume_binder_options options = { .client = s->client,
						 .clock = s->clock,
						 .log = s->log,
						 .lookup = s->lookup,
						 .cluster = s->cluster };

	return volume_binder_new(&options, &s->volumes, err);
}

static int start_caches(struct scheduler *s, struct err *err)
{
	const struct scheduler_settings *settings = config_settings(s->config);
	const char *keys[NODE_DOMAIN_KEYS_MAX];
	struct inventory_options inventory = { .engine = s->engine,
					       .caches = s->caches,
					       .log = s->log,
					       .domain_keys = keys,
					       .domain_keys_count = settings->domain_keys_count,
					       .changed = node_changed,
					       .context = s };
	struct lookup_options lookup = { .caches = s->caches,
					 .cluster = s->cluster,
					 .log = s->log,
					 .seed = rng_next(&s->rng),
					 .changed = object_changed,
					 .index_freed = index_freed,
					 .index_lost = index_lost,
					 .context = s };
	struct claims_options claims = { .client = s->client,
					 .clock = s->clock,
					 .log = s->log,
					 .seed = rng_next(&s->rng),
					 .claim = find_claim,
					 .context = s };
	int rc = claims_new(&claims, &s->claims, err);

	if (rc == 0)
		rc = lookup_new(&lookup, &s->lookup, err);
	settings_domains(settings, keys);
	if (rc == 0)
		rc = start_volumes(s, err);
	if (rc == 0)
		rc = inventory_new(&inventory, &s->inventory, err);
	if (rc < 0)
		return rc;
	struct budgets_options budgets = { .caches = s->caches,
					   .log = s->log,
					   .seed = rng_next(&s->rng) };
	rc = budgets_new(&budgets, &s->budgets, err);
	if (rc < 0)
		return rc;
	struct residents_options residents = { .engine = s->engine,
					       .budgets = s->budgets,
					       .inventory = s->inventory,
					       .lookup = s->lookup,
					       .log = s->log,
					       .seed = rng_next(&s->rng),
					       .gang = gang_number,
					       .pod = find_pod,
					       .context = s };
	return residents_new(&residents, &s->residents, err);
}

static int start_locks(struct scheduler *s, struct err *err)
{
	struct locks_options options = { .client = s->client,
					 .caches = s->caches,
					 .clock = s->clock,
					 .log = s->log,
					 .metrics = s->options.metrics,
					 .namespace = s->options.lock_namespace,
					 .mode = s->options.lock_mode,
					 .node = has_node,
					 .card = card,
					 .card_at = card_at,
					 .pod = lock_pod,
					 .mates = lock_mates,
					 .came = lock_came,
					 .left = lock_left,
					 .ready = locks_are_ready,
					 .wrong = locks_are_wrong,
					 .context = s };

	return locks_new(&options, &s->locks, err);
}

static int start_events(struct scheduler *s, struct err *err)
{
	struct kube_events_options options = { .client = s->client,
					       .controller = s->names[0],
					       .instance = s->options.instance };

	return kube_events_new(&options, &s->events, err);
}

static int copy_names(struct scheduler *s, struct err *err)
{
	if (!s->options.names_count || s->options.names_count > SCHEDULER_NAMES_MAX)
		return err_set(err, EINVAL, "between 1 and %d scheduler names are possible",
			       SCHEDULER_NAMES_MAX);
	for (size_t i = 0; i < s->options.names_count; i++) {
		s->names[i] = strdup(s->options.names[i]);
		if (!s->names[i])
			return err_set(err, ENOMEM, "out of memory");
	}
	s->options.names = NULL;
	return 0;
}

static int start(struct scheduler *s, struct err *err)
{
	int rc = copy_names(s, err);

	if (rc < 0)
		return rc;
	s->caches = kube_caches_new(s->client);
	s->timer = s->caches ? malloc(sizeof(*s->timer)) : NULL;
	s->idle = s->timer ? malloc(sizeof(*s->idle)) : NULL;
	if (!s->idle)
		return err_set(err, ENOMEM, "out of memory");
	uv_timer_init(s->loop, s->timer);
	uv_idle_init(s->loop, s->idle);
	s->timer->data = s->idle->data = s;
	rc = start_config(s, err);
	if (rc == 0)
		rc = start_engine(s, err);
	if (rc == 0)
		rc = start_events(s, err);
	if (rc == 0)
		rc = start_caches(s, err);
	if (rc == 0)
		rc = start_locks(s, err);
	if (rc == 0)
		rc = pods_watch(s, err);
	if (rc == 0)
		scheduler_kick(s);
	return rc;
}

int scheduler_new(const struct scheduler_options *options, struct scheduler **ret, struct err *err)
{
	struct scheduler *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->options = *options;
	s->client = options->client;
	s->loop = kube_loop(options->client);
	s->clock = options->clock;
	s->log = options->log;
	arena_init(&s->arena, ARENA_MAX);
	rng_seed(&s->rng, options->seed);
	s->arrivals = ARRIVALS_BEGIN;
	tasks_init(&s->tasks, rng_next(&s->rng));
	gangs_init(&s->gangs, rng_next(&s->rng));
	int rc = start(s, err);
	if (rc < 0) {
		scheduler_free(s);
		return rc;
	}
	*ret = s;
	return 0;
}

static void free_handle(uv_handle_t *handle)
{
	free(handle);
}

static void forget_tasks(struct scheduler *s)
{
	struct map_entry entry;

	for (uint32_t at = 0; map_next(&s->tasks.by_uid, &at, &entry);) {
		struct task *task = entry.value;

		report_forget(s, task);
		if (task->flight)
			flight_drop(task->flight);
		asked_release(&s->asked, task->asked);
		task->asked = NULL;
	}
}

void scheduler_free(struct scheduler *s)
{
	if (!s)
		return;
	s->freeing = true;
	if (s->cluster)
		forget_tasks(s);
	volume_binder_free(s->volumes);
	locks_free(s->locks);
	kube_events_free(s->events);
	claims_free(s->claims);
	kube_caches_free(s->caches);
	residents_free(s->residents);
	budgets_free(s->budgets);
	lookup_free(s->lookup);
	preempt_done(s);
	flights_done(s);
	closed_done(s);
	gangs_done(s);
	pending_free(s->pending);
	tasks_done(&s->tasks);
	if (s->cluster)
		asked_done(&s->asked);
	config_free(s->config);
	meters_free(s->meters);
	gang_planner_free(s->planner);
	engine_free(s->engine);
	inventory_free(s->inventory); /* lends links to the engine */
	strbuf_done(&s->refusal.message);
	arena_done(&s->arena);
	if (s->idle) {
		uv_close((uv_handle_t *)s->timer, free_handle);
		uv_close((uv_handle_t *)s->idle, free_handle);
	} else {
		free(s->timer);
	}
	for (size_t i = 0; i < SCHEDULER_NAMES_MAX; i++)
		free(s->names[i]);
	free(s);
}

bool scheduler_ready(const struct scheduler *s, struct strbuf *why)
{
	bool ready = kube_caches_ready(s->caches, why);
	const char *locks = locks_why_not(s->locks);

	if (ready && why)
		strbuf_puts(why, locks);
	return ready && !*locks;
}

void scheduler_measure(struct scheduler *s)
{
	meters_refresh(s->meters, s->pending);
	kube_caches_measure(s->caches);
}
