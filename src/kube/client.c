/* SPDX-License-Identifier: Apache-2.0 */
/* The client itself: opening, connections, closing. */
#include "kube/client_private.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "kube/config.h"
#include "kube/telemetry.h"
#include "wire/http.h"

#include <stdlib.h>
#include <string.h>

static void client_free(struct kube_client *client)
{
	heap_done(&client->due);
	kube_telemetry_free(client->telemetry);
	free(client->user_agent);
	free(client);
}

static void one_closed(struct kube_client *client)
{
	if (--client->closes)
		return;
	void (*closed)(void *context) = client->closed;
	void *context = client->closed_context;
	client_free(client);
	if (closed)
		closed(context);
}

static void connections_forget(struct connections *connections)
{
	struct kube_client *client = connections->client;
	struct connections **link = &client->connections;
	while (*link != connections)
		link = &(*link)->next;
	*link = connections->next;
	free(connections);
	if (client->closing)
		one_closed(client);
}

static void watch_closed(void *context)
{
	struct connections *connections = context;
	connections->watch = NULL;
	if (!connections->rest)
		connections_forget(connections);
}

static void rest_closed(void *context)
{
	struct connections *connections = context;
	connections->rest = NULL;
	if (!connections->watch)
		connections_forget(connections);
}

/* Retired ones call back anyway; one that has, is NULL, but never both. */
static void connections_close(struct connections *connections)
{
	struct http *watch = connections->watch, *rest = connections->rest;
	bool retired = connections->retired;
	if (watch)
		http_close(watch, retired ? NULL : watch_closed, connections);
	if (rest)
		http_close(rest, retired ? NULL : rest_closed, connections);
}

static void connections_retire(struct connections *connections)
{
	struct http *watch = connections->watch, *rest = connections->rest;
	connections->retired = true;
	http_retire(watch, watch_closed, connections);
	http_retire(rest, rest_closed, connections);
}

/* http_close() of the first is needed when the second cannot be made. */
static int connections_open(struct connections *connections, const struct kube_auth *auth,
			    struct err *err)
{
	const struct kube_client *client = connections->client;
	const struct kube_config *config = client->options.config;
	struct http_options options = {
		.ca_file = auth->ca_file,
		.cert_file = auth->cert_file,
		.key_file = auth->key_file,
		.server_name = config->tls_server_name,
		.insecure = config->insecure,
		.proxy_url = config->proxy_url,
		.user_agent = client->user_agent,
	};
	int result = http_new(client->options.loop, &options, &connections->watch, err);
	if (result < 0)
		return result;
	result = http_new(client->options.loop, &options, &connections->rest, err);
	if (result < 0)
		http_close(connections->watch, NULL, NULL);
	return result;
}

struct connections *client_connect(struct kube_client *client, const struct kube_auth *auth,
				   struct err *err)
{
	struct connections *newest = client->connections;
	if (newest && !newest->retired && newest->tls_generation == auth->tls_generation)
		return newest;
	struct connections *connections = calloc(1, sizeof(*connections));
	if (!connections) {
		err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	connections->client = client;
	connections->tls_generation = auth->tls_generation;
	if (connections_open(connections, auth, err) < 0) {
		free(connections);
		return NULL;
	}
	connections->next = newest;
	client->connections = connections;
	if (newest && !newest->retired)
		connections_retire(newest);
	return connections;
}

/* Told once each time it changes: that a token cannot be read again, say. */
void client_note_problem(struct kube_client *client)
{
	const char *problem = kube_credentials_problem(client->credentials);
	uint64_t hash = problem ? hash_bytes(problem, strlen(problem), 1) | 1 : 0;
	if (hash == client->problem)
		return;
	client->problem = hash;
	if (client->options.log && problem)
		log_warn(client->options.log, "credentials are not fresh",
			 LOG_STR("reason", problem));
	else if (client->options.log)
		log_info(client->options.log, "credentials are fresh again");
}

void client_note_answer(struct kube_client *client)
{
	if (!client->unreached)
		return;
	client->unreached = 0;
	if (client->options.log)
		log_info(client->options.log, "the API server serves us again",
			 LOG_STR("server", client->options.config->server));
}

/* Dozens of requests fail for one reason: it is told once, and again when it is another. */
static void note_unreached(struct kube_client *client, const char *what, const char *why)
{
	const struct kube_config *config = client->options.config;
	uint64_t hash = hash_sentence(why, 1) | 1, now_ms = client_now_ms(client);
	if (hash == client->unreached ||
	    (client->unreached && now_ms - client->unreached_ms < CLIENT_UNREACHED_MS))
		return;
	client->unreached = hash;
	client->unreached_ms = now_ms;
	if (client->options.log)
		log_warn(client->options.log, what, LOG_STR("server", config->server),
			 LOG_STR("account", config->user_origin ? config->user_origin : "none"),
			 LOG_STR("why", why));
}

void client_note_reach(struct kube_client *client, const struct http_reply *reply)
{
	if (reply->status == 401)
		note_unreached(client, "the API server refuses our credentials, trying again",
			       "Unauthorized");
	else if (reply->status)
		client_note_answer(client);
	else if (reply->result == HTTP_NOT_SENT || reply->result == HTTP_REFUSED)
		note_unreached(client, "the API server cannot be reached, trying again",
			       reply->reason);
}

static bool warning_is_new(struct kube_client *client, const char *warning)
{
	uint64_t hash = hash_bytes(warning, strlen(warning), 0) | 1; /* 0: a free place */
	for (unsigned i = 0; i < CLIENT_WARNINGS; i++) {
		if (client->warnings[i] == hash)
			return false;
	}
	client->warnings[client->warnings_next++ % CLIENT_WARNINGS] = hash;
	return true;
}

void client_note_warnings(struct kube_client *client, const struct http_reply *reply)
{
	for (size_t i = 0; i < reply->warnings_count; i++) {
		if (warning_is_new(client, reply->warnings[i]) && client->options.log)
			log_warn(client->options.log, "the API server warns",
				 LOG_STR("warning", reply->warnings[i]));
	}
}

int kube_client_new(const struct kube_client_options *options, struct kube_client **ret,
		    struct err *err)
{
	struct kube_client *client = calloc(1, sizeof(*client));
	if (!client)
		return err_set(err, ENOMEM, "out of memory");
	client->options = *options;
	if (!options->max_in_flight)
		client->options.max_in_flight = CLIENT_IN_FLIGHT;
	if (!options->deadline_ms)
		client->options.deadline_ms = CLIENT_DEADLINE_MS;
	rng_seed(&client->rng, options->seed);
	const char *agent = options->user_agent;
	client->user_agent = strdup(agent ? agent : "gpu-scheduler/" GS_VERSION);
	client->telemetry = kube_telemetry_new(options->metrics, options->clock);
	int result = client->user_agent && client->telemetry
			     ? 0
			     : err_set(err, ENOMEM, "out of memory");
	if (result == 0)
		result = kube_credentials_new(options->loop, options->config, options->clock,
					      &client->credentials, err);
	if (result < 0) {
		client_free(client);
		return result;
	}
	client_queue_init(client);
	*ret = client;
	return 0;
}

static void timer_closed(uv_handle_t *handle)
{
	one_closed(handle->data);
}

static void credentials_closed(void *context)
{
	one_closed(context);
}

void kube_client_close(struct kube_client *client, void (*closed)(void *context), void *context)
{
	client->closing = true;
	client->closed = closed;
	client->closed_context = context;
	union heap_item item;
	while (heap_peek(&client->due, &item)) {
		const struct kube_call *call = item.ptr;
		void (*dropped)(void *context) = call->dropped;
		void *call_context = call->context;
		kube_cancel(item.ptr);
		if (dropped)
			dropped(call_context);
	}
	/* all are counted before any is closed: some may call back at once */
	client->closes = 2;
	for (struct connections *at = client->connections; at; at = at->next)
		client->closes++;
	struct kube_credentials *credentials = client->credentials;
	uv_close((uv_handle_t *)&client->timer, timer_closed);
	for (struct connections *at = client->connections, *next; at; at = next) {
		next = at->next;
		connections_close(at);
	}
	kube_credentials_close(credentials, credentials_closed, client);
}

uint32_t kube_in_flight(const struct kube_client *client)
{
	return client->in_flight;
}

uint32_t kube_waiting(const struct kube_client *client)
{
	uint32_t waiting = client->paused.len;
	for (unsigned lane = 0; lane < LANES; lane++)
		waiting += client->lanes[lane].len;
	return waiting;
}

bool kube_is_unreached(const struct kube_client *client)
{
	return client->unreached != 0;
}

uv_loop_t *kube_loop(const struct kube_client *client)
{
	return client->options.loop;
}

const struct clock *kube_clock(const struct kube_client *client)
{
	return client->options.clock;
}

struct kube_telemetry *kube_telemetry(struct kube_client *client)
{
	return client->telemetry;
}
