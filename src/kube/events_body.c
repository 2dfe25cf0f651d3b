/* SPDX-License-Identifier: Apache-2.0 */
/* An event as a record and as JSON. */
#include "kube/events_private.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "kube/check.h"
#include "wire/json_write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000

static int check_word(const char *what, const char *word, struct err *err)
{
	if (!word || !word[0])
		return err_set(err, EINVAL, "%s of an event is missing", what);
	if (strlen(word) > KUBE_EVENT_WORD_MAX)
		return err_set(err, EINVAL, "%s of an event has more than 128 bytes: %.40s...",
			       what, word);
	return 0;
}

int event_check(const struct kube_event *event, struct err *err)
{
	const struct kube_object_ref *regarding = &event->regarding;
	int result = check_word("reason", event->reason, err);
	if (result == 0)
		result = check_word("action", event->action, err);
	if (result == 0)
		result = check_word("kind", regarding->kind, err);
	if (result == 0)
		result = kube_check_subdomain("name in an event", regarding->name, err);
	if (result == 0 && regarding->namespace && regarding->namespace[0])
		result = kube_check_label_name("namespace in an event", regarding->namespace, err);
	return result;
}

static void key_ref(struct strbuf *out, const struct kube_object_ref *ref)
{
	const char *const parts[] = { ref->kind, ref->namespace, ref->name, ref->uid };
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		strbuf_addf(out, "%s\n", parts[i] ? parts[i] : "");
}

void event_key(struct strbuf *out, const struct kube_event *event)
{
	key_ref(out, &event->regarding);
	if (event->related)
		key_ref(out, event->related);
	strbuf_addf(out, "%d\n%s\n%s\n%.*s", event->warning, event->reason, event->action,
		    KUBE_EVENT_NOTE_MAX, event->note ? event->note : "");
}

static void add_member(struct json_writer *w, const char *key, const char *value)
{
	if (!value || !value[0])
		return;
	json_add_key(w, key);
	json_add_str(w, value);
}

static void add_ref(struct json_writer *w, const char *key, const struct kube_object_ref *ref)
{
	json_add_key(w, key);
	json_open_object(w);
	add_member(w, "apiVersion", ref->api_version);
	add_member(w, "kind", ref->kind);
	add_member(w, "namespace", ref->namespace);
	add_member(w, "name", ref->name);
	add_member(w, "uid", ref->uid);
	add_member(w, "resourceVersion", ref->version);
	json_close_object(w);
}

/* At most KUBE_EVENT_NOTE_MAX bytes of UTF-8, cut between characters. */
static void add_note(struct json_writer *w, const char *note)
{
	static const char cut[] = " ...";
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	size_t len = strlen(note), fits = 0;
	for (size_t i = 0; i < len && !text.failed;) {
		size_t n = utf8_length(note + i, len - i);
		strbuf_add(&text, n ? note + i : "?", n ? n : 1);
		i += n ? n : 1;
		if (text.len <= KUBE_EVENT_NOTE_MAX - strlen(cut))
			fits = text.len;
		if (text.len > KUBE_EVENT_NOTE_MAX)
			break;
	}
	if (text.len > KUBE_EVENT_NOTE_MAX) {
		strbuf_truncate(&text, fits);
		strbuf_puts(&text, cut);
	}
	json_add_key(w, "note");
	json_add_str(w, text.s);
}

void event_body(struct strbuf *out, const struct kube_event *event, const char *controller,
		const char *instance)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	json_open_object(&w);
	add_member(&w, "apiVersion", "events.k8s.io/v1");
	add_member(&w, "kind", "Event");
	add_member(&w, "reportingController", controller);
	add_member(&w, "reportingInstance", instance);
	add_member(&w, "type", event->warning ? "Warning" : "Normal");
	add_member(&w, "reason", event->reason);
	add_member(&w, "action", event->action);
	add_ref(&w, "regarding", &event->regarding);
	if (event->related)
		add_ref(&w, "related", event->related);
	if (event->note && event->note[0])
		add_note(&w, event->note);
	json_close_object(&w);
}

/* MicroTime: exactly six digits. */
static void add_time(struct json_writer *w, const char *key, int64_t wall_ns)
{
	char text[EVENT_TIME_MAX];
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm tm;
	gmtime_r(&seconds, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%06dZ", (int)(wall_ns % NS_PER_S / 1000));
	add_member(w, key, text);
}

static void add_series(struct json_writer *w, const struct event_record *record)
{
	json_add_key(w, "series");
	json_open_object(w);
	json_add_key(w, "count");
	json_add_u64(w, record->count);
	add_time(w, "lastObservedTime", record->last_wall_ns);
	json_close_object(w);
}

void event_create_body(struct strbuf *out, const struct event_record *record)
{
	/* the body is an object of its own: what changes goes before its other members */
	struct strbuf head CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_writer w = JSON_WRITER_INIT(&head);
	json_open_object(&w);
	json_add_key(&w, "metadata");
	json_open_object(&w);
	add_member(&w, "name", record->name);
	add_member(&w, "namespace", record->namespace);
	json_close_object(&w);
	add_time(&w, "eventTime", record->first_wall_ns);
	if (record->count > 1)
		add_series(&w, record);
	json_close_object(&w);
	if (head.failed) {
		out->failed = true;
		return;
	}
	strbuf_add(out, head.s, head.len - 1);
	strbuf_putc(out, ',');
	strbuf_add(out, record->body + 1, record->body_len - 1);
}

void event_patch_body(struct strbuf *out, const struct event_record *record)
{
	struct json_writer w = JSON_WRITER_INIT(out);
	json_open_object(&w);
	add_series(&w, record);
	json_close_object(&w);
}

void event_name(struct event_record *record, const char *object, int64_t wall_ns)
{
	/* 16 digits and the dot; and no part of a name ends with '-' or '.' */
	size_t len = MIN(strlen(object), KUBE_SUBDOMAIN_MAX - 17);
	while (len && (object[len - 1] == '-' || object[len - 1] == '.'))
		len--;
	snprintf(record->name, sizeof(record->name), "%.*s.%016llx", (int)len, object,
		 (unsigned long long)wall_ns);
}
