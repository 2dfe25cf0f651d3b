/* SPDX-License-Identifier: Apache-2.0 */
/* gang_domains.c - which leaves to try, best first.
 *
 * Rooms start as bounds from the figures of the domains.  The best window by these
 * bounds is visited, which can only make it worse, until the best one is exact: so no
 * set of fewer leaves is overlooked and few nodes are seen.
 */
#include "engine/gang_private.h"

#include <string.h>

#include "base/attr.h"

/* How many children may be taken: a required level or latency may forbid several. */
static uint32_t length_max(const struct gang_planner *g, const struct gang_parent *p)
{
	bool around = !g->level || (p->domain != DOMAIN_NONE && p->level >= g->level);

	return around && !g->single_leaf ? UINT32_MAX : 1;
}

/* Where a single child has to do, only leaves of the required level can. */
static void units_leaves_only(struct gang_planner *g)
{
	for (size_t i = 0; i < g->units.len; i++) {
		uint32_t place = g->units.items[i].place;

		if (!gang_is_place(g, place) ||
		    cluster_domain(g->cluster, place)->level < g->level)
			g->units.items[i].members = 0;
	}
}

static void parent_best(struct gang_planner *g, struct gang_parent *p)
{
	uint32_t most = length_max(g, p), length;

	p->best.found = false;
	if (p->dead || gang_units(g, p->domain) < 0)
		return;
	if (most == 1)
		units_leaves_only(g);
	most = (uint32_t)MIN(most, g->units.len);
	length = gang_window_shortest(g);
	for (; length && length <= most && !p->best.found; length++)
		p->best = gang_window_best(g, p->domain, length);
}

static bool level_of(const struct gang_planner *g, const struct gang_parent *p, uint32_t level)
{
	return !p->dead && (g->single_leaf || p->level == level);
}

/* First only the window: mostly it is what it seems.  Then all its siblings, so that a
 * domain full of disappointments is not chosen again for each of them. */
static void window_visit(struct gang_planner *g, struct gang_parent *p)
{
	uint32_t first = p->best.start, last = first + p->best.length;

	if (gang_units(g, p->domain) < 0)
		return;
	if (p->visits++) {
		first = 0;
		last = (uint32_t)g->units.len;
	}
	for (uint32_t i = first; i < last; i++)
		gang_room_exact(g, g->units.items[i].place);
	parent_best(g, p);
}

/* Puts the children of a domain behind the other units, and the nodes directly in it
 * unless only leaves will do. */
static void unit_open(struct gang_planner *g, uint32_t domain)
{
	const struct domain *d = cluster_domain(g->cluster, domain);
	uint32_t own = cluster_domains(g->cluster) + domain;

	for (uint32_t child = d->first_child; child != DOMAIN_NONE && !g->failure;
	     child = cluster_domain(g->cluster, child)->next_sibling) {
		gang_room_exact(g, child);
		gang_unit_add(g, child);
	}
	if (d->blocks_count && !g->rules_required && !g->failure)
		gang_unit_add(g, own);
}

/* Of the units from `first` on, the children of one domain, one has to be used: without
 * it the domains beside theirs would not be adjacent. */
static void keep_roomiest(struct gang_planner *g, size_t first)
{
	struct gang_unit *units = g->units.items;
	struct gang_unit *best = NULL;

	for (size_t i = first; i < g->units.len; i++)
		if (units[i].place < cluster_domains(g->cluster) &&
		    (!best || units[i].members > best->members))
			best = &units[i];
	if (best)
		best->kept = true;
}

/* Domains that are chosen come down to their leaves, as few as possible. */
static bool units_to_leaves(struct gang_planner *g)
{
	uint32_t domains = cluster_domains(g->cluster);

	for (;;) {
		size_t count = g->units.len, opened = 0;

		for (size_t i = 0; i < count && !g->failure; i++) {
			size_t end = g->units.len;

			g->units.items[i].kept = g->units.items[i].place < domains;
			if (gang_is_place(g, g->units.items[i].place))
				continue;
			unit_open(g, g->units.items[i].place);
			g->units.items[i].members = 0;
			keep_roomiest(g, end);
			opened++;
		}
		if (g->failure || !opened)
			return !g->failure;
		if (!gang_fewest(g))
			return false;
	}
}

/* Fills the window; it is banned if the other classes do not fit there. */
static bool window_try(struct gang_planner *g, struct gang_parent *p)
{
	struct gang_ban ban = { p->domain, p->best.start, p->best.length };

	if (gang_units(g, p->domain) < 0)
		return false;
	memmove(g->units.items, g->units.items + ban.start, ban.length * sizeof(*g->units.items));
	g->units.len = ban.length;
	if (units_to_leaves(g) && gang_fill(g))
		return true;
	g->tries++;
	if (vec_push(&g->bans, ban) < 0)
		g->failure = -ENOMEM;
	parent_best(g, p);
	return false;
}

static struct gang_parent *best_parent(struct gang_planner *g, uint32_t level)
{
	struct gang_parent *best = NULL;

	for (size_t i = 0; i < g->parents.len; i++) {
		struct gang_parent *p = &g->parents.items[i];

		if (level_of(g, p, level) && p->best.found &&
		    (!best || gang_window_better(&p->best, &best->best)))
			best = p;
	}
	return best;
}

/* Adjacent children of one domain of that level. */
static bool choose_adjacent(struct gang_planner *g, uint32_t level)
{
	struct gang_parent *p;

	for (size_t i = 0; i < g->parents.len; i++)
		if (level_of(g, &g->parents.items[i], level))
			parent_best(g, &g->parents.items[i]);
	while (!g->failure && g->tries < g->tries_max && (p = best_parent(g, level))) {
		if (!p->best.exact)
			window_visit(g, p);
		else if (g->rules_required && p->best.length > 1 &&
			 p->best.length > gang_ideal(g, p->domain))
			p->dead = true;
		else if (window_try(g, p))
			return true;
	}
	return false;
}

/* The children of a domain and the nodes that lie directly in it. */
static int units_all(struct gang_planner *g, const struct gang_parent *p)
{
	if (gang_units(g, p->domain) == 0 && p->domain != DOMAIN_NONE &&
	    cluster_domain(g->cluster, p->domain)->blocks_count)
		gang_unit_add(g, cluster_domains(g->cluster) + p->domain);
	return g->failure;
}

/* How many children the gang would take, any of them; 0: they have no room. */
static void parent_any(struct gang_planner *g, struct gang_parent *p)
{
	p->units_needed = 0;
	if (p->dead || length_max(g, p) != UINT32_MAX || units_all(g, p) < 0)
		return;
	if (gang_fewest(g))
		p->units_needed = (uint32_t)g->units.len;
}

static bool any_better(const struct gang_planner *g, const struct gang_parent *a,
		       const struct gang_parent *b)
{
	bool a_outside = !gang_below_preferred(g, a->domain),
	     b_outside = !gang_below_preferred(g, b->domain);
	int by = gang_order(a_outside, b_outside);

	by = by ? by : gang_order(a->units_needed, b->units_needed);
	by = by ? by
		: gang_order(cluster_domain(g->cluster, a->domain)->free_milli,
			     cluster_domain(g->cluster, b->domain)->free_milli);
	return by < 0;
}

static struct gang_parent *best_any(struct gang_planner *g, uint32_t level)
{
	struct gang_parent *best = NULL;

	for (size_t i = 0; i < g->parents.len; i++) {
		struct gang_parent *p = &g->parents.items[i];

		if (p->level == level && p->units_needed && p->domain != DOMAIN_NONE &&
		    (!best || any_better(g, p, best)))
			best = p;
	}
	return best;
}

/* The fewest leaves; if the other classes do not fit there, all of them. */
static bool any_try(struct gang_planner *g, struct gang_parent *p)
{
	if (units_all(g, p) == 0 && gang_fewest(g) && units_to_leaves(g) && gang_fill(g))
		return true;
	g->tries++;
	if (g->spec->classes_count == 1 || g->failure)
		return false;
	g->units.len = 0;
	for (uint32_t d = p->domain; d != DOMAIN_NONE && !g->failure;
	     d = gang_domain_next(g->cluster, d, p->domain, true)) {
		gang_room_exact(g, d);
		if (gang_is_place(g, d))
			gang_unit_add(g, d);
		else if (cluster_domain(g->cluster, d)->blocks_count)
			gang_unit_add(g, cluster_domains(g->cluster) + d);
	}
	return !g->failure && gang_fill(g);
}

/* Sees every node below the domain, so that its children's rooms are exact. */
static void any_visit(struct gang_planner *g, struct gang_parent *p)
{
	gang_room_exact(g, p->domain);
	if (gang_units(g, p->domain) == 0)
		for (size_t i = 0; i < g->units.len; i++)
			gang_room_exact(g, g->units.items[i].place);
	p->visited = true;
	parent_any(g, p);
}

/* Any children of one domain of that level. */
static bool choose_any(struct gang_planner *g, uint32_t level)
{
	struct gang_parent *p;

	for (size_t i = 0; i < g->parents.len; i++)
		if (g->parents.items[i].level == level)
			parent_any(g, &g->parents.items[i]);
	while (!g->failure && (p = best_any(g, level))) {
		if (!p->visited) {
			any_visit(g, p);
			continue;
		}
		if (any_try(g, p))
			return true;
		p->units_needed = 0;
		/* Many domains can be tried in vain, but the scope has the last word. */
		if (g->tries > g->tries_max && p->domain != g->scope)
			break;
	}
	return false;
}

/* Domains with others below them whose figures do not rule them out. */
static void parents_collect(struct gang_planner *g)
{
	uint32_t d = g->scope;

	g->parents.len = 0;
	if (gang_is_place(g, g->scope)) {
		struct gang_parent only = { .domain = DOMAIN_NONE };

		g->failure = vec_push(&g->parents, only);
		return;
	}
	while (d != DOMAIN_NONE && !g->failure) {
		struct gang_parent p = {
			.domain = d,
			.level = cluster_domain(g->cluster, d)->level,
		};
		bool may = !gang_is_place(g, d) &&
			   gang_enough(g, gang_room(g, d)->members, gang_volume(g, d));

		if (may)
			g->failure = vec_push(&g->parents, p);
		d = gang_domain_next(g->cluster, d, g->scope, may);
	}
}

static uint32_t parents_deepest(const struct gang_planner *g)
{
	uint32_t level = 0;

	for (size_t i = 0; i < g->parents.len; i++)
		level = MAX(level, g->parents.items[i].level);
	return level;
}

/* From the innermost domains to the scope. */
static bool choose_by_level(struct gang_planner *g)
{
	uint32_t top =
		gang_is_place(g, g->scope) ? 0 : cluster_domain(g->cluster, g->scope)->level;
	uint32_t deepest = g->rules_required ? gang_deepest(g) : parents_deepest(g);

	for (uint32_t level = deepest + 1; level-- > top && !g->failure;) {
		if (choose_adjacent(g, level))
			return true;
		if (g->rules_required && gang_level_holds(g, level))
			return false;
		if (!g->rules_required && choose_any(g, level))
			return true;
	}
	return false;
}

static bool choose_single_leaf(struct gang_planner *g)
{
	bool placed;

	g->single_leaf = true;
	placed = choose_adjacent(g, 0);
	g->single_leaf = false;
	return placed;
}

bool gang_choose(struct gang_planner *g)
{
	parents_collect(g);
	if (g->failure)
		return false;
	if (g->spec->latency_sensitive && choose_single_leaf(g))
		return true;
	if (g->spec->strategy == STRATEGY_DISTRIBUTED)
		return gang_distribute(g);
	return choose_by_level(g);
}
