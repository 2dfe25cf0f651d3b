/* SPDX-License-Identifier: Apache-2.0 */
/* soft.h - what a pod would rather have, where several nodes fit.
 *
 * A preference decides between nodes that fit and never whether one does.  Its terms are
 * preferred node affinity, preferred pod affinity and anti-affinity, and topology spread with
 * ScheduleAnyway; taints with the effect PreferNoSchedule count for every pod that does not
 * tolerate them.  Pods that are there have preferences about those that come: what they would
 * rather have near or far, and one point for each required affinity.
 *
 * The figures and weights are those of kube-scheduler's TaintToleration (3), NodeAffinity,
 * PodTopologySpread and InterPodAffinity (2 each) scores.  Each is normalised to 0..100 over
 * the nodes that are compared; where kube-scheduler compares all nodes that fit, here it is the
 * best few of them (prefer.h).  The domains of a spread are all that count for it.
 *
 * Each term is kept as a set of rules of its own (rules.h), which serves twice: its counters
 * give the figures, and a request may *demand* terms, for which they then are rules.  So the
 * index finds nodes that are preferred without a look at all others.  Interned and counted
 * like rules; requests name them by number, outside the class.
 */
#ifndef GS_ENGINE_SOFT_H
#define GS_ENGINE_SOFT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/rules.h"

#define SOFT_TERMS_MAX	64
#define SOFT_WEIGHT_MAX 100
#define SOFT_TRIED	6 /* terms that are tried as rules, the heaviest */
#define SOFT_POINTS_MAX 900

/* request.demand: bit i is the i-th term that is tried; and no taint that discourages. */
#define DEMAND_TAINTS (UINT32_C(1) << 31)

enum soft_kind {
	SOFT_NODE,   /* rules: one group */
	SOFT_NEAR,   /* one term of `near` */
	SOFT_APART,  /* one term of `apart` */
	SOFT_SPREAD, /* all of `spread`, with the groups of the pod; its weight does not count */
	SOFT_DRAWN,  /* one term of `near` that is required: for those who come later */
};

struct soft_term_spec {
	struct rules_spec rules; /* the term alone, as a rule */
	uint8_t kind;		 /* enum soft_kind */
	uint8_t weight;		 /* 1..SOFT_WEIGHT_MAX */
};

/* The number of the preferences, counted once more; 0 if there are no terms.  Errors as
 * rules_take(); -EINVAL also for more than SOFT_TERMS_MAX. */
int soft_take(struct cluster *c, const struct soft_term_spec *terms, uint32_t count,
	      uint32_t *ret);
/* Counts one user more, or less; 0 is fine. */
void soft_hold(struct cluster *c, uint32_t soft);
void soft_release(struct cluster *c, uint32_t soft);

/* Another number for every set of preferences there ever was. */
uint64_t soft_serial(const struct cluster *c, uint32_t soft);

/* Whether any preference, its own or another's, could tell nodes apart for this request. */
bool soft_matters(const struct cluster *c, const struct request *r);

/* Whether that can only be taints that discourage. */
bool soft_taints_alone(const struct cluster *c, const struct request *r);

/* Every demand that the request could make. */
uint32_t soft_demands(const struct cluster *c, const struct request *r);
/* Whether what it demands looks at the node's labels or name; at the pods that are there. */
bool soft_of_nodes(const struct cluster *c, const struct request *r);
bool soft_of_pods(const struct cluster *c, const struct request *r);
/* What it demands, as rules_fit_node() and rules_fit_pods() have it; FITS if it demands
 * nothing.  Of taints see assign_state(). */
enum verdict soft_fit_node(const struct cluster *c, const struct request *r, uint32_t node);
enum verdict soft_fit_pods(const struct cluster *c, const struct request *r, uint32_t node);

/* A node's figures before they are normalised. */
struct soft_mark {
	uint32_t taints;   /* that discourage */
	uint32_t affinity; /* sum of the weights of node terms that hold */
	int64_t spread;	   /* the greater the less even; -1: the node lacks a label */
	int64_t pods;	   /* weights of pods near that are wanted, less those that are not */
};

void soft_mark(const struct cluster *c, const struct request *r, uint32_t node,
	       struct soft_mark *ret);
/* Points of each, 0..SOFT_POINTS_MAX, among these. */
void soft_points(const struct cluster *c, const struct request *r, const struct soft_mark *marks,
		 uint32_t count, int32_t *ret);

#endif
