/* SPDX-License-Identifier: Apache-2.0 */
/* kube_decode_bench - what an event costs from its bytes to the record of a cache.
 *
 * A stream of one event over and over, cut as a connection would cut it, goes through
 * frame, parser and projection; then what is kept is read again.  It is the CPU's time,
 * and the best of several rounds, for others use the machine too.  Fails if a record is
 * larger than a kibibyte, or if an event takes longer than the target and more than three
 * times what the JSON parser alone takes (else it is the machine that is slow).
 */
#include "samples.h"

#include "base/attr.h"
#include "kube/frame.h"
#include "kube/keep.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "wire/json.h"

#include <stdbool.h>
#include <time.h>

#define EVENTS	   2048 /* of a round */
#define STREAM	   32	/* events in memory at a time, as in the buffers of a connection */
#define ROUNDS	   15
#define PIECE	   16384 /* bytes, as TLS hands them on */
#define TARGET_NS  6000
#define PARSER_MAX 3.0
#define BYTES_MAX  1024

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

struct sink {
	const struct keep *keep;
	struct kube_object *last; /* replaced by the next, as in a cache */
	uint64_t count;
};

static int take(void *context, const struct json *event)
{
	struct sink *sink = context;
	struct kube_object *object = NULL;
	int rc = kube_object_new(json_get(event, "object"), sink->keep, &object, NULL);

	if (rc < 0)
		return rc;
	kube_object_free(sink->last);
	sink->last = object;
	sink->count++;
	return 0;
}

static double round_decode(const struct strbuf *stream, struct sink *sink)
{
	struct frame frame;
	uint64_t start = now_ns();

	frame_init(&frame);
	for (unsigned i = 0; i < EVENTS / STREAM; i++)
		for (size_t at = 0; at < stream->len; at += PIECE)
			if (frame_push(&frame, stream->s + at,
				       MIN((size_t)PIECE, stream->len - at), take, sink, NULL) < 0)
				abort();
	frame_done(&frame);
	return (double)(now_ns() - start) / EVENTS;
}

static double round_parse(const struct strbuf *line)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < EVENTS; i++) {
		struct json_doc *doc = NULL;

		if (json_parse("bench", line->s, line->len, NULL, &doc, NULL) < 0)
			abort();
		json_doc_free(doc);
	}
	return (double)(now_ns() - start) / EVENTS;
}

static double round_again(const struct kube_object *object)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < EVENTS; i++) {
		struct json_doc *doc = NULL;

		if (kube_object_parse(object, &doc) < 0)
			abort();
		json_doc_free(doc);
	}
	return (double)(now_ns() - start) / EVENTS;
}

/* Whether both the time and the size are within their bounds. */
static bool run(const char *name, const struct keep *keep, double target_ns)
{
	struct strbuf line CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf stream CLEANUP(strbuf_done) = STRBUF_INIT;
	struct sink sink = { .keep = keep };
	double decode = 1e18, parse = 1e18, again = 1e18;

	sample_read(name, &line);
	for (unsigned i = 0; i < STREAM; i++)
		strbuf_add(&stream, line.s, line.len);
	for (unsigned i = 0; i < ROUNDS; i++) {
		double ns = round_decode(&stream, &sink);
		decode = MIN(decode, ns);
		ns = round_parse(&line);
		parse = MIN(parse, ns);
		ns = round_again(sink.last);
		again = MIN(again, ns);
	}
	if (sink.count != (uint64_t)EVENTS * ROUNDS)
		abort();
	printf("kube_decode %s: %zu bytes, %.2f us an event (%.0f/s), of that %.2f us the JSON "
	       "parser; record %u bytes, read again in %.2f us\n",
	       name, line.len, decode / 1000, 1e9 / decode, parse / 1000, sink.last->bytes,
	       again / 1000);
	bool small = sink.last->bytes <= BYTES_MAX;
	kube_object_free(sink.last);
	return small && (decode <= target_ns || decode <= PARSER_MAX * parse);
}

int main(void)
{
	struct keep *keep CLEANUP(keep_freep) = NULL;

	if (keep_new(kube_kinds[KUBE_POD].keep, &keep, NULL) < 0)
		return 1;
	bool pending = run("pod_pending.json", keep, TARGET_NS);
	bool running = run("pod_running.json", keep, 3.0 * TARGET_NS);
	if (!pending || !running)
		printf("kube_decode: over the target of %d ns, or of %d bytes\n", TARGET_NS,
		       BYTES_MAX);
	return !pending || !running;
}
