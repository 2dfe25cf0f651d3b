/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.c - states of nodes, interned: like nodes are scored once. */
#include "base/hash.h"
#include "engine/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What of a GPU changes with placements.  No padding: it is compared as bytes. */
struct gpu_state {
	int32_t mem_free_mib;
	uint32_t group;
	int16_t core_free_milli;
	uint16_t tenants;
	uint8_t use;
	uint8_t healthy;
	uint8_t mig_used, mig_compute, mig_media;
	uint8_t unused[3];
};

struct gpu_kind {
	uint32_t mem_mib;
	uint16_t model;
	uint8_t numa, island, mig_mode;
	uint8_t mig_made[MIG_SLICES_MAX];
	uint8_t unused[3];
};

struct node_kind {
	const struct links *links;
	const struct mig_geometry *mig;
	struct resources allocatable;
	uint64_t hcas;
	uint32_t network_gbps;
	uint16_t performance_milli;
	uint16_t rdma_ports;
	uint16_t gpus_count;
	uint16_t extended_count, taints_count;
	uint8_t cufile;
	uint8_t unschedulable, gpus_closed;
};

#define EXTENDED_KEY_MAX 64
#define STATE_MAX                                                                           \
	(sizeof(uint64_t) + sizeof(struct resources) + EXTENDED_KEY_MAX * sizeof(int64_t) + \
	 GPU_MAX * sizeof(struct gpu_state))

static char *put(char *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

static size_t kind_bytes(const struct node *n, char *buf)
{
	struct node_kind kind;
	char *at = buf;

	memset(&kind, 0, sizeof(kind));
	kind.links = n->links;
	kind.mig = n->mig;
	kind.allocatable = n->allocatable;
	kind.hcas = n->hcas;
	kind.network_gbps = n->network_gbps;
	kind.rdma_ports = n->rdma_ports;
	kind.performance_milli = n->performance_milli;
	kind.gpus_count = n->gpus_count;
	kind.extended_count = n->extended_count;
	kind.taints_count = n->taints_count;
	kind.cufile = n->cufile;
	kind.unschedulable = n->unschedulable;
	kind.gpus_closed = n->gpus_closed;
	at = put(at, &kind, sizeof(kind));
	for (uint32_t i = 0; i < n->gpus_count; i++) {
		struct gpu_kind gpu = {
			.mem_mib = n->gpus[i].mem_mib,
			.model = n->gpus[i].model,
			.numa = n->gpus[i].numa,
			.island = n->gpus[i].island,
			.mig_mode = n->gpus[i].mig_mode,
		};
		memcpy(gpu.mig_made, n->gpus[i].mig_made, sizeof(gpu.mig_made));
		at = put(at, &gpu, sizeof(gpu));
	}
	if (n->extended_count)
		at = put(at, n->extended_total, n->extended_count * sizeof(*n->extended_total));
	if (n->taints_count)
		at = put(at, n->taints, n->taints_count * sizeof(*n->taints));
	return (size_t)(at - buf);
}

static uint32_t profile_number(struct cluster *c)
{
	uint32_t number = c->free_profile;

	if (!number)
		return (uint32_t)c->profiles.len++;
	c->free_profile = c->profiles.items[number].next_free;
	return number;
}

int profile_of(struct cluster *c, const struct node *n, uint32_t *ret)
{
	size_t size = sizeof(struct node_kind) + n->gpus_count * sizeof(struct gpu_kind) +
		      n->extended_count * sizeof(struct extended) +
		      n->taints_count * sizeof(struct taint);
	char *bytes = malloc(size);
	size_t len;

	*ret = PROFILE_NONE;
	if (!bytes)
		return -ENOMEM;
	len = kind_bytes(n, bytes);
	if (map_get_u32(&c->profile_ids, bytes, len, ret)) {
		c->profiles.items[*ret].nodes++;
		free(bytes);
		return 0;
	}
	*ret = PROFILE_NONE;
	if (vec_reserve(&c->profiles, c->profiles.len + 1) < 0 ||
	    map_reserve(&c->profile_ids, c->profile_ids.len + 1) < 0) {
		free(bytes);
		return -ENOMEM;
	}
	*ret = profile_number(c);
	c->profiles.items[*ret] = (struct profile){ .bytes = bytes, .len = len, .nodes = 1 };
	if (map_put_u32(&c->profile_ids, bytes, len, *ret) < 0)
		abort(); /* reserved */
	return 0;
}

void profile_release(struct cluster *c, uint32_t profile)
{
	struct profile *p = &c->profiles.items[profile];

	if (profile == PROFILE_NONE || --p->nodes)
		return;
	map_del(&c->profile_ids, p->bytes, p->len);
	free(p->bytes);
	*p = (struct profile){ .next_free = c->free_profile };
	c->free_profile = profile;
}

static size_t state_bytes(const struct node *n, char *buf)
{
	uint64_t profile = n->profile;
	char *at = put(buf, &profile, sizeof(profile));

	at = put(at, &n->free, sizeof(n->free));
	for (uint32_t i = 0; i < n->extended_count; i++)
		at = put(at, &n->extended[i].amount, sizeof(n->extended[i].amount));
	for (uint32_t i = 0; i < n->gpus_count; i++) {
		const struct gpu *g = &n->gpus[i];
		struct gpu_state state = {
			.mem_free_mib = g->mem_free_mib,
			.group = g->group,
			.core_free_milli = g->core_free_milli,
			.tenants = g->tenants,
			.use = g->use,
			.healthy = g->healthy,
			.mig_used = g->mig.used,
			.mig_compute = g->mig.compute,
			.mig_media = g->mig.media,
		};
		at = put(at, &state, sizeof(state));
	}
	return (size_t)(at - buf);
}

int buckets_init(struct cluster *c)
{
	c->key = malloc(STATE_MAX);
	if (!c->key)
		return -ENOMEM;
	if (vec_push(&c->profiles, (struct profile){ 0 }) < 0)
		return -ENOMEM;
	return vec_push(&c->buckets, (struct bucket){ .nodes = 1 });
}

void buckets_done(struct cluster *c)
{
	for (size_t i = 0; i < c->buckets.len; i++)
		if (c->buckets.items[i].nodes)
			pool_free(&c->pool, c->buckets.items[i].key, c->buckets.items[i].key_len);
	for (size_t i = 0; i < c->profiles.len; i++)
		free(c->profiles.items[i].bytes);
	vec_done(&c->profiles);
	map_done(&c->profile_ids);
	vec_done(&c->buckets);
	free(c->bucket_table);
	free(c->key);
}

/* The place in the table where the probing for a hash begins. */
static uint32_t table_start(const struct cluster *c, uint64_t hash)
{
	return (uint32_t)hash & (c->bucket_table_size - 1);
}

static uint32_t table_next(const struct cluster *c, uint32_t at)
{
	return (at + 1) & (c->bucket_table_size - 1);
}

static void table_insert(struct cluster *c, uint32_t number)
{
	uint32_t at = table_start(c, c->buckets.items[number].hash);

	while (c->bucket_table[at])
		at = table_next(c, at);
	c->bucket_table[at] = number;
}

/* There are never more buckets than nodes, so room for one per node is enough for ever.
 * A table of numbers alone stays small enough to be near the processor; keys and hashes
 * are looked at only where the number is. */
int bucket_reserve(struct cluster *c)
{
	uint32_t need = (uint32_t)c->nodes.len + 2, size = c->bucket_table_size;
	uint32_t *table;

	if (vec_reserve(&c->buckets, need) < 0)
		return -ENOMEM;
	if (need * 2 <= size)
		return 0;
	for (size = size ? size : 64; size < need * 2;)
		size *= 2;
	table = calloc(size, sizeof(*table));
	if (!table)
		return -ENOMEM;
	free(c->bucket_table);
	c->bucket_table = table;
	c->bucket_table_size = size;
	for (uint32_t i = 1; i < c->buckets.len; i++)
		if (c->buckets.items[i].nodes)
			table_insert(c, i);
	return 0;
}

/* The bucket with the key in c->key, or BUCKET_EMPTY. */
static uint32_t table_find(const struct cluster *c, size_t len, uint64_t hash)
{
	for (uint32_t at = table_start(c, hash); c->bucket_table[at]; at = table_next(c, at)) {
		const struct bucket *b = &c->buckets.items[c->bucket_table[at]];

		if (b->hash == hash && b->key_len == len && !memcmp(b->key, c->key, len))
			return c->bucket_table[at];
	}
	return BUCKET_EMPTY;
}

/* Takes the bucket out and moves those behind it up, so that no probing meets a gap. */
static void table_delete(struct cluster *c, uint32_t number)
{
	uint32_t mask = c->bucket_table_size - 1;
	uint32_t gap = table_start(c, c->buckets.items[number].hash), at;

	while (c->bucket_table[gap] != number)
		gap = table_next(c, gap);
	for (at = table_next(c, gap); c->bucket_table[at]; at = table_next(c, at)) {
		uint32_t start = table_start(c, c->buckets.items[c->bucket_table[at]].hash);

		if (((at - start) & mask) < ((at - gap) & mask))
			continue;
		c->bucket_table[gap] = c->bucket_table[at];
		gap = at;
	}
	c->bucket_table[gap] = 0;
}

static uint32_t bucket_number(struct cluster *c)
{
	uint32_t number = c->free_bucket;

	if (number) {
		c->free_bucket = c->buckets.items[number].next_free;
		return number;
	}
	assert(c->buckets.len < c->buckets.cap);
	return (uint32_t)c->buckets.len++;
}

static void bucket_join(struct cluster *c, struct node *n, uint32_t number)
{
	n->bucket = number;
	n->state = c->buckets.items[number].state;
}

/* Out of memory leaves the node in the empty bucket: it is not offered to anybody until
 * its next change, which is safe. */
void bucket_enter(struct cluster *c, struct node *n)
{
	size_t len = state_bytes(n, c->key);
	uint64_t hash = hash_bytes(c->key, len, c->config.seed);
	uint32_t number = table_find(c, len, hash);
	char *key;

	if (number != BUCKET_EMPTY) {
		c->buckets.items[number].nodes++;
		bucket_join(c, n, number);
		return;
	}
	key = pool_alloc(&c->pool, len);
	if (!key) {
		bucket_join(c, n, BUCKET_EMPTY);
		return;
	}
	memcpy(key, c->key, len);
	number = bucket_number(c);
	c->buckets.items[number] = (struct bucket){
		.key = key,
		.hash = hash,
		.key_len = (uint32_t)len,
		.nodes = 1,
		.state = ++c->last_state,
	};
	table_insert(c, number);
	bucket_join(c, n, number);
}

void bucket_leave(struct cluster *c, struct node *n)
{
	struct bucket *b = &c->buckets.items[n->bucket];

	if (n->bucket == BUCKET_EMPTY || --b->nodes)
		return;
	table_delete(c, n->bucket);
	pool_free(&c->pool, b->key, b->key_len);
	b->key = NULL;
	b->next_free = c->free_bucket;
	c->free_bucket = n->bucket;
}
