/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/locks.h"
#include "scheduler/locks_private.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/write.h"
#include "wire/metrics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t locks_now_ms(const struct locks *locks)
{
	return clock_monotonic_ms(locks->options.clock);
}

bool locks_card(void *context, const char *uuid, struct lock_card *ret)
{
	const struct cell *cell = context;
	const struct locks_options *options = &cell->locks->options;
	uint32_t index;

	return options->card(options->context, cell->node, uuid, ret, &index);
}

void claim_free(struct claim *claim)
{
	if (!claim)
		return;
	claim->cell->claims--;
	link_leave(&claim->link);
	if (claim->asking) {
		kube_write_cancel(claim->asking);
		claim->cell->locks->writes--;
	}
	if (claim->state == CLAIM_IN && claim->record)
		claim->record->claim = NULL;
	else
		record_free(claim->record);
	free(claim);
}

/* With --locks=gpu a Lease that is not there yet is about the card that it is made for. */
void claim_queue(struct claim *claim)
{
	struct cell *cell = claim->cell;
	bool by_gpu = cell->locks->options.mode == LOCKS_BY_GPU;

	claim->state = CLAIM_WAITING;
	if (claim->required)
		link_prepend(&cell->waiting, &claim->link);
	else
		link_append(&cell->waiting, &claim->link);
	if (by_gpu && claim->required && !cell->card && !cell->card_wanted)
		cell->card_wanted = strdup(claim->record->entry.holds[0].uuid);
	cell_touch(cell);
}

static void lock_free(struct lock *lock)
{
	link_leave(&lock->link);
	link_leave(&lock->all);
	free(lock->node);
	free(lock->why);
	free(lock);
}

void lock_discard(struct lock *lock)
{
	for (uint32_t i = 0; i < lock->count; i++)
		claim_free(lock->claims[i]);
	lock_free(lock);
}

/* The entry is in its Lease and nobody wants it there. */
static void give_up(struct record *record)
{
	record->claim = NULL;
	record_set_leaving(record, true);
	if (record->dead) {
		record->cell->must_drop = true;
		cell_touch(record->cell);
		return;
	}
	fence_record(record);
}

static void drop_claim(struct claim *claim)
{
	struct record *record = claim->record;

	claim->lock = NULL;
	if (claim->state == CLAIM_SENT)
		return;
	if (claim->state == CLAIM_IN && record) {
		claim->record = NULL;
		give_up(record);
	}
	claim_free(claim);
}

static void drop_claims(struct lock *lock)
{
	uint32_t count = lock->count;

	lock->count = 0;
	for (uint32_t i = 0; i < count; i++)
		drop_claim(lock->claims[i]);
}

static void observe(const struct lock *lock)
{
	const struct locks *locks = lock->locks;
	uint64_t ns = clock_monotonic_ns(locks->options.clock) - lock->begun_ns;

	if (locks->metrics.latency)
		metric_observe(locks->metrics.latency, METRIC_NO_LABELS, (double)ns / 1e9);
}

void lock_finish(struct lock *lock, enum lock_outcome outcome, const char *why)
{
	if (lock->finished)
		return;
	lock->finished = true;
	lock->outcome = outcome;
	lock->why = strdup(why);
	if (outcome == LOCK_TAKEN)
		observe(lock);
	else
		drop_claims(lock);
	link_append(&lock->locks->finished, &lock->link);
	locks_wake(lock->locks);
}

/* The first Lease by name decides between two that want the same cards: the others follow it
 * together. */
static void lock_go_on(struct lock *lock)
{
	uint32_t in = 0;

	for (uint32_t i = 0; i < lock->count; i++)
		in += lock->claims[i]->state == CLAIM_IN;
	if (in == lock->count)
		lock_finish(lock, LOCK_TAKEN, "");
	for (uint32_t i = 1; i < lock->count; i++)
		if (lock->claims[i]->state == CLAIM_IDLE)
			claim_queue(lock->claims[i]);
}

void claim_in(struct claim *claim)
{
	struct record *record = claim->record;

	link_leave(&claim->link);
	claim->state = CLAIM_IN;
	if (claim->lock) {
		record->claim = claim;
		lock_go_on(claim->lock);
		return;
	}
	claim->record = NULL;
	if (!claim->required)
		give_up(record);
	claim_free(claim);
}

/* Callers may do anything with locks from inside. */
void locks_dispatch(struct locks *locks)
{
	while (!link_is_empty(&locks->finished) && !locks->closing) {
		struct lock *lock = LINK_OF(locks->finished.next, struct lock, link);
		/* NOLINTBEGIN(clang-analyzer-unix.Malloc): one that is freed has left the ring */
		void (*done)(void *context, enum lock_outcome outcome, const char *why) =
			lock->done;
		void *context = lock->context;
		enum lock_outcome outcome = lock->outcome;
		char *why = lock->why;
		/* NOLINTEND(clang-analyzer-unix.Malloc) */

		link_leave(&lock->link);
		lock->why = NULL;
		if (outcome != LOCK_TAKEN)
			lock_free(lock);
		done(context, outcome, why ? why : "");
		free(why);
	}
}

void locks_wake(struct locks *locks)
{
	if (!locks->closing && !uv_is_active((uv_handle_t *)&locks->flush))
		uv_timer_start(&locks->flush, locks_flush, 0, 0);
}

void locks_flush(uv_timer_t *timer)
{
	struct locks *locks = timer->data;

	while (!link_is_empty(&locks->dirty))
		cell_flush(LINK_OF(locks->dirty.next, struct cell, dirty));
	locks_dispatch(locks);
}

struct claim *claim_new(struct cell *cell, const struct lock_entry *entry,
			const struct lock_hold *holds, uint32_t count)
{
	struct claim *claim = cell ? calloc(1, sizeof(*claim)) : NULL;

	if (!claim)
		return NULL;
	claim->record = record_new(entry, holds, count);
	if (!claim->record) {
		free(claim);
		return NULL;
	}
	link_init(&claim->link);
	claim->record->cell = claim->cell = cell;
	cell->claims++;
	return claim;
}

/* The holds on one card; false: another one with that UUID came before. */
static bool holds_of(const struct lock_entry *entry, uint32_t first, struct lock_hold *ret,
		     uint32_t *count)
{
	const char *uuid = entry->holds[first].uuid;

	*count = 0;
	for (uint32_t i = 0; i < entry->holds_count; i++) {
		if (strcmp(entry->holds[i].uuid, uuid) != 0)
			continue;
		if (i < first)
			return false;
		ret[(*count)++] = entry->holds[i];
	}
	return true;
}

typedef VEC(struct claim *) claim_list;

static int claims_by_gpu(struct locks *locks, const char *node, const struct lock_entry *entry,
			 claim_list *ret, struct err *err)
{
	const struct locks_options *options = &locks->options;
	struct lock_hold holds[ENTRY_HOLDS_MAX];

	for (uint32_t i = 0; i < entry->holds_count; i++) {
		const char *uuid = entry->holds[i].uuid;
		struct lock_card card;
		uint32_t count, index;

		if (!holds_of(entry, i, holds, &count))
			continue;
		if (!options->card(options->context, node, uuid, &card, &index) ||
		    index >= LOCKS_CARDS_MAX)
			return err_set(err, EINVAL, "GPU %s of node %s is not known", uuid, node);
		struct claim *claim = claim_new(cell_get(locks, node, index), entry, holds, count);
		if (!claim || vec_push(ret, claim) < 0) {
			claim_free(claim);
			return err_set(err, ENOMEM, "out of memory");
		}
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct claim *const *)a)->cell->name,
		      (*(struct claim *const *)b)->cell->name);
}

static int make_claims(struct locks *locks, const char *node, const struct lock_entry *entry,
		       claim_list *ret, struct err *err)
{
	if (locks->options.mode == LOCKS_BY_NODE) {
		struct claim *claim = claim_new(cell_get(locks, node, 0), entry, entry->holds,
						entry->holds_count);

		if (!claim || vec_push(ret, claim) < 0) {
			claim_free(claim);
			return err_set(err, ENOMEM, "out of memory");
		}
		return 0;
	}
	int rc = claims_by_gpu(locks, node, entry, ret, err);
	for (size_t i = 0; rc < 0 && i < ret->len; i++)
		claim_free(ret->items[i]);
	if (rc == 0 && ret->len > 1)
		qsort(ret->items, ret->len, sizeof(struct claim *), by_name);
	return rc;
}

static int check_entry(const char *node, const struct lock_entry *entry, struct err *err)
{
	const char *const texts[] = { node, entry->uid, entry->namespace, entry->name,
				      entry->version };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!texts[i] || !*texts[i])
			return err_set(err, EINVAL, "a lock without node, pod or version");
	if (!entry->attempt || !entry->holds_count || entry->holds_count > ENTRY_HOLDS_MAX)
		return err_set(err, EINVAL,
			       "%s/%s: a lock of attempt %" PRIu32 " with %" PRIu32 " GPUs",
			       entry->namespace, entry->name, entry->attempt, entry->holds_count);
	return 0;
}

static struct lock *lock_new(struct locks *locks, const char *node, const claim_list *claims)
{
	assert(claims->len > 0); /* an entry holds something */
	struct lock *lock = calloc(1, sizeof(*lock) + claims->len * sizeof(struct claim *));
	if (!lock)
		return NULL;
	link_init(&lock->link);
	link_init(&lock->all);
	lock->node = strdup(node);
	lock->locks = locks;
	lock->begun_ns = clock_monotonic_ns(locks->options.clock);
	lock->count = (uint32_t)claims->len;
	if (!lock->node) {
		free(lock);
		return NULL;
	}
	for (size_t i = 0; i < claims->len; i++) {
		lock->claims[i] = claims->items[i];
		lock->claims[i]->lock = lock;
	}
	return lock;
}

int locks_take(struct locks *locks, const char *node, const struct lock_entry *entry,
	       void (*done)(void *context, enum lock_outcome outcome, const char *why),
	       void *context, struct lock **ret, struct err *err)
{
	claim_list claims CLEANUP(vec_cleanup) = { 0 };
	int rc = check_entry(node, entry, err);

	if (rc == 0 && !locks->ready)
		rc = err_set(err, EAGAIN, "%s", locks_why_not(locks));
	if (rc == 0)
		rc = make_claims(locks, node, entry, &claims, err);
	if (rc < 0)
		return rc;
	struct lock *lock = lock_new(locks, node, &claims);
	if (!lock) {
		for (size_t i = 0; i < claims.len; i++)
			claim_free(claims.items[i]);
		return err_set(err, ENOMEM, "out of memory");
	}
	lock->done = done;
	lock->context = context;
	link_append(&locks->all, &lock->all);
	*ret = lock;
	if (locks->options.mode == LOCKS_BY_NODE) {
		claim_queue(lock->claims[0]);
		return 0;
	}
	lock->preparing = true;
	link_append(&locks->preparing, &lock->link);
	cards_look(locks);
	return 0;
}

void lock_bound(struct lock *lock)
{
	if (!lock)
		return;
	assert(lock->finished && lock->outcome == LOCK_TAKEN);
	for (uint32_t i = 0; i < lock->count; i++) {
		struct record *record = lock->claims[i]->record;

		if (record)
			record->bound = true;
		claim_free(lock->claims[i]);
	}
	lock_free(lock);
}

void locks_release(struct locks *locks, struct lock **list, uint32_t count)
{
	(void)locks;
	for (uint32_t i = 0; i < count; i++) {
		drop_claims(list[i]);
		lock_free(list[i]);
	}
}

/* What the caches say may be of another attempt than the one that is over. */
void locks_pod_over(struct locks *locks, const char *uid)
{
	for (struct record *r = records_of(locks, BY_POD, uid); r; r = r->next[BY_POD]) {
		if (r->dead)
			continue;
		r->bound = false;
		if (record_pod(r) == LOCK_POD_BOUND)
			fence_verify(r);
		else
			collect_dead(r, false);
	}
}

static bool has_entry(const struct locks *locks, const char *node, const struct lock_entry *entry)
{
	for (struct record *r = records_of(locks, BY_POD, entry->uid); r; r = r->next[BY_POD])
		if (r->entry.attempt == entry->attempt && strcmp(r->cell->node, node) == 0)
			return true;
	return false;
}

int locks_require(struct locks *locks, const char *node, const struct lock_entry *entry,
		  struct err *err)
{
	claim_list claims CLEANUP(vec_cleanup) = { 0 };
	int rc = check_entry(node, entry, err);

	if (rc < 0)
		return rc;
	if (locks->options.mode == LOCKS_BY_NODE && has_entry(locks, node, entry))
		return 0;
	rc = make_claims(locks, node, entry, &claims, err);
	for (size_t i = 0; rc == 0 && i < claims.len; i++) {
		claims.items[i]->required = true;
		claim_queue(claims.items[i]);
	}
	return rc;
}

const char *locks_why_not(const struct locks *locks)
{
	if (locks->ready)
		return "";
	return *locks->trouble ? locks->trouble : "the locks of the cluster are not known yet";
}

bool locks_is_troubled(const struct locks *locks)
{
	return !locks->ready && *locks->trouble;
}

bool locks_has(const struct locks *locks, const char *uid)
{
	return records_of(locks, BY_POD, uid) != NULL;
}

bool locks_has_guest(const struct locks *locks, const char *uid)
{
	for (const struct record *r = records_of(locks, BY_POD, uid); r; r = r->next[BY_POD])
		if (!r->mine)
			return true;
	return false;
}

uint32_t locks_in_flight(const struct locks *locks)
{
	return locks->writes;
}

uint32_t locks_doomed(const struct locks *locks)
{
	return locks->doomed;
}
