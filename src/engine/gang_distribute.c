/* SPDX-License-Identifier: Apache-2.0 */
/* gang_distribute.c - as many leaves as possible, from different spines first. */
#include "engine/gang_private.h"

#include <string.h>

#include "base/attr.h"

static uint64_t free_milli(const struct gang_planner *g, uint32_t domain)
{
	return domain == DOMAIN_NONE ? 0 : cluster_domain(g->cluster, domain)->free_milli;
}

static uint32_t unit_parent(const struct gang_planner *g, const struct gang_unit *unit)
{
	return cluster_domain(g->cluster, gang_place_domain(g, unit->place))->parent;
}

static int tree_order(const struct gang_planner *g, const struct gang_unit *x,
		      const struct gang_unit *y)
{
	uint32_t a = gang_place_domain(g, x->place), b = gang_place_domain(g, y->place);

	if (a == b)
		return 0;
	return gang_domain_before(g->cluster, a, b) ? -1 : 1;
}

/* Siblings together, the emptiest first. */
static int by_family(const void *a, const void *b, void *planner)
{
	const struct gang_planner *g = planner;
	const struct gang_unit *x = a, *y = b;
	uint32_t x_parent = unit_parent(g, x), y_parent = unit_parent(g, y);

	if (x_parent != y_parent)
		return x_parent < y_parent ? -1 : 1;
	if (x->volume_milli != y->volume_milli)
		return x->volume_milli > y->volume_milli ? -1 : 1;
	return tree_order(g, x, y);
}

/* The first of each family, then the second of each; the emptiest family first. */
static int by_turn(const void *a, const void *b, void *planner)
{
	const struct gang_planner *g = planner;
	const struct gang_unit *x = a, *y = b;
	uint64_t x_free = free_milli(g, unit_parent(g, x)),
		 y_free = free_milli(g, unit_parent(g, y));

	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	if (x_free != y_free)
		return x_free > y_free ? -1 : 1;
	return tree_order(g, x, y);
}

static void take_turns(struct gang_planner *g)
{
	struct gang_unit *units = g->units.items;

	if (!g->units.len)
		return;
	qsort_r(units, g->units.len, sizeof(*units), by_family, g);
	for (size_t i = 0; i < g->units.len; i++)
		units[i].turn = i && unit_parent(g, &units[i]) == unit_parent(g, &units[i - 1])
					? units[i - 1].turn + 1
					: 0;
	qsort_r(units, g->units.len, sizeof(*units), by_turn, g);
}

/* Leaves below the domain that may have room. */
static void leaves_below(struct gang_planner *g, uint32_t domain)
{
	g->units.len = 0;
	for (uint32_t d = domain; d != DOMAIN_NONE && !g->failure;
	     d = gang_domain_next(g->cluster, d, domain, true))
		if (gang_is_place(g, d) && gang_room(g, d)->members)
			gang_unit_add(g, d);
}

/* Nodes that are in no leaf, when the leaves do not suffice. */
static void strays_below(struct gang_planner *g, uint32_t domain)
{
	for (uint32_t d = domain; d != DOMAIN_NONE && !g->failure;
	     d = gang_domain_next(g->cluster, d, domain, true))
		if (!gang_is_place(g, d) && cluster_domain(g->cluster, d)->blocks_count)
			gang_unit_add(g, cluster_domains(g->cluster) + d);
}

/* Visits leaves in their turn until there is one for each member, or no more. */
static uint64_t keep_roomy(struct gang_planner *g, uint32_t most)
{
	uint64_t members = 0;
	size_t kept = 0;

	for (size_t i = 0; i < g->units.len && kept < most; i++) {
		uint32_t room = gang_room_exact(g, g->units.items[i].place)->members;

		if (!room)
			continue;
		members += room;
		g->units.items[kept++] = g->units.items[i];
	}
	g->units.len = kept;
	return members;
}

static bool distribute_below(struct gang_planner *g, uint32_t domain)
{
	bool several = g->spec->classes_count > 1;
	uint64_t members;

	leaves_below(g, domain);
	take_turns(g);
	members = keep_roomy(g, several ? UINT32_MAX : g->members);
	if (members < g->members) {
		strays_below(g, domain);
		members = keep_roomy(g, UINT32_MAX);
	}
	return !g->failure && members >= g->members && gang_fill(g);
}

static uint32_t leaves_usable(struct gang_planner *g, uint32_t domain)
{
	leaves_below(g, domain);
	return (uint32_t)MIN(g->units.len, g->members);
}

/* The domains of the level, with the leaves that each could give. */
static void candidates(struct gang_planner *g, uint32_t level)
{
	uint32_t scope_level = cluster_domain(g->cluster, g->scope)->level;

	g->parents.len = 0;
	for (uint32_t d = g->scope; d != DOMAIN_NONE && !g->failure;
	     d = gang_domain_next(g->cluster, d, g->scope, true)) {
		struct gang_parent p = { .domain = d };

		if (cluster_domain(g->cluster, d)->level != MAX(level, scope_level) ||
		    gang_room(g, d)->members < g->members)
			continue;
		p.units_needed = leaves_usable(g, d);
		if (vec_push(&g->parents, p) < 0)
			g->failure = -ENOMEM;
	}
}

static bool candidate_better(const struct gang_planner *g, const struct gang_parent *a,
			     const struct gang_parent *b)
{
	if (a->units_needed != b->units_needed)
		return a->units_needed > b->units_needed;
	return free_milli(g, a->domain) > free_milli(g, b->domain);
}

static bool distribute_at(struct gang_planner *g, uint32_t level)
{
	candidates(g, level);
	for (;;) {
		struct gang_parent *best = NULL;

		for (size_t i = 0; i < g->parents.len; i++)
			if (!g->parents.items[i].dead &&
			    (!best || candidate_better(g, &g->parents.items[i], best)))
				best = &g->parents.items[i];
		if (!best || g->failure || g->tries > GANG_TRIES_MAX)
			return false;
		best->dead = true;
		g->tries++;
		if (distribute_below(g, best->domain))
			return true;
	}
}

bool gang_distribute(struct gang_planner *g)
{
	uint32_t least = g->level; /* 0 unless it is required */

	for (uint32_t level = g->spec->level + 1u; level-- > least && !g->failure;)
		if (distribute_at(g, level))
			return true;
	return false;
}
