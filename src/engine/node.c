/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - nodes come, change and go. */
#include "base/attr.h"
#include "base/err.h"
#include "engine/cluster_private.h"
#include "engine/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODE_LABELS_MAX	  1024
#define NODE_TAINTS_MAX	  256
#define NODE_EXTENDED_MAX 64

static int spec_check(const struct node_spec *spec, struct err *err)
{
	if (!spec->name || !*spec->name)
		return err_set(err, EINVAL, "a node has no name");
	if (spec->gpus_count > GPU_MAX)
		return err_set(err, EINVAL, "node %s: %u GPUs, at most %u are supported",
			       spec->name, spec->gpus_count, GPU_MAX);
	if (spec->links && spec->links->count != spec->gpus_count)
		return err_set(err, EINVAL, "node %s: links for %u GPUs, but it has %u",
			       spec->name, spec->links->count, spec->gpus_count);
	if (spec->domains_count > DOMAIN_LEVELS_MAX)
		return err_set(err, EINVAL,
			       "node %s: %u topology levels, at most %u are supported", spec->name,
			       spec->domains_count, DOMAIN_LEVELS_MAX);
	if (spec->labels_count > NODE_LABELS_MAX || spec->taints_count > NODE_TAINTS_MAX ||
	    spec->extended_count > NODE_EXTENDED_MAX)
		return err_set(err, EINVAL, "node %s: too many labels, taints or resources",
			       spec->name);
	if (!resources_sane(&spec->allocatable) ||
	    !extended_sane(spec->extended, spec->extended_count))
		return err_set(err, EINVAL,
			       "node %s: an allocatable amount is negative or above 2^48",
			       spec->name);
	for (uint32_t i = 0; i < spec->gpus_count; i++) {
		if (!spec->gpus[i].uuid || !*spec->gpus[i].uuid)
			return err_set(err, EINVAL, "node %s: GPU %u has no UUID", spec->name, i);
		if (spec->gpus[i].mem_mib > INT32_MAX)
			return err_set(err, EINVAL,
				       "node %s: GPU %u has more than 2 PiB of memory", spec->name,
				       i);
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(spec->gpus[i].uuid, spec->gpus[j].uuid))
				return err_set(err, EEXIST, "node %s: GPU UUID %s comes twice",
					       spec->name, spec->gpus[i].uuid);
	}
	return 0;
}

/* No GPU of the spec may be on another node. */
static int spec_check_unique(const struct cluster *c, const struct node_spec *spec, uint32_t self,
			     struct err *err)
{
	for (uint32_t i = 0; i < spec->gpus_count; i++) {
		uint32_t node;
		uint8_t gpu;

		if (cluster_gpu_find(c, spec->gpus[i].uuid, &node, &gpu) && node != self)
			return err_set(err, EEXIST, "GPU %s is reported by nodes %s and %s",
				       spec->gpus[i].uuid, c->nodes.items[node].name, spec->name);
	}
	return 0;
}

static int compare_labels(const void *a, const void *b)
{
	const struct label *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static void *copy_array(const void *items, size_t count, size_t size)
{
	void *copy = malloc(count ? count * size : 1);

	if (copy && count)
		memcpy(copy, items, count * size);
	return copy;
}

static int fill_gpus(struct cluster *c, const struct node_spec *spec, struct node *n,
		     struct err *err)
{
	n->gpus = calloc(spec->gpus_count ? spec->gpus_count : 1, sizeof(*n->gpus));
	if (!n->gpus)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < spec->gpus_count; i++) {
		const struct gpu_spec *from = &spec->gpus[i];
		struct gpu *g = &n->gpus[i];

		g->uuid = cluster_intern(c, from->uuid);
		g->model = cluster_model(c, from->model ? from->model : "");
		if (g->uuid == UINT32_MAX || g->model == UINT16_MAX)
			return err_set(err, ENOMEM,
				       "node %s: out of memory, or more than %u GPU models",
				       spec->name, MODEL_MAX);
		g->mem_mib = from->mem_mib;
		g->mem_free_mib = (int32_t)from->mem_mib;
		g->core_free_milli = CORE_WHOLE;
		g->healthy = !from->unhealthy;
		g->numa = from->numa;
		g->island = spec->links ? spec->links->island[i] : 0;
		g->load_percent = from->load_percent;
		g->mig_mode = from->mig_mode;
		memcpy(g->mig_made, from->mig_made, sizeof(g->mig_made));
	}
	n->gpus_count = (uint8_t)spec->gpus_count;
	return 0;
}

static void node_clear(struct cluster *c, struct node *n)
{
	profile_release(c, n->profile);
	free((char *)n->name);
	free(n->gpus);
	free(n->extended);
	free(n->extended_total);
	free(n->labels);
	free(n->taints);
	*n = (struct node){ 0 };
}

/* The record that the spec describes, not yet part of the cluster. */
static int node_fill(struct cluster *c, const struct node_spec *spec, struct node *n,
		     struct err *err)
{
	*n = (struct node){
		.allocatable = spec->allocatable,
		.free = spec->allocatable,
		.links = spec->links,
		.mig = spec->mig,
		.network_gbps = spec->network_gbps,
		.rdma_ports = spec->rdma_ports,
		.hcas = spec->hcas,
		.performance_milli = spec->performance_milli ? spec->performance_milli : 1000,
		.extended_count = (uint16_t)spec->extended_count,
		.labels_count = (uint16_t)spec->labels_count,
		.taints_count = (uint16_t)spec->taints_count,
		.cufile = spec->cufile,
		.unschedulable = spec->unschedulable,
		.gpus_closed = spec->gpus_closed,
		.first_pod = POD_NONE,
	};
	n->name = strdup(spec->name);
	n->extended = copy_array(spec->extended, spec->extended_count, sizeof(*n->extended));
	n->extended_total = copy_array(spec->extended, spec->extended_count, sizeof(*n->extended));
	n->labels = copy_array(spec->labels, spec->labels_count, sizeof(*n->labels));
	n->taints = copy_array(spec->taints, spec->taints_count, sizeof(*n->taints));
	if (!n->name || !n->extended || !n->extended_total || !n->labels || !n->taints)
		return err_set(err, ENOMEM, "out of memory");
	qsort(n->labels, n->labels_count, sizeof(*n->labels), compare_labels);
	if (fill_gpus(c, spec, n, err) < 0)
		return -err->code;
	if (profile_of(c, n, &n->profile) < 0 ||
	    domain_path(c, spec->domains, spec->domains_count, &n->domain) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static void uuids_forget(struct cluster *c, const struct node *n)
{
	for (uint32_t i = 0; i < n->gpus_count; i++) {
		const char *uuid = cluster_string(c, n->gpus[i].uuid);

		map_del(&c->gpu_ids, uuid, strlen(uuid));
	}
}

static int uuids_learn(struct cluster *c, const struct node *n, uint32_t node)
{
	if (map_reserve(&c->gpu_ids, c->gpu_ids.len + n->gpus_count) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->gpus_count; i++) {
		const char *uuid = cluster_string(c, n->gpus[i].uuid);

		if (map_put_u32(&c->gpu_ids, uuid, strlen(uuid), node * GPU_MAX + i) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Every allocation that cluster_node_add() needs, so that entering cannot fail half way. */
static int node_reserve(struct cluster *c)
{
	if (vec_reserve(&c->nodes, c->nodes.len + 1) < 0 ||
	    vec_reserve(&c->by_name, c->by_name.len + 1) < 0 ||
	    vec_reserve(&c->free_nodes, c->nodes.len + 1) < 0 ||
	    map_reserve(&c->node_ids, c->node_ids.len + 1) < 0)
		return -ENOMEM;
	if (rules_node_reserve(c, (uint32_t)c->nodes.len, 0) < 0)
		return -ENOMEM;
	return bucket_reserve(c);
}

static uint32_t node_number(struct cluster *c)
{
	if (c->free_nodes.len)
		return c->free_nodes.items[--c->free_nodes.len];
	return (uint32_t)c->nodes.len++;
}

int cluster_node_add(struct cluster *c, const struct node_spec *spec, uint32_t *ret,
		     struct err *err)
{
	struct err local = ERR_INIT;
	struct err *e = err ? err : &local;
	struct node n;
	uint32_t node;

	e->code = 0;
	if (spec_check(spec, e) < 0 || spec_check_unique(c, spec, NODE_NONE, e) < 0)
		return -e->code;
	if (cluster_node_find(c, spec->name) != NODE_NONE)
		return err_set(e, EEXIST, "node %s is there twice", spec->name);
	if (cluster_nodes_count(c) >= NODES_MAX)
		return err_set(e, ENOSPC, "more than %u nodes", NODES_MAX);
	if (node_fill(c, spec, &n, e) < 0 || node_reserve(c) < 0 ||
	    slot_take(c, n.domain, node_model(&n), &n.slot) < 0) {
		node_clear(c, &n);
		return e->code ? -e->code : err_set(e, ENOMEM, "out of memory");
	}
	node = node_number(c);
	if (uuids_learn(c, &n, node) < 0 ||
	    map_put_u32(&c->node_ids, n.name, strlen(n.name), node) < 0) {
		uuids_forget(c, &n);
		slot_release(c, n.slot);
		node_clear(c, &n);
		c->nodes.items[node] = n;
		c->free_nodes.items[c->free_nodes.len++] = node;
		return err_set(e, ENOMEM, "out of memory");
	}
	c->nodes.items[node] = n;
	c->slot_node[n.slot] = node;
	rank_insert(c, node);
	node_close(c, node_at(c, node));
	rules_node_enter(c, node);
	*ret = node;
	return 0;
}

static uint8_t gpu_by_uuid(const struct node *n, uint32_t uuid)
{
	uint8_t gpu = 0;

	while (gpu < n->gpus_count && n->gpus[gpu].uuid != uuid)
		gpu++;
	return gpu;
}

/* A card that was in use and is not reported any more: its pods have not said goodbye, and
 * it may be back with the next report.  It stays behind the others, unhealthy. */
static int gpu_keep(struct node *n, const struct gpu *missing)
{
	struct gpu *gpus;

	if (n->gpus_count == GPU_MAX)
		return 0; /* no id left: its holds are given up */
	gpus = realloc(n->gpus, (n->gpus_count + 1u) * sizeof(*gpus));
	if (!gpus)
		return -ENOMEM;
	n->gpus = gpus;
	gpus[n->gpus_count++] = (struct gpu){
		.uuid = missing->uuid,
		.mem_mib = missing->mem_mib,
		.mem_free_mib = (int32_t)missing->mem_mib,
		.model = missing->model,
		.core_free_milli = CORE_WHOLE,
		.numa = missing->numa,
		.island = missing->island,
	};
	return 0;
}

/* What somebody is using does not change under him, whatever is said of it: a card stays in
 * or out of MIG mode, slices keep their geometry, and no card is gone. */
static int keep_in_use(struct cluster *c, const struct node *old, struct node *n)
{
	for (uint8_t i = 0; i < old->gpus_count; i++) {
		const struct gpu *g = &old->gpus[i];
		uint8_t gpu = gpu_by_uuid(n, g->uuid);

		if (!g->tenants)
			continue;
		if (gpu == n->gpus_count && gpu_keep(n, g) < 0)
			return -ENOMEM;
		if (gpu == n->gpus_count)
			continue;
		assert(n->gpus);
		if (!n->gpus[gpu].mig_mode != !g->mig_mode) {
			n->gpus[gpu].mig_mode = g->mig_mode;
			memcpy(n->gpus[gpu].mig_made, g->mig_made, sizeof(g->mig_made));
		}
		if (g->use == GPU_SLICED)
			n->mig = old->mig;
	}
	profile_release(c, n->profile);
	return profile_of(c, n, &n->profile);
}

/* Moves the placements from the old record to the new one, by UUID. */
static void holds_move(struct cluster *c, const struct node *old, struct node *n)
{
	n->first_pod = old->first_pod;
	for (uint32_t p = old->first_pod; p != POD_NONE; p = c->pods.items[p]->next) {
		struct pod *pod = c->pods.items[p];
		uint16_t kept = 0;

		for (uint16_t i = 0; i < pod->holds_count; i++) {
			struct hold h = pod->holds[i];

			h.gpu = gpu_by_uuid(n, old->gpus[h.gpu].uuid);
			if (h.gpu < n->gpus_count && hold_force(n, &h))
				pod->holds[kept++] = h;
		}
		pod->holds_count = kept;
		resources_take(&n->free, &pod->needs, 1);
		extended_take(n, pod->extended, pod->extended_count, 1);
	}
}

static uint32_t pods_on(const struct cluster *c, uint32_t node)
{
	uint32_t count = 0;

	for (uint32_t p = c->nodes.items[node].first_pod; p != POD_NONE;
	     p = c->pods.items[p]->next)
		count++;
	return count;
}

/* Whether rules about nodes see no difference. */
static bool same_to_rules(const struct node *a, const struct node *b)
{
	return a->labels_count == b->labels_count && a->taints_count == b->taints_count &&
	       memcmp(a->labels, b->labels, a->labels_count * sizeof(*a->labels)) == 0 &&
	       memcmp(a->taints, b->taints, a->taints_count * sizeof(*a->taints)) == 0;
}

static bool same_block(const struct node *a, const struct node *b)
{
	return a->domain == b->domain && node_model(a) == node_model(b);
}

int cluster_node_change(struct cluster *c, uint32_t node, const struct node_spec *spec,
			struct err *err)
{
	struct err local = ERR_INIT;
	struct err *e = err ? err : &local;
	struct node n, *old;
	uint32_t slot = c->nodes.items[node].slot;
	bool alike;

	e->code = 0;
	if (spec_check(spec, e) < 0 || spec_check_unique(c, spec, node, e) < 0)
		return -e->code;
	if (strcmp(spec->name, c->nodes.items[node].name))
		return err_set(e, EINVAL, "node %s cannot be renamed to %s",
			       c->nodes.items[node].name, spec->name);
	if (node_fill(c, spec, &n, e) < 0 || keep_in_use(c, &c->nodes.items[node], &n) < 0 ||
	    map_reserve(&c->gpu_ids, c->gpu_ids.len + n.gpus_count) < 0 ||
	    rules_node_reserve(c, node, pods_on(c, node)) < 0 ||
	    (!same_block(&n, &c->nodes.items[node]) &&
	     slot_take(c, n.domain, node_model(&n), &slot) < 0)) {
		node_clear(c, &n);
		return e->code ? -e->code : err_set(e, ENOMEM, "out of memory");
	}
	old = node_at(c, node);
	alike = same_to_rules(old, &n);
	if (!alike)
		rules_node_leave(c, node);
	node_open(c, old);
	holds_move(c, old, &n);
	uuids_forget(c, old);
	if (slot != old->slot) {
		slot_release(c, old->slot);
		log_slot(c, old->slot);
		domain_steps(c, old->domain);
	}
	map_del(&c->node_ids, old->name, strlen(old->name));
	n.slot = slot;
	n.rank = old->rank;
	node_clear(c, old);
	*old = n;
	if (uuids_learn(c, old, node) < 0 ||
	    map_put_u32(&c->node_ids, old->name, strlen(old->name), node) < 0)
		abort(); /* reserved */
	c->slot_node[slot] = node;
	c->slot_rank[slot] = n.rank;
	node_close(c, old);
	if (!alike)
		rules_node_enter(c, node);
	return 0;
}

void cluster_node_remove(struct cluster *c, uint32_t node)
{
	struct node *n = node_at(c, node);
	uint32_t domain = n->domain;

	while (n->first_pod != POD_NONE)
		cluster_pod_remove(c, n->first_pod);
	rules_node_leave(c, node);
	node_open(c, n);
	uuids_forget(c, n);
	rank_remove(c, n->name);
	map_del(&c->node_ids, n->name, strlen(n->name));
	slot_release(c, n->slot);
	log_slot(c, n->slot);
	node_clear(c, n);
	c->free_nodes.items[c->free_nodes.len++] = node;
	domain_steps(c, domain);
}

void cluster_gpu_health(struct cluster *c, uint32_t node, uint8_t gpu, bool healthy)
{
	struct node *n = node_at(c, node);

	if (gpu >= n->gpus_count || n->gpus[gpu].healthy == healthy)
		return;
	node_open(c, n);
	n->gpus[gpu].healthy = healthy;
	node_close(c, n);
}

void nodes_done(struct cluster *c)
{
	for (size_t i = 0; i < c->nodes.len; i++)
		node_clear(c, &c->nodes.items[i]);
	vec_done(&c->nodes);
	vec_done(&c->free_nodes);
	vec_done(&c->by_name);
	map_done(&c->node_ids);
	map_done(&c->gpu_ids);
}
