/* SPDX-License-Identifier: Apache-2.0 */
#include "samples.h"
#include "test.h"

#include "base/attr.h"
#include "base/rng.h"
#include "kube/frame.h"
#include "wire/json.h"
#include "wire/json_write.h"

#include <errno.h>

/* What was delivered, one compact line each. */
struct seen {
	struct strbuf text;
	unsigned count;
	unsigned stop_at; /* refuses the so many-th; 0: none */
};

static int note(void *context, const struct json *event)
{
	struct seen *seen = context;
	struct json_writer writer = JSON_WRITER_INIT(&seen->text);
	if (++seen->count == seen->stop_at)
		return -ECANCELED;
	json_add_value(&writer, event);
	strbuf_putc(&seen->text, '\n');
	return 0;
}

/* Pushes the text in pieces of so many bytes. */
static int push(struct frame *frame, struct seen *seen, const char *text, size_t len, size_t piece,
		struct err *err)
{
	int rc = 0;
	for (size_t at = 0; at < len && rc == 0; at += piece) {
		/* Of its own, so that reading past the end is noticed. */
		size_t n = MIN(piece, len - at);
		char *copy = malloc(n);
		CHECK(copy != NULL);
		memcpy(copy, text + at, n);
		rc = frame_push(frame, copy, n, note, seen, err);
		free(copy);
	}
	return rc;
}

static void check_events(const char *text, const char *expected)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		struct frame frame CLEANUP(frame_done);
		struct seen seen = { .text = STRBUF_INIT };
		struct err err = ERR_INIT;
		frame_init(&frame);
		CHECKF(push(&frame, &seen, text, strlen(text), piece, &err) == 0,
		       "in pieces of %zu: %s", piece, err.text);
		CHECKF(strcmp(seen.text.s, expected) == 0, "in pieces of %zu: %s", piece,
		       seen.text.s);
		CHECKF(frame_is_empty(&frame), "in pieces of %zu", piece);
		strbuf_done(&seen.text);
	}
}

TEST(lines_are_events_however_they_are_cut)
{
	check_events("{\"a\":1}\n{\"b\":\"}\\\"\"}\n{}\n", "{\"a\":1}\n{\"b\":\"}\\\"\"}\n{}\n");
	check_events("{\"a\":1}\r\n\r\n  {\"b\":2}\t\n", "{\"a\":1}\n{\"b\":2}\n");
	check_events("\n\n", "");
}

TEST(an_event_may_be_spread_over_lines)
{
	check_events("{\n\t\"a\": [1,\n2]\n}\n{\"b\":2}\n", "{\"a\":[1,2]}\n{\"b\":2}\n");
	check_events("{\"a\":{\"b\":\n{\"c\":\"]}\"}}}\n{\"d\":[[{}]]}\n",
		     "{\"a\":{\"b\":{\"c\":\"]}\"}}}\n{\"d\":[[{}]]}\n");
}

TEST(a_line_may_have_many_events)
{
	check_events("{\"a\":1}{\"b\":2} {\"c\":3}\n{\"d\":4}\n",
		     "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n");
	check_events("{\"a\":1} {\"b\":\n2}{\"c\":3}", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
}

TEST(an_event_does_not_wait_for_its_line_end)
{
	struct frame frame CLEANUP(frame_done);
	struct seen seen = { .text = STRBUF_INIT };
	frame_init(&frame);
	CHECK_INT(frame_push(&frame, "{\"a\":{}", 7, note, &seen, NULL), 0);
	CHECK_INT(seen.count, 0);
	CHECK(!frame_is_empty(&frame));
	CHECK_INT(frame_push(&frame, "}", 1, note, &seen, NULL), 0);
	CHECK_INT(seen.count, 1);
	CHECK(frame_is_empty(&frame));
	CHECK_INT(frame_push(&frame, "\n{}\n", 4, note, &seen, NULL), 0);
	CHECK_INT(seen.count, 2);
	strbuf_done(&seen.text);
}

TEST(what_is_no_event_is_refused)
{
	static const char *const rows[] = {
		"x\n",
		"[1]\n",
		"1\n",
		"{\"a\":1}}\n",
		"{]\n{}\n",
		"\"a\"\n",
		"{\"a\":x}\n",
		"{\"a\":1} x\n",
		"{\"a\":\"x\ny\"}\n",
		"{\"a\":tr\nue}\n",
		"<html>\n<body>\n",
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t piece = 1; piece <= strlen(rows[i]); piece++) {
			struct frame frame CLEANUP(frame_done);
			struct seen seen = { .text = STRBUF_INIT };
			struct err err = ERR_INIT;
			frame_init(&frame);
			CHECKF(push(&frame, &seen, rows[i], strlen(rows[i]), piece, &err) ==
				       -EINVAL,
			       "%s in pieces of %zu", rows[i], piece);
			CHECKF(strncmp(err.text, "watch event", 11) == 0, "%s", err.text);
			strbuf_done(&seen.text);
		}
	}
}

TEST(half_an_event_is_no_end)
{
	static const char *const rows[] = { "{", "{\"a\":1", "{}\n{\"", "{\n", "{}{" };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct frame frame CLEANUP(frame_done);
		struct seen seen = { .text = STRBUF_INIT };
		frame_init(&frame);
		CHECK_INT(push(&frame, &seen, rows[i], strlen(rows[i]), 64, NULL), 0);
		CHECKF(!frame_is_empty(&frame), "%s", rows[i]);
		frame_reset(&frame);
		CHECK(frame_is_empty(&frame));
		CHECK_INT(frame_push(&frame, "{}\n", 3, note, &seen, NULL), 0);
		CHECKF(frame_is_empty(&frame), "%s", rows[i]);
		strbuf_done(&seen.text);
	}
}

TEST(the_callback_can_stop_it)
{
	struct frame frame CLEANUP(frame_done);
	struct seen seen = { .text = STRBUF_INIT, .stop_at = 2 };
	frame_init(&frame);
	CHECK_INT(frame_push(&frame, "{}\n{}\n{}\n", 9, note, &seen, NULL), -ECANCELED);
	CHECK_INT(seen.count, 2);
	seen = (struct seen){ .text = seen.text, .stop_at = 2 };
	frame_reset(&frame);
	CHECK_INT(frame_push(&frame, "{}{}{}\n", 7, note, &seen, NULL), -ECANCELED);
	CHECK_INT(seen.count, 2);
	strbuf_done(&seen.text);
}

/* Fills the buffer with an object of so many bytes. */
static void long_event(struct strbuf *out, size_t len, bool with_line_end)
{
	strbuf_puts(out, "{\"a\":\"");
	while (out->len < len - 2)
		strbuf_putc(out, 'x');
	strbuf_puts(out, "\"}");
	if (with_line_end)
		strbuf_putc(out, '\n');
}

TEST(an_event_has_a_greatest_size)
{
	for (unsigned i = 0; i < 8; i++) {
		struct frame frame CLEANUP(frame_done);
		struct seen seen = { .text = STRBUF_INIT };
		struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
		bool whole = i & 1, too_long = i & 2, split = i & 4;
		long_event(&text, FRAME_MAX + too_long, whole);
		frame_init(&frame);
		CHECK_INT(push(&frame, &seen, text.s, text.len, split ? 100000 : text.len, NULL),
			  too_long ? -E2BIG : 0);
		CHECK_INT(seen.count, !too_long);
		strbuf_done(&seen.text);
	}
}

TEST(an_event_has_a_greatest_depth)
{
	struct frame frame CLEANUP(frame_done);
	struct seen seen = { .text = STRBUF_INIT };
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct err err = ERR_INIT;
	strbuf_puts(&text, "{\"a\":");
	for (int i = 0; i < 64; i++)
		strbuf_putc(&text, '[');
	for (int i = 0; i < 64; i++)
		strbuf_putc(&text, ']');
	strbuf_puts(&text, "}\n");
	frame_init(&frame);
	CHECK_INT(push(&frame, &seen, text.s, text.len, 4096, &err), -E2BIG);
	CHECK_STR(err.text, "watch event: more than 64 levels deep");
	strbuf_done(&seen.text);
}

TEST(a_stream_cut_at_random_gives_the_same_events)
{
	struct strbuf stream CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf line CLEANUP(strbuf_done) = STRBUF_INIT;
	struct rng rng;
	sample_read("pod_running.json", &line);
	for (unsigned i = 0; i < 20; i++) {
		strbuf_add(&stream, line.s, line.len - (i % 4 == 3)); /* some have no line end */
		if (i % 3 == 0)
			strbuf_puts(&stream, "{\"type\":\n\"BOOKMARK\"}\n");
	}
	rng_seed(&rng, 7);
	for (unsigned round = 0; round < 50; round++) {
		struct frame frame CLEANUP(frame_done);
		struct seen seen = { .text = STRBUF_INIT };
		frame_init(&frame);
		for (size_t at = 0, n; at < stream.len; at += n) {
			n = 1 + rng_below(&rng, 6000);
			n = MIN(n, stream.len - at);
			CHECK_INT(push(&frame, &seen, stream.s + at, n, n, NULL), 0);
		}
		CHECK_INT(seen.count, 27);
		CHECK(frame_is_empty(&frame));
		strbuf_done(&seen.text);
	}
}

TEST_MAIN()
