/* SPDX-License-Identifier: Apache-2.0 */
/* gang_fill.c - the members onto the nodes of the leaves that were chosen.
 *
 * First it is settled how many members of the main class each node gets, then they are
 * placed, leaf by leaf and in the order of names, so that members that follow each
 * other are near each other.  Then the other classes follow.
 */
#include "engine/gang_private.h"

#include <string.h>

#include "base/attr.h"

/* The order of the tree; nodes that are in no leaf come last. */
static int unit_in_tree(const void *a, const void *b, void *planner)
{
	const struct gang_planner *g = planner;
	const struct gang_unit *x = a, *y = b;
	uint32_t x_domain = gang_place_domain(g, x->place);
	uint32_t y_domain = gang_place_domain(g, y->place);
	bool x_own = x_domain != x->place, y_own = y_domain != y->place;

	if (x_own != y_own)
		return x_own ? 1 : -1;
	if (x_domain == y_domain)
		return 0;
	return gang_domain_before(g->cluster, x_domain, y_domain) ? -1 : 1;
}

/* The spots of a leaf that the gang may use, within what it may take of one leaf. */
static void leaf_picks(struct gang_planner *g, struct gang_leaf *leaf)
{
	const struct gang_room *room = gang_room_exact(g, leaf->place);
	uint32_t count = MIN(room->count, g->leaf_nodes_max), left = g->leaf_members_max;

	leaf->first = (uint32_t)g->picks.len;
	for (uint32_t i = 0; i < count && left && !g->failure; i++) {
		struct gang_spot spot = g->spots.items[room->first + i];

		spot.room = MIN(spot.room, left);
		spot.leaf = (uint32_t)(leaf - g->leaves.items);
		left -= spot.room;
		if (vec_push(&g->picks, spot) < 0)
			g->failure = -ENOMEM;
	}
	leaf->count = (uint32_t)g->picks.len - leaf->first;
	leaf->room = (uint32_t)MIN(room->members, g->members);
}

static void leaves_begin(struct gang_planner *g)
{
	g->leaves.len = 0;
	g->picks.len = 0;
	if (vec_reserve(&g->leaves, g->units.len) < 0) {
		g->failure = -ENOMEM;
		return;
	}
	if (g->units.len)
		qsort_r(g->units.items, g->units.len, sizeof(*g->units.items), unit_in_tree, g);
	for (size_t i = 0; i < g->units.len; i++) {
		struct gang_leaf *leaf = &g->leaves.items[g->leaves.len++];

		*leaf = (struct gang_leaf){ .place = g->units.items[i].place };
		leaf_picks(g, leaf);
	}
}

/* The spot that has room for all that is left and the least beyond, or NULL. */
static struct gang_spot *tightest(struct gang_spot *spots, size_t count, uint32_t left)
{
	struct gang_spot *best = NULL;

	for (size_t i = 0; i < count; i++)
		if (!spots[i].target && spots[i].room >= left &&
		    (!best || spots[i].room < best->room))
			best = &spots[i];
	return best;
}

/* Roomy nodes first, so few of them; the last one as tight as can be. */
static uint32_t compact(struct gang_spot *spots, size_t count, uint32_t left)
{
	for (size_t i = 0; i < count && left; i++) {
		struct gang_spot *spot = &spots[i];

		if (spot->target)
			continue;
		if (spot->room >= left)
			spot = tightest(spots, count, left);
		spot->target = MIN(spot->room, left);
		left -= spot->target;
	}
	return left;
}

/* One member on each node, then another on each. */
static void spread(struct gang_spot *spots, size_t count, uint32_t left)
{
	bool more = true;

	while (left && more) {
		more = false;
		for (size_t i = 0; i < count && left; i++) {
			if (spots[i].target == spots[i].room)
				continue;
			spots[i].target++;
			left--;
			more = true;
		}
	}
}

static int spot_by_room(const void *a, const void *b)
{
	const struct gang_spot *x = a, *y = b;

	if (x->room != y->room)
		return x->room > y->room ? -1 : 1;
	if (x->leaf != y->leaf)
		return x->leaf < y->leaf ? -1 : 1;
	if (x->idle_gpus != y->idle_gpus)
		return x->idle_gpus < y->idle_gpus ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The fewest nodes, but one at least in every leaf: leaves between two others would
 * otherwise stay out, and those two were not adjacent. */
static void targets_consolidated(struct gang_planner *g)
{
	struct gang_spot *picks = g->picks.items;
	uint32_t left = g->members;

	for (size_t i = 0; i < g->leaves.len && left; i++) {
		const struct gang_leaf *leaf = &g->leaves.items[i];
		struct gang_spot *spot;

		if (!leaf->count)
			continue;
		spot = tightest(picks + leaf->first, leaf->count, left);
		if (!spot)
			spot = &picks[leaf->first];
		spot->target = MIN(spot->room, left);
		left -= spot->target;
	}
	if (!left || !g->picks.len)
		return;
	qsort(picks, g->picks.len, sizeof(*picks), spot_by_room);
	compact(picks, g->picks.len, left);
}

/* The same number for every leaf, as far as its room goes. */
static void quotas_even(struct gang_planner *g)
{
	uint32_t left = g->members;
	bool more = true;

	while (left && more) {
		more = false;
		for (size_t i = 0; i < g->leaves.len && left; i++) {
			struct gang_leaf *leaf = &g->leaves.items[i];

			if (leaf->quota == leaf->room)
				continue;
			leaf->quota++;
			left--;
			more = true;
		}
	}
}

static void targets_even(struct gang_planner *g)
{
	quotas_even(g);
	for (size_t i = 0; i < g->leaves.len; i++) {
		const struct gang_leaf *leaf = &g->leaves.items[i];
		struct gang_spot *spots = leaf->count ? &g->picks.items[leaf->first] : NULL;

		if (g->spec->strategy == STRATEGY_DISTRIBUTED)
			spread(spots, leaf->count, leaf->quota);
		else
			compact(spots, leaf->count, leaf->quota);
	}
}

static int spot_by_name(const void *a, const void *b)
{
	const struct gang_spot *x = a, *y = b;

	if (x->leaf != y->leaf)
		return x->leaf < y->leaf ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

int gang_place_member(struct gang_planner *g, const struct pod_spec *pod, const struct request *r,
		      uint32_t node, struct gang_member *ret)
{
	struct parts parts;
	enum verdict v;

	if (g->plain)
		v = assign_node(g->cluster, NULL, r, node, &ret->decision.assignment);
	else
		v = engine_score(g->engine, r, node, &ret->decision, &parts);
	if (v != FITS)
		return -ENOSPC;
	ret->decision.node = node;
	if (g->plain)
		ret->decision.score = 0;
	return plan_place(g->plan, pod, r, &ret->decision, &ret->pod);
}

/* Books one member of a class in a leaf and counts what the gang uses of it. */
static bool leaf_place(struct gang_planner *g, uint32_t class, uint32_t index,
		       struct gang_leaf *leaf, uint32_t node)
{
	const struct gang_class *members = &g->spec->classes[class];
	struct gang_member *ret = &g->result->members[g->class_first[class] + index];
	int rc = gang_place_member(g, &members->pods[index], members->request, node, ret);

	if (rc < 0) {
		if (rc != -ENOSPC)
			g->failure = rc;
		return false;
	}
	ret->class_index = class;
	ret->index = index;
	leaf->used_milli += gang_request_milli(members->request);
	leaf->nodes += g->node_stamp.items[node] != g->node_stamp_now;
	g->node_stamp.items[node] = g->node_stamp_now;
	return true;
}

static bool place_main(struct gang_planner *g)
{
	uint32_t index = 0;

	for (size_t i = 0; i < g->picks.len; i++) {
		const struct gang_spot *spot = &g->picks.items[i];

		for (uint32_t k = 0; k < spot->target; k++)
			if (!leaf_place(g, g->main_class, index++, &g->leaves.items[spot->leaf],
					spot->node))
				return false;
	}
	return index == g->members;
}

/* Nodes that the gang uses first, then tight ones; distributed the other way round. */
static int other_compare(const void *a, const void *b)
{
	const struct gang_spot *x = a, *y = b;

	if (x->leaf != y->leaf)
		return x->leaf < y->leaf ? -1 : 1;
	if (x->room != y->room)
		return x->room < y->room ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void other_add(struct gang_planner *g, uint32_t leaf, uint32_t node)
{
	const struct node *n = cluster_node(g->cluster, node);
	bool used = g->node_stamp.items[node] == g->node_stamp_now;
	bool apart = g->spec->strategy == STRATEGY_DISTRIBUTED;
	struct gang_spot spot = {
		.rank = n->rank,
		.node = node,
		.leaf = leaf,
		.room = n->idle_gpus + (used ? 0u : GPU_MAX + 1u),
		.target = 1,
	};

	if (apart)
		spot.room = 2 * GPU_MAX + 2 - spot.room;
	if (vec_push(&g->others, spot) < 0)
		g->failure = -ENOMEM;
}

static void others_collect(struct gang_planner *g)
{
	g->others.len = 0;
	for (size_t l = 0; l < g->leaves.len; l++) {
		struct gang_leaf *leaf = &g->leaves.items[l];
		const struct domain *d =
			cluster_domain(g->cluster, gang_place_domain(g, leaf->place));

		for (uint32_t i = 0; i < d->blocks_count * BLOCK_NODES; i++) {
			uint32_t node = cluster_block_node(g->cluster, d->blocks[i / BLOCK_NODES],
							   i % BLOCK_NODES);

			if (node != NODE_NONE && !g->failure)
				other_add(g, (uint32_t)l, node);
		}
	}
	if (g->others.len)
		qsort(g->others.items, g->others.len, sizeof(*g->others.items), other_compare);
	for (size_t l = 0, i = 0; l < g->leaves.len; l++) {
		g->leaves.items[l].first = (uint32_t)i;
		while (i < g->others.len && g->others.items[i].leaf == l)
			i++;
		g->leaves.items[l].count = (uint32_t)i - g->leaves.items[l].first;
	}
}

/* Whether the gang may take that much more of the leaf, on that node. */
static bool leaf_allows(const struct gang_planner *g, const struct gang_leaf *leaf, uint32_t node,
			uint32_t milli)
{
	bool used = g->node_stamp.items[node] == g->node_stamp_now;

	return (used || leaf->nodes < g->leaf_nodes_max) &&
	       leaf->used_milli + milli <= g->leaf_milli_max;
}

/* Members of the class from `index` on into one leaf, `most` of them; how many went in.
 * A node that refuses one refuses all: its target says so. */
static uint32_t leaf_others(struct gang_planner *g, uint32_t class, uint32_t index, uint32_t most,
			    struct gang_leaf *leaf)
{
	uint32_t milli = gang_request_milli(g->spec->classes[class].request), placed = 0;

	for (uint32_t i = 0; i < leaf->count && placed < most; i++) {
		struct gang_spot *spot = &g->others.items[leaf->first + i];

		while (spot->target && placed < most && !g->failure) {
			if (leaf_allows(g, leaf, spot->node, milli) &&
			    leaf_place(g, class, index + placed, leaf, spot->node))
				placed++;
			else
				spot->target = 0;
		}
	}
	return placed;
}

static bool place_others(struct gang_planner *g, uint32_t class)
{
	uint32_t count = g->spec->classes[class].count, placed = 0, before;
	bool one_each = g->spec->strategy != STRATEGY_CONSOLIDATED;

	others_collect(g);
	do {
		before = placed;
		for (size_t l = 0; l < g->leaves.len && placed < count; l++)
			placed += leaf_others(g, class, placed, one_each ? 1 : count - placed,
					      &g->leaves.items[l]);
	} while (placed < count && placed > before && !g->failure);
	return placed == count;
}

/* Classes in the order of their size; the main one is the first. */
static bool place_all(struct gang_planner *g)
{
	if (!place_main(g))
		return false;
	for (uint32_t i = 0; i < g->spec->classes_count; i++)
		if (g->class_order[i] != g->main_class && !place_others(g, g->class_order[i]))
			return false;
	return true;
}

static bool fill_once(struct gang_planner *g)
{
	leaves_begin(g);
	if (g->failure)
		return false;
	if (g->spec->strategy == STRATEGY_CONSOLIDATED)
		targets_consolidated(g);
	else
		targets_even(g);
	if (g->picks.len)
		qsort(g->picks.items, g->picks.len, sizeof(*g->picks.items), spot_by_name);
	g->node_stamp_now++;
	g->plan = plan_begin(g->engine);
	if (!g->plan)
		g->failure = -ENOMEM;
	else if (place_all(g))
		return true;
	plan_rollback(g->plan);
	g->plan = NULL;
	return false;
}

/* Nodes were probed without the scorer, whose choice of cards for shares may leave less
 * room on a node: then the members go exactly where they were probed. */
bool gang_fill(struct gang_planner *g)
{
	bool filled = fill_once(g);

	if (!filled && !g->failure) {
		g->plain = true;
		filled = fill_once(g);
		g->plain = false;
	}
	return filled;
}
