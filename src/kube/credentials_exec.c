/* SPDX-License-Identifier: Apache-2.0 */
/* credentials_exec.c - what a plugin gives: how long it is kept, when it runs again. */
#include "base/clock.h"
#include "kube/config.h"
#include "kube/credentials_private.h"
#include "kube/exec_plugin.h"

#include <errno.h>
#include <inttypes.h>

#define NS_PER_S       INT64_C(1000000000)
#define MARGIN_NS      (10 * NS_PER_S) /* a new one is fetched so long before the end */
#define BACKOFF_MS     1000
#define BACKOFF_MAX_MS 60000
#define CALM_MS	       120000 /* credentials refused after so long were good */

static uint64_t backoff_ms(uint32_t times)
{
	uint32_t doublings = times > 0 ? times - 1 : 0;
	return doublings >= 6 ? BACKOFF_MAX_MS : (uint64_t)BACKOFF_MS << doublings;
}

/* --- What comes of a run --- */

/* A credential that ends soon is used to its end. */
static int64_t refresh_at(const struct exec_credential *reply, int64_t now_wall_ns)
{
	if (!reply->expires)
		return INT64_MAX;
	bool soon = reply->expires_wall_ns - now_wall_ns < 2 * MARGIN_NS;
	return soon ? reply->expires_wall_ns : reply->expires_wall_ns - MARGIN_NS;
}

static int check_expiry(const struct kube_credentials *credentials,
			const struct exec_credential *reply, struct err *err)
{
	char when[CLOCK_TEXT_MAX];
	if (!reply->expires || reply->expires_wall_ns > clock_wall_ns(credentials->clock))
		return 0;
	return err_set(
		err, EINVAL,
		"the credential plugin %s (%s) gave credentials that have expired at %s; is "
		"the clock right?",
		credentials->config->exec->command, credentials->config->user_origin,
		clock_format(reply->expires_wall_ns, when));
}

/* The pair of the kubeconfig goes before that of a plugin, as with kubectl. */
static bool has_own_pair(const struct kube_config *config)
{
	return config->cert_file || config->cert_data;
}

static int adopt(struct kube_credentials *credentials, struct exec_credential *reply,
		 struct err *err)
{
	struct exec_state *exec = &credentials->exec;
	int result = check_expiry(credentials, reply, err);
	if (result < 0)
		return result;
	if (reply->key && !has_own_pair(credentials->config)) {
		result = credentials_files_set_pair(credentials, reply->certificate, reply->key,
						    err);
		if (result < 0) {
			err_prefix(err, "the credential plugin %s (%s)",
				   credentials->config->exec->command,
				   credentials->config->user_origin);
			return result;
		}
	}
	struct exec_credential former = exec->current;
	exec->current = *reply;
	if ((result = credentials_headers_renew(credentials, err)) < 0) {
		exec->current = former;
		return result;
	}
	*reply = (struct exec_credential){ 0 };
	exec_credential_done(&former);
	exec->refresh_wall_ns = refresh_at(&exec->current, clock_wall_ns(credentials->clock));
	exec->since_ms = clock_monotonic_ms(credentials->clock);
	exec->refused = false;
	return 0;
}

static void on_done(void *context, struct exec_credential *reply, const struct err *err)
{
	struct kube_credentials *credentials = context;
	struct exec_state *exec = &credentials->exec;
	struct err why = ERR_INIT;
	exec->running = NULL;
	if (credentials->closing) {
		credentials_closing(credentials);
		return;
	}
	if (err)
		why = *err;
	else
		adopt(credentials, reply, &why);
	exec->failure = why;
	if (why.code) {
		exec->failures++;
		exec->retry_ms =
			clock_monotonic_ms(credentials->clock) + backoff_ms(exec->failures);
	} else {
		exec->failures = 0;
	}
	credentials_serve(credentials, why.code ? &why : NULL);
}

/* --- Who asks --- */

static bool may_run(const struct kube_credentials *credentials)
{
	return !credentials->exec.running &&
	       clock_monotonic_ms(credentials->clock) >= credentials->exec.retry_ms;
}

static void run(struct kube_credentials *credentials)
{
	struct exec_state *exec = &credentials->exec;
	const char *ca = credentials->ca.fd >= 0 ? credentials->ca.text.s : NULL;
	if (exec_plugin_start(credentials->loop, credentials->config, ca, on_done, credentials,
			      &exec->running, &exec->failure) == 0)
		return;
	exec->running = NULL;
	exec->failures++;
	exec->retry_ms = clock_monotonic_ms(credentials->clock) + backoff_ms(exec->failures);
}

enum exec_answer credentials_exec_ask(struct kube_credentials *credentials)
{
	struct exec_state *exec = &credentials->exec;
	int64_t now_wall_ns = clock_wall_ns(credentials->clock);
	bool alive = exec->current.doc &&
		     (!exec->current.expires || now_wall_ns < exec->current.expires_wall_ns);
	bool good = alive && !exec->refused;
	if ((!good || now_wall_ns >= exec->refresh_wall_ns) && may_run(credentials))
		run(credentials);
	if (good)
		return EXEC_GIVE;
	if (exec->running)
		return EXEC_WAIT;
	return alive && !exec->failure.code ? EXEC_GIVE : EXEC_FAIL;
}

void credentials_exec_refused(struct kube_credentials *credentials)
{
	struct exec_state *exec = &credentials->exec;
	uint64_t now_ms = clock_monotonic_ms(credentials->clock);
	if (!exec->current.doc || exec->refused)
		return;
	exec->refused = true;
	exec->refusals = now_ms - exec->since_ms >= CALM_MS ? 1 : exec->refusals + 1;
	if (exec->refusals > 1) /* the first time at once */
		exec->retry_ms = now_ms + backoff_ms(exec->refusals - 1);
}
