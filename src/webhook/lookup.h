/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.h - claims and owners for reviews, from caches of the API server.
 *
 * Only for those who want more than what the pod itself says (review.h), and give the
 * webhook's account the right to read them.  What was found is valid until
 * webhook_lookup_reset(), to be called after each review.  An object that has just been made
 * may not be here yet: then it counts as unknown.
 *
 * On the loop's thread.
 */
#ifndef GS_WEBHOOK_LOOKUP_H
#define GS_WEBHOOK_LOOKUP_H

#include <stdbool.h>

struct dialect_lookup;
struct err;
struct kube_client;
struct log;
struct strbuf;
struct webhook_lookup;

struct webhook_lookup_options {
	struct kube_client *client; /* outlives it */
	const struct log *log;
	bool claims; /* GpuClaims */
	bool owners; /* Jobs, ReplicaSets, Deployments, StatefulSets */
};

int webhook_lookup_new(const struct webhook_lookup_options *options, struct webhook_lookup **ret,
		       struct err *err);

/* Before the client is closed.  NULL is fine. */
void webhook_lookup_free(struct webhook_lookup *lookup);

const struct dialect_lookup *webhook_lookup_dialect(struct webhook_lookup *lookup);
void webhook_lookup_reset(struct webhook_lookup *lookup);

/* Tells the client's telemetry how the caches stand. */
void webhook_lookup_measure(const struct webhook_lookup *lookup);

/* Whether all that there was has been read once; else appends what is missing. */
bool webhook_lookup_ready(const struct webhook_lookup *lookup, struct strbuf *why);

#endif
