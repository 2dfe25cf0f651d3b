/* SPDX-License-Identifier: Apache-2.0 */
/* meters.h - what the scheduler does and how the cluster stands, as metrics.
 *
 *	topology_scheduler_latency_seconds		from a pod first seen to bound
 *	topology_scheduler_placement_duration_seconds	of one decision
 *	topology_scheduler_recovery_duration_seconds	from starting to lead, with nothing known,
 *							until decisions are made
 *	topology_placement_decisions_total{strategy,result,domain}
 *	topology_gpu_allocation_ratio			of all healthy GPUs
 *	topology_domain_utilization_ratio{domain}	of the healthy GPUs below it
 *	topology_scheduler_domain_fragmentation_ratio{domain}
 *	gpu_scheduler_model_allocation_ratio{model}, gpu_scheduler_model_gpus{model}
 *	gpu_scheduler_attempts_total{result}		decisions, a gang's counted once
 *	gpu_scheduler_gangs_total{result}
 *	gpu_scheduler_bind_total{outcome}, gpu_scheduler_bind_duration_seconds
 *	gpu_scheduler_preemption_victims_total
 *	gpu_scheduler_pod_readings_total		of pods that wait: translations
 *	gpu_scheduler_queue_pods{place}			a gang counted once
 *	gpu_scheduler_leader				1: this one decides
 *
 * Fragmentation.  A pod that asks for k whole GPUs of one node can use, of what is free on a
 * node with n idle cards, only n - n mod k cards, and nothing of a card that is partly taken
 * or of a node that is closed.  The ratio is the share of the free GPU below the domain that
 * such pods cannot use, as the mean over k = 1, 2, 4, 8 (up to the cards of its largest
 * node).  0: every free GPU is part of a free eight; 1: nothing but crumbs is free.  0 too
 * when nothing is free.
 *
 * A domain is named by its path without the root ("spine-1/leaf-3"), the root is "cluster".
 * Figures of domains are for whole levels, from the root down, as long as those have no more
 * than METERS_DOMAINS domains together; levels below are left out.  Those that are gone are
 * no longer shown.
 *
 * All of it may be called with NULL.  One thread, the engine's.
 */
#ifndef GS_SCHEDULER_METERS_H
#define GS_SCHEDULER_METERS_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct meters;
struct metrics;
struct pending;

#define METERS_DOMAINS	 256
#define METERS_DECISIONS 1024 /* series of decisions; more are counted as "other" */

enum meters_result {
	METERS_SCHEDULED,
	METERS_UNSCHEDULABLE,
	METERS_ERROR,
};

/* Both outlive it.  Two on one registry add to the same figures.  NULL: out of memory. */
struct meters *meters_new(struct metrics *metrics, struct engine *engine);
void meters_free(struct meters *m); /* what it counted stays in the registry */

/* A decision on a pod, or on a gang as a whole.  `strategy`: NULL is the engine's policy;
 * `node`: where the (first) pod goes, or NODE_NONE. */
void meters_decided(struct meters *m, const char *strategy, enum meters_result result,
		    uint32_t node, double seconds);
void meters_gang(struct meters *m, enum meters_result result);
/* A pod was refused before it came to a decision: for what it is, or for want of memory. */
void meters_wrong(struct meters *m, enum meters_result result);

/* A Binding was answered, whatever the answer ("done", ...: few). */
void meters_binding(struct meters *m, const char *outcome, double seconds);
/* A pod is bound, so long after it was first seen. */
void meters_bound(struct meters *m, double seconds);

void meters_victims(struct meters *m, uint32_t count);
void meters_read(struct meters *m);
void meters_recovered(struct meters *m, double seconds);
void meters_leader(struct meters *m, bool leads);

/* How things stand now: before the text is written.  A walk over nodes and domains. */
void meters_refresh(struct meters *m, const struct pending *pending);

#endif
