/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - bearer tokens, from kubeconfigs, files and plugins alike. */
#ifndef GS_KUBE_TOKEN_H
#define GS_KUBE_TOKEN_H

#include <stddef.h>

struct err;

/* The n bytes at s without blanks and line ends around them; *n is their number. */
const char *token_trim(const char *s, size_t *n);

/* Something that can be sent: not empty, visible ASCII, up to KUBE_TOKEN_MAX_BYTES.
 * 0, or -EINVAL with a phrase to be put behind the name of what holds it. */
int token_check(const char *s, size_t n, struct err *err);

#endif
