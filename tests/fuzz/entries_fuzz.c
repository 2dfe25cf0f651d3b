/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that are read can be written, are then read as the same, and can be added up. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/strbuf.h"
#include "engine/mig.h"
#include "scheduler/entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool card(void *context, const char *uuid, struct lock_card *ret)
{
	(void)context;
	*ret = (struct lock_card){ .mem_mib = 81559, .mig = &mig_a100_80gb };
	return uuid[0] != 'x';
}

/* As many as fit beside each other still fit one by one. */
static void add_up(const struct lock_entry *entries, uint32_t count)
{
	struct lock_entry held[8];
	uint32_t n = 0;

	for (uint32_t i = 0; i < count && n < ARRAY_SIZE(held); i++) {
		int rc = entries_fit(held, n, &entries[i], card, NULL, NULL);

		REQUIRE(rc == 0 || rc == -ENOSPC);
		if (rc == 0)
			held[n++] = entries[i];
	}
	for (uint32_t i = 0; i < n; i++)
		REQUIRE(entries_fit(NULL, 0, &held[i], card, NULL, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena CLEANUP(arena_done);
	struct strbuf again CLEANUP(strbuf_done) = STRBUF_INIT;
	struct lock_entry *entries, *same;
	uint32_t count, same_count;
	char *text = malloc(size + 1);

	REQUIRE(text);
	memcpy(text, data, size);
	text[size] = '\0';
	arena_init(&arena, (size_t)16 << 20);
	int rc = entries_read(text, &arena, &entries, &count, NULL);
	free(text);
	REQUIRE(rc == 0 || rc == -EINVAL || rc == -E2BIG);
	if (rc < 0)
		return 0;
	entries_write(entries, count, &again);
	REQUIRE(entries_read(again.s, &arena, &same, &same_count, NULL) == 0);
	REQUIRE(count == same_count);
	for (uint32_t i = 0; i < count; i++)
		REQUIRE(entry_equal(&entries[i], &same[i]));
	add_up(entries, count);
	return 0;
}
