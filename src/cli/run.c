/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `gpu-scheduler run`: the scheduler of a cluster, until it is told to stop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <uv.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/role.h"
#include "dialect/keys.h"
#include "kube/check.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/election.h"
#include "scheduler/scheduler.h"

#define ELECTION_WARN_MS  10000 /* doubled with every time that it is said, up to: */
#define ELECTION_WARN_MAX 320000
#define DRAIN_MS	  10000
#define LEASE_NAME	  "gpu-scheduler"

struct run {
	struct role role;

	/* As given. */
	struct option_list names;
	const char *config, *lock_namespace, *election_namespace;
	size_t elect, locks;
	uint64_t stop_after;

	uv_timer_t watchdog;
	struct scheduler *scheduler;
	struct kube_election *election;
	char identity[128];
	uint64_t warn_ms;
	bool stopping;
	int exit_code;
};

/* Options and environment */

static const char *const booleans[] = { "false", "true", NULL };
static const char *const lock_modes[] = { "node", "gpu", NULL };

static size_t put_work_options(struct run *r, struct option_spec *ret)
{
	const struct option_spec specs[] = {
		{ .name = "scheduler-name",
		  .value = "NAME",
		  .help = "schedule pods with this spec.schedulerName; may be repeated\n"
			  "(default: $SCHEDULER_NAME, else gpu-scheduler and\n"
			  "topology-aware-scheduler)",
		  .list = &r->names },
		{ .name = "config",
		  .value = "FILE",
		  .help = "settings, as YAML or JSON (default: topology-scheduler-config\n"
			  "in the cluster)",
		  .string = &r->config },
		{ .name = "locks",
		  .value = "MODE",
		  .help = "node: one Lease for each node (default); gpu: one for each GPU",
		  .choice = &r->locks,
		  .choices = lock_modes },
		{ .name = "lock-namespace",
		  .value = "NAME",
		  .help = "where these Leases are (default gpu-scheduler-locks)",
		  .string = &r->lock_namespace },
	};

	memcpy(ret, specs, sizeof(specs));
	return ARRAY_SIZE(specs);
}

static size_t put_life_options(struct run *r, struct option_spec *ret)
{
	const struct option_spec specs[] = {
		{ .name = "leader-elect",
		  .value = "BOOL",
		  .help = "of several, only one works at a time (default true)",
		  .choice = &r->elect,
		  .choices = booleans },
		{ .name = "leader-elect-namespace",
		  .value = "NAME",
		  .help = "where the Lease " LEASE_NAME " of that is (default: the pod's\n"
			  "namespace, else gpu-scheduler)",
		  .string = &r->election_namespace },
		{ .name = "stop-after-writes",
		  .value = "N",
		  .help = "for tests: end at once, like a crash, after the N-th write to\n"
			  "the API server",
		  .number = &r->stop_after,
		  .number_min = 1,
		  .number_max = UINT64_MAX },
	};

	memcpy(ret, specs, sizeof(specs));
	return ARRAY_SIZE(specs);
}

static int parse(struct run *r, int argc, char **argv, int *exit_code)
{
	struct option_spec specs[OPTION_SPECS_MAX];
	struct options options = {
		.command = "run",
		.summary = "Schedule the pods of a Kubernetes cluster: decide on node and exact "
			   "GPUs,\nlock them, bind.",
		.specs = specs,
	};

	options.spec_count = put_work_options(r, specs);
	options.spec_count += role_cluster_specs(&r->role, specs + options.spec_count);
	options.spec_count += put_life_options(r, specs + options.spec_count);
	options.spec_count += role_probe_specs(&r->role, specs + options.spec_count);
	options.spec_count += role_log_specs(&r->role, specs + options.spec_count);
	return options_done(&options, argc, argv, NULL, exit_code);
}

static void use_environment(struct run *r)
{
	const char *name = getenv("SCHEDULER_NAME");

	if (!r->names.count && name && *name)
		r->names.items[r->names.count++] = name;
	if (!r->names.count) {
		r->names.items[r->names.count++] = SCHEDULER_DEFAULT;
		r->names.items[r->names.count++] = SCHEDULER_TOPOLOGY;
	}
}

/* What the server would refuse, or never have. */
static int check_names(const struct run *r, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->names.count; i++)
		rc = kube_check_label_key("--scheduler-name", r->names.items[i], err);
	if (rc == 0 && r->lock_namespace)
		rc = kube_check_label_name("--lock-namespace", r->lock_namespace, err);
	if (rc == 0 && r->election_namespace)
		rc = kube_check_label_name("--leader-elect-namespace", r->election_namespace, err);
	return rc;
}

/* The end: leading, scheduling, talking; in that order. */

static void handed_back(void *context)
{
	struct run *r = context;

	r->election = NULL;
	scheduler_free(r->scheduler);
	r->scheduler = NULL;
	if (r->elect)
		uv_close((uv_handle_t *)&r->watchdog, NULL);
	role_close(&r->role);
}

static void drained(void *context)
{
	struct run *r = context;

	if (r->election)
		kube_election_close(r->election, handed_back, r);
	else
		handed_back(r);
}

static void stop(struct run *r, int exit_code)
{
	if (r->stopping)
		return;
	r->stopping = true;
	r->exit_code = exit_code;
	scheduler_drain(r->scheduler, DRAIN_MS, drained, r);
}

static void signalled(uv_signal_t *signal, int number)
{
	struct run *r = signal->data;

	log_info(&r->role.log, "stopping", LOG_STR("signal", strsignal(number)));
	stop(r, CLI_OK);
}

static void failed(void *context, const char *why)
{
	struct run *r = context;

	log_error(&r->role.log, "cannot go on", LOG_STR("why", why));
	stop(r, CLI_NO);
}

/* Leading */

static const char *election_namespace(const struct run *r)
{
	if (r->election_namespace)
		return r->election_namespace;
	return r->role.kube->in_cluster ? r->role.kube->namespace : ROLE_NAMESPACE;
}

static void started_leading(void *context)
{
	struct run *r = context;

	log_info(&r->role.log, "this one leads", LOG_STR("identity", r->identity));
	scheduler_lead(r->scheduler, true);
}

/* Another may work by now, and what we have sent may still be on its way: locks keep that
 * safe, but there is no sense in going on. */
static void stopped_leading(void *context, const char *reason)
{
	struct run *r = context;

	if (r->stopping)
		return;
	log_error(&r->role.log, "no longer leading", LOG_STR("identity", r->identity),
		  LOG_STR("why", reason));
	_exit(CLI_NO);
}

static void new_leader(void *context, const char *identity)
{
	struct run *r = context;

	if (strcmp(identity, r->identity) == 0)
		return; /* started_leading() tells */
	log_info(&r->role.log, "another one leads, this one waits to take over",
		 LOG_STR("leader", identity), LOG_STR("identity", r->identity));
}

/* What others ask for */

static bool is_ready(void *context, struct strbuf *why)
{
	struct run *r = context;

	if (r->stopping || !r->scheduler) {
		strbuf_puts(why, "stopping");
		return false;
	}
	if (kube_is_unreached(r->role.client)) {
		strbuf_addf(why, "the API server %s cannot be reached, or refuses our credentials",
			    r->role.kube->server);
		return false;
	}
	if (r->election && !*kube_election_leader(r->election)) {
		strbuf_addf(why,
			    "who leads is not known: is there a namespace %s, and may we read "
			    "and write the Lease " LEASE_NAME " there?",
			    election_namespace(r));
		return false;
	}
	return scheduler_ready(r->scheduler, why);
}

/* Nobody leads, nobody works: said until it is mended, ever more rarely.  That the server
 * cannot be reached has been said by the client. */
static void watch_election(uv_timer_t *timer)
{
	struct run *r = timer->data;
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;

	if (!r->election || r->stopping || *kube_election_leader(r->election) ||
	    kube_is_unreached(r->role.client)) {
		r->warn_ms = ELECTION_WARN_MS;
	} else if (!is_ready(r, &why)) {
		log_warn(&r->role.log, "not scheduling", LOG_STR("why", why.s));
		r->warn_ms = MIN(2 * r->warn_ms, ELECTION_WARN_MAX);
	}
	uv_timer_start(timer, watch_election, r->warn_ms, 0);
}

static int start_election(struct run *r, struct err *err)
{
	struct kube_election_options options = { .namespace = election_namespace(r),
						 .name = LEASE_NAME,
						 .identity = r->identity,
						 .started = started_leading,
						 .stopped = stopped_leading,
						 .new_leader = new_leader,
						 .context = r };

	uv_timer_init(&r->role.loop, &r->watchdog);
	r->watchdog.data = r;
	r->warn_ms = ELECTION_WARN_MS;
	uv_timer_start(&r->watchdog, watch_election, r->warn_ms, 0);
	uv_unref((uv_handle_t *)&r->watchdog);
	return kube_election_new(r->role.client, &options, &r->election, err);
}

static void measure(void *context)
{
	struct run *r = context;

	if (r->scheduler)
		scheduler_measure(r->scheduler);
}

/* The beginning */

static const char *lock_namespace(const struct run *r)
{
	return r->lock_namespace ? r->lock_namespace : "gpu-scheduler-locks";
}

static int start_scheduler(struct run *r, struct err *err)
{
	struct scheduler_options options = {
		.client = r->role.client,
		.clock = &clock_system,
		.log = &r->role.log,
		.metrics = r->role.metrics,
		.names = r->names.items,
		.names_count = r->names.count,
		.instance = r->identity,
		.lock_namespace = lock_namespace(r),
		.lock_mode = r->locks ? LOCKS_BY_GPU : LOCKS_BY_NODE,
		.config_file = r->config,
		.seed = r->role.seed,
		.failed = failed,
		.context = r,
	};

	return scheduler_new(&options, &r->scheduler, err);
}

/* What to know first of one whose log is read later. */
static void say_start(const struct run *r)
{
	struct strbuf names CLEANUP(strbuf_done) = STRBUF_INIT;

	for (size_t i = 0; i < r->names.count; i++)
		strbuf_addf(&names, "%s%s", i ? "," : "", r->names.items[i]);
	log_info(
		&r->role.log, "starting", LOG_STR("version", GS_VERSION),
		LOG_STR("server", r->role.kube->server),
		LOG_STR("account", r->role.kube->user_origin ? r->role.kube->user_origin : "none"),
		LOG_STR("identity", r->identity), LOG_STR("scheduler_names", names.s),
		LOG_STR("locks", lock_modes[r->locks]),
		LOG_STR("lock_namespace", lock_namespace(r)),
		LOG_STR("leader_election", r->elect ? election_namespace(r) : "none"));
}

static int start(struct run *r, struct err *err)
{
	const struct role_probes probes = { .ready = is_ready, .refresh = measure, .context = r };
	int rc = role_connect(&r->role, r->stop_after, err);

	if (rc == 0)
		rc = start_scheduler(r, err);
	if (rc == 0)
		say_start(r);
	if (rc == 0)
		rc = role_serve(&r->role, &probes, err);
	if (rc == 0 && r->elect)
		rc = start_election(r, err);
	else if (rc == 0)
		scheduler_lead(r->scheduler, true);
	return rc;
}

/* Unique to this process: the host's name, and a number. */
static int name_process(struct run *r, struct err *err)
{
	char host[64] = "localhost";
	uint64_t unique;

	if (getrandom(&unique, sizeof(unique), 0) != sizeof(unique))
		return err_set(err, EIO, "the system gives no random numbers");
	gethostname(host, sizeof(host) - 1);
	snprintf(r->identity, sizeof(r->identity), "%s-%016llx", host, (unsigned long long)unique);
	return 0;
}

int cmd_run(int argc, char **argv)
{
	struct run r = { .role = { .command = "run" }, .elect = true };
	struct err err = ERR_INIT;

	if (parse(&r, argc, argv, &r.exit_code))
		return r.exit_code;
	use_environment(&r);
	if (check_names(&r, &err) < 0 || role_begin(&r.role, &err) < 0 ||
	    name_process(&r, &err) < 0 || start(&r, &err) < 0)
		role_fail(&r.role, &err);
	role_watch_signals(&r.role, signalled, &r);
	uv_run(&r.role.loop, UV_RUN_DEFAULT);
	role_done(&r.role);
	return r.exit_code;
}
