/* SPDX-License-Identifier: Apache-2.0 */
/* Elections by a Lease of a real API server.
 *
 * cluster: --nodes 0
 */
#include "faults.h"
#include "live.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/election.h"
#include "wire/json.h"

struct elector {
	struct live live;
	struct kube_election *election;
	unsigned started, stopped, closed;
	uint64_t started_ms, stopped_ms;
	char reason[128];
	char leader[64];
};

static void on_started(void *context)
{
	struct elector *elector = context;
	CHECK(kube_election_leads(elector->election));
	elector->started++;
	elector->started_ms = clock_monotonic_ms(&clock_system);
}

static void on_stopped(void *context, const char *reason)
{
	struct elector *elector = context;
	elector->stopped++;
	elector->stopped_ms = clock_monotonic_ms(&clock_system);
	snprintf(elector->reason, sizeof(elector->reason), "%s", reason);
}

static void on_new_leader(void *context, const char *identity)
{
	struct elector *elector = context;
	snprintf(elector->leader, sizeof(elector->leader), "%s", identity);
}

static void on_closed(void *context)
{
	((struct elector *)context)->closed++;
}

/* The name is that of the Lease; each test has its own.  Those of one test share a loop:
 * all of them go on while one is waited for. */
static void elector_open_beside(struct elector *elector, struct elector *other,
				const char *kubeconfig, const char *name, const char *identity,
				uint32_t lease_ms)
{
	struct err err = ERR_INIT;
	*elector = (struct elector){ 0 };
	if (other)
		live_open_beside(&elector->live, &other->live, kubeconfig);
	else
		live_open(&elector->live, kubeconfig);
	struct kube_election_options options = {
		.namespace = elector->live.namespace,
		.name = name,
		.identity = identity,
		.lease_ms = lease_ms,
		.renew_ms = lease_ms * 2 / 3,
		.retry_ms = MIN(lease_ms / 10, 300),
		.started = on_started,
		.stopped = on_stopped,
		.new_leader = on_new_leader,
		.context = elector,
	};
	CHECKF(kube_election_new(elector->live.client, &options, &elector->election, &err) == 0,
	       "%s", err.text);
}

static void elector_open(struct elector *elector, const char *kubeconfig, const char *name,
			 const char *identity, uint32_t lease_ms)
{
	elector_open_beside(elector, NULL, kubeconfig, name, identity, lease_ms);
}

static bool is_started(void *context)
{
	return ((const struct elector *)context)->started > 0;
}

static bool is_stopped(void *context)
{
	return ((const struct elector *)context)->stopped > 0;
}

static bool is_closed(void *context)
{
	return ((const struct elector *)context)->closed > 0;
}

static bool sees_leader(void *context)
{
	return ((const struct elector *)context)->leader[0] != '\0';
}

static void elector_close(struct elector *elector)
{
	kube_election_close(elector->election, on_closed, elector);
	live_until(&elector->live, is_closed, elector, "the election to be closed");
	live_close(&elector->live);
}

static const char *lease_path(const struct elector *elector, const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s",
		 elector->live.namespace, name);
	return path;
}

TEST(one_leads_and_when_it_dies_another_does)
{
	struct elector a, b;
	elector_open(&b, NULL, "dies", "b", 3000);
	live_until(&b.live, is_started, &b, "b to lead");
	elector_open_beside(&a, &b, NULL, "dies", "a", 3000);
	live_until(&a.live, sees_leader, &a, "a to see b");
	CHECK_STR(a.leader, "b");
	CHECK_STR(kube_election_leader(a.election), "b");
	live_for(&a.live, 6000); /* twice the lease: b renews, and goes on */
	CHECK_INT(a.started, 0);
	CHECK_INT(b.stopped, 0);
	CHECK(kube_election_leads(b.election) && !kube_election_leads(a.election));
	kube_election_free(b.election); /* without a word, as by SIGKILL */
	uint64_t died_ms = clock_monotonic_ms(&clock_system);
	live_until(&a.live, is_started, &a, "a to lead");
	/* a has seen b's last renewal at most 0.3 s and its answer before b died */
	CHECK(a.started_ms >= died_ms + 1000);
	CHECK_STR(a.leader, "a");
	CHECK_INT(live_call(&a.live, "GET", lease_path(&a, "dies"), NULL), 200);
	CHECK(strstr(a.live.text.s, "\"leaseTransitions\":1"));
	elector_close(&a);
	live_close(&b.live);
}

TEST(a_leader_that_ends_hands_over_at_once)
{
	/* The lease lasts longer than anybody waits here. */
	struct elector a, b;
	elector_open(&b, NULL, "hands", "b", 600000);
	live_until(&b.live, is_started, &b, "b to lead");
	elector_open_beside(&a, &b, NULL, "hands", "a", 600000);
	live_until(&a.live, sees_leader, &a, "a to see b");
	kube_election_close(b.election, on_closed, &b);
	CHECK_INT(b.stopped, 1);
	CHECK_STR(b.reason, "it was told to");
	live_until(&a.live, is_started, &a, "a to lead");
	live_until(&b.live, is_closed, &b, "b to be closed");
	kube_election_close(a.election, on_closed, &a);
	live_until(&a.live, is_closed, &a, "a to be closed");
	CHECK_INT(live_call(&a.live, "GET", lease_path(&a, "hands"), NULL), 200);
	CHECK(strstr(a.live.text.s, "\"leaseDurationSeconds\":1"));
	CHECK(!strstr(a.live.text.s, "\"holderIdentity\":\"a\""));
	live_close(&a.live);
	live_close(&b.live);
}

static bool is_made_again(void *context)
{
	struct elector *elector = context;
	return live_call(&elector->live, "GET", lease_path(elector, "deleted"), NULL) == 200;
}

TEST(a_lease_that_is_deleted_is_made_again)
{
	struct elector a;
	elector_open(&a, NULL, "deleted", "a", 600000);
	live_until(&a.live, is_started, &a, "a to lead");
	CHECK_INT(live_call(&a.live, "DELETE", lease_path(&a, "deleted"), NULL), 200);
	live_until(&a.live, is_made_again, &a, "the Lease to be made again");
	CHECK_INT(a.stopped, 0);
	CHECK(kube_election_leads(a.election));
	elector_close(&a);
}

TEST(a_leader_whose_lease_is_taken_stops)
{
	struct elector a;
	elector_open(&a, NULL, "taken", "a", 600000);
	live_until(&a.live, is_started, &a, "a to lead");
	CHECK_INT(live_call(&a.live, "PATCH", lease_path(&a, "taken"),
			    "{\"metadata\":{\"labels\":{\"mine\":\"yes\"}},"
			    "\"spec\":{\"holderIdentity\":\"thief\",\"leaseDurationSeconds\":1}}"),
		  200);
	live_until(&a.live, is_stopped, &a, "a to stop");
	CHECK_STR(a.reason, "another has taken the lease");
	a.started = 0;
	live_until(&a.live, is_started, &a, "a to take it back, after a second");
	CHECK_INT(live_call(&a.live, "GET", lease_path(&a, "taken"), NULL), 200);
	CHECK(strstr(a.live.text.s, "\"mine\":\"yes\""));
	elector_close(&a);
}

TEST(a_leader_that_is_not_answered_stops_before_another_may_start)
{
	struct faults faults;
	struct elector a, b;
	faults_start(&faults, "on resource=leases after=requests:6 silence=forever\n");
	elector_open(&b, faults.kubeconfig, "silent", "b", 3000);
	live_until(&b.live, is_started, &b, "b to lead");
	elector_open_beside(&a, &b, NULL, "silent", "a", 3000);
	live_until(&a.live, is_started, &a, "a to lead");
	CHECK_INT(b.stopped, 1);
	CHECK_STR(b.reason, "the lease could not be renewed in time");
	CHECK(b.stopped_ms <= a.started_ms);
	CHECK(!kube_election_leads(b.election));
	elector_close(&a);
	elector_close(&b);
	CHECK(faults_end(&faults) >= 1);
}

TEST(writes_whose_answers_are_lost_do_not_cost_the_lead)
{
	struct faults faults;
	struct elector a;
	faults_start(&faults, "on method=PUT resource=leases every=2 cut after-write\n"
			      "on method=POST resource=leases cut after-write\n");
	elector_open(&a, faults.kubeconfig, "lost", "a", 600000);
	live_until(&a.live, is_started, &a, "a to lead");
	live_for(&a.live, 3000);
	CHECK_INT(a.stopped, 0);
	CHECK_INT(a.started, 1);
	elector_close(&a);
	CHECK(faults_end(&faults) >= 3);
}

TEST_MAIN()
