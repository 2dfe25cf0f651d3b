/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/proxy/script.h"
#include "kube/proxy/target.h"

#include <errno.h>

static struct script parse(const char *text)
{
	struct script script = { 0 };
	struct err err = ERR_INIT;
	int result = script_parse("test", text, strlen(text), &script, &err);
	CHECKF(result == 0, "%s: %s", text, err.text);
	return script;
}

TEST(a_rule_has_conditions_a_fault_and_options)
{
	struct script script CLEANUP(script_done) = parse(
		"# faults\n"
		"\n"
		"  on verb=watch,list resource=pods p=0.025 cut after=events:3..5 # at times\r\n"
		"limit max=20 gap=2s after=requests:100\n"
		"on method=POST nth=7 max=1 answer=429 retry-after=2");
	CHECK_INT(script.count, 2);
	const struct script_rule *cut = &script.rules[0];
	CHECK_INT(cut->line, 3);
	CHECK_STR(cut->match[MATCH_VERB], "watch,list");
	CHECK_STR(cut->match[MATCH_RESOURCE], "pods");
	CHECK(!cut->match[MATCH_PATH]);
	CHECK_INT(cut->p_billionths, 25000000);
	CHECK_INT(cut->fault.kind, FAULT_CUT);
	CHECK_INT(cut->fault.point, POINT_EVENTS);
	CHECK_INT(cut->count.min, 3);
	CHECK_INT(cut->count.max, 5);
	CHECK(cut->watch_only);
	CHECK(cut->limits.max == UINT64_MAX);
	CHECK_INT(script.limits.max, 20);
	CHECK_INT(script.limits.gap_ms, 2000);
	CHECK_INT(script.limits.after_requests, 100);
	const struct script_rule *answer = &script.rules[1];
	CHECK_INT(answer->nth, 7);
	CHECK_INT(answer->limits.max, 1);
	CHECK_INT(answer->fault.status, 429);
	CHECK_INT(answer->fault.retry_after_s, 2);
	CHECK(!answer->watch_only);
}

TEST(every_fault_can_be_written)
{
	static const struct {
		const char *text;
		struct fault fault;
		struct script_range ms, count;
	} rows[] = {
		{ "cut before-write",
		  { .kind = FAULT_CUT, .point = POINT_BEFORE_WRITE },
		  { 0 },
		  { 0 } },
		{ "cut after-write",
		  { .kind = FAULT_CUT, .point = POINT_AFTER_WRITE },
		  { 0 },
		  { 0 } },
		{ "cut mid-event", { .kind = FAULT_CUT, .point = POINT_MID_EVENT }, { 0 }, { 0 } },
		{ "cut mid-event after=events:2",
		  { .kind = FAULT_CUT, .point = POINT_MID_EVENT },
		  { 0 },
		  { 2, 2 } },
		{ "cut after=events:2 mid-event",
		  { .kind = FAULT_CUT, .point = POINT_MID_EVENT },
		  { 0 },
		  { 2, 2 } },
		{ "cut after=bytes:10..20",
		  { .kind = FAULT_CUT, .point = POINT_BYTES },
		  { 0 },
		  { 10, 20 } },
		{ "delay=5..200ms", { .kind = FAULT_DELAY }, { 5, 200 }, { 0 } },
		{ "delay=1s..2m", { .kind = FAULT_DELAY }, { 1000, 120000 }, { 0 } },
		{ "answer=503", { .kind = FAULT_ANSWER, .status = 503 }, { 0 }, { 0 } },
		{ "answer=410-event",
		  { .kind = FAULT_ANSWER, .status = 410, .form = FORM_EVENT },
		  { 0 },
		  { 0 } },
		{ "answer=502-html",
		  { .kind = FAULT_ANSWER, .status = 502, .form = FORM_HTML },
		  { 0 },
		  { 0 } },
		{ "silence=10s", { .kind = FAULT_SILENCE }, { 10000, 10000 }, { 0 } },
		{ "silence=forever",
		  { .kind = FAULT_SILENCE },
		  { FAULT_FOREVER, FAULT_FOREVER },
		  { 0 } },
		{ "silence=1s of=connection",
		  { .kind = FAULT_SILENCE, .whole = true },
		  { 1000, 1000 },
		  { 0 } },
		{ "reset", { .kind = FAULT_RESET }, { 0 }, { 0 } },
		{ "goaway", { .kind = FAULT_GOAWAY }, { 0 }, { 0 } },
		{ "goaway refuse", { .kind = FAULT_GOAWAY, .refuse = true }, { 0 }, { 0 } },
		{ "half-body", { .kind = FAULT_HALF_BODY }, { 0 }, { 0 } },
		{ "slow=1000/s", { .kind = FAULT_SLOW, .bytes_per_s = 1000 }, { 0 }, { 0 } },
		{ "hold until=next",
		  { .kind = FAULT_HOLD },
		  { SCRIPT_HOLD_MS, SCRIPT_HOLD_MS },
		  { 0 } },
		{ "hold until=next for=1s", { .kind = FAULT_HOLD }, { 1000, 1000 }, { 0 } },
		{ "stop", { .kind = FAULT_STOP }, { 0 }, { 0 } },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[128];
		snprintf(text, sizeof(text), "on any %s", rows[i].text);
		struct script script CLEANUP(script_done) = parse(text);
		const struct script_rule *rule = &script.rules[0];
		const struct fault *fault = &rows[i].fault;
		CHECKF(rule->fault.kind == fault->kind && rule->fault.point == fault->point &&
			       rule->fault.form == fault->form &&
			       rule->fault.status == fault->status &&
			       rule->fault.bytes_per_s == fault->bytes_per_s &&
			       rule->fault.refuse == fault->refuse &&
			       rule->fault.whole == fault->whole,
		       "%s", text);
		CHECKF(rule->ms.min == rows[i].ms.min && rule->ms.max == rows[i].ms.max, "%s",
		       text);
		CHECKF(rule->count.min == rows[i].count.min &&
			       rule->count.max == rows[i].count.max,
		       "%s", text);
		CHECKF(rule->p_billionths == SCRIPT_P_ALWAYS, "%s", text);
	}
}

TEST(a_slip_of_the_pen_is_told_by_its_line_and_how_to_mend_it)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "\n\non any", "test:3: on which requests, but not what" },
		{ "reset", "test:1: a line begins with \"on\" or \"limit\", not with \"reset\"" },
		{ "on any delai=5ms", "unknown word \"delai\": did you mean \"delay\"?" },
		{ "on any xyzzy", "unknown word \"xyzzy\"" },
		{ "on verb=whatever reset", "there is no verb \"whatever\"" },
		{ "on method=get reset", "there is no method \"get\"" },
		{ "on method=GET,PUSH reset", "there is no method \"PUSH\"" },
		{ "on verb= reset", "verb does not take \"\": write verb=list,watch" },
		{ "on verb reset", "write verb=list,watch" },
		{ "on verb=get verb=list reset", "verb twice: write verb=A,B" },
		{ "on any=1 reset", "any does not take \"1\"" },
		{ "on p=1.5 reset", "p does not take \"1.5\"" },
		{ "on p=-1 reset", "p does not take \"-1\"" },
		{ "on p=0.1x reset", "p does not take \"0.1x\"" },
		{ "on p=0.1234567890 reset", "p does not take" },
		{ "on nth=0 reset", "nth does not take \"0\"" },
		{ "on nth=3 p=0.5 reset", "nth= already says when" },
		{ "on nth=3 every=2 reset", "nth= already says when" },
		{ "on any max=0 reset", "max does not take \"0\"" },
		{ "on any gap=5 reset", "gap does not take \"5\": write gap=500ms" },
		{ "on any after=5 reset", "after does not take \"5\"" },
		{ "on any after=events:x cut", "after does not take \"events:x\"" },
		{ "on any after=events:5..3 cut", "after does not take \"events:5..3\"" },
		{ "on any after=requests:1..3 reset", "after does not take \"requests:1..3\"" },
		{ "on any cut", "cut when? write cut before-write" },
		{ "on any cut before-write after-write", "at two points: write two rules" },
		{ "on any cut before-write after=events:1", "at two points: write two rules" },
		{ "on any cut after=bytes:1 after=events:1", "at two points: write two rules" },
		{ "on any cut mid-event after=bytes:1", "at two points: write two rules" },
		{ "on any reset after=events:1", "reset has no point" },
		{ "on any silence=1s mid-event", "silence takes after=events:3" },
		{ "on any silence=1s after=events:1 of=connection",
		  "of=connection goes with silence=" },
		{ "on any delay=200", "delay does not take \"200\": write delay=200ms" },
		{ "on any delay=9..5ms", "delay does not take \"9..5ms\"" },
		{ "on any delay=99999999999999999999ms", "delay does not take" },
		{ "on any delay=5000000s", "delay does not take" },
		{ "on any silence", "write silence=10s" },
		{ "on any answer=200", "answer does not take \"200\"" },
		{ "on any answer=409-xml", "answer does not take \"409-xml\"" },
		{ "on any reset retry-after=1", "retry-after goes with answer=429" },
		{ "on any reset refuse", "refuse goes with goaway" },
		{ "on any slow=10", "slow does not take \"10\": write slow=1000/s" },
		{ "on any slow=0/s", "slow does not take \"0/s\"" },
		{ "on any hold until=last",
		  "until does not take \"last\": write hold until=next" },
		{ "on any reset for=5s", "for= goes with hold until=next" },
		{ "on any reset cut", "two faults, reset and cut: write two rules" },
		{ "limit verb=get", "verb is no limit: write max=, gap= or after=requests:" },
		{ "limit after=events:1", "after does not take \"events:1\"" },
		{ "limit may=3", "unknown word \"may\": did you mean \"max\"?" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct script script;
		struct err err = ERR_INIT;
		int result =
			script_parse("test", rows[i].text, strlen(rows[i].text), &script, &err);
		CHECKF(result == -EINVAL, "%s", rows[i].text);
		CHECKF(strncmp(err.text, "test:", 5) == 0 && strstr(err.text, rows[i].error),
		       "%s: %s", rows[i].text, err.text);
	}
}

TEST(a_script_has_bounds)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct script script;
	struct err err = ERR_INIT;
	for (int i = 0; i <= SCRIPT_RULES_MAX; i++)
		strbuf_puts(&text, "on any reset\n");
	CHECK_INT(script_parse("test", text.s, text.len, &script, &err), -E2BIG);
	CHECK_STR(err.text, "test:257: more than 256 rules");
	while (text.len <= SCRIPT_MAX)
		strbuf_puts(&text, "# a comment\n");
	CHECK_INT(script_parse("test", text.s, text.len, &script, &err), -E2BIG);
}

TEST(patterns_match_as_file_names_do)
{
	static const struct {
		const char *patterns, *text;
		bool matches;
	} rows[] = {
		{ "pods", "pods", true },
		{ "pods", "pod", false },
		{ "nodes,pods", "pods", true },
		{ "nodes,,pods", "", false },
		{ "*", "", true },
		{ "*", "a/b", true },
		{ "*/binding", "/a/b/binding", true },
		{ "*/binding", "/a/bindings", false },
		{ "a*b*c", "aXXbYYbc", true },
		{ "a*b*c", "aXXc", false },
		{ "gpus-?", "gpus-1", true },
		{ "gpus-?", "gpus-", false },
		{ "a*", "ba", false },
		{ "**a", "a", true },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		CHECKF(script_glob_any(rows[i].patterns, rows[i].text, strlen(rows[i].text)) ==
			       rows[i].matches,
		       "%s on %s", rows[i].patterns, rows[i].text);
}

TEST(rules_look_at_what_the_request_is_about)
{
	static const struct {
		const char *rule, *method, *path;
		bool matches;
	} rows[] = {
		{ "on any reset", "GET", "/", true },
		{ "on verb=list reset", "GET", "/api/v1/pods?limit=5", true },
		{ "on verb=list reset", "GET", "/api/v1/pods?watch=true", false },
		{ "on verb=watch reset", "GET", "/api/v1/pods?limit=1&watch=1", true },
		{ "on verb=watch reset", "GET", "/api/v1/watch/pods", true },
		{ "on verb=watch reset", "GET", "/api/v1/pods?watch=0", false },
		{ "on resource=pods/binding reset", "POST", "/api/v1/namespaces/a/pods/b/binding",
		  true },
		{ "on resource=pods reset", "POST", "/api/v1/namespaces/a/pods/b/binding", false },
		{ "on namespace=team-* name=x reset", "GET", "/api/v1/namespaces/team-1/pods/x",
		  true },
		{ "on namespace=team-* reset", "GET", "/api/v1/pods", false },
		{ "on verb=delete* reset", "DELETE", "/apis/apps/v1/namespaces/a/deployments",
		  true },
		{ "on path=*/binding reset", "POST", "/api/v1/namespaces/a/pods/b/binding?x=1",
		  true },
		{ "on any cut after=events:1", "GET", "/api/v1/pods", false },
		{ "on any cut after=events:1", "GET", "/api/v1/pods?watch=1", true },
		{ "on any answer=410-event", "GET", "/api/v1/pods", false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct script script CLEANUP(script_done) = parse(rows[i].rule);
		struct target target CLEANUP(target_done);
		CHECK_INT(target_read(rows[i].method, rows[i].path, &target), 0);
		CHECKF(script_rule_matches(&script.rules[0], &target) == rows[i].matches,
		       "%s on %s %s", rows[i].rule, rows[i].method, rows[i].path);
	}
}

TEST_MAIN()
