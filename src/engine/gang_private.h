/* SPDX-License-Identifier: Apache-2.0 */
/* gang_private.h - the planner, for the gang_*.c files.
 *
 * gang_room.c     how many members a node, a leaf, a domain has room for
 * gang_windows.c  runs of adjacent domains, and the fewest domains, that hold it
 * gang_domains.c  which of these to try, best first
 * gang_distribute.c  the same for strategy distributed
 * gang_fill.c     the members onto the nodes of the leaves that were chosen
 * gang_reason.c   why nothing was found
 * gang.c          the entry and the result;  gang_replace.c  after failures
 *
 * The main class is the one with the largest members: leaves are chosen for it, and for
 * the volume of GPU that all classes book.  The other classes follow into the same
 * leaves; if they do not fit there, the next best leaves are tried.
 *
 * A place is what holds nodes: a leaf (its domain number), or the nodes directly in a
 * domain that has others below it (the domain's number + the number of domains).
 */
#ifndef GS_ENGINE_GANG_PRIVATE_H
#define GS_ENGINE_GANG_PRIVATE_H

#include "base/vec.h"
#include "engine/gang.h"

#define GANG_MEMO      4096	  /* states of nodes remembered in one call */
#define GANG_TRIES_MAX 256	  /* sets of leaves that are filled in vain, in one call */
#define GANG_TRIES_MIN 8	  /* for the largest gangs */
#define GANG_WORK_MAX  (1u << 17) /* members placed in vain, in one call, about */

/* Of one domain or place, in this call. */
struct gang_room {
	uint32_t stamp;		/* figures are of the call with this number */
	uint32_t members;	/* what the gang may put there; a bound until exact */
	uint32_t free_members;	/* without max_nodes_per_leaf and max_gpus_per_leaf */
	uint32_t empty_members; /* if nothing ran there; UINT32_MAX: not known yet */
	uint32_t first, count;	/* places: their spots, the roomiest first */
	bool exact;
};

/* A node that has room for members. */
struct gang_spot {
	uint64_t rank;
	uint32_t node;
	uint32_t room;
	uint32_t target; /* members it is to get */
	uint32_t leaf;	 /* index in the chosen leaves */
	uint32_t idle_gpus;
};

struct gang_memo {
	uint32_t stamp, bucket;
	uint32_t verdict, empty_verdict; /* UINT32_MAX: not known yet, as the next two */
	uint32_t room, empty_room;
};

/* Consecutive children of one domain, with what they are compared by. */
struct gang_window {
	bool found, exact, outside; /* outside: not below the preferred domain */
	uint32_t start, length;
	uint32_t nodes; /* the fewest that hold the gang */
	uint64_t left;	/* room left over */
	uint64_t free_milli, parent_free_milli;
	uint64_t neighbours; /* room of the leaves beside it */
};

/* A domain whose children may hold the gang. */
struct gang_parent {
	uint32_t domain; /* DOMAIN_NONE: the only child is the scope, a leaf */
	uint8_t level;
	bool dead;	       /* found unfit */
	bool visited;	       /* rooms below its children are exact */
	uint8_t visits;	       /* to some of them */
	uint32_t units_needed; /* any children: how many; 0: they have no room */
	struct gang_window best;
};

struct gang_unit {
	uint32_t place; /* place, or a domain with others below it */
	uint32_t members;
	uint32_t turn; /* distributed: among its siblings */
	bool kept;     /* has to be among the fewest */
	uint64_t volume_milli;
};

struct gang_ban {
	uint32_t domain, start, length;
};

/* A leaf that was chosen. */
struct gang_leaf {
	uint32_t place;
	uint32_t quota;
	uint32_t first, count; /* its spots in `picks` */
	uint32_t room;
	uint32_t nodes; /* used by the gang */
	uint64_t used_milli;
};

struct gang_planner {
	struct engine *engine;
	struct cluster *cluster;

	const struct gang_spec *spec;
	const struct request *request; /* of the main class */
	uint32_t main_class;
	uint32_t class_order[GANG_CLASSES_MAX]; /* the largest first */
	uint32_t class_first[GANG_CLASSES_MAX]; /* its first member in the result */
	uint32_t members;			/* of the main class */
	uint32_t all_members;
	uint32_t member_milli;
	uint32_t empty_need;   /* the gang's volume in members of the main class */
	uint64_t volume_milli; /* of all classes; 0 if there is one: rooms say it all */
	uint32_t whole_gpus;   /* of a member of the main class */
	uint32_t node_members; /* that an empty node takes; known when a reason is given */
	uint32_t leaf_nodes_max, leaf_members_max;
	uint64_t leaf_milli_max;
	uint32_t scope, prefer;
	uint32_t level; /* required; 0: none */
	bool rules_required, single_leaf;
	bool plain; /* place as probed, without the scorer's choice of cards */
	uint32_t tries, tries_max;
	uint32_t stamp;
	int failure; /* first error of a callee, 0: none */

	struct plan *plan;
	struct gang_result *result;

	VEC(struct gang_room) rooms; /* by place */
	VEC(struct gang_spot) spots;
	VEC(struct gang_spot) picks;
	VEC(struct gang_spot) others; /* nodes for classes but the main one */
	VEC(struct gang_parent) parents;
	VEC(struct gang_unit) units;
	VEC(struct gang_ban) bans;
	VEC(struct gang_leaf) leaves;
	VEC(uint32_t) nodes_by_room;
	VEC(uint32_t) node_stamp; /* by node: used by the gang in this try */
	uint32_t node_stamp_now;
	uint32_t top_room;
	struct gang_memo memo[GANG_MEMO];
};

/* gang_room.c */
/* What the node says to one member of the main class. */
enum verdict gang_node_verdict(struct gang_planner *g, uint32_t node);
/* The same if nothing ran there. */
enum verdict gang_empty_verdict(struct gang_planner *g, uint32_t node);
/* Whether all nodes together have room for the main class, were it alone. */
bool gang_class_fits(struct gang_planner *g);
struct gang_room *gang_room(struct gang_planner *g, uint32_t place);
/* Visits the nodes below, once in a call. */
struct gang_room *gang_room_exact(struct gang_planner *g, uint32_t place);
/* Members below the place if nothing ran there. */
uint32_t gang_room_empty(struct gang_planner *g, uint32_t place);
uint32_t gang_node_room(struct gang_planner *g, uint32_t node);
/* Members that one empty node takes, of the roomiest node in the scope. */
uint32_t gang_empty_node_room(struct gang_planner *g);
/* Adds the nodes of a place or domain to the histogram nodes_by_room (sign 1), or takes
 * them off (-1); then the fewest nodes in it that hold the main class. */
void gang_histogram(struct gang_planner *g, uint32_t place, int sign);
uint32_t gang_fewest_nodes(const struct gang_planner *g);
uint64_t gang_volume(const struct gang_planner *g, uint32_t place);
/* GPU that a request books, without slices, whose share of a card is not always known. */
uint32_t gang_request_milli(const struct request *r);

static inline uint32_t gang_place_domain(const struct gang_planner *g, uint32_t place)
{
	uint32_t domains = cluster_domains(g->cluster);

	return place < domains ? place : place - domains;
}

/* True if it holds nodes, false if it is a domain with others below it. */
static inline bool gang_is_place(const struct gang_planner *g, uint32_t place)
{
	return place >= cluster_domains(g->cluster) ||
	       cluster_domain(g->cluster, place)->first_child == DOMAIN_NONE;
}

/* The domain that follows in the order of the tree inside `top`, not going below
 * `domain` unless `down`; DOMAIN_NONE after the last. */
uint32_t gang_domain_next(const struct cluster *c, uint32_t domain, uint32_t top, bool down);
/* Whether a comes before b in the order of the tree. */
bool gang_domain_before(const struct cluster *c, uint32_t a, uint32_t b);
uint32_t gang_domain_common(const struct cluster *c, uint32_t a, uint32_t b);

/* gang_windows.c.  Units are the domains or places between which is chosen. */
/* The children of a parent into g->units; one more unit.  0 or g->failure. */
int gang_units(struct gang_planner *g, uint32_t domain);
int gang_unit_add(struct gang_planner *g, uint32_t place);
bool gang_enough(const struct gang_planner *g, uint64_t members, uint64_t volume_milli);
/* Length of the shortest run of units that holds the gang; 0: there is none. */
uint32_t gang_window_shortest(const struct gang_planner *g);
/* The best run of that length among the children of `domain`, which are the units. */
struct gang_window gang_window_best(struct gang_planner *g, uint32_t domain, uint32_t length);
bool gang_window_better(const struct gang_window *a, const struct gang_window *b);
bool gang_below_preferred(const struct gang_planner *g, uint32_t place);
/* Less is better: -1, 0 or 1. */
int gang_order(uint64_t a, uint64_t b);
/* Units to the fewest that hold the gang; false if all together do not. */
bool gang_fewest(struct gang_planner *g);
/* The fewest adjacent children that would hold the gang if nothing ran there, 0 if not
 * even all of them do. */
uint32_t gang_ideal(struct gang_planner *g, uint32_t domain);
/* A domain of the level that could hold the gang if nothing ran there. */
bool gang_level_holds(struct gang_planner *g, uint32_t level);
/* The deepest level that has a domain with others below it, in the scope. */
uint32_t gang_deepest(const struct gang_planner *g);

/* gang_domains.c: true if the gang is in the open plan. */
bool gang_choose(struct gang_planner *g);

/* gang_distribute.c: the same for strategy distributed. */
bool gang_distribute(struct gang_planner *g);

/* gang_fill.c: the gang into the places of g->units, each of which has nodes.  False:
 * not all members fit, nothing is placed. */
bool gang_fill(struct gang_planner *g);
/* Places one pod where `d` says, in the open plan, and notes it in the result. */
int gang_place_member(struct gang_planner *g, const struct pod_spec *pod, const struct request *r,
		      uint32_t node, struct gang_member *ret);

/* gang.c */
/* Reads the spec and makes the scratch ready; 0 or -ENOMEM. */
int gang_begin(struct gang_planner *g, const struct gang_spec *spec, struct gang_result *ret);
void gang_result_clear(struct gang_planner *g, struct gang_result *ret);
/* Leaves, nodes and common domain of the members, and of the `kept` pods. */
int gang_result_finish(struct gang_planner *g, const uint32_t *kept, uint32_t kept_count);
/* Hands over the plan, or after a failure rolls it back and says so. */
int gang_result_end(struct gang_planner *g, struct err *err);

/* gang_reason.c */
void gang_say_why(struct gang_planner *g);

#endif
