/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of HTTP/2 as they come: in parts, too early, broken off, compressed. */
#include "test.h"
#include "unit/http_peer_parts.h"
#include "unit/http_stage.h"

#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <zlib.h>

static const struct stage_plan http2 = { .tls = true, .http2 = true };

static void serve_hold(struct stage *stage, struct peer_request *request)
{
	stage->held[stage->held_count++] = request;
}

/* ---- replies that are not as they should be ---- */

static void serve_lengths(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 200,
		   strcmp(request->path, "/less") == 0 ? "content-length: 10\n"
						       : "content-length: 3\n",
		   "half", 4);
}

TEST(a_reply_of_another_length_than_it_says_is_lost)
{
	static const char *const paths[] = { "/less", "/more" };
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_lengths;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct answer *answer = stage_post(&stage, paths[i], "x");
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_LOST, "%s", paths[i]);
		CHECK_STR(answer->reason, "the stream was reset: PROTOCOL_ERROR");
	}
	CHECK_INT(peer_accepted(stage.peer), 1);
	stage_close(&stage);
}

static void reset_stream(struct peer_request *request)
{
	peer_reset(request, NGHTTP2_INTERNAL_ERROR);
}

/* As a process that is killed, or somebody between us. */
static void end_impolitely(struct peer_request *request)
{
	CHECK_INT(shutdown(request->link->fd, SHUT_WR), 0);
}

TEST(a_reply_that_ends_in_its_middle_is_lost)
{
	void (*const ends[])(struct peer_request *) = { reset_stream, end_impolitely };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(ends); i++) {
		const size_t len = i / ARRAY_SIZE(ends) * 4;
		struct stage stage;
		stage_open(&stage, &http2);
		stage.serve = serve_hold;
		struct answer *answer = stage_stream(&stage, "/watch");
		while (!stage.held_count)
			stage_turn(&stage);
		peer_begin(stage.held[0], 200, NULL);
		peer_write(stage.held[0], "half", len);
		while (answer->streamed < len)
			stage_turn(&stage);
		ends[i % ARRAY_SIZE(ends)](stage.held[0]);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_LOST);
		CHECK_INT(answer->status, 200);
		CHECK_INT(answer->streamed, len);
		stage_close(&stage);
	}
}

/* A server that is overloaded does not read what it will not do. */
TEST(a_reply_may_come_before_the_request_is_all_sent)
{
	const size_t size = (size_t)16 << 20;
	char *body = calloc(1, size);
	struct stage_plan plan = http2;

	plan.peer.early = true;
	for (int told = 0; told < 2; told++) {
		struct stage stage;
		stage_open(&stage, &plan);
		stage.serve = serve_hold;
		struct answer *answer = stage_send(
			&stage,
			(struct http_request){
				.method = "POST", .url = "/", .body = body, .body_len = size },
			false);
		while (!stage.held_count)
			stage_turn(&stage);
		struct peer_link *link = stage.held[0]->link;
		int32_t stream = stage.held[0]->stream;
		peer_freeze(link);
		peer_reply(stage.held[0], 429, "retry-after: 7\n", "slow", 4);
		if (told) /* that it need not go on */
			nghttp2_submit_rst_stream(link->h2, NGHTTP2_FLAG_NONE, stream,
						  NGHTTP2_NO_ERROR);
		peer_flush(link);
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s", answer->reason);
		CHECK_INT(answer->status, 429);
		CHECK_INT(answer->retry_after_s, 7);
		CHECK_STR(answer->body, "slow");
		stage_close(&stage);
	}
	free(body);
}

/* ---- compressed replies ---- */

static void serve_nothing(struct stage *stage, struct peer_request *request)
{
	(void)stage;
	peer_reply(request, 200, "content-encoding: gzip\n", "", 0);
}

TEST(what_has_no_body_is_not_inflated)
{
	static const char *const methods[] = { "HEAD", "GET" };
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_nothing;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		struct answer *answer = stage_send(
			&stage,
			(struct http_request){ .method = methods[i], .url = "/", .gzip = true },
			false);
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s: %s", methods[i], answer->reason);
		CHECK_INT(answer->len, 0);
	}
	stage_close(&stage);
}

static size_t gzip_cut;	   /* bytes that are left out at the end */
static size_t gzip_extra;  /* that follow it */
static int gzip_flip = -1; /* a byte that is wrong */
static const char *gzip_name = "content-encoding: gzip\n";

static void serve_gzip(struct stage *stage, struct peer_request *request)
{
	unsigned char plain[5000], packed[6000] = { 0 };
	z_stream stream = { .next_in = plain, .next_out = packed };

	(void)stage;
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (unsigned char)(i * i / 7);
	stream.avail_in = sizeof(plain);
	stream.avail_out = sizeof(packed);
	CHECK_INT(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, 0), Z_OK);
	CHECK_INT(deflate(&stream, Z_FINISH), Z_STREAM_END);
	size_t len = stream.total_out;
	deflateEnd(&stream);
	if (gzip_flip >= 0)
		packed[gzip_flip] ^= 0xff;
	peer_reply(request, 200, gzip_name, packed, len - gzip_cut + gzip_extra);
}

TEST(gzip_has_two_names_in_any_case)
{
	static const char *const names[] = { "content-encoding: x-gzip\n",
					     "content-encoding: GZip\n",
					     "content-encoding: gzip\n" };
	struct stage stage;

	stage_open(&stage, &http2);
	stage.serve = serve_gzip;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		gzip_name = names[i];
		struct answer *answer = stage_send(
			&stage, (struct http_request){ .url = "/", .gzip = true }, false);
		stage_wait(&stage, answer);
		CHECK_INT(answer->result, HTTP_ANSWERED);
		CHECK_INT(answer->len, 5000);
	}
	stage_close(&stage);
}

TEST(a_compressed_reply_that_is_broken_is_lost)
{
	static const struct {
		size_t cut, extra;
		int flip;
		enum http_result result;
	} rows[] = {
		{ 0, 0, -1, HTTP_ANSWERED }, { 1, 0, -1, HTTP_LOST }, { 100, 0, -1, HTTP_LOST },
		{ 0, 3, -1, HTTP_LOST },     { 0, 0, 0, HTTP_LOST },  { 0, 0, 40, HTTP_LOST },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stage stage;
		gzip_cut = rows[i].cut;
		gzip_extra = rows[i].extra;
		gzip_flip = rows[i].flip;
		stage_open(&stage, &http2);
		stage.serve = serve_gzip;
		struct answer *answer = stage_send(
			&stage, (struct http_request){ .url = "/", .gzip = true }, i % 2);
		stage_wait(&stage, answer);
		CHECKF(answer->result == rows[i].result, "row %zu: %d %s", i, answer->result,
		       answer->reason);
		stage_close(&stage);
	}
}

/* ---- fields that are not the reply's ---- */

static void serve_fields(struct stage *stage, struct peer_request *request)
{
	static const char *const fields =
		"content-type: a/b\nretry-after: 9\nwarning: 299 - \"a\"\n";

	(void)stage;
	if (strcmp(request->path, "/before") == 0) {
		peer_interim(request, 103, "content-encoding: gzip\nretry-after: 5\n");
		peer_interim(request, 103, "content-type: c/d\nwarning: 299 - \"c\"\n");
	} else if (strcmp(request->path, "/behind") == 0) {
		peer_trailers(request, "content-encoding: gzip\ncontent-type: c/d\n"
				       "retry-after: 5\nwarning: 299 - \"c\"\n");
	}
	peer_reply(request, 200, fields, "body", 4);
}

TEST(neither_early_hints_nor_trailers_change_the_reply)
{
	static const char *const paths[] = { "/alone", "/before", "/behind" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct stage stage;
		stage_open(&stage, &http2);
		stage.serve = serve_fields;
		struct answer *answer = stage_send(
			&stage, (struct http_request){ .url = paths[i], .gzip = true }, false);
		stage_wait(&stage, answer);
		CHECKF(answer->result == HTTP_ANSWERED, "%s: %s", paths[i], answer->reason);
		CHECK_INT(answer->status, 200);
		CHECK_STR(answer->body, "body");
		CHECK_STR(answer->content_type, "a/b");
		CHECK_INT(answer->retry_after_s, 9);
		CHECK_INT(answer->warnings_count, 1);
		stage_close(&stage);
	}
}

TEST_MAIN()
