/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - the proxy's own identity: a certificate that lives as long as it does. */
#ifndef GS_TESTS_KUBE_PROXY_CERTIFICATE_H
#define GS_TESTS_KUBE_PROXY_CERTIFICATE_H

#include <gnutls/gnutls.h>

#include "base/strbuf.h"

struct err;

struct certificate {
	gnutls_certificate_credentials_t credentials; /* for a TLS server */
	struct strbuf authority;		      /* PEM, for those who are to trust it */
};

/* Makes an authority, and by it a certificate (ECDSA P-256) for localhost and the host,
 * which is an IPv4 address.  0 or -EIO. */
int certificate_make(const char *host, struct certificate *ret, struct err *err);
void certificate_done(struct certificate *certificate);

/* A random name of n-1 characters and its NUL, not to be guessed: 0 or -EIO. */
int certificate_random_text(char *ret, size_t n, struct err *err);

#endif
