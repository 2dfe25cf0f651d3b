/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h - the word of a list that somebody who mistyped it probably meant. */
#ifndef GS_BASE_NEAREST_H
#define GS_BASE_NEAREST_H

#include <stddef.h>

#define NEAREST_WORD_MAX 64 /* longer words are near to nothing */

/* The word nearest to `word` (letters wrong, missing, too many or swapped), the first of
 * equals; NULL when a third of it or more would have to change. */
const char *nearest_word(const char *word, const char *const *words, size_t count);

#endif
