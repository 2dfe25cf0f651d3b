/* SPDX-License-Identifier: Apache-2.0 */
/* volumes_private.h - how volumes are kept, for volumes*.c and rules*.c. */
#ifndef GS_ENGINE_VOLUMES_PRIVATE_H
#define GS_ENGINE_VOLUMES_PRIVATE_H

#include "base/map.h"
#include "base/vec.h"
#include "engine/record.h"
#include "engine/rules.h"
#include "engine/volumes.h"

struct pod;
struct rules;

struct volume { /* a claim, or a disk that only one pod of a node may use */
	struct record record;
	uint32_t pods; /* placed, that use it */
	uint32_t disk; /* that it is, or 0 */
};

struct disk {
	struct record record; /* driver, handle, both with their NUL */
	uint32_t driver;      /* cluster_intern() */
	uint64_t seen;	      /* in which look at a node: see volumes_attach.c */
};

struct limit {
	uint32_t driver, count;
	uint32_t used; /* in the look at a node that is under way */
};

struct node_volumes {
	char *name;
	VEC(struct limit) limits;
	numbers disks; /* attached, one entry for each attachment */
};

struct attachment {
	char *name;
	struct node_volumes *node;
	uint32_t disk;
};

struct volumes_table {
	struct record_table volume_ids, disk_ids;
	VEC(struct volume) volumes;
	VEC(struct disk) disks;
	struct map nodes;	/* name -> struct node_volumes */
	struct map attachments; /* name -> struct attachment */
	uint64_t looks;
};

struct volume_ref {
	uint32_t volume;
	uint8_t kind; /* enum volume_kind */
};

int volumes_init(struct cluster *c);
void volumes_done(struct cluster *c);

/* The volumes of new rules, and of those that go. */
int volumes_take(struct cluster *c, uint32_t rules, const struct rules_spec *spec);
void volumes_drop(struct cluster *c, struct rules *r);
/* A pod with these rules is placed (sign 1) or taken off. */
void volumes_used(struct cluster *c, const struct pod *pod, int sign);

/* The pods that are there, but for those `without`: FITS, DISK_IN_USE, CLAIM_IN_USE or
 * TOO_MANY_VOLUMES. */
enum verdict volumes_fit(const struct cluster *c, const struct rules *r, uint32_t node,
			 const uint32_t *without, uint32_t without_count);

/* The disk's number, used once more; 0: out of memory. */
uint32_t disk_take(struct cluster *c, const char *driver, const char *handle);
void disk_release(struct cluster *c, uint32_t disk);
void attachments_done(struct cluster *c);
/* Whether the node can attach what the rules need more. */
bool disks_attachable(const struct cluster *c, const struct rules *r, uint32_t node,
		      const uint32_t *without, uint32_t without_count);

#endif
