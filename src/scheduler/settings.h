/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - what an administrator may set of the scheduler, as a plain value.
 *
 * Written as the spec of a SchedulerConfig or TopologySchedulerConfig (topology.scheduler/
 * v1alpha1; deploy/crds has every field), all of it optional:
 *
 *	scoringWeights: {resourceAvailability: 0.4, topologyAlignment: 0.3,
 *	  domainUtilization: 0.2, historicalPerformance: 0.1}
 *	topologyConstraints: {maxNodesPerLeaf: 4, maxGPUsPerLeaf: 32}
 *	policy: default
 *	maxPodsPerSharedGpu: 8
 *	domainPreset: topograph-1.0          # or domainLabels, the nearest first
 *	gangReservationSeconds: 60
 *	podInitialBackoffSeconds: 1
 *	podMaxBackoffSeconds: 10
 *
 * What is not known is an error with the name that was probably meant, but for some fields of
 * other schedulers that read this kind, which mean nothing here.  Pure.
 */
#ifndef GS_SCHEDULER_SETTINGS_H
#define GS_SCHEDULER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dialect/node.h"
#include "engine/engine.h"

struct err;
struct json;

#define SETTINGS_LABEL_MAX  (253 + 1 + 63 + 1) /* prefix/name and its NUL */
#define SETTINGS_BYTES_MAX  ((size_t)1 << 20)  /* of a text */
#define SETTINGS_API	    "topology.scheduler/v1alpha1"
#define SETTINGS_GANG_MS    60000
#define SETTINGS_BACKOFF_MS 1000

/* Without gaps that count: two of them are compared by settings_equal(). */
struct scheduler_settings {
	struct weights weights; /* in millionths of their sum */
	const struct policy *policy;
	uint32_t max_nodes_per_leaf, max_gpus_per_leaf; /* 0: as the fabric has them */
	uint16_t seats;					/* maxPodsPerSharedGpu */
	uint32_t gang_wait_ms; /* after which what does not fit gets a reservation */
	uint32_t backoff_ms, backoff_max_ms;
	uint32_t domain_keys_count;
	/* The outermost first, as dialect/node.h wants them. */
	char domain_keys[NODE_DOMAIN_KEYS_MAX][SETTINGS_LABEL_MAX];
};

void settings_default(struct scheduler_settings *ret);
bool settings_equal(const struct scheduler_settings *a, const struct scheduler_settings *b);

/* The keys as a list, for node_options and inventory_set_domains(); borrowed. */
void settings_domains(const struct scheduler_settings *settings,
		      const char *ret[static NODE_DOMAIN_KEYS_MAX]);

/* The parts that concern the engine, into a configuration whose other fields stay. */
void settings_engine(const struct scheduler_settings *settings, struct engine_config *ret);

/* The bare spec, or the whole object.  NULL or null: the defaults.  `name` begins the error.
 * 0, -EINVAL; `ret` is written on success only. */
int settings_read(const char *name, const struct json *object, struct scheduler_settings *ret,
		  struct err *err);
/* The same from YAML or JSON.  An empty text is the defaults.  Also -E2BIG, -ENOMEM. */
int settings_parse(const char *name, const char *text, size_t len, struct scheduler_settings *ret,
		   struct err *err);

#endif
