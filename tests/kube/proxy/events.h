/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - where one event of a watch ends and the next begins.
 *
 * JSON: a line each.  Protobuf: four bytes of length before each.  Nothing is kept but
 * where in an event we are.
 */
#ifndef GS_TESTS_KUBE_PROXY_EVENTS_H
#define GS_TESTS_KUBE_PROXY_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct events {
	bool protobuf;
	uint64_t count; /* of events that have ended */
	/* private to events.c */
	unsigned prefix_len; /* bytes of the length that have come */
	uint64_t left;	     /* of the length or of the event */
};

void events_init(struct events *events, const char *content_type);

/* Takes bytes up to the end of an event, if there is one among them: true.  *used is how
 * many were taken; all of them if it is false. */
bool events_next(struct events *events, const char *bytes, size_t len, size_t *used);

#endif
