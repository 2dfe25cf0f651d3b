/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - things that are found by their bytes, and gone with the last who uses them.
 *
 * A table gives out numbers for records that lie in a vector of the caller's, each record
 * beginning with its bytes and the count of its users.  Number 0 is never given out: the
 * caller puts an empty record there first.
 */
#ifndef GS_ENGINE_RECORD_H
#define GS_ENGINE_RECORD_H

#include <errno.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct strbuf;

struct record {
	char *bytes; /* NULL: not in use */
	uint32_t len, refs;
	uint64_t serial; /* another for every record there ever was */
};

typedef VEC(uint32_t) numbers; /* NOLINT: a plain list, wanted in several records */

struct record_table {
	struct map ids;
	numbers free;
	uint64_t *serials; /* the last that was given out */
};

void record_table_init(struct record_table *t, uint64_t seed, uint64_t *serials);
void record_table_done(struct record_table *t);

/* The record with these bytes: its number, or 0. */
uint32_t record_find(const struct record_table *t, const struct strbuf *bytes);

/* Fills a new record with the bytes, used once, and enters it under its number.  0; -ENOMEM,
 * and the number is free again. */
int record_enter(struct record_table *t, struct record *r, uint32_t id,
		 const struct strbuf *bytes);
/* Forgets the record, whose number is free then; the caller clears it. */
void record_leave(struct record_table *t, struct record *r, uint32_t id);

/* A number for a new record of the vector; its freeing will need no memory. */
#define record_number(table, vector, type, ret)                                     \
	((table)->free.len ? (*(ret) = (table)->free.items[--(table)->free.len], 0) \
	 : vec_reserve(&(table)->free, (vector)->len + 1) < 0 ||                    \
			 vec_push((vector), (type){ 0 }) < 0                        \
		 ? -ENOMEM                                                          \
		 : (*(ret) = (uint32_t)(vector)->len - 1, 0))

#endif
