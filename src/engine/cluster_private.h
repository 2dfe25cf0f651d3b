/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_private.h - how the cluster is kept, for the files that keep or index it.
 *
 * Slots.  Every node has a slot in a block of BLOCK_NODES slots that belong to one
 * leaf and one GPU model (that of the node's first GPU), so that what a score owes to
 * domain and model is one number per block.  What the indexes read for each node lies in
 * arrays by slot, so that scanning a block touches a few cache lines.
 *
 * Buckets.  The state of a node without its name, as bytes, is interned: nodes in the
 * same state share a bucket and whatever was computed for it.  Bucket 0 is "no node".
 * Numbers are used again; the number of the state never is.
 *
 * Change log.  A ring of the last LOG_SIZE changes: a slot whose node changed, or a block
 * whose domain changed its utilisation step.  An entry carries what most readers need to
 * see that the change does not concern them, for in a large cluster everything else is far
 * from the processor.  A later change of the same slot voids the earlier entry.  A reader
 * remembers how far it has read; one that fell behind by more than the ring starts afresh.
 */
#ifndef GS_ENGINE_CLUSTER_PRIVATE_H
#define GS_ENGINE_CLUSTER_PRIVATE_H

#include "base/map.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/vec.h"
#include "engine/cluster.h"
#include "engine/rules_private.h"

#define LOG_SIZE     (1u << 16)
#define BUCKET_EMPTY 0
#define NODES_MAX    1000000u
#define LOGGED_NODES 2048 /* of a domain whose steps are told block by block */
#define RESOURCE_MAX (INT64_C(1) << 48)
#define STRAYS_MAX   1024u

enum change_kind { CHANGE_VOID, CHANGE_SLOT, CHANGE_BLOCK };

struct change {
	uint32_t at;		 /* slot or block */
	uint32_t bucket;	 /* that the slot is in now */
	uint32_t cpu_milli;	 /* free; UINT32_MAX: that or more */
	uint16_t top_core_milli; /* as in the node */
	uint8_t idle_gpus;
	uint8_t kind; /* enum change_kind */
};

#define PROFILE_NONE 0

struct profile {
	char *bytes; /* NULL: not in use */
	size_t len;
	uint32_t nodes; /* that share it */
	uint32_t next_free;
};

struct bucket {
	char *key;
	uint64_t hash; /* of the key */
	uint32_t key_len;
	uint32_t nodes; /* that are in this state; 0: free */
	uint32_t state; /* its number */
	uint32_t next_free;
};

struct cluster {
	struct cluster_config config;
	struct rng shuffle;
	struct pool pool;

	uint32_t cordon_key; /* the taint that a cordoned node counts as having */
	struct map string_ids;
	VEC(char *) strings;
	uint32_t strays;	    /* of them, resources that only pods have named */
	uint32_t models[MODEL_MAX]; /* string numbers */
	uint32_t models_count;
	uint32_t hcas[HCA_MAX]; /* string numbers */
	uint32_t hcas_count;
	uint64_t model_free_milli[MODEL_MAX];
	struct map profile_ids; /* static parts of nodes, as bytes */
	VEC(struct profile) profiles;
	uint32_t free_profile; /* 0: none */

	VEC(struct node) nodes;
	VEC(uint32_t) free_nodes;
	VEC(uint32_t) by_name; /* node numbers in order of names */
	struct map node_ids;
	struct map gpu_ids; /* UUID -> node * GPU_MAX + id */

	VEC(struct domain) domains;
	VEC(char *) domain_keys;
	bool positions_stale;  /* siblings have come in between */
	struct map domain_ids; /* parent number and name -> domain */

	VEC(uint32_t) block_domain;
	VEC(uint16_t) block_model; /* of all GPUs in the block; MODEL_NONE: no GPUs */
	VEC(uint32_t) block_used;  /* bits: slots that have a node */
	uint32_t *slot_node, *slot_bucket, *slot_state, *slot_change;
	uint64_t *slot_rank;
	uint32_t ranks_epoch; /* moves when all ranks were given anew */
	size_t slots_room;

	VEC(struct bucket) buckets;
	uint32_t *bucket_table;	    /* numbers by hash, linear probing; 0: empty */
	uint32_t bucket_table_size; /* a power of two */
	uint32_t free_bucket;	    /* 0: none */
	uint32_t last_state;
	char *key; /* scratch for the bytes of one state */

	struct change *log;
	uint64_t log_head;    /* entries ever written */
	uint32_t steps_epoch; /* moves when a large domain has changed its step */

	VEC(struct pod *) pods;
	VEC(uint32_t) free_pods;
	struct map pod_ids;
	struct map gang_pods;  /* number of a gang -> the first of its pods */
	VEC(uint32_t) budgets; /* how many pods each allows to be removed */

	struct rules_table rules;
};

/* cluster_names.c */
void names_done(struct cluster *c);

/* domain.c */
int domains_init(struct cluster *c);
void domains_done(struct cluster *c);
/* Positions of all anew, after siblings have come in between: when somebody asks. */
void domain_renumber(struct cluster *c);
/* The domain with that path, made if it is not there. */
int domain_path(struct cluster *c, const char *const *path, uint32_t n, uint32_t *ret);
/* A free slot for a node of that domain and model, in a new block if need be;
 * slot_release() gives it back. */
int slot_take(struct cluster *c, uint32_t domain, uint16_t model, uint32_t *ret);
void slot_release(struct cluster *c, uint32_t slot);
/* Adds the node's figures to its domains (sign 1) or takes them off (-1). */
void domain_account(struct cluster *c, const struct node *n, int sign);
/* After the figures are right again: tells the indexes of steps that changed. */
void domain_steps(struct cluster *c, uint32_t domain);

/* bucket.c */
int buckets_init(struct cluster *c);
void buckets_done(struct cluster *c);
/* The number of the node's static part, PROFILE_NONE on error; counted until released. */
int profile_of(struct cluster *c, const struct node *n, uint32_t *ret);
void profile_release(struct cluster *c, uint32_t profile);
/* Room for one more bucket, so that bucket_enter() cannot fail. */
int bucket_reserve(struct cluster *c);
void bucket_enter(struct cluster *c, struct node *n);
void bucket_leave(struct cluster *c, struct node *n);

/* node.c */
void nodes_done(struct cluster *c);

/* cluster.c: the order of names, for ties. */
void rank_insert(struct cluster *c, uint32_t node);
void rank_remove(struct cluster *c, const char *name);
/* Every change of a node lies between these two. */
void node_open(struct cluster *c, struct node *n);
void node_close(struct cluster *c, struct node *n);
void log_slot(struct cluster *c, uint32_t slot);
void log_block(struct cluster *c, uint32_t block);

/* pods.c */
void pods_done(struct cluster *c);
/* Books or gives back one hold on its GPU; hold_book: false if there is no room. */
bool hold_book(const struct node *n, const struct hold *h, uint16_t seats);
void hold_release(const struct node *n, const struct hold *h);
/* Books what is held already, also where there is no room by now: what is free goes below
 * zero.  False: the card is used in a way that cannot be. */
bool hold_force(const struct node *n, const struct hold *h);
/* Amounts from outside that sums cannot overflow: 0..RESOURCE_MAX. */
bool resources_sane(const struct resources *r);
bool extended_sane(const struct extended *items, uint32_t count);
/* Takes from what is free (sign 1) or gives back (-1). */
void resources_take(struct resources *free, const struct resources *needs, int sign);
void extended_take(struct node *n, const struct extended *needs, uint32_t count, int sign);

/* assign.c: every taint that keeps pods away is tolerated. */
bool taints_tolerated(const struct toleration *tolerations, uint32_t count, const struct node *n);
/* How many of those that only discourage (PreferNoSchedule) are not. */
uint32_t taints_discouraging(const struct toleration *tolerations, uint32_t count,
			     const struct node *n);

/* The model that a node counts as. */
static inline uint16_t node_model(const struct node *n)
{
	return n->gpus_count ? n->gpus[0].model : MODEL_NONE;
}

static inline struct node *node_at(struct cluster *c, uint32_t node)
{
	return &c->nodes.items[node];
}

#endif
