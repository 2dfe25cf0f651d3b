/* SPDX-License-Identifier: Apache-2.0 */
/* locks_life.c - the beginning and the end, and what comes from the watch in between. */
#include "scheduler/locks_private.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "kube/ready.h"
#include "wire/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_MS  5000
#define VACANT_MS 30000

/* All that a lock is made of. */
static const char *const lease_keep[] = {
	"metadata.name",
	"metadata.namespace",
	"metadata.uid",
	"metadata.deletionTimestamp",
	"metadata.finalizers",
	"metadata.annotations{" KEY_LOCK_NODE "," KEY_LOCK_GPU "," KEY_LOCK_ENTRIES "}",
	"spec.holderIdentity",
	NULL,
};

static void changed(void *context, enum kube_change change, const struct kube_object *before,
		    struct kube_object *now, const struct json *object)
{
	struct locks *locks = context;

	(void)change;
	if (locks->closing)
		return;
	if (strcmp((now ? now : before)->name, LOCKS_MODE_NAME) == 0)
		mode_watched(locks, before, now, object);
	else
		cell_watched(locks, before, now, object);
}

static void synced(void *context)
{
	struct locks *locks = context;

	if (locks->closing)
		return;
	locks->synced = true;
	mode_look(locks);
}

static int add_metric(struct metrics *metrics, const struct metric_options *options,
		      struct metric **ret, struct err *err)
{
	*ret = metrics_find(metrics, options->name);
	return *ret ? 0 : metrics_add(metrics, options, ret, err);
}

static int add_metrics(struct locks *locks, struct err *err)
{
	static const char *const by_result[] = { "result" };
	static const double seconds[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
					  0.1,	 0.25,	 0.5,	1,    2.5,   10 };
	struct locks_metrics *m = &locks->metrics;
	const struct {
		struct metric **metric;
		struct metric_options options;
	} all[] = {
		{ &m->writes,
		  { .name = "gpu_scheduler_lock_writes_total",
		    .help = "Writes of leases that are locks, by what the server said.",
		    .type = METRIC_COUNTER,
		    .labels = by_result,
		    .labels_count = 1 } },
		{ &m->conflicts,
		  { .name = "gpu_scheduler_lock_conflicts_total",
		    .help = "Writes that somebody else's came before.",
		    .type = METRIC_COUNTER } },
		{ &m->held,
		  { .name = "gpu_scheduler_locks_held",
		    .help = "Locks there are, of all schedulers.",
		    .type = METRIC_GAUGE } },
		{ &m->latency,
		  { .name = "gpu_scheduler_lock_latency_seconds",
		    .help = "Time to take a lock.",
		    .type = METRIC_HISTOGRAM,
		    .buckets = seconds,
		    .buckets_count = ARRAY_SIZE(seconds) } },
		{ &m->fences,
		  { .name = "gpu_scheduler_lock_fences_total",
		    .help = "Pods changed so that no late Binding can land.",
		    .type = METRIC_COUNTER } },
		{ &m->collected,
		  { .name = "gpu_scheduler_lock_orphans_collected_total",
		    .help = "Locks of others that were found dead.",
		    .type = METRIC_COUNTER } },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && locks->options.metrics && i < ARRAY_SIZE(all); i++)
		rc = add_metric(locks->options.metrics, &all[i].options, all[i].metric, err);
	return rc;
}

static void init_rings(struct locks *locks)
{
	struct link *const rings[] = { &locks->dirty,	  &locks->retry_cells,
				       &locks->vacant,	  &locks->orphans,
				       &locks->dead,	  &locks->retry_judged,
				       &locks->preparing, &locks->finished,
				       &locks->all,	  &locks->mates };

	for (size_t i = 0; i < ARRAY_SIZE(rings); i++)
		link_init(rings[i]);
}

static void init_values(struct locks *locks, const struct locks_options *options)
{
	uint64_t seed = clock_monotonic_ns(options->clock);

	init_rings(locks);
	locks->options = *options;
	locks->options.collect_ms = options->collect_ms ? options->collect_ms : PAUSE_MS;
	locks->options.orphan_ms = options->orphan_ms ? options->orphan_ms : PAUSE_MS;
	locks->options.vacant_ms = options->vacant_ms ? options->vacant_ms : VACANT_MS;
	locks->mode.backoff = (struct backoff)BACKOFF_INIT;
	rng_seed(&locks->rng, seed);
	map_init(&locks->cells, seed);
	map_init(&locks->chains[BY_POD], seed + 1);
	map_init(&locks->chains[BY_GANG], seed + 2);
}

static int check_options(const struct locks_options *options, struct err *err)
{
	if (!options->namespace || !*options->namespace)
		return err_set(err, EINVAL, "locks need a namespace");
	if (options->mode == LOCKS_BY_GPU && !options->card_at)
		return err_set(err, EINVAL, "locks by GPU need to know the cards of a node");
	return 0;
}

int locks_new(const struct locks_options *options, struct locks **ret, struct err *err)
{
	int rc = check_options(options, err);

	if (rc < 0)
		return rc;
	struct locks *locks = calloc(1, sizeof(*locks));
	char *namespace = strdup(options->namespace);
	if (!locks || !namespace) {
		free(locks);
		free(namespace);
		return err_set(err, ENOMEM, "out of memory");
	}
	init_values(locks, options);
	locks->namespace = namespace;
	uv_timer_init(kube_loop(options->client), &locks->flush);
	uv_timer_init(kube_loop(options->client), &locks->tick);
	locks->flush.data = locks->tick.data = locks;
	lease_rights(locks, locks->hint, sizeof(locks->hint));
	struct kube_cache_options cache = { .kind = &kube_kinds[KUBE_LEASE],
					    .namespace = locks->namespace,
					    .hint = locks->hint,
					    .keep = lease_keep,
					    .log = options->log,
					    .changed = changed,
					    .synced = synced,
					    .context = locks };
	rc = add_metrics(locks, err);
	if (rc == 0)
		rc = kube_caches_add(options->caches, &cache, &locks->cache, err);
	if (rc < 0) {
		locks_free(locks);
		return rc;
	}
	*ret = locks;
	return 0;
}

/* The cache may still hold the pointer until it is freed itself, before the loop runs. */
static void closed(uv_handle_t *handle)
{
	struct locks *locks = handle->data;

	if (++locks->closes < 2)
		return;
	free(locks->namespace);
	free(locks);
}

void locks_free(struct locks *locks)
{
	struct map_entry entry;

	if (!locks)
		return;
	locks->closing = true;
	mode_stop(locks);
	mates_stop(locks);
	while (!link_is_empty(&locks->all))
		lock_discard(LINK_OF(locks->all.next, struct lock, all));
	for (uint32_t at = 0; map_next(&locks->cells, &at, &entry); at = 0)
		cell_free(entry.value);
	map_done(&locks->cells);
	for (int i = 0; i < RECORD_CHAINS; i++)
		map_done(&locks->chains[i]);
	uv_close((uv_handle_t *)&locks->flush, closed);
	uv_close((uv_handle_t *)&locks->tick, closed);
}

void locks_activate(struct locks *locks, bool active)
{
	struct map_entry entry;

	if (locks->active == active)
		return;
	locks->active = active;
	collect_arm(locks);
	if (!active)
		return;
	for (uint32_t at = 0; map_next(&locks->cells, &at, &entry);) {
		struct cell *cell = entry.value;

		cell->must_drop = cell->must_drop || cell->deleting;
		if (cell->must_drop || !link_is_empty(&cell->waiting))
			cell_touch(cell);
	}
	mode_look(locks);
}
