/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - a watch's stream of bytes, cut into its events.
 *
 * Pieces of a body come as the network likes: half an event, or ten.  An event is one
 * JSON object; the server puts a line end after each, and none inside, which is the fast
 * way: a line that came whole is read where it lies.  An object over several lines,
 * several on one, and one whose line end is late are understood too.
 *
 * Every byte is looked at a bounded number of times, however it is cut.
 */
#ifndef GS_KUBE_FRAME_H
#define GS_KUBE_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct err;
struct json;

/* Bytes of an event.  etcd stops at 1.5 MiB, of which escaping can make six times as much. */
#define FRAME_MAX ((size_t)16 << 20)

/* An event, valid during the call: 0, or anything else to stop. */
typedef int (*frame_fn)(void *context, const struct json *event);

struct frame {
	struct strbuf rest; /* of an event that is not whole yet */
	/* private to frame.c: how far `rest` was looked at, and the state there */
	size_t seen;
	unsigned depth;
	bool in_string, escaped;
	bool by_brackets; /* this line is not one event: brackets tell where one ends */
};

void frame_init(struct frame *frame);
void frame_done(struct frame *frame);

/* Takes the next bytes and calls for each event that they complete.
 * 0, -EINVAL (not JSON), -E2BIG, -ENOMEM, or what the callback said: then the stream
 * cannot go on; frame_reset() makes it ready for another. */
int frame_push(struct frame *frame, const char *bytes, size_t len, frame_fn call, void *context,
	       struct err *err);

/* Forgets the half event; keeps the memory. */
void frame_reset(struct frame *frame);

/* Whether the stream may end here: no half event is left. */
bool frame_is_empty(const struct frame *frame);

#endif
