/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - base64 as Kubernetes writes it.
 *
 * RFC 4648 with the standard alphabet and padding.  Line ends inside the text are
 * skipped when reading, as the programs of Kubernetes do: people wrap what they
 * paste.  Any thread.
 */
#ifndef GS_KUBE_BASE64_H
#define GS_KUBE_BASE64_H

#include <stddef.h>

struct strbuf;

/* Adds the n bytes at p, encoded; what does not fit sets out->failed. */
void base64_encode(struct strbuf *out, const char *p, size_t n);

/* Adds what the n characters at s stand for.  0, -EINVAL if they are no base64 (a
 * strange character, padding that is missing or in the middle), -ENOMEM if it does
 * not fit into `out`; after an error `out` is as it was, but for its `failed`. */
int base64_decode(struct strbuf *out, const char *s, size_t n);

#endif
