/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.c - who waits, and when what is made fresh. */
#include "kube/credentials.h"

#include "base/clock.h"
#include "kube/config.h"
#include "kube/credentials_private.h"
#include "kube/exec_plugin.h"

#include <errno.h>
#include <stdlib.h>

#define LOOK_MS	      60000 /* between looks at files */
#define LOOK_AGAIN_MS 5000  /* after one that went wrong */
#define HEADERS_MAX   ((size_t)4 << 20)

static void look(struct kube_credentials *credentials, bool force)
{
	struct err err = ERR_INIT;
	credentials_files_look(credentials, force);
	if (credentials->stale && credentials_headers_renew(credentials, &err) < 0)
		credentials->problem = err;
	credentials->look_ms = clock_monotonic_ms(credentials->clock) +
			       (credentials->problem.code ? LOOK_AGAIN_MS : LOOK_MS);
}

/* --- From beginning to end --- */

static void credentials_free(struct kube_credentials *credentials)
{
	credentials_files_done(credentials);
	exec_credential_done(&credentials->exec.current);
	strbuf_done(&credentials->authorization);
	arena_done(&credentials->arena);
	free(credentials);
}

/* A token of the config will do until that of the file can be read. */
static bool is_complete(const struct kube_credentials *credentials)
{
	const struct kube_config *config = credentials->config;
	bool ca = config->ca_file || config->ca_data;
	bool cert = config->cert_file || config->cert_data;
	return (!ca || credentials->ca.fd >= 0) && (!cert || credentials->cert.fd >= 0) &&
	       (!config->token_file || config->token || credentials->token.len > 0);
}

static int begin(struct kube_credentials *credentials, struct err *err)
{
	int result = credentials_headers_impersonate(credentials, err);
	if (result < 0)
		return result;
	credentials_files_look(credentials, true);
	if (!is_complete(credentials)) {
		err_set(err, credentials->problem.code, "%s", credentials->problem.text);
		return -credentials->problem.code;
	}
	if ((result = credentials_headers_renew(credentials, err)) < 0)
		return result;
	credentials->look_ms = clock_monotonic_ms(credentials->clock) +
			       (credentials->problem.code ? LOOK_AGAIN_MS : LOOK_MS);
	return 0;
}

int kube_credentials_new(uv_loop_t *loop, const struct kube_config *config,
			 const struct clock *clock, struct kube_credentials **ret, struct err *err)
{
	struct err ignored = ERR_INIT;
	struct kube_credentials *credentials = calloc(1, sizeof(*credentials));
	err = err ? err : &ignored;
	if (!credentials)
		return err_set(err, ENOMEM, "cannot keep credentials: out of memory");
	credentials->loop = loop;
	credentials->config = config;
	credentials->clock = clock;
	arena_init(&credentials->arena, HEADERS_MAX);
	credentials_files_init(credentials);
	int result = begin(credentials, err);
	if (result < 0) {
		credentials_free(credentials);
		return result;
	}
	uv_timer_init(loop, &credentials->closer);
	credentials->closer.data = credentials;
	*ret = credentials;
	return 0;
}

static void on_closer_closed(uv_handle_t *handle)
{
	struct kube_credentials *credentials = handle->data;
	void (*closed)(void *context) = credentials->closed;
	void *context = credentials->closed_context;
	credentials_free(credentials);
	if (closed)
		closed(context);
}

void credentials_closing(struct kube_credentials *credentials)
{
	if (!credentials->exec.running)
		uv_close((uv_handle_t *)&credentials->closer, on_closer_closed);
}

void kube_credentials_close(struct kube_credentials *credentials, void (*closed)(void *context),
			    void *context)
{
	struct err err = ERR_INIT;
	if (!credentials) {
		if (closed)
			closed(context);
		return;
	}
	credentials->closing = true;
	credentials->closed = closed;
	credentials->closed_context = context;
	err_set(&err, ECANCELED, "the client is being closed");
	credentials_serve(credentials, &err);
	if (credentials->exec.running)
		exec_plugin_stop(credentials->exec.running);
	credentials_closing(credentials);
}

/* --- Who waits --- */

static struct kube_auth_wait **list_end(struct kube_auth_wait **list)
{
	while (*list)
		list = &(*list)->next;
	return list;
}

void kube_auth_cancel(struct kube_auth_wait *wait)
{
	if (!wait->link)
		return;
	*wait->link = wait->next;
	if (wait->next)
		wait->next->link = wait->link;
	wait->next = NULL;
	wait->link = NULL;
}

/* A callback may ask again and wait for the next run, cancel another or close all: those
 * who are served now stand in a list of their own. */
void credentials_serve(struct kube_credentials *credentials, const struct err *err)
{
	struct kube_auth_wait *wait = credentials->waiting;
	if (wait) {
		struct kube_auth_wait **end = list_end(&credentials->serving);
		*end = wait;
		wait->link = end;
		credentials->waiting = NULL;
	}
	while ((wait = credentials->serving)) {
		kube_auth_cancel(wait);
		wait->ready(wait->context, err ? NULL : &credentials->auth, err);
	}
}

void kube_credentials_get(struct kube_credentials *credentials, struct kube_auth_wait *wait)
{
	struct err err = ERR_INIT;
	enum exec_answer answer = EXEC_GIVE;
	wait->next = NULL;
	wait->link = NULL;
	if (credentials->closing) {
		err_set(&err, ECANCELED, "the client is being closed");
		wait->ready(wait->context, NULL, &err);
		return;
	}
	if (clock_monotonic_ms(credentials->clock) >= credentials->look_ms)
		look(credentials, false);
	if (credentials->config->exec)
		answer = credentials_exec_ask(credentials);
	if (answer == EXEC_WAIT) {
		wait->link = list_end(&credentials->waiting);
		*wait->link = wait;
	} else if (answer == EXEC_FAIL) {
		err = credentials->exec.failure;
		wait->ready(wait->context, NULL, &err);
	} else {
		wait->ready(wait->context, &credentials->auth, NULL);
	}
}

/* --- What the server said --- */

void kube_credentials_refused(struct kube_credentials *credentials, uint64_t generation)
{
	if (credentials->closing || generation != credentials->auth.generation)
		return;
	look(credentials, true);
	if (credentials->config->exec)
		credentials_exec_refused(credentials);
}

void kube_credentials_tls_failed(struct kube_credentials *credentials)
{
	if (!credentials->closing)
		look(credentials, true);
}

const char *kube_credentials_problem(const struct kube_credentials *credentials)
{
	if (credentials->problem.code)
		return credentials->problem.text;
	return credentials->exec.failure.code ? credentials->exec.failure.text : NULL;
}
