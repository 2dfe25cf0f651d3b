/* SPDX-License-Identifier: Apache-2.0 */
/* index_private.h - the index from inside, for index.c (which class, in how much memory) and
 * index_class.c (what a class knows of the nodes). */
#ifndef GS_ENGINE_INDEX_PRIVATE_H
#define GS_ENGINE_INDEX_PRIVATE_H

#include "engine/cluster_private.h"
#include "engine/index.h"

#define HEADS	4096
#define NO_SLOT UINT32_MAX

/* The score of a state, for the nodes that share it, within one visit to a class. */
struct memo {
	uint32_t visit, state;
	int32_t value;
};
#define MEMOS 1024

/* The best node of a block.  `value` has the domain's offset in it; ties go to the lesser
 * rank, which is kept here because it is far away elsewhere. */
struct best {
	uint64_t rank;
	int32_t local, value;
	uint32_t slot;
};

struct request_class {
	struct request request;
	uint64_t hash;
	struct request_class *next; /* same head */
	struct request_class *newer, *older;
	uint64_t bytes;
	uint64_t cursor; /* change log is read up to here */
	uint32_t epoch, prices_epoch;
	uint32_t root_step; /* that balanced offsets were made with */
	uint32_t ranks_epoch, steps_epoch;
	uint32_t blocks; /* in `best` and the tournament */
	uint32_t leaves; /* of the tournament: a power of two >= blocks */
	uint32_t blocks_room;
	bool by_identity; /* names, labels or domains matter */
	bool by_pods;	  /* the pods that are there matter: rules_fit_pods() */
	bool some_barred; /* some bit of `barred` is set */
	uint64_t rules_serial, subject_serial, demand_serial;
	uint64_t loosened;   /* rules_loosened() when `barred` was right */
	bool passed_over;    /* some bit of `full` is set */
	uint32_t least_idle; /* what a node must have at least, see cannot_fit() */
	uint16_t least_core_milli;
	int32_t *values;   /* by slot, without the domain's offset */
	uint32_t *full;	   /* by block: slots that cannot fit and were not asked why */
	uint32_t *barred;  /* by block: slots that fit but for the pods that are there */
	struct best *best; /* by block */
	uint32_t *tree;	   /* [1] is the winner of all; block numbers */
	uint8_t *identity; /* by slot: verdict of fit_identity(); or NULL */
};

struct index {
	const struct scorer *scorer;
	const struct cluster *cluster;
	uint64_t max_bytes, bytes;
	struct request_class *heads[HEADS];
	struct request_class *newest, *oldest;
	uint64_t seed;
	struct memo memos[MEMOS];
	uint32_t visit;
	struct index_stats stats;
};

/* A refusal as a value: below every score, the nearest miss the greatest. */
static inline int32_t refusal(enum verdict v)
{
	return (int32_t)v - VERDICT_COUNT;
}

/* index_class.c */

/* What a node must have at least to be asked at all; of a new class. */
void class_least(struct request_class *k);
/* The node's score without its domain's offset, or its refusal. */
int32_t class_evaluate(const struct scorer *s, const struct request *r, const struct node *n);
/* Brings the whole class up to date, whatever it knew. */
void class_rebuild(struct index *ix, struct request_class *k);
/* Brings it up to date by what has changed since. */
void class_replay(struct index *ix, struct request_class *k);
/* The node that would be best breaks a rule about pods: another one is best. */
void class_bar(struct index *ix, struct request_class *k, uint32_t slot, enum verdict v);
/* Rules may be kept now that were broken: looks again at those that were barred. */
void class_unbar(struct index *ix, struct request_class *k);
/* Gives the slot another value: takes the winner aside, or puts it back. */
void class_put(struct index *ix, struct request_class *k, uint32_t slot, int32_t value);
/* Whether the pods that are there allow it on the node. */
enum verdict class_fit_pods(const struct index *ix, const struct request_class *k, uint32_t node);
/* Nothing fits, and the nearest miss is asked for: asks those who were passed over. */
void class_ask_all(struct index *ix, struct request_class *k);

#endif
