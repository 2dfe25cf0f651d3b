/* SPDX-License-Identifier: Apache-2.0 */
/* gang.h - pods that start together or not at all, over the fewest and nearest leaves.
 *
 * A gang is placed in an open plan: either every member is in it, or the cluster is
 * exactly as it was and `reason` says what was missing.  The caller commits the plan
 * or rolls it back.
 *
 * Words.  A leaf is an innermost domain of the tree: the nodes at one leaf switch, or
 * one NVLink domain over several nodes (GB200 NVL72) where the tree has such a level.
 * A spine is the domain above leaves.  Leaves are adjacent if their positions among
 * their siblings follow each other.  Room is the number of members that fit.
 *
 * Which leaves, strategy consolidated.  The first of these that holds the gang:
 *   1. adjacent leaves below one spine, as few as possible
 *   2. any leaves below one spine, as few as possible
 *   3. and 4.  the same one level up: adjacent spines below one domain, then any; and so
 *      on up to the root
 * Among equals: below the preferred domain; the fewest nodes; the least room left over,
 * so the fullest leaves go first and complete ones stay for later gangs; the fuller
 * spine; the window with the fuller neighbours; position.  Balanced chooses the same
 * leaves and fills them evenly.  Distributed takes as many leaves as possible, evenly,
 * from different spines first, and different nodes inside a leaf.
 *
 * Leaf rules required: only 1, and only as many leaves as the gang would need if its
 * nodes were empty (4 nodes a complete leaf of 4, 8 two, 16 four).  A gang that no
 * empty spine could hold is held to the same rule one level up: adjacent spines.
 *
 * Latency-sensitive gangs go into a single leaf whenever one has room, whatever the
 * strategy.
 *
 * Nodes directly in a domain that has domains below it say nothing about their leaf:
 * they are in no leaf, and serve only where any leaves do (2, 4, ...), last.
 *
 * max_nodes_per_leaf and max_gpus_per_leaf of the engine's configuration bound what one
 * gang takes of one leaf.
 *
 * What members would rather have (soft.h) does not enter: leaves and room decide.  They count
 * for pods that come later.
 *
 * Cost: domains are ruled out by their figures; only the nodes of leaves that may be
 * chosen are visited, and nodes in equal state are probed once.  Scratch memory lives
 * in the planner and is used again.  One thread.
 */
#ifndef GS_ENGINE_GANG_H
#define GS_ENGINE_GANG_H

#include "engine/plan.h"

#define GANG_MEMBERS_MAX 65536
#define GANG_CLASSES_MAX 64
#define GANG_REASON_MAX	 448

enum gang_mode {
	GANG_PREFERRED, /* as well as it can be had */
	GANG_REQUIRED,	/* or not at all */
};

/* Members that ask for the same. */
struct gang_class {
	const struct request *request;
	const struct pod_spec *pods;
	uint32_t count;
};

struct gang_spec {
	const struct gang_class *classes;
	uint32_t classes_count;
	uint8_t strategy;   /* enum strategy */
	uint8_t leaf_rules; /* enum gang_mode */
	uint8_t latency_sensitive;
	uint8_t level;		/* all members below one domain of this level (struct
				   * domain); 0: anywhere */
	uint8_t level_mode;	/* enum gang_mode; preferred widens level by level */
	const char *level_name; /* for people, "rack"; NULL: the level's number is said */
};

struct gang_member {
	uint32_t class_index, index; /* which pod of which class */
	uint32_t pod;		     /* its number while the plan is there */
	struct decision decision;
};

/* Begin with zero; may be used for any number of calls. */
struct gang_result {
	bool placed;
	struct plan *plan;	     /* open if placed, else NULL: commit it or roll it back */
	struct gang_member *members; /* class by class, in the order of the spec */
	uint32_t members_count;
	uint32_t *leaves; /* the domains that hold members, in the order of the tree */
	uint32_t leaves_count;
	uint32_t nodes_count;		    /* distinct nodes */
	uint32_t common;		    /* the smallest domain that holds them all */
	bool adjacent;			    /* its leaves follow each other below one spine */
	char reason[GANG_REASON_MAX];	    /* "" if placed, else one sentence for people */
	uint32_t refused_class;		    /* whose members the counts are about */
	uint32_t by_verdict[VERDICT_COUNT]; /* if not placed: nodes by what they say to one
					     * member; FITS are those with room for some */
	uint32_t members_room, leaves_room;
};

struct gang_planner;

struct gang_planner *gang_planner_new(struct engine *e); /* NULL: out of memory */
void gang_planner_free(struct gang_planner *g);		 /* NULL is fine */

/* 0 and ret->placed tells; -EINVAL a spec without members or beyond the limits; -EEXIST
 * a member is placed already; -ENOMEM.  No plan may be open before. */
int gang_plan(struct gang_planner *g, const struct gang_spec *spec, struct gang_result *ret,
	      struct err *err);

/* A member whose node or GPU failed; it is no longer placed in the cluster. */
struct gang_failed {
	const struct request *request;
	const struct pod_spec *pod;
	uint32_t leaf; /* where it was; DOMAIN_NONE: not known */
};

/* What is needed to put new members in the place of failed ones. */
struct gang_repair {
	const uint32_t *kept; /* pod numbers of the members that stay */
	uint32_t kept_count;
	const struct gang_failed *failed;
	uint32_t failed_count;
	uint8_t level; /* as in struct gang_spec */
	uint8_t level_mode;
	const char *level_name;
};

/* Places every failed member again and moves nothing else: in the leaf where it was,
 * then in a leaf that the gang uses already, then in one adjacent to it, then in one
 * adjacent to the gang, then in the smallest domain around the gang that has room; one
 * whose request is distributed where the fewest of the gang are, far from the others.  A
 * required level is kept; otherwise a replacement farther away is better than a gang
 * that stands still.  `members` of the result lists the failed ones in their order
 * (class_index 0), its leaves and nodes are those of the whole gang. */
int gang_replace(struct gang_planner *g, const struct gang_repair *repair, struct gang_result *ret,
		 struct err *err);

/* Frees what the result owns, not the plan; the result is zero again.  NULL is fine. */
void gang_result_done(struct gang_result *result);

#endif
