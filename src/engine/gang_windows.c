/* SPDX-License-Identifier: Apache-2.0 */
/* gang_windows.c - runs of adjacent domains, and the fewest domains, that hold a gang. */
#include "engine/gang_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

int gang_unit_add(struct gang_planner *g, uint32_t place)
{
	struct gang_unit unit = {
		.place = place,
		.members = gang_room(g, place)->members,
		.volume_milli = gang_volume(g, place),
	};

	if (vec_push(&g->units, unit) < 0)
		g->failure = -ENOMEM;
	return g->failure;
}

int gang_units(struct gang_planner *g, uint32_t domain)
{
	uint32_t child;

	g->units.len = 0;
	if (domain == DOMAIN_NONE)
		return gang_unit_add(g, g->scope);
	child = cluster_domain(g->cluster, domain)->first_child;
	for (; child != DOMAIN_NONE && !g->failure;
	     child = cluster_domain(g->cluster, child)->next_sibling)
		gang_unit_add(g, child);
	return g->failure;
}

bool gang_enough(const struct gang_planner *g, uint64_t members, uint64_t volume_milli)
{
	return members >= g->members && volume_milli >= g->volume_milli;
}

/* Length of the shortest run of units that holds the gang; 0: there is none. */
uint32_t gang_window_shortest(const struct gang_planner *g)
{
	const struct gang_unit *units = g->units.items;
	uint64_t members = 0, volume = 0;
	size_t start = 0, best = 0;

	for (size_t end = 0; end < g->units.len; end++) {
		if (!units[end].members) {
			members = volume = 0;
			start = end + 1;
			continue;
		}
		members += units[end].members;
		volume += units[end].volume_milli;
		while (gang_enough(g, members - units[start].members,
				   volume - units[start].volume_milli)) {
			members -= units[start].members;
			volume -= units[start].volume_milli;
			start++;
		}
		if (gang_enough(g, members, volume) && (!best || end - start + 1 < best))
			best = end - start + 1;
	}
	return (uint32_t)best;
}

static bool banned(const struct gang_planner *g, uint32_t domain, uint32_t start, uint32_t length)
{
	for (size_t i = 0; i < g->bans.len; i++)
		if (g->bans.items[i].domain == domain && g->bans.items[i].start == start &&
		    g->bans.items[i].length == length)
			return true;
	return false;
}

/* Less is better: -1, 0 or 1. */
int gang_order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

bool gang_window_better(const struct gang_window *a, const struct gang_window *b)
{
	int by;

	if (!a->found || !b->found)
		return a->found && !b->found;
	by = gang_order(a->outside, b->outside);
	by = by ? by : gang_order(a->length, b->length);
	by = by ? by : gang_order(a->nodes, b->nodes);
	by = by ? by : gang_order(a->left, b->left);
	by = by ? by : gang_order(a->free_milli, b->free_milli);
	by = by ? by : gang_order(a->parent_free_milli, b->parent_free_milli);
	by = by ? by : gang_order(a->neighbours, b->neighbours);
	return by < 0;
}

bool gang_below_preferred(const struct gang_planner *g, uint32_t place)
{
	return g->prefer == DOMAIN_NONE ||
	       cluster_below(g->cluster, gang_place_domain(g, place), g->prefer);
}

/* What the window is compared by; its nodes are in the histogram. */
static struct gang_window window_at(struct gang_planner *g, uint32_t domain, uint32_t start,
				    uint32_t length)
{
	const struct gang_unit *units = g->units.items;
	uint32_t end = start + length, top = domain == DOMAIN_NONE ? g->scope : domain;
	struct gang_window w = {
		.found = true,
		.exact = true,
		.start = start,
		.length = length,
		.nodes = gang_fewest_nodes(g),
		.parent_free_milli = cluster_domain(g->cluster, top)->free_milli,
	};

	for (uint32_t i = start; i < end; i++) {
		const struct gang_room *room = gang_room(g, units[i].place);

		w.exact &= room->exact;
		w.outside |= !gang_below_preferred(g, units[i].place);
		w.left += room->free_members;
		w.free_milli += cluster_domain(g->cluster, units[i].place)->free_milli;
	}
	w.left -= g->members;
	if (start)
		w.neighbours += gang_room(g, units[start - 1].place)->free_members;
	if (end < g->units.len)
		w.neighbours += gang_room(g, units[end].place)->free_members;
	return w;
}

static void histogram_clear(struct gang_planner *g)
{
	memset(g->nodes_by_room.items, 0, (g->top_room + 1) * sizeof(*g->nodes_by_room.items));
	g->top_room = 0;
}

/* The best window of that length, not among the banned ones. */
struct gang_window gang_window_best(struct gang_planner *g, uint32_t domain, uint32_t length)
{
	const struct gang_unit *units = g->units.items;
	struct gang_window best = { 0 };
	uint64_t members = 0, volume = 0;
	uint32_t full = 0;

	histogram_clear(g);
	for (uint32_t end = 0; end < g->units.len; end++) {
		members += units[end].members;
		volume += units[end].volume_milli;
		full += !units[end].members;
		gang_histogram(g, units[end].place, 1);
		if (end >= length) {
			members -= units[end - length].members;
			volume -= units[end - length].volume_milli;
			full -= !units[end - length].members;
			gang_histogram(g, units[end - length].place, -1);
		}
		if (end + 1 >= length && !full && gang_enough(g, members, volume) &&
		    !banned(g, domain, end + 1 - length, length)) {
			struct gang_window w = window_at(g, domain, end + 1 - length, length);

			if (gang_window_better(&w, &best))
				best = w;
		}
	}
	return best;
}

uint32_t gang_ideal(struct gang_planner *g, uint32_t domain)
{
	uint64_t sum = 0;
	size_t start = 0, best = 0;

	if (gang_units(g, domain) < 0)
		return 0;
	for (size_t end = 0; end < g->units.len; end++) {
		uint32_t empty = gang_room_empty(g, g->units.items[end].place);

		sum += empty;
		if (!empty) {
			sum = 0;
			start = end + 1;
			continue;
		}
		while (sum - gang_room_empty(g, g->units.items[start].place) >= g->empty_need)
			sum -= gang_room_empty(g, g->units.items[start++].place);
		if (sum >= g->empty_need && (!best || end - start + 1 < best))
			best = end - start + 1;
	}
	return (uint32_t)best;
}

/* Those that are kept, in the order of the tree, so that they do not suffice before the
 * last of them; then the roomiest first. */
static int unit_compare(const void *a, const void *b, void *planner)
{
	const struct gang_planner *g = planner;
	const struct gang_unit *x = a, *y = b;
	bool x_own = x->place >= cluster_domains(g->cluster);
	bool y_own = y->place >= cluster_domains(g->cluster);

	if (!x->members != !y->members)
		return x->members ? -1 : 1;
	if (x->kept != y->kept)
		return x->kept ? -1 : 1;
	if (x_own != y_own)
		return x_own ? 1 : -1;
	if (!x->kept && x->members != y->members)
		return x->members > y->members ? -1 : 1;
	if (x->place == y->place)
		return 0;
	return gang_domain_before(g->cluster, gang_place_domain(g, x->place),
				  gang_place_domain(g, y->place))
		       ? -1
		       : 1;
}

static uint32_t unit_parent(const struct gang_planner *g, const struct gang_unit *unit)
{
	return cluster_domain(g->cluster, gang_place_domain(g, unit->place))->parent;
}

/* The last unit need not be the roomiest: the tightest that does. */
static void fit_last(struct gang_planner *g, size_t last, uint64_t members, uint64_t volume)
{
	struct gang_unit *units = g->units.items;
	size_t best = last;

	for (size_t i = last + 1; i < g->units.len; i++)
		if (units[i].members && units[i].members < units[best].members &&
		    units[i].place < cluster_domains(g->cluster) &&
		    (!units[last].kept ||
		     unit_parent(g, &units[i]) == unit_parent(g, &units[last])) &&
		    gang_enough(g, members + units[i].members, volume + units[i].volume_milli))
			best = i;
	units[last] = units[best];
	g->units.len = last + 1;
}

bool gang_fewest(struct gang_planner *g)
{
	struct gang_unit *units = g->units.items;
	uint64_t members = 0, volume = 0;

	if (g->units.len)
		qsort_r(units, g->units.len, sizeof(*units), unit_compare, g);
	for (size_t i = 0; i < g->units.len && units[i].members; i++) {
		if (gang_enough(g, members + units[i].members, volume + units[i].volume_milli)) {
			fit_last(g, i, members, volume);
			return true;
		}
		members += units[i].members;
		volume += units[i].volume_milli;
	}
	return false;
}

uint32_t gang_deepest(const struct gang_planner *g)
{
	uint32_t level = 0;

	for (uint32_t d = g->scope; d != DOMAIN_NONE;
	     d = gang_domain_next(g->cluster, d, g->scope, true))
		if (!gang_is_place(g, d))
			level = MAX(level, cluster_domain(g->cluster, d)->level);
	return level;
}

bool gang_level_holds(struct gang_planner *g, uint32_t level)
{
	for (uint32_t d = g->scope; d != DOMAIN_NONE;
	     d = gang_domain_next(g->cluster, d, g->scope, true))
		if (!gang_is_place(g, d) && cluster_domain(g->cluster, d)->level == level &&
		    gang_room_empty(g, d) >= g->empty_need)
			return true;
	return false;
}
