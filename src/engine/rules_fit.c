/* SPDX-License-Identifier: Apache-2.0 */
/* rules_fit.c - does a node keep the rules of a pod. */
#include "engine/cluster_private.h"
#include "engine/rules_private.h"

#include <string.h>

/* One question, for the functions below. */
struct question {
	const struct cluster *cluster;
	const struct rules *rules; /* of nothing, if it has none */
	uint32_t subject, node;
	const uint32_t *without;
	uint32_t without_count;
};

bool rules_of_nodes(const struct cluster *c, uint32_t rules)
{
	return c->rules.rules.items[rules].groups;
}

bool rules_of_pods(const struct cluster *c, uint32_t rules)
{
	const struct rules *r = &c->rules.rules.items[rules];

	return r->ports_count || r->near.len || r->apart.len || r->spread.len || r->volumes_count;
}

bool subject_matters(const struct cluster *c, uint32_t subject)
{
	const struct subject *s = &c->rules.subjects.items[subject];

	for (size_t i = 0; i < s->selectors.len; i++)
		if (c->rules.selectors.items[s->selectors.items[i]].held)
			return true;
	return false;
}

uint64_t rules_loosened(const struct cluster *c)
{
	return c->rules.loosened;
}

enum verdict rules_fit_node(const struct cluster *c, uint32_t rules, uint32_t node)
{
	struct rules *r = &c->rules.rules.items[rules];

	if (!r->groups)
		return FITS;
	/* New strings have come: one of them may be the one that was missing. */
	if (r->unknown && r->strings_seen != c->strings.len)
		program_refresh(c, r);
	return program_fit(c, r, cluster_node(c, node), false);
}

static bool wildcard(const char *ip)
{
	return !ip[0] || strcmp(ip, "0.0.0.0") == 0;
}

static bool port_conflict(const struct host_port *a, const struct host_port *b)
{
	return a->port == b->port && a->protocol == b->protocol &&
	       (wildcard(a->ip) || wildcard(b->ip) || strcmp(a->ip, b->ip) == 0);
}

static bool ports_conflict(const struct rules *a, const struct rules *b)
{
	for (uint32_t i = 0; i < a->ports_count; i++)
		for (uint32_t j = 0; j < b->ports_count; j++)
			if (port_conflict(&a->ports[i], &b->ports[j]))
				return true;
	return false;
}

static bool is_without(const struct question *q, uint32_t pod)
{
	for (uint32_t i = 0; i < q->without_count; i++)
		if (q->without[i] == pod)
			return true;
	return false;
}

static bool ports_free(const struct question *q)
{
	const struct cluster *c = q->cluster;
	uint32_t p = cluster_node(c, q->node)->first_pod;

	for (; q->rules->ports_count && p != POD_NONE; p = c->pods.items[p]->next)
		if (!is_without(q, p) &&
		    ports_conflict(q->rules, &c->rules.rules.items[c->pods.items[p]->rules]))
			return false;
	return true;
}

/* Pods of this counter in the node's domain, less those that are taken as gone: they are on
 * this node, hence in its domain. */
static uint32_t pods_near(const struct question *q, const struct counter *k, uint32_t value)
{
	const struct cluster *c = q->cluster;
	uint32_t pods = tally_pods(&k->tally, value);

	for (uint32_t i = 0; i < q->without_count; i++)
		pods -= counter_weight(c, k, c->pods.items[q->without[i]], q->node);
	return pods;
}

static const struct counter *counter_of(const struct question *q, uint32_t counter)
{
	return &q->cluster->rules.counters.items[counter];
}

/* Where nobody in the cluster matches, the first of a kind may begin anywhere. */
static bool may_begin(const struct question *q)
{
	const struct rules *r = q->rules;
	uint64_t pods = 0;

	for (size_t i = 0; i < r->near.len; i++)
		pods += counter_of(q, r->near.items[i])->tally.pods;
	for (uint32_t i = 0; pods && i < q->without_count; i++)
		for (size_t j = 0; j < r->near.len; j++)
			pods -= counter_weight(q->cluster, counter_of(q, r->near.items[j]),
					       q->cluster->pods.items[q->without[i]], q->node);
	return !pods && subject_has(q->cluster, q->subject, r->near_selector);
}

static bool near_holds(const struct question *q)
{
	const struct node *n = cluster_node(q->cluster, q->node);
	bool all = true;
	uint32_t value;

	for (size_t i = 0; i < q->rules->near.len; i++) {
		const struct counter *k = counter_of(q, q->rules->near.items[i]);

		if (!counter_value(q->cluster, k, n, &value))
			return false;
		all &= pods_near(q, k, value) > 0;
	}
	return all || may_begin(q);
}

static bool apart_holds(const struct question *q)
{
	const struct node *n = cluster_node(q->cluster, q->node);
	uint32_t value;

	for (size_t i = 0; i < q->rules->apart.len; i++) {
		const struct counter *k = counter_of(q, q->rules->apart.items[i]);

		if (counter_value(q->cluster, k, n, &value) && pods_near(q, k, value) > 0)
			return false;
	}
	return true;
}

/* Those who are there and keep away from pods like this one. */
static bool others_allow(const struct question *q)
{
	const struct cluster *c = q->cluster;
	const struct subject *s = &c->rules.subjects.items[q->subject];
	const struct node *n = cluster_node(c, q->node);
	uint32_t value;

	for (size_t i = 0; i < s->selectors.len; i++) {
		const struct selector *sel = &c->rules.selectors.items[s->selectors.items[i]];

		for (size_t j = 0; sel->held && j < sel->counters.len; j++) {
			const struct counter *k = counter_of(q, sel->counters.items[j]);

			if (k->kind == COUNT_HOLDERS && counter_value(c, k, n, &value) &&
			    pods_near(q, k, value) > 0)
				return false;
		}
	}
	return true;
}

static enum verdict spread_fit(const struct question *q, const struct spread_state *s)
{
	struct counter *k = &q->cluster->rules.counters.items[s->counter]; /* tally_least */
	uint32_t value, least, itself;

	if (!counter_value(q->cluster, k, cluster_node(q->cluster, q->node), &value))
		return NO_SPREAD_LABEL;
	least = k->tally.domains < s->min_domains ? 0 : tally_least(&k->tally);
	itself = s->itself || subject_has(q->cluster, q->subject, k->selector);
	/* Victims only lower what is near, and the least with it at most. */
	if ((uint64_t)pods_near(q, k, value) + itself > (uint64_t)least + s->max_skew)
		return UNEVEN;
	return FITS;
}

enum verdict rules_fit_pods(const struct cluster *c, uint32_t rules, uint32_t subject,
			    uint32_t node, const uint32_t *without, uint32_t without_count)
{
	struct question q = { .cluster = c,
			      .rules = &c->rules.rules.items[rules],
			      .subject = subject,
			      .node = node,
			      .without = without,
			      .without_count = without_count };
	enum verdict v = FITS;

	if (!ports_free(&q))
		return NO_PORT;
	if (q.rules->volumes_count)
		v = volumes_fit(c, q.rules, node, without, without_count);
	for (size_t i = 0; v == FITS && i < q.rules->spread.len; i++)
		v = spread_fit(&q, &q.rules->spread.items[i]);
	if (v != FITS)
		return v;
	if (!near_holds(&q))
		return NOT_NEAR;
	if (!apart_holds(&q))
		return NOT_APART;
	return others_allow(&q) ? FITS : KEPT_AWAY;
}
