/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watches: what is asked next after each way in which an answer can end. */
#include "kube_follow.h"

TEST(the_first_list_is_of_this_moment_and_in_pages)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	CHECK_STR(server_asked(&server), "/api/v1/pods?limit=500");
	CHECK(server.asked.accept == NULL);
	CHECK(server.asked.idle_ms > 0);
	server_page(&server, "10", "", "a 3,b 4");
	CHECK_STR(server_seen(&server), "+a3 +b4 S");
}

TEST(pages_go_on_with_their_token_and_the_selectors_but_no_version)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server.options.page = 2;
	server.options.namespace = "ml";
	server.options.label_selector = "app in (a,b)";
	server.options.field_selector = "status.phase!=Failed";
	server_open(&server);
	const char *path = server_asked(&server);
	CHECK(has(path, "/api/v1/namespaces/ml/pods?limit=2"));
	CHECK(has(path, "&labelSelector=app%20in%20%28a%2Cb%29"));
	CHECK(has(path, "&fieldSelector=status.phase%21%3DFailed"));
	server_page(&server, "10", "to/ken=", "a 3,b 4");
	CHECK_STR(server_seen(&server), "");
	path = server_asked(&server);
	CHECK(has(path, "limit=2&continue=to%2Fken%3D&labelSelector=app"));
	CHECK(!has(path, "resourceVersion"));
	server_page(&server, "10", "", "c 5");
	CHECK_STR(server_seen(&server), "+a3 +b4 +c5 S");
	path = server_asked(&server);
	CHECK(has(path, "resourceVersion=10&") && has(path, "&labelSelector=app"));
	CHECK(!has(path, "limit") && !has(path, "continue"));
}

TEST(an_expired_token_starts_the_list_again_in_one_piece)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_asked(&server);
	server_page(&server, "10", "token", "gone 3");
	CHECK(has(server_asked(&server), "continue=token"));
	server_end_as(&server, KUBE_EXPIRED, 410);
	CHECK_STR(server_asked(&server), "/api/v1/pods");
	server_page(&server, "20", "", "a 12");
	CHECK_STR(server_seen(&server), "+a12 S");
	CHECK(has(server_asked(&server), "resourceVersion=20&"));
	server_end_as(&server, KUBE_EXPIRED, 410);
	uint64_t waited_ms;
	CHECK_STR(server_next(&server, &waited_ms), "/api/v1/pods?limit=500");
}

TEST(a_page_that_is_cut_is_asked_for_again)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_asked(&server);
	server_page(&server, "10", "token", "a 3");
	server_asked(&server);
	server_send(&server, "{\"items\":[{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"4\","
			     "\"uid\":\"u-b\",\"namespace\":\"ml\"}},{");
	server_end_as(&server, KUBE_SERVER_ERROR, 200);
	CHECK(has(server_next(&server, &waited_ms), "continue=token"));
	CHECK(waited_ms >= 800 && waited_ms <= 1600);
	server_page(&server, "10", "", "b 4,c 5");
	CHECK_STR(server_seen(&server), "+a3 +b4 +c5 S");
}

TEST(a_token_that_the_server_does_not_understand_starts_the_list_again)
{
	const enum kube_reason reasons[] = { KUBE_BAD_REQUEST, KUBE_INVALID };
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		struct server server CLEANUP(server_done);
		uint64_t waited_ms;
		server_init(&server);
		server_open(&server);
		server_asked(&server);
		server_page(&server, "10", "token", "gone 3");
		CHECK(has(server_asked(&server), "continue=token"));
		server_end_as(&server, reasons[i], i ? 422 : 400);
		CHECK_STR(server_next(&server, &waited_ms), "/api/v1/pods?limit=500");
		CHECK(waited_ms >= 800 && waited_ms <= 1600);
		server_page(&server, "20", "", "a 12");
		CHECK_STR(server_seen(&server), "+a12 S");
	}
}

TEST(a_first_page_that_is_cut_leaves_nothing)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_asked(&server);
	server_send(&server,
		    "{\"items\":[{\"metadata\":{\"name\":\"old\",\"resourceVersion\":\"4\""
		    "}},{");
	server_end_as(&server, KUBE_SERVER_ERROR, 200);
	server_next(&server, &waited_ms);
	server_page(&server, "10", "", "a 5");
	CHECK_STR(server_seen(&server), "+a5 S");
}

TEST(what_is_no_list_is_tried_again_later)
{
	static const char *const bodies[] = {
		"",
		"<html>welcome</html>",
		"{}",
		"{\"kind\":\"PodList\",\"items\":[]}",
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}",
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"4\"},\"items\":7}",
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"4\"},\"items\":[",
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"4\"},\"items\":[]",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		struct server server CLEANUP(server_done);
		uint64_t waited_ms;
		server_init(&server);
		server_open(&server);
		server_asked(&server);
		server_send(&server, bodies[i]);
		server_end_as(&server, server.follow.stopped ? KUBE_MALFORMED : KUBE_OK, 200);
		CHECK(server.follow.trouble[0]);
		CHECK_STR(server_next(&server, &waited_ms), "/api/v1/pods?limit=500");
		CHECKF(waited_ms >= 800, "%s", bodies[i]);
		CHECK_STR(server_seen(&server), "");
	}
}

TEST(the_watch_begins_at_the_lists_version_for_five_to_ten_minutes)
{
	uint32_t shortest = UINT32_MAX, longest = 0;
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_asked(&server);
	server_page(&server, "9007199254740993000000", "", "");
	for (int i = 0; i < 500; i++) {
		const char *path = server_asked(&server);
		unsigned seconds = 0;
		const char *at = strstr(path, "&timeoutSeconds=");
		CHECK(has(path, "/api/v1/pods?watch=1&resourceVersion=9007199254740993000000"
				"&allowWatchBookmarks=true&timeoutSeconds="));
		CHECK(at && sscanf(at, "&timeoutSeconds=%u", &seconds) == 1);
		CHECK(!has(path, "sendInitialEvents") && !has(path, "resourceVersionMatch"));
		CHECK(server.asked.idle_ms > seconds * 1000);
		CHECK(server.asked.idle_ms <= seconds * 1000 + 60000);
		shortest = MIN(shortest, seconds);
		longest = MAX(longest, seconds);
		server.now_ms += 300000;
		server_end(&server);
	}
	CHECK(shortest >= 300 && shortest < 310);
	CHECK(longest <= 600 && longest > 590);
}

TEST(events_change_the_state)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3,b 4");
	server_event(&server, "MODIFIED", "a 11");
	server_event(&server, "ADDED", "c 12");
	server_event(&server, "DELETED", "b 13");
	server_event(&server, "DELETED", "nobody 14");
	CHECK_STR(server_seen(&server), "~a11 +c12 -b4");
	CHECK_INT(server.follow.store.live.len, 2);
	server_event(&server, "MODIFIED", "d 15"); /* began to match a selector, long ago */
	server_event(&server, "ADDED", "a 16");
	CHECK_STR(server_seen(&server), "+d15 ~a16");
	CHECK_INT(server.follow.events, 6);
}

TEST(an_event_that_was_seen_is_not_applied_again)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3");
	server_event(&server, "ADDED", "a 3");
	server_event(&server, "MODIFIED", "a 3");
	CHECK_STR(server_seen(&server), "");
	server_event(&server, "MODIFIED", "a 11");
	server_event(&server, "MODIFIED", "a 11");
	CHECK_STR(server_seen(&server), "~a11");
}

TEST(who_takes_a_name_over_is_another)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3 one,b 4 one");
	server_event(&server, "MODIFIED", "a 11 two");
	CHECK_STR(server_seen(&server), "!a3 +a11");
	server_event(&server, "DELETED", "b 12 two"); /* of one that we never saw */
	CHECK_STR(server_seen(&server), "!b4");
}

TEST(a_bookmark_is_where_to_go_on)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3");
	server_event(&server, "MODIFIED", "a 11");
	server_bookmark(&server, "50", false);
	server_end(&server);
	CHECK(has(server_asked(&server), "resourceVersion=50&"));
	CHECK_STR(server_seen(&server), "~a11");
	server_event(&server, "DELETED", "a 60");
	server_end_as(&server, KUBE_SERVER_ERROR, 200); /* cut */
	CHECK(has(server_asked(&server), "resourceVersion=60&"));
}

TEST(half_an_event_at_the_end_never_was)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3");
	server_event(&server, "MODIFIED", "a 11");
	server_send(&server, "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\",");
	server_end(&server);
	CHECK(has(server_asked(&server), "resourceVersion=11&"));
	server_event(&server, "MODIFIED", "a 12");
	CHECK_STR(server_seen(&server), "~a11 ~a12");
}

TEST(a_watch_that_ends_at_once_without_an_event_has_failed)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms, last_ms = 0;
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3");
	for (int i = 0; i < 4; i++) {
		server.now_ms += 999;
		server_end(&server);
		CHECK(has(server_next(&server, &waited_ms), "resourceVersion=10&"));
		CHECK(waited_ms >= 800 && waited_ms > last_ms / 2);
		last_ms = waited_ms;
	}
	server.now_ms += 1000;
	server_end(&server);
	CHECK(has(server_asked(&server), "resourceVersion=10&"));
	server_bookmark(&server, "11", false); /* short, but something came */
	server_end(&server);
	CHECK(has(server_asked(&server), "resourceVersion=11&"));
}

TEST(a_list_in_place_of_a_watch_is_no_reason_to_hurry)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_asked(&server);
	server_page(&server, "10", "", "a 5");
	for (int i = 0; i < 3; i++) {
		CHECK(has(server_next(&server, &waited_ms), "resourceVersion=10&"));
		CHECK((waited_ms > 0) == (i > 0));
		server_send(&server, "{\"kind\":\"PodList\",\"items\":[]}\n");
		server_end(&server);
	}
}

TEST(a_server_that_cannot_be_reached_is_resumed_after_a_pause)
{
	static const enum kube_reason reasons[] = { KUBE_UNREACHABLE, KUBE_SERVER_ERROR,
						    KUBE_NO_CREDENTIALS };
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3");
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		server.now_ms += 10000;
		server_end_as(&server, reasons[i], 0);
		CHECK(has(server_next(&server, &waited_ms), "resourceVersion=10&"));
		CHECK(waited_ms >= 800);
	}
	CHECK_STR(server_seen(&server), "");
}

/* Watches and waits for a minute, so that the list's version is not fresh any more. */
static void server_settle(struct server *server, const char *objects)
{
	server_watch(server, objects);
	server_bookmark(server, "20", false);
	server->now_ms += 60000;
}

TEST(forgotten_history_is_listed_again_at_once)
{
	static const struct {
		int code;
		const char *reason;
		bool event;
		enum kube_reason meaning;
	} ends[] = {
		{ 410, "Expired", true, KUBE_EXPIRED },
		{ 410, "Gone", true, KUBE_EXPIRED },
		{ 410, "Expired", false, KUBE_EXPIRED },
		{ 504, "Timeout", false, KUBE_VERSION_TOO_LARGE },
	};
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct server server CLEANUP(server_done);
		server_init(&server);
		server_open(&server);
		server_settle(&server, "a 3");
		if (ends[i].event)
			CHECK(server_error(&server, ends[i].code, ends[i].reason, "{}") != 0);
		server_end_as(&server, ends[i].event ? KUBE_MALFORMED : ends[i].meaning,
			      ends[i].event ? 200 : ends[i].code);
		CHECK_STR(server_asked(&server), "/api/v1/pods?limit=500");
		server_page(&server, "30", "", "a 3");
		CHECK_STR(server_seen(&server), "S");
		CHECK(has(server_asked(&server), "resourceVersion=30&"));
	}
}

TEST(history_that_a_list_has_just_given_and_is_forgotten_is_no_reason_to_hurry)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3");
	for (int i = 0; i < 3; i++) {
		CHECK(server_error(&server, 410, "Expired", "{}") != 0);
		server_end_as(&server, KUBE_MALFORMED, 200);
		server_next(&server, &waited_ms);
		CHECK(waited_ms >= 800);
		server_page(&server, "30", "", "a 3");
		CHECK(has(server_asked(&server), "resourceVersion=30&"));
	}
}

TEST(too_many_requests_waits_and_goes_on_from_the_same_version)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_settle(&server, "a 3");
	CHECK(server_error(&server, 429, "TooManyRequests", "{\"retryAfterSeconds\":9}") != 0);
	server_end_as(&server, KUBE_MALFORMED, 200);
	CHECK(has(server_next(&server, &waited_ms), "resourceVersion=20&"));
	CHECK(waited_ms >= 9000 && waited_ms < 12000);
	struct kube_reply reply = { .reason = KUBE_TOO_MANY_REQUESTS,
				    .code = 429,
				    .retry_after_s = 1000000,
				    .message = "later" };
	follow_end(&server.follow, server.now_ms, &reply);
	CHECK(has(server_next(&server, &waited_ms), "resourceVersion=20&"));
	CHECK_INT(waited_ms, 300000); /* nobody puts us off for ever */
}

TEST(any_other_refusal_lists_again_after_a_pause)
{
	static const struct {
		int code;
		enum kube_reason reason;
		const char *name;
	} ends[] = {
		{ 500, KUBE_SERVER_ERROR, "InternalError" },
		{ 403, KUBE_FORBIDDEN, "Forbidden" },
		{ 401, KUBE_UNAUTHORIZED, "Unauthorized" },
		{ 400, KUBE_BAD_REQUEST, "BadRequest" },
		{ 404, KUBE_NOT_FOUND, "NotFound" },
	};
	for (size_t i = 0; i < 2 * ARRAY_SIZE(ends); i++) {
		struct server server CLEANUP(server_done);
		uint64_t waited_ms;
		bool event = i % 2 == 0;
		server_init(&server);
		server_open(&server);
		server_settle(&server, "a 3");
		if (event)
			CHECK(server_error(&server, ends[i / 2].code, ends[i / 2].name, "{}") !=
			      0);
		server_end_as(&server, event ? KUBE_MALFORMED : ends[i / 2].reason,
			      event ? 200 : ends[i / 2].code);
		CHECK_STR(server_next(&server, &waited_ms), "/api/v1/pods?limit=500");
		CHECKF(waited_ms >= 800, "after %d", ends[i / 2].code);
	}
}

TEST(what_makes_no_sense_lists_again_after_a_pause)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_settle(&server, "a 3");
	CHECK(server_send(&server, "<html>\n") != 0);
	server_end_as(&server, KUBE_MALFORMED, 200);
	CHECK_STR(server_next(&server, &waited_ms), "/api/v1/pods?limit=500");
	CHECK(waited_ms >= 800);
}

TEST(a_new_list_is_a_replacement)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server.options.page = 2;
	server_open(&server);
	server_settle(&server, "same 3,gone 4,newer 5,other 6 one");
	server_end_as(&server, KUBE_EXPIRED, 410);
	server_asked(&server);
	server_page(&server, "30", "more", "same 3,newer 25");
	server_asked(&server);
	CHECK_STR(server_seen(&server), "");
	server_page(&server, "30", "", "new 26,other 27 two");
	const char *seen = server_seen(&server);
	/* First all that is gone, then all that is new; no order among them. */
	const char *first_new = strpbrk(seen, "+~"), *last_gone = strrchr(seen, '!');
	CHECK(first_new > last_gone);
	CHECK(has(seen, "!gone4") && has(seen, "!other6") && has(seen, "~newer25"));
	CHECK(has(seen, "+new26") && has(seen, "+other27") && !has(seen, "same"));
	CHECK(seen[strlen(seen) - 1] == 'S');
	CHECK_INT(server.follow.store.live.len, 4);
}

TEST_MAIN()
