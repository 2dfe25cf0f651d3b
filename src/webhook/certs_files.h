/* SPDX-License-Identifier: Apache-2.0 */
/* certs_files.h - certificates in a folder: ca.crt, tls.crt, tls.key. */
#ifndef GS_WEBHOOK_CERTS_FILES_H
#define GS_WEBHOOK_CERTS_FILES_H

struct certs;
struct err;

/* What is missing is empty.  0, or why a file cannot be read. */
int certs_files_read(const char *folder, struct certs *ret, struct err *err);

/* Each file is replaced whole, the key readable by its owner alone; the certificate comes
 * last, so that who sees it finds its key.  The folder is made if it is missing. */
int certs_files_write(const char *folder, const struct certs *certs, struct err *err);

#endif
