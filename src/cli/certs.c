/* SPDX-License-Identifier: Apache-2.0 */
/* certs.c - `gpu-scheduler certs`: the webhook's certificate, made and renewed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/role.h"
#include "kube/config.h"
#include "webhook/certs_keep.h"

#define SERVICE_DEFAULT "gpu-scheduler-webhook"
#define SECRET_DEFAULT	"gpu-scheduler-webhook-cert"
#define HOUR_MS		UINT64_C(3600000)
#define AGAIN_MS	UINT64_C(60000) /* after a failure, where it goes on for ever */
#define LOOK_MS		UINT64_C(10000) /* else: what is not told yet refuses pods */
#define SETTLE_S_MAX	600
#define WHERE_BYTES	512
#define NAMES_OWN	2 /* <service>.<namespace>.svc, and that in cluster.local */

struct certs_run {
	struct role role;

	/* As given. */
	const char *folder, *namespace, *service, *secret, *configuration;
	struct option_list names;
	uint64_t days, overlap_hours, settle_s, every_hours;
	uint64_t renew_days; /* 0: not said */

	char service_name[256], service_long[288];
	uv_timer_t timer;
	bool stopping;
	struct certs_keep *keep;
	struct certs_keep_options options;
	unsigned found;	  /* configurations, in the last round */
	uint64_t said_ms; /* when it was last said how things are; 0: never, or they went wrong */
	int exit_code;
};

/* Where certificates are, and whose they are. */
static size_t place_specs(struct certs_run *r, struct option_spec *ret)
{
	const struct option_spec specs[] = {
		{ .name = "dir",
		  .value = "FOLDER",
		  .help = "write ca.crt, tls.crt and tls.key there, not a Secret",
		  .string = &r->folder },
		{ .name = "namespace",
		  .letter = 'n',
		  .value = "NAME",
		  .help = "of the service and the Secret (default: the pod's own,\n"
			  "else " ROLE_NAMESPACE ")",
		  .string = &r->namespace },
		{ .name = "service",
		  .value = "NAME",
		  .help = "whom the certificate is for (default " SERVICE_DEFAULT ")",
		  .string = &r->service },
		{ .name = "name",
		  .value = "NAME",
		  .help = "another name or IP address that it is for; may be repeated",
		  .list = &r->names },
		{ .name = "secret",
		  .value = "NAME",
		  .help = "where it is kept (default " SECRET_DEFAULT ")",
		  .string = &r->secret },
		{ .name = "configuration",
		  .value = "NAME",
		  .help = "the webhook configurations whose caBundle is set (default\n"
			  "" SERVICE_DEFAULT ", or none with --dir; none: none)",
		  .string = &r->configuration },
	};

	memcpy(ret, specs, sizeof(specs));
	return ARRAY_SIZE(specs);
}

/* For how long, and when. */
static size_t time_specs(struct certs_run *r, struct option_spec *ret)
{
	const struct option_spec specs[] = {
		{ .name = "days",
		  .value = "N",
		  .help = "how long it is valid (default 365)",
		  .number = &r->days,
		  .number_min = 1,
		  .number_max = 3650 },
		{ .name = "renew-before",
		  .value = "DAYS",
		  .help = "before its end a new one is made (default 90, at most a third\n"
			  "of its time)",
		  .number = &r->renew_days,
		  .number_min = 1,
		  .number_max = 3650 },
		{ .name = "overlap",
		  .value = "HOURS",
		  .help = "so long the old authority is trusted beside the new (default 24)",
		  .number = &r->overlap_hours,
		  .number_max = 24 * 365 },
		{ .name = "settle",
		  .value = "SECONDS",
		  .help = "between trusting a new authority and using it (default 10)",
		  .number = &r->settle_s,
		  .number_max = SETTLE_S_MAX },
		{ .name = "every",
		  .value = "HOURS",
		  .help = "do not end: look again every few seconds, so that configurations\n"
			  "that come later are told, too; every HOURS say that all is well",
		  .number = &r->every_hours,
		  .number_min = 1,
		  .number_max = 24 * 365 },
	};

	memcpy(ret, specs, sizeof(specs));
	return ARRAY_SIZE(specs);
}

static bool parse(struct certs_run *r, int argc, char **argv, int *exit_code)
{
	struct option_spec specs[OPTION_SPECS_MAX];
	size_t count = place_specs(r, specs);

	count += time_specs(r, specs + count);
	count += role_cluster_specs(&r->role, specs + count);
	count += role_log_specs(&r->role, specs + count);
	const struct options options = {
		.command = "certs",
		.summary = "Make the certificate of the webhook and the authority that signs it, "
			   "renew them\nin time, and tell the API server whom to trust.  Does "
			   "nothing while all is well.\nA certificate that somebody else has made "
			   "is neither renewed nor replaced.",
		.specs = specs,
		.spec_count = count,
	};

	return options_done(&options, argc, argv, NULL, exit_code);
}

/* Of rounds that come every few seconds nearly all find what the last one left. */
static bool is_news(struct certs_run *r, const struct certs_kept *kept)
{
	uint64_t now_ms = uv_now(&r->role.loop);
	bool news = !r->said_ms || kept->renewed || kept->stored || kept->told ||
		    kept->found != r->found || now_ms - r->said_ms >= r->every_hours * HOUR_MS;

	r->found = kept->found;
	if (news)
		r->said_ms = MAX(now_ms, 1);
	return news;
}

/* Without the authority in its caBundle the API server trusts nobody, and what guards is
 * refused: who installs step by step has to hear of the one that is missing. */
static void report_next(const struct certs_run *r, const struct certs_kept *kept)
{
	const char *name = r->options.configuration;

	if (name && !kept->found)
		log_warn(&r->role.log, "no webhook configuration is there that calls it",
			 LOG_STR("name", name), LOG_STR("service", r->service_name),
			 LOG_STR("next", r->every_hours
						 ? "start the webhook, then kubectl apply -f "
						   "deploy/webhook/configuration.yaml: it will be "
						   "told within seconds"
						 : "start the webhook, then kubectl apply -f "
						   "deploy/webhook/configuration.yaml and run "
						   "this command again"));
	else if (!name && !r->configuration && kept->renewed)
		log_info(&r->role.log, "no webhook configuration was told of it",
			 LOG_STR("next", "the same command with --configuration=" SERVICE_DEFAULT
					 ", once deploy/webhook/configuration.yaml is applied"));
}

static void say_where(const struct certs_run *r, char ret[WHERE_BYTES])
{
	if (r->folder)
		snprintf(ret, WHERE_BYTES, "%s", r->folder);
	else
		snprintf(ret, WHERE_BYTES, "Secret %s/%s", r->options.namespace,
			 r->options.secret);
}

/* What has been done, for people and for logs. */
static void report(const struct certs_run *r, const struct certs_kept *kept)
{
	char until[CLOCK_TEXT_MAX], where[WHERE_BYTES];

	say_where(r, where);
	clock_format(kept->until_s * 1000000000, until);
	if (kept->renewed)
		log_info(&r->role.log, "made a certificate", LOG_STR("why", kept->why),
			 LOG_STR("where", where), LOG_STR("until", until),
			 LOG_U64("configurations", kept->found), LOG_U64("changed", kept->told));
	else
		log_info(&r->role.log, "the certificate is good", LOG_STR("where", where),
			 LOG_STR("until", until), LOG_U64("configurations", kept->found),
			 LOG_U64("changed", kept->told));
	if (kept->theirs && *kept->why)
		log_warn(&r->role.log, "who made the certificate has to renew it",
			 LOG_STR("why", kept->why), LOG_STR("where", where),
			 LOG_STR("until", until));
	report_next(r, kept);
}

static void start_round(struct certs_run *r);

static void on_timer(uv_timer_t *timer)
{
	start_round(timer->data);
}

static void stop(struct certs_run *r)
{
	uv_close((uv_handle_t *)&r->timer, NULL);
	role_close(&r->role);
}

/* A round that has begun is ended first: it may have told one configuration of two. */
static void on_signal(uv_signal_t *signal, int number)
{
	struct certs_run *r = signal->data;

	if (r->stopping)
		return;
	r->stopping = true;
	log_info(&r->role.log, "stopping", LOG_STR("signal", strsignal(number)));
	if (!r->keep)
		stop(r);
}

/* The round is over, but its memory must not go before this returns. */
static void on_over(uv_timer_t *timer)
{
	struct certs_run *r = timer->data;

	certs_keep_free(r->keep);
	r->keep = NULL;
	if (!r->every_hours || r->stopping)
		stop(r);
	else
		uv_timer_start(&r->timer, on_timer, r->exit_code == CLI_OK ? LOOK_MS : AGAIN_MS,
			       0);
}

static void on_done(void *context, int rc, const struct certs_kept *kept, const struct err *err)
{
	struct certs_run *r = context;

	r->exit_code = rc < 0 ? CLI_NO : CLI_OK;
	if (rc < 0) {
		char where[WHERE_BYTES];

		say_where(r, where);
		log_error(&r->role.log, "the certificate is not in order", LOG_STR("where", where),
			  LOG_STR("error", err->text));
		r->said_ms = 0;
	} else if (is_news(r, kept)) {
		report(r, kept);
	}
	uv_timer_start(&r->timer, on_over, 0, 0);
}

static void start_round(struct certs_run *r)
{
	struct err err = ERR_INIT;

	if (certs_keep_start(&r->options, &r->keep, &err) < 0)
		on_done(r, -err.code, &(struct certs_kept){ 0 }, &err);
}

/* The namespace that is meant, once it is known where we run. */
static const char *namespace_of(const struct certs_run *r)
{
	if (r->namespace)
		return r->namespace;
	return r->role.kube && r->role.kube->in_cluster ? r->role.kube->namespace : ROLE_NAMESPACE;
}

static int order_names(struct certs_run *r, struct certs_order *order, struct err *err)
{
	const char *service = r->service ? r->service : SERVICE_DEFAULT;
	size_t room = sizeof(r->service_name);

	if ((size_t)snprintf(r->service_name, room, "%s.%s.svc", service, namespace_of(r)) >= room)
		return err_set(err, EINVAL, "the name of the service is too long");
	snprintf(r->service_long, sizeof(r->service_long), "%s.cluster.local", r->service_name);
	if (r->names.count + NAMES_OWN > CERTS_NAMES_MAX)
		return err_set(err, EINVAL, "--name may be given at most %d times",
			       CERTS_NAMES_MAX - NAMES_OWN);
	order->names[order->names_count++] = r->service_name;
	for (size_t i = 0; i < r->names.count; i++)
		order->names[order->names_count++] = r->names.items[i];
	/* By which no API server calls. */
	order->names[order->names_count++] = r->service_long;
	order->names_spare = 1;
	return certs_order_check(order, err);
}

static const char *configuration_of(const struct certs_run *r)
{
	if (!r->configuration)
		return r->folder ? NULL : SERVICE_DEFAULT;
	return strcmp(r->configuration, "none") == 0 ? NULL : r->configuration;
}

static int prepare(struct certs_run *r, struct err *err)
{
	bool remote = !r->folder || configuration_of(r);
	int rc = remote ? role_connect(&r->role, 0, err) : 0;

	if (rc < 0)
		return rc;
	r->options = (struct certs_keep_options){
		.loop = &r->role.loop,
		.clock = &clock_system,
		.client = r->role.client,
		.order = { .days = (uint32_t)r->days,
			   .renew_hours = r->renew_days ? (uint32_t)r->renew_days * 24
							: certs_renew_hours((uint32_t)r->days),
			   .overlap_hours = (uint32_t)r->overlap_hours },
		.folder = r->folder,
		.namespace = namespace_of(r),
		.secret = r->secret ? r->secret : SECRET_DEFAULT,
		.configuration = configuration_of(r),
		.settle_ms = (uint32_t)(r->settle_s * 1000),
		.done = on_done,
		.context = r,
	};
	return order_names(r, &r->options.order, err);
}

int cmd_certs(int argc, char **argv)
{
	struct certs_run r = {
		.role = { .command = "certs" },
		.days = CERTS_DAYS,
		.overlap_hours = CERTS_OVERLAP_HOURS,
		.settle_s = CERTS_SETTLE_MS / 1000,
	};
	struct err err = ERR_INIT;

	if (parse(&r, argc, argv, &r.exit_code))
		return r.exit_code;
	if (role_begin(&r.role, &err) < 0 || prepare(&r, &err) < 0)
		role_fail(&r.role, &err);
	uv_timer_init(&r.role.loop, &r.timer);
	r.timer.data = &r;
	/* In a container nobody else ends the first process: without a handler a signal is
	 * lost. */
	if (r.every_hours)
		role_watch_signals(&r.role, on_signal, &r);
	start_round(&r);
	uv_run(&r.role.loop, UV_RUN_DEFAULT);
	role_done(&r.role);
	return r.exit_code;
}
