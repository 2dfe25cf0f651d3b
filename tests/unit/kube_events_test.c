/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "kube_fixture.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "kube/events.h"
#include "kube/telemetry.h"
#include "wire/json.h"

#define MS 1000000u
#define S  (1000u * (uint64_t)MS)

static struct clock_manual manual;
static struct kube_events *events;

static void start(struct kube_events_options options)
{
	clock_manual_init(&manual, 1767225600123456789); /* 2026-01-01T00:00:00.123456789Z */
	fixture_clock = &manual.clock;
	setup();
	options.client = s.client;
	options.controller = "gpu-scheduler";
	options.instance = "gpu-scheduler-0";
	if (!options.tick_ms)
		options.tick_ms = 2;
	struct err err = ERR_INIT;
	CHECKF(kube_events_new(&options, &events, &err) == 0, "%s", err.text);
}

static void end(void)
{
	kube_events_free(events);
	teardown();
}

static struct kube_event event(const char *pod, const char *note)
{
	return (struct kube_event){
		.regarding = { .api_version = "v1",
			       .kind = "Pod",
			       .namespace = "ml",
			       .name = pod,
			       .uid = "u-1",
			       .version = "7" },
		.warning = true,
		.reason = "FailedScheduling",
		.action = "Scheduling",
		.note = note,
	};
}

static void add(const char *pod, const char *note)
{
	struct kube_event it = event(pod, note);
	struct err err = ERR_INIT;
	CHECKF(kube_events_add(events, &it, &err) == 0, "%s", err.text);
}

/* Until the server has had so many requests, and nothing is on its way any more. */
static void until(uint32_t requests)
{
	while (s.server.requests < requests || kube_in_flight(s.client))
		uv_run(&s.loop, UV_RUN_ONCE);
}

/* A few turns of the loop and of the recorder's timer, in which nothing is to happen. */
static void idle(void)
{
	for (unsigned i = 0; i < 5; i++) {
		uv_sleep(3);
		uv_run(&s.loop, UV_RUN_NOWAIT);
	}
}

static double outcome(const char *name)
{
	return metric_value(metrics_find(s.metrics, "gpu_scheduler_kube_events_total"),
			    METRIC_LABELS(name));
}

#define EVENTS "/apis/events.k8s.io/v1/namespaces/ml/events"

TEST(an_event_is_one_object_with_all_that_the_server_wants)
{
	start((struct kube_events_options){ 0 });
	struct kube_object_ref preemptor = { "v1", "Pod", "ml", "big", "u-2", NULL };
	struct kube_event it = event("train-0", "because");
	it.warning = false;
	it.related = &preemptor;
	CHECK_INT(kube_events_add(events, &it, NULL), 0);
	until(1);
	CHECK_STR(s.lines, "POST " EVENTS "\n");
	CHECK_STR(
		s.body,
		"{\"metadata\":{\"name\":\"train-0.18867251f555cd15\",\"namespace\":\"ml\"},"
		"\"eventTime\":\"2026-01-01T00:00:00.123456Z\",\"apiVersion\":\"events.k8s.io/"
		"v1\","
		"\"kind\":\"Event\",\"reportingController\":\"gpu-scheduler\","
		"\"reportingInstance\":\"gpu-scheduler-0\",\"type\":\"Normal\","
		"\"reason\":\"FailedScheduling\",\"action\":\"Scheduling\",\"regarding\":{"
		"\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":\"ml\",\"name\":\"train-0\","
		"\"uid\":\"u-1\",\"resourceVersion\":\"7\"},\"related\":{\"apiVersion\":\"v1\","
		"\"kind\":\"Pod\",\"namespace\":\"ml\",\"name\":\"big\",\"uid\":\"u-2\"},"
		"\"note\":\"because\"}");
	CHECK(outcome("sent") == 1);
	end();
}

TEST(repetitions_are_counted_in_a_series)
{
	start((struct kube_events_options){ 0 });
	add("a", "n");
	until(1);
	clock_manual_advance(&manual, 1 * S);
	add("a", "n");
	until(2);
	CHECK(strstr(s.lines, "\nPATCH " EVENTS "/a.18867251f555cd15\n"));
	CHECK_STR(s.body, "{\"series\":{\"count\":2,\"lastObservedTime\":"
			  "\"2026-01-01T00:00:01.123456Z\"}}");
	CHECK(strstr(s.head, "\r\nContent-Type: application/merge-patch+json\r\n"));
	for (unsigned i = 0; i < 5; i++) /* soon again: told later, together */
		add("a", "n");
	idle();
	CHECK_INT(s.server.requests, 2);
	clock_manual_advance(&manual, 30 * S);
	until(3);
	CHECK(strstr(s.body, "{\"count\":7,"));
	CHECK(outcome("sent") == 1 && outcome("series") == 6);
	end();
}

TEST(other_notes_and_objects_are_other_events)
{
	start((struct kube_events_options){ 0 });
	add("a", "n");
	add("a", "m");
	add("b", "n");
	struct kube_event it = event("a", "n");
	it.regarding.uid = "u-3";
	CHECK_INT(kube_events_add(events, &it, NULL), 0);
	until(4);
	CHECK(!strstr(s.lines, "PATCH"));
	end();
}

TEST(a_series_ends_after_six_minutes_with_a_last_word)
{
	start((struct kube_events_options){ 0 });
	add("a", "n");
	until(1);
	add("a", "n");
	until(2);
	add("a", "n"); /* within the 30 s: not told yet */
	idle();
	CHECK_INT(s.server.requests, 2);
	clock_manual_advance(&manual, 400 * S);
	until(3);
	CHECK(strstr(s.body, "{\"count\":3,"));
	idle();
	add("a", "n");
	until(4);
	CHECK(strstr(s.lines + strlen(s.lines) - 60, "POST"));
	CHECK(!strstr(s.body, "series"));
	end();
}

TEST(an_event_that_the_server_forgot_is_made_again)
{
	start((struct kube_events_options){ 0 });
	add("a", "n");
	until(1);
	s.script[0] = (struct server_answer){ .code = 201, .body = "{}" };
	s.script[1] = (struct server_answer){ .code = 404 };
	s.script[2] = (struct server_answer){ .code = 201, .body = "{}" };
	clock_manual_advance(&manual, 1 * S);
	add("a", "n");
	until(3);
	CHECK_STR(s.method, "POST");
	CHECK(!strstr(s.body, "a.18867251f555cd15") && !strstr(s.body, "series"));
	CHECK(strstr(s.body, "\"eventTime\":\"2026-01-01T00:00:01.123456Z\""));
	end();
}

TEST(the_oldest_is_dropped_when_too_many_wait)
{
	start((struct kube_events_options){ .max_waiting = 3, .rate_per_s = 1, .burst = 1 });
	static const char *const pods[] = { "a", "b", "c", "d", "e" };
	for (size_t i = 0; i < ARRAY_SIZE(pods); i++)
		add(pods[i], "n");
	CHECK_INT(kube_events_waiting(events), 3);
	CHECK_INT(kube_events_dropped(events), 1); /* b: a was on its way already */
	CHECK(outcome("dropped") == 1);
	clock_manual_advance(&manual, 1 * S);
	until(2);
	CHECK(strstr(s.body, "\"name\":\"c."));
	end();
}

TEST(the_rate_is_bounded)
{
	start((struct kube_events_options){ .rate_per_s = 10, .burst = 2 });
	static const char *const pods[] = { "a", "b", "c", "d", "e" };
	for (size_t i = 0; i < ARRAY_SIZE(pods); i++)
		add(pods[i], "n");
	until(2);
	idle();
	CHECK_INT(s.server.requests, 2);
	clock_manual_advance(&manual, 100 * (uint64_t)MS);
	until(3);
	idle();
	CHECK_INT(s.server.requests, 3);
	clock_manual_advance(&manual, 3600 * S);
	until(5);
	end();
}

TEST(repetitions_before_the_first_is_sent_are_part_of_it)
{
	start((struct kube_events_options){ .rate_per_s = 1, .burst = 1 });
	add("z", "n");
	add("a", "n");
	add("a", "n");
	clock_manual_advance(&manual, 2 * S);
	until(2);
	CHECK(strstr(s.body, "\"series\":{\"count\":2,"));
	end();
}

TEST(a_refused_event_is_counted_and_its_reason_kept)
{
	start((struct kube_events_options){ 0 });
	s.script[0] = (struct server_answer){
		.code = 403,
		.body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}"
	};
	add("a", "n");
	until(1);
	CHECK_STR(kube_events_trouble(events),
		  "cannot create Event ml/a.18867251f555cd15: Forbidden: no");
	CHECK(outcome("failed") == 1);
	s.script[0] = (struct server_answer){ .code = 201, .body = "{}" };
	add("a", "n");
	until(2);
	CHECK_STR(s.method, "POST");
	CHECK_STR(kube_events_trouble(events), "");
	end();
}

TEST(events_of_nodes_live_in_the_default_namespace)
{
	start((struct kube_events_options){ 0 });
	struct kube_event it = event("n1", "n");
	it.regarding.kind = "Node";
	it.regarding.namespace = NULL;
	CHECK_INT(kube_events_add(events, &it, NULL), 0);
	until(1);
	CHECK_STR(s.path, "/apis/events.k8s.io/v1/namespaces/default/events");
	CHECK(strstr(s.body, "\"namespace\":\"default\"},"));
	end();
}

TEST(long_notes_and_names_are_cut)
{
	start((struct kube_events_options){ 0 });
	char note[3000] = "", name[254];
	while (strlen(note) < 2000)
		strcat(note, "x\xc3\xbc\xff");
	memset(name, 'a', 253);
	name[253] = '\0';
	name[235] = '-';
	add(name, note);
	until(1);
	/* the fixture keeps the beginning of a body; the request's own size tells the rest */
	const char *length = strcasestr(s.head, "\r\nContent-Length:");
	CHECK(length && strtol(length + 17, NULL, 10) < 2100);
	const char *dot = strchr(s.body + 21, '.');
	CHECK(dot && dot - (s.body + 21) == 235 && dot[-1] == 'a');
	end();
}

TEST(what_the_server_would_refuse_is_refused)
{
	start((struct kube_events_options){ 0 });
	char word[200];
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	struct kube_event cases[6];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cases[i] = event("a", "n");
	cases[0].reason = NULL;
	cases[1].action = "";
	cases[2].reason = word;
	cases[3].regarding.name = "A b";
	cases[4].regarding.namespace = "a.b";
	cases[5].regarding.kind = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		CHECKF(kube_events_add(events, &cases[i], &err) == -EINVAL, "case %zu", i);
		CHECK(err.text[0]);
	}
	struct kube_events *none = NULL;
	struct kube_events_options options = { .client = s.client,
					       .controller = "a b",
					       .instance = "i" };
	CHECK_INT(kube_events_new(&options, &none, NULL), -EINVAL);
	options.controller = "a";
	options.instance = word;
	CHECK_INT(kube_events_new(&options, &none, NULL), -EINVAL);
	end();
}

TEST(a_recorder_can_be_freed_at_any_time)
{
	start((struct kube_events_options){ .rate_per_s = 1, .burst = 2 });
	s.script[0] = (struct server_answer){ .code = 201, .delay_ms = 100000 };
	static const char *const pods[] = { "a", "b", "c", "d" };
	for (size_t i = 0; i < ARRAY_SIZE(pods); i++)
		add(pods[i], "n");
	idle();
	end();
	kube_events_free(NULL);
}

TEST(known_series_are_bounded)
{
	start((struct kube_events_options){ .burst = 100000, .max_waiting = 16 });
	for (unsigned i = 0; i < 9000; i++) {
		char pod[32];
		snprintf(pod, sizeof(pod), "p%u", i);
		add(pod, "n");
		if (i % 16 == 15)
			until(0);
	}
	until(0);
	CHECK(kube_events_waiting(events) <= 16);
	end();
}

TEST_MAIN()
