/* SPDX-License-Identifier: Apache-2.0 */
/* A decision is read or refused; what is read is within its bounds, and so is the lock that is
 * made of it. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/strbuf.h"
#include "dialect/decided.h"
#include "engine/mig.h"
#include "engine/request.h"
#include "scheduler/residents.h"
#include "wire/json.h"

#include <errno.h>
#include <string.h>

static void check_holds(const struct decided *d)
{
	REQUIRE(d->attempt && d->holds_count <= DECIDED_HOLDS_MAX);
	REQUIRE(strcmp(d->node, "a") == 0);
	for (uint32_t i = 0; i < d->holds_count; i++) {
		const struct decided_hold *hold = &d->holds[i];

		REQUIRE(hold->uuid && *hold->uuid);
		REQUIRE(hold->core_milli <= CORE_WHOLE && hold->ask < ASK_MAX);
		REQUIRE(!hold->mig_profile ||
			(*hold->mig_profile && hold->mig_start < MIG_SLICES_MAX));
	}
}

static void check_entry(const struct json *pod, const struct decided *d, struct arena *arena)
{
	struct lock_entry entry;
	int rc = resident_entry(pod, arena, &entry, NULL);

	REQUIRE(rc == (d->holds_count ? 0 : -ENOENT));
	if (rc == 0)
		REQUIRE(entry.holds_count == d->holds_count && entry.attempt == d->attempt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	struct arena arena CLEANUP(arena_done);
	struct decided decided;

	arena_init(&arena, (size_t)16 << 20);
	strbuf_puts(&text, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\","
			   "\"annotations\":{\"gpu.scheduling/decision\":");
	strbuf_add_json(&text, (const char *)data, size);
	strbuf_puts(&text, "}},\"spec\":{\"nodeName\":\"a\"}}");
	REQUIRE(json_parse("pod", text.s, text.len, NULL, &doc, NULL) == 0);
	int rc = decided_read(json_root(doc), &arena, &decided, NULL);
	/* A text with a NUL inside counts as none. */
	REQUIRE(rc == 0 || rc == -EINVAL || (rc == -ENOENT && memchr(data, 0, size)));
	if (rc < 0)
		return 0;
	check_holds(&decided);
	check_entry(json_root(doc), &decided, &arena);
	return 0;
}
