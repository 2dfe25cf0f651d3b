/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/attr.h"
#include "base/err.h"
#include "kube/proxy/events.h"
#include "kube/proxy/h1.h"

/* What a stream of bytes says, as text: a line for each head, "body <bytes>" joined
 * together, "end", "bad". */
static void describe(enum h1_kind kind, const char *text, size_t len, size_t piece, bool head_only,
		     struct strbuf *out)
{
	struct h1 h1;
	h1_init(&h1, kind);
	h1.bodyless = head_only;
	bool in_body = false;
	for (size_t at = 0; at < len; at += piece) {
		const char *bytes = text + at;
		size_t left = MIN(piece, len - at);
		for (bool more = true; more;) {
			struct h1_piece body;
			struct err err = ERR_INIT;
			enum h1_event event = h1_next(&h1, &bytes, &left, &body, &err);
			if (in_body && event != H1_BODY && event != H1_MORE) {
				strbuf_puts(out, ">\n");
				in_body = false;
			}
			if (event == H1_HEAD && kind == H1_REQUESTS)
				strbuf_addf(out, "%s %s", h1.head.method, h1.head.target);
			else if (event == H1_HEAD)
				strbuf_addf(out, "%d", h1.head.status);
			for (size_t i = 0; event == H1_HEAD && i < h1.head.count; i++)
				strbuf_addf(out, " %s=%s", h1.head.headers[i].name,
					    h1.head.headers[i].value);
			if (event == H1_HEAD)
				strbuf_addf(out, "%s\n", h1.close ? " last" : "");
			if (event == H1_BODY && !in_body)
				strbuf_puts(out, "<");
			in_body |= event == H1_BODY;
			strbuf_add(out, body.bytes, body.len);
			if (event == H1_END)
				strbuf_puts(out, "end\n");
			if (event == H1_BAD)
				strbuf_addf(out, "bad: %s\n", err.text);
			more = event != H1_MORE && event != H1_BAD;
			if (event == H1_BAD)
				at = len;
		}
	}
	strbuf_puts(out, in_body ? ">\n" : "");
	strbuf_puts(out, h1_eof(&h1) ? "" : "unfinished\n");
	h1_done(&h1);
}

static const struct row {
	enum h1_kind kind;
	const char *text, *expected;
} rows[] = {
	{ H1_REQUESTS, "GET /a?b HTTP/1.1\r\nHost: x\r\nX-Y:  z \r\n\r\n",
	  "GET /a?b host=x x-y=z\nend\n" },
	{ H1_REQUESTS,
	  "\r\n\r\nGET / HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n",
	  "GET /\nend\nGET /2 connection=close last\nend\n" },
	{ H1_REQUESTS, "GET / HTTP/1.0\r\n\r\n", "GET / last\nend\n" },
	{ H1_REQUESTS, "PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
	  "PUT / content-length=5\n<hello>\nend\nGET /\nend\n" },
	{ H1_REQUESTS, "PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
	  "PUT / content-length=0\nend\n" },
	{ H1_REQUESTS,
	  "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
	  "5;x=y\r\nhello\r\nA\r\n, world, 1\r\n0\r\nTrailer: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
	  "PUT / transfer-encoding=chunked\n<hello, world, 1>\nend\nGET /\nend\n" },
	{ H1_REPLIES, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
	  "200 content-length=2\n<hi>\nend\n" },
	{ H1_REPLIES, "HTTP/1.1 200\r\n\r\nuntil the end", "200 last\n<until the end>\n" },
	{ H1_REPLIES, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
	  "100\nend\n204\nend\n" },
	{ H1_REPLIES, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
	  "304 content-length=9\nend\n" },
	{ H1_REQUESTS, "GET / HTTP/1.1\r\nHost", "unfinished\n" },
	{ H1_REQUESTS, "PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel",
	  "PUT / content-length=5\n<hel>\nunfinished\n" },
	{ H1_REPLIES, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
	  "200 transfer-encoding=chunked\n<hi>\nunfinished\n" },
};

TEST(messages_read_the_same_however_they_are_cut)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t piece = 1; piece <= strlen(rows[i].text); piece++) {
			struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
			describe(rows[i].kind, rows[i].text, strlen(rows[i].text), piece, false,
				 &out);
			CHECKF(strcmp(out.s, rows[i].expected) == 0, "by %zu: %s\n%s", piece,
			       rows[i].text, out.s);
		}
	}
}

TEST(a_reply_to_head_has_no_body)
{
	static const char text[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n"
		"Transfer-Encoding: chunked\r\n\r\n";
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	describe(H1_REPLIES, text, strlen(text), 7, true, &out);
	CHECK_STR(out.s, "200 content-length=5\nend\n200 transfer-encoding=chunked\nend\n");
}

TEST(what_two_readers_could_read_differently_is_refused)
{
	static const struct {
		enum h1_kind kind;
		const char *text, *error;
	} bad[] = {
		{ H1_REQUESTS, "GET / HTTP/1.1\nHost: x\r\n\r\n", "ends without CR" },
		{ H1_REQUESTS, "GET /\r\n\r\n", "not a request" },
		{ H1_REQUESTS, "GET x HTTP/1.1\r\n\r\n", "malformed request line" },
		{ H1_REQUESTS, "G(T / HTTP/1.1\r\n\r\n", "malformed request line" },
		{ H1_REQUESTS, "GET / HTTP/2.0\r\n\r\n", "not HTTP/1.1" },
		{ H1_REQUESTS, "GET / HTTP/1.1 \r\n\r\n", "not HTTP/1.1" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nA\r\n\r\n", "a header without ':'" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nA : b\r\n\r\n", "malformed header" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\n: b\r\n\r\n", "malformed header" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "a header without ':'" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", "malformed header" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		  "malformed Content-Length" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
		  "malformed Content-Length" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		  "malformed Content-Length" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
		  "malformed Content-Length" },
		{ H1_REQUESTS,
		  "GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		  "where it must not be" },
		{ H1_REQUESTS, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		  "where it must not be" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		  "unknown Transfer-Encoding" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
		  "malformed size" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\n",
		  "without CR" },
		{ H1_REQUESTS, "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
		  "longer than it said" },
		{ H1_REQUESTS,
		  "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		  "malformed size" },
		{ H1_REPLIES, "200 OK\r\n\r\n", "malformed status line" },
		{ H1_REPLIES, "HTTP/1.1 20 OK\r\n\r\n", "malformed status line" },
		{ H1_REPLIES, "HTTP/1.1 2000 OK\r\n\r\n", "malformed status line" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
		describe(bad[i].kind, bad[i].text, strlen(bad[i].text), 1000, false, &out);
		CHECKF(strstr(out.s, "bad: ") && strstr(out.s, bad[i].error), "%s\n%s",
		       bad[i].text, out.s);
	}
}

TEST(a_head_has_bounds)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_puts(&text, "GET / HTTP/1.1\r\n");
	for (int i = 0; i <= H1_HEADERS_MAX; i++)
		strbuf_puts(&text, "A: b\r\n");
	strbuf_puts(&text, "\r\n");
	describe(H1_REQUESTS, text.s, text.len, 100, false, &out);
	CHECK_STR(out.s, "bad: more than 128 headers\nunfinished\n");
	strbuf_truncate(&text, 16);
	while (text.len < H1_HEAD_MAX)
		strbuf_puts(&text, "A: a long line that does not end the head\r\n");
	strbuf_reset(&out);
	describe(H1_REQUESTS, text.s, text.len, 100, false, &out);
	CHECK_STR(out.s, "bad: a head of more than 65536 bytes\nunfinished\n");
	strbuf_reset(&text);
	strbuf_add(&text, "GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24);
	strbuf_reset(&out);
	describe(H1_REQUESTS, text.s, text.len, 100, false, &out);
	CHECK_STR(out.s, "bad: a NUL byte in a head\nunfinished\n");
}

/* Ends of events in the bytes, as offsets. */
static void find_events(const char *content_type, const char *bytes, size_t len, size_t piece,
			struct strbuf *out)
{
	struct events events;
	events_init(&events, content_type);
	for (size_t at = 0; at < len;) {
		size_t used;
		bool ended = events_next(&events, bytes + at, MIN(piece, len - at), &used);
		CHECK(used > 0 && used <= piece);
		at += used;
		if (ended)
			strbuf_addf(out, "%zu ", at);
	}
	strbuf_addf(out, "(%d)", (int)events.count);
}

TEST(events_end_with_a_line_or_after_their_length)
{
	static const struct {
		const char *content_type, *bytes;
		size_t len;
		const char *expected;
	} streams[] = {
		{ "application/json", "{}\n{\"a\":1}\n{", 12, "3 11 (2)" },
		{ NULL, "\n\n", 2, "1 2 (2)" },
		{ "application/vnd.kubernetes.protobuf;stream=watch",
		  "\0\0\0\2a\n\0\0\0\0\0\0\1\0abc", 17, "6 10 (2)" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		for (size_t piece = 1; piece <= streams[i].len; piece++) {
			struct strbuf out CLEANUP(strbuf_done) = STRBUF_INIT;
			find_events(streams[i].content_type, streams[i].bytes, streams[i].len,
				    piece, &out);
			CHECK_STR(out.s, streams[i].expected);
		}
	}
}

TEST_MAIN()
