/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - classes of requests, found by what they ask, in a fixed amount of memory. */
#include "engine/index_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

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

static void class_free(struct request_class *k)
{
	free(k->values);
	free(k->full);
	free(k->barred);
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
		struct request_class *k = ix->newest;

		ix->newest = k->older;
		class_free(k);
	}
	free(ix);
}

static void lru_unlink(struct index *ix, struct request_class *k)
{
	*(k->newer ? &k->newer->older : &ix->newest) = k->older;
	*(k->older ? &k->older->newer : &ix->oldest) = k->newer;
}

static void lru_push(struct index *ix, struct request_class *k)
{
	k->newer = NULL;
	k->older = ix->newest;
	*(k->older ? &k->older->newer : &ix->oldest) = k;
	ix->newest = k;
}

static void class_evict(struct index *ix, struct request_class *k)
{
	struct request_class **at = &ix->heads[k->hash % HEADS];

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
static void class_account(struct index *ix, struct request_class *k)
{
	ix->bytes -= k->bytes;
	k->bytes = sizeof(*k) +
		   k->blocks_room * (sizeof(*k->best) + sizeof(*k->tree) + sizeof(*k->full) +
				     (k->by_pods ? sizeof(*k->barred) : 0)) +
		   (uint64_t)k->blocks_room * BLOCK_NODES *
			   (sizeof(*k->values) + (k->by_identity ? sizeof(*k->identity) : 0));
	ix->bytes += k->bytes;
	while (ix->bytes > ix->max_bytes && ix->oldest != k)
		class_evict(ix, ix->oldest);
}

static struct request_class *class_find(struct index *ix, const struct request *r)
{
	const struct cluster *c = ix->cluster;
	bool of_pods = rules_of_pods(c, r->rules) || soft_of_pods(c, r);
	uint32_t subject = of_pods || subject_matters(c, r->subject) ? r->subject : 0;
	uint64_t serials[] = { rules_serial(c, r->rules), subject_serial(c, subject),
			       soft_serial(c, r->demand_of) };
	uint64_t hash = request_hash(r, ix->seed + serials[1]);
	struct request_class **head = &ix->heads[hash % HEADS], *k = *head;

	while (k && (k->hash != hash || k->rules_serial != serials[0] ||
		     k->subject_serial != serials[1] || k->demand_serial != serials[2] ||
		     !request_equal(&k->request, r)))
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
	k->request.subject = subject;
	k->rules_serial = serials[0];
	k->subject_serial = serials[1];
	k->demand_serial = serials[2];
	k->by_pods = of_pods || subject;
	k->by_identity = r->selector_count || r->domain != DOMAIN_NONE ||
			 rules_of_nodes(c, r->rules) || soft_of_nodes(c, r);
	class_least(k);
	k->epoch = ix->scorer->epoch - 1;
	k->next = *head;
	*head = k;
	lru_push(ix, k);
	ix->stats.classes++;
	return k;
}

/* Room for as many blocks as there are, and as many again. */
static int class_grow(struct index *ix, struct request_class *k)
{
	uint32_t blocks = (uint32_t)ix->cluster->block_domain.len, room = k->blocks_room;
	struct best *best;
	uint32_t *tree, *full, *barred;
	int32_t *values;
	uint8_t *identity;

	if (blocks <= room && k->tree)
		return 0;
	for (room = room ? room : 2; room < blocks;)
		room *= 2;
	best = realloc(k->best, room * sizeof(*best));
	k->best = best ? best : k->best;
	tree = realloc(k->tree, room * sizeof(*tree));
	k->tree = tree ? tree : k->tree;
	full = realloc(k->full, room * sizeof(*full));
	k->full = full ? full : k->full;
	values = realloc(k->values, (size_t)room * BLOCK_NODES * sizeof(*values));
	k->values = values ? values : k->values;
	identity = k->by_identity ? realloc(k->identity, (size_t)room * BLOCK_NODES) : NULL;
	k->identity = identity ? identity : k->identity;
	barred = k->by_pods ? realloc(k->barred, room * sizeof(*barred)) : NULL;
	k->barred = barred ? barred : k->barred;
	if (!best || !tree || !full || !values || (k->by_identity && !identity) ||
	    (k->by_pods && !barred))
		return -ENOMEM;
	k->blocks_room = room;
	class_account(ix, k);
	return 0;
}

static int class_sync(struct index *ix, struct request_class *k)
{
	const struct cluster *c = ix->cluster;
	bool fresh = k->tree && k->epoch == ix->scorer->epoch &&
		     k->ranks_epoch == c->ranks_epoch && k->blocks == c->block_domain.len &&
		     c->log_head - k->cursor <= LOG_SIZE;

	if (class_grow(ix, k) < 0)
		return -ENOMEM;
	ix->visit++;
	if (!fresh) {
		class_rebuild(ix, k);
		return 0;
	}
	class_replay(ix, k);
	return 0;
}

/* The best block, its node verified against the pods that are there.  If there is none: the
 * nearest miss, or (ask_all false) any. */
static const struct best *class_winner(struct index *ix, struct request_class *k, bool ask_all)
{
	const struct cluster *c = ix->cluster;

	if (k->some_barred && k->loosened != rules_loosened(c))
		class_unbar(ix, k);
	k->loosened = rules_loosened(c);
	for (;;) {
		const struct best *b = &k->best[k->tree[1]];
		enum verdict v;

		if (b->local < 0 && k->passed_over && ask_all) {
			class_ask_all(ix, k);
			continue;
		}
		if (b->local < 0 || !k->by_pods)
			return b;
		v = class_fit_pods(ix, k, c->slot_node[b->slot]);
		if (v == FITS)
			return b;
		class_bar(ix, k, b->slot, v);
	}
}

/* The class, up to date; NULL: out of memory. */
static struct request_class *class_ready(struct index *ix, const struct request *r)
{
	struct request_class *k = class_find(ix, r);

	if (!k || class_sync(ix, k) == 0)
		return k;
	class_evict(ix, k);
	return NULL;
}

int index_best(struct index *ix, const struct request *r, uint32_t *node, int32_t *score,
	       enum verdict *miss)
{
	struct request_class *k = class_ready(ix, r);
	const struct best *b;

	*node = NODE_NONE;
	*miss = NODE_GONE;
	if (!k)
		return -ENOMEM;
	if (!k->blocks)
		return 0;
	b = class_winner(ix, k, true);
	if (b->local >= 0) {
		*node = ix->cluster->slot_node[b->slot];
		*score = b->value;
	} else {
		*miss = (enum verdict)(b->local + VERDICT_COUNT);
	}
	return 0;
}

/* One winner after the other is taken aside, and all are put back. */
int index_few(struct index *ix, const struct request *r, uint32_t max, struct index_choice *ret)
{
	struct request_class *k = class_ready(ix, r);
	struct {
		uint32_t slot;
		int32_t value;
	} aside[INDEX_FEW];
	uint32_t count = 0;

	assert(max <= INDEX_FEW);
	if (!k)
		return -ENOMEM;
	while (k->blocks && count < max) {
		const struct best *b = class_winner(ix, k, false);
		uint32_t slot = b->slot;

		if (b->local < 0)
			break;
		ret[count] = (struct index_choice){ ix->cluster->slot_node[slot], b->value };
		aside[count].slot = slot;
		aside[count++].value = k->values[slot];
		class_put(ix, k, slot, refusal(NODE_GONE));
	}
	for (uint32_t i = 0; i < count; i++)
		class_put(ix, k, aside[i].slot, aside[i].value);
	return (int)count;
}

int32_t index_value(const struct scorer *s, const struct request *r, uint32_t node)
{
	const struct node *n = cluster_node(s->cluster, node);
	enum verdict v = fit_identity(s->cluster, r, node);
	int32_t local = v == FITS ? class_evaluate(s, r, n) : refusal(v);

	if (local >= 0) {
		v = rules_fit_pods(s->cluster, r->rules, r->subject, node, NULL, 0);
		if (v == FITS)
			v = soft_fit_pods(s->cluster, r, node);
		if (v != FITS)
			local = refusal(v);
	}
	return local < 0 ? local : local + score_offset(s, r, n->domain, node_model(n), NULL);
}

void index_stats(const struct index *ix, struct index_stats *ret)
{
	*ret = ix->stats;
	ret->bytes = ix->bytes;
}
