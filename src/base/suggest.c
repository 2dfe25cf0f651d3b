/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <string.h>

#include "base/attr.h"

/* The number of single edits from one word to the other, where an edit inserts,
 * removes or replaces a letter or swaps two neighbours.  Three rows of the usual
 * table suffice: a swap looks back two. */
static size_t edit_distance(const char *from, size_t from_length, const char *to, size_t to_length)
{
	size_t rows[3][SUGGEST_NAME_MAX + 1];
	for (size_t j = 0; j <= to_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= from_length; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i - 1) % 3], *above_two = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= to_length; j++) {
			size_t edits = above[j - 1] + (from[i - 1] != to[j - 1]);
			edits = MIN(edits, MIN(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
				edits = MIN(edits, above_two[j - 2] + 1);
			row[j] = edits;
		}
	}
	return rows[from_length % 3][to_length];
}

const char *suggest(const char *word, const char *const *names, size_t count)
{
	size_t length = strlen(word);
	const char *best = NULL;
	size_t best_distance = length / 3 + 2; /* further away is another word */
	if (length < 2 || length > SUGGEST_NAME_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t name_length = strlen(names[i]);
		if (name_length > SUGGEST_NAME_MAX)
			continue;
		size_t distance = edit_distance(word, length, names[i], name_length);
		if (name_length > length && memcmp(names[i], word, length) == 0)
			distance = MIN(distance, 1);
		if (distance < best_distance && distance < MAX(length, name_length)) {
			best_distance = distance;
			best = names[i];
		}
	}
	return best;
}
