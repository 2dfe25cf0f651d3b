/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/role.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/commands.h"
#include "kube/client.h"
#include "kube/config.h"
#include "wire/health.h"
#include "wire/metrics.h"

#define HEALTH_DEFAULT ":8080"

/* ---- options ---- */

size_t role_cluster_specs(struct role *role, struct option_spec *ret)
{
	ret[0] = (struct option_spec){ .name = "kubeconfig",
				       .value = "FILE",
				       .help = "how to reach the cluster (default: $KUBECONFIG,\n"
					       "~/.kube/config, the pod's own account)",
				       .string = &role->kubeconfig };
	ret[1] = (struct option_spec){ .name = "master",
				       .value = "URL",
				       .help = "the API server, whatever the kubeconfig says",
				       .string = &role->master };
	return 2;
}

size_t role_probe_specs(struct role *role, struct option_spec *ret)
{
	ret[0] = (struct option_spec){
		.name = "health-addr",
		.value = "ADDR",
		.help = "where /healthz, /readyz and the like are served, in\n"
			"the clear (default " HEALTH_DEFAULT "; none: nowhere)",
		.string = &role->health_addr
	};
	ret[1] = (struct option_spec){ .name = "metrics-addr",
				       .value = "ADDR",
				       .help = "where /metrics is served (default: the same)",
				       .string = &role->metrics_addr };
	return 2;
}

size_t role_log_specs(struct role *role, struct option_spec *ret)
{
	ret[0] = (struct option_spec){ .name = "log-level",
				       .value = "LEVEL",
				       .help = "error, warn, info, debug (default: $LOG_LEVEL, "
					       "else info)",
				       .string = &role->log_level };
	ret[1] = (struct option_spec){ .name = "log-format",
				       .value = "FORM",
				       .help = "logfmt or json (default logfmt)",
				       .string = &role->log_format };
	return 2;
}

int role_complain(const struct role *role, const char *text)
{
	fprintf(stderr, "gpu-scheduler %s: %s\n", role->command, text);
	return CLI_USAGE;
}

_Noreturn void role_fail(const struct role *role, const struct err *err)
{
	_exit(role_complain(role, err->text[0] ? err->text : "out of memory"));
}

/* ---- the beginning ---- */

static int set_up_log(struct role *role, struct err *err)
{
	const char *level = role->log_level ? role->log_level : getenv("LOG_LEVEL");

	role->log = (struct log){ .fd = STDERR_FILENO, .level = LOG_INFO, .clock = &clock_system };
	if (level && *level && !log_level_parse(level, &role->log.level))
		return err_set(err, EINVAL,
			       "--log-level and LOG_LEVEL are error, warn, info or debug");
	if (role->log_format && !log_format_parse(role->log_format, &role->log.format))
		return err_set(err, EINVAL, "--log-format is logfmt or json");
	return 0;
}

int role_begin(struct role *role, struct err *err)
{
	int r = set_up_log(role, err);

	if (r < 0)
		return r;
	/* Who reads what we write may go, as clients and pipes do. */
	signal(SIGPIPE, SIG_IGN);
	if (getrandom(&role->seed, sizeof(role->seed), 0) != sizeof(role->seed))
		return err_set(err, EIO, "the system gives no random numbers");
	if (!(role->metrics = metrics_new()))
		return err_set(err, ENOMEM, "out of memory");
	if ((r = uv_loop_init(&role->loop)) < 0)
		return err_set(err, -r, "the event loop cannot be set up: %s", uv_strerror(r));
	return 0;
}

int role_connect(struct role *role, uint64_t stop_after_writes, struct err *err)
{
	const struct kube_config_source source = { .path = role->kubeconfig,
						   .master = role->master };
	int r = kube_config_load(&source, &role->kube, err);

	if (r < 0)
		return r;
	const struct kube_client_options options = { .loop = &role->loop,
						     .config = role->kube,
						     .clock = &clock_system,
						     .log = &role->log,
						     .seed = role->seed,
						     .stop_after_writes = stop_after_writes,
						     .metrics = role->metrics };

	return kube_client_new(&options, &role->client, err);
}

static int check_unserved(const struct role *role, struct err *err)
{
	if (!role->metrics_addr)
		return 0;
	return err_set(
		err, EINVAL,
		"--health-addr none serves no metrics at %s either: leave out one of the two",
		role->metrics_addr);
}

int role_serve(struct role *role, const struct role_probes *probes, struct err *err)
{
	const struct health_options options = {
		.loop = &role->loop,
		.log = &role->log,
		.addr = role->health_addr ? role->health_addr : HEALTH_DEFAULT,
		.metrics_addr = role->metrics_addr,
		.metrics = role->metrics,
		.ready = probes->ready,
		.refresh = probes->refresh,
		.context = probes->context,
	};

	if (strcmp(options.addr, "none") == 0)
		return check_unserved(role, err);
	return options_name_addr(health_new(&options, &role->health, err), "health-addr", err);
}

static void watch_signal(struct role *role, uv_signal_t *handle, int number, uv_signal_cb told)
{
	uv_signal_init(&role->loop, handle);
	uv_signal_start(handle, told, number);
	uv_unref((uv_handle_t *)handle);
}

void role_watch_signals(struct role *role, uv_signal_cb told, void *data)
{
	role->terminate.data = role->interrupt.data = data;
	watch_signal(role, &role->terminate, SIGTERM, told);
	watch_signal(role, &role->interrupt, SIGINT, told);
	role->watches = true;
}

/* ---- the end ---- */

static void client_closed(void *context)
{
	struct role *role = context;

	role->client = NULL;
}

void role_close(struct role *role)
{
	health_free(role->health);
	role->health = NULL;
	if (role->watches) {
		uv_close((uv_handle_t *)&role->terminate, NULL);
		uv_close((uv_handle_t *)&role->interrupt, NULL);
	}
	role->watches = false;
	if (role->client)
		kube_client_close(role->client, client_closed, role);
}

void role_done(struct role *role)
{
	uv_loop_close(&role->loop);
	kube_config_free(role->kube);
	role->kube = NULL;
	metrics_free(role->metrics);
	role->metrics = NULL;
}
