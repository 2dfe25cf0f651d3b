/* SPDX-License-Identifier: Apache-2.0 */
/* mix.h - what is known of the work to come: the kinds of pods that arrive, and how often.
 *
 * Kinds are (CPU, GPUs, share, acceptable models).  They are learned from arrivals, with
 * decay so that the mix of last month does not rule today, and become effective in
 * epochs: after 16, 32, 64, ... arrivals at first, then at even intervals.  Only then do
 * policies look at it again (policy->learn), so that scores stay valid in between.
 *
 * Bounded: MIX_KINDS kinds; when there are more, the rarer ones are forgotten.
 */
#ifndef GS_ENGINE_MIX_H
#define GS_ENGINE_MIX_H

#include "engine/request.h"

#define MIX_KINDS  1024
#define MIX_PRICES 64

struct mix;

struct mix_kind {
	int64_t cpu_milli;
	int64_t mem_bytes;
	struct modelset models;
	uint16_t gpus;	      /* 0: needs none */
	uint16_t share_milli; /* of each; CORE_WHOLE: whole cards */
	uint32_t unused;
	double weight; /* arrivals, decayed */
};

struct mix *mix_new(void); /* NULL: out of memory */
void mix_free(struct mix *m);

/* Counts an arrival. */
void mix_arrived(struct mix *m, const struct request *r);
/* True when a new epoch begins; the weights have decayed.  Epochs last some arrivals per
 * node, so that what an epoch costs, a look at every node, is little per arrival. */
bool mix_epoch(struct mix *m, uint32_t nodes);
/* True when prices should be looked at: every MIX_PRICES arrivals. */
bool mix_prices_due(const struct mix *m);
/* Counts one pod of a list that is known in advance: no epoch begins. */
void mix_add(struct mix *m, const struct request *r);

/* What was counted, in no order; *total is the sum of the weights. */
const struct mix_kind *mix_kinds(const struct mix *m, uint32_t *count, double *total);

/* The kind of a request. */
void mix_kind_of(const struct request *r, struct mix_kind *ret);

#endif
