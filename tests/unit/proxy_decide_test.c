/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/proxy/decide.h"
#include "kube/proxy/record.h"
#include "kube/proxy/script.h"
#include "kube/proxy/target.h"
#include "wire/file.h"

#include <errno.h>
#include <unistd.h>

struct player {
	struct script script;
	struct decider *decider;
};

static struct player player_new(const char *text)
{
	struct player player = { 0 };
	struct err err = ERR_INIT;
	CHECKF(script_parse("test", text, strlen(text), &player.script, &err) == 0, "%s",
	       err.text);
	return player;
}

/* Once the player has its place: the decider borrows the script. */
static void player_start(struct player *player, uint64_t seed)
{
	player->decider = decider_new(&player->script, seed);
	CHECK(player->decider);
}

static void player_done(struct player *player)
{
	decider_free(player->decider);
	script_done(&player->script);
}

static struct decision ask(struct player *player, const char *method, const char *path,
			   uint64_t now_ms)
{
	struct target target CLEANUP(target_done);
	struct decision decision;
	CHECK_INT(target_read(method, path, &target), 0);
	CHECK_INT(decide(player->decider, &target, now_ms, &decision), 0);
	return decision;
}

/* The kind of the only fault, FAULT_NONE if there is none. */
static enum fault_kind kind_of(struct player *player, const char *method, const char *path)
{
	struct decision decision = ask(player, method, path, 0);
	CHECK(decision.count <= 1);
	return decision.count ? decision.parts[0].fault.kind : FAULT_NONE;
}

#define PLAYER(name, text, seed)                                      \
	struct player name CLEANUP(player_done) = player_new((text)); \
	player_start(&name, (seed))

TEST(the_first_rule_that_fires_is_the_one_and_all_count)
{
	PLAYER(player,
	       "on verb=get nth=2 reset\non verb=get nth=2 half-body\non verb=get nth=3 goaway",
	       1);
	CHECK_INT(kind_of(&player, "GET", "/a"), FAULT_NONE);
	CHECK_INT(kind_of(&player, "POST", "/a"), FAULT_NONE);
	CHECK_INT(kind_of(&player, "GET", "/b"), FAULT_RESET);
	CHECK_INT(kind_of(&player, "GET", "/c"), FAULT_GOAWAY);
	CHECK_INT(decider_requests(player.decider), 4);
	CHECK_INT(decider_faults(player.decider, FAULT_RESET), 1);
	CHECK_INT(decider_faults(player.decider, FAULT_HALF_BODY), 0);
}

TEST(a_delay_lets_another_fault_follow_but_no_second_delay)
{
	PLAYER(player, "on any delay=5ms\non any delay=7ms\non any reset\non any goaway", 1);
	struct decision decision = ask(&player, "GET", "/a", 0);
	CHECK_INT(decision.count, 2);
	CHECK_INT(decision.parts[0].fault.kind, FAULT_DELAY);
	CHECK_INT(decision.parts[0].fault.ms, 5);
	CHECK_INT(decision.parts[0].rule, 1);
	CHECK_INT(decision.parts[1].fault.kind, FAULT_RESET);
	CHECK_INT(decision.parts[1].rule, 3);
}

TEST(limits_hold_by_rule_and_for_all)
{
	PLAYER(player,
	       "on verb=get after=requests:2 max=2 reset\n"
	       "on verb=create goaway\n"
	       "limit max=4",
	       1);
	for (int i = 0; i < 6; i++)
		CHECK_INT(kind_of(&player, "GET", "/a"),
			  i == 2 || i == 3 ? FAULT_RESET : FAULT_NONE);
	for (int i = 0; i < 4; i++)
		CHECK_INT(kind_of(&player, "POST", "/a"), i < 2 ? FAULT_GOAWAY : FAULT_NONE);
}

TEST(there_is_a_gap_between_faults)
{
	PLAYER(player, "on any gap=100ms reset", 1);
	static const struct {
		uint64_t at_ms;
		size_t count;
	} rows[] = { { 10, 1 }, { 50, 0 }, { 109, 0 }, { 110, 1 }, { 111, 0 }, { 500, 1 } };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		CHECK_INT(ask(&player, "GET", "/a", rows[i].at_ms).count, rows[i].count);
}

TEST(faults_stop_when_they_are_told_to)
{
	PLAYER(player, "on name=last stop\non any reset", 1);
	CHECK_INT(kind_of(&player, "GET", "/api/v1/nodes/a"), FAULT_RESET);
	decider_switch(player.decider, false);
	CHECK_INT(kind_of(&player, "GET", "/api/v1/nodes/a"), FAULT_NONE);
	decider_switch(player.decider, true);
	CHECK_INT(kind_of(&player, "GET", "/api/v1/nodes/a"), FAULT_RESET);
	CHECK_INT(kind_of(&player, "GET", "/api/v1/nodes/last"), FAULT_STOP);
	CHECK(!decider_is_on(player.decider));
	CHECK_INT(kind_of(&player, "GET", "/api/v1/nodes/a"), FAULT_NONE);
}

#define IDENTITIES 20
#define TURNS	   200

/* The faults of TURNS requests for each identity, in an order that depends on `stride`. */
static void play(struct player *player, unsigned stride, enum fault_kind (*ret)[TURNS])
{
	unsigned turn[IDENTITIES] = { 0 };
	for (unsigned i = 0; i < IDENTITIES * TURNS; i++) {
		unsigned identity = i * stride % IDENTITIES;
		while (turn[identity] == TURNS)
			identity = (identity + 1) % IDENTITIES;
		char path[32];
		snprintf(path, sizeof(path), "/identity/%u?try=%u", identity, i);
		ret[identity][turn[identity]++] = kind_of(player, "GET", path);
	}
}

TEST(what_a_request_gets_does_not_depend_on_the_order_of_others)
{
	static enum fault_kind first[IDENTITIES][TURNS], second[IDENTITIES][TURNS];
	static const char text[] = "on any p=0.3 reset\non any p=0.1 goaway";
	PLAYER(one, text, 42);
	PLAYER(other, text, 42);
	play(&one, 1, first);
	play(&other, 7, second);
	CHECK(memcmp(first, second, sizeof(first)) == 0);
	PLAYER(third, text, 43);
	play(&third, 1, second);
	CHECK(memcmp(first, second, sizeof(first)) != 0);
}

TEST(a_chance_is_what_it_says)
{
	static const char *const texts[] = { "on any p=0 reset", "on any p=0.25 reset",
					     "on any p=1 reset", "on any p=0.01 reset" };
	static const unsigned wanted[] = { 0, 25, 100, 1 };
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		PLAYER(player, texts[i], 5);
		unsigned fired = 0;
		for (unsigned n = 0; n < 20000; n++)
			fired += kind_of(&player, "GET", "/a") == FAULT_RESET;
		unsigned expected = wanted[i] * 200;
		CHECKF(fired + 200 >= expected && fired <= expected + 200 &&
			       (wanted[i] != 0 || fired == 0) &&
			       (wanted[i] != 100 || fired == 20000),
		       "%s: %u of 20000", texts[i], fired);
	}
}

TEST(numbers_are_drawn_from_their_ranges_to_both_ends)
{
	PLAYER(player, "on any cut mid-event after=events:2..4\non any delay=1..3ms", 6);
	bool counts[5] = { false };
	bool delays[4] = { false };
	for (int i = 0; i < 200; i++) {
		struct decision decision = ask(&player, "GET", "/api/v1/pods?watch=1", 0);
		CHECK_INT(decision.count, 1);
		const struct fault *cut = &decision.parts[0].fault;
		CHECK(cut->count >= 2 && cut->count <= 4 && cut->permille >= 1 &&
		      cut->permille <= 999);
		counts[cut->count] = true;
		decision = ask(&player, "GET", "/api/v1/pods", 0);
		CHECK(decision.parts[0].fault.ms >= 1 && decision.parts[0].fault.ms <= 3);
		delays[decision.parts[0].fault.ms] = true;
	}
	CHECK(counts[2] && counts[3] && counts[4] && delays[1] && delays[2] && delays[3]);
}

/* Writes the decisions of a player's requests into a log, and reads it again. */
static void write_log(struct player *player, struct strbuf *ret, struct decision *decisions,
		      size_t count)
{
	char path[] = "/tmp/proxy-decide.XXXXXX";
	struct record *record = NULL;
	struct err err = ERR_INIT;
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	CHECK_INT(record_open(path, 1, &record, &err), 0);
	for (size_t i = 0; i < count; i++) {
		struct target target CLEANUP(target_done);
		const char *name = i % 2 ? "/api/v1/pods?watch=1" : "/api/v1/\"quoted\"?limit=1";
		CHECK_INT(target_read("GET", name, &target), 0);
		CHECK_INT(decide(player->decider, &target, i, &decisions[i]), 0);
		uint64_t seq = record_decision(record, i, &(struct record_origin){ 1, i, name },
					       &target, &decisions[i]);
		if (decisions[i].count)
			record_effect(record, i, seq, "cut", 5, 1);
	}
	record_trouble(record, 9, &(struct record_origin){ 1, 1, "/" }, "the server has closed");
	record_close(record);
	CHECK_INT(file_read(path, 1 << 20, ret, &err), 0);
	unlink(path);
}

static void check_same(const struct fault *actual, const struct fault *expected)
{
	CHECK_INT(actual->kind, expected->kind);
	CHECK_INT(actual->point, expected->point);
	CHECK_INT(actual->form, expected->form);
	CHECK_INT(actual->count, expected->count);
	CHECK_INT(actual->ms, expected->ms);
	CHECK_INT(actual->permille, expected->permille);
	CHECK_INT(actual->status, expected->status);
	CHECK_INT(actual->retry_after_s, expected->retry_after_s);
	CHECK_INT(actual->bytes_per_s, expected->bytes_per_s);
	CHECK_INT(actual->refuse, expected->refuse);
	CHECK_INT(actual->whole, expected->whole);
}

TEST(a_log_gives_every_request_what_it_got)
{
	static const char text[] = "on any p=0.3 delay=0..9ms\n"
				   "on any p=0.2 cut mid-event after=events:0..9\n"
				   "on any p=0.2 cut after=bytes:1..99999\n"
				   "on any p=0.2 answer=429 retry-after=3\n"
				   "on any p=0.2 silence=forever\n"
				   "on any p=0.2 silence=1s of=connection\n"
				   "on any p=0.2 slow=7/s\n"
				   "on any p=0.2 goaway refuse\n"
				   "on any p=0.2 half-body\n"
				   "on any hold until=next";
	struct strbuf log CLEANUP(strbuf_done) = STRBUF_INIT;
	struct decision decisions[100];
	struct err err = ERR_INIT;
	PLAYER(player, text, 11);
	write_log(&player, &log, decisions, ARRAY_SIZE(decisions));
	PLAYER(again, "", 12);
	CHECKF(decider_replay(again.decider, "log", log.s, log.len, &err) == 0, "%s", err.text);
	/* All requests of one identity, then those of the other. */
	for (size_t i = 0; i < ARRAY_SIZE(decisions); i++) {
		size_t which = i < 50 ? 2 * i + 1 : 2 * (i - 50);
		const char *path = i < 50 ? "/api/v1/pods?watch=1" : "/api/v1/\"quoted\"?limit=7";
		struct decision got = ask(&again, "GET", path, 0);
		CHECK_INT(got.count, decisions[which].count);
		for (size_t j = 0; j < got.count; j++)
			check_same(&got.parts[j].fault, &decisions[which].parts[j].fault);
	}
	CHECK_INT(ask(&again, "GET", "/api/v1/pods?watch=1", 0).count, 0);
}

TEST(a_log_that_is_none_is_refused)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "x\n", "log:1:" },
		{ "{}\n\n{\"identity\":\"GET /\"}\n", "log:3: a fault without the number n" },
		{ "{\"identity\":\"GET /\",\"n\":0,\"fault\":\"reset\"}",
		  "log:1: a fault without" },
		{ "{\"identity\":\"GET /\",\"n\":1,\"fault\":\"bang\"}", "\"bang\" is no fault" },
		{ "{\"identity\":\"GET /\",\"n\":1}", "no whole fault" },
		{ "{\"identity\":\"GET /\",\"n\":1,\"fault\":\"slow\"}", "no whole fault" },
		{ "{\"identity\":\"GET /\",\"n\":1,\"fault\":\"answer\",\"status\":9}",
		  "no whole fault" },
		{ "{\"identity\":\"GET /\",\"n\":1,\"fault\":\"delay\",\"ms\":-1}",
		  "ms is no number" },
		{ "{\"identity\":\"GET /\",\"n\":1,\"fault\":\"cut\",\"permille\":1000}",
		  "permille is no number" },
		{ "{\"identity\":\"GET /\",\"n\":1,\"fault\":\"reset\"}\n"
		  "{\"identity\":\"GET /\",\"n\":1,\"fault\":\"reset\"}",
		  "log:2: two faults for the same request" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		PLAYER(player, "", 1);
		struct err err = ERR_INIT;
		int result = decider_replay(player.decider, "log", rows[i].text,
					    strlen(rows[i].text), &err);
		CHECKF(result == -EINVAL && strstr(err.text, rows[i].error), "%s: %s",
		       rows[i].text, err.text);
	}
}

TEST_MAIN()
