/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of locks: their text, and what fits beside them. */
#include "test.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "engine/mig.h"
#include "scheduler/entries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HEAD "{\"pod\":\"u1\",\"ns\":\"ml\",\"name\":\"a\",\"rv\":\"7\",\"attempt\":"
#define HOLD "{\"uuid\":\"GPU-1\",\"coreMilli\":500,\"memoryMiB\":100}"
#define ONE  HEAD "3,\"gpus\":[" HOLD "]}"

static int read_text(const char *text, struct arena *arena, struct lock_entry **entries,
		     uint32_t *count, struct err *err)
{
	arena_init(arena, 1 << 20);
	return entries_read(text, arena, entries, count, err);
}

TEST(what_is_read_is_written_back_the_same)
{
	static const char *const texts[] = {
		"[]",
		"[" ONE "]",
		"[" HEAD "4294967295,\"gang\":{\"name\":\"train\",\"members\":4},\"gpus\":[" HOLD
		",{\"uuid\":\"3\",\"mig\":{\"profile\":\"1g.10gb\",\"start\":4}}]}]",
		"[" HEAD "1,\"map\":{\"of\":\"0123456789abcdef\",\"index\":0},\"gpus\":[" HOLD
		"]}]",
		"[" ONE ",{\"pod\":\"u2\",\"ns\":\"ml\",\"name\":\"b\",\"rv\":\"8\",\"attempt\":1,"
		"\"gpus\":[{\"uuid\":\"GPU-1\",\"coreMilli\":0,\"memoryMiB\":0}]}]",
	};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct arena arena CLEANUP(arena_done);
		struct strbuf again CLEANUP(strbuf_done) = STRBUF_INIT;
		struct err err = ERR_INIT;
		struct lock_entry *entries;
		uint32_t count;
		CHECKF(read_text(texts[i], &arena, &entries, &count, &err) == 0, "%s", err.text);
		entries_write(entries, count, &again);
		CHECK_STR(again.s, texts[i]);
		for (uint32_t k = 0; k < count; k++)
			CHECK(entry_equal(&entries[k], &entries[k]));
	}
}

TEST(malformed_entries_are_refused_with_a_sentence)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "entries" },
		{ "{}", "no list" },
		{ "[1]", "\"pod\"" },
		{ "[{\"ns\":\"ml\"}]", "\"pod\"" },
		{ "[" HEAD "0,\"gpus\":[" HOLD "]}]", "\"attempt\"" },
		{ "[" HEAD "4294967296,\"gpus\":[" HOLD "]}]", "\"attempt\"" },
		{ "[" HEAD "1.5,\"gpus\":[" HOLD "]}]", "\"attempt\"" },
		{ "[" HEAD "1,\"gpus\":[]}]", "\"gpus\"" },
		{ "[" HEAD "1}]", "\"gpus\"" },
		{ "[" HEAD "1,\"gpus\":[{\"uuid\":\"\",\"coreMilli\":1,\"memoryMiB\":1}]}]",
		  "\"uuid\"" },
		{ "[" HEAD "1,\"gpus\":[{\"uuid\":\"x\",\"coreMilli\":1001,\"memoryMiB\":1}]}]",
		  "\"coreMilli\"" },
		{ "[" HEAD "1,\"gpus\":[{\"uuid\":\"x\",\"coreMilli\":1,\"memoryMiB\":-1}]}]",
		  "\"memoryMiB\"" },
		{ "[" HEAD
		  "1,\"gpus\":[{\"uuid\":\"x\",\"mig\":{\"profile\":\"1g\",\"start\":8}}]}]",
		  "\"start\"" },
		{ "[" HEAD "1,\"gang\":{\"name\":\"g\"},\"gpus\":[" HOLD "]}]", "\"members\"" },
		{ "[" HEAD "1,\"map\":{\"of\":\"\",\"index\":0},\"gpus\":[" HOLD "]}]", "\"of\"" },
		{ "[" HEAD "1,\"map\":{\"of\":\"0\",\"index\":-1},\"gpus\":[" HOLD "]}]",
		  "\"index\"" },
		{ "[" ONE "," ONE "]", "two entries" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena arena CLEANUP(arena_done);
		struct err err = ERR_INIT;
		struct lock_entry *entries;
		uint32_t count;
		CHECK_INT(read_text(cases[i].text, &arena, &entries, &count, &err), -EINVAL);
		CHECKF(strstr(err.text, cases[i].says), "%s", err.text);
	}
}

TEST(too_many_entries_or_holds_are_not_read)
{
	struct strbuf text CLEANUP(strbuf_done) = STRBUF_INIT;
	struct arena arena CLEANUP(arena_done);
	struct lock_entry *entries;
	uint32_t count;
	strbuf_puts(&text, "[" HEAD "1,\"gpus\":[");
	for (unsigned i = 0; i <= ENTRY_HOLDS_MAX; i++)
		strbuf_puts(&text, i ? "," HOLD : HOLD);
	strbuf_puts(&text, "]}]");
	CHECK_INT(read_text(text.s, &arena, &entries, &count, NULL), -EINVAL);
	strbuf_reset(&text);
	for (unsigned i = 0; i <= ENTRIES_MAX; i++)
		strbuf_puts(&text, i ? ",1" : "[1");
	strbuf_puts(&text, "]");
	CHECK_INT(entries_read(text.s, &arena, &entries, &count, NULL), -E2BIG);
	arena_done(&arena);
	arena_init(&arena, 64);
	CHECK_INT(entries_read("[" ONE "]", &arena, &entries, &count, NULL), -ENOMEM);
}

/* The cards of a node: GPU-1 has 1000 MiB, GPU-m can be sliced, GPU-u is known by name. */
static bool card(void *context, const char *uuid, struct lock_card *ret)
{
	(void)context;
	*ret = (struct lock_card){ .mem_mib = strcmp(uuid, "GPU-u") == 0 ? 0 : 1000 };
	if (strcmp(uuid, "GPU-m") == 0)
		ret->mig = &mig_a100_40gb;
	return strcmp(uuid, "GPU-x") != 0;
}

/* "GPU-1 500/100" or "GPU-m 1g.5gb@4", several with commas between. */
static struct lock_entry entry_of(const char *uid, const char *text, struct lock_hold *holds,
				  char *names)
{
	struct lock_entry entry = { .uid = uid,
				    .namespace = "ml",
				    .name = uid,
				    .version = "1",
				    .attempt = 1,
				    .holds = holds };
	for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',') {
		struct lock_hold *hold = &holds[entry.holds_count];
		char *uuid = names + 64 * (size_t)entry.holds_count, *profile = uuid + 32;
		unsigned core = 0, mem = 0, start = 0;
		*hold = (struct lock_hold){ .uuid = uuid };
		if (sscanf(at, "%31s %u/%u", uuid, &core, &mem) == 3) {
			hold->core_milli = (uint16_t)core;
			hold->mem_mib = mem;
		} else {
			CHECK_INT(sscanf(at, "%31s %31[^@]@%u", uuid, profile, &start), 3);
			hold->mig_profile = profile;
			hold->mig_start = (uint8_t)start;
		}
		entry.holds_count++;
	}
	return entry;
}

TEST(holds_add_up_card_by_card)
{
	static const struct {
		const char *has, *also, *wants;
		int rc;
		const char *says;
	} cases[] = {
		{ "", "", "GPU-1 1000/1000", 0, "" },
		{ "GPU-1 1000/1000", "", "GPU-1 1000/1000", -ENOSPC, "ml/a" },
		{ "GPU-1 1000/1000", "", "GPU-2 1000/1000", 0, "" },
		{ "GPU-1 1000/1000", "", "GPU-1 0/0", -ENOSPC, "whole" },
		{ "GPU-1 0/0", "", "GPU-1 1000/1000", -ENOSPC, "whole" },
		{ "GPU-1 1000/400", "", "GPU-1 0/600", 0, "" },
		{ "GPU-1 1000/400", "", "GPU-1 1/100", -ENOSPC, "core" },
		{ "GPU-1 1000/0", "", "GPU-1 0/1", -ENOSPC, "whole" },
		{ "GPU-1 500/500", "", "GPU-1 500/500", 0, "" },
		{ "GPU-1 500/500", "", "GPU-1 501/100", -ENOSPC, "core" },
		{ "GPU-1 500/500", "", "GPU-1 100/501", -ENOSPC, "memory" },
		{ "GPU-1 300/300", "GPU-1 300/300", "GPU-1 400/400", 0, "" },
		{ "GPU-1 300/300", "GPU-1 300/300", "GPU-1 401/400", -ENOSPC, "ml/b" },
		{ "", "", "GPU-1 600/0,GPU-1 401/0", -ENOSPC, "core" },
		{ "GPU-1 0/0", "", "GPU-1 0/0", 0, "" },
		{ "GPU-2 1000/1000", "", "GPU-1 1000/1000,GPU-2 1/1", -ENOSPC, "GPU-2" },
		/* Unknown memory is no limit, but all of the core is all of the card. */
		{ "GPU-u 500/4000000000", "", "GPU-u 500/4000000000", 0, "" },
		{ "GPU-u 1000/5", "", "GPU-u 0/1", -ENOSPC, "whole" },
		{ "GPU-x 500/1", "", "GPU-x 500/1", 0, "" },
		/* Slices. */
		{ "", "", "GPU-m 1g.5gb@4", 0, "" },
		{ "GPU-m 1g.5gb@4", "", "GPU-m 1g.5gb@4", -ENOSPC, "slice" },
		{ "GPU-m 1g.5gb@4", "", "GPU-m 1g.5gb@5", 0, "" },
		{ "GPU-m 3g.20gb@4", "", "GPU-m 1g.5gb@5", -ENOSPC, "slice" },
		{ "GPU-m 3g.20gb@4", "", "GPU-m 4g.20gb@0", 0, "" },
		{ "GPU-m 1g.5gb@4", "", "GPU-m 10/10", -ENOSPC, "at once" },
		{ "GPU-m 10/10", "", "GPU-m 1g.5gb@0", -ENOSPC, "at once" },
		{ "", "", "GPU-m 9g.1gb@0", -ENOSPC, "profile" },
		{ "", "", "GPU-m 3g.20gb@1", -ENOSPC, "slice" },
		{ "", "", "GPU-1 1g.5gb@0", -ENOSPC, "not known to have slices" },
		{ "", "", "GPU-x 1g.5gb@0", -ENOSPC, "not known to have slices" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct lock_hold holds[3][4];
		char names[3][256];
		struct lock_entry entries[2];
		uint32_t count = 0;
		struct err err = ERR_INIT;
		if (*cases[i].has)
			entries[count++] = entry_of("a", cases[i].has, holds[0], names[0]);
		if (*cases[i].also)
			entries[count++] = entry_of("b", cases[i].also, holds[1], names[1]);
		struct lock_entry more = entry_of("c", cases[i].wants, holds[2], names[2]);
		int rc = entries_fit(entries, count, &more, card, NULL, &err);
		CHECKF(rc == cases[i].rc, "%zu: %s + %s: %d %s", i, cases[i].has, cases[i].wants,
		       rc, err.text);
		CHECKF(strstr(err.text, cases[i].says), "%zu: %s", i, err.text);
	}
}

TEST(a_pod_has_one_entry)
{
	struct lock_hold holds[2][4];
	char names[2][256];
	struct err err = ERR_INIT;
	struct lock_entry had = entry_of("a", "GPU-1 1/1", holds[0], names[0]);
	struct lock_entry more = entry_of("a", "GPU-2 1/1", holds[1], names[1]);
	CHECK_INT(entries_fit(&had, 1, &more, card, NULL, &err), -EEXIST);
	CHECK(strstr(err.text, "ml/a"));
}

TEST(an_index_of_a_map_is_given_once)
{
	static const struct {
		const char *map;
		uint32_t index;
		int rc;
	} cases[] = {
		{ "m", 3, -ENOSPC },
		{ "m", 2, 0 },
		{ "n", 3, 0 },
		{ NULL, 3, 0 }, /* its own: it may be the same one that comes again */
	};
	struct lock_hold holds[2][4];
	char names[2][256];
	struct lock_entry had = entry_of("a", "GPU-1 500/1", holds[0], names[0]);
	struct lock_entry more = entry_of("b", "GPU-1 500/1", holds[1], names[1]);

	had.map = "m";
	had.map_index = 3;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;

		more.map = cases[i].map;
		more.map_index = cases[i].index;
		CHECK_INT(entries_fit(&had, 1, &more, card, NULL, &err), cases[i].rc);
		CHECK_STR(err.text, cases[i].rc ? "ml/a has index 3 of its map" : "");
	}
}

TEST(entries_differ_in_any_field)
{
	struct lock_hold holds[4], others[4];
	char names[256], more[256];
	struct lock_entry a = entry_of("a", "GPU-1 1/1,GPU-m 1g.5gb@4", holds, names);
	struct lock_entry changes[10];
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		changes[i] = entry_of("a", "GPU-1 1/1,GPU-m 1g.5gb@4", others, more);
	CHECK(entry_equal(&a, &changes[0]));
	changes[0].uid = "b";
	changes[1].namespace = "b";
	changes[2].name = "b";
	changes[3].version = "b";
	changes[4].attempt = 2;
	changes[5].gang = "b";
	changes[6].holds_count = 1;
	changes[7].gang_members = 1;
	changes[8].map = "b";
	changes[9].map_index = 1;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
		CHECKF(!entry_equal(&a, &changes[i]), "%zu", i);
	struct lock_entry b = entry_of("a", "GPU-1 1/1,GPU-m 1g.5gb@4", others, more);
	others[1].mig_start = 5;
	CHECK(!entry_equal(&a, &b));
}

TEST_MAIN()
