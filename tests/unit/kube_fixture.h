/* SPDX-License-Identifier: Apache-2.0 */
/* kube_fixture.h - a client with credentials of the test's making, and a server that
 * answers by a script.
 *
 *	setup();
 *	s.script[0] = (struct server_answer){ .code = 503 };
 *	...
 *	teardown();
 *
 * One executable has one of them.
 */
#ifndef GS_TESTS_KUBE_FIXTURE_H
#define GS_TESTS_KUBE_FIXTURE_H

#include "kube_server.h"
#include "test.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/credentials.h"
#include "wire/metrics.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Credentials as the test wants them, instead of those of credentials.c. */
struct kube_credentials {
	uint64_t generation, tls_generation;
	uint64_t refused; /* the generation that was refused last */
	unsigned refusals, tls_failures;
	bool waiting; /* nobody gets them now */
	const char *failure;
	struct kube_auth_wait *waiters;
};

static struct kube_credentials creds;

int kube_credentials_new(uv_loop_t *loop, const struct kube_config *config,
			 const struct clock *clock, struct kube_credentials **ret, struct err *err)
{
	(void)loop, (void)config, (void)clock, (void)err;
	*ret = &creds;
	return 0;
}

static inline void give(struct kube_auth_wait *wait)
{
	char token[64];
	static const char *const lines[] = { "Impersonate-User: someone" };
	snprintf(token, sizeof(token), "Bearer t%u", (unsigned)creds.generation);
	struct kube_auth auth = {
		.generation = creds.generation,
		.authorization = token,
		.impersonate = lines,
		.impersonate_count = 1,
		.tls_generation = creds.tls_generation,
	};
	struct err err = ERR_INIT;
	if (creds.failure) {
		err_set(&err, EIO, "%s", creds.failure);
		wait->ready(wait->context, NULL, &err);
	} else {
		wait->ready(wait->context, &auth, NULL);
	}
}

void kube_credentials_get(struct kube_credentials *credentials, struct kube_auth_wait *wait)
{
	if (!credentials->waiting) {
		give(wait);
		return;
	}
	wait->next = credentials->waiters;
	wait->link = &credentials->waiters;
	if (wait->next)
		wait->next->link = &wait->next;
	credentials->waiters = wait;
}

void kube_auth_cancel(struct kube_auth_wait *wait)
{
	if (!wait->link)
		return;
	*wait->link = wait->next;
	if (wait->next)
		wait->next->link = wait->link;
	wait->link = NULL;
}

static inline void creds_arrive(void)
{
	creds.waiting = false;
	while (creds.waiters) {
		struct kube_auth_wait *wait = creds.waiters;
		kube_auth_cancel(wait);
		give(wait);
	}
}

void kube_credentials_refused(struct kube_credentials *credentials, uint64_t generation)
{
	credentials->refused = generation;
	credentials->refusals++;
	credentials->generation++;
}

void kube_credentials_tls_failed(struct kube_credentials *credentials)
{
	credentials->tls_failures++;
}

const char *kube_credentials_problem(const struct kube_credentials *credentials)
{
	(void)credentials;
	return NULL;
}

void kube_credentials_close(struct kube_credentials *credentials, void (*closed)(void *context),
			    void *context)
{
	CHECK(!credentials || !credentials->waiters);
	if (closed)
		closed(context);
}

/* What the server does with the requests to come: the last one goes on for ever. */
#define SCRIPT_MAX 16

struct setup {
	uv_loop_t loop;
	struct server server;
	struct kube_config config;
	struct kube_client *client;
	struct metrics *metrics;
	struct log log;
	int log_fd;
	struct server_answer script[SCRIPT_MAX];
	char head[4096], path[2048], body[1024], method[16], order[64];
	char lines[2048]; /* "GET /path\n" of each request */
	bool closed;
};

static struct setup s;
static const struct clock *fixture_clock = &clock_system; /* of the client */

static inline void answer(void *context, const struct server_request *request,
			  struct server_answer *ret)
{
	(void)context;
	unsigned at = 0;
	while (at + 1 < SCRIPT_MAX && at + 1 < request->number &&
	       (s.script[at + 1].code || s.script[at + 1].how))
		at++;
	if (s.script[at].code || s.script[at].how)
		*ret = s.script[at];
	else
		ret->body = "{}";
	snprintf(s.head, sizeof(s.head), "%s", request->head);
	snprintf(s.path, sizeof(s.path), "%s", request->path);
	snprintf(s.method, sizeof(s.method), "%s", request->method);
	snprintf(s.body, sizeof(s.body), "%s", request->body);
	size_t used = strlen(s.lines);
	snprintf(s.lines + used, sizeof(s.lines) - used, "%s %s\n", request->method,
		 request->path);
	if (strlen(s.order) + 1 < sizeof(s.order))
		strncat(s.order, request->path + strlen(request->path) - 1, 1);
}

static inline void setup_with(uint32_t max_in_flight, const char *prefix)
{
	static char url[128];
	memset(&s, 0, sizeof(s));
	creds = (struct kube_credentials){ .generation = 1, .tls_generation = 1 };
	uv_loop_init(&s.loop);
	server_start(&s.server, &s.loop, answer, NULL);
	snprintf(url, sizeof(url), "%s%s", s.server.url, prefix);
	s.config.server = url;
	s.metrics = metrics_new();
	s.log_fd = memfd_create("log", 0);
	s.log = (struct log){ s.log_fd, LOG_DEBUG, LOG_LOGFMT, &clock_system };
	struct kube_client_options options = {
		.loop = &s.loop,
		.config = &s.config,
		.clock = fixture_clock,
		.log = &s.log,
		.max_in_flight = max_in_flight,
		.metrics = s.metrics,
		.seed = 1,
	};
	struct err err = ERR_INIT;
	CHECKF(kube_client_new(&options, &s.client, &err) == 0, "%s", err.text);
}

static inline void setup(void)
{
	setup_with(0, "");
}

static inline void client_closed(void *context)
{
	*(bool *)context = true;
}

static inline void teardown(void)
{
	if (s.client)
		kube_client_close(s.client, client_closed, &s.closed);
	while (!s.closed)
		uv_run(&s.loop, UV_RUN_ONCE);
	server_stop(&s.server);
	uv_run(&s.loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&s.loop), 0);
	metrics_free(s.metrics);
	close(s.log_fd);
}

static inline void wait_for(const bool *flag)
{
	while (!*flag)
		uv_run(&s.loop, UV_RUN_ONCE);
}

#endif
