/* SPDX-License-Identifier: Apache-2.0 */
#include "decide.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "script.h"
#include "target.h"
#include "wire/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OTHERS "others" /* the identity of those that are too many */

/* What is known of one identity. */
struct known {
	char *identity;
	uint64_t requests;
	uint64_t met[]; /* by rule: requests that it matched */
};

struct rule_state {
	uint64_t met, fired;
	uint64_t last_ms; /* of the last one that fired */
};

struct replayed {
	char *key; /* "<n> <identity>" */
	struct decision decision;
};

struct decider {
	const struct script *script;
	size_t rules;
	uint64_t seed;
	bool off, stopped, replaying;
	struct map known;  /* identity -> struct known */
	struct map replay; /* key -> struct replayed */
	struct rule_state *states;
	struct rule_state all;
	uint64_t faults[FAULT_KINDS];
};

struct decider *decider_new(const struct script *script, uint64_t seed)
{
	struct decider *decider = calloc(1, sizeof(*decider));
	if (!decider)
		return NULL;
	decider->script = script;
	decider->rules = script ? script->count : 0;
	decider->seed = seed;
	decider->states = calloc(decider->rules + 1, sizeof(*decider->states));
	map_init(&decider->known, seed);
	map_init(&decider->replay, seed);
	if (!decider->states) {
		decider_free(decider);
		return NULL;
	}
	return decider;
}

void decider_free(struct decider *decider)
{
	if (!decider)
		return;
	struct map_entry entry;
	for (uint32_t at = 0; map_next(&decider->known, &at, &entry);) {
		struct known *known = entry.value;
		free(known->identity);
		free(known);
	}
	for (uint32_t at = 0; map_next(&decider->replay, &at, &entry);) {
		struct replayed *replayed = entry.value;
		free(replayed->key);
		free(replayed);
	}
	map_done(&decider->known);
	map_done(&decider->replay);
	free(decider->states);
	free(decider);
}

void decider_switch(struct decider *decider, bool on)
{
	decider->off = !on;
	if (on)
		decider->stopped = false;
}

bool decider_is_on(const struct decider *decider)
{
	return !decider->off && !decider->stopped;
}

uint64_t decider_requests(const struct decider *decider)
{
	return decider->all.met;
}

uint64_t decider_faults(const struct decider *decider, enum fault_kind kind)
{
	return decider->faults[kind];
}

static struct known *known_get(struct decider *decider, const char *identity, size_t len)
{
	if (decider->known.len >= DECIDE_IDENTITIES_MAX &&
	    !map_get(&decider->known, identity, len)) {
		identity = OTHERS;
		len = strlen(OTHERS);
	}
	struct known *known = map_get(&decider->known, identity, len);
	if (known)
		return known;
	known = calloc(1, sizeof(*known) + decider->rules * sizeof(known->met[0]));
	char *copy = strndup(identity, len);
	if (!known || !copy || map_put(&decider->known, copy, len, known) < 0) {
		free(known);
		free(copy);
		return NULL;
	}
	known->identity = copy;
	return known;
}

static uint64_t draw(struct rng *rng, struct script_range range)
{
	uint64_t span = range.max - range.min;
	return range.min + (span == 0 ? 0 : rng_next(rng) % (span + 1));
}

/* The numbers that the rule leaves open. */
static struct fault draw_fault(const struct script_rule *rule, struct rng *rng)
{
	struct fault fault = rule->fault;
	fault.ms = (uint32_t)draw(rng, rule->ms);
	fault.count = draw(rng, rule->count);
	if (fault.point == POINT_MID_EVENT || fault.kind == FAULT_HALF_BODY)
		fault.permille = 1 + rng_below(rng, 999);
	return fault;
}

static bool within(const struct script_limits *limits, const struct rule_state *state,
		   uint64_t now_ms)
{
	return state->fired < limits->max && state->met > limits->after_requests &&
	       (state->fired == 0 || now_ms - state->last_ms >= limits->gap_ms);
}

static bool fires(const struct script_rule *rule, const struct rule_state *state, struct rng *rng)
{
	bool drawn = (rng_next(rng) >> 32) * SCRIPT_P_ALWAYS >> 32 < rule->p_billionths;
	if (rule->nth)
		return state->met == rule->nth;
	return drawn && (!rule->every || state->met % rule->every == 0);
}

static void fired(struct decider *decider, struct rule_state *state, size_t rule,
		  const struct fault *fault, uint64_t now_ms, struct decision *ret)
{
	if (state) {
		state->fired++;
		state->last_ms = now_ms;
	}
	decider->all.fired++;
	decider->all.last_ms = now_ms;
	decider->faults[fault->kind]++;
	decider->stopped |= fault->kind == FAULT_STOP;
	ret->parts[ret->count++] = (struct decision_part){ rule, *fault };
}

/* Whether the decision is open to a fault of this kind. */
static bool is_open(const struct decision *decision, enum fault_kind kind)
{
	if (decision->count == 0)
		return true;
	return decision->count == 1 && decision->parts[0].fault.kind == FAULT_DELAY &&
	       kind != FAULT_DELAY;
}

/* One rule that matches; it counts the request whatever has fired before it. */
static void ask_rule(struct decider *decider, size_t i, struct known *known, uint64_t now_ms,
		     struct decision *ret)
{
	const struct script_rule *rule = &decider->script->rules[i];
	struct rule_state *state = &decider->states[i];
	uint64_t key[3] = { decider->seed, i, known->met[i]++ };
	state->met++;
	struct rng rng;
	rng_seed(&rng, hash_bytes(known->identity, strlen(known->identity),
				  hash_bytes(key, sizeof(key), 0)));
	if (!fires(rule, state, &rng) || !decider_is_on(decider) ||
	    !is_open(ret, rule->fault.kind) || !within(&rule->limits, state, now_ms) ||
	    !within(&decider->script->limits, &decider->all, now_ms))
		return;
	struct fault fault = draw_fault(rule, &rng);
	fired(decider, state, i + 1, &fault, now_ms, ret);
}

static void ask_log(struct decider *decider, const struct known *known, uint64_t now_ms,
		    struct decision *ret)
{
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&key, "%llu %s", (unsigned long long)known->requests, known->identity);
	const struct replayed *replayed = map_get(&decider->replay, key.s, key.len);
	if (!replayed || !decider_is_on(decider))
		return;
	for (size_t i = 0; i < replayed->decision.count; i++)
		fired(decider, NULL, replayed->decision.parts[i].rule,
		      &replayed->decision.parts[i].fault, now_ms, ret);
}

int decide(struct decider *decider, const struct target *target, uint64_t now_ms,
	   struct decision *ret)
{
	struct known *known = known_get(decider, target->identity.s, target->identity.len);
	if (!known)
		return -ENOMEM;
	decider->all.met++;
	*ret = (struct decision){ .n = ++known->requests };
	if (decider->replaying) {
		ask_log(decider, known, now_ms, ret);
		return 0;
	}
	for (size_t i = 0; i < decider->rules; i++)
		if (script_rule_matches(&decider->script->rules[i], target))
			ask_rule(decider, i, known, now_ms, ret);
	return 0;
}

/* The entry of the log for this request, made if it is the first. */
static struct replayed *replayed_get(struct decider *decider, const char *key, size_t len)
{
	struct replayed *replayed = map_get(&decider->replay, key, len);
	if (replayed)
		return replayed;
	replayed = calloc(1, sizeof(*replayed));
	char *copy = strndup(key, len);
	if (!replayed || !copy || map_put(&decider->replay, copy, len, replayed) < 0) {
		free(replayed);
		free(copy);
		return NULL;
	}
	replayed->key = copy;
	return replayed;
}

static int add_replayed(struct decider *decider, const struct json *line, struct err *err)
{
	const char *identity = json_str(line, "identity");
	int64_t n = 0;
	int64_t rule = 0;
	if (!identity) /* how a fault went, or the head of the log */
		return 0;
	if (json_i64(line, &n, "n") < 0 || n < 1)
		return err_set(err, EINVAL, "a fault without the number n of its request");
	struct fault fault;
	int result = fault_read(line, &fault, err);
	if (result < 0)
		return result;
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&key, "%lld %s", (long long)n, identity);
	struct replayed *replayed = replayed_get(decider, key.s, key.len);
	if (!replayed)
		return err_set(err, ENOMEM, "out of memory");
	struct decision *decision = &replayed->decision;
	if (!is_open(decision, fault.kind))
		return err_set(err, EINVAL, "two faults for the same request");
	if (json_i64(line, &rule, "rule") < 0 || rule < 0)
		rule = 0;
	decision->parts[decision->count++] = (struct decision_part){ (size_t)rule, fault };
	return 0;
}

int decider_replay(struct decider *decider, const char *name, const char *text, size_t len,
		   struct err *err)
{
	const char *end = text + len;
	decider->replaying = true;
	for (size_t line = 1; text < end; line++) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = stop ? (size_t)(stop - text) : (size_t)(end - text);
		struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
		int result = n == 0 ? 0 : json_parse(name, text, n, NULL, &doc, err);
		if (result == 0 && doc &&
		    (result = add_replayed(decider, json_root(doc), err)) < 0)
			err_prefix(err, "%s:%zu", name, line);
		if (result < 0)
			return result;
		text += n + 1;
	}
	return 0;
}
