/* SPDX-License-Identifier: Apache-2.0 */
/* locks_stage.h - a scheduler's locks in front of the server of locks_fake.h.
 *
 *	stage_open(LOCKS_BY_NODE);
 *	struct taken *a = stage_take("n1", "a", "GPU-0");
 *	stage_settle();
 *	CHECK_INT(a->outcome, LOCK_TAKEN);
 *	stage_close();
 */
#ifndef GS_TESTS_LOCKS_STAGE_H
#define GS_TESTS_LOCKS_STAGE_H

#include "locks_fake.h"

#define STAGE_CARDS 4 /* of each node: GPU-0 ... */

struct taken {
	struct lock *lock;
	bool done;
	enum lock_outcome outcome;
	char why[256];
};

struct stage {
	struct kube_caches *caches;
	struct locks *locks;
	struct strbuf guests; /* "+n1/u-a " came, "-n1/u-a " left */
	char wrong[256];
	bool ready;
	bool nodeless;	      /* there is no node any more */
	bool flickering;      /* there is none every other time */
	unsigned nodes_asked; /* how often one was looked for */
	bool unsorted;	      /* which pods are in the gang is not known */
	unsigned mates_asked;
	struct taken taken[FAKE_MAX];
	unsigned takes;
	uint32_t attempts;
	const char *(*uuid_at)(uint32_t index); /* NULL: GPU-<index> */
	enum lock_pod states[FAKE_MAX];		/* of the pods of the fake, by their place */
};

static struct stage stage;

static inline bool stage_node(void *context, const char *node)
{
	(void)context, (void)node;
	stage.nodes_asked++;
	return !stage.nodeless && !(stage.flickering && stage.nodes_asked % 2);
}

static inline bool stage_card(void *context, const char *node, const char *uuid,
			      struct lock_card *ret, uint32_t *index)
{
	(void)context, (void)node;
	*ret = (struct lock_card){ .mem_mib = 1000 };
	for (uint32_t i = 0; i < STAGE_CARDS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "GPU-%u", i);
		*index = i;
		if (strcmp(stage.uuid_at ? stage.uuid_at(i) : name, uuid) == 0)
			return true;
	}
	return false;
}

static inline const char *stage_card_at(void *context, const char *node, uint32_t index)
{
	static const char *const names[] = { "GPU-0", "GPU-1", "GPU-2", "GPU-3" };
	(void)context, (void)node;
	if (index >= STAGE_CARDS)
		return NULL;
	return stage.uuid_at ? stage.uuid_at(index) : names[index];
}

static inline enum lock_pod stage_pod(void *context, const char *node,
				      const struct lock_entry *entry)
{
	(void)context, (void)node;
	for (size_t i = 0; i < FAKE_MAX; i++)
		if (fake.pods[i].exists && strcmp(fake.pods[i].uid, entry->uid) == 0)
			return stage.states[i];
	return LOCK_POD_UNKNOWN;
}

/* All pods that are unbound, in one gang. */
static inline bool stage_mates(void *context, const struct lock_entry *entry,
			       void (*found)(void *to, const char *name, const char *uid),
			       void *to)
{
	(void)context, (void)entry;
	stage.mates_asked++;
	for (size_t i = 0; i < FAKE_MAX && !stage.unsorted; i++)
		if (fake.pods[i].exists && !fake.pods[i].node[0])
			found(to, fake.pods[i].name, fake.pods[i].uid);
	return !stage.unsorted;
}

static inline void stage_came(void *context, const char *node, const struct lock_entry *entry)
{
	(void)context;
	strbuf_addf(&stage.guests, "+%s/%s:%u ", node, entry->uid, entry->holds_count);
}

static inline void stage_left(void *context, const char *node, const struct lock_entry *entry)
{
	(void)context;
	strbuf_addf(&stage.guests, "-%s/%s ", node, entry->uid);
}

static inline void stage_ready(void *context)
{
	(void)context;
	stage.ready = true;
}

static inline void stage_wrong(void *context, const char *why)
{
	(void)context;
	snprintf(stage.wrong, sizeof(stage.wrong), "%s", why);
}

static inline void stage_run(enum lock_mode mode)
{
	struct locks_options options = {
		.client = s.client,
		.clock = &clock_system,
		.log = &s.log,
		.metrics = s.metrics,
		.namespace = "locks",
		.mode = mode,
		.collect_ms = 30,
		.orphan_ms = 30,
		.vacant_ms = 10,
		.node = stage_node,
		.card = stage_card,
		.card_at = stage_card_at,
		.pod = stage_pod,
		.mates = stage_mates,
		.came = stage_came,
		.left = stage_left,
		.ready = stage_ready,
		.wrong = stage_wrong,
	};
	struct err err = ERR_INIT;
	stage = (struct stage){ .guests = STRBUF_INIT, .caches = kube_caches_new(s.client) };
	options.caches = stage.caches;
	CHECKF(locks_new(&options, &stage.locks, &err) == 0, "%s", err.text);
	locks_activate(stage.locks, true);
}

/* Until locks can be taken and events come. */
static inline void stage_begin(void)
{
	wait_for(&stage.ready);
	while (!fake_is_watched())
		uv_run(&s.loop, UV_RUN_ONCE);
}

static inline void stage_open(enum lock_mode mode)
{
	fake_start();
	stage_run(mode);
	stage_begin();
	strbuf_reset(&fake.lines);
}

static inline void stage_close(void)
{
	locks_free(stage.locks);
	kube_caches_free(stage.caches);
	strbuf_done(&stage.guests);
	teardown();
	fake_end();
}

static inline void stage_done(void *context, enum lock_outcome outcome, const char *why)
{
	struct taken *taken = context;
	CHECK(!taken->done);
	taken->done = true;
	taken->outcome = outcome;
	snprintf(taken->why, sizeof(taken->why), "%s", why);
	if (outcome != LOCK_TAKEN)
		taken->lock = NULL;
}

/* Whole cards, "GPU-0,GPU-1", for the pod of that name; made with version 7 if it is none. */
static inline struct taken *stage_take_as(const char *node, const char *pod, const char *cards,
					  const char *gang)
{
	struct taken *taken = &stage.taken[stage.takes++];
	char uid[64], version[16], names[STAGE_CARDS][32];
	struct lock_hold holds[STAGE_CARDS];
	struct fake_pod *it = fake_pod(pod) ? fake_pod(pod) : fake_pod_add(pod, 7);
	snprintf(uid, sizeof(uid), "u-%s", pod);
	snprintf(version, sizeof(version), "%u", it->version);
	struct lock_entry entry = { .uid = uid,
				    .namespace = "ml",
				    .name = pod,
				    .version = version,
				    .attempt = ++stage.attempts,
				    .holds = holds,
				    .gang = gang,
				    .gang_members = gang ? 2 : 0 };
	for (const char *at = cards; *at; at += strcspn(at, ","), at += *at == ',') {
		snprintf(names[entry.holds_count], 32, "%.*s", (int)strcspn(at, ","), at);
		holds[entry.holds_count] = (struct lock_hold){ .uuid = names[entry.holds_count],
							       .core_milli = 1000,
							       .mem_mib = 1000 };
		entry.holds_count++;
	}
	struct err err = ERR_INIT;
	CHECKF(locks_take(stage.locks, node, &entry, stage_done, taken, &taken->lock, &err) == 0,
	       "%s", err.text);
	CHECK(!taken->done);
	return taken;
}

static inline struct taken *stage_take(const char *node, const char *pod, const char *cards)
{
	return stage_take_as(node, pod, cards, NULL);
}

static inline void stage_wait(const struct taken *taken)
{
	wait_for(&taken->done);
}

/* Until nothing is on its way and nothing should go any more. */
static inline void stage_settle(void)
{
	do
		uv_run(&s.loop, UV_RUN_ONCE);
	while (locks_in_flight(stage.locks) || locks_doomed(stage.locks));
}

/* Until the text (of guests, lines or entries) has that in it. */
static inline void stage_until(const struct strbuf *text, const char *what)
{
	while (!strstr(text->s, what))
		uv_run(&s.loop, UV_RUN_ONCE);
}

static inline const char *stage_entries(const char *lease)
{
	const struct fake_lease *it = fake_lease(lease);
	return it && it->entries ? it->entries : "";
}

#endif
