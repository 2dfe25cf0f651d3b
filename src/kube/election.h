/* SPDX-License-Identifier: Apache-2.0 */
/* election.h - one of several leads, by a Lease.
 *
 * Who holds the Lease leads and renews it every retry_ms; who does not looks at it as
 * often and takes it when its record has not changed for as long as it says, seen by our
 * own clock from when it last changed: the times in it are never compared with ours.  The
 * clock counts while the machine sleeps.
 *
 * A leader that could not renew within renew_ms stops leading, whatever the server says
 * or does not say: that is before anybody else may begin (lease_ms), but what it had sent
 * may still be on its way.  Leading chooses who works; it must never be what makes the
 * work safe.
 *
 * Every write carries the Lease's uid and resourceVersion; one whose answer is lost is
 * read before anything else is done.  Used by the loop's thread alone.
 */
#ifndef GS_KUBE_ELECTION_H
#define GS_KUBE_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct kube_client;
struct kube_election;

struct kube_election_options {
	const char *namespace, *name; /* of the Lease; copied, as is the identity */
	const char *identity;	      /* of this process and no other: host and uuid */
	uint32_t lease_ms;	      /* 0: 15 s; whole seconds */
	uint32_t renew_ms;	      /* 0: 10 s */
	uint32_t retry_ms;	      /* 0: 2 s; who does not lead adds up to 1.2 times as much */
	/* All may be NULL.  They may close the election, but not free it. */
	void (*started)(void *context); /* leads from now on */
	void (*stopped)(void *context, const char *reason);
	void (*new_leader)(void *context, const char *identity); /* ours too */
	void *context;
};

/* Begins at once.  0, -EINVAL (lease_ms > renew_ms > 1.2 * retry_ms must hold; names),
 * -ENOMEM. */
int kube_election_new(struct kube_client *client, const struct kube_election_options *options,
		      struct kube_election **ret, struct err *err);

/* Stops leading at once, hands the Lease back so that another need not wait, frees, and
 * then calls closed() (may be NULL) from the loop.  Takes no longer than half of
 * renew_ms.  The client must stay until then. */
void kube_election_close(struct kube_election *election, void (*closed)(void *context),
			 void *context);

/* The same without handing back, for a client that is about to be closed; nothing is
 * called any more.  Not after kube_election_close().  NULL is fine. */
void kube_election_free(struct kube_election *election);

/* Whether it leads at this very moment: false from the end of renew_ms on, even if
 * stopped() has not been called yet. */
bool kube_election_leads(const struct kube_election *election);

/* Who was last seen to hold the Lease; "" if nobody. */
const char *kube_election_leader(const struct kube_election *election);

#endif
