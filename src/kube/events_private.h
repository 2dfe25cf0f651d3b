/* SPDX-License-Identifier: Apache-2.0 */
/* events_private.h - what the files of the recorder share.
 *
 *	events.c	series, the queue, the rate, what the server answers
 *	events_body.c	an event as a record and as JSON
 *
 * A record is an event and its series.  It is known by its key as long as the series
 * lasts, is in the queue while it has something to say, and on its way while it says it.
 */
#ifndef GS_KUBE_EVENTS_PRIVATE_H
#define GS_KUBE_EVENTS_PRIVATE_H

#include "kube/events.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube_call;
struct strbuf;

#define EVENT_TIME_MAX 40

struct event_record {
	struct kube_events *events;
	struct event_record *next, *prev; /* of all, the last used last */
	struct event_record *wait_next, *wait_prev;
	bool waiting, created, patched;
	struct kube_call *call; /* NULL: not on its way */

	uint32_t count, told; /* how often it happened; what the server knows */
	uint32_t sending;     /* the count that is on its way */
	int64_t first_wall_ns, last_wall_ns;
	uint64_t last_ms, patched_ms;

	char name[256]; /* of the event */
	const char *namespace;
	const char *body; /* the event as JSON, without name, time and series */
	size_t body_len;
	size_t key_len;
	char key[]; /* then the strings above */
};

/* Appends what tells two events apart. */
void event_key(struct strbuf *out, const struct kube_event *event);

/* Appends the members that never change: `"regarding":{...},"reason":...`. */
void event_body(struct strbuf *out, const struct kube_event *event, const char *controller,
		const char *instance);

/* Appends all of it, to be created; or the patch of its series. */
void event_create_body(struct strbuf *out, const struct event_record *record);
void event_patch_body(struct strbuf *out, const struct event_record *record);

/* "<object>.<hexadecimal nanoseconds>", at most 253 characters. */
void event_name(struct event_record *record, const char *object, int64_t wall_ns);

int event_check(const struct kube_event *event, struct err *err);

#endif
