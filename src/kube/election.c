/* SPDX-License-Identifier: Apache-2.0 */
/* election.c - an election on the loop: sends what campaign.h wants to know. */
#include "kube/election.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/campaign.h"
#include "kube/client.h"
#include "kube/kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEASE_MS 15000
#define RENEW_MS 10000
#define RETRY_MS 2000

struct kube_election {
	struct kube_client *client;
	struct kube_election_options options; /* with strings of our own: */
	char *namespace, *name, *identity;
	struct strbuf collection, path; /* of the Leases, and of ours */
	struct campaign campaign;
	struct kube_call *call; /* on its way */
	uv_timer_t timer;
	void (*closed)(void *context);
	void *closed_context;
};

static void election_go(struct kube_election *election);

static uint64_t now_ms(const struct kube_election *election)
{
	return clock_monotonic_ms(kube_clock(election->client));
}

static void on_done(void *context, const struct kube_reply *reply)
{
	struct kube_election *election = context;
	election->call = NULL;
	campaign_reply(&election->campaign, now_ms(election), reply);
	election_go(election);
}

static void on_timer(uv_timer_t *timer)
{
	election_go(timer->data);
}

static int election_send(struct kube_election *election, const struct campaign_request *request)
{
	bool create = request->want == CAMPAIGN_CREATE;
	struct kube_request send = {
		.method = request->want == CAMPAIGN_GET ? "GET"
			  : create			? "POST"
							: "PUT",
		.path = create ? election->collection.s : election->path.s,
		.body = request->body,
		.body_len = request->body_len,
		/* The campaign try again; one more is for stale credentials. */
		.tries = 2,
		.within_ms = request->deadline_ms,
		.deadline_ms = request->deadline_ms,
		.urgent = true,
		.resource = "leases",
		.done = on_done,
		.context = election,
	};
	struct err err = ERR_INIT;
	return kube_send(election->client, &send, &election->call, &err);
}

static void election_destroy(struct kube_election *election)
{
	campaign_done(&election->campaign);
	strbuf_done(&election->collection);
	strbuf_done(&election->path);
	free(election->namespace);
	free(election->name);
	free(election->identity);
	free(election);
}

static void on_closed(uv_handle_t *handle)
{
	struct kube_election *election = handle->data;
	void (*closed)(void *context) = election->closed;
	void *context = election->closed_context;
	election_destroy(election);
	if (closed)
		closed(context);
}

static void election_end(struct kube_election *election)
{
	if (election->call)
		kube_cancel(election->call);
	election->call = NULL;
	uv_close((uv_handle_t *)&election->timer, on_closed);
}

static void election_go(struct kube_election *election)
{
	for (;;) {
		const struct clock *clock = kube_clock(election->client);
		struct campaign_request request;
		campaign_next(&election->campaign, now_ms(election), clock_wall_ns(clock),
			      &request);
		if (request.want == CAMPAIGN_CLOSED) {
			election_end(election);
			return;
		}
		if (request.want == CAMPAIGN_WAIT) {
			uv_timer_start(&election->timer, on_timer, request.wait_ms, 0);
			return;
		}
		if (election_send(election, &request) < 0) {
			struct kube_reply reply = { .reason = KUBE_UNREACHABLE,
						    .retry_after_s = -1,
						    .message = "out of memory" };
			campaign_reply(&election->campaign, now_ms(election), &reply);
		}
	}
}

static int check_options(const struct kube_election_options *options, struct err *err)
{
	if (!options->namespace || !*options->namespace || !options->name || !*options->name ||
	    !options->identity || !*options->identity)
		return err_set(err, EINVAL,
			       "an election needs a namespace, a name and an identity");
	if (options->lease_ms % 1000 != 0)
		return err_set(err, EINVAL, "a lease lasts whole seconds, not %u ms",
			       options->lease_ms);
	if (options->lease_ms <= options->renew_ms ||
	    options->renew_ms <= (uint64_t)options->retry_ms * 12 / 10)
		return err_set(
			err, EINVAL,
			"a lease of %u ms, renewed within %u ms, tried every %u ms: each must "
			"be longer than the next",
			options->lease_ms, options->renew_ms, options->retry_ms);
	return 0;
}

static int election_init(struct kube_election *election,
			 const struct kube_election_options *options, struct err *err)
{
	struct kube_election_options *own = &election->options;
	*own = *options;
	own->lease_ms = options->lease_ms ? options->lease_ms : LEASE_MS;
	own->renew_ms = options->renew_ms ? options->renew_ms : RENEW_MS;
	own->retry_ms = options->retry_ms ? options->retry_ms : RETRY_MS;
	int result = check_options(own, err);
	if (result < 0)
		return result;
	own->namespace = election->namespace = strdup(options->namespace);
	own->name = election->name = strdup(options->name);
	own->identity = election->identity = strdup(options->identity);
	if (!own->namespace || !own->name || !own->identity)
		return err_set(err, ENOMEM, "out of memory");
	const struct kube_kind *lease = &kube_kinds[KUBE_LEASE];
	kube_path(&election->collection, lease, own->namespace, NULL, NULL);
	kube_path(&election->path, lease, own->namespace, own->name, NULL);
	if (election->collection.failed || election->path.failed)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

int kube_election_new(struct kube_client *client, const struct kube_election_options *options,
		      struct kube_election **ret, struct err *err)
{
	struct kube_election *election = malloc(sizeof(*election));
	uint64_t seed = 0;
	if (!election)
		return err_set(err, ENOMEM, "out of memory");
	*election = (struct kube_election){ .client = client,
					    .collection = STRBUF_INIT,
					    .path = STRBUF_INIT };
	uv_random(NULL, NULL, &seed, sizeof(seed), 0, NULL);
	campaign_init(&election->campaign, &election->options, seed);
	int result = election_init(election, options, err);
	if (result < 0) {
		election_destroy(election);
		return result;
	}
	uv_timer_init(kube_loop(client), &election->timer);
	election->timer.data = election;
	*ret = election;
	/* Nobody is called back from inside. */
	uv_timer_start(&election->timer, on_timer, 0, 0);
	return 0;
}

void kube_election_close(struct kube_election *election, void (*closed)(void *context),
			 void *context)
{
	election->closed = closed;
	election->closed_context = context;
	campaign_close(&election->campaign, now_ms(election));
	uv_timer_start(&election->timer, on_timer, 0, 0);
}

void kube_election_free(struct kube_election *election)
{
	if (election)
		election_end(election);
}

bool kube_election_leads(const struct kube_election *election)
{
	return campaign_leads(&election->campaign, now_ms(election));
}

const char *kube_election_leader(const struct kube_election *election)
{
	return election->campaign.leader.s;
}
