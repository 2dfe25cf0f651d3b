/* SPDX-License-Identifier: Apache-2.0 */
/* score.c - the four parts of a score. */
#include "engine/score.h"
#include "base/attr.h"
#include "engine/cluster_private.h"
#include "engine/links.h"
#include "engine/policy/policy.h"

/* How near the GPUs of each ask are to the best set this machine could ever give. */
static int32_t alignment_part(const struct request *r, const struct node *n,
			      const struct assignment *a)
{
	uint64_t have = 0, best = 0;

	if (!n->links)
		return PART_MAX;
	for (uint8_t i = 0; i < r->asks_count; i++) {
		const struct ask *ask = &r->asks[i];

		if (ask->kind != ASK_WHOLE || ask->count < 2 || ask->count > n->gpus_count)
			continue;
		have += links_total(n->links, assignment_gpus(a, i));
		best += n->links->best_gbps[ask->count];
	}
	return best ? (int32_t)(have * PART_MAX / best) : PART_MAX;
}

static int32_t weigh(int32_t part, uint32_t weight)
{
	return (int32_t)((int64_t)part * weight / 1000);
}

int32_t score_local(const struct scorer *s, const struct request *r, const struct node *n,
		    const struct assignment *a, struct parts *parts)
{
	struct parts p = { 0 };
	int32_t bonus = 0;

	p.availability = s->policy->score(s, r, n, a);
	if (s->policy->bare) {
		if (parts)
			*parts = p;
		return p.availability;
	}
	/* Like a preferred domain: it outweighs everything but a price. */
	if (r->prefer_hcas & n->hcas)
		bonus = PART_MAX;
	p.alignment = alignment_part(r, n, a);
	p.performance = MIN(n->performance_milli, 1000) * (PART_MAX / 1000);
	if (parts)
		*parts = p;
	return bonus + weigh(p.availability, s->weights.availability) +
	       weigh(p.alignment, s->weights.alignment) +
	       weigh(p.performance, s->weights.performance);
}

static int32_t domain_value(const struct request *r, const struct domain *d,
			    const struct domain *root)
{
	int32_t full = (int32_t)d->step * (PART_MAX / DOMAIN_STEPS);
	int32_t mean = (int32_t)root->step * (PART_MAX / DOMAIN_STEPS);

	switch (r->strategy) {
	case STRATEGY_DISTRIBUTED:
		return PART_MAX - full;
	case STRATEGY_BALANCED:
		return PART_MAX - (full > mean ? full - mean : mean - full);
	default:
		return full;
	}
}

/* What is saved of the highest price there is: so scores are never negative. */
static int32_t price_saved(const struct scorer *s, const struct request *r, uint16_t model,
			   struct parts *parts)
{
	int32_t price = 0;

	if (!s->policy->price)
		return 0;
	if (model != MODEL_NONE)
		price = s->policy->price(s, r, model);
	if (parts)
		parts->price = price;
	return weigh(PRICE_MAX - price, s->weights.availability);
}

int32_t score_offset(const struct scorer *s, const struct request *r, uint32_t domain,
		     uint16_t model, struct parts *parts)
{
	const struct cluster *c = s->cluster;
	int64_t sum = 0;
	int32_t levels = 0, value, bonus = 0;

	if (s->policy->bare)
		return 0;
	for (uint32_t d = domain; d != DOMAIN_NONE && d != 0; d = cluster_domain(c, d)->parent) {
		sum += domain_value(r, cluster_domain(c, d), cluster_domain(c, 0));
		levels++;
	}
	value = levels ? (int32_t)(sum / levels) : 0;
	if (parts)
		parts->utilization = value;
	/* A preferred domain outweighs everything but a price, at any weights. */
	if (r->prefer_domain != DOMAIN_NONE && cluster_below(c, domain, r->prefer_domain))
		bonus = PART_MAX;
	return weigh(value, s->weights.utilization) + bonus + price_saved(s, r, model, parts);
}

uint32_t scorer_pick_share(const struct scorer *s, const struct request *r, const struct ask *a,
			   const struct node *n, uint32_t usable)
{
	uint32_t best = gpuset_first(usable);

	if (s->policy->pick_share)
		return s->policy->pick_share(s, r, a, n, usable);
	gpuset_each(gpu, usable)
		if (n->gpus[gpu].core_free_milli < n->gpus[best].core_free_milli)
			best = gpu;
	return best;
}
