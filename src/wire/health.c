/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/health.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "wire/httpd.h"
#include "wire/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX	((size_t)4 << 10) /* nobody has to send one */
#define CONNECTIONS_MAX 256

/* A port, and what is asked there. */
struct port {
	struct health *health;
	struct httpd *httpd; /* NULL: there is none */
	bool health_here, metrics_here;
};

struct health {
	struct health_options options; /* addresses are not kept */
	struct port port, metrics_port;
	uint32_t open; /* ports that are not closed yet */
	void (*closed)(void *context);
	void *closed_context;
};

static void say_alive(struct health *health, struct httpd_reply *reply)
{
	(void)health;
	strbuf_puts(&reply->body, "ok\n");
}

static void say_ready(struct health *health, struct httpd_reply *reply)
{
	struct strbuf why CLEANUP(strbuf_done) = STRBUF_INIT;
	const struct health_options *options = &health->options;

	if (!options->ready || options->ready(options->context, &why)) {
		strbuf_puts(&reply->body, "ok\n");
		return;
	}
	reply->status = 503;
	strbuf_puts(&reply->body, "not ready: ");
	strbuf_add(&reply->body, why.s, why.len);
	if (!why.len || why.s[why.len - 1] != '\n')
		strbuf_putc(&reply->body, '\n');
}

static void say_metrics(struct health *health, struct httpd_reply *reply)
{
	const struct health_options *options = &health->options;

	if (options->refresh)
		options->refresh(options->context);
	reply->content_type = METRICS_CONTENT_TYPE;
	metrics_write(options->metrics, &reply->body);
}

static const struct place {
	const char *path;
	bool metrics;
	void (*say)(struct health *health, struct httpd_reply *reply);
} places[] = {
	{ "/health", false, say_alive }, { "/healthz", false, say_alive },
	{ "/livez", false, say_alive },	 { "/ready", false, say_ready },
	{ "/readyz", false, say_ready }, { "/metrics", true, say_metrics },
};

static const struct place *place_find(const struct port *port, const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (strcmp(places[i].path, path) == 0 &&
		    (places[i].metrics ? port->metrics_here : port->health_here))
			return &places[i];
	return NULL;
}

static void serve(void *context, const struct httpd_request *request, struct httpd_reply *reply)
{
	struct port *port = context;
	const struct place *place = place_find(port, request->path);
	bool reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;

	reply->content_type = "text/plain; charset=utf-8";
	if (!place) {
		reply->status = 404;
		strbuf_puts(&reply->body, "not found\n");
	} else if (!reads) {
		reply->status = 405;
		reply->fields[reply->fields_count++] =
			(struct httpd_field){ "Allow", "GET, HEAD" };
		strbuf_puts(&reply->body, "only GET and HEAD\n");
	} else {
		reply->status = 200;
		place->say(port->health, reply);
	}
}

static int port_open(struct port *port, const char *addr, struct err *err)
{
	struct health *health = port->health;
	const struct httpd_options options = { .addr = addr,
					       .handler = serve,
					       .context = port,
					       .max_body = BODY_MAX,
					       .max_connections = CONNECTIONS_MAX };
	int r = httpd_new(health->options.loop, &options, &port->httpd, err);

	if (r < 0)
		return r;
	health->open++;
	if (health->options.log)
		log_info(health->options.log, "listening", LOG_STR("addr", addr),
			 LOG_BOOL("health", port->health_here),
			 LOG_BOOL("metrics", port->metrics_here));
	return 0;
}

int health_new(const struct health_options *options, struct health **ret, struct err *err)
{
	struct health *health = calloc(1, sizeof(*health));
	bool apart = options->metrics && options->metrics_addr &&
		     strcmp(options->addr, options->metrics_addr) != 0;
	int r;

	if (!health)
		return err_set(err, ENOMEM, "no memory for a server");
	health->options = *options;
	health->options.addr = health->options.metrics_addr = NULL;
	health->port = (struct port){ .health = health,
				      .health_here = true,
				      .metrics_here = options->metrics && !apart };
	health->metrics_port = (struct port){ .health = health, .metrics_here = true };
	r = port_open(&health->port, options->addr, err);
	if (r == 0 && apart)
		r = port_open(&health->metrics_port, options->metrics_addr, err);
	if (r < 0) {
		health_free(health);
		return r;
	}
	*ret = health;
	return 0;
}

int health_port(const struct health *health)
{
	return httpd_port(health->port.httpd);
}

int health_metrics_port(const struct health *health)
{
	return httpd_port(health->metrics_port.httpd ? health->metrics_port.httpd
						     : health->port.httpd);
}

static void port_closed(void *context)
{
	struct health *health = context;

	if (--health->open > 0)
		return;
	void (*closed)(void *context) = health->closed;
	void *closed_context = health->closed_context;
	free(health);
	if (closed)
		closed(closed_context);
}

void health_close(struct health *health, void (*closed)(void *context), void *context)
{
	if (!health) {
		if (closed)
			closed(context);
		return;
	}
	health->closed = closed;
	health->closed_context = context;
	health->port.health_here = health->port.metrics_here = false;
	health->metrics_port.metrics_here = false;
	health->open++; /* this call, so that all of it is here until the end */
	httpd_close(health->port.httpd, 0, health->port.httpd ? port_closed : NULL, health);
	httpd_close(health->metrics_port.httpd, 0, health->metrics_port.httpd ? port_closed : NULL,
		    health);
	port_closed(health);
}

void health_free(struct health *health)
{
	health_close(health, NULL, NULL);
}
