/* SPDX-License-Identifier: Apache-2.0 */
/* Lists as streams, kinds that are not there, objects that cannot be read, and what the
 * cache says about itself. */
#include "kube_follow.h"

#include "base/clock.h"
#include "base/log.h"

#include <unistd.h>

static void stream_init(struct server *server)
{
	server_init(server);
	server->options.no_streaming = false;
}

/* Streams these as the list and goes on watching. */
static void stream_settle(struct server *server)
{
	server_asked(server);
	server_event(server, "ADDED", "a 3");
	server_event(server, "ADDED", "b 4");
	server_bookmark(server, "20", true);
	server_seen(server);
	server->now_ms += 60000;
}

TEST(a_stream_is_a_list_once_its_end_has_come)
{
	struct server server CLEANUP(server_done);
	stream_init(&server);
	server_open(&server);
	const char *path = server_asked(&server);
	CHECK(has(path, "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch="
			"NotOlderThan&resourceVersion=&allowWatchBookmarks=true&timeoutSeconds="));
	server_event(&server, "ADDED", "a 300");
	server_event(&server, "ADDED", "b 4");
	server_event(&server, "ADDED", "c 5");
	server_bookmark(&server, "7", false); /* not the end */
	server_event(&server, "MODIFIED", "b 8");
	server_event(&server, "DELETED", "c 9");
	CHECK_STR(server_seen(&server), "");
	CHECK(!server.follow.synced);
	server_bookmark(&server, "10", true);
	const char *seen = server_seen(&server);
	CHECK(has(seen, "+a300") && has(seen, "+b8") && !has(seen, "c") && has(seen, " S"));
	server_event(&server, "DELETED", "a 12");
	CHECK_STR(server_seen(&server), "-a300");
	server_end(&server);
	path = server_asked(&server);
	CHECK(has(path, "watch=1&resourceVersion=12&") && !has(path, "sendInitialEvents"));
}

TEST(a_stream_that_is_cut_leaves_the_old_state_and_begins_again)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	stream_init(&server);
	server_open(&server);
	stream_settle(&server);
	CHECK(server_error(&server, 410, "Expired", "{}") != 0);
	server_end_as(&server, KUBE_MALFORMED, 200);
	CHECK(has(server_asked(&server), "sendInitialEvents=true"));
	server_event(&server, "ADDED", "a 30");
	server_event(&server, "ADDED", "b 4");
	server_event(&server, "ADDED", "x 31");
	server_end_as(&server, KUBE_SERVER_ERROR, 200);
	CHECK_STR(server_seen(&server), "");
	CHECK_INT(server.follow.store.live.len, 2);
	CHECK_STR(cache_store_get(&server.follow.store, "ml", "a")->version, "3");
	CHECK(has(server_next(&server, &waited_ms), "sendInitialEvents=true&"));
	CHECK(waited_ms >= 800);
	server_event(&server, "ADDED", "a 32");
	server_bookmark(&server, "40", true);
	CHECK_STR(server_seen(&server), "!b4 ~a32 S");
}

TEST(a_server_that_never_ends_a_stream_is_asked_for_a_list)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	int streams = 0;
	stream_init(&server);
	server_open(&server);
	while (has(server_next(&server, &waited_ms), "sendInitialEvents")) {
		CHECK(++streams <= 5);
		server_event(&server, "ADDED", "a 3");
		server.now_ms += 300000;
		server_end(&server);
	}
	CHECK_STR(server.asked.path, "/api/v1/pods?limit=500");
	server_page(&server, "10", "", "a 3");
	CHECK_STR(server_seen(&server), "+a3 S");
	CHECK(server.streams);
}

TEST(a_list_that_falls_silent_is_stuck_but_a_watch_may_be)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	stream_init(&server);
	server_open(&server);
	server_asked(&server);
	server.now_ms += 50000;
	CHECK(!follow_is_stuck(&server.follow, server.now_ms));
	server_event(&server, "ADDED", "a 3");
	server.now_ms += 50000;
	CHECK(!follow_is_stuck(&server.follow, server.now_ms));
	server.now_ms += 10000;
	CHECK(follow_is_stuck(&server.follow, server.now_ms));
	follow_end(&server.follow, server.now_ms, &follow_silence);
	CHECK(has(server_next(&server, &waited_ms), "sendInitialEvents"));
	server_bookmark(&server, "40", true);
	CHECK_STR(server_seen(&server), "S");
	CHECK(!follow_is_stuck(&server.follow, server.now_ms + 500000));
}

TEST(a_server_that_refuses_streams_is_never_asked_for_one_again)
{
	static const int codes[] = { 400, 403, 405, 406, 415, 422 };
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		struct server server CLEANUP(server_done);
		stream_init(&server);
		server_open(&server);
		CHECK(has(server_asked(&server), "sendInitialEvents"));
		server_end_as(&server, KUBE_BAD_REQUEST, codes[i]);
		CHECK_STR(server_asked(&server), "/api/v1/pods?limit=500");
		CHECKF(!server.streams, "%d", codes[i]);
		server_page(&server, "10", "", "a 3");
		server_asked(&server);
		server_bookmark(&server, "11", false);
		server_end_as(&server, KUBE_EXPIRED, 410);
		CHECK_STR(server_asked(&server), "/api/v1/pods?limit=500");
	}
}

TEST(refusals_that_are_not_about_streams_do_not_end_them)
{
	static const struct {
		int code;
		enum kube_reason reason;
	} ends[] = { { 401, KUBE_UNAUTHORIZED },
		     { 410, KUBE_EXPIRED },
		     { 429, KUBE_TOO_MANY_REQUESTS },
		     { 500, KUBE_SERVER_ERROR },
		     { 0, KUBE_UNREACHABLE } };
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct server server CLEANUP(server_done);
		uint64_t waited_ms;
		stream_init(&server);
		server_open(&server);
		server_asked(&server);
		server_end_as(&server, ends[i].reason, ends[i].code);
		CHECK(server.streams);
		CHECKF(has(server_next(&server, &waited_ms), "sendInitialEvents"), "%d",
		       ends[i].code);
		CHECK(waited_ms >= 800);
	}
}

TEST(a_kind_that_is_not_there_is_empty_and_asked_for_now_and_then)
{
	struct server server CLEANUP(server_done);
	struct kube_cache_status status;
	uint64_t waited_ms;
	stream_init(&server);
	server.options.optional = true;
	server_open(&server);
	CHECK(has(server_asked(&server), "sendInitialEvents"));
	server_end_as(&server, KUBE_NOT_FOUND, 404);
	CHECK_STR(server_asked(&server), "/api/v1/pods?limit=500");
	CHECK(server.streams); /* others may stream */
	server_end_as(&server, KUBE_NOT_FOUND, 404);
	CHECK_STR(server_seen(&server), "S");
	follow_status(&server.follow, server.now_ms, &status);
	CHECK(status.synced && status.live && status.state == KUBE_CACHE_WAITING);
	CHECK_STR(status.trouble, "the server has no pods");
	for (int i = 0; i < 3; i++) {
		CHECK_STR(server_next(&server, &waited_ms), "/api/v1/pods?limit=500");
		CHECK(waited_ms >= 10000 && waited_ms <= 60000);
		server_end_as(&server, KUBE_NOT_FOUND, 404);
		CHECK_STR(server_seen(&server), "");
	}
	server_next(&server, &waited_ms);
	server_end_as(&server, KUBE_UNREACHABLE, 0);
	follow_status(&server.follow, server.now_ms, &status);
	CHECK(!status.live);
	server_next(&server, &waited_ms);
	CHECK(waited_ms <= 1600);
	server_page(&server, "10", "", "a 3");
	CHECK_STR(server_seen(&server), "+a3 S");
	server_asked(&server);
	server_end_as(&server, KUBE_NOT_FOUND, 404); /* and it is taken away */
	while (has(server_next(&server, &waited_ms), "watch=1"))
		server_end_as(&server, KUBE_NOT_FOUND, 404);
	server_end_as(&server, KUBE_NOT_FOUND, 404);
	CHECK_STR(server_seen(&server), "!a3 S");
}

TEST(a_kind_that_must_be_there_is_a_failure_without)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_asked(&server);
	server_end_as(&server, KUBE_NOT_FOUND, 404);
	CHECK_STR(server_seen(&server), "");
	CHECK(!server.follow.synced);
	server_next(&server, &waited_ms);
	CHECK(waited_ms >= 800 && waited_ms <= 1600);
}

TEST(kinds_of_which_only_metadata_is_wanted_say_so)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server.kind.metadata_only = true;
	server_open(&server);
	server_asked(&server);
	CHECK_STR(server.asked.accept,
		  "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
	server_page(&server, "10", "", "");
	server_asked(&server);
	CHECK_STR(server.asked.accept,
		  "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
}

TEST(objects_that_cannot_be_read_are_skipped_counted_and_said)
{
	int ends[2];
	char said[8192];
	CHECK(pipe(ends) == 0);
	struct log log = { .fd = ends[1], .level = LOG_WARN, .clock = &clock_system };
	struct server server CLEANUP(server_done);
	server_init(&server);
	server.options.log = &log;
	server_open(&server);
	server_asked(&server);
	server_send(&server, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["
			     "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\"}},null,7,"
			     "{\"metadata\":{\"name\":\"noversion\"}},{]},"
			     "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"4\"}}]}");
	server_end(&server);
	CHECK_STR(server_seen(&server), "+a3 +b4 S");
	CHECK_INT(server.follow.store.malformed, 4);
	server_asked(&server);
	server_send(&server,
		    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":7,"
		    "\"resourceVersion\":\"11\"}}}\n{\"type\":\"STRANGE\",\"object\":{}}\n"
		    "{\"type\":\"ADDED\"}\n");
	CHECK_INT(server.follow.store.malformed, 7);
	server_send(&server, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\","
			     "\"resourceVersion\":\"12\"}}}\n");
	CHECK_STR(server_seen(&server), "~a12");
	ssize_t len = read(ends[0], said, sizeof(said) - 1);
	CHECK(len > 0);
	said[len] = '\0';
	CHECK(has(said, "skipped an object that cannot be read"));
	CHECK(has(said, "name=noversion") && has(said, "resource=pods"));
	close(ends[0]);
	close(ends[1]);
}

/* An object of which more would be kept than an object may have. */
static void add_huge(struct strbuf *out, const char *version)
{
	strbuf_addf(out,
		    "{\"metadata\":{\"name\":\"huge\",\"resourceVersion\":\"%s\",\"labels\":"
		    "{\"a\":\"",
		    version);
	for (size_t i = 0; i < KUBE_KEPT_MAX / 16 + 1; i++)
		strbuf_puts(out, "0123456789abcdef");
	strbuf_puts(out, "\"}}}");
}

TEST(an_object_that_grew_too_large_stays_as_it_was)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_asked(&server);
	server_send(&server, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["
			     "{\"metadata\":{\"name\":\"huge\",\"resourceVersion\":\"3\"}}]}");
	server_end(&server);
	server_asked(&server);
	server_seen(&server);
	strbuf_puts(&text, "{\"type\":\"MODIFIED\",\"object\":");
	add_huge(&text, "11");
	strbuf_puts(&text, "}\n");
	CHECK_INT(server_send(&server, text.s), 0);
	server_end_as(&server, KUBE_EXPIRED, 410);
	server_asked(&server);
	strbuf_reset(&text);
	strbuf_puts(&text, "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[");
	add_huge(&text, "12");
	strbuf_puts(&text, "]}");
	CHECK_INT(server_send(&server, text.s), 0);
	server_end(&server);
	CHECK_STR(server_seen(&server), "S");
	CHECK_INT(server.follow.store.malformed, 2);
	CHECK_INT(server.follow.store.live.len, 1);
}

static bool is_live(struct server *server)
{
	struct kube_cache_status status;
	follow_status(&server->follow, server->now_ms, &status);
	return status.live;
}

TEST(a_cache_is_live_while_its_watch_is_open_or_resumed_in_order)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	CHECK(!is_live(&server));
	server_asked(&server);
	CHECK(!is_live(&server));
	server_page(&server, "10", "", "a 3");
	CHECK(is_live(&server));
	server_asked(&server);
	CHECK(is_live(&server));
	server.now_ms += 400000;
	server_end(&server);
	CHECK(is_live(&server));
	server_asked(&server);
	server_end_as(&server, KUBE_UNREACHABLE, 0);
	CHECK(!is_live(&server));
	server_next(&server, &waited_ms);
	CHECK(!is_live(&server)); /* asked, but nobody has answered */
	server_bookmark(&server, "12", false);
	CHECK(is_live(&server));
	server_end_as(&server, KUBE_EXPIRED, 410);
	CHECK(!is_live(&server)); /* something may have been missed */
	server_asked(&server);
	server_page(&server, "20", "", "a 3");
	CHECK(is_live(&server));
}

TEST(a_resumed_watch_without_events_is_live_when_no_refusal_has_come)
{
	struct server server CLEANUP(server_done);
	uint64_t waited_ms;
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3");
	server_end_as(&server, KUBE_UNREACHABLE, 0);
	server_next(&server, &waited_ms);
	server.now_ms += 12000;
	CHECK(!is_live(&server));
	server.now_ms += 10000;
	CHECK(is_live(&server));
}

TEST(the_figures_of_a_cache_add_up)
{
	struct server server CLEANUP(server_done);
	struct kube_cache_status status;
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3,b 4");
	server_event(&server, "MODIFIED", "a 11");
	server_bookmark(&server, "12", false);
	follow_status(&server.follow, server.now_ms, &status);
	CHECK_INT(status.state, KUBE_CACHE_WATCHING);
	CHECK_INT(status.count, 2);
	CHECK_INT(status.lists, 1);
	CHECK_INT(status.watches, 1);
	CHECK_INT(status.events, 1);
	CHECK_INT(status.heard_ms, server.now_ms);
	CHECK_STR(status.trouble, "");
	uint64_t bytes = 0;
	struct map_entry entry;
	for (uint32_t at = 0; map_next(&server.follow.store.live, &at, &entry);)
		bytes += ((struct kube_object *)entry.value)->bytes;
	CHECK_INT(server.follow.store.bytes, bytes);
	CHECK(status.bytes > bytes);
	server_event(&server, "DELETED", "a 13");
	server_event(&server, "DELETED", "b 14");
	CHECK_INT(server.follow.store.bytes, 0);
}

TEST(what_a_user_hangs_on_an_object_stays_with_its_next_version)
{
	struct server server CLEANUP(server_done);
	int mine = 0;
	server_init(&server);
	server_open(&server);
	server_watch(&server, "a 3 one");
	cache_store_get(&server.follow.store, "ml", "a")->user = &mine;
	server_event(&server, "MODIFIED", "a 11 one");
	CHECK(cache_store_get(&server.follow.store, "ml", "a")->user == &mine);
	server_end_as(&server, KUBE_EXPIRED, 410);
	server_asked(&server);
	server_page(&server, "30", "", "a 21 one");
	CHECK(cache_store_get(&server.follow.store, "ml", "a")->user == &mine);
	server_asked(&server);
	server_event(&server, "MODIFIED", "a 31 two");
	CHECK(cache_store_get(&server.follow.store, "ml", "a")->user == NULL);
}

TEST(names_that_could_be_split_in_two_ways_are_two)
{
	struct server server CLEANUP(server_done);
	server_init(&server);
	server_open(&server);
	server_asked(&server);
	server_send(&server, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":["
			     "{\"metadata\":{\"namespace\":\"a\",\"name\":\"bc\","
			     "\"resourceVersion\":\"3\"}},{\"metadata\":{\"namespace\":\"ab\","
			     "\"name\":\"c\",\"resourceVersion\":\"4\"}}]}");
	server_end(&server);
	CHECK_STR(cache_store_get(&server.follow.store, "a", "bc")->version, "3");
	CHECK_STR(cache_store_get(&server.follow.store, "ab", "c")->version, "4");
	CHECK(!cache_store_get(&server.follow.store, "abc", ""));
	CHECK(!cache_store_get(&server.follow.store, NULL, "c"));
}

TEST_MAIN()
