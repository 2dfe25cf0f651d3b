/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/frame.h"

#include "base/attr.h"
#include "base/err.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

#define PIECE_MAX ((size_t)64 << 10) /* taken at a time while brackets are counted */

static const char name[] = "watch event"; /* begins the parser's messages */

void frame_init(struct frame *frame)
{
	*frame = (struct frame){ .rest = STRBUF_INIT_MAX(FRAME_MAX) };
}

void frame_done(struct frame *frame)
{
	if (frame)
		strbuf_done(&frame->rest);
}

void frame_reset(struct frame *frame)
{
	strbuf_reset(&frame->rest);
	frame->seen = 0;
	frame->depth = 0;
	frame->in_string = frame->escaped = frame->by_brackets = false;
}

bool frame_is_empty(const struct frame *frame)
{
	return frame->rest.len == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Reads one event and hands it on.  *called tells a refusal of the callback, which may be
 * any number, from one of the parser. */
static int deliver(const char *text, size_t len, frame_fn call, void *context, bool *called,
		   struct err *err)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	int rc = json_parse(name, text, len, NULL, &doc, err);
	*called = rc == 0;
	if (rc == 0 && json_type(json_root(doc)) != JSON_OBJECT)
		return err_set(err, EINVAL, "%s: not an object", name);
	return rc < 0 ? rc : call(context, json_root(doc));
}

static int too_long(struct err *err)
{
	return err_set(err, E2BIG, "%s: more than %zu bytes", name, FRAME_MAX);
}

static int append(struct frame *frame, const char *bytes, size_t len, struct err *err)
{
	if (len > FRAME_MAX - frame->rest.len)
		return too_long(err);
	strbuf_add(&frame->rest, bytes, len);
	return frame->rest.failed ? err_set(err, ENOMEM, "%s: out of memory", name) : 0;
}

/* Looks at the bytes of `rest` that are new.  1 if they complete an object, which ends at
 * `seen`; 0 if not; -EINVAL for something else than an object. */
static int scan(struct frame *frame, struct err *err)
{
	const char *text = frame->rest.s;
	size_t i = frame->seen, len = frame->rest.len;
	for (; i < len; i++) {
		char c = text[i];
		if (frame->escaped)
			frame->escaped = false;
		else if (frame->in_string && c == '\\')
			frame->escaped = true;
		else if (c == '"' && frame->depth > 0)
			frame->in_string = !frame->in_string;
		else if (frame->in_string)
			continue;
		else if (c == '{' || (c == '[' && frame->depth > 0))
			frame->depth++;
		else if ((c == '}' || c == ']') && frame->depth > 0)
			frame->depth--;
		else if (frame->depth == 0 && !is_blank(c))
			return err_set(err, EINVAL, "%s: not an object", name);
		if (frame->depth == 0 && !is_blank(c)) {
			frame->seen = i + 1;
			return 1;
		}
	}
	frame->seen = i;
	return 0;
}

/* Hands on all objects in `rest` that are whole, and leaves what remains. */
static int deliver_scanned(struct frame *frame, frame_fn call, void *context, struct err *err)
{
	size_t start = 0;
	bool called;
	int rc;
	while ((rc = scan(frame, err)) == 1) {
		rc = deliver(frame->rest.s + start, frame->seen - start, call, context, &called,
			     err);
		if (rc != 0)
			return rc;
		start = frame->seen;
	}
	if (rc < 0)
		return rc;
	/* Blanks between two objects are no half event. */
	if (frame->depth == 0)
		start = frame->rest.len;
	/* What is moved was not looked at before this call: it moves once. */
	if (start > 0) {
		memmove(frame->rest.s, frame->rest.s + start, frame->rest.len - start);
		strbuf_truncate(&frame->rest, frame->rest.len - start);
		frame->seen -= start;
	}
	return 0;
}

/* The way without a line per event: one piece, up to the end of the line. */
static int push_by_brackets(struct frame *frame, const char **bytes, size_t *len, frame_fn call,
			    void *context, struct err *err)
{
	size_t piece = MIN(*len, PIECE_MAX);
	const char *end = memchr(*bytes, '\n', piece);
	piece = end ? (size_t)(end + 1 - *bytes) : piece;
	int rc = append(frame, *bytes, piece, err);
	if (rc == 0)
		rc = deliver_scanned(frame, call, context, err);
	*bytes += piece;
	*len -= piece;
	if (end && frame->rest.len == 0)
		frame->by_brackets = false;
	return rc;
}

/* A line that is not whole.  If it ends like an event, it may be one whose line end
 * comes late. */
static int push_beginning(struct frame *frame, const char *bytes, size_t len, frame_fn call,
			  void *context, struct err *err)
{
	int rc = append(frame, bytes, len, err);
	while (len > 0 && is_blank(bytes[len - 1]))
		len--;
	if (rc < 0 || len == 0 || bytes[len - 1] != '}')
		return rc;
	return deliver_scanned(frame, call, context, err);
}

/* The line is no event: from here on brackets tell, to the end of the line that has the
 * last of them. */
static int push_again(struct frame *frame, const char *bytes, size_t len, frame_fn call,
		      void *context, struct err *err)
{
	int rc = append(frame, bytes, len, err);
	if (rc == 0)
		rc = append(frame, "\n", 1, err);
	if (rc == 0)
		rc = deliver_scanned(frame, call, context, err);
	frame->by_brackets = frame->rest.len > 0;
	return rc;
}

/* A line, the last part of which is here: read where it lies if it came whole. */
static int push_line(struct frame *frame, const char *bytes, size_t len, frame_fn call,
		     void *context, struct err *err)
{
	bool called, direct = frame->rest.len == 0;
	struct err why = ERR_INIT;
	int rc = direct ? 0 : append(frame, bytes, len, err);
	if (rc < 0 || len > FRAME_MAX)
		return rc < 0 ? rc : too_long(err);
	if (direct)
		rc = deliver(bytes, len, call, context, &called, &why);
	else
		rc = deliver(frame->rest.s, frame->rest.len, call, context, &called, &why);
	if (!called && rc == -EINVAL)
		return push_again(frame, bytes, direct ? len : 0, call, context, err);
	if (rc == 0)
		frame_reset(frame);
	else if (why.code)
		err_set(err, why.code, "%s", why.text);
	return rc;
}

static int push_some(struct frame *frame, const char **bytes, size_t *len, frame_fn call,
		     void *context, struct err *err)
{
	if (frame->by_brackets)
		return push_by_brackets(frame, bytes, len, call, context, err);
	const char *start = *bytes, *end = memchr(start, '\n', *len);
	size_t piece = end ? (size_t)(end - start) : *len;
	*bytes += piece + (end != NULL);
	*len -= piece + (end != NULL);
	/* Lines without anything, and what a line that was read early still brings. */
	while (frame->rest.len == 0 && piece > 0 && is_blank(*start)) {
		start++;
		piece--;
	}
	if (piece == 0 && frame->rest.len == 0)
		return 0;
	return end ? push_line(frame, start, piece, call, context, err)
		   : push_beginning(frame, start, piece, call, context, err);
}

int frame_push(struct frame *frame, const char *bytes, size_t len, frame_fn call, void *context,
	       struct err *err)
{
	int rc = 0;
	while (len > 0 && rc == 0)
		rc = push_some(frame, &bytes, &len, call, context, err);
	return rc;
}
