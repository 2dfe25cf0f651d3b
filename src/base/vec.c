/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include "base/attr.h"

#include <stdint.h>
#include <string.h>

#define CAP_MIN 8

int vec_grow(void *items, size_t *cap, size_t n, size_t item_size)
{
	if (n <= *cap)
		return 0;
	size_t want = MAX(n, CAP_MIN);
	if (*cap <= SIZE_MAX / 2)
		want = MAX(want, *cap * 2);
	size_t bytes;
	if (__builtin_mul_overflow(want, item_size, &bytes))
		return -ENOMEM;
	/* `items` points to a pointer of any type: memcpy keeps that legal */
	void *array;
	memcpy(&array, items, sizeof(array));
	void *grown = realloc(array, bytes);
	if (!grown)
		return -ENOMEM;
	memcpy(items, &grown, sizeof(grown));
	*cap = want;
	/* cppcheck-suppress memleak ; the vector owns it now */
	return 0;
}

void vec_cleanup(void *vec)
{
	void *array; /* `items` is the first member of every VEC */
	memcpy(&array, vec, sizeof(array));
	free(array);
}
