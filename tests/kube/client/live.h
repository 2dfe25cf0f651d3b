/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - our client and a real API server, for tests that wait for things to happen.
 *
 * The loop runs inside live_until() and the calls below, never by itself.  Whatever does
 * not happen within LIVE_PATIENCE_MS fails the test: that is no measure of anything, only
 * the end of waiting.
 */
#ifndef GS_TESTS_KUBE_CLIENT_LIVE_H
#define GS_TESTS_KUBE_CLIENT_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/strbuf.h"
#include "kube/reply.h"

struct kube_cache;
struct kube_client;
struct kube_config;
struct kube_kind;

#define LIVE_PATIENCE_MS 120000

struct live {
	uv_loop_t *loop; /* its own, or that of another */
	uv_loop_t own;
	uv_timer_t tick; /* so that a condition on time is looked at */
	struct kube_config *config;
	struct kube_client *client;
	const char *namespace; /* "default", or KUBE_NAMESPACE */
	struct strbuf text;    /* the body of the last answer */
	enum kube_reason reason;
	unsigned calls;	 /* of live_start() on their way */
	unsigned closes; /* that have happened */
};

/* `kubeconfig` NULL: that of KUBECONFIG. */
void live_open(struct live *live, const char *kubeconfig);
/* On the loop of another, which is closed after this one. */
void live_open_beside(struct live *live, struct live *other, const char *kubeconfig);
void live_close(struct live *live);

/* Runs the loop until it holds; `what` is for the message if it never does. */
void live_until(struct live *live, bool (*holds)(void *context), void *context, const char *what);
void live_for(struct live *live, uint64_t ms);

/* Sends and waits: the code of the answer, whose body is in live->text. */
int live_call(struct live *live, const char *method, const char *path, const char *body);
/* Sends only; the answer must be a 2xx.  live_settle() waits for all of them. */
void live_start(struct live *live, const char *method, const char *path, const char *body);
void live_settle(struct live *live);

/* A ConfigMap of the namespace, with the label app and data.n. */
void live_put(struct live *live, const char *name, const char *app, unsigned n);
/* Many at once: prefix-0 to prefix-(count-1). */
void live_put_many(struct live *live, const char *prefix, const char *app, unsigned count,
		   unsigned n);
void live_delete(struct live *live, const char *name);
/* All ConfigMaps with that label. */
void live_delete_all(struct live *live, const char *app);

/* Waits until the cache has exactly the objects, in exactly the versions, that a list of
 * the server at the given path has. */
void live_equal(struct live *live, const struct kube_cache *cache, const char *path);

/* POSTs to a plain HTTP server (etcd): the code. */
int live_post_plain(struct live *live, const char *url, const char *body);

#endif
