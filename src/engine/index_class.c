/* SPDX-License-Identifier: Apache-2.0 */
/* index_class.c - one class of requests: a value per node, the winner of each block, and the
 * tournament over the blocks. */
#include "base/attr.h"
#include "engine/index_private.h"

#include <string.h>

void class_least(struct request_class *k)
{
	for (uint8_t i = 0; i < k->request.asks_count; i++) {
		const struct ask *a = &k->request.asks[i];

		if (a->kind == ASK_WHOLE)
			k->least_idle += a->count;
		else if (a->kind == ASK_SHARE)
			k->least_core_milli = MAX(k->least_core_milli, a->core_milli);
	}
}

/* A quick no for most nodes of a cluster that is in use: they are full. */
static bool too_full(const struct request_class *k, uint32_t idle_gpus, uint32_t top_core_milli,
		     int64_t cpu_milli)
{
	return idle_gpus < k->least_idle || top_core_milli < k->least_core_milli ||
	       (k->request.needs.cpu_milli > 0 && cpu_milli < k->request.needs.cpu_milli);
}

static bool cannot_fit(const struct request_class *k, const struct change *change)
{
	return too_full(k, change->idle_gpus, change->top_core_milli,
			change->cpu_milli < UINT32_MAX ? change->cpu_milli : INT64_MAX);
}

int32_t class_evaluate(const struct scorer *s, const struct request *r, const struct node *n)
{
	struct assignment a;
	enum verdict v = assign_state(s->cluster, s, r, n, &a);

	return v == FITS ? score_local(s, r, n, &a, NULL) : refusal(v);
}

/* The score of the node's state: computed, unless a node in the same state came before. */
static int32_t state_value(struct index *ix, struct request_class *k, const struct node *n)
{
	struct memo *memo = &ix->memos[n->state % MEMOS];

	if (memo->visit == ix->visit && memo->state == n->state && n->state)
		return memo->value;
	ix->stats.evaluations++;
	*memo = (struct memo){
		.visit = ix->visit,
		.state = n->state,
		.value = class_evaluate(ix->scorer, &k->request, n),
	};
	return memo->value;
}

/* Finds the node's value anew. */
static void slot_evaluate(struct index *ix, struct request_class *k, uint32_t slot)
{
	const struct cluster *c = ix->cluster;

	if (k->identity && k->identity[slot] != FITS)
		k->values[slot] = refusal((enum verdict)k->identity[slot]);
	else if (c->slot_bucket[slot] == BUCKET_EMPTY)
		k->values[slot] = refusal(NODE_GONE);
	else
		k->values[slot] = state_value(ix, k, &c->nodes.items[c->slot_node[slot]]);
}

static void slot_identify(struct index *ix, struct request_class *k, uint32_t slot)
{
	uint32_t node = ix->cluster->slot_node[slot];

	if (k->identity)
		k->identity[slot] = (uint8_t)(node == NODE_NONE ? NODE_GONE
								: fit_identity(ix->cluster,
									       &k->request, node));
}

/* A refusal stays one, however good the domain. */
static void block_offset(struct index *ix, struct request_class *k, uint32_t block)
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
	return c->slot_rank[slot] < than->rank;
}

static void block_win(const struct cluster *c, const struct request_class *k, struct best *b,
		      uint32_t slot)
{
	b->slot = slot;
	b->local = k->values[slot];
	b->rank = c->slot_rank[slot];
}

static void block_scan(struct index *ix, struct request_class *k, uint32_t block)
{
	struct best *b = &k->best[block];

	*b = (struct best){ .slot = NO_SLOT, .local = refusal(NODE_GONE), .rank = UINT64_MAX };
	gpuset_each(i, ix->cluster->block_used.items[block] & ~k->full[block]) {
		uint32_t slot = block * BLOCK_NODES + i;

		if (slot_better(ix->cluster, k->values[slot], slot, b))
			block_win(ix->cluster, k, b, slot);
	}
	block_offset(ix, k, block);
}

/* Whether block a beats block b; one past the last never does. */
static bool block_better(const struct request_class *k, uint32_t a, uint32_t b)
{
	const struct best *x = &k->best[a], *y = &k->best[b];

	if (b >= k->blocks || a >= k->blocks)
		return a < k->blocks;
	return x->value > y->value || (x->value == y->value && x->rank < y->rank);
}

static void tree_play(struct request_class *k, uint32_t at)
{
	uint32_t a = 2 * at, b = a + 1;

	a = a < k->leaves ? k->tree[a] : a - k->leaves;
	b = b < k->leaves ? k->tree[b] : b - k->leaves;
	k->tree[at] = block_better(k, b, a) ? b : a;
}

/* After a block has changed.  Where it neither was nor is the winner, nothing above can
 * have changed either. */
static void tree_raise(struct request_class *k, uint32_t block)
{
	for (uint32_t at = (block + k->leaves) / 2; at; at /= 2) {
		uint32_t before = k->tree[at];

		tree_play(k, at);
		if (before != block && k->tree[at] != block)
			return;
	}
}

static void class_play(struct index *ix, struct request_class *k)
{
	for (uint32_t block = 0; block < k->blocks; block++)
		block_scan(ix, k, block);
	for (uint32_t at = k->leaves - 1; at; at--)
		tree_play(k, at);
}

static bool is_full(const struct request_class *k, uint32_t slot)
{
	return k->full[slot / BLOCK_NODES] >> slot % BLOCK_NODES & 1;
}

static void slot_pass_over(struct request_class *k, uint32_t slot)
{
	k->full[slot / BLOCK_NODES] |= 1u << slot % BLOCK_NODES;
	k->passed_over = true;
}

static bool node_too_full(const struct cluster *c, const struct request_class *k, uint32_t slot)
{
	const struct node *n = &c->nodes.items[c->slot_node[slot]];

	return too_full(k, n->idle_gpus, n->top_core_milli, n->free.cpu_milli);
}

void class_rebuild(struct index *ix, struct request_class *k)
{
	const struct cluster *c = ix->cluster;

	ix->stats.rebuilds++;
	k->passed_over = false;
	k->epoch = ix->scorer->epoch;
	k->prices_epoch = ix->scorer->prices_epoch;
	k->root_step = c->domains.items[0].step;
	k->steps_epoch = c->steps_epoch;
	k->ranks_epoch = c->ranks_epoch;
	k->cursor = c->log_head;
	k->blocks = (uint32_t)c->block_domain.len;
	for (k->leaves = 2; k->leaves < k->blocks;)
		k->leaves *= 2;
	memset(k->full, 0, k->blocks * sizeof(*k->full));
	if (k->barred)
		memset(k->barred, 0, k->blocks * sizeof(*k->barred));
	k->some_barred = false;
	for (uint32_t block = 0; block < k->blocks; block++) {
		gpuset_each(i, c->block_used.items[block]) {
			uint32_t slot = block * BLOCK_NODES + i;

			slot_identify(ix, k, slot);
			if (node_too_full(c, k, slot))
				slot_pass_over(k, slot);
			else
				slot_evaluate(ix, k, slot);
		}
	}
	class_play(ix, k);
}

void class_ask_all(struct index *ix, struct request_class *k)
{
	k->passed_over = false;
	for (uint32_t block = 0; block < k->blocks; block++) {
		uint32_t full = k->full[block];

		if (!full)
			continue;
		k->full[block] = 0;
		gpuset_each(i, full)
			slot_evaluate(ix, k, block * BLOCK_NODES + i);
		block_scan(ix, k, block);
		tree_raise(k, block);
	}
}

void class_put(struct index *ix, struct request_class *k, uint32_t slot, int32_t value)
{
	k->values[slot] = value;
	block_scan(ix, k, slot / BLOCK_NODES);
	tree_raise(k, slot / BLOCK_NODES);
}

void class_bar(struct index *ix, struct request_class *k, uint32_t slot, enum verdict v)
{
	uint32_t block = slot / BLOCK_NODES;

	k->barred[block] |= 1u << slot % BLOCK_NODES;
	k->some_barred = true;
	class_put(ix, k, slot, refusal(v));
}

enum verdict class_fit_pods(const struct index *ix, const struct request_class *k, uint32_t node)
{
	const struct request *r = &k->request;
	enum verdict v = rules_fit_pods(ix->cluster, r->rules, r->subject, node, NULL, 0);

	return v == FITS ? soft_fit_pods(ix->cluster, r, node) : v;
}

/* Which rule it breaks may have changed too. */
static bool still_barred(struct index *ix, struct request_class *k, uint32_t slot)
{
	enum verdict v = class_fit_pods(ix, k, ix->cluster->slot_node[slot]);

	if (v == FITS)
		return false;
	k->values[slot] = refusal(v);
	return true;
}

void class_unbar(struct index *ix, struct request_class *k)
{
	k->some_barred = false;
	for (uint32_t block = 0; block < k->blocks; block++) {
		uint32_t barred = k->barred[block];

		if (!barred)
			continue;
		gpuset_each(i, barred) {
			if (still_barred(ix, k, block * BLOCK_NODES + i))
				continue;
			k->barred[block] &= ~(1u << i);
			slot_evaluate(ix, k, block * BLOCK_NODES + i);
		}
		k->some_barred |= k->barred[block] != 0;
		block_scan(ix, k, block);
		tree_raise(k, block);
	}
}

/* New offsets for all blocks; the nodes that win in them stay the same. */
static void class_reprice(struct index *ix, struct request_class *k)
{
	for (uint32_t block = 0; block < k->blocks; block++)
		block_offset(ix, k, block);
	for (uint32_t at = k->leaves - 1; at; at--)
		tree_play(k, at);
	k->prices_epoch = ix->scorer->prices_epoch;
	k->root_step = ix->cluster->domains.items[0].step;
	k->steps_epoch = ix->cluster->steps_epoch;
}

static bool offsets_outdated(const struct index *ix, const struct request_class *k)
{
	return k->prices_epoch != ix->scorer->prices_epoch ||
	       k->steps_epoch != ix->cluster->steps_epoch ||
	       (k->request.strategy == STRATEGY_BALANCED &&
		k->root_step != ix->cluster->domains.items[0].step);
}

/* One node has changed: its block's winner, if that is affected. */
static bool slot_update(struct index *ix, struct request_class *k, const struct change *change)
{
	uint32_t slot = change->at, block = slot / BLOCK_NODES;
	struct best *b = &k->best[block];

	slot_identify(ix, k, slot);
	if (k->barred)
		k->barred[block] &= ~(1u << slot % BLOCK_NODES);
	if (cannot_fit(k, change)) {
		if (is_full(k, slot))
			return false; /* as before */
		slot_pass_over(k, slot);
	} else {
		k->full[block] &= ~(1u << slot % BLOCK_NODES);
		slot_evaluate(ix, k, slot);
	}
	if (b->slot == slot) {
		block_scan(ix, k, block);
		return true;
	}
	if (is_full(k, slot) || !slot_better(ix->cluster, k->values[slot], slot, b))
		return false;
	block_win(ix->cluster, k, b, slot);
	block_offset(ix, k, block);
	return true;
}

/* Calls for what a change will need: in a large cluster none of it is near. */
static void prefetch(const struct cluster *c, const struct request_class *k,
		     const struct change *change)
{
	const char *n;

	if (change->kind == CHANGE_BLOCK)
		__builtin_prefetch(&k->best[change->at]);
	if (change->kind != CHANGE_SLOT || (cannot_fit(k, change) && is_full(k, change->at)))
		return;
	__builtin_prefetch(&k->best[change->at / BLOCK_NODES]);
	__builtin_prefetch(&k->values[change->at]);
	if (change->bucket == BUCKET_EMPTY || cannot_fit(k, change))
		return;
	n = (const char *)&c->nodes.items[c->slot_node[change->at]];
	__builtin_prefetch(n);
	__builtin_prefetch(n + 64);
	__builtin_prefetch(n + 128);
}

/* When the node itself has come near: its GPUs. */
static void prefetch_gpus(const struct cluster *c, const struct request_class *k,
			  const struct change *change)
{
	const char *gpus;

	if (change->kind != CHANGE_SLOT || change->bucket == BUCKET_EMPTY || cannot_fit(k, change))
		return;
	gpus = (const char *)c->nodes.items[c->slot_node[change->at]].gpus;
	__builtin_prefetch(gpus);
	__builtin_prefetch(gpus + 64);
	__builtin_prefetch(gpus + 128);
	__builtin_prefetch(gpus + 192);
}

#define AHEAD 8 /* entries: far enough for memory to answer */

void class_replay(struct index *ix, struct request_class *k)
{
	const struct cluster *c = ix->cluster;

	for (; k->cursor != c->log_head; k->cursor++) {
		const struct change *change = &c->log[k->cursor % LOG_SIZE];
		uint32_t block = change->at;

		if (k->cursor + AHEAD < c->log_head)
			prefetch(c, k, &c->log[(k->cursor + AHEAD) % LOG_SIZE]);
		if (k->cursor + AHEAD / 2 < c->log_head)
			prefetch_gpus(c, k, &c->log[(k->cursor + AHEAD / 2) % LOG_SIZE]);
		if (change->kind == CHANGE_BLOCK)
			block_offset(ix, k, block);
		else if (change->kind == CHANGE_SLOT && slot_update(ix, k, change))
			block /= BLOCK_NODES;
		else
			continue;
		tree_raise(k, block);
	}
	if (offsets_outdated(ix, k))
		class_reprice(ix, k);
}
