/* SPDX-License-Identifier: Apache-2.0 */
/* entries.h - what a lock says, read from a Lease and written into one.
 *
 * The form is described in tests/kube/LOCKS.md.  Pure: no server, no clock.
 */
#ifndef GS_SCHEDULER_ENTRIES_H
#define GS_SCHEDULER_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct mig_geometry;
struct strbuf;

#define ENTRY_HOLDS_MAX	  256
#define ENTRIES_MAX	  4096
#define ENTRIES_BYTES_MAX ((size_t)192 << 10)

/* A part of one card. */
struct lock_hold {
	const char *uuid;
	uint16_t core_milli; /* 1000: the whole card */
	uint32_t mem_mib;
	const char *mig_profile; /* NULL: no slice */
	uint8_t mig_start;
};

/* This pod, as it was at this resourceVersion, holds these parts. */
struct lock_entry {
	const char *uid, *namespace, *name;
	const char *version; /* resourceVersion at which it was read unbound */
	uint32_t attempt;    /* never 0; the same as in the pod's decision */
	const char *gang;    /* its name inside the namespace; NULL: none */
	uint32_t gang_members;
	const char *map; /* of which it was given an index, which nobody else has; NULL: none */
	uint32_t map_index;
	const struct lock_hold *holds;
	uint32_t holds_count;
};

/* What is known of a card, to add up what is held of it. */
struct lock_card {
	uint32_t mem_mib;		/* 0: unknown, never a limit */
	const struct mig_geometry *mig; /* NULL: it cannot be sliced */
};

/* The annotation's text.  0 with the entries in the arena; -EINVAL with what is wrong; -E2BIG;
 * -ENOMEM. */
int entries_read(const char *text, struct arena *arena, struct lock_entry **ret, uint32_t *count,
		 struct err *err);
/* The same back, compact; one of them, without the brackets. */
void entry_write(const struct lock_entry *entry, struct strbuf *out);
void entries_write(const struct lock_entry *entries, uint32_t count, struct strbuf *out);

bool entry_equal(const struct lock_entry *a, const struct lock_entry *b);

/* Whether `more` can be held beside all `entries` (of one node or of one card): every card by
 * its whole, its core, its memory and its slices, and its index of a map.  0; -ENOSPC with whose
 * entry is in the way; -EEXIST the pod has an entry already. */
int entries_fit(const struct lock_entry *entries, uint32_t count, const struct lock_entry *more,
		bool (*card)(void *context, const char *uuid, struct lock_card *ret),
		void *context, struct err *err);

#endif
