/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "webhook/review.h"
#include "wire/httpd.h"
#include "wire/metrics.h"

#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain; charset=utf-8"

/* An API server has some hundred at most.  Each costs 27 KiB, which are not given back. */
#define CONNECTIONS_DEFAULT 1024

struct webhook_server {
	struct webhook_server_options options; /* texts are not kept */
	struct httpd *httpd;
	struct metric *reviews, *duration, *certificates, *connections; /* NULL: none */
	void (*closed)(void *context);
	void *closed_context;
};

static const struct place {
	const char *path, *name;
	enum webhook_path review;
} places[] = {
	{ "/mutate", "mutate", WEBHOOK_MUTATE },
	{ "/validate", "validate", WEBHOOK_VALIDATE },
};

/* ---- metrics ---- */

static const double buckets_s[] = { 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 2e-2 };

static int add_metrics(struct webhook_server *server, struct err *err)
{
	static const char *const by_review[] = { "path", "outcome" }, *const by_result[] = {
		"result"
	};
	const struct {
		struct metric_options options;
		struct metric **ret;
	} rows[] = {
		{ { .name = "gpu_scheduler_webhook_reviews_total",
		    .help = "Reviews by what became of them.",
		    .type = METRIC_COUNTER,
		    .labels = by_review,
		    .labels_count = ARRAY_SIZE(by_review) },
		  &server->reviews },
		{ { .name = "gpu_scheduler_webhook_review_duration_seconds",
		    .help = "Time that a review takes, from its bytes to those of the answer.",
		    .type = METRIC_HISTOGRAM,
		    .labels = by_review,
		    .labels_count = 1,
		    .buckets = buckets_s,
		    .buckets_count = ARRAY_SIZE(buckets_s) },
		  &server->duration },
		{ { .name = "gpu_scheduler_webhook_certificate_changes_total",
		    .help = "Changes of the certificate's files: taken up, or refused.",
		    .type = METRIC_COUNTER,
		    .labels = by_result,
		    .labels_count = ARRAY_SIZE(by_result) },
		  &server->certificates },
		{ { .name = "gpu_scheduler_webhook_connections",
		    .help = "Open connections.",
		    .type = METRIC_GAUGE },
		  &server->connections },
	};
	int r = 0;

	for (size_t i = 0; server->options.metrics && r == 0 && i < ARRAY_SIZE(rows); i++)
		r = metrics_add(server->options.metrics, &rows[i].options, rows[i].ret, err);
	return r;
}

static void count(struct webhook_server *server, const struct place *place, int rc,
		  uint64_t took_ns)
{
	static const char *const outcomes[] = { [WEBHOOK_UNTOUCHED] = "untouched",
						[WEBHOOK_PATCHED] = "patched",
						[WEBHOOK_REFUSED] = "refused" };
	const char *outcome = rc < 0 ? "failed" : outcomes[rc];

	if (!server->reviews)
		return;
	metric_inc(server->reviews, METRIC_LABELS(place->name, outcome), 1);
	metric_observe(server->duration, METRIC_LABELS(place->name), (double)took_ns / 1e9);
}

/* ---- requests ---- */

static void say(struct httpd_reply *reply, int status, const char *text)
{
	reply->status = status;
	reply->content_type = TEXT_TYPE;
	strbuf_puts(&reply->body, text);
	strbuf_putc(&reply->body, '\n');
}

static const struct place *place_find(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (strcmp(places[i].path, path) == 0)
			return &places[i];
	return NULL;
}

/* With parameters or without. */
static bool is_json(const char *type)
{
	size_t n = strlen(JSON_TYPE);

	return strncasecmp(type, JSON_TYPE, n) == 0 && (!type[n] || strchr("; \t", type[n]));
}

static void review(struct webhook_server *server, const struct place *place,
		   const struct httpd_request *request, struct httpd_reply *reply)
{
	struct err err = ERR_INIT;
	uint64_t begin_ns = clock_monotonic_ns(&clock_system);

	reply->body.max = WEBHOOK_ANSWER_MAX;
	int rc = webhook_review(server->options.reviews, place->review, request->body,
				request->body_len, &reply->body, &err);
	count(server, place, rc, clock_monotonic_ns(&clock_system) - begin_ns);
	if (server->options.reviewed)
		server->options.reviewed(server->options.context);
	reply->status = 200;
	reply->content_type = JSON_TYPE;
	if (rc < 0)
		say(reply, webhook_http_status(rc), err.text);
}

static void serve(void *context, const struct httpd_request *request, struct httpd_reply *reply)
{
	const struct place *place = place_find(request->path);

	if (!place) {
		say(reply, 404, "not found: there are /mutate and /validate");
	} else if (strcmp(request->method, "POST") != 0) {
		reply->fields[reply->fields_count++] = (struct httpd_field){ "Allow", "POST" };
		say(reply, 405, "only POST");
	} else if (!is_json(request->content_type)) {
		say(reply, 415, "only " JSON_TYPE);
	} else {
		review(context, place, request, reply);
	}
}

/* ---- its life ---- */

static void certs_changed(void *context, const struct err *err)
{
	struct webhook_server *server = context;
	const struct log *log = server->options.log;

	if (server->certificates)
		metric_inc(server->certificates, METRIC_LABELS(err ? "refused" : "taken"), 1);
	if (log && err)
		log_error(log, "the new certificate cannot be used, the old one stays",
			  LOG_STR("why", err->text));
	else if (log)
		log_info(log, "certificate taken up");
}

int webhook_server_new(const struct webhook_server_options *options, struct webhook_server **ret,
		       struct err *err)
{
	struct webhook_server *server = calloc(1, sizeof(*server));
	const struct httpd_options http = { .addr = options->addr,
					    .cert_file = options->cert_file,
					    .key_file = options->key_file,
					    .handler = serve,
					    .certs_changed = certs_changed,
					    .context = server,
					    .max_body = WEBHOOK_BODY_MAX,
					    .max_connections = options->max_connections
								       ? options->max_connections
								       : CONNECTIONS_DEFAULT,
					    .idle_ms = options->idle_ms,
					    .request_ms = options->request_ms,
					    .certs_ms = options->certs_ms };

	if (!server)
		return err_set(err, ENOMEM, "no memory for a server");
	server->options = *options;
	server->options.addr = server->options.cert_file = server->options.key_file = NULL;
	int r = add_metrics(server, err);
	if (r == 0)
		r = httpd_new(options->loop, &http, &server->httpd, err);
	if (r < 0) {
		free(server);
		return r;
	}
	*ret = server;
	return 0;
}

int webhook_server_port(const struct webhook_server *server)
{
	return httpd_port(server->httpd);
}

void webhook_server_measure(struct webhook_server *server)
{
	if (server->connections)
		metric_set(server->connections, METRIC_NO_LABELS,
			   httpd_connections(server->httpd));
}

void webhook_server_retire(struct webhook_server *server)
{
	httpd_retire(server->httpd);
}

static void server_closed(void *context)
{
	struct webhook_server *server = context;
	void (*closed)(void *context) = server->closed;
	void *closed_context = server->closed_context;

	free(server);
	if (closed)
		closed(closed_context);
}

void webhook_server_close(struct webhook_server *server, uint32_t grace_ms,
			  void (*closed)(void *context), void *context)
{
	if (!server) {
		if (closed)
			closed(context);
		return;
	}
	server->closed = closed;
	server->closed_context = context;
	httpd_close(server->httpd, grace_ms, server_closed, server);
}
