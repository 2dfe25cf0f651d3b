/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <string.h>

#include "base/attr.h"

/* Single edits from one word to the other, where an edit inserts, removes or replaces a
 * letter or swaps two neighbours.  Three rows of the usual table suffice: a swap looks
 * back two. */
static size_t edits_between(const char *from, size_t from_length, const char *to, size_t to_length)
{
	size_t rows[3][NEAREST_WORD_MAX + 1];

	for (size_t j = 0; j <= to_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= from_length; i++) {
		const size_t *above = rows[(i - 1) % 3], *above_two = rows[(i + 1) % 3];
		size_t *row = rows[i % 3];

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

const char *nearest_word(const char *word, const char *const *words, size_t count)
{
	size_t length = strnlen(word, NEAREST_WORD_MAX + 1);
	size_t least = length / 3 + 1;
	const char *nearest = NULL;

	if (length > NEAREST_WORD_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t other = strlen(words[i]);
		if (other > NEAREST_WORD_MAX)
			continue;
		size_t edits = edits_between(word, length, words[i], other);
		if (edits >= least)
			continue;
		least = edits;
		nearest = words[i];
	}
	return nearest;
}
