/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.h - how much of a node's free GPU the work to come could use.
 *
 * For every kind of work that was seen, a node offers the room on the cards that are each
 * large enough for it, but no more than its free CPU can feed: filled with pods of that
 * kind alone a node with c CPU takes c / cpu of them.  Other, lighter pods share the node,
 * so FEED times that many are granted.  Memory counts as the CPU that comes with it in
 * work of the same shape.  The outlook of a node is the mean over all kinds, in thousandths
 * of a GPU:
 *
 *	U(node) = sum over kinds k that fit:  W_k * min(room_k, FEED * c / cpu_k * size_k)
 *
 * W_k is how often the kind comes.  For kinds that need several GPUs on one node it is
 * instead the chance that one of them will find the slots gone: nothing while slots are
 * plenty, one when there are no more of them than pods to come.  A placement is as good
 * as it leaves U large.  With FEED infinite and W_k constant this would be FGD, which does
 * not see that CPU runs out after a few pods, nor when whole nodes become scarce.
 *
 * Prices.  Work that accepts certain GPU models only must find those models free.  What
 * is expected of it is spread over the models so that the highest load is least; the price
 * of a model grows with its load by such work, and everybody pays it for the GPU he takes.
 *
 * Before anything has come, every kind of node is assumed to have seen one pod that takes a
 * fair share of it, one GPU, and one that takes all of it.
 */
#ifndef GS_ENGINE_POLICY_OUTLOOK_H
#define GS_ENGINE_POLICY_OUTLOOK_H

#include "engine/cluster.h"

#define OUTLOOK_SHAPES 48  /* (GPUs, share) pairs */
#define OUTLOOK_KINDS  256 /* the most frequent */

struct mix;

struct outlook_kind {
	double cpu_milli;
	double weight; /* of this and all smaller ones of the shape */
	double rate;   /* the same of weight / cpu_milli */
};

struct outlook_shape {
	double size_milli;	    /* gpus * share_milli */
	double least_cpu, most_cpu; /* of its kinds */
	double cpu_per_room;	    /* that most_cpu needs for every milli of room to be used */
	double cpu_per_byte;	    /* that comes with memory in its kinds */
	double weight;		    /* of all its kinds */
	uint32_t gpus, share_milli;
	uint32_t first, end; /* in `kinds`, by CPU */
};

/* What matters to nodes of one GPU model. */
struct outlook_model {
	uint32_t shapes_count;
	struct outlook_shape shapes[OUTLOOK_SHAPES];
	struct outlook_kind kinds[OUTLOOK_KINDS];
	double usable_share; /* of what is free, by work of one GPU or less */
	double load;	     /* by work that needs this model, 0..1 */
};

/* A node as it is or would be: free CPU and memory, and what is free on its cards, as levels in
 * thousandths, ascending, with the number of cards at each. */
struct outlook_view {
	double cpu_milli, mem_bytes;
	uint16_t model;
	uint8_t count;
	uint16_t level[GPU_MAX];
	uint8_t cards[GPU_MAX];
};

/* What was found out about a state of nodes. */
struct outlook_seen {
	struct outlook_view view;
	double usable;
	uint32_t state; /* its number; 0: none */
	uint32_t epoch;
};

#define OUTLOOK_CACHE 4096

struct outlook {
	uint32_t models;
	struct outlook_model model[MODEL_MAX];
	/* States that were met, by their number modulo the size; `stranger` is a node whose
	 * state has no number. */
	uint32_t seen_epoch;
	struct outlook_seen seen[OUTLOOK_CACHE];
	struct outlook_seen stranger;
	/* U after the share that was picked last: its score is asked for next. */
	struct outlook_picked {
		double usable;
		int64_t cpu_milli, mem_bytes;
		struct hold hold;
		uint32_t state; /* 0: nothing was picked */
	} picked;
};

void outlook_learn(struct outlook *o, const struct cluster *c, const struct mix *mix);
/* Drops what is remembered of states. */
void outlook_forget(struct outlook *o);
/* Whether any price has changed by more than a little. */
bool outlook_reprice(struct outlook *o, const struct cluster *c, const struct mix *mix);

void outlook_view(const struct node *n, struct outlook_view *ret);
/* Moves one card from one level to another (which may be 0). */
void outlook_move(struct outlook_view *v, uint16_t from, uint16_t to);
/* What a card offers now, and what it would after the hold (of a share or the whole). */
uint16_t outlook_level(const struct gpu *g);
uint16_t outlook_level_after(const struct gpu *g, const struct hold *h);
/* U of the node, in thousandths of a GPU. */
double outlook_usable(const struct outlook *o, const struct outlook_view *v);
/* View and U of a node as it is; remembered until something is learned, or asked for the next
 * stranger. */
const struct outlook_seen *outlook_look(struct outlook *o, const struct node *n);

#endif
