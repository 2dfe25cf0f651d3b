/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c - `gpu-scheduler webhook`: pods completed and checked as they are created. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/role.h"
#include "webhook/lookup.h"
#include "webhook/review.h"
#include "webhook/server.h"

#define ADDR_DEFAULT ":8443"
#define CERT_DEFAULT "/certs/tls.crt"
#define KEY_DEFAULT  "/certs/tls.key"

#define NOT_READY_MS 5000  /* after a signal, while the API server may still find us */
#define GRACE_MS     10000 /* for what is in flight then */
#define ACCOUNT_MAX  320   /* a namespace has 63 characters, an account 253 */

struct webhook {
	struct role role;

	/* As given. */
	struct option_list names, accounts, inject;
	const char *addr, *cert_file, *key_file, *injection, *set_scheduler;
	bool other_schedulers, claims, copy_annotations;
	uint64_t linger_ms;

	struct webhook_options reviews;
	char default_accounts[3][ACCOUNT_MAX];
	uv_timer_t linger;
	struct webhook_server *server;
	struct webhook_lookup *lookup; /* NULL where nothing is read */
	bool stopping;
};

/* ---- options ---- */

/* Where it serves, and how it ends. */
static size_t server_specs(struct webhook *w, struct option_spec *ret)
{
	const struct option_spec specs[] = {
		{ .name = "addr",
		  .value = "ADDR",
		  .help = "where /mutate and /validate are served (default " ADDR_DEFAULT ")",
		  .string = &w->addr },
		{ .name = "tls-cert-file",
		  .value = "FILE",
		  .help = "certificate, PEM, with what lies between it and the authority\n"
			  "(default " CERT_DEFAULT "); a new one is taken up at once",
		  .string = &w->cert_file },
		{ .name = "tls-private-key-file",
		  .value = "FILE",
		  .help = "its key (default " KEY_DEFAULT ")",
		  .string = &w->key_file },
		{ .name = "linger-ms",
		  .value = "MS",
		  .help = "how long it serves on after SIGTERM, not ready any more, for API\n"
			  "servers that have not heard of it yet (default 5000)",
		  .number = &w->linger_ms,
		  .number_max = 600000 },
	};

	memcpy(ret, specs, sizeof(specs));
	return ARRAY_SIZE(specs);
}

/* What becomes of pods. */
static size_t review_specs(struct webhook *w, struct option_spec *ret)
{
	const struct option_spec specs[] = {
		{ .name = "scheduler-name",
		  .value = "NAME",
		  .help = "pods with this spec.schedulerName are ours; may be repeated\n"
			  "(default: $SCHEDULER_NAME, else gpu-scheduler and\n"
			  "topology-aware-scheduler)",
		  .list = &w->names },
		{ .name = "account",
		  .value = "USER",
		  .help = "may write decisions to pods; may be repeated (default: the service\n"
			  "accounts scheduler, extender and controller of $POD_NAMESPACE, else\n"
			  "of " ROLE_NAMESPACE ")",
		  .list = &w->accounts },
		{ .name = "injection",
		  .value = "MODE",
		  .help = "how GPUs get into containers, where all nodes are alike: all\n"
			  "(containers see every GPU of the node, CUDA_VISIBLE_DEVICES is what\n"
			  "limits them), cdi (our agent hands them out), env (NVIDIA's runtime\n"
			  "does), external (NVIDIA's device plugin does). Without it,\n"
			  "CUDA_VISIBLE_DEVICES is what the scheduler writes for the node",
		  .string = &w->injection },
		{ .name = "inject",
		  .value = "WHAT",
		  .help = "what else containers with GPUs get: nvidia, mps, mps=FOLDER,\n"
			  "runtimeclass=NAME; may be repeated",
		  .list = &w->inject },
		{ .name = "set-scheduler",
		  .value = "NAME",
		  .help = "give this scheduler to pods that ask for GPUs and name none",
		  .string = &w->set_scheduler },
		{ .name = "other-schedulers",
		  .help = "pods of other schedulers that ask for nvidia.com/gpu get variables\n"
			  "too: where kube-scheduler asks our extender",
		  .flag = &w->other_schedulers },
		{ .name = "claims",
		  .help = "read GpuClaims, for variables that only these ask for: NCCL, cuFile,\n"
			  "MPS; the account needs the right (deploy/webhook/optional/reader.yaml)",
		  .flag = &w->claims },
		{ .name = "copy-owner-annotations",
		  .help = "read owners of pods, and give pods their topology.scheduler/\n"
			  "annotations; the account needs the right",
		  .flag = &w->copy_annotations },
	};

	memcpy(ret, specs, sizeof(specs));
	return ARRAY_SIZE(specs);
}

static bool parse(struct webhook *w, int argc, char **argv, int *exit_code)
{
	struct option_spec specs[OPTION_SPECS_MAX];
	size_t count = server_specs(w, specs);

	count += review_specs(w, specs + count);
	count += role_cluster_specs(&w->role, specs + count);
	count += role_probe_specs(&w->role, specs + count);
	count += role_log_specs(&w->role, specs + count);
	const struct options options = {
		.command = "webhook",
		.summary = "Completes pods that get GPUs as they are created, and refuses those "
			   "that would\ngrant themselves some: an admission webhook of the API "
			   "server.",
		.specs = specs,
		.spec_count = count,
	};

	return !options_done(&options, argc, argv, NULL, exit_code);
}

static const char *or_default(const char *value, const char *otherwise)
{
	return value && *value ? value : otherwise;
}

static void use_defaults(struct webhook *w)
{
	static const char *const roles[] = { "scheduler", "extender", "controller" };
	const char *namespace = or_default(getenv("POD_NAMESPACE"), ROLE_NAMESPACE);
	const char *name = getenv("SCHEDULER_NAME");

	w->addr = or_default(w->addr, ADDR_DEFAULT);
	w->cert_file = or_default(w->cert_file, CERT_DEFAULT);
	w->key_file = or_default(w->key_file, KEY_DEFAULT);
	if (!w->names.count && name && *name)
		w->names.items[w->names.count++] = name;
	for (size_t i = 0; !w->accounts.count && i < ARRAY_SIZE(roles); i++)
		snprintf(w->default_accounts[i], ACCOUNT_MAX, "system:serviceaccount:%.63s:%s",
			 namespace, roles[i]);
	for (size_t i = 0; i < ARRAY_SIZE(roles) && w->default_accounts[i][0]; i++)
		w->accounts.items[w->accounts.count++] = w->default_accounts[i];
}

static int set_up_reviews(struct webhook *w, struct err *err)
{
	struct webhook_options *reviews = &w->reviews;
	int r = 0;

	*reviews = webhook_options_default;
	if (w->names.count) {
		reviews->schedulers = w->names.items;
		reviews->schedulers_count = w->names.count;
	}
	reviews->accounts = w->accounts.items;
	reviews->accounts_count = w->accounts.count;
	reviews->set_scheduler = w->set_scheduler;
	reviews->other_schedulers = w->other_schedulers;
	if (w->injection)
		r = webhook_injection_parse(w->injection, &reviews->injection, err);
	for (size_t i = 0; r == 0 && i < w->inject.count; i++)
		r = webhook_inject_add(reviews, w->inject.items[i], err);
	return r < 0 ? r : webhook_options_check(reviews, err);
}

/* ---- the end ---- */

static void server_closed(void *context)
{
	struct webhook *w = context;

	w->server = NULL;
	webhook_lookup_free(w->lookup);
	w->lookup = NULL;
	uv_close((uv_handle_t *)&w->linger, NULL);
	role_close(&w->role);
}

static void lingered(uv_timer_t *timer)
{
	struct webhook *w = timer->data;

	webhook_server_close(w->server, GRACE_MS, server_closed, w);
}

/* The API server goes on asking until it has heard that this pod is no more, so that its
 * requests are served for a while. */
static void signalled(uv_signal_t *signal, int number)
{
	struct webhook *w = signal->data;

	if (w->stopping)
		return;
	w->stopping = true;
	log_info(&w->role.log, "stopping", LOG_STR("signal", strsignal(number)));
	webhook_server_retire(w->server);
	uv_timer_start(&w->linger, lingered, number == SIGINT ? 0 : w->linger_ms, 0);
}

/* ---- the beginning ---- */

static bool is_ready(void *context, struct strbuf *why)
{
	const struct webhook *w = context;

	if (w->stopping || !w->server) {
		strbuf_puts(why, w->stopping ? "stopping" : "starting");
		return false;
	}
	return !w->lookup || webhook_lookup_ready(w->lookup, why);
}

static void measure(void *context)
{
	struct webhook *w = context;

	if (w->server)
		webhook_server_measure(w->server);
	if (w->lookup)
		webhook_lookup_measure(w->lookup);
}

static void reviewed(void *context)
{
	struct webhook *w = context;

	if (w->lookup)
		webhook_lookup_reset(w->lookup);
}

/* Claims and owners, for those who want them. */
static int start_lookup(struct webhook *w, struct err *err)
{
	struct webhook_lookup_options lookup = { .log = &w->role.log,
						 .claims = w->claims,
						 .owners = w->copy_annotations };
	int r = role_connect(&w->role, 0, err);

	if (r < 0)
		return r;
	lookup.client = w->role.client;
	if ((r = webhook_lookup_new(&lookup, &w->lookup, err)) < 0)
		return r;
	w->reviews.lookup = webhook_lookup_dialect(w->lookup);
	w->reviews.copy_owner_annotations = w->copy_annotations;
	return 0;
}

static int start_server(struct webhook *w, struct err *err)
{
	const struct webhook_server_options options = { .loop = &w->role.loop,
							.log = &w->role.log,
							.metrics = w->role.metrics,
							.addr = w->addr,
							.cert_file = w->cert_file,
							.key_file = w->key_file,
							.reviews = &w->reviews,
							.reviewed = reviewed,
							.context = w };
	int r = webhook_server_new(&options, &w->server, err);

	if (r < 0 && err->code == ENOENT) {
		const struct err why = *err;

		return err_set(err, ENOENT,
			       "%s; `gpu-scheduler certs --dir FOLDER` makes a certificate, "
			       "--tls-cert-file and --tls-private-key-file say where it is",
			       why.text);
	}
	return options_name_addr(r, "addr", err);
}

static int start(struct webhook *w, struct err *err)
{
	const struct role_probes probes = { .ready = is_ready, .refresh = measure, .context = w };
	int r = role_serve(&w->role, &probes, err);

	if (r == 0 && (w->claims || w->copy_annotations))
		r = start_lookup(w, err);
	if (r == 0)
		r = start_server(w, err);
	if (r == 0)
		log_info(&w->role.log, "serving reviews", LOG_STR("addr", w->addr),
			 LOG_I64("port", webhook_server_port(w->server)));
	return r;
}

/* A client more is a descriptor more: as many as the system lets us have. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int cmd_webhook(int argc, char **argv)
{
	struct webhook w = { .role = { .command = "webhook" }, .linger_ms = NOT_READY_MS };
	struct err err = ERR_INIT;
	int exit_code;

	if (!parse(&w, argc, argv, &exit_code))
		return exit_code;
	use_defaults(&w);
	raise_descriptors();
	if (role_begin(&w.role, &err) < 0 || set_up_reviews(&w, &err) < 0 || start(&w, &err) < 0)
		role_fail(&w.role, &err);
	uv_timer_init(&w.role.loop, &w.linger);
	w.linger.data = &w;
	role_watch_signals(&w.role, signalled, &w);
	uv_run(&w.role.loop, UV_RUN_DEFAULT);
	role_done(&w.role);
	return CLI_OK;
}
