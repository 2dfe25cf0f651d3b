/* SPDX-License-Identifier: Apache-2.0 */
/* volumes_pair.c - several claims, several volumes: who gets which, and on which nodes.
 *
 * kube-scheduler gives, on each node, the smallest claim the smallest volume that will do and is
 * for that node, then the next claim one of those that are left.  So whether a claim
 * gets one depends on the node's labels alone: by which of the volumes' affinities hold
 * there.  More volumes never take one away from a claim.  Hence "this claim gets a
 * volume" is: one of some sets of volumes is wholly for that node, where each set is just
 * enough.  Where each affinity is about one value of one label - the name of the host, as a
 * rule - the sets are tried value by value instead, and the answer is a list of values.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "dialect/volumes_private.h"

#define TERMS_MAX 4096 /* beyond that volumes are not told apart: on the node itself, they are */
#define TRIES_MAX 20000

/* The smallest that is left for the want, or NULL. */
static struct candidate *pick(const struct volumes *v, uint32_t want, const uint32_t *list,
			      uint32_t count)
{
	const struct want *w = &v->wants[want];

	for (uint32_t i = 0; i < count; i++) {
		struct candidate *c = &v->candidates[list[i]];

		if (c->round == v->round)
			continue;
		if (w->reserved ? w->reserved == c->name : c->wants >> want & 1)
			return c;
	}
	return NULL;
}

void volumes_pair(struct volumes *v, uint32_t wants, const uint32_t *list, uint32_t count,
		  const struct candidate *ret[CLAIMS_MAX])
{
	v->round++;
	for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
		struct candidate *c = wants >> i & 1 ? pick(v, i, list, count) : NULL;

		if (c)
			c->round = v->round;
		ret[i] = c;
	}
}

/* Terms that grow in the arena. */
struct terms {
	struct arena *arena;
	struct node_term *items;
	uint32_t count, room;
};

static int terms_add(struct terms *t, struct node_term term)
{
	if (t->count == t->room) {
		uint32_t room = t->room ? 2 * t->room : 16;
		struct node_term *grown = arena_array(t->arena, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		if (t->count)
			memcpy(grown, t->items, t->count * sizeof(*grown));
		t->items = grown;
		t->room = room;
	}
	t->items[t->count++] = term;
	return 0;
}

/* "key In values" and nothing else. */
static bool is_plain(const struct node_term *t)
{
	return t->count == 1 && t->matches[0].op == MATCH_IN;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint32_t sort_values(const char **values, uint32_t count)
{
	uint32_t kept = 0;

	if (count)
		qsort(values, count, sizeof(*values), compare_strings);
	for (uint32_t i = 0; i < count; i++)
		if (!kept || strcmp(values[kept - 1], values[i]) != 0)
			values[kept++] = values[i];
	return kept;
}

static int add_values(struct terms *t, const char *key, const char **values, uint32_t count)
{
	struct match *m = arena_alloc(t->arena, sizeof(*m));

	if (!m)
		return -ENOMEM;
	*m = (struct match){ .key = key, .values = values, .values_count = count };
	return count ? terms_add(t, (struct node_term){ m, 1 }) : 0;
}

/* All plain terms about one label are one. */
static int merge_key(const struct terms *all, uint32_t first, struct terms *ret)
{
	const char *key = all->items[first].matches[0].key, **values;
	uint32_t sum = 0;

	for (uint32_t i = first; i < all->count; i++)
		if (is_plain(&all->items[i]) && strcmp(all->items[i].matches[0].key, key) == 0)
			sum += all->items[i].matches[0].values_count;
	values = arena_array(ret->arena, sum + 1, sizeof(*values));
	if (!values)
		return -ENOMEM;
	sum = 0;
	for (uint32_t i = first; i < all->count; i++) {
		const struct match *m = all->items[i].matches;

		if (!is_plain(&all->items[i]) || strcmp(m->key, key) != 0)
			continue;
		for (uint32_t j = 0; j < m->values_count; j++)
			values[sum++] = m->values[j];
		all->items[i].count = 0; /* done */
	}
	return add_values(ret, key, values, sort_values(values, sum));
}

static int merge(const struct terms *all, struct terms *ret)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < all->count; i++) {
		if (is_plain(&all->items[i]))
			rc = merge_key(all, i, ret);
		else if (all->items[i].count)
			rc = terms_add(ret, all->items[i]);
	}
	return rc;
}

/* Any of the volumes that will do. */
static int terms_of_any(const struct volumes *v, uint32_t want, struct terms *ret, bool *always)
{
	struct terms all = { .arena = ret->arena };
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < v->candidates_count; i++) {
		const struct candidate *c = &v->candidates[i];

		if (!(c->wants >> want & 1))
			continue;
		*always |= !c->where;
		for (uint32_t j = 0; rc == 0 && c->where && j < c->where->count; j++)
			rc = terms_add(&all, c->where->terms[j]);
	}
	return rc < 0 ? rc : merge(&all, ret);
}

/* The question: does `want` get one beside its rivals. */
struct contest {
	struct volumes *volumes;
	uint32_t want, wants; /* with its rivals */
	uint32_t *free;	      /* candidates for every node */
	uint32_t free_count;
	uint32_t *bound; /* candidates for some */
	uint32_t bound_count;
	uint32_t *list; /* scratch */
	struct terms *ret;
};

static int contest_init(struct contest *c)
{
	const struct volumes *v = c->volumes;
	size_t room = (size_t)v->candidates_count + 1;

	c->free = arena_array(c->ret->arena, room, sizeof(*c->free));
	c->bound = arena_array(c->ret->arena, room, sizeof(*c->bound));
	c->list = arena_array(c->ret->arena, room, sizeof(*c->list));
	if (!c->free || !c->bound || !c->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->candidates_count; i++) {
		if (!(v->candidates[i].wants & c->wants))
			continue;
		if (v->candidates[i].where)
			c->bound[c->bound_count++] = i;
		else
			c->free[c->free_count++] = i;
	}
	return 0;
}

/* With these besides those that are for every node.  `used`: whether each of them was given
 * to somebody. */
static bool contest_won(struct contest *c, const uint32_t *some, uint32_t count, bool *used)
{
	const struct candidate *given[CLAIMS_MAX];
	uint32_t len = 0, at = 0;

	for (uint32_t i = 0; i < c->free_count; i++) {
		while (at < count && some[at] < c->free[i])
			c->list[len++] = some[at++];
		c->list[len++] = c->free[i];
	}
	while (at < count)
		c->list[len++] = some[at++];
	volumes_pair(c->volumes, c->wants, c->list, len, given);
	*used = true;
	for (uint32_t i = 0; i < count; i++)
		*used &= c->volumes->candidates[some[i]].round == c->volumes->round;
	return given[c->want];
}

/* The label that all affinities are about; NULL if they are about more than that. */
static const char *only_key(const struct contest *c)
{
	const char *key = NULL;

	for (uint32_t i = 0; i < c->bound_count; i++) {
		const struct node_group *where = c->volumes->candidates[c->bound[i]].where;

		if (where->count != 1 || !is_plain(&where->terms[0]) ||
		    (key && strcmp(key, where->terms[0].matches[0].key) != 0))
			return NULL;
		key = where->terms[0].matches[0].key;
	}
	return key;
}

/* A value of the label, and a volume that is for it. */
struct pair {
	const char *value;
	uint32_t candidate;
};

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order = strcmp(x->value, y->value);

	return order ? order : (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

static struct pair *contest_pairs(const struct contest *c, uint32_t *count)
{
	const struct volumes *v = c->volumes;
	struct pair *pairs;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < c->bound_count; i++)
		sum += v->candidates[c->bound[i]].where->terms[0].matches[0].values_count;
	pairs = arena_array(c->ret->arena, (size_t)sum + 1, sizeof(*pairs));
	*count = 0;
	for (uint32_t i = 0; pairs && i < c->bound_count; i++) {
		const struct match *m = v->candidates[c->bound[i]].where->terms[0].matches;

		for (uint32_t j = 0; j < m->values_count; j++)
			pairs[(*count)++] = (struct pair){ m->values[j], c->bound[i] };
	}
	if (pairs && *count)
		qsort(pairs, *count, sizeof(*pairs), compare_pairs);
	return pairs;
}

static int contest_by_value(struct contest *c, const char *key)
{
	uint32_t count, end, won = 0;
	struct pair *pairs = contest_pairs(c, &count);
	const char **values =
		pairs ? arena_array(c->ret->arena, (size_t)count + 1, sizeof(*values)) : NULL;
	bool used;

	if (!values)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i = end) {
		uint32_t some = 0;

		for (end = i; end < count && strcmp(pairs[end].value, pairs[i].value) == 0; end++)
			if (!some || c->bound[some - 1] != pairs[end].candidate)
				c->bound[some++] = pairs[end].candidate;
		if (contest_won(c, c->bound, some, &used))
			values[won++] = pairs[i].value;
	}
	return add_values(c->ret, key, values, won);
}

/* All combinations of one term of each. */
static int add_product(struct contest *c, const uint32_t *some, uint32_t count)
{
	uint32_t at[CLAIMS_MAX] = { 0 };

	for (uint32_t i = 0; i < count; i++)
		if (!c->volumes->candidates[some[i]].where->count)
			return 0;
	for (uint32_t i = 0; i < count;) {
		struct match *matches =
			arena_array(c->ret->arena, RULES_ITEMS_MAX, sizeof(*matches));
		uint32_t len = 0;
		bool none = false;

		if (!matches)
			return -ENOMEM;
		for (i = 0; i < count; i++) {
			const struct node_term *t =
				&c->volumes->candidates[some[i]].where->terms[at[i]];

			none |= !t->count || len + t->count > RULES_ITEMS_MAX;
			for (uint32_t j = 0; !none && j < t->count; j++)
				matches[len++] = t->matches[j];
		}
		if (!none && terms_add(c->ret, (struct node_term){ matches, len }) < 0)
			return -ENOMEM;
		if (c->ret->count > TERMS_MAX)
			return -E2BIG;
		for (i = 0; i < count; i++) {
			if (++at[i] < c->volumes->candidates[some[i]].where->count)
				break;
			at[i] = 0;
		}
	}
	return 0;
}

/* The next set of so many of the bound, in order; false after the last. */
static bool next_set(uint32_t *set, uint32_t size, uint32_t of)
{
	for (uint32_t i = size; i-- > 0;) {
		if (set[i] + (size - i) >= of)
			continue;
		set[i]++;
		for (uint32_t j = i + 1; j < size; j++)
			set[j] = set[j - 1] + 1;
		return true;
	}
	return false;
}

/* Every set that is just enough.  -E2BIG: there are too many. */
static int contest_by_sets(struct contest *c, uint32_t most)
{
	uint32_t set[CLAIMS_MAX], some[CLAIMS_MAX], tries = 0;
	bool used;
	int rc = 0;

	for (uint32_t size = 1; size <= MIN(most, c->bound_count); size++) {
		for (uint32_t i = 0; i < size; i++)
			set[i] = i;
		do {
			if (++tries > TRIES_MAX)
				return -E2BIG;
			for (uint32_t i = 0; i < size; i++)
				some[i] = c->bound[set[i]];
			if (contest_won(c, some, size, &used) && used)
				rc = add_product(c, some, size);
		} while (rc == 0 && next_set(set, size, c->bound_count));
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Smaller claims of the same class come before this one. */
static uint32_t rivals_of(const struct volumes *v, uint32_t want)
{
	uint32_t rivals = 0;

	for (uint32_t i = 0; i < want; i++)
		if (!v->wants[i].node && !v->wants[i].reserved &&
		    strcmp(v->wants[i].class_name, v->wants[want].class_name) == 0)
			rivals |= 1U << i;
	return rivals;
}

static int contest_terms(struct volumes *v, uint32_t want, uint32_t rivals, struct terms *ret,
			 bool *always)
{
	struct contest c = {
		.volumes = v, .want = want, .wants = rivals | 1U << want, .ret = ret
	};
	uint32_t most = (uint32_t)__builtin_popcount(c.wants);
	const char *key;
	bool used;
	int rc = contest_init(&c);

	if (rc < 0)
		return rc;
	*always = contest_won(&c, c.bound, 0, &used);
	if (*always || !c.bound_count)
		return 0;
	key = only_key(&c);
	return key ? contest_by_value(&c, key) : contest_by_sets(&c, most);
}

static const struct node_group *reserved_where(const struct volumes *v, const char *name)
{
	for (uint32_t i = 0; i < v->candidates_count; i++)
		if (v->candidates[i].name == name)
			return v->candidates[i].where;
	return NULL;
}

int volumes_terms(struct volumes *v, uint32_t i, const struct node_term **ret, uint32_t *count,
		  bool *always, struct err *err)
{
	struct terms terms = { .arena = v->draft->arena };
	uint32_t rivals = rivals_of(v, i);
	int rc = -E2BIG;

	*always = false;
	if (v->wants[i].reserved) {
		const struct node_group *where = reserved_where(v, v->wants[i].reserved);

		*always = !where;
		*ret = where ? where->terms : NULL;
		*count = where ? where->count : 0;
		return 0;
	}
	if (rivals)
		rc = contest_terms(v, i, rivals, &terms, always);
	if (rc == -E2BIG) {
		terms.count = 0;
		rc = terms_of_any(v, i, &terms, always);
	}
	*ret = terms.items;
	*count = terms.count;
	return rc < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}
