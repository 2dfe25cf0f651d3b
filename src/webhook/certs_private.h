/* SPDX-License-Identifier: Apache-2.0 */
/* certs_private.h - what the files certs*.c share. */
#ifndef GS_WEBHOOK_CERTS_PRIVATE_H
#define GS_WEBHOOK_CERTS_PRIVATE_H

#include <gnutls/x509.h>

struct err;
struct strbuf;

#define CERTS_CA_NAME "gpu-scheduler webhook CA " /* and a number; the script says it, too */

/* For CLEANUP(); NULL is fine. */
void certs_free_cert(gnutls_x509_crt_t *cert);
void certs_free_key(gnutls_x509_privkey_t *key);

/* What GnuTLS says as an error: -ENOMEM or -EINVAL. */
int certs_tls_error(struct err *err, const char *what, int code);

/* The bytes of an IP address, 4 or 16 of them; 0 if it is none. */
unsigned certs_address(const char *name, unsigned char bytes[16]);

/* Adds it as PEM. */
int certs_put_cert(struct strbuf *out, gnutls_x509_crt_t cert, struct err *err);

#endif
