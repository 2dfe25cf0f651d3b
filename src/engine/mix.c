/* SPDX-License-Identifier: Apache-2.0 */
/* mix.c - counting the kinds of work. */
#include "engine/mix.h"
#include "base/attr.h"
#include "base/hash.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_EPOCH	 16 /* arrivals before anything is believed */
#define EPOCH_NODES	 2  /* arrivals per node in an even epoch */
#define EPOCH_MIN	 512
#define EPOCHS_HALF_LIFE 4		 /* even epochs after which an arrival counts half */
#define SLOTS		 (2 * MIX_KINDS) /* of the hash table */

struct mix {
	struct mix_kind kinds[MIX_KINDS];
	uint16_t slots[SLOTS]; /* kind + 1 by hash, 0: empty */
	uint32_t count;
	double total;
	uint64_t arrivals, last_epoch, next_epoch;
};

struct mix *mix_new(void)
{
	struct mix *m = calloc(1, sizeof(*m));

	if (m)
		m->next_epoch = FIRST_EPOCH;
	return m;
}

void mix_free(struct mix *m)
{
	free(m);
}

/* Whole cards decide if there are any; else the largest share.  Slices of cards in MIG
 * mode come from other cards than these, so they count as work without GPUs. */
void mix_kind_of(const struct request *r, struct mix_kind *ret)
{
	uint32_t wholes = 0, shares = 0, milli = 0;

	memset(ret, 0, sizeof(*ret));
	ret->cpu_milli = r->needs.cpu_milli;
	ret->mem_bytes = r->needs.mem_bytes;
	for (uint8_t i = 0; i < r->asks_count; i++) {
		const struct ask *a = &r->asks[i];

		if (a->kind == ASK_MIG || (a->kind == ASK_SHARE && !a->core_milli))
			continue;
		ret->models = a->models;
		wholes += a->kind == ASK_WHOLE ? a->count : 0;
		shares += a->kind == ASK_SHARE ? a->count : 0;
		if (a->kind == ASK_SHARE && a->core_milli > milli)
			milli = a->core_milli;
	}
	ret->gpus = (uint16_t)(wholes ? wholes : shares);
	ret->share_milli = (uint16_t)(wholes ? CORE_WHOLE : milli);
}

static bool same_kind(const struct mix_kind *a, const struct mix_kind *b)
{
	return !memcmp(a, b, offsetof(struct mix_kind, weight));
}

static uint32_t slot_of(const struct mix *m, const struct mix_kind *kind)
{
	uint64_t at = hash_bytes(kind, offsetof(struct mix_kind, weight), 0) % SLOTS;

	while (m->slots[at] && !same_kind(&m->kinds[m->slots[at] - 1], kind))
		at = (at + 1) % SLOTS;
	return (uint32_t)at;
}

/* Drops rare kinds, the oldest of them first, but never more than half of all: seldom enough
 * that its cost does not matter. */
static void forget_rare(struct mix *m)
{
	double limit = m->total / MIX_KINDS;
	uint32_t kept = 0, dropped = 0;

	for (;;) {
		uint32_t rare = 0;

		for (uint32_t i = 0; i < m->count; i++)
			rare += m->kinds[i].weight <= limit;
		if (rare >= MIX_KINDS / 8)
			break;
		limit *= 2;
	}
	m->total = 0;
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->kinds[i].weight <= limit && dropped < MIX_KINDS / 2) {
			dropped++;
			continue;
		}
		m->total += m->kinds[i].weight;
		m->kinds[kept++] = m->kinds[i];
	}
	m->count = kept;
	memset(m->slots, 0, sizeof(m->slots));
	for (uint32_t i = 0; i < kept; i++)
		m->slots[slot_of(m, &m->kinds[i])] = (uint16_t)(i + 1);
}

static void count(struct mix *m, const struct request *r)
{
	struct mix_kind kind;
	uint32_t at;

	mix_kind_of(r, &kind);
	at = slot_of(m, &kind);
	if (!m->slots[at] && m->count == MIX_KINDS) {
		forget_rare(m);
		at = slot_of(m, &kind);
	}
	if (!m->slots[at]) {
		m->kinds[m->count++] = kind;
		m->slots[at] = (uint16_t)m->count;
	}
	m->kinds[m->slots[at] - 1].weight += 1;
	m->total += 1;
}

void mix_arrived(struct mix *m, const struct request *r)
{
	count(m, r);
	m->arrivals++;
}

/* What came before counts less by the arrivals that have passed since the last epoch. */
static void decay(struct mix *m, uint64_t half_life)
{
	double left = exp2(-(double)(m->arrivals - m->last_epoch) / (double)half_life);

	for (uint32_t i = 0; i < m->count; i++)
		m->kinds[i].weight *= left;
	m->total *= left;
}

bool mix_epoch(struct mix *m, uint32_t nodes)
{
	uint64_t even = MAX(EPOCH_NODES * (uint64_t)nodes, EPOCH_MIN);

	if (m->arrivals < m->next_epoch)
		return false;
	decay(m, EPOCHS_HALF_LIFE * even);
	m->last_epoch = m->arrivals;
	m->next_epoch += MIN(m->arrivals, even);
	return true;
}

bool mix_prices_due(const struct mix *m)
{
	return m->arrivals % MIX_PRICES == 0;
}

void mix_add(struct mix *m, const struct request *r)
{
	count(m, r);
}

const struct mix_kind *mix_kinds(const struct mix *m, uint32_t *ret_count, double *total)
{
	*ret_count = m->count;
	*total = m->total;
	return m->kinds;
}
