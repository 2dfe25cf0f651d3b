/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - classes, block winners and the tournament over them. */
#include "engine/index.h"
#include "base/attr.h"
#include "engine/cluster_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEADS 4096
#define NO_SLOT UINT32_MAX

/* The score of one bucket; valid while the generation is the bucket's. */
struct cell {
	int32_t value;
	uint32_t generation;
};

/* The best node of a block.  `value` has the domain's offset in it. */
struct best {
	int32_t local, value;
	uint32_t slot;
};

struct class {
	struct request request;
	uint64_t hash;
	struct class *next;              /* same head */
	struct class *newer, *older;
	uint64_t bytes;
	uint64_t cursor;                 /* change log is read up to here */
	uint32_t epoch, prices_epoch;
	uint32_t blocks;                 /* in `best` and the tournament */
	uint32_t leaves;                 /* of the tournament: a power of two >= blocks */
	uint32_t cells_room, blocks_room;
	bool by_identity;                /* names, labels or domains matter */
	bool passed_over;                /* nodes that cannot fit were not asked why */
	uint32_t least_idle;             /* what a node must have at least, see cannot_fit() */
	uint16_t least_core_milli;
	struct cell *cells;              /* by bucket */
	struct best *best;               /* by block */
	uint32_t *tree;                  /* [1] is the winner of all; block numbers */
	uint8_t *identity;               /* by slot: verdict of fit_identity(); or NULL */
};

struct index {
	const struct scorer *scorer;
	const struct cluster *cluster;
	uint64_t max_bytes, bytes;
	struct class *heads[HEADS];
	struct class *newest, *oldest;
	uint64_t seed;
	struct index_stats stats;
};

static int32_t refusal(enum verdict v)
{
	return (int32_t)v - VERDICT_COUNT;
}

struct index *index_new(const struct scorer *s, uint64_t max_bytes)
{
	struct index *ix = calloc(1, sizeof(*ix));

	if (!ix)
		return NULL;
	ix->scorer = s;
	ix->cluster = s->cluster;
	ix->max_bytes = max_bytes;
	ix->seed = s->cluster->config.seed;
	return ix;
}

static void class_free(struct class *k)
{
	free(k->cells);
	free(k->best);
	free(k->tree);
	free(k->identity);
	free(k);
}

void index_free(struct index *ix)
{
	if (!ix)
		return;
	while (ix->newest) {
		struct class *k = ix->newest;

		ix->newest = k->older;
		class_free(k);
	}
	free(ix);
}

static void lru_unlink(struct index *ix, struct class *k)
{
	*(k->newer ? &k->newer->older : &ix->newest) = k->older;
	*(k->older ? &k->older->newer : &ix->oldest) = k->newer;
}

static void lru_push(struct index *ix, struct class *k)
{
	k->newer = NULL;
	k->older = ix->newest;
	*(k->older ? &k->older->newer : &ix->oldest) = k;
	ix->newest = k;
}

static void class_evict(struct index *ix, struct class *k)
{
	struct class **at = &ix->heads[k->hash % HEADS];

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	lru_unlink(ix, k);
	ix->bytes -= k->bytes;
	ix->stats.classes--;
	ix->stats.evictions++;
	class_free(k);
}

/* Counts a class's memory and lets old classes go until it fits. */
static void class_account(struct index *ix, struct class *k)
{
	ix->bytes -= k->bytes;
	k->bytes = sizeof(*k) + k->cells_room * sizeof(*k->cells) +
		   k->blocks_room * (sizeof(*k->best) + sizeof(*k->tree)) +
		   (k->by_identity ? (uint64_t)k->blocks_room * BLOCK_NODES : 0);
	ix->bytes += k->bytes;
	while (ix->bytes > ix->max_bytes && ix->oldest != k)
		class_evict(ix, ix->oldest);
}

static void class_least(struct class *k)
{
	for (uint8_t i = 0; i < k->request.asks_count; i++) {
		const struct ask *a = &k->request.asks[i];

		if (a->kind == ASK_WHOLE)
			k->least_idle += a->count;
		else if (a->kind == ASK_SHARE)
			k->least_core_milli = MAX(k->least_core_milli, a->core_milli);
	}
}

/* A quick no for most of the nodes that change: they are full. */
static bool cannot_fit(const struct class *k, const struct change *change)
{
	return change->idle_gpus < k->least_idle ||
	       change->top_core_milli < k->least_core_milli ||
	       (change->cpu_milli < UINT32_MAX && change->cpu_milli < k->request.needs.cpu_milli);
}

static struct class *class_find(struct index *ix, const struct request *r)
{
	uint64_t hash = request_hash(r, ix->seed);
	struct class **head = &ix->heads[hash % HEADS], *k = *head;

	while (k && (k->hash != hash || !request_equal(&k->request, r)))
		k = k->next;
	if (k) {
		lru_unlink(ix, k);
		lru_push(ix, k);
		return k;
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->request = *r;
	k->hash = hash;
	k->by_identity = r->selector_count || r->domain != DOMAIN_NONE;
	class_least(k);
	k->epoch = ix->scorer->epoch - 1;
	k->next = *head;
	*head = k;
	lru_push(ix, k);
	ix->stats.classes++;
	return k;
}

/* Room for as many buckets and blocks as the cluster has room for. */
static int class_grow(struct index *ix, struct class *k)
{
	const struct cluster *c = ix->cluster;
	uint32_t cells_room = (uint32_t)c->buckets.cap;
	uint32_t blocks = (uint32_t)c->block_domain.len, room = k->blocks_room;

	if (cells_room > k->cells_room) {
		struct cell *cells = realloc(k->cells, cells_room * sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		memset(cells + k->cells_room, 0, (cells_room - k->cells_room) * sizeof(*cells));
		k->cells = cells;
		k->cells_room = cells_room;
	}
	if (blocks > room || !k->tree) {
		struct best *best;
		uint32_t *tree;

		for (room = room ? room : 2; room < blocks;)
			room *= 2;
		best = realloc(k->best, room * sizeof(*best));
		k->best = best ? best : k->best;
		tree = realloc(k->tree, room * sizeof(*tree));
		k->tree = tree ? tree : k->tree;
		if (!best || !tree)
			return -ENOMEM;
		if (k->by_identity) {
			uint8_t *identity = realloc(k->identity, (size_t)room * BLOCK_NODES);

			if (!identity)
				return -ENOMEM;
			k->identity = identity;
		}
		k->blocks_room = room;
	}
	class_account(ix, k);
	return 0;
}

static int32_t evaluate(const struct scorer *s, const struct request *r, const struct node *n)
{
	struct assignment a;
	enum verdict v = assign_state(s->cluster, s, r, n, &a);

	return v == FITS ? score_local(s, r, n, &a, NULL) : refusal(v);
}

/* The node's value without its domain's offset. */
static int32_t slot_value(struct index *ix, struct class *k, uint32_t slot)
{
	const struct cluster *c = ix->cluster;
	uint32_t bucket = c->slot_bucket[slot];
	struct cell *cell = &k->cells[bucket];

	if (k->identity && k->identity[slot] != FITS)
		return refusal((enum verdict)k->identity[slot]);
	if (bucket == BUCKET_EMPTY)
		return refusal(NODE_GONE);
	if (cell->generation != c->buckets.items[bucket].generation) {
		ix->stats.evaluations++;
		cell->value = evaluate(ix->scorer, &k->request,
				       &c->nodes.items[c->slot_node[slot]]);
		cell->generation = c->buckets.items[bucket].generation;
	}
	return cell->value;
}

static void slot_identify(struct index *ix, struct class *k, uint32_t slot)
{
	uint32_t node = ix->cluster->slot_node[slot];

	if (k->identity)
		k->identity[slot] = (uint8_t)(node == NODE_NONE ? NODE_GONE :
					      fit_identity(ix->cluster, &k->request, node));
}

/* A refusal stays one, however good the domain. */
static void block_offset(struct index *ix, struct class *k, uint32_t block)
{
	struct best *b = &k->best[block];

	b->value = b->local;
	if (b->local >= 0)
		b->value += score_offset(ix->scorer, &k->request,
					 ix->cluster->block_domain.items[block],
					 ix->cluster->block_model.items[block], NULL);
}

static bool slot_better(const struct cluster *c, int32_t value, uint32_t slot,
			const struct best *than)
{
	if (than->slot == NO_SLOT || value != than->local)
		return than->slot == NO_SLOT || value > than->local;
	return c->slot_rank[slot] < c->slot_rank[than->slot];
}

static void block_scan(struct index *ix, struct class *k, uint32_t block)
{
	struct best *b = &k->best[block];

	b->slot = NO_SLOT;
	b->local = refusal(NODE_GONE);
	gpuset_each(i, ix->cluster->block_used.items[block]) {
		uint32_t slot = block * BLOCK_NODES + i;
		int32_t value = slot_value(ix, k, slot);

		if (slot_better(ix->cluster, value, slot, b)) {
			b->slot = slot;
			b->local = value;
		}
	}
	block_offset(ix, k, block);
}

/* Whether block a beats block b; one past the last never does. */
static bool block_better(const struct cluster *c, const struct class *k, uint32_t a, uint32_t b)
{
	const struct best *x = &k->best[a], *y = &k->best[b];

	if (b >= k->blocks || a >= k->blocks)
		return a < k->blocks;
	if (x->value != y->value || x->slot == NO_SLOT || y->slot == NO_SLOT)
		return x->value > y->value || (x->value == y->value && y->slot == NO_SLOT);
	return c->slot_rank[x->slot] < c->slot_rank[y->slot];
}

static void tree_play(const struct cluster *c, struct class *k, uint32_t at)
{
	uint32_t a = 2 * at, b = a + 1;

	a = a < k->leaves ? k->tree[a] : a - k->leaves;
	b = b < k->leaves ? k->tree[b] : b - k->leaves;
	k->tree[at] = block_better(c, k, b, a) ? b : a;
}

/* After a block has changed.  Where it neither was nor is the winner, nothing above can
 * have changed either. */
static void tree_raise(const struct cluster *c, struct class *k, uint32_t block)
{
	for (uint32_t at = (block + k->leaves) / 2; at; at /= 2) {
		uint32_t before = k->tree[at];

		tree_play(c, k, at);
		if (before != block && k->tree[at] != block)
			return;
	}
}

/* Brings the whole class up to date.  Scores of buckets that it knows are kept, unless
 * the epoch is another. */
static void class_rebuild(struct index *ix, struct class *k)
{
	const struct cluster *c = ix->cluster;

	ix->stats.rebuilds++;
	k->passed_over = false;
	if (k->epoch != ix->scorer->epoch)
		memset(k->cells, 0, k->cells_room * sizeof(*k->cells));
	k->epoch = ix->scorer->epoch;
	k->blocks = (uint32_t)c->block_domain.len;
	for (k->leaves = 2; k->leaves < k->blocks;)
		k->leaves *= 2;
	for (uint32_t block = 0; block < k->blocks; block++) {
		for (uint32_t i = 0; k->identity && i < BLOCK_NODES; i++)
			slot_identify(ix, k, block * BLOCK_NODES + i);
		block_scan(ix, k, block);
	}
	for (uint32_t at = k->leaves - 1; at; at--)
		tree_play(c, k, at);
	k->prices_epoch = ix->scorer->prices_epoch;
	k->cursor = c->log_head;
}

/* New offsets for all blocks; the nodes that win in them stay the same. */
static void class_reprice(struct index *ix, struct class *k)
{
	for (uint32_t block = 0; block < k->blocks; block++)
		block_offset(ix, k, block);
	for (uint32_t at = k->leaves - 1; at; at--)
		tree_play(ix->cluster, k, at);
	k->prices_epoch = ix->scorer->prices_epoch;
}

/* One node has changed: its block's winner, if that is affected. */
static bool slot_update(struct index *ix, struct class *k, const struct change *change)
{
	uint32_t slot = change->at, block = slot / BLOCK_NODES;
	struct best *b = &k->best[block];
	int32_t value;

	slot_identify(ix, k, slot);
	if (change->bucket == BUCKET_EMPTY || b->slot == slot) {
		block_scan(ix, k, block);
		return true;
	}
	if (cannot_fit(k, change)) {
		k->passed_over = true;
		return false;
	}
	value = slot_value(ix, k, slot);
	if (!slot_better(ix->cluster, value, slot, b))
		return false;
	b->slot = slot;
	b->local = value;
	block_offset(ix, k, block);
	return true;
}

static void class_replay(struct index *ix, struct class *k)
{
	const struct cluster *c = ix->cluster;

	for (; k->cursor != c->log_head; k->cursor++) {
		const struct change *change = &c->log[k->cursor % LOG_SIZE];
		uint32_t block = change->at;

		if (change->kind == CHANGE_BLOCK)
			block_offset(ix, k, block);
		else if (change->kind == CHANGE_SLOT && slot_update(ix, k, change))
			block /= BLOCK_NODES;
		else
			continue;
		tree_raise(c, k, block);
	}
}

static int class_sync(struct index *ix, struct class *k)
{
	const struct cluster *c = ix->cluster;
	bool fresh = k->tree && k->epoch == ix->scorer->epoch &&
		     k->blocks == c->block_domain.len && c->log_head - k->cursor <= LOG_SIZE;

	if ((!fresh || k->cells_room < c->buckets.len) && class_grow(ix, k) < 0)
		return -ENOMEM;
	if (!fresh) {
		class_rebuild(ix, k);
		return 0;
	}
	class_replay(ix, k);
	if (k->prices_epoch != ix->scorer->prices_epoch)
		class_reprice(ix, k);
	return 0;
}

int index_best(struct index *ix, const struct request *r, uint32_t *node, int32_t *score,
	       enum verdict *miss)
{
	struct class *k = class_find(ix, r);
	const struct best *b;

	*node = NODE_NONE;
	*miss = NODE_GONE;
	if (!k)
		return -ENOMEM;
	if (class_sync(ix, k) < 0) {
		class_evict(ix, k);
		return -ENOMEM;
	}
	if (!k->blocks)
		return 0;
	if (k->best[k->tree[1]].local < 0 && k->passed_over)
		class_rebuild(ix, k);    /* nothing fits: the nearest miss is asked for */
	b = &k->best[k->tree[1]];
	if (b->local >= 0) {
		*node = ix->cluster->slot_node[b->slot];
		*score = b->value;
	} else {
		*miss = (enum verdict)(b->local + VERDICT_COUNT);
	}
	return 0;
}

int32_t index_value(const struct scorer *s, const struct request *r, uint32_t node)
{
	const struct node *n = cluster_node(s->cluster, node);
	enum verdict v = fit_identity(s->cluster, r, node);
	int32_t local = v == FITS ? evaluate(s, r, n) : refusal(v);

	return local < 0 ? local : local + score_offset(s, r, n->domain, node_model(n), NULL);
}

void index_stats(const struct index *ix, struct index_stats *ret)
{
	*ret = ix->stats;
	ret->bytes = ix->bytes;
}
