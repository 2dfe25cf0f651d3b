/* SPDX-License-Identifier: Apache-2.0 */
/* num.h - numbers from outside: parsing and sums that cannot go wrong silently.
 *
 * The text is n bytes, need not end in NUL, and must be the number and nothing
 * else: digits, with a '-' before them where the type has a sign.  No blanks, no
 * '+', no hexadecimal.
 */
#ifndef GS_BASE_NUM_H
#define GS_BASE_NUM_H

#include <stddef.h>
#include <stdint.h>

/* 0, -EINVAL if it is no number, -ERANGE if the type cannot hold it. */
int parse_i64(const char *s, size_t n, int64_t *ret);
int parse_u64(const char *s, size_t n, uint64_t *ret);
int parse_i32(const char *s, size_t n, int32_t *ret);
int parse_u32(const char *s, size_t n, uint32_t *ret);

/* True if the exact result does not fit into *ret; of any integer types. */
#define ADD_OVERFLOW(a, b, ret) __builtin_add_overflow((a), (b), (ret))
#define SUB_OVERFLOW(a, b, ret) __builtin_sub_overflow((a), (b), (ret))
#define MUL_OVERFLOW(a, b, ret) __builtin_mul_overflow((a), (b), (ret))

#endif
