/* SPDX-License-Identifier: Apache-2.0 */
/* rules_private.h - how rules are kept, for the files rules*.c and those that keep pods and
 * nodes.
 *
 * Everything is found by its bytes: a subject, a selector and a set of rules are each
 * written down in one canonical way (rules_bytes.c), and equal bytes are one record.
 */
#ifndef GS_ENGINE_RULES_PRIVATE_H
#define GS_ENGINE_RULES_PRIVATE_H

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "engine/record.h"
#include "engine/rules.h"
#include "engine/soft.h"
#include "engine/tally.h"
#include "engine/volumes_private.h"

struct node;
struct pod;

struct subject {
	struct record record;
	numbers selectors; /* that match it */
};

struct selector {
	struct record record;
	numbers counters;
	uint32_t held;	  /* pods placed that keep away from what it matches */
	uint32_t leaning; /* that would rather have it near, or far */
};

enum counter_kind {
	COUNT_MATCHING, /* pods that the selector matches */
	COUNT_HOLDERS,	/* pods that keep away from those */
	COUNT_SPREAD,	/* like matching: alive, and on nodes that count for its rules */
	COUNT_LEANING,	/* pods that would rather have those near, or far: soft.h */
};

struct counter {
	uint32_t selector, refs;
	uint32_t wanted; /* rules that want such pods near */
	uint32_t rules;	 /* COUNT_SPREAD: whose nodes count */
	int32_t lean;	 /* COUNT_LEANING: what each such pod weighs */
	uint8_t kind;
	char *key;
	uint32_t key_id, strings_seen;
	struct tally tally;
	/* COUNT_SPREAD: */
	bool ignore_affinity, honor_taints;
	uint8_t *eligible; /* by node: it counts */
	uint32_t eligible_len;
};

struct spread_state {
	uint32_t counter;
	uint32_t max_skew, min_domains;
	bool itself; /* counts itself although its selector counts nobody */
};

struct rules {
	struct record record;
	VEC(uint32_t) program; /* node groups with their strings as numbers */
	uint32_t strings_seen;
	bool unknown; /* a string of the program was not known then */
	uint32_t groups;
	uint32_t near_selector; /* 0: none */
	numbers near;		/* counters, one for each topology key */
	numbers apart, holds;	/* counters of both kinds */
	VEC(struct spread_state) spread;
	struct host_port *ports;
	uint32_t ports_count;
	struct volume_ref *volumes;
	uint32_t volumes_count;
	struct toleration *tolerations;
	uint32_t tolerations_count;
};

struct soft_term {
	uint32_t rules; /* the term as a rule */
	uint8_t kind;	/* enum soft_kind */
	uint8_t weight;
};

struct soft {
	struct record record;
	VEC(struct soft_term) terms; /* those to try as rules first, the heaviest first */
	numbers leans;		     /* counters that a placed pod is in */
};

struct rules_table {
	struct record_table subject_ids, selector_ids, rules_ids, soft_ids;
	VEC(struct subject) subjects;
	VEC(struct selector) selectors;
	VEC(struct rules) rules;
	VEC(struct counter) counters;
	VEC(struct soft) softs;
	uint32_t shunned; /* nodes with a taint of effect PreferNoSchedule */
	numbers free_counters;
	struct map namespaces; /* name -> struct namespace_labels */
	struct volumes_table volumes;
	struct strbuf scratch;
	uint64_t loosened, serials;
};

int rules_init(struct cluster *c);
void rules_done(struct cluster *c);
int soft_init(struct cluster *c);
void soft_done(struct cluster *c); /* part of rules_done(), as its init of rules_init() */

/* rules.c: a counter for a list, which holds its selector; and all of a list gone. */
int counters_add(struct cluster *c, struct counter *like, numbers *list);
void counters_drop(struct cluster *c, numbers *list);

/* rules_bytes.c: writing down, reading again. */
struct cursor {
	const char *at, *end;
};
int bytes_subject(struct strbuf *out, const char *namespace, const struct pod_label *labels,
		  uint32_t count);
/* All of the terms at once: a pod matches if it matches each. */
int bytes_selector(struct strbuf *out, const struct pod_term *terms, uint32_t count);
int bytes_spread_selector(struct strbuf *out, const char *namespace,
			  const struct spread_rule *rule);
int bytes_rules(struct strbuf *out, const struct rules_spec *spec);
uint32_t cursor_u32(struct cursor *c);
const char *cursor_str(struct cursor *c);

/* rules_match.c */
bool selector_matches(const struct cluster *c, const struct selector *s,
		      const struct subject *subject);
int program_compile(const struct cluster *c, struct rules *r);
/* Once more, because there are new strings: needs no memory. */
void program_refresh(const struct cluster *c, struct rules *r);
/* `own_only`: without the groups of volumes. */
enum verdict program_fit(const struct cluster *c, const struct rules *r, const struct node *n,
			 bool own_only);

/* rules_count.c */
/* `like` says selector, kind and key, and for even spread the rest; its strings are copied. */
int counter_take(struct cluster *c, const struct counter *like, uint32_t *ret);
/* Counts for the first time a counter of even spread, once its rules are whole. */
int counter_fill(struct cluster *c, uint32_t counter);
void counter_release(struct cluster *c, uint32_t counter);
/* The node's value of the counter's key; false if it has none. */
bool counter_value(const struct cluster *c, const struct counter *counter, const struct node *n,
		   uint32_t *ret);
/* How often the counter has counted this pod of the node: 0, or 1 (holders: for each of its
 * terms). */
uint32_t counter_weight(const struct cluster *c, const struct counter *k, const struct pod *pod,
			uint32_t node);
/* The pod into the selector's counters (sign 1) or out of them; 0 or -ENOMEM. */
int rules_pod_count(struct cluster *c, const struct pod *pod, uint32_t selector, int sign);
/* A pod comes (0 or -ENOMEM and nothing has changed), goes, or begins to end. */
int rules_pod_enter(struct cluster *c, const struct pod *pod, uint32_t node);
void rules_pod_leave(struct cluster *c, const struct pod *pod, uint32_t node);
void rules_pod_ending(struct cluster *c, const struct pod *pod);
/* A node comes or goes, with the pods that are on it; a change is both. */
/* Memory for a node with that many pods, so that entering cannot fail: 0 or -ENOMEM. */
int rules_node_reserve(struct cluster *c, uint32_t node, uint32_t pods);
void rules_node_enter(struct cluster *c, uint32_t node);
void rules_node_leave(struct cluster *c, uint32_t node);

/* selectors of a subject */
bool subject_has(const struct cluster *c, uint32_t subject, uint32_t selector);
struct namespace_labels {
	char *name;
	char *bytes; /* as a subject's labels */
	uint32_t len;
};
void namespace_free(struct namespace_labels *n);

#endif
