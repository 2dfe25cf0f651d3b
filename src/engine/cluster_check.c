/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_check.c - what tests ask: is every figure right, are two states the same. */
#include "base/hash.h"
#include "engine/cluster_private.h"

#include <string.h>

static uint64_t hash_text(const char *s, uint64_t seed)
{
	return hash_bytes(s, strlen(s), seed);
}

static uint64_t digest_gpu(const struct cluster *c, const struct gpu *g, uint64_t seed)
{
	uint32_t figures[] = {
		g->mem_mib,
		(uint32_t)g->mem_free_mib,
		(uint32_t)g->core_free_milli,
		g->tenants,
		g->use,
		g->healthy,
		g->numa,
		g->island,
		g->mig_mode,
		g->mig.used,
		g->mig.compute,
		g->mig.media,
	};
	uint64_t sum = hash_bytes(g->mig_made, sizeof(g->mig_made),
				  hash_bytes(figures, sizeof(figures), seed));

	sum = hash_text(cluster_string(c, g->uuid), sum);
	sum = hash_bytes(&g->group, sizeof(g->group), sum);
	return hash_text(cluster_model_name(c, g->model), sum);
}

static uint64_t digest_pod(const struct pod *pod)
{
	int64_t figures[] = { pod->priority, pod->gang, (int64_t)pod->started };
	uint64_t sum = hash_text(pod->uid, 1);

	sum = hash_bytes(figures, sizeof(figures), sum);
	sum = hash_bytes(&pod->needs, sizeof(pod->needs), sum);
	return hash_bytes(pod->holds, pod->holds_count * sizeof(*pod->holds), sum);
}

/* The pods of a node count in any order, so theirs are added up. */
static uint64_t digest_node(const struct cluster *c, const struct node *n)
{
	uint64_t sum = hash_text(n->name, 2), pods = 0;

	sum = hash_bytes(&n->free, sizeof(n->free), sum);
	sum = hash_bytes(&n->allocatable, sizeof(n->allocatable), sum);
	for (uint32_t i = 0; i < n->extended_count; i++)
		sum = hash_bytes(&n->extended[i].amount, sizeof(n->extended[i].amount), sum);
	for (uint32_t i = 0; i < n->gpus_count; i++)
		sum = digest_gpu(c, &n->gpus[i], sum);
	for (uint32_t p = n->first_pod; p != POD_NONE; p = c->pods.items[p]->next)
		pods += digest_pod(c->pods.items[p]);
	return hash_bytes(&pods, sizeof(pods), sum);
}

static uint64_t digest_domain(const struct domain *d, uint64_t seed)
{
	uint64_t figures[] = { d->nodes, d->gpus, d->free_milli, d->total_milli, d->step };
	uint64_t sum = hash_bytes(figures, sizeof(figures), hash_text(d->name, seed));

	return hash_bytes(d->nodes_by_idle, sizeof(d->nodes_by_idle), sum);
}

uint64_t cluster_digest(const struct cluster *c)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->by_name.len; i++)
		sum = sum * 31 + digest_node(c, &c->nodes.items[c->by_name.items[i]]);
	for (size_t i = 0; i < c->domains.len; i++)
		if (c->domains.items[i].nodes)
			sum += digest_domain(&c->domains.items[i], 3);
	return sum;
}

/* What the holds on a node leave of a GPU must be what its record says. */
static const char *check_gpu(const struct cluster *c, const struct node *n, uint32_t gpu)
{
	const struct gpu *g = &n->gpus[gpu];
	uint32_t core = 0, mem = 0, tenants = 0, wholes = 0, slices = 0;

	for (uint32_t p = n->first_pod; p != POD_NONE; p = c->pods.items[p]->next) {
		const struct pod *pod = c->pods.items[p];

		for (uint16_t i = 0; i < pod->holds_count; i++) {
			const struct hold *h = &pod->holds[i];
			uint32_t run;

			if (h->gpu != gpu)
				continue;
			tenants++;
			wholes += h->kind == ASK_WHOLE;
			core += h->core_milli;
			mem += h->mem_mib;
			if (h->kind != ASK_MIG)
				continue;
			run = ((1u << n->mig->profiles[h->mig_profile].size) - 1) << h->mig_start;
			if (slices & run)
				return "MIG placements overlap";
			slices |= run;
		}
	}
	if (wholes > 1 || (wholes && tenants > 1))
		return "a whole GPU has two holders";
	if (core > CORE_WHOLE)
		return "a GPU is over capacity";
	if (tenants != g->tenants || (slices & 0xff) != g->mig.used)
		return "a GPU's tenants are not its holds";
	if (!wholes && !slices && g->core_free_milli != CORE_WHOLE - (int32_t)core)
		return "a GPU's free core is not what its holds leave";
	if (g->mem_mib && g->mem_free_mib != (wholes ? 0 : (int64_t)g->mem_mib - mem))
		return "a GPU's free memory is not what its holds leave";
	return NULL;
}

static const char *check_node(const struct cluster *c, const struct node *n)
{
	struct resources left = n->allocatable;

	for (uint32_t p = n->first_pod; p != POD_NONE; p = c->pods.items[p]->next)
		resources_take(&left, &c->pods.items[p]->needs, 1);
	if (memcmp(&left, &n->free, sizeof(left)))
		return "a node's free resources are not what its pods leave";
	for (uint32_t i = 0; i < n->gpus_count; i++) {
		const char *wrong = check_gpu(c, n, i);

		if (wrong)
			return wrong;
	}
	if (c->slot_node[n->slot] != n - c->nodes.items || c->slot_bucket[n->slot] != n->bucket)
		return "a slot points to another node";
	return NULL;
}

static const char *check_domain(const struct cluster *c, uint32_t number)
{
	const struct domain *d = &c->domains.items[number];
	uint32_t nodes = 0, gpus = 0, by_idle[GPU_MAX + 1] = { 0 };
	uint64_t free_milli = 0, total_milli = 0;

	for (size_t i = 0; i < c->by_name.len; i++) {
		const struct node *n = &c->nodes.items[c->by_name.items[i]];

		if (!cluster_below(c, n->domain, number))
			continue;
		nodes++;
		gpus += n->gpus_count;
		free_milli += n->free_milli;
		total_milli += n->total_milli;
		by_idle[n->idle_gpus] += !n->unschedulable && !n->gpus_closed;
	}
	if (nodes != d->nodes || gpus != d->gpus || free_milli != d->free_milli ||
	    total_milli != d->total_milli || memcmp(by_idle, d->nodes_by_idle, sizeof(by_idle)))
		return "a domain's figures are not the sum of its nodes";
	return NULL;
}

static const char *check_models(const struct cluster *c)
{
	uint64_t free_milli[MODEL_MAX] = { 0 };

	for (size_t i = 0; i < c->by_name.len; i++) {
		const struct node *n = &c->nodes.items[c->by_name.items[i]];

		if (n->gpus_count)
			free_milli[node_model(n)] += n->free_milli;
	}
	return memcmp(free_milli, c->model_free_milli, sizeof(free_milli))
		       ? "a model's free GPU is not the sum of its nodes"
		       : NULL;
}

/* Every pod of a gang is found by it, once. */
static const char *check_gangs(const struct cluster *c)
{
	struct map_entry entry;
	size_t found = 0, members = 0;

	for (uint32_t at = 0; map_next(&c->gang_pods, &at, &entry);) {
		uint32_t before = POD_NONE;

		for (uint32_t p = entry.u32; p != POD_NONE; p = c->pods.items[p]->gang_next) {
			const struct pod *pod = c->pods.items[p];

			if (!pod || pod->gang_previous != before ||
			    memcmp(entry.key, &pod->gang, sizeof(pod->gang)) != 0 ||
			    ++found > c->pods.len)
				return "the pods of a gang are not linked";
			before = p;
		}
	}
	for (size_t i = 0; i < c->pods.len; i++)
		members += c->pods.items[i] && c->pods.items[i]->gang;
	return found == members ? NULL : "a pod is not found by its gang";
}

const char *cluster_check(const struct cluster *c)
{
	for (size_t i = 0; i < c->by_name.len; i++) {
		const struct node *n = &c->nodes.items[c->by_name.items[i]];
		const char *wrong = check_node(c, n);

		if (wrong)
			return wrong;
		if (i && strcmp(c->nodes.items[c->by_name.items[i - 1]].name, n->name) >= 0)
			return "nodes are out of order";
	}
	for (uint32_t d = 0; d < c->domains.len; d++) {
		const char *wrong = check_domain(c, d);

		if (wrong)
			return wrong;
	}
	const char *wrong = check_models(c);

	return wrong ? wrong : check_gangs(c);
}
