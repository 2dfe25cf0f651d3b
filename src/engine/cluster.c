/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - the cluster's life, its change log and the order of its nodes. */
#include "base/attr.h"
#include "engine/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CORDON_KEY "node.kubernetes.io/unschedulable"

/* What is kept of a node beside its records, so that nobody computes it per request. */
static void node_summarise(struct node *n)
{
	n->idle = 0;
	n->free_milli = 0;
	n->total_milli = 0;
	n->top_core_milli = 0;
	for (uint32_t i = 0; i < n->gpus_count; i++) {
		const struct gpu *g = &n->gpus[i];

		if (!g->healthy)
			continue;
		n->total_milli += CORE_WHOLE;
		n->free_milli += (uint32_t)MAX(g->core_free_milli, 0);
		if (g->mig_mode)
			continue;
		if (g->use == GPU_IDLE)
			n->idle |= gpuset_one(i);
		if (g->core_free_milli > n->top_core_milli)
			n->top_core_milli = (uint16_t)g->core_free_milli;
	}
	n->idle_gpus = (uint8_t)gpuset_count(n->idle);
}

void node_open(struct cluster *c, struct node *n)
{
	domain_account(c, n, -1);
	bucket_leave(c, n);
}

void node_close(struct cluster *c, struct node *n)
{
	node_summarise(n);
	domain_account(c, n, 1);
	bucket_enter(c, n);
	c->slot_bucket[n->slot] = n->bucket;
	c->slot_state[n->slot] = n->state;
	log_slot(c, n->slot);
	domain_steps(c, n->domain);
}

static struct change *log_next(struct cluster *c)
{
	return &c->log[c->log_head++ % LOG_SIZE];
}

void log_slot(struct cluster *c, uint32_t slot)
{
	struct change *last = &c->log[c->slot_change[slot] % LOG_SIZE];
	struct change change = { .at = slot, .bucket = c->slot_bucket[slot], .kind = CHANGE_SLOT };

	if (c->slot_node[slot] != NODE_NONE) {
		const struct node *n = node_at(c, c->slot_node[slot]);

		change.cpu_milli = (uint32_t)MIN(MAX(n->free.cpu_milli, 0), UINT32_MAX);
		change.top_core_milli = n->top_core_milli;
		change.idle_gpus = n->idle_gpus;
	}
	if (last->kind == CHANGE_SLOT && last->at == slot)
		last->kind = CHANGE_VOID;
	c->slot_change[slot] = (uint32_t)c->log_head;
	*log_next(c) = change;
}

void log_block(struct cluster *c, uint32_t block)
{
	*log_next(c) = (struct change){ .at = block, .kind = CHANGE_BLOCK };
}

void cluster_set_seats(struct cluster *c, uint16_t seats)
{
	c->config.seats = seats ? seats : SEATS_DEFAULT;
}

struct cluster *cluster_new(const struct cluster_config *config)
{
	struct cluster *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->config = *config;
	cluster_set_seats(c, config->seats);
	rng_seed(&c->shuffle, config->shuffle);
	map_init(&c->string_ids, config->seed);
	map_init(&c->profile_ids, config->seed);
	map_init(&c->node_ids, config->seed);
	map_init(&c->gpu_ids, config->seed);
	map_init(&c->domain_ids, config->seed);
	map_init(&c->pod_ids, config->seed);
	map_init(&c->gang_pods, config->seed);
	c->log = calloc(LOG_SIZE, sizeof(*c->log));
	if (!c->log || domains_init(c) < 0 || buckets_init(c) < 0 || rules_init(c) < 0 ||
	    cluster_intern(c, "") == UINT32_MAX ||
	    (c->cordon_key = cluster_intern(c, CORDON_KEY)) == UINT32_MAX) {
		cluster_free(c);
		return NULL;
	}
	return c;
}

void cluster_free(struct cluster *c)
{
	if (!c)
		return;
	pods_done(c);
	rules_done(c);
	nodes_done(c);
	buckets_done(c);
	domains_done(c);
	names_done(c);
	pool_done(&c->pool);
	free(c->log);
	free(c);
}

/* Where a node of that name stands, or would, in the order of names. */
static size_t name_position(const struct cluster *c, const char *name)
{
	size_t low = 0, high = c->by_name.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(c->nodes.items[c->by_name.items[middle]].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#define RANK_GAP (UINT64_C(1) << 32)

/* New ranks for all, evenly apart, in the same order. */
static void rank_all(struct cluster *c)
{
	c->ranks_epoch++;
	for (size_t i = 0; i < c->by_name.len; i++) {
		struct node *n = node_at(c, c->by_name.items[i]);

		n->rank = (i + 1) * RANK_GAP;
		c->slot_rank[n->slot] = n->rank;
	}
}

void rank_insert(struct cluster *c, uint32_t node)
{
	struct node *n = node_at(c, node);
	size_t at = name_position(c, n->name);
	uint32_t *order = c->by_name.items;
	uint64_t before, after;

	assert(c->by_name.len < c->by_name.cap);
	before = at ? node_at(c, order[at - 1])->rank : 0;
	after = at < c->by_name.len ? node_at(c, order[at])->rank : before + 2 * RANK_GAP;
	memmove(order + at + 1, order + at, (c->by_name.len - at) * sizeof(*order));
	order[at] = node;
	c->by_name.len++;
	if (c->config.shuffle)
		n->rank = rng_next(&c->shuffle);
	else if (after - before > 1)
		n->rank = before + (after - before) / 2;
	else
		rank_all(c);
	c->slot_rank[n->slot] = n->rank;
}

void rank_remove(struct cluster *c, const char *name)
{
	size_t at = name_position(c, name);

	c->by_name.len--;
	memmove(c->by_name.items + at, c->by_name.items + at + 1,
		(c->by_name.len - at) * sizeof(*c->by_name.items));
}

uint32_t cluster_node_find(const struct cluster *c, const char *name)
{
	uint32_t node;

	return map_get_u32(&c->node_ids, name, strlen(name), &node) ? node : NODE_NONE;
}

bool cluster_gpu_find(const struct cluster *c, const char *uuid, uint32_t *node, uint8_t *gpu)
{
	uint32_t at;

	if (!map_get_u32(&c->gpu_ids, uuid, strlen(uuid), &at))
		return false;
	*node = at / GPU_MAX;
	*gpu = (uint8_t)(at % GPU_MAX);
	return true;
}

uint32_t cluster_nodes_end(const struct cluster *c)
{
	return (uint32_t)c->nodes.len;
}

uint32_t cluster_nodes_count(const struct cluster *c)
{
	return (uint32_t)c->by_name.len;
}

const struct node *cluster_node(const struct cluster *c, uint32_t node)
{
	return &c->nodes.items[node];
}

uint64_t cluster_memory(const struct cluster *c)
{
	uint64_t bytes = sizeof(*c) + LOG_SIZE * sizeof(*c->log) + c->pool.bytes;

	bytes += c->nodes.cap * sizeof(struct node) + c->by_name.cap * sizeof(uint32_t);
	bytes += c->domains.cap * sizeof(struct domain);
	bytes += c->slots_room * (4 * sizeof(uint32_t) + sizeof(uint64_t));
	bytes += c->buckets.cap * sizeof(struct bucket) + c->pods.cap * sizeof(struct pod *);
	bytes += 24ull * (c->string_ids.cap + c->node_ids.cap + c->gpu_ids.cap +
			  c->domain_ids.cap + c->pod_ids.cap + c->gang_pods.cap);
	bytes += c->bucket_table_size * sizeof(*c->bucket_table);
	bytes += c->strings.cap * sizeof(char *);
	for (size_t i = 0; i < c->strings.len; i++)
		bytes += strlen(c->strings.items[i]) + 16;
	return bytes;
}
