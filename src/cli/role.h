/* SPDX-License-Identifier: Apache-2.0
 *
 * role.h - what the commands that stay have alike: a loop, a log, answers to probes, a way
 * to the cluster, and signals that end them.
 *
 *	struct role role = { .command = "run" };
 *	count = role_cluster_specs(&role, specs);
 *	count += role_log_specs(&role, specs + count);
 *	...the options are read...
 *	if (role_begin(&role, &err) < 0 || role_connect(&role, 0, &err) < 0 ||
 *	    role_serve(&role, &probes, &err) < 0)
 *		role_fail(&role, &err);
 *	role_watch_signals(&role, on_signal, context);
 *	uv_run(&role.loop, UV_RUN_DEFAULT);	// until something calls role_close()
 *	role_done(&role);
 *
 * A role takes only what it needs: what it did not begin is not ended.
 */
#ifndef GS_CLI_ROLE_H
#define GS_CLI_ROLE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/log.h"
#include "cli/options.h"

struct err;
struct health;
struct kube_client;
struct kube_config;
struct metrics;
struct strbuf;

#define ROLE_NAMESPACE "gpu-scheduler" /* where deploy/ puts all roles */

struct role {
	const char *command; /* as it is called: "run" */

	/* As given; NULL: the default. */
	const char *kubeconfig, *master;
	const char *health_addr, *metrics_addr, *log_level, *log_format;

	uv_loop_t loop;
	struct log log;
	uint64_t seed; /* another one in each process */
	struct metrics *metrics;
	struct kube_config *kube; /* NULL until connected, as the next */
	struct kube_client *client;

	/* Of role.c. */
	struct health *health;
	uv_signal_t terminate, interrupt;
	bool watches;
};

/* Appends options to a table and returns how many: --kubeconfig and --master; */
size_t role_cluster_specs(struct role *role, struct option_spec *ret);
/* --health-addr and --metrics-addr; */
size_t role_probe_specs(struct role *role, struct option_spec *ret);
/* --log-level and --log-format. */
size_t role_log_specs(struct role *role, struct option_spec *ret);

/* Prints the sentence with the command in front; CLI_USAGE. */
int role_complain(const struct role *role, const char *text);

/* The same with what kept it from starting, and ends the process: the system takes back
 * what was begun. */
_Noreturn void role_fail(const struct role *role, const struct err *err);

/* Reads the options of the log, sets up loop, metrics and seed.  0, or why not. */
int role_begin(struct role *role, struct err *err);

/* Loads the kubeconfig and makes a client; nothing is sent.  For tests, the process ends
 * after so many writes; 0: never. */
int role_connect(struct role *role, uint64_t stop_after_writes, struct err *err);

/* What probes and Prometheus ask for. */
struct role_probes {
	bool (*ready)(void *context, struct strbuf *why);
	void (*refresh)(void *context); /* before the metrics are written */
	void *context;
};

/* Answers them at --health-addr, unless that is none. */
int role_serve(struct role *role, const struct role_probes *probes, struct err *err);

/* SIGTERM and SIGINT are told; they keep no loop from ending.  `data` is the handle's. */
void role_watch_signals(struct role *role, uv_signal_cb told, void *data);

/* Serves, watches and talks no more: with that the loop has none of it left. */
void role_close(struct role *role);

/* After the loop has ended. */
void role_done(struct role *role);

#endif
