/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - the tables of subjects, selectors and rules: found by their bytes, gone with the
 * last who uses them. */
#include "engine/cluster_private.h"
#include "engine/rules_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rules_init(struct cluster *c)
{
	struct rules_table *t = &c->rules;

	record_table_init(&t->subject_ids, c->config.seed, &t->serials);
	record_table_init(&t->selector_ids, c->config.seed, &t->serials);
	record_table_init(&t->rules_ids, c->config.seed, &t->serials);
	map_init(&t->namespaces, c->config.seed);
	t->scratch = (struct strbuf)STRBUF_INIT_MAX(2 * VOLUME_BYTES_MAX);
	t->loosened = 1;
	/* Number 0 means none, but somebody may point at it. */
	if (vec_push(&t->subjects, (struct subject){ 0 }) < 0 ||
	    vec_push(&t->selectors, (struct selector){ 0 }) < 0 ||
	    vec_push(&t->rules, (struct rules){ 0 }) < 0)
		return -ENOMEM;
	if (soft_init(c) < 0)
		return -ENOMEM;
	return volumes_init(c);
}

bool subject_has(const struct cluster *c, uint32_t subject, uint32_t selector)
{
	const struct subject *s = &c->rules.subjects.items[subject];

	for (size_t i = 0; subject && i < s->selectors.len; i++)
		if (s->selectors.items[i] == selector)
			return true;
	return false;
}

bool subjects_alike(const struct cluster *c, uint32_t a, uint32_t b)
{
	const struct subject *one = &c->rules.subjects.items[a];

	if (a == b)
		return true;
	if (one->selectors.len != c->rules.subjects.items[b].selectors.len)
		return false;
	for (size_t i = 0; i < one->selectors.len; i++)
		if (!subject_has(c, b, one->selectors.items[i]))
			return false;
	return true;
}

void subject_give(struct cluster *c, uint32_t pod, uint32_t subject)
{
	uint32_t old = c->pods.items[pod]->subject;

	subject_hold(c, subject);
	c->pods.items[pod]->subject = subject;
	subject_release(c, old);
}

static int subject_match(struct cluster *c, uint32_t subject)
{
	struct subject *s = &c->rules.subjects.items[subject];

	for (uint32_t i = 1; i < c->rules.selectors.len; i++) {
		const struct selector *sel = &c->rules.selectors.items[i];

		if (sel->record.bytes && selector_matches(c, sel, s) &&
		    vec_push(&s->selectors, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void subject_free(struct cluster *c, uint32_t subject)
{
	struct subject *s = &c->rules.subjects.items[subject];

	record_leave(&c->rules.subject_ids, &s->record, subject);
	vec_done(&s->selectors);
	*s = (struct subject){ 0 };
}

int subject_take(struct cluster *c, const char *namespace, const struct pod_label *labels,
		 uint32_t labels_count, uint32_t *ret)
{
	struct rules_table *t = &c->rules;
	uint32_t id;
	int rc;

	strbuf_reset(&t->scratch);
	rc = bytes_subject(&t->scratch, namespace, labels, labels_count);
	if (rc < 0)
		return rc;
	id = record_find(&t->subject_ids, &t->scratch);
	if (id) {
		t->subjects.items[id].record.refs++;
		*ret = id;
		return 0;
	}
	if (record_number(&t->subject_ids, &t->subjects, struct subject, &id) < 0)
		return -ENOMEM;
	if (record_enter(&t->subject_ids, &t->subjects.items[id].record, id, &t->scratch) < 0)
		return -ENOMEM;
	if (subject_match(c, id) < 0) {
		subject_free(c, id);
		return -ENOMEM;
	}
	*ret = id;
	return 0;
}

void subject_hold(struct cluster *c, uint32_t subject)
{
	if (subject)
		c->rules.subjects.items[subject].record.refs++;
}

void rules_hold(struct cluster *c, uint32_t rules)
{
	if (rules)
		c->rules.rules.items[rules].record.refs++;
}

uint64_t rules_serial(const struct cluster *c, uint32_t rules)
{
	return c->rules.rules.items[rules].record.serial;
}

uint64_t subject_serial(const struct cluster *c, uint32_t subject)
{
	return c->rules.subjects.items[subject].record.serial;
}

void subject_release(struct cluster *c, uint32_t subject)
{
	if (subject && --c->rules.subjects.items[subject].record.refs == 0)
		subject_free(c, subject);
}

static void subjects_forget(struct cluster *c, uint32_t selector)
{
	for (uint32_t i = 1; i < c->rules.subjects.len; i++) {
		numbers *list = (numbers *)&c->rules.subjects.items[i].selectors;

		for (size_t j = 0; j < list->len; j++)
			if (list->items[j] == selector)
				list->items[j--] = list->items[--list->len];
	}
}

static void selector_release(struct cluster *c, uint32_t selector)
{
	struct selector *s = &c->rules.selectors.items[selector];

	if (--s->record.refs)
		return;
	subjects_forget(c, selector);
	record_leave(&c->rules.selector_ids, &s->record, selector);
	vec_done(&s->counters);
	*s = (struct selector){ 0 };
}

static int selector_learn(struct cluster *c, uint32_t selector)
{
	const struct selector *sel = &c->rules.selectors.items[selector];

	for (uint32_t i = 1; i < c->rules.subjects.len; i++) {
		struct subject *s = &c->rules.subjects.items[i];

		if (s->record.bytes && selector_matches(c, sel, s) &&
		    vec_push(&s->selectors, selector) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The selector that scratch holds the bytes of. */
static int selector_take(struct cluster *c, uint32_t *ret)
{
	struct rules_table *t = &c->rules;
	uint32_t id = record_find(&t->selector_ids, &t->scratch);

	if (id) {
		t->selectors.items[id].record.refs++;
		*ret = id;
		return 0;
	}
	if (record_number(&t->selector_ids, &t->selectors, struct selector, &id) < 0)
		return -ENOMEM;
	if (record_enter(&t->selector_ids, &t->selectors.items[id].record, id, &t->scratch) < 0)
		return -ENOMEM;
	if (selector_learn(c, id) < 0) {
		selector_release(c, id);
		return -ENOMEM;
	}
	*ret = id;
	return 0;
}

/* A counter of a list, and the selector that it holds. */
int counters_add(struct cluster *c, struct counter *like, numbers *list)
{
	uint32_t counter;
	int rc;

	if (vec_reserve(list, list->len + 1) < 0)
		return -ENOMEM;
	rc = counter_take(c, like, &counter);
	if (rc < 0)
		return rc;
	c->rules.selectors.items[like->selector].record.refs++;
	list->items[list->len++] = counter;
	return 0;
}

void counters_drop(struct cluster *c, numbers *list)
{
	for (size_t i = 0; i < list->len; i++) {
		uint32_t selector = c->rules.counters.items[list->items[i]].selector;

		counter_release(c, list->items[i]);
		selector_release(c, selector);
	}
	vec_done(list);
}

static int build_near(struct cluster *c, struct rules *r, const struct rules_spec *spec)
{
	int rc;

	if (!spec->near_count)
		return 0;
	strbuf_reset(&c->rules.scratch);
	rc = bytes_selector(&c->rules.scratch, spec->near, spec->near_count);
	if (rc == 0)
		rc = selector_take(c, &r->near_selector);
	for (uint32_t i = 0; rc == 0 && i < spec->near_count; i++) {
		struct counter like = { .selector = r->near_selector,
					.kind = COUNT_MATCHING,
					.key = (char *)spec->near[i].topology_key };

		rc = counters_add(c, &like, &r->near);
		if (rc == 0)
			c->rules.counters.items[r->near.items[r->near.len - 1]].wanted++;
	}
	return rc;
}

static int build_apart(struct cluster *c, struct rules *r, const struct rules_spec *spec)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < spec->apart_count; i++) {
		struct counter like = { .kind = COUNT_MATCHING,
					.key = (char *)spec->apart[i].topology_key };

		strbuf_reset(&c->rules.scratch);
		rc = bytes_selector(&c->rules.scratch, &spec->apart[i], 1);
		if (rc == 0)
			rc = selector_take(c, &like.selector);
		if (rc < 0)
			return rc;
		rc = counters_add(c, &like, &r->apart);
		like.kind = COUNT_HOLDERS;
		if (rc == 0)
			rc = counters_add(c, &like, &r->holds);
		selector_release(c, like.selector); /* the counters hold it */
	}
	return rc;
}

static int add_spread(struct cluster *c, uint32_t id, const struct spread_rule *rule,
		      const struct rules_spec *spec)
{
	struct rules *r = &c->rules.rules.items[id];
	struct counter like = { .kind = COUNT_SPREAD,
				.rules = id,
				.key = (char *)rule->topology_key,
				.ignore_affinity = rule->ignore_affinity,
				.honor_taints = rule->honor_taints };
	struct spread_state state = {
		.max_skew = rule->max_skew,
		.min_domains = rule->min_domains ? rule->min_domains : 1,
		.itself = !rule->nobody && !rule->labels_count,
	};
	int rc;

	if (vec_reserve(&r->spread, r->spread.len + 1) < 0)
		return -ENOMEM;
	strbuf_reset(&c->rules.scratch);
	rc = bytes_spread_selector(&c->rules.scratch, spec->namespace, rule);
	if (rc == 0)
		rc = selector_take(c, &like.selector);
	if (rc < 0)
		return rc;
	rc = counter_take(c, &like, &state.counter);
	if (rc < 0) {
		selector_release(c, like.selector);
		return rc;
	}
	r->spread.items[r->spread.len++] = state;
	return 0;
}

static int build_spread(struct cluster *c, uint32_t id, const struct rules_spec *spec)
{
	struct rules *r = &c->rules.rules.items[id];
	size_t bytes = spec->tolerations_count * sizeof(*r->tolerations);
	int rc = 0;

	if (!spec->spread_count)
		return 0;
	r->tolerations = malloc(bytes + 1);
	if (!r->tolerations)
		return -ENOMEM;
	if (bytes)
		memcpy(r->tolerations, spec->tolerations, bytes);
	r->tolerations_count = spec->tolerations_count;
	for (uint32_t i = 0; rc == 0 && i < spec->spread_count; i++)
		rc = add_spread(c, id, &spec->spread[i], spec);
	for (uint32_t i = 0; rc == 0 && i < spec->spread_count; i++)
		rc = counter_fill(c, r->spread.items[i].counter);
	return rc;
}

static int build_ports(struct rules *r, const struct rules_spec *spec)
{
	size_t bytes = spec->ports_count * sizeof(*r->ports);

	if (!bytes)
		return 0;
	r->ports = malloc(bytes);
	if (!r->ports)
		return -ENOMEM;
	memcpy(r->ports, spec->ports, bytes);
	r->ports_count = spec->ports_count;
	return 0;
}

static void rules_free(struct cluster *c, uint32_t id)
{
	struct rules *r = &c->rules.rules.items[id];

	for (size_t i = 0; i < r->near.len; i++)
		c->rules.counters.items[r->near.items[i]].wanted--;
	counters_drop(c, (numbers *)&r->near);
	counters_drop(c, (numbers *)&r->apart);
	counters_drop(c, (numbers *)&r->holds);
	for (size_t i = 0; i < r->spread.len; i++) {
		uint32_t selector = c->rules.counters.items[r->spread.items[i].counter].selector;

		counter_release(c, r->spread.items[i].counter);
		selector_release(c, selector);
	}
	vec_done(&r->spread);
	if (r->near_selector)
		selector_release(c, r->near_selector);
	vec_done(&r->program);
	volumes_drop(c, r);
	free(r->ports);
	free(r->tolerations);
	record_leave(&c->rules.rules_ids, &r->record, id);
	*r = (struct rules){ 0 };
}

static bool demands_nothing(const struct rules_spec *s)
{
	return !s->groups_count && !s->ports_count && !s->near_count && !s->apart_count &&
	       !s->spread_count && !s->volumes_count;
}

int rules_take(struct cluster *c, const struct rules_spec *spec, uint32_t *ret)
{
	struct rules_table *t = &c->rules;
	uint32_t id;
	int rc;

	*ret = 0;
	if (demands_nothing(spec))
		return 0;
	strbuf_reset(&t->scratch);
	rc = bytes_rules(&t->scratch, spec);
	if (rc < 0)
		return rc;
	id = record_find(&t->rules_ids, &t->scratch);
	if (id) {
		t->rules.items[id].record.refs++;
		*ret = id;
		return 0;
	}
	if (record_number(&t->rules_ids, &t->rules, struct rules, &id) < 0)
		return -ENOMEM;
	if (record_enter(&t->rules_ids, &t->rules.items[id].record, id, &t->scratch) < 0)
		return -ENOMEM;
	rc = program_compile(c, &t->rules.items[id]);
	if (rc == 0)
		rc = build_ports(&t->rules.items[id], spec);
	if (rc == 0)
		rc = volumes_take(c, id, spec);
	if (rc == 0)
		rc = build_near(c, &t->rules.items[id], spec);
	if (rc == 0)
		rc = build_apart(c, &t->rules.items[id], spec);
	if (rc == 0)
		rc = build_spread(c, id, spec);
	if (rc < 0) {
		rules_free(c, id);
		return rc;
	}
	*ret = id;
	return 0;
}

void rules_release(struct cluster *c, uint32_t rules)
{
	if (rules && --c->rules.rules.items[rules].record.refs == 0)
		rules_free(c, rules);
}

void rules_done(struct cluster *c)
{
	struct rules_table *t = &c->rules;
	struct map_entry entry;

	soft_done(c);
	for (uint32_t i = 1; i < t->rules.len; i++)
		if (t->rules.items[i].record.bytes)
			rules_free(c, i);
	for (uint32_t i = 1; i < t->subjects.len; i++)
		if (t->subjects.items[i].record.bytes)
			subject_free(c, i);
	for (uint32_t at = 0; map_next(&t->namespaces, &at, &entry);)
		namespace_free(entry.value);
	vec_done(&t->subjects);
	vec_done(&t->selectors);
	vec_done(&t->rules);
	vec_done(&t->counters);
	vec_done(&t->free_counters);
	record_table_done(&t->subject_ids);
	record_table_done(&t->selector_ids);
	record_table_done(&t->rules_ids);
	map_done(&t->namespaces);
	volumes_done(c);
	strbuf_done(&t->scratch);
}
