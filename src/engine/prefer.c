/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/prefer.h"
#include "base/attr.h"
#include "engine/cluster_private.h"
#include "engine/soft.h"

#include <stdbool.h>
#include <string.h>

#define FEW_DEMANDED 16 /* that keep all that goes together */
#define FEW_ALONE    2	/* that keep one term that does not go with the others */

struct gather {
	const struct scorer *scorer;
	struct index *index; /* NULL: afresh */
	struct request trial;
	struct preferred *found;
	uint32_t count;
	bool failed;
};

/* The order of the index: by score, then by name. */
static bool before(const struct cluster *c, const struct index_choice *a,
		   const struct index_choice *b)
{
	if (a->score != b->score)
		return a->score > b->score;
	return cluster_node(c, a->node)->rank < cluster_node(c, b->node)->rank;
}

static uint32_t few_afresh(const struct scorer *s, const struct request *r, uint32_t max,
			   struct index_choice *ret)
{
	const struct cluster *c = s->cluster;
	uint32_t count = 0;

	for (uint32_t i = 0; i < c->by_name.len; i++) {
		uint32_t node = c->by_name.items[i], at = count;
		struct index_choice choice = { node, index_value(s, r, node) };

		if (choice.score < 0)
			continue;
		while (at && before(c, &choice, &ret[at - 1]))
			at--;
		if (at == max)
			continue;
		count += count < max;
		memmove(&ret[at + 1], &ret[at], (count - at - 1) * sizeof(*ret));
		ret[at] = choice;
	}
	return count;
}

/* The best nodes that keep what is demanded. */
static uint32_t few(struct gather *g, uint32_t demand, uint32_t max, struct index_choice *ret)
{
	int rc;

	g->trial.demand = demand;
	g->trial.demand_of = demand & ~DEMAND_TAINTS ? g->trial.soft : 0;
	if (!g->index)
		return few_afresh(g->scorer, &g->trial, max, ret);
	rc = index_few(g->index, &g->trial, max, ret);
	g->failed |= rc < 0;
	return rc < 0 ? 0 : (uint32_t)rc;
}

static void add(struct gather *g, const struct index_choice *choice)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->found[i].node == choice->node)
			return;
	if (g->count < PREFER_FEW)
		g->found[g->count++] =
			(struct preferred){ .node = choice->node, .score = choice->score };
}

/* How many there were, known ones among them. */
static uint32_t gather_few(struct gather *g, uint32_t demand, uint32_t max)
{
	struct index_choice choices[PREFER_FEW];
	uint32_t count = few(g, demand, max, choices);

	for (uint32_t i = 0; i < count; i++)
		add(g, &choices[i]);
	return count;
}

/* As many as go together, beginning with taints, then the heaviest. */
static void gather_together(struct gather *g, uint32_t demands)
{
	uint32_t kept = 0;
	struct index_choice any;

	for (uint32_t i = 0; i < 32; i++) {
		uint32_t one = i ? UINT32_C(1) << (i - 1) : DEMAND_TAINTS;

		if (!(demands & one))
			continue;
		if (few(g, kept | one, 1, &any))
			kept |= one;
		else if (kept)
			gather_few(g, one, FEW_ALONE);
	}
	if (kept)
		gather_few(g, kept, FEW_DEMANDED);
}

static bool better(const struct cluster *c, const struct preferred *a, const struct preferred *b)
{
	if (a->points != b->points)
		return a->points > b->points;
	if (a->score != b->score)
		return a->score > b->score;
	return cluster_node(c, a->node)->rank < cluster_node(c, b->node)->rank;
}

static void rank(const struct cluster *c, const struct request *r, struct preferred *found,
		 uint32_t count)
{
	struct soft_mark marks[PREFER_FEW];
	int32_t points[PREFER_FEW];

	for (uint32_t i = 0; i < count; i++)
		soft_mark(c, r, found[i].node, &marks[i]);
	soft_points(c, r, marks, count, points);
	for (uint32_t i = 0; i < count; i++) {
		struct preferred p = found[i];
		uint32_t at = i;

		p.points = points[i];
		for (; at && better(c, &p, &found[at - 1]); at--)
			found[at] = found[at - 1];
		found[at] = p;
	}
}

int prefer_few(const struct scorer *s, struct index *ix, const struct request *r,
	       struct preferred ret[PREFER_FEW])
{
	struct gather g = { .scorer = s, .index = ix, .trial = *r, .found = ret };
	uint32_t demands = soft_demands(s->cluster, r);

	if (demands && !gather_few(&g, demands, FEW_DEMANDED))
		gather_together(&g, demands);
	gather_few(&g, 0, PREFER_FEW);
	if (g.failed)
		return -ENOMEM;
	rank(s->cluster, r, ret, g.count);
	return (int)g.count;
}
