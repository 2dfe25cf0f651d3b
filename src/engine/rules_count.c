/* SPDX-License-Identifier: Apache-2.0 */
/* rules_count.c - how many pods match which selector, by topology value, kept as pods and
 * nodes come and go. */
#include "engine/cluster_private.h"
#include "engine/rules_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct counter *counter_at(const struct cluster *c, uint32_t counter)
{
	return &c->rules.counters.items[counter];
}

/* The key may have had no number when the counter was made. */
bool counter_value(const struct cluster *c, const struct counter *counter, const struct node *n,
		   uint32_t *ret)
{
	struct counter *k = (struct counter *)counter; /* the number is a memo */

	if (k->key_id == UINT32_MAX && k->strings_seen != c->strings.len) {
		k->strings_seen = (uint32_t)c->strings.len;
		if (!map_get_u32(&c->string_ids, k->key, strlen(k->key), &k->key_id))
			k->key_id = UINT32_MAX;
	}
	for (uint32_t i = 0; k->key_id != UINT32_MAX && i < n->labels_count; i++) {
		if (n->labels[i].key != k->key_id)
			continue;
		*ret = n->labels[i].value;
		return true;
	}
	return false;
}

static bool is_eligible(const struct counter *k, uint32_t node)
{
	return node < k->eligible_len && k->eligible[node];
}

/* What the pod counts as: 0 or 1. */
static int32_t weight(const struct cluster *c, const struct counter *k, const struct pod *pod)
{
	if (k->kind == COUNT_HOLDERS || k->kind == COUNT_LEANING ||
	    !subject_has(c, pod->subject, k->selector))
		return 0;
	return k->kind == COUNT_MATCHING || !pod->ending;
}

static int count(struct cluster *c, struct counter *k, uint32_t node, int32_t pods)
{
	uint32_t value;

	if (!pods || (k->kind == COUNT_SPREAD && !is_eligible(k, node)) ||
	    !counter_value(c, k, node_at(c, node), &value))
		return 0;
	return tally_add(&k->tally, value, pods, 0);
}

/* Those that it keeps away from, then those that it would rather have near or far. */
static struct counter *next_held(const struct cluster *c, const struct pod *pod, uint32_t *at)
{
	const numbers *holds = (const numbers *)&c->rules.rules.items[pod->rules].holds;
	const numbers *leans = (const numbers *)&c->rules.softs.items[pod->soft].leans;

	if (*at < holds->len)
		return counter_at(c, holds->items[(*at)++]);
	if (*at - holds->len < leans->len)
		return counter_at(c, leans->items[(*at)++ - holds->len]);
	return NULL;
}

/* All counters that this pod concerns, in a fixed order: of the selectors that match it, then
 * of those that it holds.  NULL after the last. */
struct concern {
	uint32_t selector, counter; /* where we are */
};

static struct counter *next_concern(const struct cluster *c, const struct pod *pod,
				    struct concern *at, int32_t *pods)
{
	const struct subject *s = &c->rules.subjects.items[pod->subject];

	while (pod->subject && at->selector < s->selectors.len) {
		const struct selector *sel =
			&c->rules.selectors.items[s->selectors.items[at->selector]];

		while (at->counter < sel->counters.len) {
			struct counter *k = counter_at(c, sel->counters.items[at->counter++]);

			*pods = weight(c, k, pod);
			if (*pods)
				return k;
		}
		at->selector++;
		at->counter = 0;
	}
	*pods = 1;
	return next_held(c, pod, &at->counter);
}

static void held(struct cluster *c, const struct pod *pod, int sign)
{
	const struct counter *k;
	uint32_t at = 0;

	while ((k = next_held(c, pod, &at))) {
		struct selector *s = &c->rules.selectors.items[k->selector];

		*(k->kind == COUNT_LEANING ? &s->leaning : &s->held) += (uint32_t)sign;
	}
}

/* A pod that comes may be wanted near, or raise the least of an even spread; one that goes may
 * have been in the way in any manner. */
static void loosen(struct cluster *c, const struct pod *pod, bool comes)
{
	struct concern at = { 0 };
	const struct counter *k;
	int32_t pods;

	c->rules.loosened += !comes && pod->rules;
	while ((k = next_concern(c, pod, &at, &pods))) {
		if (comes && k->kind != COUNT_SPREAD && !k->wanted)
			continue;
		c->rules.loosened++;
		return;
	}
}

int rules_pod_enter(struct cluster *c, const struct pod *pod, uint32_t node)
{
	struct concern at = { 0 }, undo = { 0 };
	struct counter *k;
	int32_t pods;

	while ((k = next_concern(c, pod, &at, &pods))) {
		if (count(c, k, node, pods) == 0)
			continue;
		while ((k = next_concern(c, pod, &undo, &pods)) &&
		       memcmp(&undo, &at, sizeof(at)) != 0)
			count(c, k, node, -pods);
		return -ENOMEM;
	}
	held(c, pod, 1);
	volumes_used(c, pod, 1);
	loosen(c, pod, true);
	return 0;
}

void rules_pod_leave(struct cluster *c, const struct pod *pod, uint32_t node)
{
	struct concern at = { 0 };
	struct counter *k;
	int32_t pods;

	loosen(c, pod, false);
	while ((k = next_concern(c, pod, &at, &pods)))
		count(c, k, node, -pods);
	held(c, pod, -1);
	volumes_used(c, pod, -1);
}

void rules_pod_ending(struct cluster *c, const struct pod *pod)
{
	struct concern at = { 0 };
	struct counter *k;
	int32_t pods;

	while ((k = next_concern(c, pod, &at, &pods)))
		if (k->kind == COUNT_SPREAD)
			count(c, k, pod->node, -pods);
	c->rules.loosened++;
}

/* Whether the node counts for the even spread of these rules. */
static bool node_counts(const struct cluster *c, const struct counter *k, const struct node *n)
{
	const struct rules *r = &c->rules.rules.items[k->rules];
	uint32_t value;

	if (!n->name)
		return false;
	for (size_t i = 0; i < r->spread.len; i++)
		if (!counter_value(c, counter_at(c, r->spread.items[i].counter), n, &value))
			return false;
	if (!k->ignore_affinity && program_fit(c, r, n, true) != FITS)
		return false;
	return !k->honor_taints || taints_tolerated(r->tolerations, r->tolerations_count, n);
}

static int eligible_grow(struct counter *k, uint32_t nodes)
{
	uint32_t room = k->eligible_len ? k->eligible_len : 64;
	uint8_t *grown;

	if (nodes <= k->eligible_len)
		return 0;
	while (room < nodes)
		room *= 2;
	grown = realloc(k->eligible, room);
	if (!grown)
		return -ENOMEM;
	memset(grown + k->eligible_len, 0, room - k->eligible_len);
	k->eligible = grown;
	k->eligible_len = room;
	return 0;
}

uint32_t counter_weight(const struct cluster *c, const struct counter *k, const struct pod *pod,
			uint32_t node)
{
	const struct counter *held;
	uint32_t terms = 0, at = 0;

	if (k->kind == COUNT_SPREAD && !is_eligible(k, node))
		return 0;
	if (k->kind != COUNT_HOLDERS && k->kind != COUNT_LEANING)
		return (uint32_t)weight(c, k, pod);
	while ((held = next_held(c, pod, &at)))
		terms += held == k;
	return terms;
}

int rules_pod_count(struct cluster *c, const struct pod *pod, uint32_t selector, int sign)
{
	const struct selector *s = &c->rules.selectors.items[selector];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->counters.len; i++) {
		struct counter *k = counter_at(c, s->counters.items[i]);

		rc = count(c, k, pod->node, sign * weight(c, k, pod));
	}
	return rc;
}

/* The node's pods into the counter, or out of it. */
static int count_node(struct cluster *c, struct counter *k, uint32_t node, int sign)
{
	int32_t pods = 0;

	for (uint32_t p = node_at(c, node)->first_pod; p != POD_NONE; p = c->pods.items[p]->next)
		pods += (int32_t)counter_weight(c, k, c->pods.items[p], node);
	return count(c, k, node, sign < 0 ? -pods : pods);
}

/* Cannot fail after rules_node_reserve(). */
static int node_in(struct cluster *c, struct counter *k, uint32_t node)
{
	const struct node *n = node_at(c, node);
	uint32_t value;

	if (k->kind == COUNT_SPREAD) {
		k->eligible[node] = node_counts(c, k, n);
		if (k->eligible[node] && counter_value(c, k, n, &value) &&
		    tally_add(&k->tally, value, 0, 1) < 0) {
			k->eligible[node] = 0;
			return -ENOMEM;
		}
	}
	return count_node(c, k, node, 1);
}

static void node_out(struct cluster *c, struct counter *k, uint32_t node)
{
	uint32_t value;

	count_node(c, k, node, -1);
	if (k->kind != COUNT_SPREAD || !is_eligible(k, node))
		return;
	if (counter_value(c, k, node_at(c, node), &value))
		tally_add(&k->tally, value, 0, -1);
	k->eligible[node] = 0;
}

int rules_node_reserve(struct cluster *c, uint32_t node, uint32_t pods)
{
	for (uint32_t i = 0; i < c->rules.counters.len; i++) {
		struct counter *k = counter_at(c, i);

		if (k->refs && (tally_reserve(&k->tally, pods) < 0 ||
				(k->kind == COUNT_SPREAD && eligible_grow(k, node + 1) < 0)))
			return -ENOMEM;
	}
	return 0;
}

void rules_node_enter(struct cluster *c, uint32_t node)
{
	for (uint32_t i = 0; i < c->rules.counters.len; i++)
		if (counter_at(c, i)->refs && node_in(c, counter_at(c, i), node) < 0)
			abort(); /* reserved */
	c->rules.shunned += taints_discouraging(NULL, 0, node_at(c, node)) != 0;
	c->rules.loosened++;
}

void rules_node_leave(struct cluster *c, uint32_t node)
{
	for (uint32_t i = 0; i < c->rules.counters.len; i++)
		if (counter_at(c, i)->refs)
			node_out(c, counter_at(c, i), node);
	c->rules.shunned -= taints_discouraging(NULL, 0, node_at(c, node)) != 0;
	c->rules.loosened++;
}

static bool same_counter(const struct counter *a, const struct counter *b)
{
	return a->kind == b->kind && a->kind != COUNT_SPREAD && a->lean == b->lean &&
	       strcmp(a->key, b->key) == 0;
}

static int counter_number(struct cluster *c, uint32_t *ret)
{
	if (c->rules.free_counters.len) {
		*ret = c->rules.free_counters.items[--c->rules.free_counters.len];
		return 0;
	}
	if (vec_reserve(&c->rules.free_counters, c->rules.counters.len + 1) < 0 ||
	    vec_push(&c->rules.counters, (struct counter){ 0 }) < 0)
		return -ENOMEM;
	*ret = (uint32_t)c->rules.counters.len - 1;
	return 0;
}

static void counter_free(struct cluster *c, uint32_t counter)
{
	struct counter *k = counter_at(c, counter);

	free(k->key);
	free(k->eligible);
	tally_done(&k->tally);
	*k = (struct counter){ 0 };
	c->rules.free_counters.items[c->rules.free_counters.len++] = counter;
}

int counter_take(struct cluster *c, const struct counter *like, uint32_t *ret)
{
	numbers *siblings = (numbers *)&c->rules.selectors.items[like->selector].counters;
	struct counter *k;
	int rc = 0;

	for (size_t i = 0; i < siblings->len; i++) {
		if (!same_counter(counter_at(c, siblings->items[i]), like))
			continue;
		*ret = siblings->items[i];
		counter_at(c, *ret)->refs++;
		return 0;
	}
	if (vec_reserve(siblings, siblings->len + 1) < 0 || counter_number(c, ret) < 0)
		return -ENOMEM;
	k = counter_at(c, *ret);
	*k = *like;
	k->key = strdup(like->key);
	k->key_id = UINT32_MAX;
	k->strings_seen = 0;
	k->refs = 1;
	if (!k->key) {
		counter_free(c, *ret);
		return -ENOMEM;
	}
	siblings->items[siblings->len++] = *ret;
	/* Even spread is counted once all its keys are known: rules.c. */
	if (k->kind != COUNT_SPREAD)
		rc = counter_fill(c, *ret);
	if (rc < 0)
		counter_release(c, *ret);
	return rc;
}

int counter_fill(struct cluster *c, uint32_t counter)
{
	struct counter *k = counter_at(c, counter);

	if (k->kind == COUNT_SPREAD && eligible_grow(k, (uint32_t)c->nodes.len) < 0)
		return -ENOMEM;
	for (uint32_t node = 0; node < c->nodes.len; node++)
		if (c->nodes.items[node].name && node_in(c, k, node) < 0)
			return -ENOMEM;
	return 0;
}

void counter_release(struct cluster *c, uint32_t counter)
{
	struct counter *k = counter_at(c, counter);
	numbers *siblings = (numbers *)&c->rules.selectors.items[k->selector].counters;

	if (--k->refs)
		return;
	for (size_t i = 0; i < siblings->len; i++)
		if (siblings->items[i] == counter)
			siblings->items[i--] = siblings->items[--siblings->len];
	counter_free(c, counter);
}
