/* SPDX-License-Identifier: Apache-2.0 */
/* claim.h - a GpuClaim by itself. */
#ifndef GS_DIALECT_CLAIM_H
#define GS_DIALECT_CLAIM_H

struct err;
struct json;

/* What is wrong with it whatever pod names it, in the words that the pod would get.
 * 0, -EINVAL. */
int claim_check(const struct json *claim, struct err *err);

#endif
