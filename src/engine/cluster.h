/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - everything the engine knows: nodes, GPUs, the fabric, and who holds what.
 *
 * Nodes, GPUs and domains are plain records in arrays that anybody may read; only the
 * functions here change them, because each change also keeps the aggregates of the
 * node's domains right, finds the bucket of like nodes it now belongs to, and writes
 * one entry into the change log, from which the indexes (index.h) bring themselves up
 * to date.
 *
 * A GPU's identity is its UUID.  Ids (indexes inside the node) may change with
 * cluster_node_change(); placements follow the UUID.
 *
 * Size: up to 1,000,000 nodes; a node with 8 GPUs takes about 1 KiB.  One thread.
 */
#ifndef GS_ENGINE_CLUSTER_H
#define GS_ENGINE_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/mig.h"
#include "engine/request.h"

#define DOMAIN_LEVELS_MAX 8
#define DOMAIN_STEPS	  16
#define BLOCK_NODES	  32 /* nodes of one leaf that the indexes treat as one */
#define SEATS_DEFAULT	  8  /* maxPodsPerSharedGpu */

struct err;
struct links;
struct cluster;
struct assignment;

enum gpu_use {
	GPU_IDLE,
	GPU_WHOLE,  /* one holder */
	GPU_SHARED, /* shares or seats */
	GPU_SLICED, /* MIG */
};

struct gpu {
	uint32_t uuid;	      /* cluster_intern() */
	uint32_t mem_mib;     /* 0: unknown, never a limit */
	int32_t mem_free_mib; /* negative: more is held than the card has, see hold_force() */
	uint32_t group;	      /* only pods of this group may share it; 0: everybody */
	uint16_t model;
	int16_t core_free_milli;
	uint16_t tenants; /* holds on it */
	uint8_t use;	  /* enum gpu_use */
	uint8_t healthy;
	uint8_t numa, island;
	uint8_t load_percent; /* measured */
	uint8_t mig_mode;     /* enum mig_mode */
	struct mig_state mig;
	uint8_t mig_made[MIG_SLICES_MAX]; /* MIG_MADE: as in mig_pick_made() */
};

/* The memory of this card that a share takes. */
static inline uint32_t ask_mem_mib(const struct ask *a, const struct gpu *g)
{
	if (!a->mem_milli)
		return a->mem_mib;
	return (uint32_t)((uint64_t)g->mem_mib * a->mem_milli / CORE_WHOLE);
}

struct taint {
	uint32_t key, value;
	uint8_t effect; /* enum taint_effect */
	uint8_t unused[3];
};

/* What the caller says of a node.  Copied, except links and mig: those are borrowed until the
 * node is changed, or removed (and while slices of that geometry are in use). */
struct gpu_spec {
	const char *uuid; /* unique in the cluster */
	const char *model;
	uint32_t mem_mib;
	uint8_t numa;
	uint8_t unhealthy;
	uint8_t load_percent;
	uint8_t mig_mode;		  /* enum mig_mode */
	uint8_t mig_made[MIG_SLICES_MAX]; /* MIG_MADE: as in mig_pick_made() */
};

struct node_spec {
	const char *name;
	struct resources allocatable;
	const struct extended *extended;
	uint32_t extended_count;
	const struct gpu_spec *gpus;
	uint32_t gpus_count;
	const struct links *links;	/* NULL: nothing is known, all pairs alike */
	const struct mig_geometry *mig; /* NULL: no GPU here can be sliced */
	const char *const *domains;	/* outermost first, the leaf last */
	uint32_t domains_count;
	const struct label *labels;
	uint32_t labels_count;
	const struct taint *taints;
	uint32_t taints_count;
	uint32_t network_gbps;	    /* 0: unknown */
	uint16_t rdma_ports;	    /* 0: none, or unknown */
	uint64_t hcas;		    /* set of cluster_hca() */
	uint16_t performance_milli; /* history, 1000 = as good as any; 0: unknown = 1000 */
	bool cufile;		    /* GPUDirect Storage works */
	bool unschedulable;
	bool gpus_closed; /* none of its GPUs can be locked for now */
};

struct node {
	const char *name; /* NULL: the place is empty */
	struct gpu *gpus;
	const struct links *links;
	const struct mig_geometry *mig;
	struct resources allocatable;
	struct resources free;
	struct extended *extended; /* what is free */
	struct extended *extended_total;
	struct label *labels; /* sorted by key */
	struct taint *taints;
	uint64_t rank;	 /* order of names; ties go to the smallest */
	uint64_t hcas;	 /* set of host channel adapters, cluster_hca() */
	uint32_t domain; /* leaf */
	uint32_t slot;	 /* place in the index: block * BLOCK_NODES + i */
	uint32_t bucket;
	uint32_t state;	    /* number of the state it is in: another for every other state */
	uint32_t first_pod; /* POD_NONE, or head of the list of placements */
	uint32_t network_gbps;
	uint32_t profile;	 /* number of its static part: nodes alike share it */
	uint32_t idle;		 /* set of idle GPUs: healthy, wholly free, not in MIG mode */
	uint32_t free_milli;	 /* GPU not booked, healthy cards */
	uint32_t total_milli;	 /* of healthy cards */
	uint16_t top_core_milli; /* most core free on one card that takes shares */
	uint16_t performance_milli;
	uint16_t rdma_ports;
	uint16_t extended_count, labels_count, taints_count;
	uint8_t gpus_count;
	uint8_t idle_gpus; /* how many are in `idle` */
	uint8_t cufile;
	uint8_t unschedulable;
	uint8_t gpus_closed;
};

/* A place in the fabric: the root, a spine, a leaf, an NVLink domain ... */
struct domain {
	const char *name;
	uint32_t parent;		  /* DOMAIN_NONE for the root */
	uint32_t first_child, last_child; /* DOMAIN_NONE: no domain below */
	uint32_t next_sibling; /* in natural order of names (leaf-2 before leaf-10): adjacency */
	uint32_t *children;    /* all of them, in that order */
	uint32_t children_count, children_room;
	uint32_t position;    /* among its siblings, counted from 0: see cluster_domain() */
	uint8_t level;	      /* 0 is the root */
	uint32_t nodes, gpus; /* below it */
	uint64_t free_milli;  /* GPU not booked, healthy cards */
	uint64_t total_milli;
	uint32_t nodes_by_idle[GPU_MAX + 1]; /* nodes that take pods with exactly n idle GPUs */
	uint32_t *blocks; /* the blocks that hold the nodes directly in it, cluster_block_node() */
	uint32_t blocks_count, blocks_room;
	uint32_t step; /* utilisation, rounded down to sixteenths (DOMAIN_STEPS) */
};

/* Who holds what. */
#define POD_NONE UINT32_MAX

struct hold {		     /* a part of one GPU */
	uint8_t gpu;	     /* id in the node */
	uint8_t ask;	     /* which ask of the request */
	uint8_t mig_start;   /* slices only */
	uint8_t mig_profile; /* index in the node's geometry, slices only */
	uint8_t kind;	     /* enum ask_kind */
	uint8_t unused;
	uint16_t core_milli; /* shares only, as the next two */
	uint32_t mem_mib;
	uint32_t group;
};

struct pod_spec {
	const char *uid;  /* unique; also accepted: "namespace/name" in simulations */
	const char *name; /* for people */
	int32_t priority;
	uint32_t gang;	  /* 0, or a number the caller gives its gangs */
	uint64_t started; /* any clock; later means younger */
	uint32_t budget;  /* 0, or the number of the disruption budget that it is of */
	uint8_t endless;  /* it does not end by itself: a service */
	uint8_t ending;	  /* it is being deleted */
};

struct pod {
	const char *uid, *name;
	struct resources needs;
	struct extended *extended;
	struct hold *holds;
	uint64_t started;
	uint32_t node;
	uint32_t next, previous; /* on the same node */
	uint32_t gang;
	uint32_t gang_next, gang_previous; /* of the same gang, if it has one */
	uint32_t size;			   /* of this record, in bytes */
	int32_t priority;
	uint32_t subject, rules, soft; /* counted: see rules.h, soft.h */
	uint32_t budget;
	uint16_t holds_count;
	uint8_t extended_count;
	uint8_t endless;
	uint8_t ending;
};

struct cluster_config {
	uint64_t seed;	  /* of the hash maps */
	uint64_t shuffle; /* not 0: ties by a random order of the nodes from this seed */
	uint16_t seats;	  /* pods on a card in shared mode; 0: SEATS_DEFAULT */
};

struct cluster *cluster_new(const struct cluster_config *config); /* NULL: out of memory */
void cluster_free(struct cluster *c);
/* Other seats; 0: SEATS_DEFAULT.  Pods that sit already stay, however many. */
void cluster_set_seats(struct cluster *c, uint16_t seats);

/* Numbers for strings.  0 is the empty string; UINT32_MAX: out of memory. */
uint32_t cluster_intern(struct cluster *c, const char *s);
/* The number of a string that is there, or UINT32_MAX: does not add it. */
uint32_t cluster_find(const struct cluster *c, const char *s);
const char *cluster_string(const struct cluster *c, uint32_t id);
/* UINT16_MAX: more than MODEL_MAX models, or out of memory. */
uint16_t cluster_model(struct cluster *c, const char *name);
/* The model of that name or UINT16_MAX: does not add it. */
uint16_t cluster_model_find(const struct cluster *c, const char *name);
const char *cluster_model_name(const struct cluster *c, uint16_t model);
uint32_t cluster_models(const struct cluster *c);
/* GPU not booked, in thousandths of a card, on healthy cards of nodes of that model. */
uint64_t cluster_model_free_milli(const struct cluster *c, uint16_t model);
/* A number below HCA_MAX for the name of a host channel adapter; UINT8_MAX: there are too
 * many, or out of memory.  Like the number of a string, it stays. */
uint8_t cluster_hca(struct cluster *c, const char *name);
/* The same for a name that is there: does not add it. */
uint8_t cluster_hca_find(const struct cluster *c, const char *name);
static inline uint32_t cluster_resource(struct cluster *c, const char *name)
{
	return cluster_intern(c, name);
}

/* The same for what a pod asks for.  Of names that no node ever had, as many are remembered as
 * there may be slips; further ones are one resource, which no node has. */
uint32_t cluster_resource_asked(struct cluster *c, const char *name);
/* A number, not 0, for pods that share cards with nobody else, from a hash of what makes them
 * one.  Nothing is remembered; that two have the same is a matter of luck, which the cluster's
 * seed keeps anybody from trying. */
uint32_t cluster_group(const struct cluster *c, uint64_t hash);

/* 0; -EEXIST a node or a GPU of that name is there already; -EINVAL; -ENOMEM. */
int cluster_node_add(struct cluster *c, const struct node_spec *spec, uint32_t *ret,
		     struct err *err);
/* Replaces what is known of the node; moving to another domain is allowed.  Its placements
 * stay, whatever is reported: a GPU that is in use and no longer there is kept behind the
 * others as unhealthy until its pods are gone, keeps its MIG mode and geometry, and may be
 * held beyond the memory that it reports now. */
int cluster_node_change(struct cluster *c, uint32_t node, const struct node_spec *spec,
			struct err *err);
/* Forgets the node and every placement on it.  Its number may be used again. */
void cluster_node_remove(struct cluster *c, uint32_t node);
void cluster_gpu_health(struct cluster *c, uint32_t node, uint8_t gpu, bool healthy);

uint32_t cluster_node_find(const struct cluster *c, const char *name); /* or NODE_NONE */
/* The GPU of that UUID; false if there is none. */
bool cluster_gpu_find(const struct cluster *c, const char *uuid, uint32_t *node, uint8_t *gpu);
/* Nodes are numbered below this; some numbers may be empty (name == NULL). */
uint32_t cluster_nodes_end(const struct cluster *c);
uint32_t cluster_nodes_count(const struct cluster *c);
const struct node *cluster_node(const struct cluster *c, uint32_t node);

uint32_t cluster_domains(const struct cluster *c); /* domain 0 is the root */
const struct domain *cluster_domain(const struct cluster *c, uint32_t domain);
/* The domain with this path (outermost first), or DOMAIN_NONE. */
uint32_t cluster_domain_find(const struct cluster *c, const char *const *path, uint32_t n);
/* The only domain anywhere with that name, or DOMAIN_NONE if none or several. */
uint32_t cluster_domain_named(const struct cluster *c, const char *name);
bool cluster_below(const struct cluster *c, uint32_t domain, uint32_t above);
/* Nodes below `domain` that have at least `idle` idle GPUs; no node is visited. */
uint32_t cluster_nodes_with(const struct cluster *c, uint32_t domain, uint32_t idle);
/* The i-th node of a block (domain->blocks), i < BLOCK_NODES, or NODE_NONE: a block has holes. */
uint32_t cluster_block_node(const struct cluster *c, uint32_t block, uint32_t i);

/* Books `a` on the node for a pod.  -EEXIST: the pod is placed already; -ENOENT: the node is
 * gone; -ENOSPC: a GPU has not that much free; -ENOMEM.  On error nothing is booked.
 * `*ret` is the pod's number until cluster_pod_remove(). */
int cluster_pod_place(struct cluster *c, const struct pod_spec *spec, const struct request *r,
		      uint32_t node, const struct assignment *a, uint32_t *ret);
void cluster_pod_remove(struct cluster *c, uint32_t pod);
/* Takes a pod off its node but keeps its record, to put it back with the same holds.
 * Detach and attach in reverse order give the same numbers again. */
struct pod *cluster_pod_detach(struct cluster *c, uint32_t pod);
int cluster_pod_attach(struct cluster *c, struct pod *pod, uint32_t *ret); /* as place */
void cluster_pod_discard(struct cluster *c, struct pod *pod);		   /* a detached one */
/* The pod is being deleted: it holds what it holds, but does not count for even spread. */
void cluster_pod_ending(struct cluster *c, uint32_t pod);
/* Facts that only who looks for victims reads: when it started; its disruption budget;
 * whether it never ends by itself. */
void cluster_pod_started(struct cluster *c, uint32_t pod, uint64_t started);
void cluster_pod_budget(struct cluster *c, uint32_t pod, uint32_t budget);
void cluster_pod_endless(struct cluster *c, uint32_t pod, uint8_t endless);
/* How many pods of a budget may be removed without violating it; none of one that is not known.
 * Numbers are the caller's, small and from 1 on.  0, -ENOMEM. */
int cluster_budget_allow(struct cluster *c, uint32_t budget, uint32_t pods);
uint32_t cluster_budget_allowed(const struct cluster *c, uint32_t budget);
uint32_t cluster_pod_find(const struct cluster *c, const char *uid); /* or POD_NONE */
const struct pod *cluster_pod(const struct cluster *c, uint32_t pod);
uint32_t cluster_pods_count(const struct cluster *c);
/* One of the pods of that gang, or POD_NONE; the others by struct pod.gang_next, in no order. */
uint32_t cluster_gang_first(const struct cluster *c, uint32_t gang);
/* Pods are numbered below this; cluster_pod() is NULL for numbers not in use. */
uint32_t cluster_pods_end(const struct cluster *c);

/* A number that is equal for equal states: nodes, GPUs, holds, aggregates.  For tests. */
uint64_t cluster_digest(const struct cluster *c);
/* Recomputes every aggregate from the records and compares; NULL or what is wrong. */
const char *cluster_check(const struct cluster *c);
uint64_t cluster_memory(const struct cluster *c); /* bytes, as allocated */

#endif
