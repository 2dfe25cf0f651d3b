/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - a growable array of any type.
 *
 *	VEC(uint32_t) ids = {0};
 *	if (vec_push(&ids, 7) < 0)
 *		return -ENOMEM;
 *	for (size_t i = 0; i < ids.len; i++)
 *		use(ids.items[i]);
 *	vec_done(&ids);
 *
 * Zero is the empty value.  Pointers into `items` are valid until the next push.
 * For a vector that goes out of scope: VEC(int) v CLEANUP(vec_cleanup) = {0};
 * The macros evaluate `v` more than once.
 */
#ifndef GS_BASE_VEC_H
#define GS_BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define VEC(type)                \
	struct {                 \
		type *items;     \
		size_t len, cap; \
	}

/* Room for n items in all: 0 or -ENOMEM. */
#define vec_reserve(v, n) vec_grow(&(v)->items, &(v)->cap, (n), sizeof((v)->items[0]))

/* Adds x at the end: 0, or -ENOMEM and nothing has changed. */
#define vec_push(v, x)                                                \
	(((v)->len < (v)->cap || vec_reserve((v), (v)->len + 1) == 0) \
		 ? ((v)->items[(v)->len++] = (x), 0)                  \
		 : -ENOMEM)

/* Frees the array; the vector is empty and usable. */
#define vec_done(v) (free((v)->items), (v)->items = NULL, (v)->len = 0, (v)->cap = 0, (void)0)

/* Behind the macros: grows the array whose address lies at `items` to at least n
 * items, doubling.  0 or -ENOMEM (also when the size in bytes overflows). */
int vec_grow(void *items, size_t *cap, size_t n, size_t item_size);

/* For CLEANUP(): frees the items of any VEC. */
void vec_cleanup(void *vec);

#endif
