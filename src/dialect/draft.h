/* SPDX-License-Identifier: Apache-2.0 */
/* draft.h - a wish while it is being read; for the files of this folder only.
 *
 * Each file adds what its part of the pod says, in the order of dialect.c, and
 * complains where an earlier part said something else.  All return 0 or as
 * dialect_read().
 */
#ifndef GS_DIALECT_DRAFT_H
#define GS_DIALECT_DRAFT_H

#include <stddef.h>

#include "base/attr.h"
#include "dialect/dialect.h"

#define DRAFT_KEYS_MAX 8

struct draft {
	struct cluster *cluster;
	const struct dialect_lookup *lookup;
	const struct pod_source *source;
	struct arena *arena;
	struct wish *wish;
	struct request *request;  /* &wish->request */
	const char *asked_by;	  /* who asked for GPUs first, for messages */
	bool asked_by_many;	  /* it is a plural */
	const char *gang_ref;	  /* of the claim, or NULL */
	int64_t gang_min_members; /* of the claim, or 0 */
	bool topology;		  /* speaks the topology dialect */
	bool leaves_required;
	struct volumes *volumes; /* that were read, to be told to the engine; or NULL */
	bool resident;		 /* it is there already: what cannot be read is left out */
};

int read_facts(struct draft *d, struct err *err);  /* dialect.c: names, priority */
int read_form(struct draft *d, struct err *err);   /* form.c: is it well-formed? */
int read_needs(struct draft *d, struct err *err);  /* needs.c: CPU, memory, others */
int read_place(struct draft *d, struct err *err);  /* place.c: labels, taints */
int read_around(struct draft *d, struct err *err); /* around.c: rules about nodes and pods */
/* soft.c: what it would rather have */
int read_soft(struct draft *d, const struct json *spec, struct err *err);
int read_limits(struct draft *d, struct err *err);   /* resources.c */
int read_claim(struct draft *d, struct err *err);    /* claim.c */
int read_topology(struct draft *d, struct err *err); /* topology.c */
int read_map(struct draft *d, struct err *err);	     /* pin.c */
int read_gang(struct draft *d, struct err *err);     /* group.c */

/* An ask that the caller fills in, for the containers that have no GPUs yet: all of
 * them.  NULL with err set when there are too many asks. */
struct ask *draft_ask_for_all(struct draft *d, enum ask_kind kind, uint8_t count, struct err *err);

/* A new ask; NULL with err set when there are too many. */
struct ask *draft_ask(struct draft *d, enum ask_kind kind, uint8_t count, struct err *err);

/* The last ask, a share of one card, becomes a part of an earlier one, which is then for the
 * containers of both.  Their sum must fit a card. */
void draft_merge_last(struct draft *d, unsigned into);

/* Cards that the pod asks for, slices counted as one each. */
uint32_t draft_cards(const struct draft *d);

/* The first of the kinds that are asked for which is not `kind`, or 0. */
enum ask_kind draft_other_kind(const struct draft *d, enum ask_kind kind);
const char *draft_kind_name(enum ask_kind kind); /* "whole GPUs" */

/* "ask" or "asks", as goes with asked_by. */
const char *draft_ask_verb(const struct draft *d);

/* The node must have this label.  -EINVAL when another value is asked for already. */
int draft_select(struct draft *d, const char *key, const char *value, struct err *err);

/* The pod must go to this node.  `who` says so. */
int draft_pin_node(struct draft *d, const char *node, const char *who, struct err *err);

/* The one of at most DRAFT_KEYS_MAX keys that was meant by a mistyped one of the same
 * prefix (all before the slash), or NULL. */
const char *draft_nearest_key(const char *key, const char *const *known, size_t count);

/* An annotation of the pod. */
const char *draft_annotation(const struct draft *d, const char *key);

/* Memory of the arena in the manner of printf; NULL if there is none. */
char *draft_printf(const struct draft *d, const char *format, ...) PRINTF(2, 3);

/* Messages quote what users wrote; terminals and logs must not take orders from it. */
void draft_make_plain(char *text);

#endif
