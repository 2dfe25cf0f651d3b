/* SPDX-License-Identifier: Apache-2.0 */
/* A stream gives the same events and the same end however it is cut.  The first two bytes
 * say how: the sizes of the pieces, in turns. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/frame.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>
#include <string.h>

static int note(void *context, const struct json *event)
{
	struct json_writer writer = JSON_WRITER_INIT((struct strbuf *)context);

	REQUIRE(json_type(event) == JSON_OBJECT);
	json_add_value(&writer, event);
	strbuf_putc(context, '\n');
	return 0;
}

/* A piece in memory of its own, so that reading past its end is noticed. */
static int push(struct frame *frame, const char *bytes, size_t len, struct strbuf *seen,
		struct err *err)
{
	char *copy = malloc(len);

	REQUIRE(copy != NULL);
	memcpy(copy, bytes, len);
	int rc = frame_push(frame, copy, len, note, seen, err);
	free(copy);
	return rc;
}

/* All events of the stream, in pieces of these sizes; an end of line comes last. */
static int read_all(const char *text, size_t len, const size_t pieces[2], struct strbuf *seen,
		    bool *empty)
{
	struct frame frame CLEANUP(frame_done);
	struct err err = ERR_INIT;
	int rc = 0;

	frame_init(&frame);
	for (size_t at = 0, n, turn = 0; at < len && rc == 0; at += n) {
		n = MIN(pieces[turn % 2], len - at);
		turn++;
		rc = push(&frame, text + at, n, seen, &err);
	}
	if (rc == 0)
		rc = push(&frame, "\n", 1, seen, &err);
	REQUIRE(rc == 0 || rc == -EINVAL || rc == -E2BIG);
	REQUIRE(rc == 0 || strncmp(err.text, "watch event", 11) == 0);
	REQUIRE(frame.rest.len <= FRAME_MAX && frame.seen <= frame.rest.len);
	*empty = frame_is_empty(&frame);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf once CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf cut CLEANUP(strbuf_done) = STRBUF_INIT;
	bool once_empty, cut_empty;

	if (size < 2)
		return 0;
	const char *text = (const char *)data + 2;
	size_t len = size - 2, pieces[2] = { 1 + (size_t)data[0], 1 + (size_t)data[1] };
	int rc = read_all(text, len, (size_t[]){ size, size }, &once, &once_empty);
	REQUIRE(read_all(text, len, pieces, &cut, &cut_empty) == rc);
	REQUIRE(once.len == cut.len && memcmp(once.s, cut.s, cut.len) == 0);
	REQUIRE(rc < 0 || once_empty == cut_empty);
	return 0;
}
