/* SPDX-License-Identifier: Apache-2.0 */
/* When claims are written, and by whom: pauses, versions, refusals, other schedulers. */
#include "claims_stage.h"

#define PAUSE CLAIM_PAUSE_MS

/* Lets what is due go as far as the client's queue. */
static void begin_write(void)
{
	claims_tick(stage.claims->timer);
	CHECK_INT(stage.claims->writes, 1);
}

TEST(a_step_back_that_is_still_waiting_to_be_sent_is_stopped_when_a_pod_is_reserved)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_pod("u2", "p2", "c0", NULL, NULL);
	stage_settle();
	claims_pod_gone(stage.claims, "u1");
	stage_turn(PAUSE);
	clock_manual_advance(&stage.clock, CLAIM_LEAVE_MS * MS);
	begin_write();
	claims_reserved(stage.claims, "u2", "n1", 2);
	CHECK_INT(stage.claims->writes, 0);
	stage_pod("u2", "p2", "c0", "n1", "n1:1");
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved Bound Bound");
	CHECK_STR(stage_status(0, "allocated"), "n1:1");
	stage_close();
}

TEST(a_reservation_that_is_still_waiting_to_be_sent_is_stopped_when_it_is_lost)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	claims_reserved(stage.claims, "u1", "n1", 1);
	clock_manual_advance(&stage.clock, CLAIM_SETTLE_MS * MS);
	begin_write();
	claims_waits(stage.claims, "u1", "no room", false);
	CHECK_INT(stage.claims->writes, 0);
	stage_turn(PAUSE); /* it may have gone out: the cache is given time to show that */
	CHECK_INT(stage.requests, 0);
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending");
	claims_reserved(stage.claims, "u1", "n1", 1);
	clock_manual_advance(&stage.clock, PAUSE * MS);
	begin_write();
	claims_pod_gone(stage.claims, "u1");
	CHECK_INT(stage.claims->writes, 0);
	stage_settle();
	CHECK_STR(claim(0)->phases, "Pending Pending");
	CHECK_STR(stage_status(0, "message"), "no pod names this claim");
	stage_close();
}

TEST(a_claim_is_written_only_so_often)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_turn(CLAIM_SETTLE_MS);
	stage_turn(PAUSE - 1);
	CHECK_STR(claim(0)->phases, "Reserved");
	stage_turn(1);
	CHECK_STR(claim(0)->phases, "Reserved Bound");
	stage_close();
}

TEST(a_write_on_an_old_version_waits_for_the_cache_and_goes_on_from_there)
{
	stage_open(1);
	stage_settle();
	stage.cache_behind = true;
	stage_overwrite(0, "{\"phase\":\"Reserved\"}");
	stage.cache_behind = false;
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_turn(PAUSE);
	CHECK_INT(stage.requests, 2);
	stage_turn(PAUSE);
	stage_turn(PAUSE);
	CHECK_INT(stage.requests, 2);
	CHECK_STR(claim(0)->phases, "Pending");
	stage_publish(claim(0));
	stage_turn(PAUSE);
	CHECK_STR(claim(0)->phases, "Pending Bound");
	stage_close();
}

TEST(after_a_write_the_cache_must_show_it_before_the_next)
{
	stage_open(1);
	stage.cache_behind = true;
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_turn(PAUSE);
	stage_pod("u2", "p2", "c0", "n1", "n1:1");
	stage_turn(PAUSE);
	stage_turn(PAUSE);
	CHECK_INT(stage.requests, 1);
	stage.cache_behind = false;
	stage_publish(claim(0));
	stage_turn(PAUSE);
	CHECK_INT(stage.requests, 2);
	CHECK_STR(claim(0)->phases, "Reserved Bound");
	CHECK_STR(stage_status(0, "allocated"), "n1:0 +1");
	stage_close();
}

TEST(a_cache_that_tells_of_no_status_is_looked_at)
{
	stage_open(1);
	stage.silent = true;
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_turn(CLAIM_SETTLE_MS);
	stage_turn(PAUSE);
	CHECK_STR(claim(0)->phases, "Reserved Bound");
	stage.cache_behind = true;
	stage_pod("u2", "p2", "c0", "n1", "n1:1");
	stage_turn(PAUSE);
	claims_pod_gone(stage.claims, "u2");
	stage_turn(PAUSE);
	stage_turn(PAUSE);
	CHECK_INT(stage.requests, 3);
	stage.cache_behind = false;
	stage_publish(claim(0));
	stage_turn(PAUSE);
	CHECK_STR(stage_status(0, "allocated"), "n1:0");
	stage_close();
}

TEST(what_the_status_says_already_is_not_written)
{
	stage_open(0);
	stage_add_claim();
	stage_overwrite(0, "{\"allocated\":\"n1:0\",\"observedGeneration\":1,\"phase\":\"Bound\","
			   "\"gpuIds\":[0],\"nodeName\":\"n1\",\"allocations\":[{\"uid\":\"u1\","
			   "\"gpuIds\":[0],\"nodeName\":\"n1\",\"pod\":\"p1\"}]}");
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_settle();
	CHECK_INT(stage.requests, 0);
	claim(0)->generation++;
	stage_overwrite(0, "{\"phase\":\"Bound\",\"message\":\"mine\"}");
	stage_settle();
	CHECK_INT(stage.requests, 1);
	CHECK_STR(stage_status(0, "allocated"), "n1:0");
	CHECK_STR(stage_status(0, "message"), "");
	CHECK_STR(stage_status(0, "observedGeneration"), "2");
	stage_close();
}

TEST(only_who_leads_writes)
{
	stage_open_with(2, &stage.clock.clock);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_settle();
	CHECK_INT(stage.requests, 0);
	claims_activate(stage.claims, true);
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved Bound");
	CHECK_STR(claim(1)->phases, "Pending");
	claims_pod_gone(stage.claims, "u1");
	claims_activate(stage.claims, false);
	stage_pod("u2", "p2", "c1", "n1", "n1:1");
	stage_settle();
	CHECK_INT(stage.requests, 3);
	stage_close();
}

TEST(what_another_scheduler_says_of_pods_that_we_know_nothing_of_stands)
{
	stage_open(0);
	for (int i = 0; i < 3; i++)
		stage_add_claim();
	stage_overwrite(0, "{\"phase\":\"Failed\",\"message\":\"p1: wrong\"}");
	stage_overwrite(1, "{\"phase\":\"Pending\",\"message\":\"p2: no room\"}");
	stage_overwrite(2, "{\"phase\":\"Reserved\",\"nodeName\":\"n1\",\"gpuIds\":[0]}");
	stage_pod("u0", "p0", "c0", NULL, NULL);
	stage_pod("u1", "p1", "c1", NULL, NULL);
	stage_pod("u2", "p2", "c2", NULL, NULL);
	stage_turn(CLAIM_SETTLE_MS);
	stage_turn(CLAIM_FOREIGN_MS - 1);
	CHECK_INT(stage.requests, 0);
	stage_turn(1);
	CHECK_STR(claim(2)->phases, "Failed");
	CHECK_STR(stage_status(2, "message"), "what was reserved for it could not be kept");
	claims_waits(stage.claims, "u1", "our own reason", false);
	stage_turn(PAUSE);
	CHECK_STR(stage_status(1, "message"), "our own reason");
	stage_close();
}

TEST(each_reservation_of_another_scheduler_has_its_own_time)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	stage_overwrite(0, "{\"phase\":\"Reserved\"}");
	stage_turn(PAUSE);
	stage_turn(CLAIM_FOREIGN_MS - 1000);
	stage_overwrite(0, "{\"phase\":\"Pending\"}");
	stage_turn(PAUSE);
	stage_overwrite(0, "{\"phase\":\"Reserved\"}");
	stage_turn(PAUSE);
	stage_turn(CLAIM_FOREIGN_MS - 1000);
	CHECK_INT(stage.requests, 0);
	stage_turn(1000);
	CHECK_STR(claim(0)->phases, "Failed");
	stage_close();
}

/* Reserved, then bound by another, while we have not heard of either. */
TEST(a_claim_that_another_bound_stays_so_while_its_pods_may_be)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	claims_waits(stage.claims, "u1", "no room", false);
	stage_overwrite(0, "{\"phase\":\"Reserved\"}");
	stage_turn(CLAIM_LEAVE_MS / 2);
	stage_overwrite(0, "{\"phase\":\"Bound\",\"nodeName\":\"n1\",\"gpuIds\":[0]}");
	stage_turn(PAUSE);
	stage_turn(2 * CLAIM_LEAVE_MS);
	CHECK_INT(stage.requests, 0);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	stage_turn(PAUSE);
	CHECK(!strstr(claim(0)->phases, "Pending"));
	/* Now it is seen to go. */
	claims_pod_gone(stage.claims, "u1");
	stage_pod("u2", "p2", "c0", NULL, NULL);
	stage_turn(PAUSE);
	stage_turn(CLAIM_LEAVE_MS);
	CHECK(strstr(claim(0)->phases, "Pending"));
	stage_close();
}

TEST(who_leads_no_more_forgets_what_it_said_of_pods)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	claims_reserved(stage.claims, "u1", "n1", 1);
	stage_settle();
	claims_activate(stage.claims, false);
	stage_overwrite(0, "{\"phase\":\"Pending\",\"message\":\"of the next\"}");
	claims_activate(stage.claims, true);
	stage_settle();
	CHECK_STR(claim(0)->phases, "Reserved");
	CHECK_STR(stage_status(0, "message"), "of the next");
	stage_close();
}

static unsigned logged(void)
{
	char text[8192];
	ssize_t len = pread(s.log_fd, text, sizeof(text) - 1, 0);
	unsigned lines = 0;

	text[len < 0 ? 0 : len] = '\0';
	for (const char *at = text; (at = strstr(at, "cannot be written")); at++)
		lines++;
	return lines;
}

TEST(what_the_server_refuses_is_tried_again_after_growing_pauses)
{
	static const int codes[] = { 403, 422, 404 };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		stage_open(2);
		stage.refuse = codes[i];
		stage_pod("u1", "p1", "c0", "n1", "n1:0");
		stage_turn(PAUSE);
		CHECK_INT(stage.requests, 2);
		stage_turn(900);
		CHECK_INT(stage.requests, 2);
		for (int j = 0; j < 60; j++)
			stage_turn(1000);
		CHECKF(stage.requests >= 8 && stage.requests <= 16, "%u", stage.requests);
		CHECK_INT(logged(), codes[i] == 404 ? 0 : 1);
		stage.refuse = 0;
		for (int j = 0; j < 12; j++)
			stage_turn(60 * 1000);
		CHECK_STR(claim(0)->phases, "Reserved Bound");
		CHECK_STR(claim(1)->phases, "Pending");
		stage_close();
	}
}

TEST(few_claims_are_written_at_a_time)
{
	stage_open(STAGE_CLAIMS);
	stage_settle();
	CHECK_INT(stage.requests, STAGE_CLAIMS);
	CHECK(s.server.most_open <= CLAIM_WRITES_MAX);
	for (unsigned i = 0; i < STAGE_CLAIMS; i++)
		CHECK_STR(claim(i)->phases, "Pending");
	stage_close();
}

TEST(a_message_alone_is_written_now_and_then)
{
	char message[CLAIM_MESSAGE_MAX + 64];

	stage_open(1);
	stage_pod("u1", "p1", "c0", NULL, NULL);
	claims_waits(stage.claims, "u1", "0/1 nodes", false);
	stage_turn(CLAIM_SETTLE_MS);
	for (int i = 0; i < 20; i++) {
		snprintf(message, sizeof(message), "0/%d nodes", i + 2);
		claims_waits(stage.claims, "u1", message, false);
		stage_turn(CLAIM_MESSAGE_MS / 10);
	}
	CHECK_INT(claim(0)->writes, 3);
	memset(message, 'x', sizeof(message));
	memcpy(message + CLAIM_MESSAGE_MAX - 1, "\xc3\xa4", 3);
	claims_waits(stage.claims, "u1", message, false);
	stage_settle();
	CHECK_INT(strlen(stage_status(0, "message")), CLAIM_MESSAGE_MAX - 1);
	stage_close();
}

static bool is_bound(void)
{
	return strcmp(claim(0)->phases, "Reserved Bound") == 0;
}

TEST(with_a_clock_that_goes_it_all_happens_by_itself)
{
	stage_open_with(1, &clock_system);
	claims_activate(stage.claims, true);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	while (!is_bound())
		uv_run(&s.loop, UV_RUN_ONCE);
	stage_close();
}

TEST(it_can_end_while_a_write_is_on_its_way)
{
	stage_open(1);
	stage_pod("u1", "p1", "c0", "n1", "n1:0");
	clock_manual_advance(&stage.clock, PAUSE * MS);
	claims_tick(stage.claims->timer);
	CHECK_INT(stage.claims->writes, 1);
	stage_close();
	claims_free(NULL);
}

TEST_MAIN()
