/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes mean the same whether they come at once or one by one; pieces of a body lie inside
 * the bytes; nothing is read after an error.  The first byte says what they are. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "kube/proxy/h1.h"

#include <string.h>

static void add_head(const struct h1 *h1, struct strbuf *out)
{
	const struct head *head = &h1->head;
	if (h1->kind == H1_REQUESTS)
		strbuf_addf(out, "%s %s\n", head->method, head->target);
	else
		strbuf_addf(out, "%d\n", head->status);
	for (size_t i = 0; i < head->count; i++) {
		REQUIRE(head_get(head, head->headers[i].name));
		strbuf_addf(out, "%s: %s\n", head->headers[i].name, head->headers[i].value);
	}
	strbuf_addf(out, "%lld %d %d\n", (long long)head->length, head->has_body, h1->close);
}

/* Takes the bytes, and adds what they mean.  False: they are bad. */
static bool take(struct h1 *h1, const char *bytes, size_t len, struct strbuf *out)
{
	for (;;) {
		const char *end = bytes + len;
		struct h1_piece body;
		struct err err = ERR_INIT;
		enum h1_event event = h1_next(h1, &bytes, &len, &body, &err);
		REQUIRE(bytes + len == end);
		switch (event) {
		case H1_MORE:
			REQUIRE(len == 0);
			return true;
		case H1_HEAD:
			add_head(h1, out);
			break;
		case H1_BODY:
			REQUIRE(body.len > 0 && body.bytes + body.len == bytes);
			strbuf_add(out, body.bytes, body.len);
			break;
		case H1_END:
			REQUIRE(!h1_is_inside(h1));
			strbuf_puts(out, "end\n");
			break;
		case H1_BAD:
			REQUIRE(err.code > 0);
			strbuf_puts(out, "bad\n");
			return false;
		}
	}
}

static void read_all(enum h1_kind kind, const char *bytes, size_t size, size_t piece,
		     struct strbuf *out)
{
	struct h1 h1;
	h1_init(&h1, kind);
	bool fine = true;
	for (size_t at = 0; fine && at < size; at += piece)
		fine = take(&h1, bytes + at, MIN(piece, size - at), out);
	if (!fine) {
		struct strbuf none CLEANUP(strbuf_done) = STRBUF_INIT;
		REQUIRE(!take(&h1, "GET", 3, &none));
	}
	strbuf_puts(out, h1_eof(&h1) ? "whole" : "part");
	h1_done(&h1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf first CLEANUP(strbuf_done) = STRBUF_INIT;
	struct strbuf second CLEANUP(strbuf_done) = STRBUF_INIT;
	if (size == 0)
		return 0;
	enum h1_kind kind = data[0] == '>' ? H1_REPLIES : H1_REQUESTS;
	const char *bytes = (const char *)data + 1;
	read_all(kind, bytes, size - 1, size, &first);
	read_all(kind, bytes, size - 1, 1, &second);
	REQUIRE(first.len == second.len && memcmp(first.s, second.s, first.len) == 0);
	return 0;
}
