/* SPDX-License-Identifier: Apache-2.0 */
/* claims_status.c - what a claim should say, by where its pods stand. */
#include <string.h>

#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/gpuset.h"
#include "scheduler/claims_private.h"
#include "wire/json.h"
#include "wire/json_write.h"

static const struct claimant *first_of(const struct claim *claim, enum claimant_state state)
{
	for (size_t i = 0; claim->count[state] && i < claim->pods.len; i++)
		if (claim->pods.items[i]->state == state)
			return claim->pods.items[i];
	return NULL;
}

/* Where it stands, however it got there. */
static enum claim_phase target_of(const struct claim *claim)
{
	if (claim->count[CLAIMANT_BOUND])
		return CLAIM_BOUND;
	if (claim->count[CLAIMANT_RESERVED])
		return CLAIM_RESERVED;
	if (claim->pods.len && claim->count[CLAIMANT_FAILED] == claim->pods.len)
		return CLAIM_FAILED;
	return CLAIM_PENDING;
}

/* The next step on the way there. */
static enum claim_phase step(enum claim_phase now, enum claim_phase target)
{
	switch (now) {
	case CLAIM_NONE:
	case CLAIM_PENDING:
		return target == CLAIM_BOUND ? CLAIM_RESERVED : target;
	case CLAIM_RESERVED:
		return target == CLAIM_PENDING ? CLAIM_FAILED : target;
	case CLAIM_FAILED:
		return target == CLAIM_FAILED ? CLAIM_FAILED : CLAIM_PENDING;
	case CLAIM_BOUND:
		return target == CLAIM_BOUND ? CLAIM_BOUND : CLAIM_PENDING;
	}
	return target;
}

/* Nothing that we know of its pods speaks against what another has written. */
static bool is_foreign(const struct claim *claim, enum claim_phase now)
{
	return claim->pods.len && claim->count[CLAIMANT_UNKNOWN] == claim->pods.len &&
	       (now == CLAIM_PENDING || now == CLAIM_FAILED);
}

void claim_next(const struct claim *claim, enum claim_phase now, struct claim_next *ret)
{
	enum claim_phase target = target_of(claim);

	*ret = (struct claim_next){ .phase = step(now, target) };
	/* Pending again, and its Binding could come before that is written. */
	ret->holds = is_foreign(claim, now) || (now == CLAIM_BOUND && target == CLAIM_RESERVED);
	ret->back = (now == CLAIM_BOUND && target != CLAIM_BOUND) ||
		    (now == CLAIM_RESERVED && target == CLAIM_PENDING);
	if (ret->phase == CLAIM_BOUND || ret->phase == CLAIM_RESERVED)
		ret->shown = first_of(claim,
				      target == CLAIM_BOUND ? CLAIMANT_BOUND : CLAIMANT_RESERVED);
}

static void put_ids(struct json_writer *w, uint32_t gpus)
{
	json_open_array(w);
	for (; gpus; gpus &= gpus - 1)
		json_add_u64(w, gpuset_first(gpus));
	json_close_array(w);
}

static void put_shown(struct json_writer *w, const struct claimant *shown)
{
	json_add_key(w, "nodeName");
	json_add_str(w, shown ? shown->node : NULL);
	json_add_key(w, "gpuIds");
	if (shown)
		put_ids(w, shown->gpus);
	else
		json_add_null(w);
}

static void put_allocated(struct json_writer *w, const struct claim *claim,
			  const struct claimant *first)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_puts(&text, first->allocated);
	if (claim->count[CLAIMANT_BOUND] > 1)
		strbuf_addf(&text, " +%u", claim->count[CLAIMANT_BOUND] - 1);
	json_add_strn(w, text.s, text.len);
}

static void put_allocation(struct json_writer *w, const struct claimant *pod)
{
	json_open_object(w);
	json_add_key(w, "pod");
	json_add_str(w, pod->name);
	json_add_key(w, "uid");
	json_add_str(w, pod->uid);
	json_add_key(w, "nodeName");
	json_add_str(w, pod->node);
	json_add_key(w, "gpuIds");
	put_ids(w, pod->gpus);
	json_close_object(w);
}

static void put_allocations(struct json_writer *w, const struct claim *claim)
{
	uint32_t left = CLAIM_ALLOCATIONS_MAX;

	json_open_array(w);
	for (size_t i = 0; i < claim->pods.len && left; i++) {
		if (claim->pods.items[i]->state != CLAIMANT_BOUND)
			continue;
		put_allocation(w, claim->pods.items[i]);
		left--;
	}
	json_close_array(w);
}

static const struct claimant *first_with_message(const struct claim *claim)
{
	for (size_t i = 0; i < claim->pods.len; i++)
		if (claim->pods.items[i]->message)
			return claim->pods.items[i];
	return NULL;
}

static void put_message(struct json_writer *w, const struct claim *claim,
			const struct claim_next *next)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	uint32_t waits = claim->count[CLAIMANT_WAITS] + claim->count[CLAIMANT_FAILED];
	const struct claimant *pod = waits ? first_with_message(claim) : NULL;

	if (pod)
		strbuf_puts(&text, pod->message);
	else if (!claim->pods.len)
		strbuf_puts(&text, "no pod names this claim");
	else if (next->phase == CLAIM_FAILED)
		strbuf_puts(&text, "what was reserved for it could not be kept");
	if (pod && waits > 1)
		strbuf_addf(&text, " (pod %s and %u more)", pod->name, waits - 1);
	else if (pod && claim->pods.len > 1)
		strbuf_addf(&text, " (pod %s)", pod->name);
	json_add_str(w, text.len ? text.s : NULL);
}

static void put_status(struct json_writer *w, const struct claim *claim, int64_t generation,
		       const struct claim_next *next)
{
	static const char *const names[] = { [CLAIM_PENDING] = "Pending",
					     [CLAIM_RESERVED] = "Reserved",
					     [CLAIM_BOUND] = "Bound",
					     [CLAIM_FAILED] = "Failed" };

	json_add_key(w, "phase");
	json_add_str(w, names[next->phase]);
	put_shown(w, next->shown);
	json_add_key(w, "allocated");
	if (next->phase == CLAIM_BOUND)
		put_allocated(w, claim, next->shown);
	else
		json_add_null(w);
	json_add_key(w, "allocations");
	if (next->phase == CLAIM_BOUND)
		put_allocations(w, claim);
	else
		json_add_null(w);
	json_add_key(w, "message");
	put_message(w, claim, next);
	if (generation > 0) {
		json_add_key(w, "observedGeneration");
		json_add_i64(w, generation);
	}
}

void claim_put_patch(const struct claim *claim, const struct kube_object *object,
		     const struct claim_view *view, const struct claim_next *next,
		     struct strbuf *out)
{
	struct json_writer w = JSON_WRITER_INIT(out);

	json_open_object(&w);
	json_add_key(&w, "metadata");
	json_open_object(&w);
	json_add_key(&w, "resourceVersion");
	json_add_str(&w, object->version);
	json_close_object(&w);
	json_add_key(&w, "status");
	json_open_object(&w);
	put_status(&w, claim, view->meta.generation, next);
	json_close_object(&w);
	json_close_object(&w);
}

static bool is_nothing(const struct json *value)
{
	return json_type(value) == JSON_NONE || json_type(value) == JSON_NULL;
}

enum claim_difference claim_compare(const struct json *document, const struct json *patch)
{
	struct json_iter members = json_members(patch, "status");
	enum claim_difference difference = CLAIM_SAME;

	for (struct json_member member; json_next_member(&members, &member);) {
		const struct json *old = json_get(document, "status", member.key);

		if ((is_nothing(old) && is_nothing(member.value)) ||
		    (old && json_equal(old, member.value)))
			continue;
		if (strcmp(member.key, "message") != 0)
			return CLAIM_DIFFERENT;
		difference = CLAIM_OTHER_MESSAGE;
	}
	return difference;
}
