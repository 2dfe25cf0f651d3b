/* SPDX-License-Identifier: Apache-2.0 */
/* claims_write.c - which claims are looked at when, and the writes of their status. */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "scheduler/claims_private.h"
#include "wire/json.h"

#define LOOKS_MAX    32	   /* claims in one turn of the loop, some 20 us each */
#define REREAD_MS    1000  /* of a write in doubt: the cache tells as well */
#define STALE_MS     30000 /* for a cache that does not get to a later version */
#define CANCELLED_MS 1000  /* the same, if there may be none */

static uint64_t now_ms(const struct claims *claims)
{
	return clock_monotonic_ms(claims->options.clock);
}

bool claim_due_before(union heap_item a, union heap_item b, void *context)
{
	const struct claim *first = a.ptr, *second = b.ptr;

	(void)context;
	if (first->due_ms != second->due_ms)
		return first->due_ms < second->due_ms;
	return strcmp(first->key, second->key) < 0;
}

void claim_due_moved(union heap_item item, uint32_t position, void *context)
{
	struct claim *claim = item.ptr;

	(void)context;
	claim->position = position;
}

static void arm(struct claims *claims)
{
	union heap_item first;
	uint64_t now = now_ms(claims);

	if (claims->writes >= CLAIM_WRITES_MAX || !heap_peek(&claims->due, &first)) {
		uv_timer_stop(claims->timer);
		return;
	}
	uint64_t due_ms = ((const struct claim *)first.ptr)->due_ms;

	uv_timer_start(claims->timer, claims_tick, due_ms > now ? due_ms - now : 1, 0);
}

static void schedule(struct claim *claim, uint64_t due_ms)
{
	struct claims *claims = claim->claims;
	union heap_item item = { .ptr = claim };

	if (!claims->active || (claim->position != HEAP_NONE && claim->due_ms <= due_ms))
		return;
	claim->due_ms = due_ms;
	if (claim->position != HEAP_NONE)
		heap_fix(&claims->due, claim->position);
	else if (heap_push(&claims->due, item) < 0)
		log_error(claims->options.log, "out of memory", LOG_STR("claim", claim->key));
	if (claim->position == 0)
		arm(claims);
}

void claim_touch(struct claim *claim)
{
	uint64_t due_ms = now_ms(claim->claims) + CLAIM_SETTLE_MS;

	if (claim->writing)
		claim->touched = true;
	else
		schedule(claim, MAX(due_ms, claim->not_before_ms));
}

/* Would it be Pending and have a bound pod, or Reserved and have no lock? */
static bool is_outdated(const struct claim *claim)
{
	bool held = claim->count[CLAIMANT_RESERVED] || claim->count[CLAIMANT_BOUND];

	return held ? claim->written.back : claim->written.phase == CLAIM_RESERVED;
}

/* Writes of little urgency may wait long for their turn.  If it has gone out after all, the
 * cache will show that; if not, the same version is written over later. */
void claim_pods_changed(struct claim *claim)
{
	struct claims *claims = claim->claims;

	claim->was_bound |= claim->count[CLAIMANT_BOUND] > 0;
	if (claim->writing && is_outdated(claim)) {
		kube_write_cancel(claim->writing);
		claim->writing = NULL;
		claim->touched = false;
		claim->stale_until_ms = now_ms(claims) + CANCELLED_MS;
		claims->writes--;
		arm(claims);
	}
	claim_touch(claim);
}

void claim_forget_due(struct claim *claim)
{
	if (claim->position != HEAP_NONE)
		heap_remove(&claim->claims->due, claim->position);
}

static uint64_t pause_until(struct claim *claim)
{
	struct claims *claims = claim->claims;
	uint64_t now = now_ms(claims);

	return now + backoff_fail(&claim->backoff, now, &claims->rng);
}

static void failed(struct claim *claim, enum kube_reason reason, const char *why)
{
	struct claims *claims = claim->claims;

	if (claims->trouble != reason)
		log_warn(claims->options.log, "the status of a claim cannot be written",
			 LOG_STR("claim", claim->key), LOG_STR("why", why));
	claims->trouble = reason;
	claim->stale[0] = '\0';
	claim->not_before_ms = pause_until(claim);
	schedule(claim, claim->not_before_ms);
}

static void succeeded(struct claim *claim, const struct kube_reply *reply)
{
	const char *version = json_str(reply->body, "metadata", "resourceVersion");

	claim->claims->trouble = KUBE_OK;
	claim->backoff.failures = 0;
	/* The server found nothing to change: there will be no event. */
	if (version && strcmp(version, claim->stale) == 0)
		claim->stale[0] = '\0';
}

static void written(void *context, const struct kube_write_result *result)
{
	struct claim *claim = context;
	struct claims *claims = claim->claims;
	const struct kube_reply *reply = result->reply;

	claim->writing = NULL;
	claims->writes--;
	claim->stale_until_ms = now_ms(claims) + STALE_MS;
	if (reply->reason == KUBE_OK)
		succeeded(claim, reply);
	else if (reply->reason == KUBE_NOT_FOUND)
		claim->stale_until_ms = pause_until(claim); /* or it has no such subresource */
	else if (reply->reason != KUBE_CONFLICT)
		failed(claim, reply->reason, reply->message);
	if (claim->touched || claim->stale[0])
		claim_touch(claim);
	claim->touched = false;
	claim_drop_if_unused(claim);
	arm(claims);
}

static void write_status(struct claim *claim, const struct kube_object *object,
			 const struct claim_next *next, const struct strbuf *body)
{
	struct claims *claims = claim->claims;
	uint64_t now = now_ms(claims);
	struct err err = ERR_INIT;
	struct kube_write write = { .verb = KUBE_MERGE_PATCH,
				    .kind = &kube_kinds[KUBE_GPU_CLAIM],
				    .namespace = claim->namespace,
				    .name = claim->name,
				    .subresource = "status",
				    .body = body->s,
				    .body_len = body->len,
				    .background = true,
				    .reread_ms = REREAD_MS,
				    .done = written,
				    .context = claim };

	claim->written = *next;
	claim->written.shown = NULL; /* it may go */
	claim->not_before_ms = now + CLAIM_PAUSE_MS;
	claim->message_ms = now + CLAIM_MESSAGE_MS;
	claim->was_bound &= !next->back;
	snprintf(claim->stale, sizeof(claim->stale), "%s", object->version);
	if (kube_write(claims->options.client, &write, &claim->writing, &err) == 0) {
		claims->writes++;
		return;
	}
	claim->writing = NULL;
	failed(claim, KUBE_BAD_REQUEST, err.text);
}

/* Whether nothing was reserved or bound for long enough; else looks again then. */
static bool is_patient(struct claim *claim, enum claim_phase now)
{
	uint64_t at_ms = now_ms(claim->claims);
	/* Bound by another, and what we know of its pods may be older than that. */
	bool bound = now == CLAIM_BOUND && claim->pods.len && !claim->was_bound;
	bool foreign = bound || (now == CLAIM_RESERVED && claim->count[CLAIMANT_UNKNOWN]);
	uint64_t wait_ms = foreign ? CLAIM_FOREIGN_MS : CLAIM_LEAVE_MS;

	if (!claim->leaving_ms)
		claim->leaving_ms = at_ms;
	if (at_ms >= claim->leaving_ms + wait_ms)
		return true;
	schedule(claim, claim->leaving_ms + wait_ms);
	return false;
}

static void write_if_different(struct claim *claim, const struct kube_object *object,
			       const struct json *document, const struct claim_view *view,
			       const struct claim_next *next)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *patch CLEANUP(json_doc_freep) = NULL;
	struct err err = ERR_INIT;

	claim_put_patch(claim, object, view, next, &body);
	if (body.failed || json_parse("patch", body.s, body.len, NULL, &patch, &err) < 0) {
		failed(claim, KUBE_BAD_REQUEST, body.failed ? "out of memory" : err.text);
		return;
	}
	enum claim_difference difference = claim_compare(document, json_root(patch));

	if (difference == CLAIM_OTHER_MESSAGE && now_ms(claim->claims) < claim->message_ms)
		schedule(claim, claim->message_ms);
	else if (difference != CLAIM_SAME)
		write_status(claim, object, next, &body);
}

static void look_at(struct claim *claim, const struct kube_object *object)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct claim_view view;
	struct claim_next next;

	/* A status that cannot be read is written anew. */
	if (kube_object_parse(object, &doc) < 0) {
		failed(claim, KUBE_BAD_REQUEST, "out of memory");
		return;
	}
	if (claim_view_read(json_root(doc), &view, NULL) < 0)
		view = (struct claim_view){ .phase = CLAIM_NONE };
	claim_next(claim, view.phase, &next);
	if (!next.back || next.holds)
		claim->leaving_ms = 0;
	if (next.holds || (next.back && !is_patient(claim, view.phase)))
		return;
	write_if_different(claim, object, json_root(doc), &view, &next);
}

static void look(struct claim *claim)
{
	const struct claims_options *o = &claim->claims->options;
	const struct kube_object *object = o->claim(o->context, claim->namespace, claim->name);
	uint64_t now = now_ms(claim->claims);

	if (!object) {
		claim_drop_if_unused(claim);
		return;
	}
	if (claim->stale[0] && strcmp(claim->stale, object->version) == 0 &&
	    now < claim->stale_until_ms) {
		schedule(claim, now + CLAIM_PAUSE_MS);
		return;
	}
	claim->stale[0] = '\0';
	look_at(claim, object);
}

void claims_tick(uv_timer_t *timer)
{
	struct claims *claims = timer->data;
	uint64_t now = now_ms(claims);
	union heap_item first;

	for (uint32_t i = 0; i < LOOKS_MAX && claims->writes < CLAIM_WRITES_MAX; i++) {
		if (!heap_peek(&claims->due, &first) ||
		    ((const struct claim *)first.ptr)->due_ms > now)
			break;
		heap_pop(&claims->due, &first);
		look(first.ptr);
	}
	arm(claims);
}
