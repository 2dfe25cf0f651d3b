/* SPDX-License-Identifier: Apache-2.0 */
/* pods.c - placements: who holds which part of which GPU. */
#include "engine/assign.h"
#include "engine/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A hold on a whole card is exactly that; its figures are not looked at. */
static bool book_whole(struct gpu *g)
{
	if (g->use != GPU_IDLE || g->mig_mode)
		return false;
	g->use = GPU_WHOLE;
	g->core_free_milli = 0;
	g->mem_free_mib = 0;
	g->tenants = 1;
	return true;
}

static void take_share(struct gpu *g, const struct hold *h)
{
	g->use = GPU_SHARED;
	g->group = h->group;
	g->core_free_milli = (int16_t)(g->core_free_milli - h->core_milli);
	if (g->mem_mib)
		g->mem_free_mib -= (int32_t)h->mem_mib;
	g->tenants++;
}

static bool book_share(struct gpu *g, const struct hold *h, uint16_t seats)
{
	if (g->mig_mode || (g->use != GPU_IDLE && g->use != GPU_SHARED))
		return false;
	if (g->use == GPU_SHARED && g->group != h->group)
		return false;
	if (h->core_milli > g->core_free_milli ||
	    (g->mem_mib && (int64_t)h->mem_mib > g->mem_free_mib))
		return false;
	if (!h->core_milli && !h->mem_mib && !h->group && g->tenants >= seats)
		return false;
	take_share(g, h);
	return true;
}

/* Core of a sliced card counts by its compute slices. */
static int16_t sliced_core(const struct mig_geometry *geometry, const struct mig_state *state)
{
	return (int16_t)(CORE_WHOLE - CORE_WHOLE * state->compute / geometry->compute);
}

static bool book_slice(const struct node *n, struct gpu *g, const struct hold *h)
{
	if (!g->mig_mode || !n->mig || h->mig_profile >= n->mig->profile_count ||
	    !mig_fits_at(n->mig, g->mig, h->mig_profile, h->mig_start))
		return false;
	mig_place(n->mig, &g->mig, h->mig_profile, h->mig_start);
	g->core_free_milli = sliced_core(n->mig, &g->mig);
	g->use = GPU_SLICED;
	g->tenants++;
	return true;
}

bool hold_book(const struct node *n, const struct hold *h, uint16_t seats)
{
	struct gpu *g;

	if (h->gpu >= n->gpus_count)
		return false;
	g = &n->gpus[h->gpu];
	switch (h->kind) {
	case ASK_WHOLE:
		return book_whole(g);
	case ASK_SHARE:
		return book_share(g, h, seats);
	default:
		return book_slice(n, g, h);
	}
}

bool hold_force(const struct node *n, const struct hold *h)
{
	if (hold_book(n, h, UINT16_MAX))
		return true;
	if (h->kind != ASK_SHARE)
		return false;
	take_share(&n->gpus[h->gpu], h);
	return true;
}

void hold_release(const struct node *n, const struct hold *h)
{
	struct gpu *g = &n->gpus[h->gpu];

	if (h->kind == ASK_MIG) {
		mig_free(n->mig, &g->mig, h->mig_profile, h->mig_start);
		g->core_free_milli = sliced_core(n->mig, &g->mig);
	} else if (h->kind == ASK_SHARE) {
		g->core_free_milli = (int16_t)(g->core_free_milli + h->core_milli);
		if (g->mem_mib)
			g->mem_free_mib += (int32_t)h->mem_mib;
	} else {
		g->core_free_milli = CORE_WHOLE;
		g->mem_free_mib = (int32_t)g->mem_mib;
	}
	if (--g->tenants == 0) {
		g->use = GPU_IDLE;
		g->group = 0;
	}
}

static bool amount_sane(int64_t amount)
{
	return amount >= 0 && amount <= RESOURCE_MAX;
}

bool resources_sane(const struct resources *r)
{
	return amount_sane(r->cpu_milli) && amount_sane(r->mem_bytes) &&
	       amount_sane(r->ephemeral_bytes) && amount_sane(r->pods);
}

bool extended_sane(const struct extended *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!amount_sane(items[i].amount))
			return false;
	return true;
}

void resources_take(struct resources *free, const struct resources *needs, int sign)
{
	free->cpu_milli -= sign * needs->cpu_milli;
	free->mem_bytes -= sign * needs->mem_bytes;
	free->ephemeral_bytes -= sign * needs->ephemeral_bytes;
	free->pods -= sign * needs->pods;
}

void extended_take(struct node *n, const struct extended *needs, uint32_t count, int sign)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < n->extended_count; j++)
			if (n->extended[j].resource == needs[i].resource)
				n->extended[j].amount -= sign * needs[i].amount;
}

static size_t pod_size(size_t uid_len, size_t name_len, const struct request *r, uint16_t holds)
{
	return sizeof(struct pod) + holds * sizeof(struct hold) +
	       r->extended_count * sizeof(struct extended) + uid_len + name_len + 2;
}

/* One piece of memory for the record and all that belongs to it. */
static struct pod *pod_new(struct cluster *c, const struct pod_spec *spec, const struct request *r,
			   const struct assignment *a)
{
	size_t uid_len = strlen(spec->uid), name_len = spec->name ? strlen(spec->name) : 0;
	size_t size = pod_size(uid_len, name_len, r, a->count);
	struct pod *pod = pool_alloc(&c->pool, size);
	char *text;

	if (!pod)
		return NULL;
	pod->extended = (struct extended *)(pod + 1);
	pod->holds = (struct hold *)(pod->extended + r->extended_count);
	text = (char *)(pod->holds + a->count);
	pod->uid = memcpy(text, spec->uid, uid_len + 1);
	text[uid_len + 1 + name_len] = '\0';
	pod->name = memcpy(text + uid_len + 1, spec->name ? spec->name : "", name_len);
	memcpy(pod->extended, r->extended, r->extended_count * sizeof(*pod->extended));
	memcpy(pod->holds, a->holds, a->count * sizeof(*pod->holds));
	pod->size = (uint32_t)size;
	pod->needs = r->needs;
	pod->started = spec->started;
	pod->gang = spec->gang;
	pod->priority = spec->priority;
	pod->holds_count = a->count;
	pod->extended_count = r->extended_count;
	pod->budget = spec->budget;
	pod->endless = spec->endless;
	pod->ending = spec->ending;
	pod->subject = r->subject;
	pod->rules = r->rules;
	pod->soft = r->soft;
	return pod;
}

static int pod_number(struct cluster *c, uint32_t *ret)
{
	if (c->free_pods.len) {
		*ret = c->free_pods.items[--c->free_pods.len];
		return 0;
	}
	if (vec_reserve(&c->free_pods, c->pods.len + 1) < 0 || vec_push(&c->pods, NULL) < 0)
		return -ENOMEM;
	*ret = (uint32_t)c->pods.len - 1;
	return 0;
}

/* All holds, or none.  `back`: they were here before, also where there is no room for them
 * since a card reported less memory, or no seat. */
static bool holds_book(const struct cluster *c, const struct node *n, const struct pod *pod,
		       bool back)
{
	for (uint16_t i = 0; i < pod->holds_count; i++) {
		const struct hold *h = &pod->holds[i];

		if (back ? hold_force(n, h) : hold_book(n, h, c->config.seats))
			continue;
		while (i--)
			hold_release(n, &pod->holds[i]);
		return false;
	}
	return true;
}

/* The first of a gang stays the first as long as it is there: its record has the key. */
static void gang_enter(struct cluster *c, struct pod *pod, uint32_t number)
{
	uint32_t first = pod->gang ? cluster_gang_first(c, pod->gang) : POD_NONE;

	pod->gang_previous = first;
	pod->gang_next = POD_NONE;
	if (!pod->gang)
		return;
	if (first == POD_NONE) {
		if (map_put_u32(&c->gang_pods, (const char *)&pod->gang, sizeof(pod->gang),
				number) < 0)
			abort(); /* reserved */
		return;
	}
	pod->gang_next = c->pods.items[first]->gang_next;
	c->pods.items[first]->gang_next = number;
	if (pod->gang_next != POD_NONE)
		c->pods.items[pod->gang_next]->gang_previous = number;
}

static void gang_leave(struct cluster *c, const struct pod *pod)
{
	struct pod *next = pod->gang_next == POD_NONE ? NULL : c->pods.items[pod->gang_next];

	if (!pod->gang)
		return;
	if (next)
		next->gang_previous = pod->gang_previous;
	if (pod->gang_previous != POD_NONE) {
		c->pods.items[pod->gang_previous]->gang_next = pod->gang_next;
		return;
	}
	map_del(&c->gang_pods, (const char *)&pod->gang, sizeof(pod->gang));
	if (next && map_put_u32(&c->gang_pods, (const char *)&next->gang, sizeof(next->gang),
				pod->gang_next) < 0)
		abort(); /* one has just gone */
}

static int pod_enter(struct cluster *c, struct pod *pod, uint32_t node, bool back, uint32_t *ret)
{
	struct node *n = node_at(c, node);
	uint32_t number;

	if (cluster_pod_find(c, pod->uid) != POD_NONE)
		return -EEXIST;
	if (map_reserve(&c->pod_ids, c->pod_ids.len + 1) < 0 ||
	    map_reserve(&c->gang_pods, c->gang_pods.len + 1) < 0 || pod_number(c, &number) < 0)
		return -ENOMEM;
	if (rules_pod_enter(c, pod, node) < 0) {
		c->free_pods.items[c->free_pods.len++] = number;
		return -ENOMEM;
	}
	node_open(c, n);
	if (!holds_book(c, n, pod, back)) {
		node_close(c, n);
		rules_pod_leave(c, pod, node);
		c->free_pods.items[c->free_pods.len++] = number;
		return -ENOSPC;
	}
	resources_take(&n->free, &pod->needs, 1);
	extended_take(n, pod->extended, pod->extended_count, 1);
	node_close(c, n);
	if (map_put_u32(&c->pod_ids, pod->uid, strlen(pod->uid), number) < 0)
		abort(); /* reserved */
	pod->node = node;
	pod->next = n->first_pod;
	pod->previous = POD_NONE;
	if (pod->next != POD_NONE)
		c->pods.items[pod->next]->previous = number;
	n->first_pod = number;
	c->pods.items[number] = pod;
	gang_enter(c, pod, number);
	*ret = number;
	return 0;
}

int cluster_pod_place(struct cluster *c, const struct pod_spec *spec, const struct request *r,
		      uint32_t node, const struct assignment *a, uint32_t *ret)
{
	struct pod *pod;
	int rc;

	if (node >= c->nodes.len || !c->nodes.items[node].name)
		return -ENOENT;
	pod = pod_new(c, spec, r, a);
	if (!pod)
		return -ENOMEM;
	subject_hold(c, pod->subject);
	rules_hold(c, pod->rules);
	soft_hold(c, pod->soft);
	rc = pod_enter(c, pod, node, false, ret);
	if (rc < 0)
		cluster_pod_discard(c, pod);
	return rc;
}

/* Takes the pod off the lists; its figures on the node are the caller's business. */
static void pod_unlink(struct cluster *c, uint32_t number)
{
	struct pod *pod = c->pods.items[number];

	if (pod->previous == POD_NONE)
		node_at(c, pod->node)->first_pod = pod->next;
	else
		c->pods.items[pod->previous]->next = pod->next;
	if (pod->next != POD_NONE)
		c->pods.items[pod->next]->previous = pod->previous;
	gang_leave(c, pod);
	map_del(&c->pod_ids, pod->uid, strlen(pod->uid));
	c->pods.items[number] = NULL;
	c->free_pods.items[c->free_pods.len++] = number;
}

struct pod *cluster_pod_detach(struct cluster *c, uint32_t number)
{
	struct pod *pod = c->pods.items[number];
	struct node *n = node_at(c, pod->node);

	rules_pod_leave(c, pod, pod->node);
	node_open(c, n);
	for (uint16_t i = 0; i < pod->holds_count; i++)
		hold_release(n, &pod->holds[i]);
	resources_take(&n->free, &pod->needs, -1);
	extended_take(n, pod->extended, pod->extended_count, -1);
	node_close(c, n);
	pod_unlink(c, number);
	return pod;
}

int cluster_pod_attach(struct cluster *c, struct pod *pod, uint32_t *ret)
{
	return pod_enter(c, pod, pod->node, true, ret);
}

void cluster_pod_discard(struct cluster *c, struct pod *pod)
{
	subject_release(c, pod->subject);
	soft_release(c, pod->soft);
	rules_release(c, pod->rules);
	pool_free(&c->pool, pod, pod->size);
}

void cluster_pod_ending(struct cluster *c, uint32_t number)
{
	struct pod *pod = c->pods.items[number];

	if (pod->ending)
		return;
	rules_pod_ending(c, pod);
	pod->ending = 1;
}

void cluster_pod_started(struct cluster *c, uint32_t number, uint64_t started)
{
	c->pods.items[number]->started = started;
}

void cluster_pod_budget(struct cluster *c, uint32_t number, uint32_t budget)
{
	c->pods.items[number]->budget = budget;
}

int cluster_budget_allow(struct cluster *c, uint32_t budget, uint32_t pods)
{
	while (c->budgets.len <= budget)
		if (vec_push(&c->budgets, 0) < 0)
			return -ENOMEM;
	c->budgets.items[budget] = pods;
	return 0;
}

uint32_t cluster_budget_allowed(const struct cluster *c, uint32_t budget)
{
	return budget < c->budgets.len ? c->budgets.items[budget] : 0;
}

void cluster_pod_endless(struct cluster *c, uint32_t number, uint8_t endless)
{
	c->pods.items[number]->endless = endless;
}

void cluster_pod_remove(struct cluster *c, uint32_t number)
{
	cluster_pod_discard(c, cluster_pod_detach(c, number));
}

uint32_t cluster_pod_find(const struct cluster *c, const char *uid)
{
	uint32_t pod;

	return map_get_u32(&c->pod_ids, uid, strlen(uid), &pod) ? pod : POD_NONE;
}

const struct pod *cluster_pod(const struct cluster *c, uint32_t pod)
{
	return c->pods.items[pod];
}

uint32_t cluster_gang_first(const struct cluster *c, uint32_t gang)
{
	uint32_t pod;

	return map_get_u32(&c->gang_pods, (const char *)&gang, sizeof(gang), &pod) ? pod
										   : POD_NONE;
}

uint32_t cluster_pods_count(const struct cluster *c)
{
	return c->pod_ids.len;
}

uint32_t cluster_pods_end(const struct cluster *c)
{
	return (uint32_t)c->pods.len;
}

void pods_done(struct cluster *c)
{
	for (size_t i = 0; i < c->pods.len; i++)
		if (c->pods.items[i])
			pool_free(&c->pool, c->pods.items[i], c->pods.items[i]->size);
	vec_done(&c->pods);
	vec_done(&c->free_pods);
	map_done(&c->pod_ids);
	map_done(&c->gang_pods);
	vec_done(&c->budgets);
}
