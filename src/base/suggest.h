/* SPDX-License-Identifier: Apache-2.0
 *
 * suggest.h - the name that somebody who mistyped it probably meant.
 */
#ifndef GS_BASE_SUGGEST_H
#define GS_BASE_SUGGEST_H

#include <stddef.h>

#define SUGGEST_NAME_MAX 64 /* longer words get no suggestion */

/* The name nearest to `word` (letters wrong, missing, too many or swapped), the
 * first of equals; NULL when none is near.  A word that begins a name counts as
 * near to it. */
const char *suggest(const char *word, const char *const *names, size_t count);

#endif
