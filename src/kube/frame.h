/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - a watch's stream of bytes, cut into its events.
 *
 * Pieces of a body come as the network likes: half an event, or ten.  An event is one
 * JSON value; the server puts a line end after each, and none inside, which is the fast
 * way; a value over several lines, or several on one, are understood too.
 */
#ifndef GS_KUBE_FRAME_H
#define GS_KUBE_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct err;
struct json;

#define FRAME_MAX ((size_t)4 << 20) /* bytes of an event; etcd stops at 1.5 MiB */

/* An event: 0, or anything else to stop. */
typedef int (*frame_fn)(void *context, const struct json *event);

struct frame {
	struct strbuf rest; /* of an event that is not whole yet */
	/* private to frame.c: how far `rest` was looked at, and the state there */
	size_t seen;
	unsigned depth;
	bool in_string, escaped;
};

void frame_init(struct frame *frame);
void frame_done(struct frame *frame);

/* Takes the next bytes and calls for each event that they complete.
 * 0, -EINVAL (not JSON), -E2BIG, -ENOMEM, or what the callback said. */
int frame_push(struct frame *frame, const char *bytes, size_t len, frame_fn call, void *context,
	       struct err *err);

/* Whether the stream may end here: no half event is left. */
bool frame_is_empty(const struct frame *frame);

#endif
