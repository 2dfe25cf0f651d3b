/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/meters.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/cluster.h"
#include "engine/engine.h"
#include "engine/policy/policy.h"
#include "scheduler/pending.h"
#include "wire/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	LATENCY,
	PLACEMENT,
	RECOVERY,
	DECISIONS,
	ALLOCATION,
	UTILIZATION,
	FRAGMENTATION,
	MODEL_ALLOCATION,
	MODEL_GPUS,
	ATTEMPTS,
	GANGS,
	BINDS,
	BIND_DURATION,
	VICTIMS,
	READS,
	QUEUE,
	LEADER,
	METRICS,
};

/* Names that had a series when they were last shown. */
struct shown {
	char *names[METERS_DOMAINS];
	uint32_t count;
};

struct meters {
	struct engine *engine;
	struct metric *metrics[METRICS];
	struct shown domains;
};

/* From a write on an idle server to a pod that waits until a job of hours ends. */
static const double latency[] = { .005, .01, .02, .05, .1,  .2,	  .5,	1,    2,     5,
				  10,	20,  60,  300, 600, 1800, 3600, 7200, 21600, 86400 };
static const double decision[] = { .00001, .00002, .00005, .0001, .0002, .0005, .001, .002,
				   .005,   .01,	   .02,	   .05,	  .1,	 .2,	.5,   1 };
static const double recovery[] = { .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300 };
static const double binding[] = { .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30 };

#define LABELS(...)                                     \
	.labels = (const char *const[]){ __VA_ARGS__ }, \
	.labels_count = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *)

#define HISTOGRAM(bounds) \
	.type = METRIC_HISTOGRAM, .buckets = (bounds), .buckets_count = ARRAY_SIZE(bounds)

static const struct metric_options options[METRICS] = {
	[LATENCY] = { .name = "topology_scheduler_latency_seconds",
		      .help = "Time from when a pod was first seen until it was bound.",
		      HISTOGRAM(latency) },
	[PLACEMENT] = { .name = "topology_scheduler_placement_duration_seconds",
			.help = "Time that one decision took, of a pod or of a whole gang.",
			HISTOGRAM(decision) },
	[RECOVERY] = { .name = "topology_scheduler_recovery_duration_seconds",
		       .help = "Time from starting to lead until everything was known and "
			       "decisions were made.",
		       HISTOGRAM(recovery) },
	[DECISIONS] = { .name = "topology_placement_decisions_total",
			.help = "Decisions by strategy, result and the domain that was chosen.",
			.type = METRIC_COUNTER,
			LABELS("strategy", "result", "domain"),
			.max_series = METERS_DECISIONS },
	[ALLOCATION] = { .name = "topology_gpu_allocation_ratio",
			 .help = "Share of all healthy GPUs that is taken.",
			 .type = METRIC_GAUGE },
	[UTILIZATION] = { .name = "topology_domain_utilization_ratio",
			  .help = "Share of the healthy GPUs in the domain that is taken.",
			  .type = METRIC_GAUGE,
			  LABELS("domain"),
			  .max_series = METERS_DOMAINS },
	[FRAGMENTATION] = { .name = "topology_scheduler_domain_fragmentation_ratio",
			    .help = "Share of the free GPU in the domain that pods of 1, 2, 4 or "
				    "8 whole GPUs cannot use, as a mean.",
			    .type = METRIC_GAUGE,
			    LABELS("domain"),
			    .max_series = METERS_DOMAINS },
	[MODEL_ALLOCATION] = { .name = "gpu_scheduler_model_allocation_ratio",
			       .help = "Share of the healthy GPUs of the model that is taken.",
			       .type = METRIC_GAUGE,
			       LABELS("model"),
			       .max_series = MODEL_MAX },
	[MODEL_GPUS] = { .name = "gpu_scheduler_model_gpus",
			 .help = "Healthy GPUs on nodes of the model.",
			 .type = METRIC_GAUGE,
			 LABELS("model"),
			 .max_series = MODEL_MAX },
	[ATTEMPTS] = { .name = "gpu_scheduler_attempts_total",
		       .help = "Decisions by result, a gang's counted once.",
		       .type = METRIC_COUNTER,
		       LABELS("result") },
	[GANGS] = { .name = "gpu_scheduler_gangs_total",
		    .help = "Decisions on gangs by result.",
		    .type = METRIC_COUNTER,
		    LABELS("result") },
	[BINDS] = { .name = "gpu_scheduler_bind_total",
		    .help = "Bindings by what became of them.",
		    .type = METRIC_COUNTER,
		    LABELS("outcome"),
		    .max_series = 16 },
	[BIND_DURATION] = { .name = "gpu_scheduler_bind_duration_seconds",
			    .help = "Time from sending a Binding until its fate was known.",
			    HISTOGRAM(binding) },
	[VICTIMS] = { .name = "gpu_scheduler_preemption_victims_total",
		      .help = "Pods evicted for others of higher priority.",
		      .type = METRIC_COUNTER },
	[READS] = { .name = "gpu_scheduler_pod_readings_total",
		    .help = "Translations of what a pod that waits asks for: a few for each pod.",
		    .type = METRIC_COUNTER },
	[QUEUE] = { .name = "gpu_scheduler_queue_pods",
		    .help = "What waits for a decision, by where it waits; a gang counted once.",
		    .type = METRIC_GAUGE,
		    LABELS("place") },
	[LEADER] = { .name = "gpu_scheduler_leader",
		     .help = "1 if this one decides.",
		     .type = METRIC_GAUGE },
};

static const char *const results[] = {
	[METERS_SCHEDULED] = "scheduled",
	[METERS_UNSCHEDULABLE] = "unschedulable",
	[METERS_ERROR] = "error",
};

static const char *const places[] = {
	[PENDING_OUT] = "out",
	[PENDING_READY] = "ready",
	[PENDING_BACKOFF] = "backoff",
	[PENDING_PARKED] = "parked",
};

struct meters *meters_new(struct metrics *metrics, struct engine *engine)
{
	struct meters *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->engine = engine;
	for (uint32_t i = 0; i < METRICS; i++) {
		int r = metrics_add(metrics, &options[i], &m->metrics[i], NULL);
		if (r == -EEXIST) {
			m->metrics[i] = metrics_find(metrics, options[i].name);
		} else if (r < 0) {
			free(m);
			return NULL;
		}
	}
	/* A rate needs a first value: what has not happened yet is 0, not absent. */
	for (uint32_t i = 0; i < ARRAY_SIZE(results); i++) {
		metric_inc(m->metrics[ATTEMPTS], &results[i], 0);
		metric_inc(m->metrics[GANGS], &results[i], 0);
	}
	return m;
}

static void forget_domains(struct meters *m, struct shown *shown)
{
	for (uint32_t i = 0; i < shown->count; i++) {
		metric_forget(m->metrics[UTILIZATION], METRIC_LABELS(shown->names[i]));
		metric_forget(m->metrics[FRAGMENTATION], METRIC_LABELS(shown->names[i]));
		free(shown->names[i]);
	}
	shown->count = 0;
}

void meters_free(struct meters *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->domains.count; i++)
		free(m->domains.names[i]);
	free(m);
}

/* What happens */

/* The path of a domain, without the root. */
static void path_of(const struct cluster *c, uint32_t domain, struct strbuf *ret)
{
	uint32_t path[DOMAIN_LEVELS_MAX + 1], depth = 0;

	strbuf_reset(ret);
	for (; domain && depth < ARRAY_SIZE(path); domain = cluster_domain(c, domain)->parent)
		path[depth++] = domain;
	if (depth == 0)
		strbuf_addf(ret, "cluster");
	while (depth > 0) {
		strbuf_addf(ret, "%s%s", ret->len ? "/" : "",
			    cluster_domain(c, path[depth - 1])->name);
		depth--;
	}
}

static const char *policy_name(const struct meters *m)
{
	const struct policy *policy = engine_config(m->engine)->policy;

	return policy ? policy->name : policy_default.name;
}

void meters_decided(struct meters *m, const char *strategy, enum meters_result result,
		    uint32_t node, double seconds)
{
	struct strbuf domain CLEANUP(strbuf_done) = STRBUF_INIT;

	if (!m)
		return;
	const struct cluster *c = engine_cluster(m->engine);

	if (node < cluster_nodes_end(c) && cluster_node(c, node)->name)
		path_of(c, cluster_node(c, node)->domain, &domain);
	metric_inc(m->metrics[DECISIONS],
		   METRIC_LABELS(strategy ? strategy : policy_name(m), results[result],
				 domain.len ? domain.s : ""),
		   1);
	metric_inc(m->metrics[ATTEMPTS], &results[result], 1);
	metric_observe(m->metrics[PLACEMENT], METRIC_NO_LABELS, seconds);
}

void meters_wrong(struct meters *m, enum meters_result result)
{
	if (m)
		metric_inc(m->metrics[ATTEMPTS], &results[result], 1);
}

void meters_gang(struct meters *m, enum meters_result result)
{
	if (m)
		metric_inc(m->metrics[GANGS], &results[result], 1);
}

void meters_binding(struct meters *m, const char *outcome, double seconds)
{
	if (!m)
		return;
	metric_inc(m->metrics[BINDS], METRIC_LABELS(outcome), 1);
	metric_observe(m->metrics[BIND_DURATION], METRIC_NO_LABELS, seconds);
}

void meters_bound(struct meters *m, double seconds)
{
	if (m)
		metric_observe(m->metrics[LATENCY], METRIC_NO_LABELS, seconds);
}

void meters_victims(struct meters *m, uint32_t count)
{
	if (m)
		metric_inc(m->metrics[VICTIMS], METRIC_NO_LABELS, count);
}

void meters_read(struct meters *m)
{
	if (m)
		metric_inc(m->metrics[READS], METRIC_NO_LABELS, 1);
}

void meters_recovered(struct meters *m, double seconds)
{
	if (m)
		metric_observe(m->metrics[RECOVERY], METRIC_NO_LABELS, seconds);
}

void meters_leader(struct meters *m, bool leads)
{
	if (m)
		metric_set(m->metrics[LEADER], METRIC_NO_LABELS, leads);
}

/* How things stand */

static double taken(uint64_t free_milli, uint64_t total_milli)
{
	/* What is held beyond a card's size leaves less than nothing free: not here. */
	return total_milli ? 1 - (double)MIN(free_milli, total_milli) / (double)total_milli : 0;
}

static double fragmentation(const struct domain *d, uint32_t cards)
{
	uint32_t sizes = 0;
	double lost = 0;

	for (uint32_t size = 1; size <= 8 && size <= cards; size *= 2, sizes++) {
		uint64_t usable = 0;

		for (uint32_t idle = size; idle <= GPU_MAX; idle++)
			usable += (uint64_t)d->nodes_by_idle[idle] * (idle - idle % size);
		lost += taken(usable * CORE_WHOLE, d->free_milli);
	}
	return sizes ? lost / sizes : 0;
}

/* How many levels are shown, and the cards of the largest node below each domain. */
struct survey {
	uint32_t levels;
	uint8_t *cards; /* by domain */
};

static void count_levels(const struct cluster *c, struct survey *ret)
{
	uint32_t by_level[DOMAIN_LEVELS_MAX + 1] = { 0 }, sum = 0;

	for (uint32_t i = 0; i < cluster_domains(c); i++) {
		const struct domain *d = cluster_domain(c, i);
		by_level[d->level] += d->nodes > 0;
	}
	for (ret->levels = 0; ret->levels < ARRAY_SIZE(by_level); ret->levels++) {
		sum += by_level[ret->levels];
		if (sum > METERS_DOMAINS)
			break;
	}
}

static void count_cards(const struct cluster *c, struct survey *ret)
{
	for (uint32_t i = 0; i < cluster_nodes_end(c); i++) {
		const struct node *n = cluster_node(c, i);
		if (n->name)
			ret->cards[n->domain] = MAX(ret->cards[n->domain], n->gpus_count);
	}
	/* A domain is numbered after the one above it. */
	for (uint32_t i = cluster_domains(c); i-- > 1;) {
		uint8_t *above = &ret->cards[cluster_domain(c, i)->parent];
		*above = MAX(*above, ret->cards[i]);
	}
}

static bool is_shown(const struct shown *shown, uint32_t hint, const char *name)
{
	if (hint < shown->count && strcmp(shown->names[hint], name) == 0)
		return true;
	for (uint32_t i = 0; i < shown->count; i++) {
		if (strcmp(shown->names[i], name) == 0)
			return true;
	}
	return false;
}

/* What was shown and is not any more goes first, so that there is room for the new. */
static void replace_shown(struct meters *m, struct shown *now)
{
	struct shown gone = { .count = 0 };

	for (uint32_t i = 0; i < m->domains.count; i++) {
		if (is_shown(now, i, m->domains.names[i]))
			free(m->domains.names[i]);
		else
			gone.names[gone.count++] = m->domains.names[i];
	}
	forget_domains(m, &gone);
	m->domains = *now;
}

static void list_domains(struct meters *m, const struct survey *survey, uint32_t *numbers)
{
	const struct cluster *c = engine_cluster(m->engine);
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	struct shown now = { .count = 0 };

	for (uint32_t i = 0; i < cluster_domains(c) && now.count < METERS_DOMAINS; i++) {
		const struct domain *d = cluster_domain(c, i);

		if (d->level >= survey->levels || !d->nodes)
			continue;
		path_of(c, i, &path);
		/* As the registry cuts it. */
		char *name = path.failed ? NULL : strndup(path.s, METRICS_VALUE_MAX);
		if (!name)
			break;
		numbers[now.count] = i;
		now.names[now.count++] = name;
	}
	replace_shown(m, &now);
}

static void measure_domains(struct meters *m)
{
	const struct cluster *c = engine_cluster(m->engine);
	uint32_t numbers[METERS_DOMAINS] = { 0 };
	struct survey survey = { .cards = calloc(cluster_domains(c), 1) };

	if (!survey.cards)
		return;
	count_levels(c, &survey);
	count_cards(c, &survey);
	list_domains(m, &survey, numbers);
	for (uint32_t i = 0; i < m->domains.count; i++) {
		const struct domain *d = cluster_domain(c, numbers[i]);
		const char *const *labels = METRIC_LABELS(m->domains.names[i]);

		metric_set(m->metrics[UTILIZATION], labels, taken(d->free_milli, d->total_milli));
		metric_set(m->metrics[FRAGMENTATION], labels,
			   fragmentation(d, survey.cards[numbers[i]]));
	}
	free(survey.cards);
}

static void measure_models(struct meters *m)
{
	const struct cluster *c = engine_cluster(m->engine);
	uint64_t total_milli[MODEL_MAX] = { 0 };

	for (uint32_t i = 0; i < cluster_nodes_end(c); i++) {
		const struct node *n = cluster_node(c, i);
		if (n->name && n->gpus_count && n->gpus[0].model < MODEL_MAX)
			total_milli[n->gpus[0].model] += n->total_milli;
	}
	for (uint16_t model = 0; model < cluster_models(c) && model < MODEL_MAX; model++) {
		const char *const *labels = METRIC_LABELS(cluster_model_name(c, model));

		metric_set(m->metrics[MODEL_GPUS], labels,
			   (double)total_milli[model] / CORE_WHOLE);
		metric_set(m->metrics[MODEL_ALLOCATION], labels,
			   taken(cluster_model_free_milli(c, model), total_milli[model]));
	}
}

void meters_refresh(struct meters *m, const struct pending *pending)
{
	if (!m)
		return;
	const struct domain *root = cluster_domain(engine_cluster(m->engine), 0);

	metric_set(m->metrics[ALLOCATION], METRIC_NO_LABELS,
		   taken(root->free_milli, root->total_milli));
	for (uint32_t place = 0; pending && place < ARRAY_SIZE(places); place++)
		metric_set(m->metrics[QUEUE], &places[place],
			   pending_count(pending, (enum pending_place)place));
	measure_domains(m);
	measure_models(m);
}
