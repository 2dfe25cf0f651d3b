/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_write.h"

#include "kube_election.h"

/* An elector that leads at *now_ms, with a Lease on the server. */
static void lead(struct elector *elector, struct lease_server *server, const char *identity,
		 uint64_t now_ms)
{
	elector_init(elector, identity, 1);
	elector_run(elector, server, now_ms);
	CHECK(campaign_leads(&elector->campaign, now_ms));
	elector_seen(elector);
}

static const char *lease_field(const struct lease_server *server, const char *field,
			       struct json_doc **doc)
{
	json_doc_free(*doc);
	*doc = NULL;
	CHECK_INT(json_parse("lease", server->lease.s, server->lease.len, NULL, doc, NULL), 0);
	return json_str(json_root(*doc), "spec", field);
}

TEST(who_finds_no_lease_makes_one_and_leads)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	int64_t number;
	lease_server_init(&server);
	elector_init(&a, "host_1", 1);
	CHECK_INT(elector_next(&a, 1000), CAMPAIGN_GET);
	CHECK(a.asked.deadline_ms > 0 && a.asked.deadline_ms < 10000);
	elector_answer(&a, 1001, &server, KUBE_NOT_FOUND);
	CHECK_INT(elector_next(&a, 1001), CAMPAIGN_CREATE);
	CHECK(strstr(a.body.s, "\"namespace\":\"gpu-scheduler\""));
	CHECK(!campaign_leads(&a.campaign, 1001));
	elector_answer(&a, 1050, &server, lease_apply(&server, CAMPAIGN_CREATE, a.body.s));
	CHECK_STR(elector_seen(&a), "leader(host_1) started");
	CHECK(campaign_leads(&a.campaign, 1050));
	CHECK_STR(lease_field(&server, "holderIdentity", &doc), "host_1");
	CHECK_STR(lease_field(&server, "renewTime", &doc), "2026-01-01T00:00:01.001000Z");
	CHECK_STR(lease_field(&server, "acquireTime", &doc), "2026-01-01T00:00:01.001000Z");
	CHECK_INT(json_i64(json_root(doc), &number, "spec", "leaseDurationSeconds"), 0);
	CHECK_INT(number, 15);
	CHECK_INT(json_i64(json_root(doc), &number, "spec", "leaseTransitions"), 0);
	CHECK_INT(number, 0);
}

TEST(a_leader_renews_every_two_seconds_without_reading)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	uint64_t now_ms = 0;
	lease_server_init(&server);
	lead(&a, &server, "a", now_ms);
	unsigned gets = server.gets;
	elector_run_until(&a, &server, &now_ms, 20100);
	CHECK_INT(server.updates, 10);
	CHECK_INT(server.gets, gets);
	CHECK_STR(elector_seen(&a), "");
	CHECK_STR(lease_field(&server, "renewTime", &doc), "2026-01-01T00:00:20.000000Z");
	CHECK_STR(lease_field(&server, "acquireTime", &doc), "2026-01-01T00:00:00.000000Z");
}

TEST(who_does_not_lead_looks_now_and_then_but_not_with_the_others)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done), b CLEANUP(elector_done);
	uint64_t shortest_ms = UINT64_MAX, longest_ms = 0, last_ms = 0;
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	elector_init(&b, "b", 5);
	elector_run(&b, &server, 0);
	for (uint64_t now_ms = 1; now_ms < 1000000; now_ms++) {
		if (now_ms % 2000 == 0)
			elector_run(&a, &server, now_ms);
		if (elector_run(&b, &server, now_ms) == 0)
			continue;
		shortest_ms = MIN(shortest_ms, now_ms - last_ms);
		longest_ms = MAX(longest_ms, now_ms - last_ms);
		last_ms = now_ms;
	}
	CHECK(shortest_ms >= 2000 && shortest_ms < 2200);
	CHECK(longest_ms <= 4400 && longest_ms > 4200);
	CHECK_STR(elector_seen(&b), "leader(a)");
}

TEST(a_lease_is_taken_when_it_has_not_changed_for_as_long_as_it_says)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done), b CLEANUP(elector_done);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	int64_t number;
	uint64_t now_ms = 1000;
	lease_server_init(&server);
	lead(&a, &server, "a", 0); /* and then nothing more of it */
	elector_init(&b, "b", 3);
	elector_run_until(&b, &server, &now_ms, 16000);
	CHECK_STR(elector_seen(&b), "leader(a)"); /* it saw the record at 1000 */
	elector_run_until(&b, &server, &now_ms, 16000 + 4500);
	CHECK_STR(elector_seen(&b), "leader(b) started");
	CHECK_STR(lease_field(&server, "holderIdentity", &doc), "b");
	CHECK(strcmp(lease_field(&server, "acquireTime", &doc), "2026-01-01T00:00:16.0") >= 0);
	CHECK_INT(json_i64(json_root(doc), &number, "spec", "leaseTransitions"), 0);
	CHECK_INT(number, 1);
}

/* A Lease of "other" with these times, which must not matter. */
static void foreign_lease(struct lease_server *server, const char *renew_time, int duration_s)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	char text[512];
	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"gpu-scheduler\",\"labels\":{\"keep\":\"me\"}},"
		 "\"spec\":{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":%d,"
		 "\"renewTime\":\"%s\",\"acquireTime\":\"%s\",\"leaseTransitions\":7,"
		 "\"strategy\":\"OldestEmulationVersion\"}}",
		 duration_s, renew_time, renew_time);
	CHECK_INT(json_parse("lease", text, strlen(text), NULL, &doc, NULL), 0);
	server->uid++;
	lease_store(server, json_root(doc));
}

TEST(times_in_a_lease_are_never_compared_with_ours)
{
	static const char *const times[] = { "1999-01-01T00:00:00.000000Z",
					     "2099-01-01T00:00:00.000000Z", "nonsense" };
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		struct lease_server server CLEANUP(lease_server_done);
		struct elector a CLEANUP(elector_done);
		uint64_t now_ms = 0;
		lease_server_init(&server);
		foreign_lease(&server, times[i], 30);
		elector_init(&a, "a", i);
		elector_run_until(&a, &server, &now_ms, 30000);
		CHECK(!a.campaign.leading);
		elector_run_until(&a, &server, &now_ms, 34500);
		CHECK(a.campaign.leading);
	}
}

TEST(what_others_wrote_into_the_lease_stays)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	uint64_t now_ms = 0;
	lease_server_init(&server);
	foreign_lease(&server, "2025-01-01T00:00:00.000000Z", 1);
	elector_init(&a, "a", 2);
	elector_run_until(&a, &server, &now_ms, 20000);
	CHECK(a.campaign.leading);
	CHECK(strstr(a.body.s, "\"labels\":{\"keep\":\"me\"}"));
	CHECK(strstr(a.body.s, "\"strategy\":\"OldestEmulationVersion\""));
	CHECK(strstr(a.body.s, "\"leaseTransitions\":8"));
	CHECK(!strstr(a.body.s, "managedFields"));
}

TEST(a_leader_whose_server_is_silent_stops_in_time)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	CHECK_INT(elector_next(&a, 2000), CAMPAIGN_UPDATE); /* which nobody answers */
	for (uint64_t now_ms = 2000; now_ms < 10000; now_ms += 10) {
		CHECK_INT(elector_next(&a, now_ms), CAMPAIGN_WAIT);
		CHECK(a.asked.wait_ms > 0 && now_ms + a.asked.wait_ms <= 10000);
	}
	CHECK(campaign_leads(&a.campaign, 9999));
	CHECK_STR(elector_seen(&a), "");
	CHECK(!campaign_leads(&a.campaign, 10000));
	elector_next(&a, 10000);
	CHECK_STR(elector_seen(&a), "stopped(the lease could not be renewed in time)");
}

TEST(a_leader_counts_from_when_it_asked)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	CHECK_INT(elector_next(&a, 2000), CAMPAIGN_UPDATE);
	elector_answer(&a, 5000, &server, lease_apply(&server, CAMPAIGN_UPDATE, a.body.s));
	CHECK(campaign_leads(&a.campaign, 11999));
	CHECK(!campaign_leads(&a.campaign, 12000));
	elector_next(&a, 12000);
	CHECK_STR(elector_seen(&a), "stopped(the lease could not be renewed in time)");
}

TEST(a_machine_that_has_slept_does_not_lead_when_it_wakes)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	CHECK_INT(elector_next(&a, 2000), CAMPAIGN_UPDATE);
	CHECK(!campaign_leads(&a.campaign, 3600000));
	enum kube_reason reason = lease_apply(&server, CAMPAIGN_UPDATE, a.body.s);
	elector_answer(&a, 3600000, &server, reason); /* an answer from an hour ago */
	CHECK(!campaign_leads(&a.campaign, 3600000));
	elector_next(&a, 3600000);
	CHECK_STR(elector_seen(&a), "stopped(the lease could not be renewed in time)");
	elector_run(&a, &server, 3605000); /* it is still ours, and renewed it counts again */
	CHECK_STR(elector_seen(&a), "started");
}

TEST(a_write_without_an_answer_is_read_before_anything_else)
{
	for (int done = 0; done < 2; done++) {
		struct lease_server server CLEANUP(lease_server_done);
		struct elector a CLEANUP(elector_done);
		lease_server_init(&server);
		lead(&a, &server, "a", 0);
		CHECK_INT(elector_next(&a, 2000), CAMPAIGN_UPDATE);
		if (done)
			CHECK_INT(lease_apply(&server, CAMPAIGN_UPDATE, a.body.s), KUBE_OK);
		elector_answer(&a, 2500, &server, KUBE_UNKNOWN);
		CHECK_INT(elector_next(&a, 2500), CAMPAIGN_GET);
		elector_answer(&a, 2600, &server, KUBE_OK);
		CHECK_INT(elector_next(&a, 2600), CAMPAIGN_UPDATE);
		elector_answer(&a, 2700, &server, lease_apply(&server, CAMPAIGN_UPDATE, a.body.s));
		CHECK(campaign_leads(&a.campaign, 12599));
		CHECK_STR(elector_seen(&a), "");
	}
}

TEST(a_creation_without_an_answer_does_not_make_a_leader)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	lease_server_init(&server);
	elector_init(&a, "a", 1);
	elector_next(&a, 0);
	elector_answer(&a, 0, &server, KUBE_NOT_FOUND);
	CHECK_INT(elector_next(&a, 0), CAMPAIGN_CREATE);
	lease_apply(&server, CAMPAIGN_CREATE, a.body.s);
	elector_answer(&a, 3000, &server, KUBE_UNKNOWN);
	CHECK_STR(elector_seen(&a), "");
	CHECK_INT(elector_run(&a, &server, 3000), 2); /* reads it, renews it */
	CHECK_STR(elector_seen(&a), "leader(a) started");
}

TEST(a_leader_that_finds_another_in_its_place_stops)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	foreign_lease(&server, "2026-01-01T00:00:00.000000Z", 15);
	elector_run(&a, &server, 2000);
	CHECK_STR(elector_seen(&a), "leader(other) stopped(another has taken the lease)");
	CHECK(!campaign_leads(&a.campaign, 2000));
}

TEST(a_lease_that_was_deleted_is_made_again_not_brought_back)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	strbuf_reset(&server.lease);
	elector_run(&a, &server, 2000);
	CHECK_INT(server.creates, 2);
	CHECK_INT(server.uid, 2);
	CHECK_STR(elector_seen(&a), "");
	CHECK(campaign_leads(&a.campaign, 11999));
}

TEST(a_lease_that_is_handed_back_is_taken_at_the_next_look)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done), b CLEANUP(elector_done);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	int64_t number;
	uint64_t now_ms = 3000;
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	elector_init(&b, "b", 9);
	elector_run(&b, &server, 2999);
	campaign_close(&a.campaign, 3000);
	CHECK_STR(elector_seen(&a), "stopped(it was told to)");
	CHECK(!campaign_leads(&a.campaign, 3000));
	CHECK_INT(elector_run(&a, &server, 3000), 1);
	CHECK_INT(a.asked.want, CAMPAIGN_CLOSED);
	CHECK_STR(lease_field(&server, "holderIdentity", &doc), "");
	CHECK_INT(json_i64(json_root(doc), &number, "spec", "leaseDurationSeconds"), 0);
	CHECK_INT(number, 1);
	elector_run_until(&b, &server, &now_ms, 3000 + 4500);
	CHECK_STR(elector_seen(&b), "leader(a) leader(b) started");
}

TEST(who_does_not_hold_the_lease_hands_nothing_back)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done), b CLEANUP(elector_done);
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	elector_init(&b, "b", 9);
	elector_run(&b, &server, 100);
	unsigned updates = server.updates;
	campaign_close(&b.campaign, 200);
	CHECK_INT(elector_next(&b, 200), CAMPAIGN_CLOSED);
	CHECK_INT(server.updates, updates);
}

TEST(a_renewal_on_its_way_is_awaited_before_the_lease_is_handed_back)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	CHECK_INT(elector_next(&a, 2000), CAMPAIGN_UPDATE);
	campaign_close(&a.campaign, 2100);
	CHECK_INT(elector_next(&a, 2100), CAMPAIGN_WAIT);
	elector_answer(&a, 2200, &server, lease_apply(&server, CAMPAIGN_UPDATE, a.body.s));
	CHECK_INT(elector_run(&a, &server, 2200), 1);
	CHECK_INT(a.asked.want, CAMPAIGN_CLOSED);
	CHECK_STR(lease_field(&server, "holderIdentity", &doc), "");
}

TEST(an_end_does_not_wait_for_a_silent_server)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	lease_server_init(&server);
	lead(&a, &server, "a", 0);
	campaign_close(&a.campaign, 1000);
	CHECK_INT(elector_next(&a, 1000), CAMPAIGN_UPDATE);
	CHECK_INT(elector_next(&a, 5999), CAMPAIGN_WAIT);
	CHECK_INT(elector_next(&a, 6000), CAMPAIGN_CLOSED);
}

TEST(an_acquisition_that_comes_true_while_ending_is_handed_back_unused)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	lease_server_init(&server);
	elector_init(&a, "a", 1);
	elector_next(&a, 0);
	elector_answer(&a, 0, &server, KUBE_NOT_FOUND);
	CHECK_INT(elector_next(&a, 0), CAMPAIGN_CREATE);
	campaign_close(&a.campaign, 100);
	elector_answer(&a, 200, &server, lease_apply(&server, CAMPAIGN_CREATE, a.body.s));
	CHECK_INT(elector_run(&a, &server, 200), 1);
	CHECK_STR(elector_seen(&a), "leader(a)"); /* but never started */
	CHECK_STR(lease_field(&server, "holderIdentity", &doc), "");
}

TEST(a_server_that_refuses_everything_is_not_hammered)
{
	static const enum kube_reason reasons[] = { KUBE_CONFLICT,  KUBE_ALREADY_EXISTS,
						    KUBE_UNKNOWN,   KUBE_FORBIDDEN,
						    KUBE_NOT_FOUND, KUBE_SERVER_ERROR,
						    KUBE_MALFORMED, KUBE_TOO_MANY_REQUESTS };
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		struct lease_server server CLEANUP(lease_server_done);
		struct elector a CLEANUP(elector_done);
		unsigned requests = 0;
		lease_server_init(&server);
		lead(&a, &server, "a", 0);
		for (uint64_t now_ms = 100; now_ms < 60000; now_ms += 100) {
			while (elector_next(&a, now_ms) != CAMPAIGN_WAIT) {
				enum kube_reason reason =
					a.asked.want == CAMPAIGN_GET && reasons[i] == KUBE_CONFLICT
						? KUBE_OK
						: reasons[i];
				elector_answer(&a, now_ms, &server, reason);
				CHECKF(++requests < 200, "%s", kube_reason_name(reasons[i]));
			}
		}
		CHECK_STR(elector_seen(&a), "stopped(the lease could not be renewed in time)");
		CHECK(requests >= 12);
	}
}

TEST(an_answer_that_is_no_lease_is_no_answer)
{
	static const char *const bodies[] = {
		"{}",
		"[]",
		"{\"metadata\":{\"uid\":\"u\"}}",
		"{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"},\"spec\":7}",
		"{\"metadata\":{\"uid\":\"\",\"resourceVersion\":\"1\"},\"spec\":{}}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		struct lease_server server CLEANUP(lease_server_done);
		struct elector a CLEANUP(elector_done);
		lease_server_init(&server);
		strbuf_puts(&server.lease, bodies[i]);
		elector_init(&a, "a", 1);
		CHECK_INT(elector_next(&a, 0), CAMPAIGN_GET);
		elector_answer(&a, 0, &server, KUBE_OK);
		CHECK_INT(elector_next(&a, 0), CAMPAIGN_WAIT);
		CHECK_STR(elector_seen(&a), "");
	}
}

TEST(a_lease_without_spec_is_free)
{
	struct lease_server server CLEANUP(lease_server_done);
	struct elector a CLEANUP(elector_done);
	lease_server_init(&server);
	server.version = server.uid = 1;
	strbuf_puts(&server.lease,
		    "{\"metadata\":{\"name\":\"x\",\"uid\":\"u1\",\"resourceVersion\":\"1\"}}");
	elector_init(&a, "a", 1);
	CHECK_INT(elector_run(&a, &server, 0), 2);
	CHECK_STR(elector_seen(&a), "leader(a) started");
}

TEST_MAIN()
