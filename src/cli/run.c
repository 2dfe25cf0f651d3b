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
#include "dialect/keys.h"
#include "kube/check.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/election.h"
#include "scheduler/scheduler.h"
#include "wire/health.h"
#include "wire/metrics.h"

#define ELECTION_WARN_MS   10000 /* doubled with every time that it is said, up to: */
#define ELECTION_WARN_MAX  320000
#define DRAIN_MS	   10000
#define LEASE_NAME	   "gpu-scheduler"
#define NAMESPACE_FALLBACK "gpu-scheduler" /* where deploy/rbac has its rights */

struct run {
	/* As given. */
	struct option_list names;
	const char *kubeconfig, *master, *config, *lock_namespace, *election_namespace;
	const char *health_addr, *metrics_addr, *log_level, *log_format;
	size_t elect, locks;
	uint64_t stop_after;

	uv_loop_t loop;
	uv_signal_t terminate, interrupt;
	uv_timer_t watchdog;
	struct log log;
	struct kube_config *kube;
	struct kube_client *client;
	struct metrics *metrics;
	struct health *health;
	struct scheduler *scheduler;
	struct kube_election *election;
	char identity[128];
	uint64_t seed, warn_ms;
	bool stopping;
	int exit_code;
};

static int complain(const char *text)
{
	fprintf(stderr, "gpu-scheduler run: %s\n", text);
	return CLI_USAGE;
}

/* Options and environment */

static const char *const booleans[] = { "false", "true", NULL };
static const char *const lock_modes[] = { "node", "gpu", NULL };

static size_t put_cluster_options(struct run *r, struct option_spec *ret)
{
	const struct option_spec specs[] = {
		{ .name = "scheduler-name",
		  .value = "NAME",
		  .help = "schedule pods with this spec.schedulerName; may be repeated\n"
			  "(default: $SCHEDULER_NAME, else gpu-scheduler and\n"
			  "topology-aware-scheduler)",
		  .list = &r->names },
		{ .name = "kubeconfig",
		  .value = "FILE",
		  .help = "how to reach the cluster (default: $KUBECONFIG,\n"
			  "~/.kube/config, the pod's own account)",
		  .string = &r->kubeconfig },
		{ .name = "master",
		  .value = "URL",
		  .help = "the API server, whatever the kubeconfig says",
		  .string = &r->master },
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

static size_t put_process_options(struct run *r, struct option_spec *ret)
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
		{ .name = "health-addr",
		  .value = "ADDR",
		  .help = "where /healthz, /readyz and the like are served (default :8080;\n"
			  "none: nowhere)",
		  .string = &r->health_addr },
		{ .name = "metrics-addr",
		  .value = "ADDR",
		  .help = "where /metrics is served (default: the same)",
		  .string = &r->metrics_addr },
		{ .name = "log-level",
		  .value = "LEVEL",
		  .help = "error, warn, info, debug (default: $LOG_LEVEL, else info)",
		  .string = &r->log_level },
		{ .name = "log-format",
		  .value = "FORM",
		  .help = "logfmt or json (default logfmt)",
		  .string = &r->log_format },
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

	options.spec_count = put_cluster_options(r, specs);
	options.spec_count += put_process_options(r, specs + options.spec_count);
	return options_done(&options, argc, argv, NULL, exit_code);
}

static void use_environment(struct run *r)
{
	const char *name = getenv("SCHEDULER_NAME"), *level = getenv("LOG_LEVEL");

	if (!r->names.count && name && *name)
		r->names.items[r->names.count++] = name;
	if (!r->names.count) {
		r->names.items[r->names.count++] = SCHEDULER_DEFAULT;
		r->names.items[r->names.count++] = SCHEDULER_TOPOLOGY;
	}
	if (!r->log_level && level && *level)
		r->log_level = level;
}

/* What the server would refuse, or never have. */
static int check_names(const struct run *r)
{
	struct err err = ERR_INIT;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->names.count; i++)
		rc = kube_check_label_key("--scheduler-name", r->names.items[i], &err);
	if (rc == 0 && r->lock_namespace)
		rc = kube_check_label_name("--lock-namespace", r->lock_namespace, &err);
	if (rc == 0 && r->election_namespace)
		rc = kube_check_label_name("--leader-elect-namespace", r->election_namespace,
					   &err);
	return rc < 0 ? complain(err.text) : CLI_OK;
}

static int set_up_log(struct run *r)
{
	r->log = (struct log){ .fd = STDERR_FILENO, .level = LOG_INFO, .clock = &clock_system };
	if (r->log_level && !log_level_parse(r->log_level, &r->log.level))
		return complain("--log-level and LOG_LEVEL are error, warn, info or debug");
	if (r->log_format && !log_format_parse(r->log_format, &r->log.format))
		return complain("--log-format is logfmt or json");
	return CLI_OK;
}

/* The end: leading, scheduling, talking; in that order. */

static void ended(void *context)
{
	struct run *r = context;

	uv_stop(&r->loop);
}

static void handed_back(void *context)
{
	struct run *r = context;

	r->election = NULL;
	scheduler_free(r->scheduler);
	r->scheduler = NULL;
	health_free(r->health);
	r->health = NULL;
	uv_close((uv_handle_t *)&r->terminate, NULL);
	uv_close((uv_handle_t *)&r->interrupt, NULL);
	if (r->elect)
		uv_close((uv_handle_t *)&r->watchdog, NULL);
	kube_client_close(r->client, ended, r);
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

	log_info(&r->log, "stopping", LOG_STR("signal", strsignal(number)));
	stop(r, CLI_OK);
}

static void failed(void *context, const char *why)
{
	struct run *r = context;

	log_error(&r->log, "cannot go on", LOG_STR("why", why));
	stop(r, CLI_NO);
}

/* Leading */

static const char *election_namespace(const struct run *r)
{
	if (r->election_namespace)
		return r->election_namespace;
	return r->kube->in_cluster ? r->kube->namespace : NAMESPACE_FALLBACK;
}

static void started_leading(void *context)
{
	struct run *r = context;

	log_info(&r->log, "this one leads", LOG_STR("identity", r->identity));
	scheduler_lead(r->scheduler, true);
}

/* Another may work by now, and what we have sent may still be on its way: locks keep that
 * safe, but there is no sense in going on. */
static void stopped_leading(void *context, const char *reason)
{
	struct run *r = context;

	if (r->stopping)
		return;
	log_error(&r->log, "no longer leading", LOG_STR("identity", r->identity),
		  LOG_STR("why", reason));
	_exit(CLI_NO);
}

static void new_leader(void *context, const char *identity)
{
	struct run *r = context;

	if (strcmp(identity, r->identity) == 0)
		return; /* started_leading() tells */
	log_info(&r->log, "another one leads, this one waits to take over",
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
	if (kube_is_unreached(r->client)) {
		strbuf_addf(why, "the API server %s cannot be reached, or refuses our credentials",
			    r->kube->server);
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
	    kube_is_unreached(r->client)) {
		r->warn_ms = ELECTION_WARN_MS;
	} else if (!is_ready(r, &why)) {
		log_warn(&r->log, "not scheduling", LOG_STR("why", why.s));
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

	uv_timer_init(&r->loop, &r->watchdog);
	r->watchdog.data = r;
	r->warn_ms = ELECTION_WARN_MS;
	uv_timer_start(&r->watchdog, watch_election, r->warn_ms, 0);
	uv_unref((uv_handle_t *)&r->watchdog);
	return kube_election_new(r->client, &options, &r->election, err);
}

static void measure(void *context)
{
	struct run *r = context;

	if (r->scheduler)
		scheduler_measure(r->scheduler);
}

static int start_health(struct run *r, struct err *err)
{
	struct health_options options = { .loop = &r->loop,
					  .log = &r->log,
					  .addr = r->health_addr ? r->health_addr : ":8080",
					  .metrics_addr = r->metrics_addr,
					  .metrics = r->metrics,
					  .ready = is_ready,
					  .refresh = measure,
					  .context = r };

	if (strcmp(options.addr, "none") == 0)
		return options_check_unserved(r->metrics_addr, err);
	return options_name_addr(health_new(&options, &r->health, err), "health-addr", err);
}

/* The beginning */

static int start_client(struct run *r, struct err *err)
{
	struct kube_config_source source = { .path = r->kubeconfig, .master = r->master };
	struct kube_client_options options = { .loop = &r->loop,
					       .clock = &clock_system,
					       .log = &r->log,
					       .seed = r->seed,
					       .stop_after_writes = r->stop_after,
					       .metrics = r->metrics };
	int rc = kube_config_load(&source, &r->kube, err);

	if (rc < 0)
		return rc;
	options.config = r->kube;
	return kube_client_new(&options, &r->client, err);
}

static const char *lock_namespace(const struct run *r)
{
	return r->lock_namespace ? r->lock_namespace : "gpu-scheduler-locks";
}

static int start_scheduler(struct run *r, struct err *err)
{
	struct scheduler_options options = {
		.client = r->client,
		.clock = &clock_system,
		.log = &r->log,
		.metrics = r->metrics,
		.names = r->names.items,
		.names_count = r->names.count,
		.instance = r->identity,
		.lock_namespace = lock_namespace(r),
		.lock_mode = r->locks ? LOCKS_BY_GPU : LOCKS_BY_NODE,
		.config_file = r->config,
		.seed = r->seed,
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
	log_info(&r->log, "starting", LOG_STR("version", GS_VERSION),
		 LOG_STR("server", r->kube->server),
		 LOG_STR("account", r->kube->user_origin ? r->kube->user_origin : "none"),
		 LOG_STR("identity", r->identity), LOG_STR("scheduler_names", names.s),
		 LOG_STR("locks", lock_modes[r->locks]),
		 LOG_STR("lock_namespace", lock_namespace(r)),
		 LOG_STR("leader_election", r->elect ? election_namespace(r) : "none"));
}

static int start(struct run *r, struct err *err)
{
	int rc = start_client(r, err);

	if (rc == 0)
		rc = start_scheduler(r, err);
	if (rc == 0)
		say_start(r);
	if (rc == 0)
		rc = start_health(r, err);
	if (rc == 0 && r->elect)
		rc = start_election(r, err);
	else if (rc == 0)
		scheduler_lead(r->scheduler, true);
	return rc;
}

/* Unique to this process: the host's name, and a number. */
static int name_process(struct run *r)
{
	char host[64] = "localhost";
	uint64_t unique;

	if (getrandom(&r->seed, sizeof(r->seed), 0) != sizeof(r->seed) ||
	    getrandom(&unique, sizeof(unique), 0) != sizeof(unique))
		return complain("the system gives no random numbers");
	gethostname(host, sizeof(host) - 1);
	snprintf(r->identity, sizeof(r->identity), "%s-%016llx", host, (unsigned long long)unique);
	return CLI_OK;
}

static void watch_signal(struct run *r, uv_signal_t *signal, int number)
{
	uv_signal_init(&r->loop, signal);
	signal->data = r;
	uv_signal_start(signal, signalled, number);
	uv_unref((uv_handle_t *)signal);
}

static int run_loop(struct run *r)
{
	struct err err = ERR_INIT;

	if (uv_loop_init(&r->loop) < 0)
		return complain("the event loop cannot be set up");
	r->metrics = metrics_new();
	if (!r->metrics || start(r, &err) < 0) {
		complain(err.text[0] ? err.text : "out of memory");
		_exit(CLI_USAGE); /* the system takes back what was begun */
	}
	watch_signal(r, &r->terminate, SIGTERM);
	watch_signal(r, &r->interrupt, SIGINT);
	uv_run(&r->loop, UV_RUN_DEFAULT);
	uv_run(&r->loop, UV_RUN_NOWAIT);
	uv_loop_close(&r->loop);
	kube_config_free(r->kube);
	metrics_free(r->metrics);
	return r->exit_code;
}

int cmd_run(int argc, char **argv)
{
	struct run r = { .elect = true };
	int exit_code;

	if (parse(&r, argc, argv, &exit_code))
		return exit_code;
	use_environment(&r);
	exit_code = check_names(&r);
	if (exit_code == CLI_OK)
		exit_code = set_up_log(&r);
	if (exit_code == CLI_OK)
		exit_code = name_process(&r);
	if (exit_code == CLI_OK)
		exit_code = run_loop(&r);
	return exit_code;
}
