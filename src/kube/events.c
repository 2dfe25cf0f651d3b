/* SPDX-License-Identifier: Apache-2.0 */
/* Series, the queue, the rate, what the server answers. */
#include "kube/events_private.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "kube/check.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "kube/telemetry.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_WAITING	  4096
#define EVENTS_KNOWN	  4096 /* series that have nothing to say, beside those that wait */
#define EVENTS_RATE	  25
#define EVENTS_BURST	  100
#define EVENTS_SERIES_MS  (6 * 60 * 1000)
#define EVENTS_REFRESH_MS (30 * 1000)
#define EVENTS_TICK_MS	  1000
#define EVENTS_TRIES	  3
#define EVENTS_CALLS	  16
#define EVENTS_DEADLINE	  10000
#define MILLI		  1000 /* tokens are counted in thousandths */

struct kube_events {
	struct kube_events_options options;
	char *controller, *instance;
	const struct clock *clock;
	struct kube_telemetry *telemetry;
	uv_timer_t *timer; /* outlives the recorder by one turn of the loop */
	struct map by_key;
	struct event_record *first, *last;	     /* all; the one used last is last */
	struct event_record *wait_first, *wait_last; /* who has something to say */
	uint32_t waiting, calls;
	uint64_t dropped;
	uint64_t tokens_milli, filled_ms, swept_ms;
	int64_t named_ns; /* of the last name: no two are the same */
	char trouble[ERR_TEXT_MAX];
};

static void pump(struct kube_events *events);
static void tick(uv_timer_t *timer);

static void link_last(struct event_record *record)
{
	struct kube_events *events = record->events;
	record->next = NULL;
	record->prev = events->last;
	*(events->last ? &events->last->next : &events->first) = record;
	events->last = record;
}

static void unlink_record(struct event_record *record)
{
	struct kube_events *events = record->events;
	*(record->prev ? &record->prev->next : &events->first) = record->next;
	*(record->next ? &record->next->prev : &events->last) = record->prev;
}

static void wait_add(struct event_record *record)
{
	struct kube_events *events = record->events;
	record->wait_next = NULL;
	record->wait_prev = events->wait_last;
	*(events->wait_last ? &events->wait_last->wait_next : &events->wait_first) = record;
	events->wait_last = record;
	record->waiting = true;
	events->waiting++;
}

static void wait_remove(struct event_record *record)
{
	struct kube_events *events = record->events;
	if (!record->waiting)
		return;
	*(record->wait_prev ? &record->wait_prev->wait_next : &events->wait_first) =
		record->wait_next;
	*(record->wait_next ? &record->wait_next->wait_prev : &events->wait_last) =
		record->wait_prev;
	record->waiting = false;
	events->waiting--;
}

/* The series is over, or its event was never told. */
static void forget(struct event_record *record)
{
	struct kube_events *events = record->events;
	if (record->call) {
		kube_cancel(record->call);
		events->calls--;
	}
	wait_remove(record);
	unlink_record(record);
	map_del(&events->by_key, record->key, record->key_len);
	free(record);
}

static void note_trouble(struct kube_events *events, const struct kube_reply *reply)
{
	snprintf(events->trouble, sizeof(events->trouble), "%s", reply->message);
	kube_telemetry_event(events->telemetry, KUBE_EVENT_FAILED);
}

/* The server forgets events after an hour: the series begins anew, with a new name. */
static void begin_anew(struct event_record *record)
{
	struct kube_events *events = record->events;
	char object[sizeof(record->name)];
	memcpy(object, record->name, sizeof(object));
	*strrchr(object, '.') = '\0';
	int64_t now_ns = MAX(clock_wall_ns(events->clock), events->named_ns + 1);
	events->named_ns = now_ns;
	event_name(record, object, now_ns);
	record->created = record->patched = false;
	record->count = 1;
	record->told = 0;
	record->first_wall_ns = record->last_wall_ns;
	wait_add(record);
}

static void patch_ended(struct event_record *record, const struct kube_reply *reply)
{
	struct kube_events *events = record->events;
	record->patched = true;
	record->patched_ms = clock_monotonic_ms(events->clock);
	record->told = record->sending;
	if (reply->reason == KUBE_OK || reply->reason == KUBE_UNKNOWN)
		events->trouble[0] = '\0';
	else if (reply->reason == KUBE_NOT_FOUND)
		begin_anew(record);
	else
		note_trouble(events, reply);
}

/* Unanswered counts as told: what a person misses is one line. */
static void create_ended(struct event_record *record, const struct kube_reply *reply)
{
	struct kube_events *events = record->events;
	bool told = reply->reason == KUBE_OK || reply->reason == KUBE_ALREADY_EXISTS ||
		    reply->reason == KUBE_UNKNOWN || reply->reason == KUBE_MALFORMED;
	if (!told) {
		note_trouble(events, reply);
		forget(record);
		return;
	}
	events->trouble[0] = '\0';
	kube_telemetry_event(events->telemetry, KUBE_EVENT_SENT);
	record->created = true;
	record->told = record->sending;
}

/* Whether the server should hear of repetitions now: at once of the first, then after a
 * while. */
static bool has_news(const struct event_record *record, uint64_t now_ms)
{
	const struct kube_events *events = record->events;
	if (!record->created || record->count == record->told)
		return false;
	return !record->patched || now_ms - record->patched_ms >= events->options.refresh_ms ||
	       now_ms - record->last_ms >= events->options.series_ms;
}

static void ended(void *context, const struct kube_reply *reply)
{
	struct event_record *record = context;
	struct kube_events *events = record->events;
	record->call = NULL;
	events->calls--;
	if (record->created)
		patch_ended(record, reply);
	else
		create_ended(record, reply); /* the record may be gone */
	pump(events);
}

static int send_record(struct event_record *record)
{
	struct strbuf path CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf what CLEANUP(strbuf_done) = STRBUF_INIT;
	kube_path(&path, &kube_kinds[KUBE_EVENT], record->namespace,
		  record->created ? record->name : NULL, NULL);
	strbuf_addf(&what, "Event %s/%s", record->namespace, record->name);
	if (record->created)
		event_patch_body(&body, record);
	else
		event_create_body(&body, record);
	if (path.failed || body.failed || what.failed)
		return -ENOMEM;
	record->sending = record->count;
	struct kube_request request = {
		.method = record->created ? "PATCH" : "POST",
		.path = path.s,
		.content_type = record->created ? "application/merge-patch+json" : NULL,
		.body = body.s,
		.body_len = body.len,
		.deadline_ms = EVENTS_DEADLINE,
		.tries = EVENTS_TRIES,
		.background = true,
		.what = what.s,
		.resource = "events",
		.done = ended,
		.context = record,
	};
	int result = kube_send(record->events->options.client, &request, &record->call, NULL);
	record->events->calls += result == 0;
	return result;
}

static void fill_tokens(struct kube_events *events)
{
	uint64_t now_ms = clock_monotonic_ms(events->clock);
	uint64_t full = (uint64_t)events->options.burst * MILLI;
	uint64_t passed_ms = MIN(now_ms - events->filled_ms, (uint64_t)3600 * 1000);
	events->tokens_milli =
		MIN(full, events->tokens_milli + passed_ms * events->options.rate_per_s);
	events->filled_ms = now_ms;
}

/* Sends what the rate allows, a few at a time: those that may have to be dropped are to be
 * here, not in the client's queue. */
static void pump(struct kube_events *events)
{
	fill_tokens(events);
	while (events->wait_first && events->tokens_milli >= MILLI &&
	       events->calls < EVENTS_CALLS) {
		struct event_record *record = events->wait_first;
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): no record follows itself */
		assert(record->waiting && !record->wait_prev);
		wait_remove(record);
		events->tokens_milli -= MILLI;
		if (send_record(record) < 0 && !record->created) {
			kube_telemetry_event(events->telemetry, KUBE_EVENT_FAILED);
			forget(record);
		}
	}
	uint32_t next_ms =
		events->wait_first ? MIN(events->options.tick_ms, 50) : events->options.tick_ms;
	if (!events->first)
		uv_timer_stop(events->timer);
	else if (!uv_is_active((uv_handle_t *)events->timer) ||
		 uv_timer_get_due_in(events->timer) > next_ms)
		uv_timer_start(events->timer, tick, next_ms, 0);
}

/* Series that have ended are told a last time, then forgotten. */
static void sweep(struct kube_events *events)
{
	uint64_t now_ms = clock_monotonic_ms(events->clock);
	for (struct event_record *record = events->first, *next; record; record = next) {
		next = record->next;
		if (record->waiting || record->call)
			continue;
		if (has_news(record, now_ms))
			wait_add(record);
		else if (now_ms - record->last_ms >= events->options.series_ms)
			forget(record);
	}
}

static void tick(uv_timer_t *timer)
{
	struct kube_events *events = timer->data;
	uint64_t now_ms = clock_monotonic_ms(events->clock);
	/* It comes more often while events wait; there is no hurry with what has ended. */
	if (now_ms - events->swept_ms >= events->options.tick_ms) {
		events->swept_ms = now_ms;
		sweep(events);
	}
	pump(events);
}

static void drop_oldest(struct kube_events *events)
{
	struct event_record *record = events->wait_first;
	events->dropped++;
	kube_telemetry_event(events->telemetry, KUBE_EVENT_DROPPED);
	if (record->created) {
		record->told = record->count; /* what came until now is not told any more */
		wait_remove(record);
	} else {
		forget(record);
	}
}

/* The longest unused series that has nothing to say. */
static void forget_one(struct kube_events *events)
{
	struct event_record *record = events->first;
	while (record && (record->waiting || record->call))
		record = record->next;
	if (record)
		forget(record);
}

static struct event_record *record_new(struct kube_events *events, const struct kube_event *event,
				       const struct strbuf *key)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	event_body(&body, event, events->controller, events->instance);
	/* events of what has no namespace live in that one */
	const char *home = event->regarding.namespace;
	if (!home || !home[0])
		home = "default";
	size_t home_size = strlen(home) + 1;
	struct event_record *record =
		body.failed ? NULL : malloc(sizeof(*record) + key->len + home_size + body.len + 1);
	if (!record)
		return NULL;
	*record = (struct event_record){ .events = events, .key_len = key->len };
	memcpy(record->key, key->s, key->len);
	record->namespace = memcpy(record->key + key->len, home, home_size);
	record->body = memcpy(record->key + key->len + home_size, body.s, body.len + 1);
	record->body_len = body.len;
	return record;
}

static int add_new(struct kube_events *events, const struct kube_event *event,
		   const struct strbuf *key, struct err *err)
{
	if (events->waiting >= events->options.max_waiting)
		drop_oldest(events);
	if (events->by_key.len >= events->options.max_waiting + EVENTS_KNOWN)
		forget_one(events);
	struct event_record *record = record_new(events, event, key);
	if (!record || map_put(&events->by_key, record->key, record->key_len, record) < 0) {
		free(record);
		return err_set(err, ENOMEM, "out of memory");
	}
	int64_t now_ns = clock_wall_ns(events->clock);
	events->named_ns = MAX(now_ns, events->named_ns + 1);
	event_name(record, event->regarding.name, events->named_ns);
	record->first_wall_ns = record->last_wall_ns = now_ns;
	record->last_ms = clock_monotonic_ms(events->clock);
	record->count = 1;
	link_last(record);
	wait_add(record);
	return 0;
}

static void repeat(struct event_record *record)
{
	struct kube_events *events = record->events;
	record->count += record->count < INT32_MAX;
	record->last_wall_ns = clock_wall_ns(events->clock);
	record->last_ms = clock_monotonic_ms(events->clock);
	unlink_record(record);
	link_last(record);
	kube_telemetry_event(events->telemetry, KUBE_EVENT_SERIES);
	if (record->waiting || record->call || !has_news(record, record->last_ms))
		return;
	if (events->waiting >= events->options.max_waiting)
		drop_oldest(events);
	wait_add(record);
}

int kube_events_add(struct kube_events *events, const struct kube_event *event, struct err *err)
{
	struct strbuf key CLEANUP(strbuf_done) = STRBUF_INIT;
	int result = event_check(event, err);
	if (result < 0)
		return result;
	event_key(&key, event);
	if (key.failed)
		return err_set(err, ENOMEM, "out of memory");
	struct event_record *record = map_get(&events->by_key, key.s, key.len);
	uint64_t now_ms = clock_monotonic_ms(events->clock);
	if (record && now_ms - record->last_ms >= events->options.series_ms) {
		forget(record); /* the next sweep would have */
		record = NULL;
	}
	if (record)
		repeat(record);
	else
		result = add_new(events, event, &key, err);
	pump(events);
	return result;
}

static int check_names(const struct kube_events_options *options, struct err *err)
{
	int result = kube_check_label_key("controller of events", options->controller, err);
	size_t len = options->instance ? strlen(options->instance) : 0;
	if (result == 0 && (len == 0 || len > KUBE_EVENT_WORD_MAX))
		result = err_set(err, EINVAL, "instance of events has %zu bytes, not 1 to 128",
				 len);
	return result;
}

static void put_defaults(struct kube_events_options *options)
{
	const struct {
		uint32_t *option, value;
	} defaults[] = {
		{ &options->max_waiting, EVENTS_WAITING },
		{ &options->rate_per_s, EVENTS_RATE },
		{ &options->burst, EVENTS_BURST },
		{ &options->series_ms, EVENTS_SERIES_MS },
		{ &options->refresh_ms, EVENTS_REFRESH_MS },
		{ &options->tick_ms, EVENTS_TICK_MS },
	};
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
		if (!*defaults[i].option)
			*defaults[i].option = defaults[i].value;
	}
}

int kube_events_new(const struct kube_events_options *options, struct kube_events **ret,
		    struct err *err)
{
	int result = check_names(options, err);
	if (result < 0)
		return result;
	struct kube_events *events = calloc(1, sizeof(*events));
	if (!events)
		return err_set(err, ENOMEM, "out of memory");
	events->options = *options;
	put_defaults(&events->options);
	events->clock = kube_clock(options->client);
	events->telemetry = kube_telemetry(options->client);
	events->filled_ms = clock_monotonic_ms(events->clock);
	events->tokens_milli = (uint64_t)events->options.burst * MILLI;
	events->controller = strdup(options->controller);
	events->instance = strdup(options->instance);
	events->timer = malloc(sizeof(*events->timer));
	if (!events->controller || !events->instance || !events->timer) {
		free(events->timer);
		events->timer = NULL;
		kube_events_free(events);
		return err_set(err, ENOMEM, "out of memory");
	}
	uv_timer_init(kube_loop(options->client), events->timer);
	events->timer->data = events;
	*ret = events;
	return 0;
}

static void timer_closed(uv_handle_t *handle)
{
	free(handle);
}

void kube_events_free(struct kube_events *events)
{
	if (!events)
		return;
	for (struct event_record *record = events->first, *next; record; record = next) {
		next = record->next;
		forget(record);
	}
	map_done(&events->by_key);
	if (events->timer)
		uv_close((uv_handle_t *)events->timer, timer_closed);
	free(events->controller);
	free(events->instance);
	free(events);
}

uint32_t kube_events_waiting(const struct kube_events *events)
{
	return events->waiting;
}

uint32_t kube_events_unsent(const struct kube_events *events)
{
	return events->waiting + events->calls;
}

uint64_t kube_events_dropped(const struct kube_events *events)
{
	return events->dropped;
}

const char *kube_events_trouble(const struct kube_events *events)
{
	return events->trouble;
}
