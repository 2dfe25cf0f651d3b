/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a server or a proxy says to a request (the first two bytes are the code, the
 * rest is the body) becomes one reason of the code's class and one bounded line. */
#include "fuzz.h"

#include "base/attr.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "kube/reply.h"
#include "wire/json.h"

#include <string.h>

static void check_reason(int code, enum kube_reason reason)
{
	REQUIRE((unsigned)reason < KUBE_REASONS && kube_reason_name(reason)[0]);
	REQUIRE(reason != KUBE_UNKNOWN && reason != KUBE_UNREACHABLE);
	if (code == 0)
		return;
	REQUIRE((reason == KUBE_OK) == (code >= 200 && code < 300));
	bool server = reason == KUBE_SERVER_ERROR || reason == KUBE_VERSION_TOO_LARGE;
	REQUIRE(server == (code < 200 || code >= 500));
}

static void check_line(const struct strbuf *line)
{
	REQUIRE(!line->failed && line->len > 0 && line->len <= KUBE_SAID_MAX);
	REQUIRE(utf8_valid(line->s, line->len) == line->len);
	for (size_t i = 0; i < line->len; i++)
		REQUIRE((unsigned char)line->s[i] >= ' ' && line->s[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct strbuf line CLEANUP(strbuf_done) = STRBUF_INIT;
	if (size < 2)
		return 0;
	int code = (data[0] << 8 | data[1]) % 600;
	const char *body = (const char *)data + 2;
	size_t len = size - 2;
	json_parse("fuzz", body, len, NULL, &doc, NULL);
	const struct json *root = doc ? json_root(doc) : NULL;
	check_reason(code, kube_reason_of(code, root));
	REQUIRE(kube_status_retry_after_s(root) != 0);
	kube_reply_say(&line, code, root, body, len);
	check_line(&line);
	return 0;
}
