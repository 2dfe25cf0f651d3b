/* SPDX-License-Identifier: Apache-2.0 */
/* Claims follow their pods, step by step. */
#include "claims_stage.h"

#include "base/rng.h"

#define PAUSE CLAIM_PAUSE_MS

TEST(a_claim_goes_with_its_pod_from_pending_through_reserved_to_bound)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	stage_turn(CLAIM_SETTLE_MS - 1);
	CHECK_STR(claim(0)->phases, "");
	stage_turn(1);
	CHECK_STR(claim(0)->status.s, "{\"phase\":\"Pending\",\"observedGeneration\":1}");
	claims_reserved(stage.claims, "u1", "n1", 0x5);
	stage_turn(PAUSE);
	CHECK_STR(claim(0)->status.s,
		  "{\"phase\":\"Reserved\",\"nodeName\":\"n1\",\"gpuIds\":[0,2],"
		  "\"observedGeneration\":1}");
	stage_pod("u1", "p1", "c0", "n1", "n1:0,2");
	stage_turn(PAUSE);
	CHECK_STR(claim(0)->status.s,
		  "{\"phase\":\"Bound\",\"nodeName\":\"n1\",\"gpuIds\":[0,2],"
		  "\"allocated\":\"n1:0,2\",\"allocations\":[{\"pod\":\"p1\",\"uid\":\"u1\","
		  "\"nodeName\":\"n1\",\"gpuIds\":[0,2]}],\"observedGeneration\":1}");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending Reserved Bound");
	stage_close();
}

TEST(a_pod_that_was_bound_at_once_has_its_claim_reserved_on_the_way)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	claims_reserved(stage.claims, "u1", "n1", 1);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	claims_waits(stage.claims, "u1", "too late", false);
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved Bound");
	CHECK_STR(stage_status(0, "allocated"), "n1:0");
	CHECK_STR(stage_status(0, "message"), "");
	stage_close();
}

TEST(a_hundred_pods_at_once_are_two_writes)
{
	char uid[16], name[16];

	stage_open(1);
	for (int i = 99; i >= 0; i--) {
		snprintf(uid, sizeof(uid), "u%d", i);
		snprintf(name, sizeof(name), "p%03d", i);
		stage_pod(uid, name, "c0", NULL, NULL);
		stage_pod(uid, name, "c0", "n1", i ? "n1:7" : "n1:3");
	}
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved Bound");
	CHECK_STR(stage_status(0, "allocated"), "n1:3 +99");
	CHECK_STR(stage_status(0, "gpuIds"), "[3]");
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(json_parse("s", claim(0)->status.s, claim(0)->status.len, NULL, &doc, NULL), 0);
	CHECK_INT(json_len(json_root(doc), "allocations"), 100);
	stage_close();
}

TEST(only_so_many_allocations_are_listed_and_all_are_counted)
{
	char uid[16];

	stage_open(1);
	for (int i = 0; i < CLAIM_ALLOCATIONS_MAX + 44; i++) {
		snprintf(uid, sizeof(uid), "u%03d", i);
		stage_pod(uid, uid, "c0", "n1", "n1:0");
	}
	stage_settle();
	CHECK_STR(stage_status(0, "allocated"), "n1:0 +299");
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(json_parse("s", claim(0)->status.s, claim(0)->status.len, NULL, &doc, NULL), 0);
	CHECK_INT(json_len(json_root(doc), "allocations"), CLAIM_ALLOCATIONS_MAX);
	stage_close();
}

TEST(a_reservation_that_came_to_nothing_is_failed_then_pending_and_not_at_once)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	claims_reserved(stage.claims, "u1", "n1", 1);
	stage_turn(CLAIM_SETTLE_MS);
	CHECK_STR(claim(0)->phases, "Reserved");
	claims_waits(stage.claims, "u1", "no room", false);
	stage_turn(PAUSE);
	stage_turn(CLAIM_LEAVE_MS - 1);
	CHECK_STR(claim(0)->phases, "Reserved");
	stage_turn(1);
	CHECK_STR(claim(0)->phases, "Reserved Failed");
	CHECK_STR(stage_status(0, "message"), "no room");
	CHECK_STR(stage_status(0, "nodeName"), "");
	stage_turn(PAUSE);
	CHECK_STR(claim(0)->phases, "Reserved Failed Pending");
	CHECK_STR(stage_status(0, "message"), "no room");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved Failed Pending");
	stage_close();
}

TEST(a_lock_that_is_lost_and_won_elsewhere_shows_only_the_other_node)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	claims_reserved(stage.claims, "u1", "n1", 1);
	stage_turn(CLAIM_SETTLE_MS);
	claims_waits(stage.claims, "u1", "", false);
	stage_turn(PAUSE);
	claims_reserved(stage.claims, "u1", "n2", 2);
	stage_turn(CLAIM_LEAVE_MS);
	CHECK_STR(claim(0)->phases, "Reserved Reserved");
	CHECK_STR(stage_status(0, "nodeName"), "n2");
	stage_close();
}

TEST(a_step_back_waits_anew_if_something_was_reserved_meanwhile)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	claims_reserved(stage.claims, "u1", "n1", 1);
	stage_turn(CLAIM_SETTLE_MS);
	claims_waits(stage.claims, "u1", "no room", false);
	stage_turn(PAUSE);
	stage_turn(CLAIM_LEAVE_MS / 2);
	claims_reserved(stage.claims, "u1", "n1", 1);
	claims_waits(stage.claims, "u1", "no room", false);
	stage_turn(CLAIM_SETTLE_MS);
	stage_turn(CLAIM_LEAVE_MS - 1);
	CHECK_STR(claim(0)->phases, "Reserved");
	stage_turn(1);
	CHECK_STR(claim(0)->phases, "Reserved Failed");
	stage_close();
}

TEST(a_bound_claim_is_pending_when_its_last_pod_has_ended_for_a_while)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_pod("u2", "p2", "c0", "n2", "n2:1");
	stage_settle();
	claims_pod_gone(stage.claims, "u1");
	stage_turn(PAUSE);
	CHECK_STR(stage_status(0, "allocated"), "n2:1");
	CHECK_STR(stage_status(0, "nodeName"), "n2");
	claims_pod_gone(stage.claims, "u2");
	stage_turn(PAUSE);
	stage_turn(CLAIM_LEAVE_MS - 1);
	CHECK_STR(claim(0)->phases, "Reserved Bound Bound");
	stage_turn(1);
	CHECK_STR(claim(0)->phases, "Reserved Bound Bound Pending");
	CHECK_STR(stage_status(0, "allocated"), "");
	CHECK_STR(stage_status(0, "message"), "no pod names this claim");
	stage_settle();
	CHECK_INT(claim(0)->writes, 4);
	stage_close();
}

TEST(the_next_pod_takes_over_without_the_claim_being_pending)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_pod("u2", "p2", "c0", NULL, NULL);
	claims_waits(stage.claims, "u2", "no room", false);
	stage_settle();
	CHECK_STR(stage_status(0, "message"), "no room (pod p2)");
	claims_pod_gone(stage.claims, "u1");
	stage_turn(CLAIM_LEAVE_MS / 2);
	claims_reserved(stage.claims, "u2", "n1", 1);
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved Bound");
	stage_pod("u2", "p2", "c0", "n1", "n1:0");
	stage_turn(PAUSE);
	CHECK_STR(claim(0)->phases, "Reserved Bound Bound");
	CHECK(strstr(stage_status(0, "allocations"), "\"u2\""));
	CHECK_STR(stage_status(0, "message"), "");
	stage_close();
}

TEST(a_claim_is_failed_only_if_all_its_pods_are_wrong)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	stage_pod("u2", "p2", "c0", NULL, NULL);
	claims_waits(stage.claims, "u1", "asks for 2 GPUs, its claim for 1", true);
	claims_waits(stage.claims, "u2", "no room", false);
	stage_turn(PAUSE);
	CHECK_STR(claim(0)->phases, "Pending");
	CHECK_STR(stage_status(0, "message"),
		  "asks for 2 GPUs, its claim for 1 (pod p1 and 1 more)");
	claims_pod_gone(stage.claims, "u2");
	stage_turn(PAUSE);
	CHECK_STR(claim(0)->phases, "Pending Failed");
	CHECK_STR(stage_status(0, "message"), "asks for 2 GPUs, its claim for 1");
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending Failed Pending Reserved Bound");
	stage_close();
}

TEST(what_the_last_leader_left_without_pods_is_put_right)
{
	stage_open(0);
	for (int i = 0; i < 3; i++)
		stage_add_claim();
	stage_overwrite(0, "{\"phase\":\"Bound\",\"allocated\":\"n1:0\"}");
	stage_overwrite(1, "{\"phase\":\"Reserved\"}");
	stage_overwrite(2, "{\"phase\":\"Failed\"}");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending");
	CHECK_STR(claim(1)->phases, "Failed Pending");
	CHECK_STR(claim(2)->phases, "Pending");
	stage_close();
}

TEST(pods_without_a_decision_of_ours_have_nothing_by_their_claim)
{
	static const char *const allocated[] = {
		NULL,	 "n2:0", "n1:",	  "n1:0,",   "n1:32",
		"n1:0 ", "n1",	 "n1:-1", "n1:0,,1", "n1:99999999999999999999999",
		":0",	 "x"
	};

	for (size_t i = 0; i < ARRAY_SIZE(allocated); i++) {
		stage_open(1);
		stage_pod("u1", "p1", "c0", "n1", allocated[i]);
		stage_settle();
		CHECKF(strcmp(claim(0)->phases, "Pending") == 0, "%s: %s", allocated[i],
		       claim(0)->phases);
		stage_close();
	}
}

#define POD(more)                                                                                 \
	"{\"metadata\":{\"namespace\":\"ml\",\"name\":\"p1\",\"uid\":\"u1\",\"resourceVersion\":" \
	"\"7\",\"annotations\":{\"gpu.scheduling/claim\":\"c0\"," more                            \
	"\"gpu.scheduling/allocated\":\"n1:0\"}},\"spec\":{\"nodeName\":\"n1\"}"

TEST(an_annotation_without_a_decision_allocates_nothing_and_a_finished_pod_has_nothing)
{
	stage_open(1);
	stage_pod_json(POD("") "}");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending");
	stage_pod_json(POD("\"gpu.scheduling/decision\":\"{}\",") "}");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending Reserved Bound");
	stage_pod_json(POD("\"gpu.scheduling/decision\":\"{}\",") ",\"status\":{\"phase\":"
								  "\"Succeeded\"}}");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending Reserved Bound Pending");
	stage_close();
}

TEST(pods_that_name_no_claim_or_another_do_not_count)
{
	stage_open(2);
	stage_pod("u1", "p1", NULL, "n1", "n1:0");
	stage_pod("u2", "p2", "", "n1", "n1:0");
	claims_reserved(stage.claims, "u1", "n1", 1);
	claims_waits(stage.claims, "u1", "what", true);
	claims_pod_gone(stage.claims, "u1");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending");
	stage_pod("u3", "p3", "c0", "n1", "n1:0");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending Reserved Bound");
	stage_pod("u3", "p3", "c1", "n1", "n1:0");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending Reserved Bound Pending");
	CHECK_STR(claim(1)->phases, "Pending Reserved Bound");
	stage_pod("u3", "p3", NULL, "n1", "n1:0");
	stage_settle();
	CHECK_STR(claim(1)->phases, "Pending Reserved Bound Pending");
	stage_close();
}

TEST(a_claim_may_come_after_its_pods_go_before_them_and_come_again)
{
	stage_open(0);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_settle();
	CHECK_INT(stage.requests, 0);
	stage_add_claim();
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved Bound");
	stage_remove(0);
	stage_settle();
	CHECK_INT(stage.requests, 2);
	CHECK_INT(stage.claims->by_key.len, 1);
	stage_overwrite(0, "{}");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved Bound Reserved Bound");
	stage_remove(0);
	claims_pod_gone(stage.claims, "u1");
	CHECK_INT(stage.claims->by_key.len, 0);
	CHECK_INT(stage.claims->by_uid.len, 0);
	CHECK_INT(stage.claims->due.len, 0);
	stage_close();
}

/* Random lives of the pods of two claims; the stage checks each step. */
static void live(struct rng *rng, bool *exists, bool *bound)
{
	unsigned i = rng_below(rng, 6);
	char uid[8], node[8], allocated[16], own[8];

	snprintf(uid, sizeof(uid), "u%u", i);
	snprintf(own, sizeof(own), "c%u", i % 2);
	snprintf(node, sizeof(node), "n%u", i);
	snprintf(allocated, sizeof(allocated), "n%u:%u", i, i);
	switch (exists[i] && !bound[i] ? rng_below(rng, 5) : exists[i] ? 4 : 0) {
	case 0:
		stage_pod(uid, uid, own, NULL, NULL);
		exists[i] = true;
		break;
	case 1:
		claims_reserved(stage.claims, uid, node, 1U << i);
		break;
	case 2:
		claims_waits(stage.claims, uid, "no", rng_chance(rng, 1, 3));
		break;
	case 3:
		stage_pod(uid, uid, own, node, allocated);
		bound[i] = true;
		break;
	default:
		claims_pod_gone(stage.claims, uid);
		exists[i] = bound[i] = false;
	}
}

TEST(whatever_happens_to_pods_their_claims_go_their_way_and_are_right_in_the_end)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		bool exists[6] = { 0 }, bound[6] = { 0 };
		struct rng rng;

		rng_seed(&rng, seed);
		stage_open(2);
		for (int i = 0; i < 120; i++) {
			live(&rng, exists, bound);
			stage_turn(rng_below(&rng, 400));
			if (rng_chance(&rng, 1, 20))
				stage_turn(2000);
			if (rng_chance(&rng, 1, 8))
				stage.cache_behind = !stage.cache_behind;
			claim(0)->phases[0] = claim(1)->phases[0] = '\0';
			for (unsigned j = 0; j < 2 && !stage.cache_behind; j++)
				stage_publish(claim(j));
		}
		stage.cache_behind = false;
		stage_publish(claim(0));
		stage_publish(claim(1));
		for (unsigned i = 0; i < 6; i++)
			if (exists[i] && !bound[i]) {
				char uid[8] = { 'u', (char)('0' + i), '\0' };
				claims_waits(stage.claims, uid, "no", false);
			}
		stage_settle();
		for (unsigned j = 0; j < 2; j++) {
			bool any = bound[j] || bound[j + 2] || bound[j + 4];
			CHECKF(strcmp(stage_status(j, "phase"), any ? "Bound" : "Pending") == 0,
			       "seed %u: %s", (unsigned)seed, claim(j)->status.s);
		}
		stage_close();
	}
}

TEST_MAIN()
