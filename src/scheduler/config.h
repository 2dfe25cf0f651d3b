/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - the settings that hold, wherever they are written, as they change.
 *
 * With a file that alone counts: `--config FILE`, YAML or JSON, looked at again when it is
 * another one (also one behind a symbolic link that is swapped, as volumes do).  Without,
 * the first that the namespace kube-system has of
 *
 *	SchedulerConfig topology-scheduler-config
 *	TopologySchedulerConfig topology-scheduler-config
 *	ConfigMap topology-scheduler-config: its key config.yaml, or the only one it has
 *
 * and if it has none of them, the defaults.  Settings that cannot be are refused with one
 * sentence in the log, once for each version of them, and those that hold go on; a file that
 * cannot be when the program starts is an error.
 *
 * Used by the loop's thread alone.
 */
#ifndef GS_SCHEDULER_CONFIG_H
#define GS_SCHEDULER_CONFIG_H

#include "scheduler/settings.h"

struct clock;
struct config;
struct kube_caches;
struct log;

#define CONFIG_NAME	 "topology-scheduler-config"
#define CONFIG_NAMESPACE "kube-system"
#define CONFIG_KEY	 "config.yaml"
#define CONFIG_LOOK_MS	 1000 /* between two looks at the file */

struct config_options {
	struct kube_caches *caches; /* three caches are added; NULL, or a file: none */
	const char *file;	    /* NULL: what the cluster has; copied */
	const struct clock *clock;
	const struct log *log;
	/* Other settings hold from now on.  Not called from config_new(). */
	void (*changed)(void *context, const struct scheduler_settings *settings);
	void *context;
};

/* 0; what is wrong with the file; -ENOMEM. */
int config_new(const struct config_options *options, struct config **ret, struct err *err);
/* The caches, which are of the set, must go before it.  NULL is fine. */
void config_free(struct config *config);

/* Those that hold; valid until the next change. */
const struct scheduler_settings *config_settings(const struct config *config);
/* Where they come from, for people: "the defaults", "/etc/config.yaml", ... */
const char *config_source(const struct config *config);

/* Looks at the file if it is time to: to be called now and then, about once a second. */
void config_tick(struct config *config);

#endif
