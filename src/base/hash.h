/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - XXH3 of some bytes.
 *
 * The same on every machine for the same seed.  Where users choose the bytes
 * (names), the seed is random, so that nobody can prepare collisions.
 */
#ifndef GS_BASE_HASH_H
#define GS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);

/* Of a text, whatever its figures are: "3 of 8 fit" and "11 of 16 fit" are the same.  For
 * sentences that are said again and again. */
uint64_t hash_sentence(const char *text, uint64_t seed);

#endif
