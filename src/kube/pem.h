/* SPDX-License-Identifier: Apache-2.0 */
/* pem.h - is this PEM, and of what?
 *
 * Text outside of blocks is ignored, as everybody does.  The errors are phrases to be
 * put behind the name of the file or field.  Any thread.
 */
#ifndef GS_KUBE_PEM_H
#define GS_KUBE_PEM_H

#include <stddef.h>

struct err;

/* At least one certificate and no block that is broken.  0, -EINVAL, -ENOMEM. */
int pem_check_certificates(const char *text, size_t len, struct err *err);

/* At least one private key, not protected by a passphrase, and no broken block. */
int pem_check_key(const char *text, size_t len, struct err *err);

/* What is inside: certificates that TLS can use; a certificate and its own key. */
int pem_check_trust(const char *certificates, size_t len, struct err *err);
int pem_check_pair(const char *certificate, size_t certificate_len, const char *key,
		   size_t key_len, struct err *err);

#endif
