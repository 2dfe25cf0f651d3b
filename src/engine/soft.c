/* SPDX-License-Identifier: Apache-2.0 */
/* soft.c - the table of preferences, and terms that are demanded as rules. */
#include "engine/soft.h"
#include "engine/cluster_private.h"
#include "engine/rules_private.h"

#include <errno.h>
#include <stdlib.h>

int soft_init(struct cluster *c)
{
	record_table_init(&c->rules.soft_ids, c->config.seed, &c->rules.serials);
	/* Number 0 means none, but somebody may point at it. */
	return vec_push(&c->rules.softs, (struct soft){ 0 });
}

static struct soft *soft_at(const struct cluster *c, uint32_t soft)
{
	return &c->rules.softs.items[soft];
}

static void terms_release(struct cluster *c, const struct soft_term *terms, size_t count)
{
	for (size_t i = 0; i < count; i++)
		rules_release(c, terms[i].rules);
}

static void soft_free(struct cluster *c, uint32_t soft)
{
	struct soft *s = soft_at(c, soft);

	counters_drop(c, (numbers *)&s->leans);
	terms_release(c, s->terms.items, s->terms.len);
	vec_done(&s->terms);
	record_leave(&c->rules.soft_ids, &s->record, soft);
	*s = (struct soft){ 0 };
}

void soft_done(struct cluster *c)
{
	struct rules_table *t = &c->rules;

	for (uint32_t i = 1; i < t->softs.len; i++)
		if (t->softs.items[i].record.bytes)
			soft_free(c, i);
	vec_done(&t->softs);
	record_table_done(&t->soft_ids);
}

/* How early a term is tried as a rule.  All have the same share in the points; a spread is as
 * heavy as the heaviest.  What is only for others comes last. */
static uint32_t urgency(const struct soft_term *t)
{
	if (t->kind == SOFT_DRAWN)
		return 0;
	return t->kind == SOFT_SPREAD ? SOFT_WEIGHT_MAX : t->weight;
}

/* The terms as rules, in the order in which they are tried; of equal ones as they came. */
static int terms_take(struct cluster *c, const struct soft_term_spec *specs, uint32_t count,
		      struct soft_term *terms)
{
	for (uint32_t i = 0; i < count; i++) {
		struct soft_term t = { .kind = specs[i].kind, .weight = specs[i].weight };
		uint32_t at = i;
		int rc = rules_take(c, &specs[i].rules, &t.rules);

		if (rc < 0) {
			terms_release(c, terms, i);
			return rc;
		}
		for (; at && urgency(&terms[at - 1]) < urgency(&t); at--)
			terms[at] = terms[at - 1];
		terms[at] = t;
	}
	return 0;
}

/* The counter of pods that a term about pods looks at. */
static const struct counter *term_counter(const struct cluster *c, const struct soft_term *t)
{
	const struct rules *r = &c->rules.rules.items[t->rules];

	return &c->rules.counters
			.items[t->kind == SOFT_APART ? r->apart.items[0] : r->near.items[0]];
}

/* What the pod means to those who come later, once it is placed. */
static int build_leans(struct cluster *c, struct soft *s)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->terms.len; i++) {
		const struct soft_term *t = &s->terms.items[i];
		const struct counter *pods;
		struct counter like = { .kind = COUNT_LEANING, .lean = t->weight };

		if (t->kind == SOFT_NODE || t->kind == SOFT_SPREAD)
			continue;
		pods = term_counter(c, t);
		like.selector = pods->selector;
		like.key = pods->key;
		if (t->kind == SOFT_APART)
			like.lean = -like.lean;
		rc = counters_add(c, &like, (numbers *)&s->leans);
	}
	return rc;
}

/* Terms are rules that somebody holds, so their numbers tell them apart. */
static uint32_t soft_find(struct cluster *c, const struct soft_term *terms, uint32_t count)
{
	struct strbuf *bytes = &c->rules.scratch;

	strbuf_reset(bytes);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t words[] = { terms[i].rules, terms[i].kind, terms[i].weight };

		strbuf_add(bytes, (const char *)words, sizeof(words));
	}
	return bytes->failed ? 0 : record_find(&c->rules.soft_ids, bytes);
}

/* With the bytes that soft_find() has left; takes the terms over. */
static int soft_new(struct cluster *c, const struct soft_term *terms, uint32_t count,
		    uint32_t *ret)
{
	struct rules_table *t = &c->rules;
	uint32_t id;
	int rc;

	if (t->scratch.failed || record_number(&t->soft_ids, &t->softs, struct soft, &id) < 0 ||
	    record_enter(&t->soft_ids, &t->softs.items[id].record, id, &t->scratch) < 0) {
		terms_release(c, terms, count);
		return -ENOMEM;
	}
	rc = vec_reserve(&t->softs.items[id].terms, count);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		vec_push(&t->softs.items[id].terms, terms[i]);
	if (rc < 0)
		terms_release(c, terms, count);
	if (rc == 0)
		rc = build_leans(c, &t->softs.items[id]);
	if (rc < 0)
		soft_free(c, id);
	else
		*ret = id;
	return rc;
}

static bool term_sound(const struct soft_term_spec *t)
{
	const struct rules_spec *r = &t->rules;

	if (t->weight < 1 || t->weight > SOFT_WEIGHT_MAX)
		return false;
	switch ((enum soft_kind)t->kind) {
	case SOFT_NODE:
		return r->groups_count == 1;
	case SOFT_APART:
		return r->apart_count == 1;
	case SOFT_SPREAD:
		return r->spread_count;
	default:
		return r->near_count == 1;
	}
}

int soft_take(struct cluster *c, const struct soft_term_spec *specs, uint32_t count, uint32_t *ret)
{
	struct soft_term terms[SOFT_TERMS_MAX];
	uint32_t id;
	int rc;

	*ret = 0;
	if (!count)
		return 0;
	if (count > SOFT_TERMS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		if (!term_sound(&specs[i]))
			return -EINVAL;
	rc = terms_take(c, specs, count, terms);
	if (rc < 0)
		return rc;
	id = soft_find(c, terms, count);
	if (!id)
		return soft_new(c, terms, count, ret);
	terms_release(c, terms, count);
	soft_at(c, id)->record.refs++;
	*ret = id;
	return 0;
}

void soft_hold(struct cluster *c, uint32_t soft)
{
	if (soft)
		soft_at(c, soft)->record.refs++;
}

void soft_release(struct cluster *c, uint32_t soft)
{
	if (soft && --soft_at(c, soft)->record.refs == 0)
		soft_free(c, soft);
}

uint64_t soft_serial(const struct cluster *c, uint32_t soft)
{
	return soft_at(c, soft)->record.serial;
}

static bool term_of_nodes(const struct soft_term *t)
{
	return t->kind == SOFT_NODE;
}

uint32_t soft_demands(const struct cluster *c, const struct request *r)
{
	const struct soft *s = soft_at(c, r->soft);
	uint32_t demand = c->rules.shunned ? DEMAND_TAINTS : 0;

	for (uint32_t i = 0; i < s->terms.len && i < SOFT_TRIED; i++)
		if (s->terms.items[i].kind != SOFT_DRAWN)
			demand |= UINT32_C(1) << i;
	return demand;
}

/* The next demanded term after *at, or NULL. */
static const struct soft_term *next_demand(const struct cluster *c, const struct request *r,
					   uint32_t *at)
{
	const struct soft *s = soft_at(c, r->demand_of);

	while (*at < s->terms.len && *at < SOFT_TRIED) {
		uint32_t i = (*at)++;

		if (r->demand >> i & 1)
			return &s->terms.items[i];
	}
	return NULL;
}

static bool demands_any(const struct cluster *c, const struct request *r, bool of_nodes)
{
	const struct soft_term *t;

	for (uint32_t at = 0; r->demand_of && (t = next_demand(c, r, &at));)
		if (term_of_nodes(t) == of_nodes)
			return true;
	return false;
}

bool soft_of_nodes(const struct cluster *c, const struct request *r)
{
	return demands_any(c, r, true);
}

bool soft_of_pods(const struct cluster *c, const struct request *r)
{
	return demands_any(c, r, false);
}

enum verdict soft_fit_node(const struct cluster *c, const struct request *r, uint32_t node)
{
	const struct soft_term *t;
	enum verdict v = FITS;

	for (uint32_t at = 0; r->demand_of && v == FITS && (t = next_demand(c, r, &at));)
		if (term_of_nodes(t))
			v = rules_fit_node(c, t->rules, node);
	return v;
}

enum verdict soft_fit_pods(const struct cluster *c, const struct request *r, uint32_t node)
{
	const struct soft_term *t;
	enum verdict v = FITS;

	for (uint32_t at = 0; r->demand_of && v == FITS && (t = next_demand(c, r, &at));)
		if (!term_of_nodes(t))
			v = rules_fit_pods(c, t->rules, r->subject, node, NULL, 0);
	return v;
}
