/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.h - who uses which volume, and how many of them a node can attach.
 *
 * Rules (rules.h) name volumes by their claims.  What a claim is - the disk of a driver that
 * has this handle - is told here, and again whenever that changes: no pod has to be read
 * again for it.  A claim is known as long as some pod's rules name it.
 *
 * A node attaches only so many disks of a driver.  Those that its pods use count, once each,
 * and those that are attached though no pod uses them (any more).  Nodes are named by name,
 * and need not be there yet.
 */
#ifndef GS_ENGINE_VOLUMES_H
#define GS_ENGINE_VOLUMES_H

#include <stdint.h>

struct cluster;

struct attach_limit {
	const char *driver;
	uint32_t count;
};

/* The claim ("namespace/name") is that disk; driver "": none that is counted.  0, also where
 * nobody uses the claim; -ENOMEM. */
int volumes_tell(struct cluster *c, const char *claim, const char *driver, const char *handle);

/* How many disks of which driver the node can attach: all that is known of it; a driver that is
 * not among them has no limit.  0, -ENOMEM. */
int volumes_limit(struct cluster *c, const char *node, const struct attach_limit *limits,
		  uint32_t count);

/* That disk is attached to the node, until volumes_detach() of the same name.  One that is
 * there already is replaced.  0, -ENOMEM. */
int volumes_attach(struct cluster *c, const char *attachment, const char *node, const char *driver,
		   const char *handle);
void volumes_detach(struct cluster *c, const char *attachment); /* fine if it is not there */

#endif
