/* SPDX-License-Identifier: Apache-2.0 */
/* locks_mates.c - of a gang that somebody else has locked in part, the pods without an entry.
 *
 * A gang is locked one by one, each Lease by its own write.  If an entry is taken away because its
 * gang has not been bound for long, the last one may come to be locked a moment later: all of
 * them seem to be, and those that were not fenced would be bound without the one that was.  So
 * before the entry of another's gang goes, the unbound pods of it that had none are fenced, too.
 * They are read first, so that they change after the entry was found dead.  Who has just taken
 * over does not know the pods of a gang yet: until it does nothing goes.
 *
 * There is one round for all entries of a gang that are dead when it begins. */
#include "scheduler/locks_private.h"

#include "base/attr.h"
#include "kube/kind.h"
#include "kube/write.h"
#include "wire/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A pod that is being fenced. */
struct mate {
	struct link link; /* in locks->mates */
	struct locks *locks;
	struct kube_writing *writing; /* or NULL: tried again at due_ms */
	uint64_t due_ms;
	uint32_t attempt; /* of the entry that is to go */
	bool patching;
	char *gang, *namespace, *name, *uid;
	char version[KUBE_VERSION_MAX + 1]; /* that it is changed from */
};

static void mate_free(struct mate *mate)
{
	if (mate->writing) {
		kube_write_cancel(mate->writing);
		mate->locks->writes--;
	}
	link_leave(&mate->link);
	free(mate->gang);
	free(mate->namespace);
	free(mate->name);
	free(mate->uid);
	free(mate);
}

static bool is_pending(const struct locks *locks, const char *gang)
{
	for (const struct link *at = locks->mates.next; at != &locks->mates; at = at->next)
		if (strcmp(LINK_OF(at, struct mate, link)->gang, gang) == 0)
			return true;
	return false;
}

/* With the last of a round the entries may go. */
static void mate_done(struct mate *mate)
{
	struct locks *locks = mate->locks;
	struct record *first = records_of(locks, BY_GANG, mate->gang);

	link_leave(&mate->link);
	if (is_pending(locks, mate->gang))
		first = NULL;
	for (struct record *r = first; r; r = r->next[BY_GANG]) {
		if (!r->dead)
			continue;
		r->cell->must_drop = true;
		cell_touch(r->cell);
	}
	mate_free(mate);
}

static void ask(struct mate *mate, bool patch);

static void retry(struct mate *mate)
{
	mate->due_ms = locks_now_ms(mate->locks) + LOCKS_RETRY_MS;
	collect_arm(mate->locks);
}

/* Whether it is still there and unbound: then it has to change from this version. */
static bool waits(struct mate *mate, const struct json *pod)
{
	const char *uid = json_str(pod, "metadata", "uid");
	const char *version = json_str(pod, "metadata", "resourceVersion");

	if (!uid || !version || strcmp(uid, mate->uid) != 0 || json_str(pod, "spec", "nodeName"))
		return false;
	snprintf(mate->version, sizeof(mate->version), "%s", version);
	return true;
}

/* A patch that is refused: it has changed since it was read. */
static bool is_over(struct mate *mate, const struct kube_reply *reply)
{
	if (reply->reason == KUBE_NOT_FOUND)
		return true;
	if (mate->patching)
		return reply->reason == KUBE_OK || reply->reason == KUBE_CONFLICT;
	return reply->reason == KUBE_OK && !waits(mate, reply->body);
}

static void answered(void *context, const struct kube_write_result *result)
{
	struct mate *mate = context;

	mate->writing = NULL;
	mate->locks->writes--;
	if (is_over(mate, result->reply))
		mate_done(mate);
	else if (!mate->patching && result->reply->reason == KUBE_OK)
		ask(mate, true);
	else
		retry(mate);
}

static void ask(struct mate *mate, bool patch)
{
	struct strbuf body CLEANUP(strbuf_done) = STRBUF_INIT;
	struct lock_entry entry = { .uid = mate->uid,
				    .version = mate->version,
				    .attempt = mate->attempt };
	struct kube_write write = { .verb = patch ? KUBE_STRATEGIC_PATCH : KUBE_GET,
				    .kind = &kube_kinds[KUBE_POD],
				    .namespace = mate->namespace,
				    .name = mate->name,
				    .subresource = patch ? "status" : NULL,
				    .done = answered,
				    .context = mate };

	if (patch) {
		fence_body(&body, mate->locks, &entry);
		write.body = body.s;
		write.body_len = body.len;
	}
	mate->patching = patch;
	if (body.failed ||
	    kube_write(mate->locks->options.client, &write, &mate->writing, NULL) < 0) {
		mate->writing = NULL;
		retry(mate);
		return;
	}
	mate->locks->writes++;
}

static bool mate_new(const struct record *record, const char *name, const char *uid)
{
	struct mate *mate = calloc(1, sizeof(*mate));

	if (!mate)
		return false;
	link_init(&mate->link);
	mate->locks = record->cell->locks;
	mate->attempt = record->entry.attempt;
	mate->gang = strdup(record->key[BY_GANG]);
	mate->namespace = strdup(record->entry.namespace);
	mate->name = strdup(name);
	mate->uid = strdup(uid);
	if (!mate->gang || !mate->namespace || !mate->name || !mate->uid) {
		mate_free(mate);
		return false;
	}
	link_append(&mate->locks->mates, &mate->link);
	ask(mate, false);
	return true;
}

/* Entries that are dead, all of one gang; in the order of our serial numbers: */
struct round {
	const struct record *record; /* one of them */
	uint64_t came;		     /* the last of them */
	uint64_t died;		     /* the first of them */
	bool failed;		     /* out of memory, or not all are known */
};

/* Whether the pod was changed since the last of them came: who made that one had read it before.
 * An entry of before the first one died is fenced as such; one that came later may be of the same
 * try. */
static bool is_seen_to(const struct round *round, const char *uid)
{
	bool seen_to = false;

	for (struct record *r = records_of(round->record->cell->locks, BY_POD, uid); r;
	     r = r->next[BY_POD]) {
		if (!r->dead && r->serial > round->died)
			return false;
		seen_to = seen_to || !r->dead || r->fenced > round->came;
	}
	return seen_to;
}

static void found(void *to, const char *name, const char *uid)
{
	struct round *round = to;

	if (!is_seen_to(round, uid) && !mate_new(round->record, name, uid))
		round->failed = true;
}

static void mark_dead(const struct record *record, bool in_round)
{
	for (struct record *r = records_of(record->cell->locks, BY_GANG, record->key[BY_GANG]); r;
	     r = r->next[BY_GANG])
		r->in_round = r->dead && in_round;
}

/* One that fails begins anew when the entry is next looked at. */
static void begin_round(const struct record *record)
{
	const struct locks_options *options = &record->cell->locks->options;
	struct round round = { .record = record, .died = record->dead_serial };

	for (struct record *r = records_of(record->cell->locks, BY_GANG, record->key[BY_GANG]); r;
	     r = r->next[BY_GANG]) {
		if (!r->dead || r->in_round)
			continue;
		round.came = MAX(round.came, r->serial);
		round.died = MIN(round.died, r->dead_serial);
	}
	mark_dead(record, true);
	if (!options->mates(options->context, &record->entry, found, &round))
		round.failed = true;
	if (round.failed)
		mark_dead(record, false);
}

bool mates_fenced(struct record *record)
{
	struct locks *locks = record->cell->locks;

	if (record->mine || !locks->options.mates)
		return true;
	if (is_pending(locks, record->key[BY_GANG]) || (!record->in_round && !locks->active))
		return false;
	if (!record->in_round)
		begin_round(record);
	return record->in_round && !is_pending(locks, record->key[BY_GANG]);
}

void mates_tick(struct locks *locks, uint64_t now_ms)
{
	for (struct link *at = locks->mates.next; at != &locks->mates; at = at->next) {
		struct mate *mate = LINK_OF(at, struct mate, link);

		if (!mate->writing && mate->due_ms <= now_ms)
			ask(mate, false);
	}
}

uint64_t mates_due_ms(const struct locks *locks)
{
	uint64_t due_ms = UINT64_MAX;

	for (const struct link *at = locks->mates.next; at != &locks->mates; at = at->next) {
		const struct mate *mate = LINK_OF(at, struct mate, link);

		if (!mate->writing)
			due_ms = MIN(due_ms, mate->due_ms);
	}
	return due_ms;
}

void mates_stop(struct locks *locks)
{
	while (!link_is_empty(&locks->mates))
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): one that is freed has left the list */
		mate_free(LINK_OF(locks->mates.next, struct mate, link));
}
