/* SPDX-License-Identifier: Apache-2.0 */
/* gang_tree.c - the order of the domain tree. */
#include "engine/gang_private.h"

uint32_t gang_domain_next(const struct cluster *c, uint32_t domain, uint32_t top, bool down)
{
	const struct domain *d = cluster_domain(c, domain);

	if (down && d->first_child != DOMAIN_NONE)
		return d->first_child;
	while (domain != top && d->next_sibling == DOMAIN_NONE) {
		domain = d->parent;
		d = cluster_domain(c, domain);
	}
	return domain == top ? DOMAIN_NONE : d->next_sibling;
}

static uint32_t ancestor(const struct cluster *c, uint32_t domain, uint32_t level)
{
	while (cluster_domain(c, domain)->level > level)
		domain = cluster_domain(c, domain)->parent;
	return domain;
}

bool gang_domain_before(const struct cluster *c, uint32_t a, uint32_t b)
{
	uint8_t a_level = cluster_domain(c, a)->level, b_level = cluster_domain(c, b)->level;
	uint8_t level = a_level < b_level ? a_level : b_level;
	uint32_t x = ancestor(c, a, level), y = ancestor(c, b, level);

	if (x == y)
		return a_level < b_level;
	while (cluster_domain(c, x)->parent != cluster_domain(c, y)->parent) {
		x = cluster_domain(c, x)->parent;
		y = cluster_domain(c, y)->parent;
	}
	return cluster_domain(c, x)->position < cluster_domain(c, y)->position;
}

uint32_t gang_domain_common(const struct cluster *c, uint32_t a, uint32_t b)
{
	while (!cluster_below(c, b, a))
		a = cluster_domain(c, a)->parent;
	return a;
}
