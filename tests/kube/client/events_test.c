/* SPDX-License-Identifier: Apache-2.0 */
/* Events on a real API server.
 *
 * cluster: --nodes 0
 */
#include "live.h"

#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/client.h"
#include "kube/events.h"
#include "wire/json.h"

#define EVENTS	   "/apis/events.k8s.io/v1/namespaces/default/events"
#define REGARDING  EVENTS "?fieldSelector=regarding.name%%3D%s"
#define MANY	   3000 /* events at once */
#define REPETITION 7

/* A recorder, and the events that the server has about one pod. */
struct scene {
	struct live live;
	struct kube_events *events;
	const char *pod;
	size_t wanted; /* events */
	int64_t count; /* of the series */
	struct json_doc *found;
};

static void scene_open(struct scene *scene, const char *pod, struct kube_events_options options)
{
	struct err err = ERR_INIT;
	*scene = (struct scene){ .pod = pod };
	live_open(&scene->live, NULL);
	options.client = scene->live.client;
	options.controller = "gpu-scheduler";
	options.instance = "gpu-scheduler-0";
	CHECKF(kube_events_new(&options, &scene->events, &err) == 0, "%s", err.text);
}

static void scene_close(struct scene *scene)
{
	json_doc_free(scene->found);
	kube_events_free(scene->events);
	live_close(&scene->live);
}

static void add(struct scene *scene, const char *note)
{
	struct err err = ERR_INIT;
	struct kube_event event = { .regarding = { .api_version = "v1",
						   .kind = "Pod",
						   .namespace = "default",
						   .name = scene->pod,
						   .uid = "0f2e" },
				    .warning = true,
				    .reason = "FailedScheduling",
				    .action = "Scheduling",
				    .note = note };
	CHECKF(kube_events_add(scene->events, &event, &err) == 0, "%s", err.text);
}

static bool are_found(void *context)
{
	struct scene *scene = context;
	char path[256];
	snprintf(path, sizeof(path), REGARDING, scene->pod);
	CHECK_INT(live_call(&scene->live, "GET", path, NULL), 200);
	json_doc_free(scene->found);
	CHECK_INT(json_parse("events", scene->live.text.s, scene->live.text.len, NULL,
			     &scene->found, NULL),
		  0);
	return json_len(json_root(scene->found), "items") == scene->wanted;
}

static const struct json *first(const struct scene *scene)
{
	struct json_iter items = json_items(json_root(scene->found), "items");
	return json_next(&items);
}

static bool is_counted(void *context)
{
	struct scene *scene = context;
	int64_t count = 0;
	return are_found(scene) && json_i64(first(scene), &count, "series", "count") == 0 &&
	       count == scene->count;
}

TEST(an_event_is_there_as_it_was_said)
{
	struct scene s;
	scene_open(&s, "said", (struct kube_events_options){ 0 });
	add(&s, "0/2 nodes are available: 2 Insufficient GPU memory.");
	s.wanted = 1;
	live_until(&s.live, are_found, &s, "the event");
	const struct json *event = first(&s);
	CHECK_STR(json_str(event, "type"), "Warning");
	CHECK_STR(json_str(event, "reason"), "FailedScheduling");
	CHECK_STR(json_str(event, "action"), "Scheduling");
	CHECK_STR(json_str(event, "note"), "0/2 nodes are available: 2 Insufficient GPU memory.");
	CHECK_STR(json_str(event, "reportingController"), "gpu-scheduler");
	CHECK_STR(json_str(event, "reportingInstance"), "gpu-scheduler-0");
	CHECK_STR(json_str(event, "regarding", "kind"), "Pod");
	CHECK_STR(json_str(event, "regarding", "uid"), "0f2e");
	CHECK(!json_get(event, "series"));
	CHECK_STR(kube_events_trouble(s.events), "");
	scene_close(&s);
}

TEST(the_same_again_is_one_event_with_a_count)
{
	struct scene s;
	scene_open(&s, "again", (struct kube_events_options){ .refresh_ms = 200, .tick_ms = 50 });
	for (unsigned i = 0; i < REPETITION; i++)
		add(&s, "the same");
	s.wanted = 1;
	s.count = REPETITION;
	live_until(&s.live, is_counted, &s, "the series to be counted");
	add(&s, "the same");
	s.count++;
	live_until(&s.live, is_counted, &s, "one more");
	add(&s, "another");
	s.wanted = 2;
	live_until(&s.live, are_found, &s, "an event of its own");
	CHECK_INT(kube_events_dropped(s.events), 0);
	scene_close(&s);
}

TEST(events_are_never_in_front)
{
	struct scene s;
	scene_open(&s, "behind",
		   (struct kube_events_options){ .rate_per_s = 100000, .burst = 2 * MANY });
	for (unsigned i = 0; i < MANY; i++) {
		char note[32];
		snprintf(note, sizeof(note), "number %u", i);
		add(&s, note);
	}
	for (unsigned i = 0; i < 10; i++)
		live_put(&s.live, "before-events", "events", i);
	CHECKF(kube_events_waiting(s.events) > 0, "ten writes have waited for %d events", MANY);
	CHECK_INT(kube_events_dropped(s.events), 0);
	live_delete_all(&s.live, "events");
	scene_close(&s); /* what still waits is lost, not leaked */
}

TEST(when_too_many_wait_the_oldest_are_dropped_and_counted)
{
	struct scene s;
	scene_open(&s, "dropped",
		   (struct kube_events_options){ .max_waiting = 10, .rate_per_s = 1, .burst = 1 });
	for (unsigned i = 0; i < 50; i++) {
		char note[32];
		snprintf(note, sizeof(note), "number %u", i);
		add(&s, note);
	}
	CHECK(kube_events_waiting(s.events) <= 10);
	CHECK(kube_events_dropped(s.events) >= 50 - 10 - 1);
	s.wanted = 2;
	live_until(&s.live, are_found, &s, "events at their rate");
	scene_close(&s);
}

TEST_MAIN()
