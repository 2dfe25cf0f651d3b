/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/entries.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define UID_MAX	    128
#define NAME_MAX_B  253
#define UUID_MAX    128
#define PROFILE_MAX 32
#define MAP_MAX	    64
#define SLICES_MAX  8
#define CORE_WHOLE  1000

static const struct json_limits limits = { .max_bytes = (size_t)1 << 20, .max_depth = 8 };

static int read_str(const struct json *object, const char *key, size_t max, struct arena *arena,
		    const char **ret, struct err *err)
{
	const char *text = json_str(object, key);
	size_t len = text ? strlen(text) : 0;

	if (len == 0 || len > max)
		return err_set(err, EINVAL, "\"%s\" is no text of 1 to %zu characters", key, max);
	*ret = arena_strndup(arena, text, len);
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int read_number(const struct json *object, const char *key, int64_t min, int64_t max,
		       int64_t *ret, struct err *err)
{
	if (json_i64(object, ret, key) < 0 || *ret < min || *ret > max)
		return err_set(err, EINVAL, "\"%s\" is no number from %" PRId64 " to %" PRId64,
			       key, min, max);
	return 0;
}

static int read_slice(const struct json *mig, struct arena *arena, struct lock_hold *hold,
		      struct err *err)
{
	int64_t start = 0;
	int rc = read_str(mig, "profile", PROFILE_MAX, arena, &hold->mig_profile, err);

	if (rc == 0)
		rc = read_number(mig, "start", 0, SLICES_MAX - 1, &start, err);
	if (rc == 0)
		hold->mig_start = (uint8_t)start;
	return rc;
}

static int read_share(const struct json *value, struct lock_hold *hold, struct err *err)
{
	int64_t core = 0, mem = 0;
	int rc = read_number(value, "coreMilli", 0, CORE_WHOLE, &core, err);

	if (rc == 0)
		rc = read_number(value, "memoryMiB", 0, UINT32_MAX, &mem, err);
	if (rc < 0)
		return rc;
	hold->core_milli = (uint16_t)core;
	hold->mem_mib = (uint32_t)mem;
	return 0;
}

static int read_hold(const struct json *value, struct arena *arena, struct lock_hold *hold,
		     struct err *err)
{
	int rc = read_str(value, "uuid", UUID_MAX, arena, &hold->uuid, err);

	if (rc < 0)
		return rc;
	return json_get(value, "mig") ? read_slice(json_get(value, "mig"), arena, hold, err)
				      : read_share(value, hold, err);
}

static int read_holds(const struct json *value, struct arena *arena, struct lock_entry *entry,
		      struct err *err)
{
	size_t count = json_len(value, "gpus");
	struct json_iter items = json_items(value, "gpus");
	int rc = 0;

	if (json_type(value, "gpus") != JSON_ARRAY || count == 0 || count > ENTRY_HOLDS_MAX)
		return err_set(err, EINVAL, "\"gpus\" is no list of 1 to %d", ENTRY_HOLDS_MAX);
	struct lock_hold *holds = arena_array(arena, count, sizeof(*holds));
	if (!holds)
		return err_set(err, ENOMEM, "out of memory");
	entry->holds = holds;
	entry->holds_count = (uint32_t)count;
	for (const struct json *item; rc == 0 && (item = json_next(&items));)
		rc = read_hold(item, arena, holds++, err);
	return rc;
}

static int read_gang(const struct json *gang, struct arena *arena, struct lock_entry *entry,
		     struct err *err)
{
	int64_t members = 0;
	int rc = read_str(gang, "name", NAME_MAX_B, arena, &entry->gang, err);

	if (rc == 0)
		rc = read_number(gang, "members", 1, UINT32_MAX, &members, err);
	if (rc == 0)
		entry->gang_members = (uint32_t)members;
	return rc;
}

static int read_map(const struct json *map, struct arena *arena, struct lock_entry *entry,
		    struct err *err)
{
	int64_t index = 0;
	int rc = read_str(map, "of", MAP_MAX, arena, &entry->map, err);

	if (rc == 0)
		rc = read_number(map, "index", 0, UINT32_MAX, &index, err);
	if (rc == 0)
		entry->map_index = (uint32_t)index;
	return rc;
}

static int read_entry(const struct json *value, struct arena *arena, struct lock_entry *entry,
		      struct err *err)
{
	int64_t attempt = 0;
	int rc = read_str(value, "pod", UID_MAX, arena, &entry->uid, err);

	if (rc == 0)
		rc = read_str(value, "ns", NAME_MAX_B, arena, &entry->namespace, err);
	if (rc == 0)
		rc = read_str(value, "name", NAME_MAX_B, arena, &entry->name, err);
	if (rc == 0)
		rc = read_str(value, "rv", UID_MAX, arena, &entry->version, err);
	if (rc == 0)
		rc = read_number(value, "attempt", 1, UINT32_MAX, &attempt, err);
	if (rc == 0 && json_get(value, "gang"))
		rc = read_gang(json_get(value, "gang"), arena, entry, err);
	if (rc == 0 && json_get(value, "map"))
		rc = read_map(json_get(value, "map"), arena, entry, err);
	if (rc == 0)
		rc = read_holds(value, arena, entry, err);
	if (rc == 0)
		entry->attempt = (uint32_t)attempt;
	return rc;
}

/* One pod has one entry: who would say which of two counts? */
static int check_once(const struct lock_entry *entries, uint32_t count, struct err *err)
{
	struct map seen CLEANUP(map_done) = { 0 };

	if (map_reserve(&seen, count) < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		const char *uid = entries[i].uid;

		if (map_get(&seen, uid, strlen(uid)))
			return err_set(err, EINVAL, "pod %s has two entries", uid);
		(void)map_put(&seen, uid, strlen(uid), (void *)uid);
	}
	return 0;
}

int entries_read(const char *text, struct arena *arena, struct lock_entry **ret, uint32_t *count,
		 struct err *err)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	int rc = json_parse("entries", text, strlen(text), &limits, &doc, err);

	if (rc < 0)
		return rc;
	size_t len = json_len(json_root(doc));
	if (json_type(json_root(doc)) != JSON_ARRAY)
		return err_set(err, EINVAL, "the entries are no list");
	if (len > ENTRIES_MAX)
		return err_set(err, E2BIG, "%zu entries, at most %d are read", len, ENTRIES_MAX);
	struct lock_entry *entries = arena_array(arena, len, sizeof(*entries));
	if (!entries)
		return err_set(err, ENOMEM, "out of memory");
	struct json_iter items = json_items(json_root(doc));
	for (uint32_t i = 0; i < len; i++) {
		rc = read_entry(json_next(&items), arena, &entries[i], err);
		if (rc < 0) {
			err_prefix(err, "entry %" PRIu32, i);
			return rc;
		}
	}
	rc = check_once(entries, (uint32_t)len, err);
	if (rc < 0)
		return rc;
	*ret = entries;
	*count = (uint32_t)len;
	return 0;
}

static void put_str(struct strbuf *out, const char *key, const char *value)
{
	strbuf_puts(out, key);
	strbuf_add_json(out, value, strlen(value));
}

static void put_hold(struct strbuf *out, const struct lock_hold *hold)
{
	put_str(out, "{\"uuid\":", hold->uuid);
	if (hold->mig_profile) {
		put_str(out, ",\"mig\":{\"profile\":", hold->mig_profile);
		strbuf_addf(out, ",\"start\":%u}}", hold->mig_start);
	} else {
		strbuf_addf(out, ",\"coreMilli\":%u,\"memoryMiB\":%" PRIu32 "}", hold->core_milli,
			    hold->mem_mib);
	}
}

void entry_write(const struct lock_entry *entry, struct strbuf *out)
{
	put_str(out, "{\"pod\":", entry->uid);
	put_str(out, ",\"ns\":", entry->namespace);
	put_str(out, ",\"name\":", entry->name);
	put_str(out, ",\"rv\":", entry->version);
	strbuf_addf(out, ",\"attempt\":%" PRIu32, entry->attempt);
	if (entry->gang) {
		put_str(out, ",\"gang\":{\"name\":", entry->gang);
		strbuf_addf(out, ",\"members\":%" PRIu32 "}", entry->gang_members);
	}
	if (entry->map) {
		put_str(out, ",\"map\":{\"of\":", entry->map);
		strbuf_addf(out, ",\"index\":%" PRIu32 "}", entry->map_index);
	}
	strbuf_puts(out, ",\"gpus\":[");
	for (uint32_t i = 0; i < entry->holds_count; i++) {
		strbuf_puts(out, i ? "," : "");
		put_hold(out, &entry->holds[i]);
	}
	strbuf_puts(out, "]}");
}

void entries_write(const struct lock_entry *entries, uint32_t count, struct strbuf *out)
{
	strbuf_putc(out, '[');
	for (uint32_t i = 0; i < count; i++) {
		strbuf_puts(out, i ? "," : "");
		entry_write(&entries[i], out);
	}
	strbuf_putc(out, ']');
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool hold_equal(const struct lock_hold *a, const struct lock_hold *b)
{
	return same(a->uuid, b->uuid) && a->core_milli == b->core_milli &&
	       a->mem_mib == b->mem_mib && same(a->mig_profile, b->mig_profile) &&
	       a->mig_start == b->mig_start;
}

bool entry_equal(const struct lock_entry *a, const struct lock_entry *b)
{
	if (a->attempt != b->attempt || a->holds_count != b->holds_count ||
	    a->gang_members != b->gang_members || a->map_index != b->map_index ||
	    !same(a->uid, b->uid) || !same(a->namespace, b->namespace) ||
	    !same(a->name, b->name) || !same(a->version, b->version) || !same(a->gang, b->gang) ||
	    !same(a->map, b->map))
		return false;
	for (uint32_t i = 0; i < a->holds_count; i++)
		if (!hold_equal(&a->holds[i], &b->holds[i]))
			return false;
	return true;
}
