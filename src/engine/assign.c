/* SPDX-License-Identifier: Apache-2.0 */
/* assign.c - does it fit, and on which GPUs. */
#include "engine/assign.h"
#include "engine/choose.h"
#include "engine/cluster_private.h"

#include <string.h>

static bool has_label(const struct node *n, struct label want)
{
	size_t low = 0, high = n->labels_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (n->labels[middle].key < want.key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n->labels_count && n->labels[low].key == want.key &&
	       n->labels[low].value == want.value;
}

enum verdict fit_identity(const struct cluster *c, const struct request *r, uint32_t node)
{
	const struct node *n = cluster_node(c, node);

	if (!n->name)
		return NODE_GONE;
	if (r->node != NODE_NONE && r->node != node)
		return WRONG_NODE;
	for (uint32_t i = 0; i < r->selector_count; i++)
		if (!has_label(n, r->selector[i]))
			return WRONG_LABELS;
	if (r->domain != DOMAIN_NONE && !cluster_below(c, n->domain, r->domain))
		return WRONG_DOMAIN;
	if (r->demand_of && soft_fit_node(c, r, node) != FITS)
		return WRONG_LABELS;
	return rules_fit_node(c, r->rules, node);
}

static bool tolerated(const struct toleration *tolerations, uint32_t count,
		      const struct taint *taint)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct toleration *t = &tolerations[i];

		if (t->effect != EFFECT_ANY && t->effect != taint->effect)
			continue;
		if (t->key && t->key != taint->key)
			continue;
		if (t->op == TOLERATE_EXISTS || (t->key && t->value == taint->value))
			return true;
	}
	return false;
}

bool taints_tolerated(const struct toleration *tolerations, uint32_t count, const struct node *n)
{
	for (uint32_t i = 0; i < n->taints_count; i++)
		if (n->taints[i].effect != EFFECT_PREFER_NO_SCHEDULE &&
		    !tolerated(tolerations, count, &n->taints[i]))
			return false;
	return true;
}

uint32_t taints_discouraging(const struct toleration *tolerations, uint32_t count,
			     const struct node *n)
{
	uint32_t taints = 0;

	for (uint32_t i = 0; i < n->taints_count; i++)
		taints += n->taints[i].effect == EFFECT_PREFER_NO_SCHEDULE &&
			  !tolerated(tolerations, count, &n->taints[i]);
	return taints;
}

/* A resource that is not asked for is no obstacle, even where it is overbooked. */
static bool enough(int64_t need, int64_t left)
{
	return need <= 0 || need <= left;
}

static bool extended_fit(const struct request *r, const struct node *n)
{
	for (uint32_t i = 0; i < r->extended_count; i++) {
		int64_t left = 0;

		for (uint32_t j = 0; j < n->extended_count; j++)
			if (n->extended[j].resource == r->extended[i].resource)
				left = n->extended[j].amount;
		if (!enough(r->extended[i].amount, left))
			return false;
	}
	return true;
}

static enum verdict fit_resources(const struct request *r, const struct node *n)
{
	if (!enough(r->needs.cpu_milli, n->free.cpu_milli))
		return NO_CPU;
	if (!enough(r->needs.mem_bytes, n->free.mem_bytes))
		return NO_MEMORY;
	if (!enough(r->needs.pods, n->free.pods))
		return TOO_MANY_PODS;
	if (!enough(r->needs.ephemeral_bytes, n->free.ephemeral_bytes))
		return NO_EPHEMERAL;
	if (!extended_fit(r, n))
		return NO_EXTENDED;
	return FITS;
}

/* What the node refuses whatever its GPUs are doing, then what it lacks now. */
static enum verdict fit_node_part(const struct cluster *c, const struct request *r,
				  const struct node *n)
{
	struct taint cordon = { .key = c->cordon_key, .effect = EFFECT_NO_SCHEDULE };

	if (n->unschedulable && !tolerated(r->tolerations, r->tolerations_count, &cordon))
		return UNSCHEDULABLE;
	if (n->taints_count && !taints_tolerated(r->tolerations, r->tolerations_count, n))
		return TAINTED;
	if (r->demand & DEMAND_TAINTS &&
	    taints_discouraging(r->tolerations, r->tolerations_count, n))
		return TAINTED;
	if (r->min_network_gbps && n->network_gbps < r->min_network_gbps)
		return NO_NETWORK;
	if (n->rdma_ports < r->min_rdma_ports)
		return NO_RDMA;
	if (r->cufile && !n->cufile)
		return NO_CUFILE;
	if (n->gpus_closed && r->asks_count)
		return NO_LOCK;
	return fit_resources(r, n);
}

/* Pinned asks have no choice and whole cards little; large shares less than small ones. */
static uint64_t ask_urgency(const struct ask *a)
{
	if (a->pinned)
		return UINT64_C(1) << 60;
	if (a->kind == ASK_WHOLE)
		return (UINT64_C(1) << 56) + a->count;
	if (a->kind == ASK_MIG)
		return (UINT64_C(1) << 52) + a->count;
	return ((uint64_t)a->core_milli << 36) + a->mem_mib;
}

static void ask_order(const struct request *r, uint8_t *order)
{
	for (uint8_t i = 0; i < r->asks_count; i++) {
		uint8_t at = i;

		while (at && ask_urgency(&r->asks[order[at - 1]]) < ask_urgency(&r->asks[i])) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
	}
}

/* Several asks: each is chosen on a copy of the node on which the earlier ones are booked. */
static enum verdict assign_asks(const struct choose *ch, const struct node *n,
				struct assignment *ret)
{
	struct gpu gpus[GPU_MAX];
	struct node trial = *n;
	uint8_t order[ASK_MAX] = { 0 };

	memcpy(gpus, n->gpus, n->gpus_count * sizeof(*gpus));
	trial.gpus = gpus;
	trial.state = 0; /* none that anybody has met */
	ask_order(ch->request, order);
	for (uint8_t i = 0; i < ch->request->asks_count; i++) {
		uint16_t from = ret->count;
		enum verdict v = choose_gpus(ch, order[i], &trial, ret);

		/* The first had the node to itself: nothing could help it. */
		if (v != FITS)
			return i && search_gpus(ch, order, n, ret) ? FITS : v;
		for (uint16_t h = from; h < ret->count; h++) {
			if (!hold_book(&trial, &ret->holds[h], ch->seats))
				return NO_FREE_GPU;
			trial.idle &= ~gpuset_one(ret->holds[h].gpu);
		}
	}
	return FITS;
}

static void assignment_clear(struct assignment *a)
{
	a->count = 0;
	a->gpus = 0;
	a->apart = 0;
	a->weakest_gbps = UINT32_MAX;
}

enum verdict assign_gpus(const struct cluster *c, const struct scorer *s, const struct request *r,
			 const struct node *n, struct assignment *ret)
{
	struct choose ch = { .scorer = s, .request = r, .seats = c->config.seats };

	assignment_clear(ret);
	if (!r->asks_count)
		return FITS;
	if (r->asks_count == 1)
		return choose_gpus(&ch, 0, n, ret);
	return assign_asks(&ch, n, ret);
}

enum verdict assign_state(const struct cluster *c, const struct scorer *s, const struct request *r,
			  const struct node *n, struct assignment *ret)
{
	enum verdict v = fit_node_part(c, r, n);

	if (v == FITS)
		return assign_gpus(c, s, r, n, ret);
	assignment_clear(ret);
	return v;
}

enum verdict assign_node(const struct cluster *c, const struct scorer *s, const struct request *r,
			 uint32_t node, struct assignment *ret)
{
	enum verdict v = fit_identity(c, r, node);

	if (v == FITS)
		v = assign_state(c, s, r, cluster_node(c, node), ret);
	return v == FITS ? rules_fit_pods(c, r->rules, r->subject, node, NULL, 0) : v;
}

enum verdict fit_place(const struct cluster *c, const struct request *r, uint32_t node)
{
	enum verdict v = fit_identity(c, r, node);

	return v == FITS ? rules_fit_pods(c, r->rules, r->subject, node, NULL, 0) : v;
}

enum verdict fit_node(const struct cluster *c, const struct request *r, uint32_t node)
{
	struct assignment a;

	return assign_node(c, NULL, r, node, &a);
}

uint32_t assignment_gpus(const struct assignment *a, uint8_t ask)
{
	uint32_t gpus = 0;

	for (uint16_t i = 0; i < a->count; i++)
		if (a->holds[i].ask == ask)
			gpus |= gpuset_one(a->holds[i].gpu);
	return gpus;
}
