/* SPDX-License-Identifier: Apache-2.0 */
/* health.h - what every role tells of itself, in the clear.
 *
 *	/health /healthz /livez	200 "ok" as long as the loop turns
 *	/ready /readyz		200 "ok", or 503 and why not
 *	/metrics		for Prometheus
 *
 * by GET and HEAD.  Metrics may have a port of their own; then no other has them.
 * On the loop's thread, as are the callbacks.
 */
#ifndef GS_WIRE_HEALTH_H
#define GS_WIRE_HEALTH_H

#include <stdbool.h>
#include <uv.h>

struct err;
struct health;
struct log;
struct metrics;
struct strbuf;

struct health_options {
	uv_loop_t *loop;
	const struct log *log;	  /* a line for each address; NULL: none */
	const char *addr;	  /* as in httpd.h */
	const char *metrics_addr; /* NULL or the same text: no other port */
	struct metrics *metrics;  /* borrowed; NULL: no /metrics */
	/* Whether it does its work; else says why not.  NULL: always. */
	bool (*ready)(void *context, struct strbuf *why);
	/* Before the metrics are written; or NULL. */
	void (*refresh)(void *context);
	void *context;
};

/* 0, or why it cannot listen there. */
int health_new(const struct health_options *options, struct health **ret, struct err *err);

int health_port(const struct health *health);
int health_metrics_port(const struct health *health); /* the same, if it has no other */

/* Listens no more; all of it is freed with the next turns of the loop, then closed() is
 * called (NULL: nobody waits).  No callback comes after this.  NULL is fine: closed() is
 * called at once. */
void health_close(struct health *health, void (*closed)(void *context), void *context);
void health_free(struct health *health); /* the same, nobody waits */

#endif
