/* SPDX-License-Identifier: Apache-2.0 */
/* upstream.h - requests to the API server, each sent once.
 *
 * HTTP/1.1, one request at a time on a connection; idle connections are used again.  So
 * what one client does not read holds up nobody else, and it is known for each request
 * what of it has left.  Nothing is ever sent a second time: a request on a connection
 * that the server has just given up fails, as it would for any client.
 */
#ifndef GS_TESTS_KUBE_PROXY_UPSTREAM_H
#define GS_TESTS_KUBE_PROXY_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "h1.h"

struct err;
struct kube_config;
struct upstream;
struct upstream_call;

struct upstream_callbacks {
	void (*head)(void *context, const struct head *head); /* not 1xx */
	void (*data)(void *context, const char *bytes, size_t len);
	void (*drained)(void *context); /* more of the request's body may be written */
	/* The last.  Reason "": the reply is whole.  sent: bytes of the request have left. */
	void (*end)(void *context, const char *reason, bool sent);
};

/* The config is borrowed.  0, -EINVAL, -ENOMEM, or why a file cannot be read. */
int upstream_new(uv_loop_t *loop, const struct kube_config *config, struct upstream **ret,
		 struct err *err);

/* Ends all that is on its way, without callbacks.  Freed once the loop has closed the
 * connections, for they use its credentials. */
void upstream_close(struct upstream *upstream);
void upstream_free(struct upstream *upstream);

/* Begins a request.  as_config: with the identity of the config; else with none, and the
 * request's own Authorization counts.  NULL: out of memory.  No callback comes from
 * inside. */
struct upstream_call *upstream_start(struct upstream *upstream, const struct head *request,
				     bool as_config, const struct upstream_callbacks *callbacks,
				     void *context);

void upstream_write(struct upstream_call *call, const char *bytes, size_t len);
void upstream_write_end(struct upstream_call *call);
size_t upstream_pending(const struct upstream_call *call);

/* The reply is not read while it is paused. */
void upstream_pause(struct upstream_call *call, bool paused);

/* No callback comes any more; the connection is closed.  Also from inside callbacks. */
void upstream_cancel(struct upstream_call *call);

#endif
