/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/certs_keep.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/base64.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "webhook/certs_files.h"
#include "webhook/certs_objects.h"
#include "wire/json.h"

#define TRIES_MAX 16 /* when somebody else writes at the same moment */

static const struct kube_kind secret_kind = {
	.kind = "Secret", .group = "", .version = "v1", .plural = "secrets", .namespaced = true
};

static const struct kube_kind configuration_kinds[] = {
	{ .kind = "MutatingWebhookConfiguration",
	  .group = "admissionregistration.k8s.io",
	  .version = "v1",
	  .plural = "mutatingwebhookconfigurations" },
	{ .kind = "ValidatingWebhookConfiguration",
	  .group = "admissionregistration.k8s.io",
	  .version = "v1",
	  .plural = "validatingwebhookconfigurations" },
};

struct certs_keep {
	struct certs_keep_options options;
	struct certs current;
	struct certs_plan plan;
	struct strbuf stored; /* the Secret as it was read; empty: there is none */
	struct kube_writing *writing;
	uv_timer_t *timer;
	unsigned kind; /* of configuration_kinds, the one at hand */
	unsigned tries;
	bool had_one; /* a certificate that somebody trusts */
	bool finished;
	struct certs_kept kept;
};

static int64_t now_s(const struct certs_keep *k)
{
	return clock_wall_ns(k->options.clock) / 1000000000;
}

static void begin(struct certs_keep *k);
static void configure(struct certs_keep *k);

static void finish(struct certs_keep *k, int rc, const struct err *err)
{
	assert(!k->finished);
	k->finished = true;
	k->kept.why = k->plan.why;
	k->kept.theirs = k->plan.theirs;
	k->options.done(k->options.context, rc, &k->kept, err);
}

static void fail(struct certs_keep *k, const struct err *err)
{
	finish(k, -(err->code ? err->code : EIO), err);
}

static void fail_with(struct certs_keep *k, const struct kube_reply *reply)
{
	struct err err = ERR_INIT;

	err_set(&err, EIO, "%s", reply->message);
	fail(k, &err);
}

/* A request about one object; what the server says goes to `done`. */
static void ask(struct certs_keep *k, const struct kube_write *write)
{
	struct kube_write whole = *write;
	struct err err = ERR_INIT;

	whole.context = k;
	if (kube_write(k->options.client, &whole, &k->writing, &err) < 0)
		fail(k, &err);
}

/* Storing, the last step. */

static void done_all(struct certs_keep *k)
{
	struct err err = ERR_INIT;
	int64_t from_s;

	if (certs_times(k->plan.next.cert.s, &from_s, &k->kept.until_s, &err) < 0)
		fail(k, &err);
	else
		finish(k, 0, NULL);
}

static void on_stored(void *context, const struct kube_write_result *result)
{
	struct certs_keep *k = context;
	enum kube_reason reason = result->reply->reason;

	k->writing = NULL;
	if ((reason == KUBE_CONFLICT || reason == KUBE_ALREADY_EXISTS) && ++k->tries < TRIES_MAX) {
		begin(k);
		return;
	}
	if (reason != KUBE_OK) {
		fail_with(k, result->reply);
		return;
	}
	k->kept.stored = true;
	done_all(k);
}

static void store_secret(struct certs_keep *k)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	const struct certs_keep_options *o = &k->options;

	if (certs_secret_write(&body, k->stored.s, k->stored.len, o->namespace, o->secret,
			       &k->plan.next, &err) < 0) {
		fail(k, &err);
		return;
	}
	ask(k, &(struct kube_write){ .verb = k->stored.len ? KUBE_REPLACE : KUBE_CREATE,
				     .kind = &secret_kind,
				     .namespace = o->namespace,
				     .name = o->secret,
				     .body = body.s,
				     .body_len = body.len,
				     .done = on_stored });
}

static void store(struct certs_keep *k)
{
	struct err err = ERR_INIT;

	if (!k->plan.changed) {
		done_all(k);
		return;
	}
	if (!k->options.folder) {
		store_secret(k);
		return;
	}
	if (certs_files_write(k->options.folder, &k->plan.next, &err) < 0) {
		fail(k, &err);
		return;
	}
	k->kept.stored = true;
	done_all(k);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle);
}

static void stop_timer(struct certs_keep *k)
{
	if (k->timer)
		uv_close((uv_handle_t *)k->timer, on_closed);
	k->timer = NULL;
}

static void on_settled(uv_timer_t *timer)
{
	struct certs_keep *k = timer->data;

	stop_timer(k);
	store(k);
}

/* Every API server reads the configuration by itself: the new certificate must not come
 * before they have. */
static void settle(struct certs_keep *k)
{
	if (!k->plan.renewed || !k->had_one || !k->kept.told || !k->options.settle_ms) {
		store(k);
		return;
	}
	k->timer = malloc(sizeof(*k->timer));
	if (!k->timer) {
		fail(k, &(struct err){ .code = ENOMEM, .text = "out of memory" });
		return;
	}
	uv_timer_init(k->options.loop, k->timer);
	k->timer->data = k;
	uv_timer_start(k->timer, on_settled, k->options.settle_ms, 0);
}

/* Telling the API server. */

static void on_told(void *context, const struct kube_write_result *result)
{
	struct certs_keep *k = context;
	enum kube_reason reason = result->reply->reason;

	k->writing = NULL;
	/* Where the webhooks stand in another order by now, the patch is not even valid. */
	if ((reason == KUBE_CONFLICT || reason == KUBE_INVALID) && ++k->tries < TRIES_MAX) {
		k->kept.found--; /* it is read again */
		configure(k);
		return;
	}
	if (reason != KUBE_OK) {
		fail_with(k, result->reply);
		return;
	}
	k->kept.told++;
	k->kind++;
	configure(k);
}

static void tell(struct certs_keep *k, const struct json *configuration)
{
	/* Old authorities go when theirs is the only change.  At any other time one that is not
	 * ours may be that of somebody who renews at this moment. */
	const struct certs_trust trust = { .order = &k->options.order,
					   .bundle = &k->plan.next.ca,
					   .alone = k->plan.changed && !k->plan.renewed,
					   .at_s = now_s(k) };
	struct strbuf patch CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	unsigned calls;

	if (certs_configuration_patch(&patch, configuration, &trust, &calls, &err) < 0) {
		fail(k, &err);
		return;
	}
	k->kept.found += calls > 0;
	if (!patch.len) {
		k->kind++;
		configure(k);
		return;
	}
	ask(k, &(struct kube_write){ .verb = KUBE_JSON_PATCH,
				     .kind = &configuration_kinds[k->kind],
				     .name = k->options.configuration,
				     .body = patch.s,
				     .body_len = patch.len,
				     .done = on_told });
}

static void on_configuration(void *context, const struct kube_write_result *result)
{
	struct certs_keep *k = context;

	k->writing = NULL;
	if (result->reply->reason == KUBE_OK) {
		tell(k, result->reply->body);
	} else if (result->reply->reason == KUBE_NOT_FOUND) {
		k->kind++;
		configure(k);
	} else {
		fail_with(k, result->reply);
	}
}

static void configure(struct certs_keep *k)
{
	if (!k->options.configuration || k->kind == ARRAY_SIZE(configuration_kinds)) {
		settle(k);
		return;
	}
	ask(k, &(struct kube_write){ .verb = KUBE_GET,
				     .kind = &configuration_kinds[k->kind],
				     .name = k->options.configuration,
				     .done = on_configuration });
}

/* Reading, and what follows from it. */

static void plan(struct certs_keep *k)
{
	struct err err = ERR_INIT;

	certs_plan_done(&k->plan);
	k->plan = (struct certs_plan)CERTS_PLAN_INIT;
	k->had_one = k->current.cert.len > 0;
	k->kind = 0;
	k->kept.found = 0;
	if (certs_plan(&k->current, &k->options.order, now_s(k), &k->plan, &err) < 0) {
		fail(k, &err);
		return;
	}
	k->kept.renewed = k->plan.renewed;
	configure(k);
}

static void on_secret(void *context, const struct kube_write_result *result)
{
	struct certs_keep *k = context;
	const struct kube_reply *reply = result->reply;
	struct err err = ERR_INIT;

	k->writing = NULL;
	if (reply->reason != KUBE_OK && reply->reason != KUBE_NOT_FOUND) {
		fail_with(k, reply);
		return;
	}
	if (reply->reason == KUBE_OK) {
		strbuf_add(&k->stored, reply->bytes, reply->len);
		if (certs_secret_read(reply->body, &k->current, &err) < 0) {
			fail(k, &err);
			return;
		}
	}
	plan(k);
}

static void begin(struct certs_keep *k)
{
	struct err err = ERR_INIT;

	strbuf_reset(&k->stored);
	strbuf_reset(&k->current.ca);
	strbuf_reset(&k->current.cert);
	strbuf_reset(&k->current.key);
	if (!k->options.folder) {
		ask(k, &(struct kube_write){ .verb = KUBE_GET,
					     .kind = &secret_kind,
					     .namespace = k->options.namespace,
					     .name = k->options.secret,
					     .done = on_secret });
		return;
	}
	if (certs_files_read(k->options.folder, &k->current, &err) < 0)
		fail(k, &err);
	else
		plan(k);
}

int certs_keep_start(const struct certs_keep_options *options, struct certs_keep **ret,
		     struct err *err)
{
	int rc = certs_order_check(&options->order, err);

	if (rc < 0)
		return rc;
	struct certs_keep *k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(err, ENOMEM, "out of memory");
	k->options = *options;
	k->current = (struct certs)CERTS_INIT;
	k->plan = (struct certs_plan)CERTS_PLAN_INIT;
	k->stored = (struct strbuf)STRBUF_INIT;
	*ret = k;
	begin(k);
	return 0;
}

void certs_keep_free(struct certs_keep *keep)
{
	if (!keep)
		return;
	if (keep->writing)
		kube_write_cancel(keep->writing);
	stop_timer(keep);
	certs_done(&keep->current);
	certs_plan_done(&keep->plan);
	/* It has the key inside. */
	if (keep->stored.cap)
		explicit_bzero(keep->stored.s, keep->stored.len);
	strbuf_done(&keep->stored);
	free(keep);
}
