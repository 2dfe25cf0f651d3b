/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/campaign.h"

#include "base/attr.h"
#include "base/err.h"

#include <string.h>

#define HASTY_MAX 3u /* requests at once; then it waits, whatever the answers are */

void campaign_init(struct campaign *campaign, const struct kube_election_options *options,
		   uint64_t seed)
{
	*campaign = (struct campaign){
		.options = options,
		.body = STRBUF_INIT_MAX(2 * ELECTION_LEASE_MAX),
		.leader = STRBUF_INIT_MAX(ELECTION_LEASE_MAX),
		.step = CAMPAIGN_GET,
	};
	rng_seed(&campaign->rng, seed);
	election_record_init(&campaign->record);
}

void campaign_done(struct campaign *campaign)
{
	if (!campaign)
		return;
	election_record_done(&campaign->record);
	strbuf_done(&campaign->body);
	strbuf_done(&campaign->leader);
}

static bool holds(const struct campaign *campaign)
{
	return campaign->record.lease.len > 0 &&
	       strcmp(campaign->record.holder.s, campaign->options->identity) == 0;
}

bool campaign_leads(const struct campaign *campaign, uint64_t now_ms)
{
	return campaign->leading && now_ms - campaign->renewed_ms < campaign->options->renew_ms;
}

static void stop_leading(struct campaign *campaign, const char *reason)
{
	if (!campaign->leading)
		return;
	campaign->leading = false;
	if (campaign->options->stopped)
		campaign->options->stopped(campaign->options->context, reason);
}

static void tell_leader(struct campaign *campaign)
{
	const char *holder = campaign->record.holder.s;
	if (strcmp(campaign->leader.s, holder) == 0)
		return;
	strbuf_reset(&campaign->leader);
	strbuf_puts(&campaign->leader, holder);
	if (*holder && campaign->options->new_leader)
		campaign->options->new_leader(campaign->options->context, campaign->leader.s);
}

/* The next step after a pause.  Who leads must not be late; who does not should not come
 * together with the others. */
static void later(struct campaign *campaign, uint64_t now_ms, enum campaign_want step)
{
	uint64_t pause_ms = campaign->options->retry_ms;
	if (!campaign->leading)
		pause_ms += rng_below(&campaign->rng, (uint32_t)(pause_ms * 12 / 10) + 1);
	campaign->step = step;
	campaign->next_ms = now_ms + pause_ms;
	campaign->hasty = 0;
}

/* The next step now, unless one answer after the other has led here. */
static void at_once(struct campaign *campaign, uint64_t now_ms, enum campaign_want step)
{
	if (++campaign->hasty > HASTY_MAX) {
		later(campaign, now_ms, CAMPAIGN_GET);
		return;
	}
	campaign->step = step;
	campaign->next_ms = now_ms;
}

/* Whether the record has not changed for as long as it says. */
static bool is_over(const struct campaign *campaign, uint64_t now_ms)
{
	uint64_t lease_ms = campaign->record.duration_s > 0
				    ? (uint64_t)MIN(campaign->record.duration_s, INT32_MAX) * 1000
				    : campaign->options->lease_ms;
	return campaign->record.holder.len == 0 || now_ms - campaign->observed_ms >= lease_ms;
}

/* What the server has, as of now_ms.  False: it makes no sense. */
static bool observe(struct campaign *campaign, uint64_t now_ms, const struct json *lease)
{
	bool changed = false;
	if (election_record_read(&campaign->record, lease, &changed, NULL) < 0)
		return false;
	if (changed)
		campaign->observed_ms = now_ms;
	tell_leader(campaign);
	return true;
}

static void read_reply(struct campaign *campaign, uint64_t now_ms, const struct kube_reply *reply)
{
	if (reply->reason == KUBE_NOT_FOUND) {
		election_record_done(&campaign->record);
		election_record_init(&campaign->record);
		at_once(campaign, now_ms, CAMPAIGN_CREATE);
	} else if (reply->reason != KUBE_OK || !observe(campaign, now_ms, reply->body)) {
		later(campaign, now_ms, CAMPAIGN_GET);
	} else if (holds(campaign) || is_over(campaign, now_ms)) {
		at_once(campaign, now_ms, CAMPAIGN_UPDATE);
	} else {
		later(campaign, now_ms, CAMPAIGN_GET);
		stop_leading(campaign, "another has taken the lease");
	}
}

/* A write of ours is confirmed: it counts from when it was sent. */
static void confirmed(struct campaign *campaign, uint64_t now_ms)
{
	bool in_time = now_ms - campaign->sent_ms < campaign->options->renew_ms;
	bool starts = !campaign->leading && !campaign->closing && in_time;
	campaign->renewed_ms = campaign->sent_ms;
	campaign->leading = campaign->leading || starts;
	later(campaign, now_ms, CAMPAIGN_UPDATE);
	if (starts && campaign->options->started)
		campaign->options->started(campaign->options->context);
}

static void write_reply(struct campaign *campaign, uint64_t now_ms, const struct kube_reply *reply)
{
	switch (reply->reason) {
	case KUBE_OK:
		if (!observe(campaign, now_ms, reply->body) || !holds(campaign))
			later(campaign, now_ms, CAMPAIGN_GET);
		else
			confirmed(campaign, now_ms);
		break;
	case KUBE_ALREADY_EXISTS:
	case KUBE_CONFLICT:
	case KUBE_NOT_FOUND:
	case KUBE_UNKNOWN: /* it may have been done: what the server has tells */
		at_once(campaign, now_ms, CAMPAIGN_GET);
		break;
	default:
		later(campaign, now_ms, CAMPAIGN_GET);
	}
}

/* The Lease has been handed back, or what stands against it must be read. */
static void close_reply(struct campaign *campaign, uint64_t now_ms, const struct kube_reply *reply)
{
	bool known = reply->reason == KUBE_OK && observe(campaign, now_ms, reply->body);
	if (known && holds(campaign))
		at_once(campaign, now_ms, CAMPAIGN_UPDATE);
	else if (reply->reason == KUBE_CONFLICT || reply->reason == KUBE_UNKNOWN)
		at_once(campaign, now_ms, CAMPAIGN_GET);
	else
		campaign->step = CAMPAIGN_CLOSED; /* or nothing more can be done */
}

static void close_step(struct campaign *campaign, uint64_t now_ms)
{
	campaign->hasty = 0;
	campaign->next_ms = now_ms;
	campaign->step = holds(campaign) ? CAMPAIGN_UPDATE : CAMPAIGN_CLOSED;
}

void campaign_reply(struct campaign *campaign, uint64_t now_ms, const struct kube_reply *reply)
{
	bool was_closing = campaign->closing;
	campaign->on_its_way = false;
	if (campaign->closing)
		close_reply(campaign, now_ms, reply);
	else if (campaign->step == CAMPAIGN_GET)
		read_reply(campaign, now_ms, reply);
	else
		write_reply(campaign, now_ms, reply);
	if (campaign->closing && !was_closing) /* by whom it has just called */
		close_step(campaign, now_ms);
}

void campaign_close(struct campaign *campaign, uint64_t now_ms)
{
	campaign->closing = true;
	campaign->close_by_ms = now_ms + campaign->options->renew_ms / 2;
	stop_leading(campaign, "it was told to");
	if (!campaign->on_its_way) /* else its answer tells what there is to hand back */
		close_step(campaign, now_ms);
}

static int make_body(struct campaign *campaign, int64_t wall_ns)
{
	const struct kube_election_options *options = campaign->options;
	struct election_claim claim = {
		.namespace = options->namespace,
		.name = options->name,
		.holder = campaign->closing ? "" : options->identity,
		.duration_s = campaign->closing ? 1 : options->lease_ms / 1000,
		.wall_ns = wall_ns,
		.acquires = !campaign->closing && !holds(campaign),
	};
	strbuf_reset(&campaign->body);
	return election_record_write(&campaign->record, &claim, &campaign->body);
}

/* Until when the next thing happens by itself. */
static uint64_t wait_until_ms(const struct campaign *campaign, uint64_t now_ms)
{
	uint64_t until_ms = campaign->on_its_way ? UINT64_MAX : campaign->next_ms;
	if (campaign->closing)
		until_ms = MIN(until_ms, campaign->close_by_ms);
	if (campaign->leading)
		until_ms = MIN(until_ms, campaign->renewed_ms + campaign->options->renew_ms);
	/* A timer may sleep with the machine: look at the clock now and then. */
	return MIN(until_ms, now_ms + campaign->options->retry_ms);
}

void campaign_next(struct campaign *campaign, uint64_t now_ms, int64_t wall_ns,
		   struct campaign_request *ret)
{
	*ret = (struct campaign_request){ .want = CAMPAIGN_WAIT,
					  .deadline_ms = campaign->options->renew_ms / 3 };
	if (campaign->leading && !campaign_leads(campaign, now_ms))
		stop_leading(campaign, "the lease could not be renewed in time");
	if (campaign->closing && now_ms >= campaign->close_by_ms) {
		campaign->step = CAMPAIGN_CLOSED;
		campaign->on_its_way = false;
	}
	if (campaign->step == CAMPAIGN_CLOSED) {
		ret->want = CAMPAIGN_CLOSED;
	} else if (campaign->on_its_way || now_ms < campaign->next_ms) {
		ret->wait_ms = wait_until_ms(campaign, now_ms) - now_ms;
	} else if (campaign->step != CAMPAIGN_GET && make_body(campaign, wall_ns) < 0) {
		later(campaign, now_ms, CAMPAIGN_GET);
		ret->wait_ms = wait_until_ms(campaign, now_ms) - now_ms;
	} else {
		ret->want = campaign->step;
		ret->body = campaign->step == CAMPAIGN_GET ? NULL : campaign->body.s;
		ret->body_len = campaign->step == CAMPAIGN_GET ? 0 : campaign->body.len;
		campaign->on_its_way = true;
		campaign->sent_ms = now_ms;
	}
}
