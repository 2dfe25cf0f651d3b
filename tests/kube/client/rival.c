/* SPDX-License-Identifier: Apache-2.0 */
#include "rival.h"

#include "test.h"

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/bind.h"
#include "kube/cache.h"
#include "kube/check.h"
#include "kube/client.h"
#include "kube/kind.h"
#include "kube/object.h"
#include "kube/ready.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define CARD_MIB 1000

/* They come and go without rhyme or reason, also those that it locks; in the end all are gone. */
static bool has_node(void *context, const char *node)
{
	struct rival *rival = context;
	(void)node;
	return !rival->paused && rng_chance(&rival->rng, 1, 2);
}

static bool card(void *context, const char *node, const char *uuid, struct lock_card *ret,
		 uint32_t *index)
{
	char prefix[32];
	(void)context;
	int len = snprintf(prefix, sizeof(prefix), "GPU-%s-", node);
	*ret = (struct lock_card){ .mem_mib = CARD_MIB };
	*index = (uint32_t)(uuid[len] - '0');
	return strncmp(uuid, prefix, (size_t)len) == 0;
}

static const char *card_at(void *context, const char *node, uint32_t index)
{
	static char uuid[32];
	(void)context;
	snprintf(uuid, sizeof(uuid), "GPU-%s-%u", node, index);
	return index < RIVAL_CARDS ? uuid : NULL;
}

static bool is_attempt(const struct json *pod, uint32_t attempt)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	const char *text = json_str(pod, "metadata", "annotations", "gpu.scheduling/decision");
	int64_t theirs;
	return text && json_parse("decision", text, strlen(text), NULL, &doc, NULL) == 0 &&
	       json_i64(json_root(doc), &theirs, "attempt") == 0 && theirs == attempt;
}

static bool is_bound(const struct kube_object *pod)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(kube_object_parse(pod, &doc), 0);
	return json_str(json_root(doc), "spec", "nodeName") != NULL;
}

static enum lock_pod pod_state(void *context, const char *node, const struct lock_entry *entry)
{
	struct rival *rival = context;
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	const struct kube_object *pod = kube_cache_get(rival->pods, entry->namespace, entry->name);
	if (!pod || strcmp(pod->uid, entry->uid) != 0 || kube_object_parse(pod, &doc) < 0)
		return LOCK_POD_UNKNOWN;
	const char *there = json_str(json_root(doc), "spec", "nodeName");
	if (!there)
		return LOCK_POD_UNBOUND;
	return strcmp(there, node) == 0 && is_attempt(json_root(doc), entry->attempt)
		       ? LOCK_POD_BOUND
		       : LOCK_POD_OVER;
}

/* As add_partner() has them. */
static bool mates(void *context, const struct lock_entry *entry,
		  void (*found)(void *to, const char *name, const char *uid), void *to)
{
	const struct rival *rival = context;
	unsigned long number = strtoul(entry->name + strlen("race-"), NULL, 10);
	char name[64];
	snprintf(name, sizeof(name), "race-%lu", number ^ 1);
	const struct kube_object *pod = kube_cache_get(rival->pods, rival->live.namespace, name);
	if (pod && !is_bound(pod))
		found(to, pod->name, pod->uid);
	return true;
}

static void ready(void *context)
{
	((struct rival *)context)->ready = true;
}

static void wrong(void *context, const char *why)
{
	(void)why;
	((struct rival *)context)->wrong = true;
}

static void pod_changed(void *context, enum kube_change change, const struct kube_object *before,
			struct kube_object *now, const struct json *object)
{
	struct rival *rival = context;
	(void)change, (void)object;
	if (!now && rival->locks)
		locks_pod_over(rival->locks, before->uid);
}

void rival_open(struct rival *rival, struct live *beside, const char *kubeconfig,
		enum lock_mode mode, uint64_t seed)
{
	*rival = (struct rival){ .log = { STDERR_FILENO, LOG_ERROR, LOG_LOGFMT, &clock_system } };
	struct err err = ERR_INIT;
	if (beside)
		live_open_beside(&rival->live, beside, kubeconfig);
	else
		live_open(&rival->live, kubeconfig);
	rng_seed(&rival->rng, seed);
	rival->caches = kube_caches_new(rival->live.client);
	struct kube_cache_options pods = { .kind = &kube_kinds[KUBE_POD],
					   .namespace = rival->live.namespace,
					   .changed = pod_changed,
					   .context = rival };
	CHECKF(kube_caches_add(rival->caches, &pods, &rival->pods, &err) == 0, "%s", err.text);
	struct locks_options options = { .client = rival->live.client,
					 .caches = rival->caches,
					 .clock = &clock_system,
					 .log = &rival->log,
					 .namespace = "gpu-scheduler-locks",
					 .mode = mode,
					 .collect_ms = 200,
					 .orphan_ms = 700,
					 .vacant_ms = 500,
					 .node = has_node,
					 .card = card,
					 .card_at = card_at,
					 .pod = pod_state,
					 .mates = mates,
					 .ready = ready,
					 .wrong = wrong,
					 .context = rival };
	CHECKF(locks_new(&options, &rival->locks, &err) == 0, "%s", err.text);
	locks_activate(rival->locks, true);
}

void rival_close(struct rival *rival)
{
	locks_free(rival->locks);
	rival->locks = NULL;
	kube_caches_free(rival->caches);
	live_close(&rival->live);
}

bool rival_is_idle(const struct rival *rival)
{
	for (size_t i = 0; i < RIVAL_JOBS; i++)
		if (rival->jobs[i].busy)
			return false;
	return locks_in_flight(rival->locks) == 0 && locks_doomed(rival->locks) == 0;
}

/* A member's part is over; with the last one the job is. */
static void member_ended(struct rival_member *member)
{
	struct rival_job *job = member->job;
	if (++job->ended == job->count)
		job->busy = false;
}

static void bind_now(struct rival_member *member);

static void on_bound(void *context, const struct kube_bind_result *result)
{
	struct rival_member *member = context;
	struct rival *rival = member->job->rival;
	enum kube_bind_outcome outcome = result->outcome;
	if (outcome == KUBE_BIND_SAME && rng_chance(&rival->rng, 1, 2)) {
		bind_now(member);
		return;
	}
	if (outcome == KUBE_BIND_DONE) {
		rival->binds++;
		rival->gang_binds += *member->job->gang != 0;
		lock_bound(member->lock);
	} else {
		/* Whatever became of it: what is bound keeps its lock. */
		locks_release(rival->locks, &member->lock, 1);
	}
	member->lock = NULL;
	member_ended(member);
}

static void bind_now(struct rival_member *member)
{
	struct rival *rival = member->job->rival;
	struct err err = ERR_INIT;
	struct strbuf decision CLEANUP(strbuf_done) = STRBUF_INIT;
	strbuf_addf(&decision, "{\"node\":\"%s\",\"gpus\":[", member->node);
	for (unsigned i = 0; i < member->cards_count; i++) {
		const char *uuid = member->cards[i];
		strbuf_addf(&decision,
			    "%s{\"id\":%c,\"uuid\":\"%s\",\"coreMilli\":1000,\"memoryMiB\":%d,"
			    "\"ask\":0}",
			    i ? "," : "", uuid[strlen(uuid) - 1], uuid, CARD_MIB);
	}
	strbuf_addf(&decision,
		    "],\"containers\":{},\"attempt\":%" PRIu32
		    ",\"scheduler\":\"rival\",\"score\":0}",
		    member->attempt);
	const struct kube_pair pairs[] = { { "gpu.scheduling/decision", decision.s } };
	struct kube_bind bind = { .namespace = rival->live.namespace,
				  .pod = member->name,
				  .uid = member->uid,
				  .version = member->version,
				  .node = member->node,
				  .annotations = pairs,
				  .annotations_count = 1,
				  .attempt_key = "gpu.scheduling/decision",
				  .done = on_bound,
				  .context = member };
	CHECKF(kube_bind(rival->live.client, &bind, NULL, &err) == 0, "%s", err.text);
}

static void give_up(struct rival_job *job)
{
	struct lock *list[2];
	uint32_t count = 0;
	for (unsigned i = 0; i < job->count; i++) {
		if (job->members[i].lock)
			list[count++] = job->members[i].lock;
		job->members[i].lock = NULL;
	}
	locks_release(job->rival->locks, list, count);
	job->busy = false;
}

static void on_taken(void *context, enum lock_outcome outcome, const char *why)
{
	struct rival_member *member = context;
	struct rival_job *job = member->job;
	struct rival *rival = job->rival;
	if (outcome != LOCK_TAKEN) {
		(void)why;
		rival->losses++;
		member->lock = NULL;
		give_up(job);
		return;
	}
	rival->wins++;
	if (++job->taken < job->count)
		return;
	/* Of those that could be bound, some are not. */
	if (rng_chance(&rival->rng, 1, 4)) {
		give_up(job);
		return;
	}
	for (unsigned i = 0; i < job->count; i++)
		bind_now(&job->members[i]);
}

static bool is_ours(const struct rival *rival, const struct kube_object *pod)
{
	for (size_t i = 0; i < RIVAL_JOBS; i++) {
		const struct rival_job *job = &rival->jobs[i];
		for (size_t k = 0; job->busy && k < job->count; k++)
			if (strcmp(job->members[k].uid, pod->uid) == 0)
				return true;
	}
	return false;
}

/* Whether it waits, as far as our cache knows, and we are not at it. */
static bool waits(const struct rival *rival, const struct kube_object *pod)
{
	struct json_doc *doc CLEANUP(json_doc_freep) = NULL;
	CHECK_INT(kube_object_parse(pod, &doc), 0);
	return !json_str(json_root(doc), "spec", "nodeName") &&
	       !json_get(json_root(doc), "metadata", "deletionTimestamp") && !is_ours(rival, pod);
}

static const struct kube_object *choose_pod(struct rival *rival)
{
	uint32_t at = 0, skip = rng_below(&rival->rng, RIVAL_PODS);
	for (const struct kube_object *pod; (pod = kube_cache_next(rival->pods, &at));) {
		if (skip && skip-- && kube_cache_count(rival->pods) > RIVAL_PODS / 2)
			continue;
		if (waits(rival, pod))
			return pod;
	}
	return NULL;
}

static void add_member(struct rival_job *job, const struct kube_object *pod)
{
	struct rival_member *member = &job->members[job->count++];
	*member = (struct rival_member){ .job = job };
	snprintf(member->name, sizeof(member->name), "%s", pod->name);
	snprintf(member->uid, sizeof(member->uid), "%s", pod->uid);
	snprintf(member->version, sizeof(member->version), "%s", pod->version);
}

/* Of each four pods the first two are a gang: all schedulers have to agree on that.  The other
 * one is added, unless it is bound already; false if this one has to wait for it. */
static bool add_partner(struct rival_job *job)
{
	unsigned long number = strtoul(job->members[0].name + strlen("race-"), NULL, 10);
	char name[64];
	if (number % 4 > 1)
		return true;
	snprintf(job->gang, sizeof(job->gang), "gang-race-%lu", number & ~1UL);
	snprintf(name, sizeof(name), "race-%lu", number ^ 1);
	const struct kube_object *pod =
		kube_cache_get(job->rival->pods, job->rival->live.namespace, name);
	if (!pod)
		return false;
	if (is_bound(pod))
		return true;
	if (!waits(job->rival, pod))
		return false;
	add_member(job, pod);
	return true;
}

/* One to three cards of the node, one after the other. */
static void choose_cards(struct rival *rival, struct rival_member *member, unsigned node)
{
	unsigned first = rng_below(&rival->rng, RIVAL_CARDS);
	member->cards_count = 1 + rng_below(&rival->rng, 3);
	for (unsigned i = 0; i < member->cards_count; i++)
		snprintf(member->cards[i], sizeof(member->cards[i]), "GPU-gpu-%u-%u", node,
			 (first + i) % RIVAL_CARDS);
}

/* Before the second of a gang is taken the first may not have been lost: done() comes later. */
static void take(struct rival_member *member)
{
	struct rival_job *job = member->job;
	struct rival *rival = job->rival;
	struct err err = ERR_INIT;
	unsigned number = rng_below(&rival->rng, RIVAL_NODES);
	struct lock_hold holds[RIVAL_CARDS];
	snprintf(member->node, sizeof(member->node), "gpu-%u", number);
	choose_cards(rival, member, number);
	for (unsigned i = 0; i < member->cards_count; i++)
		holds[i] = (struct lock_hold){ .uuid = member->cards[i],
					       .core_milli = 1000,
					       .mem_mib = CARD_MIB };
	member->attempt = (uint32_t)rng_next(&rival->rng) | 1;
	struct lock_entry entry = { .uid = member->uid,
				    .namespace = rival->live.namespace,
				    .name = member->name,
				    .version = member->version,
				    .attempt = member->attempt,
				    .gang = *job->gang ? job->gang : NULL,
				    .gang_members = *job->gang ? 2 : 0,
				    .holds = holds,
				    .holds_count = member->cards_count };
	rival->takes++;
	CHECKF(locks_take(rival->locks, member->node, &entry, on_taken, member, &member->lock,
			  &err) == 0,
	       "%s", err.text);
}

static void begin(struct rival *rival, struct rival_job *job)
{
	const struct kube_object *pod = choose_pod(rival);
	*job = (struct rival_job){ .rival = rival };
	if (!pod)
		return;
	add_member(job, pod);
	if (!add_partner(job))
		return;
	job->busy = true;
	for (unsigned i = 0; i < job->count; i++)
		take(&job->members[i]);
}

void rival_go(struct rival *rival)
{
	for (size_t i = 0; rival->ready && !rival->paused && i < RIVAL_JOBS; i++)
		if (!rival->jobs[i].busy)
			begin(rival, &rival->jobs[i]);
}
