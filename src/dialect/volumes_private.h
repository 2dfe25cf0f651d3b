/* SPDX-License-Identifier: Apache-2.0 */
/* volumes_private.h - the volumes of a pod while it is being read; for the files volumes*.c and
 * around.c. */
#ifndef GS_DIALECT_VOLUMES_PRIVATE_H
#define GS_DIALECT_VOLUMES_PRIVATE_H

#include "dialect/draft.h"
#include "engine/rules.h"

#define CLAIMS_MAX     32    /* of one pod */
#define CANDIDATES_MAX 65536 /* volumes of its classes that could be bound */

/* A disk of a driver; driver "": none that counts. */
struct disk_name {
	const char *driver, *handle;
};

/* A claim without a volume, which gets one once a node is chosen. */
struct want {
	const char *name;
	const char *class_name;
	const struct json *class;
	const struct json *selector; /* of labels of volumes, or NULL */
	const char *attributes;	     /* volumeAttributesClassName, or "" */
	const char *uid;
	int64_t bytes;
	unsigned modes; /* access */
	bool block;
	bool sized;	      /* it says how much it wants */
	const char *node;     /* that was selected for it already, or NULL */
	bool promised;	      /* for another pod that is being bound */
	const char *reserved; /* name of the candidate that is kept for it, or NULL */
};

/* A volume that could be bound to one of the wants. */
struct candidate {
	const char *name;
	int64_t bytes;
	const struct node_group *where; /* NULL: anywhere */
	uint32_t wants;			/* set of those that it would do for */
	uint32_t round;			/* in which it was given away: volumes_pair() */
};

struct volumes {
	struct draft *draft;
	struct node_group *groups;
	uint32_t groups_count, groups_room;
	struct volume_use uses[RULES_ITEMS_MAX];
	struct disk_name disks[RULES_ITEMS_MAX]; /* of each use */
	uint32_t uses_count;
	struct want wants[CLAIMS_MAX]; /* the smallest first, once all are there */
	uint32_t wants_count;
	struct candidate *candidates; /* the smallest first */
	uint32_t candidates_count, candidates_room;
	uint32_t round;
};

/* volumes.c: the pod's volumes into the rules; nothing for most pods.  As dialect_read(). */
int read_volumes(struct draft *d, struct rules_spec *rules, struct err *err);
/* Once the rules are taken: what the claims are. */
int tell_volumes(struct draft *d, struct err *err);
/* Which claims wait for a node; without the pod's rules. */
int volumes_read_wants(struct draft *d, struct volumes *v, struct err *err);

/* A group more, to be filled in; NULL: out of memory. */
struct node_group *volumes_group(struct volumes *v, enum verdict refusal);

/* spec.nodeAffinity.required of a volume, copied into the arena; *ret NULL: anywhere. */
int volumes_where(struct draft *d, const struct json *volume, const struct node_group **ret,
		  struct err *err);

/* Copies the strings into the arena, so that the document may go.  0, -ENOMEM. */
int volumes_own(struct draft *d, struct match *matches, uint32_t count);

/* The name of its class, "" for none. */
const char *volumes_class(const struct json *object);
unsigned volumes_modes(const struct json *object); /* a set, of accessModes */
bool volumes_is_block(const struct json *object);

/* volumes_find.c: candidates for all wants; then the groups that the wants amount to. */
int volumes_find(struct volumes *v, struct err *err);
int volumes_demand(struct volumes *v, struct err *err);
/* Of one want; `existing`: a volume that is there will do, too. */
int volumes_demand_want(struct volumes *v, uint32_t i, bool existing, struct err *err);

/* volumes_pair.c: gives every want of the set, the smallest first, the smallest candidate that
 * is left of the list (numbers in ascending order).  ret[i]: that of want i, or NULL. */
void volumes_pair(struct volumes *v, uint32_t wants, const uint32_t *list, uint32_t count,
		  const struct candidate *ret[CLAIMS_MAX]);
/* The terms of nodes on which want `i` gets a volume that exists.  *always: on every node. */
int volumes_terms(struct volumes *v, uint32_t i, const struct node_term **ret, uint32_t *count,
		  bool *always, struct err *err);

/* volumes_disk.c: what a claim is, by its volume or its class; "" if it is not there. */
struct disk_name disk_of_claim(const struct dialect_lookup *lookup, const char *namespace,
			       const char *name, struct arena *arena);
/* A volume that the pod names without a claim: what it attaches, and the disks (at most `max`
 * keys) that it cannot share.  Returns how many. */
uint32_t disks_of_volume(struct draft *d, const struct json *volume, struct disk_name *attached,
			 struct volume_use *ret, uint32_t max);

#endif
