/* SPDX-License-Identifier: Apache-2.0 */
/* keep_private.h - a list of paths as a tree; for keep.c, which makes it, and
 * keep_pack.c, which walks an object along it. */
#ifndef GS_KUBE_KEEP_PRIVATE_H
#define GS_KUBE_KEEP_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "kube/packed.h"

/* A word; with `prefix`, the beginning of one. */
struct keep_word {
	const char *text;
	size_t len;
	bool prefix;
	struct keep_word *next;
};

/* Which items of a list count. */
enum keep_test {
	KEEP_EACH,
	KEEP_HAS,     /* one of the words is a member */
	KEEP_IS,      /* the member `test_key` is one of the words */
	KEEP_RESIZED, /* see keep.h */
};

/* A field that a path goes through or ends at. */
struct keep_step {
	const char *name;
	size_t len;
	const char *packed; /* the name, packed */
	size_t packed_len;
	const char *shape; /* what stands behind the name: paths that share it must agree */
	size_t shape_len;
	bool whole;   /* everything inside is kept */
	bool list;    /* it is a list, and the next names are of its items */
	bool members; /* `words` choose members */
	bool except;  /* ... to be left out */
	uint8_t test; /* enum keep_test, of the items */
	const char *test_key;
	struct keep_word *words;
	struct keep_step *first, *next; /* the fields below; the next beside */
	uint64_t names;			/* of the fields below: their keep_name_bit() */
};

struct keep {
	struct arena arena;
	struct packed_words words;
	struct keep_step root;
	const char *constants; /* packed members, "" for none */
	size_t constants_len;
};

/* Most names of an object are wanted by no path: this rules them out. */
static inline uint64_t keep_name_bit(const char *name, size_t len)
{
	if (len == 0)
		return 0;
	unsigned char first = (unsigned char)name[0], last = (unsigned char)name[len - 1];
	return (uint64_t)1 << ((len + 7U * first + 13U * last) & 63);
}

#endif
