/* SPDX-License-Identifier: Apache-2.0 */
/* victims.h - the cheapest pods to take off one node so that a request fits there.
 *
 * Used by preempt.c and preempt_gang.c.  Trials happen on a copy of the node, by the
 * functions that keep the real one; the cluster is only read, and must not change while
 * this is in use.
 *
 * A unit is what is evicted together: a pod, or all pods of a gang.
 */
#ifndef GS_ENGINE_VICTIMS_H
#define GS_ENGINE_VICTIMS_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "engine/preempt.h"

#define VICTIMS_END UINT32_MAX

/* Below, at or above 0 as `a` is below, equal to or above `b`. */
#define VICTIMS_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* What evicting a unit gives to the node, at most. */
enum victims_kind {
	FREES_GPUS,
	FREES_CPU,
	FREES_MEMORY,
	FREES_EPHEMERAL,
	FREES_PODS,
	FREES_COUNT
};

/* All that is known of a gang, wherever its pods are. */
struct victims_gang {
	uint32_t gang;
	bool kept;    /* it has a pod that may not be evicted */
	bool evicted; /* already, for another node: costs nothing more */
	struct preempt_cost cost;
	struct victims_spent *spent; /* budgets of its pods, or NULL */
};

/* One of a list. */
struct victims_spent {
	uint32_t budget;
	struct victims_spent *next;
};

struct victims_unit {
	struct preempt_cost cost;  /* violations: of the unit alone */
	struct victims_gang *gang; /* or NULL */
	uint32_t budget;	   /* of a pod without gang; 0: none */
	const char *uid;	   /* the first of its pods on this node, in order */
	uint64_t core_milli;	   /* GPU that it holds here */
	int64_t frees[FREES_COUNT];
	uint32_t first; /* of its pods on this node: victims.pods, or VICTIMS_END */
	bool helps;	/* it holds something of what is short */
	bool taken;	/* in the set that is being looked at */
	bool guarded;	/* it is to be spared for the sake of a budget */
};

struct victims_pod {
	uint32_t pod;
	uint32_t next; /* of the same unit, or VICTIMS_END */
};

struct victims {
	const struct cluster *cluster;
	int32_t priority;
	struct arena arena;
	struct map gangs;    /* number -> struct victims_gang */
	VEC(uint32_t) spent; /* of each budget, by those who are evicted already */

	/* of the node that was loaded last */
	uint32_t node;
	const struct request *const *members; /* that are to fit on it, borrowed */
	uint32_t members_count;
	int64_t lacks[FREES_COUNT]; /* above 0: so much is missing */
	VEC(struct victims_pod) pods;
	VEC(struct victims_unit) units; /* least important first */
	uint32_t gone;			/* list of pods of gangs that are evicted already */
	bool by_budgets;		/* a unit is of a budget */

	struct node trial;
	struct gpu gpus[GPU_MAX];
	VEC(struct extended) extended;
	bool by_pods;	       /* members have rules about pods: any of them may be in the way */
	VEC(uint32_t) without; /* pods that the trial takes as gone */
	VEC(struct victims_unit *) order;
};

/* Whether a node that refused the request so may take it after evictions.  What is said of
 * the models may depend on where earlier asks of the same pod went, so with several asks
 * that refusal is not final. */
static inline bool victims_may_help(const struct request *r, enum verdict v)
{
	return verdict_curable(v) || (v == WRONG_MODEL && r->asks_count > 1);
}

/* A limit that every set of victims is below. */
extern const struct preempt_cost victims_no_limit;

/* But for budgets, which are a matter of all victims together. */
struct preempt_cost victims_pod_cost(const struct pod *pod);

/* victims_budgets.c: the budget of the pod, or 0. */
uint32_t victims_budget_of(const struct victims *v, const struct pod *pod);
int victims_budgets_init(struct victims *v); /* 0 or -ENOMEM */
/* Counts a unit among those who go, and takes that back: how many of its pods are too many. */
uint32_t victims_spend(struct victims *v, const struct victims_unit *unit);
void victims_unspend(struct victims *v, const struct victims_unit *unit);
/* How many of these are too many, after those who are evicted already. */
uint32_t victims_violations(struct victims *v, const uint32_t *pods, size_t count);
/* Has those guarded, too, of whose budget there are more on the node than it allows; false if
 * there are none. */
bool victims_guard(struct victims *v);

/* 0 or -ENOMEM; in both cases victims_done() is due. */
int victims_init(struct victims *v, const struct cluster *c, int32_t priority);
void victims_done(struct victims *v); /* NULL is fine */

/* No pod of that gang is a victim (0: none): others are evicted for it. */
void victims_keep(struct victims *v, uint32_t gang);
/* What is known of the pod's gang, which it must have. */
struct victims_gang *victims_gang_of(const struct victims *v, const struct pod *pod);

/* Reads the units of the node, none taken.  0 or -ENOMEM. */
int victims_load(struct victims *v, uint32_t node, const struct request *const *members,
		 uint32_t members_count);

/* What the engine would decide for the node once these pods are gone.  0; -ENOENT: it still does
 * not fit; -ENOMEM. */
int preempt_decide_without(struct engine *e, const struct request *r, uint32_t node,
			   const uint32_t *pods, size_t count, struct decision *ret);

/* Most important first. */
void preempt_sort_pods(const struct cluster *c, uint32_t *pods, uint32_t count);

/* Orders units, for qsort(): the least important first. */
int victims_unit_compare(const void *a, const void *b);

/* A cost that no set of units which helps can be below; false if none helps for certain. */
bool victims_bound(const struct victims *v, struct preempt_cost *ret);

/* Whether all members fit without the units that are taken. */
bool victims_fit(struct victims *v);

/* Takes the cheapest set of units that helps.  False if there is none that is cheaper than
 * *limit (or equal, if or_equal).  `*ret` is its cost. */
bool victims_search(struct victims *v, const struct preempt_cost *limit, bool or_equal,
		    struct preempt_cost *ret);

#endif
