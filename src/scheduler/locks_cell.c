/* SPDX-License-Identifier: Apache-2.0 */
/* locks_cell.c - a Lease as it is on the server.
 *
 * Whatever brings a state of it (the watch, an answer, a GET) goes through cell_apply(): what is
 * there anew, what is no longer, and which of our claims are in. */
#include "scheduler/locks_private.h"

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/num.h"
#include "kube/cache.h"
#include "kube/write.h"
#include "wire/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 253
#define NODE_CUT       220
#define STATE_BYTES    ((size_t)4 << 20) /* of entries, as they are read */

/* The node as it stands in a name, `around` being the bytes beside it. */
static void add_node(struct strbuf *out, const char *node, size_t around)
{
	size_t len = strlen(node), cut = NODE_CUT;

	if (len + around <= NAME_MAX_BYTES) {
		strbuf_puts(out, node);
		return;
	}
	while (cut > 0 && (node[cut - 1] == '.' || node[cut - 1] == '-'))
		cut--;
	strbuf_add(out, node, cut);
	strbuf_addf(out, "-%016" PRIx64, hash_bytes(node, len, 0));
}

int cell_name(enum lock_mode mode, const char *node, uint32_t index, struct strbuf *out)
{
	char tail[16];

	snprintf(tail, sizeof(tail), "-%" PRIu32, index);
	if (mode == LOCKS_BY_NODE) {
		strbuf_puts(out, "gpus-");
		add_node(out, node, strlen("gpus-"));
	} else {
		strbuf_puts(out, "gpu-");
		add_node(out, node, strlen("gpu-") + strlen(tail));
		strbuf_puts(out, tail);
	}
	return out->failed ? -ENOMEM : 0;
}

static struct cell *cell_new(struct locks *locks, const char *name, const char *node)
{
	struct cell *cell = calloc(1, sizeof(*cell));

	if (!cell)
		return NULL;
	cell->locks = locks;
	cell->name = strdup(name);
	cell->node = strdup(node);
	link_init(&cell->waiting);
	link_init(&cell->sent);
	link_init(&cell->dirty);
	link_init(&cell->retry);
	link_init(&cell->vacant);
	if (!cell->name || !cell->node ||
	    map_put(&locks->cells, cell->name, strlen(cell->name), cell) < 0) {
		free(cell->name);
		free(cell->node);
		free(cell);
		return NULL;
	}
	return cell;
}

static void free_claims(struct link *ring)
{
	while (!link_is_empty(ring))
		claim_free(LINK_OF(ring->next, struct claim, link));
}

void cell_free(struct cell *cell)
{
	if (!cell)
		return;
	if (cell->writing) {
		kube_write_cancel(cell->writing);
		cell->locks->writes--;
	}
	free_claims(&cell->waiting);
	free_claims(&cell->sent);
	for (size_t i = 0; i < cell->records.len; i++)
		record_free(cell->records.items[i]);
	vec_done(&cell->records);
	link_leave(&cell->dirty);
	link_leave(&cell->retry);
	link_leave(&cell->vacant);
	map_del(&cell->locks->cells, cell->name, strlen(cell->name));
	free(cell->name);
	free(cell->node);
	free(cell->card);
	free(cell->card_wanted);
	free(cell->unreadable);
	free(cell);
}

bool cell_is_over(const struct cell *cell)
{
	const struct locks *locks = cell->locks;

	return !cell->exists && !cell->claims && !cell->writing && !cell->refresh &&
	       cell->records.len == 0 && !cell->card_wanted &&
	       !kube_cache_get(locks->cache, locks->namespace, cell->name);
}

struct cell *cell_find(struct locks *locks, const char *node, uint32_t index)
{
	struct strbuf name CLEANUP(strbuf_done) = STRBUF_INIT;

	if (cell_name(locks->options.mode, node, index, &name) < 0)
		return NULL;
	return map_get(&locks->cells, name.s, name.len);
}

struct cell *cell_get(struct locks *locks, const char *node, uint32_t index)
{
	struct strbuf name CLEANUP(strbuf_done) = STRBUF_INIT;

	if (cell_name(locks->options.mode, node, index, &name) < 0)
		return NULL;
	struct cell *cell = map_get(&locks->cells, name.s, name.len);
	if (!cell)
		cell = cell_new(locks, name.s, node);
	if (cell)
		cell->index = index;
	return cell;
}

bool version_newer(const char *a, const char *b)
{
	size_t length_a = strlen(a), length_b = strlen(b);

	return length_a != length_b ? length_a > length_b : strcmp(a, b) > 0;
}

static void complain(struct cell *cell, const char *why)
{
	free(cell->unreadable);
	cell->unreadable = strdup(why);
	log_error(cell->locks->options.log, "lock cannot be read; nothing is placed there",
		  LOG_STR("lease", cell->name), LOG_STR("error", why));
}

static bool has_finalizer(const struct json *lease)
{
	struct json_iter items = json_items(lease, "metadata", "finalizers");

	for (const struct json *item; (item = json_next(&items));) {
		const char *text = json_str(item);

		if (text && strcmp(text, LOCKS_FINALIZER) == 0)
			return true;
	}
	return false;
}

static void set_card(struct cell *cell, const char *card, bool by_watch)
{
	bool same = card ? cell->card && strcmp(card, cell->card) == 0 : !cell->card;

	if (same)
		return;
	free(cell->card);
	cell->card = card ? strdup(card) : NULL;
	cell->verify = !by_watch;
}

static int set_identity(struct cell *cell, const struct json *lease, const char *version,
			bool by_watch)
{
	const char *uid = json_str(lease, "metadata", "uid");
	const char *node = json_str(lease, "metadata", "annotations", KEY_LOCK_NODE);

	if (!version)
		version = json_str(lease, "metadata", "resourceVersion");
	if (!uid || !version || strlen(uid) > KUBE_UID_MAX || strlen(version) > KUBE_VERSION_MAX) {
		complain(cell, "it has no uid or no version");
		return -EINVAL;
	}
	cell->exists = true;
	cell->deleting = json_get(lease, "metadata", "deletionTimestamp") != NULL;
	cell->has_finalizer = has_finalizer(lease);
	snprintf(cell->uid, sizeof(cell->uid), "%s", uid);
	snprintf(cell->version, sizeof(cell->version), "%s", version);
	set_card(cell, json_str(lease, "metadata", "annotations", KEY_LOCK_GPU), by_watch);
	if (cell->card && cell->card_wanted && strcmp(cell->card, cell->card_wanted) == 0) {
		free(cell->card_wanted);
		cell->card_wanted = NULL;
	}
	if (node && strcmp(node, cell->node) != 0) {
		complain(cell, "it is of another node");
		return -EINVAL;
	}
	return 0;
}

/* Entries of pods that are bound come back, whatever else is there by then. */
static void rescue(struct cell *cell)
{
	uint32_t lost = 0;

	for (size_t i = 0; i < cell->records.len; i++) {
		struct record *old = cell->records.items[i];
		struct claim *claim = NULL;

		if (!old->dead && (old->bound || record_pod(old) == LOCK_POD_BOUND))
			claim = claim_new(cell, &old->entry, old->entry.holds,
					  old->entry.holds_count);
		if (!claim)
			continue;
		lost++;
		claim->required = claim->rescued = true;
		claim_queue(claim);
	}
	if (lost)
		log_warn(cell->locks->options.log,
			 "a lease with locks is gone; those of bound pods are written again",
			 LOG_STR("lease", cell->name), LOG_U64("locks", lost));
}

void cell_settle(struct cell *cell)
{
	if (cell->exists)
		return;
	for (size_t i = 0; i < cell->records.len; i++)
		if (!cell->records.items[i]->dead && !cell->records.items[i]->bound)
			return;
	rescue(cell);
	cell_set_entries(cell, NULL, 0);
	cell->must_drop = false;
}

/* A Lease that went with entries in it, as we know them: another has dropped the last of them
 * while it was being deleted, or somebody took the finalizer off.  Each of them counts until
 * the server has said what became of its pod; who waits is fenced. */
static void set_gone(struct cell *cell)
{
	cell->exists = cell->deleting = cell->has_finalizer = cell->closed = false;
	cell->uid[0] = '\0';
	set_card(cell, NULL, true);
	for (size_t i = 0; i < cell->records.len; i++) {
		cell->records.items[i]->bound = false;
		fence_verify(cell->records.items[i]);
	}
	cell_touch(cell);
}

static void set_state(struct cell *cell, const struct json *lease, const char *version,
		      bool by_watch)
{
	struct arena arena CLEANUP(arena_done);
	struct err err = ERR_INIT;
	struct lock_entry *entries = NULL;
	uint32_t count = 0;
	const char *text = json_str(lease, "metadata", "annotations", KEY_LOCK_ENTRIES);

	arena_init(&arena, STATE_BYTES);
	if (!cell->exists)
		rescue(cell);
	free(cell->unreadable);
	cell->unreadable = NULL;
	if (set_identity(cell, lease, version, by_watch) < 0)
		return;
	cell->closed = cell->deleting && !text;
	if (text && entries_read(text, &arena, &entries, &count, &err) < 0) {
		complain(cell, err.text);
		return;
	}
	cell_set_entries(cell, entries, count);
}

static void look_whether_vacant(struct cell *cell)
{
	if (!cell->exists || cell->records.len) {
		link_leave(&cell->vacant);
		cell->homeless = false;
	} else if (link_is_empty(&cell->vacant)) {
		collect_vacant(cell);
	}
}

void cell_apply(struct cell *cell, const struct json *lease, const char *version, bool by_watch)
{
	bool over = lease && json_get(lease, "metadata", "deletionTimestamp") &&
		    json_len(lease, "metadata", "finalizers") == 0;

	if (lease)
		set_state(cell, lease, version, by_watch);
	/* An answer to the write that took the finalizer off: it is gone with that. */
	if (!lease || over)
		set_gone(cell);
	look_whether_vacant(cell);
	if (!link_is_empty(&cell->waiting))
		cell_touch(cell);
	/* Somebody wants it gone, and nothing is in it. */
	if (cell->deleting && cell->records.len == 0 && cell->locks->active) {
		cell->must_drop = true;
		cell_touch(cell);
	}
	if (cell->locks->options.mode == LOCKS_BY_GPU)
		cards_look(cell->locks);
}

/* The Leases that are locks say of which node. */
static struct cell *cell_of(struct locks *locks, const char *name, const struct json *object)
{
	struct cell *cell = map_get(&locks->cells, name, strlen(name));
	const char *node = json_str(object, "metadata", "annotations", KEY_LOCK_NODE);

	if (cell || !node)
		return cell;
	const char *dash = strrchr(name, '-');
	uint32_t index = 0;
	if (locks->options.mode == LOCKS_BY_GPU &&
	    (!dash || parse_u32(dash + 1, strlen(dash + 1), &index) < 0))
		return NULL;
	struct strbuf own CLEANUP(strbuf_done) = STRBUF_INIT;
	if (cell_name(locks->options.mode, node, index, &own) < 0 || strcmp(own.s, name) != 0)
		return NULL;
	return cell_get(locks, node, index);
}

void cell_watched(struct locks *locks, const struct kube_object *before,
		  const struct kube_object *now, const struct json *object)
{
	struct cell *cell = cell_of(locks, (now ? now : before)->name, object);

	if (!cell)
		return;
	if (cell->writing) {
		cell->skipped = true;
		return;
	}
	if (now && version_newer(now->version, cell->version))
		cell_apply(cell, object, now->version, true);
	else if (!now && cell->exists && strcmp(before->uid, cell->uid) == 0)
		cell_apply(cell, NULL, NULL, true);
	if (cell_is_over(cell))
		cell_free(cell);
}

void cell_catch_up(struct cell *cell)
{
	struct locks *locks = cell->locks;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;

	if (!cell->skipped)
		return;
	cell->skipped = false;
	const struct kube_object *now = kube_cache_get(locks->cache, locks->namespace, cell->name);
	if (!now) {
		/* Gone, or the watch has not come to what we made: the server knows. */
		cell->refresh = cell->exists;
		cell_touch(cell);
		return;
	}
	if (version_newer(now->version, cell->version) && kube_object_parse(now, &doc) == 0)
		cell_apply(cell, json_root(doc), now->version, true);
}
