/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - what one pod asks for, whatever dialect it was written in.
 *
 * A request is a flat value without pointers: it is hashed and compared byte by byte,
 * and requests that are equal form a class that is scored once (index.h).  So begin
 * with request_init(), which clears the padding too, and fill in what is asked.
 * Names (labels, models, resources) are numbers given out by the cluster: see
 * cluster_intern(), cluster_model(), cluster_resource_asked().
 *
 * Priority, name and gang are not part of it: they belong to the pod (struct pod_spec).
 */
#ifndef GS_ENGINE_REQUEST_H
#define GS_ENGINE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/gpuset.h"

#define CORE_WHOLE     1000 /* core_milli of a whole card */
#define ASK_MAX	       16   /* containers of a pod that get GPUs */
#define MODEL_MAX      256  /* GPU models in one cluster */
#define MODEL_NONE     UINT16_MAX
#define HCA_MAX	       64 /* names of host channel adapters in one cluster */
#define EXTENDED_MAX   8  /* other resources of one pod */
#define SELECTOR_MAX   16
#define TOLERATION_MAX 16
#define NODE_NONE      UINT32_MAX
#define DOMAIN_NONE    UINT32_MAX

/* A set of GPU models; all zero accepts any. */
struct modelset {
	uint64_t bits[MODEL_MAX / 64];
};

static inline bool modelset_any(const struct modelset *s)
{
	return !(s->bits[0] | s->bits[1] | s->bits[2] | s->bits[3]);
}

static inline void modelset_add(struct modelset *s, uint16_t model)
{
	s->bits[model / 64] |= UINT64_C(1) << (model % 64);
}

static inline bool modelset_has(const struct modelset *s, uint16_t model)
{
	return modelset_any(s) || (s->bits[model / 64] >> (model % 64) & 1);
}

enum ask_kind {
	ASK_WHOLE = 1, /* `count` idle cards */
	ASK_SHARE, /* on each of `count` different cards: core_milli and mem_mib (either may be 0).
			* Both 0 and no group: a seat on a card in shared mode, which books nothing */
	ASK_MIG,   /* `count` slices of `mig_profile`, on any cards */
};

/* How to choose the card for a share. */
enum share_policy { SHARE_LEASTFRAG, SHARE_BINPACK, SHARE_SPREAD, SHARE_RANDOM };

/* What one container asks for (or the whole pod, when its containers see the same GPUs). */
struct ask {
	uint8_t kind; /* enum ask_kind */
	uint8_t count;
	uint8_t policy;		/* enum pick_policy (pick.h), whole cards only */
	uint8_t bandwidth_mode; /* enum pick_mode (pick.h) */
	uint16_t min_gbps;	/* between every two of the cards */
	uint16_t core_milli;	/* per card, 0..1000 */
	uint32_t mem_mib;	/* per card */
	uint16_t mem_milli;	/* per card, as a share of its memory; 0: mem_mib counts */
	uint8_t share_policy;	/* enum share_policy */
	uint8_t apart;		/* 1: on cards that no other ask of this pod uses */
	uint32_t group;		/* 0, or only pods of this group may share the card */
	uint32_t pinned;	/* set of exactly the ids to use; 0: any */
	uint32_t prefer_seed;	/* SHARE_RANDOM */
	uint8_t prefer_count;
	uint8_t prefer[GPU_MAX]; /* ids, the most wanted first */
	char mig_profile[23];	 /* as written, e.g. "1g.10gb" */
	struct modelset models;
};

struct extended {
	uint32_t resource; /* cluster_resource() */
	uint32_t unused;
	int64_t amount;
};

/* What the pod takes of its node besides GPUs. */
struct resources {
	int64_t cpu_milli;
	int64_t mem_bytes;
	int64_t ephemeral_bytes;
	int64_t pods; /* of a node: how many; of a pod: 1 */
};

struct label {
	uint32_t key, value; /* cluster_intern() */
};

enum toleration_operator { TOLERATE_EQUAL, TOLERATE_EXISTS };
enum taint_effect { EFFECT_ANY, EFFECT_NO_SCHEDULE, EFFECT_PREFER_NO_SCHEDULE, EFFECT_NO_EXECUTE };

struct toleration {
	uint32_t key, value; /* key 0: every key */
	uint8_t op;	     /* enum toleration_operator */
	uint8_t effect;	     /* enum taint_effect; EFFECT_ANY: every effect */
	uint16_t unused;
};

/* How pods relate to the fabric. */
enum strategy {
	STRATEGY_CONSOLIDATED, /* few domains, the full ones first */
	STRATEGY_DISTRIBUTED,  /* many domains, the empty ones first */
	STRATEGY_BALANCED,     /* the domain that ends nearest to the mean */
};

struct request {
	struct resources needs;
	struct ask asks[ASK_MAX];
	struct extended extended[EXTENDED_MAX];
	struct label selector[SELECTOR_MAX]; /* the node has all of these */
	struct toleration tolerations[TOLERATION_MAX];
	uint8_t asks_count, extended_count, selector_count, tolerations_count;
	uint8_t strategy; /* enum strategy */
	uint8_t latency_sensitive;
	uint16_t min_rdma_ports;   /* 0: none needed */
	uint64_t prefer_hcas;	   /* set of cluster_hca(): rather a node with one of these */
	uint32_t min_network_gbps; /* Gbit/s */
	uint32_t cufile;	   /* 1: only where GPUDirect Storage works */
	uint32_t node;		   /* pinned node, NODE_NONE: any */
	uint32_t domain;	   /* only below this domain; DOMAIN_NONE: anywhere */
	uint32_t prefer_domain;	   /* rather below this one */
	uint32_t rules;		   /* rules_take(), held by the caller; 0: none */
	uint32_t demand;	   /* preferences that count as rules, see soft.h; 0: none */
	uint32_t demand_of;	   /* whose: a soft_take(); 0 if only taints are meant */
	uint32_t subject;	   /* subject_take(); not part of the class unless it matters */
	uint32_t soft;		   /* soft_take(), held by the caller; never part of the class */
};

/* An empty request for one pod that fits anywhere. */
void request_init(struct request *r);

/* Adds an ask that the caller fills in; NULL when there are ASK_MAX already. */
struct ask *request_add_ask(struct request *r, enum ask_kind kind, uint8_t count);

/* GPU that the request books in all, in thousandths of a card (MIG by compute slices is
 * not known here: a slice counts as its share in the first geometry that has it, else 0). */
uint32_t request_gpu_milli(const struct request *r);

bool request_equal(const struct request *a, const struct request *b);
uint64_t request_hash(const struct request *r, uint64_t seed);

#endif
