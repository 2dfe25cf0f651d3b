/* SPDX-License-Identifier: Apache-2.0 */
/* volume_bind.h - volumes for claims that wait for their first consumer, before the pod is bound.
 *
 *	volume_reserve(binder, pod, node, &binding, &err);	decided: what was chosen is promised
 *	volume_bind(binding, done, context);			locked: written, and waited for
 *	volume_binding_free(binding);				after done(), or to give it up
 *
 * A volume that exists gets the claim's name, one that is to be made gets the node's, written
 * to the claim; each write is a patch that holds only for the version that was decided on.
 * Then the controllers of volumes do their part, and done() comes when every claim is bound; or
 * when it will not be: the claim or the volume was taken away, the provisioner has given up
 * (it removes the node's name again), or all that took too long.  What was written stays, as
 * with kube-scheduler: the next decision begins with it.
 *
 * Pods that share such a claim and are decided together (a gang) follow the first of them: its
 * node is the one that counts, the others wait until the claim is bound, and can go on if the
 * volume is for their nodes, too.
 *
 * Used by the loop's thread alone.  Memory goes with the bindings under way.
 */
#ifndef GS_SCHEDULER_VOLUME_BIND_H
#define GS_SCHEDULER_VOLUME_BIND_H

#include <stdbool.h>
#include <stdint.h>

struct clock;
struct cluster;
struct err;
struct kube_client;
struct kube_object;
struct log;
struct lookup;
struct volume_binder;
struct volume_binding; /* of one pod */

struct volume_binder_options {
	struct kube_client *client;
	const struct clock *clock;
	const struct log *log;
	struct lookup *lookup;
	struct cluster *cluster;
	uint32_t timeout_ms; /* of all of a pod's volumes; 0: 10 min */
};

int volume_binder_new(const struct volume_binder_options *options, struct volume_binder **ret,
		      struct err *err);
/* After all its bindings; before the lookup and the client go.  NULL is fine. */
void volume_binder_free(struct volume_binder *binder);

/* For a pod whose wish.volumes_wait is set, as the cache has it.  0, with *ret NULL if all its
 * claims are bound by now; -ENOENT they cannot be, on that node: decide again; -ENOMEM. */
int volume_reserve(struct volume_binder *binder, const struct kube_object *pod, const char *node,
		   struct volume_binding **ret, struct err *err);

/* done() comes later, from the loop, and may free the binding. */
void volume_bind(struct volume_binding *binding,
		 void (*done)(void *context, bool ok, const char *why), void *context);

/* Takes its promises back; done() is not called any more.  NULL is fine. */
void volume_binding_free(struct volume_binding *binding);

/* A claim or a volume has changed. */
void volume_binder_changed(struct volume_binder *binder);

#endif
