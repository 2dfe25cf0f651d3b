/* SPDX-License-Identifier: Apache-2.0 */
/* http_certs.h - an authority and certificates of its own, made on the spot.
 *
 * Each lies as PEM in a file that only this process can name, /proc/self/fd/N.
 */
#ifndef GS_TESTS_UNIT_HTTP_CERTS_H
#define GS_TESTS_UNIT_HTTP_CERTS_H

#include <stdbool.h>
#include <stddef.h>

#define CERTS_PATH_MAX 32

struct cert {
	char cert_file[CERTS_PATH_MAX], key_file[CERTS_PATH_MAX];
	int cert_fd, key_fd;
};

/* Who a certificate is for. */
enum cert_role {
	CERT_AUTHORITY, /* signed by itself */
	CERT_SERVER,	/* of "localhost", "peer.test" and 127.0.0.1 */
	CERT_CLIENT,
	CERT_OTHER_AUTHORITY, /* of another name */
	CERT_ANY_USE,	      /* a server's names, for whatever it is used */
	CERT_MISUSED,	      /* a server's names, for a client */
};

/* Valid from a day ago until `days` days from now: a negative number has expired.
 * Aborts if it cannot be made. */
void cert_make(struct cert *cert, enum cert_role role, const struct cert *authority, int days);
void cert_done(struct cert *cert);

#endif
