/* SPDX-License-Identifier: Apache-2.0 */
/* locks_cards.c - the Leases of a node with --locks=gpu.
 *
 * A card's index may change at a reboot, so a Lease says which card it is about, and two
 * schedulers of which one is behind could lock one card in two Leases.  Hence nothing is taken
 * on a node before every index of it has its Lease, about the card that we know there; an
 * index that we know no card of has none, or one about NO_CARD.  After a change that the
 * watch has not brought, all Leases of the node are read again: it has to be a state of all of
 * them that is no older than that change. */
#include "scheduler/locks_private.h"

#include "base/attr.h"

#include <stdlib.h>
#include <string.h>

#define NO_CARD "none"

/* NULL: as many as there are, none has to be there. */
static const char *card_at(const struct locks *locks, const char *node, uint32_t index,
			   const struct cell *cell)
{
	const struct locks_options *options = &locks->options;
	const char *uuid = options->card_at(options->context, node, index);

	if (!uuid && cell && cell->exists)
		return NO_CARD;
	return uuid;
}

static bool is_empty(const struct cell *cell)
{
	for (size_t i = 0; i < cell->records.len; i++)
		if (!record_can_go(cell->records.items[i]))
			return false;
	return true;
}

enum readiness { CARD_READY, CARD_COMES, CARD_NEVER };

static enum readiness look_at(struct lock *lock, uint32_t index)
{
	struct cell *cell = cell_find(lock->locks, lock->node, index);
	const char *uuid = card_at(lock->locks, lock->node, index, cell);

	if (!uuid)
		return CARD_READY;
	if (cell && cell->exists && cell->card && strcmp(cell->card, uuid) == 0) {
		free(cell->card_wanted);
		cell->card_wanted = NULL;
		return cell->refresh ? CARD_COMES : CARD_READY;
	}
	if (cell && !is_empty(cell))
		return CARD_NEVER;
	if (!cell)
		cell = cell_get(lock->locks, lock->node, index);
	char *wanted = cell ? strdup(uuid) : NULL;
	if (!wanted || cell->unreadable) {
		free(wanted);
		return CARD_NEVER;
	}
	free(cell->card_wanted);
	cell->card_wanted = wanted;
	cell_touch(cell);
	return CARD_COMES;
}

static bool can_be_about(const struct cell *cell, const char *uuid)
{
	return (cell->exists && cell->card && strcmp(cell->card, uuid) == 0) || is_empty(cell);
}

bool locks_can_take(struct locks *locks, const char *node)
{
	bool by_gpu = locks->options.mode == LOCKS_BY_GPU;

	for (uint32_t i = 0; i < (by_gpu ? LOCKS_CARDS_MAX : 1); i++) {
		const struct cell *cell = cell_find(locks, node, i);
		const char *uuid = by_gpu ? card_at(locks, node, i, cell) : NULL;

		if (!cell || (by_gpu && !uuid))
			continue;
		if (!cell_is_writable(cell) || cell->full || (by_gpu && !can_be_about(cell, uuid)))
			return false;
	}
	return true;
}

/* Whether one has changed otherwise than by the watch; then all are to be read. */
static bool needs_look(const struct lock *lock)
{
	bool verify = false;

	for (uint32_t i = 0; i < LOCKS_CARDS_MAX; i++) {
		struct cell *cell = cell_find(lock->locks, lock->node, i);

		verify = verify || (cell && cell->verify);
	}
	for (uint32_t i = 0; verify && i < LOCKS_CARDS_MAX; i++) {
		struct cell *cell = cell_find(lock->locks, lock->node, i);

		if (!cell)
			continue;
		cell->verify = false;
		cell->refresh = true;
		cell_touch(cell);
	}
	return verify;
}

bool cards_prepare(struct lock *lock)
{
	bool ready = true;

	if (!lock->locks->ready) {
		lock_finish(lock, LOCK_REFUSED, locks_why_not(lock->locks));
		return false;
	}
	for (uint32_t i = 0; i < LOCKS_CARDS_MAX; i++) {
		enum readiness readiness = look_at(lock, i);

		if (readiness == CARD_NEVER) {
			lock_finish(lock, LOCK_CLOSED,
				    "a GPU of the node has another index now, and "
				    "its lease holds something");
			return false;
		}
		ready = ready && readiness == CARD_READY;
	}
	return ready && !needs_look(lock);
}

void cards_look(struct locks *locks)
{
	struct link *next;

	for (struct link *at = locks->preparing.next; at != &locks->preparing; at = next) {
		struct lock *lock = LINK_OF(at, struct lock, link);

		next = at->next;
		if (!cards_prepare(lock))
			continue;
		lock->preparing = false;
		link_leave(&lock->link);
		claim_queue(lock->claims[0]);
	}
}
