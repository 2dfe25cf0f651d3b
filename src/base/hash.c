/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <stdbool.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
	return XXH3_64bits_withSeed(p, n, seed);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

uint64_t hash_sentence(const char *text, uint64_t seed)
{
	uint64_t hash = seed;

	while (*text) {
		size_t words = 0;

		while (text[words] && !is_digit(text[words]))
			words++;
		hash = hash_bytes(text, words, hash);
		text += words;
		while (is_digit(*text))
			text++;
	}
	return hash;
}
