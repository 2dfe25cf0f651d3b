/* SPDX-License-Identifier: Apache-2.0 */
/* campaign.h - who leads, without a socket or a timer.
 *
 * The rules of an election: campaign_next() says what to send or how long to wait,
 * campaign_reply() takes the answer, and time is an argument; election.c does the rest.  It
 * is fine to call campaign_next() at any time: it also notices that the time to lead is
 * over, answer or not.
 */
#ifndef GS_KUBE_CAMPAIGN_H
#define GS_KUBE_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/strbuf.h"
#include "kube/election.h"
#include "kube/election_record.h"
#include "kube/reply.h"

enum campaign_want {
	CAMPAIGN_WAIT,	 /* wait_ms, or until the answer comes */
	CAMPAIGN_GET,	 /* send it, with deadline_ms */
	CAMPAIGN_CREATE, /* POST the body */
	CAMPAIGN_UPDATE, /* PUT the body */
	CAMPAIGN_CLOSED, /* nothing more, ever */
};

struct campaign_request {
	enum campaign_want want;
	uint64_t wait_ms;
	uint32_t deadline_ms;
	const char *body; /* valid until the next call */
	size_t body_len;
};

struct campaign {
	const struct kube_election_options *options; /* borrowed, defaults put in */
	struct rng rng;
	struct election_record record;
	struct strbuf body;
	struct strbuf leader;	 /* as last told */
	enum campaign_want step; /* next, or on its way: */
	bool on_its_way;
	bool leading; /* between started() and stopped() */
	bool closing;
	unsigned hasty;	      /* requests since it last waited */
	uint64_t next_ms;     /* when `step` is due */
	uint64_t sent_ms;     /* the one on its way */
	uint64_t renewed_ms;  /* sent_ms of the last write of ours that was confirmed */
	uint64_t observed_ms; /* when the record was last seen to change */
	uint64_t close_by_ms;
};

void campaign_init(struct campaign *campaign, const struct kube_election_options *options,
		   uint64_t seed);
void campaign_done(struct campaign *campaign);

/* Calls back started(), stopped(), new_leader().  wall_ns is only written into the Lease. */
void campaign_next(struct campaign *campaign, uint64_t now_ms, int64_t wall_ns,
		   struct campaign_request *ret);
void campaign_reply(struct campaign *campaign, uint64_t now_ms, const struct kube_reply *reply);

/* Stops leading, hands back, ends. */
void campaign_close(struct campaign *campaign, uint64_t now_ms);

bool campaign_leads(const struct campaign *campaign, uint64_t now_ms);

#endif
