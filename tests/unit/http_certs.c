/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/http_certs.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DAY_S 86400

static void must(int code, const char *what)
{
	if (code >= 0)
		return;
	fprintf(stderr, "http_certs: %s: %s\n", what, gnutls_strerror(code));
	abort();
}

/* The text in a file without a name; its path. */
static int file_of(const gnutls_datum_t *text, char *path)
{
	int fd = memfd_create("cert", MFD_CLOEXEC);

	must(fd < 0 || write(fd, text->data, text->size) != (ssize_t)text->size ? -1 : 0, "memfd");
	snprintf(path, CERTS_PATH_MAX, "/proc/self/fd/%d", fd);
	return fd;
}

static gnutls_datum_t text_of(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	gnutls_datum_t text = { malloc((size_t)size + 1), (unsigned)size };

	must(!text.data || pread(fd, text.data, (size_t)size, 0) != size ? -1 : 0, "read");
	return text;
}

static void set_names(gnutls_x509_crt_t crt, enum cert_role role)
{
	static const char *const names[] = {
		[CERT_AUTHORITY] = "test authority", [CERT_SERVER] = "localhost",
		[CERT_CLIENT] = "test client",	     [CERT_OTHER_AUTHORITY] = "another authority",
		[CERT_ANY_USE] = "localhost",	     [CERT_MISUSED] = "localhost",
	};
	struct in_addr loopback = { htonl(INADDR_LOOPBACK) };

	must(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, names[role],
					   (unsigned)strlen(names[role])),
	     "name");
	if (strcmp(names[role], "localhost") != 0)
		return;
	must(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, "localhost", 9, 0),
	     "alternative name");
	must(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, "peer.test", 9,
						  GNUTLS_FSAN_APPEND),
	     "alternative name");
	must(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, &loopback,
						  sizeof(loopback), GNUTLS_FSAN_APPEND),
	     "alternative address");
}

static void set_use(gnutls_x509_crt_t crt, enum cert_role role)
{
	static const char *const purposes[] = {
		[CERT_SERVER] = GNUTLS_KP_TLS_WWW_SERVER,
		[CERT_CLIENT] = GNUTLS_KP_TLS_WWW_CLIENT,
		[CERT_MISUSED] = GNUTLS_KP_TLS_WWW_CLIENT,
	};
	bool signs = role == CERT_AUTHORITY || role == CERT_OTHER_AUTHORITY;

	must(gnutls_x509_crt_set_basic_constraints(crt, signs, -1), "use");
	must(gnutls_x509_crt_set_key_usage(crt, signs ? GNUTLS_KEY_KEY_CERT_SIGN
						      : GNUTLS_KEY_DIGITAL_SIGNATURE),
	     "use");
	if (purposes[role])
		must(gnutls_x509_crt_set_key_purpose_oid(crt, purposes[role], 0), "use");
}

static void sign(gnutls_x509_crt_t crt, gnutls_x509_privkey_t key, const struct cert *authority)
{
	gnutls_x509_crt_t issuer;
	gnutls_x509_privkey_t issuer_key;

	if (!authority) {
		must(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), "sign");
		return;
	}
	gnutls_datum_t cert_text = text_of(authority->cert_fd);
	gnutls_datum_t key_text = text_of(authority->key_fd);
	gnutls_x509_crt_init(&issuer);
	gnutls_x509_privkey_init(&issuer_key);
	must(gnutls_x509_crt_import(issuer, &cert_text, GNUTLS_X509_FMT_PEM), "authority");
	must(gnutls_x509_privkey_import(issuer_key, &key_text, GNUTLS_X509_FMT_PEM), "its key");
	must(gnutls_x509_crt_sign2(crt, issuer, issuer_key, GNUTLS_DIG_SHA256, 0), "sign");
	gnutls_x509_crt_deinit(issuer);
	gnutls_x509_privkey_deinit(issuer_key);
	free(cert_text.data);
	free(key_text.data);
}

void cert_make(struct cert *cert, enum cert_role role, const struct cert *authority, int days)
{
	static unsigned char serial;
	const unsigned char number[] = { 1, ++serial };
	const time_t now = time(NULL);
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
	gnutls_datum_t text;

	must(gnutls_x509_crt_init(&crt), "certificate");
	must(gnutls_x509_privkey_init(&key), "key");
	must(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
					  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
	     "key");
	gnutls_x509_crt_set_version(crt, 3);
	must(gnutls_x509_crt_set_serial(crt, number, sizeof(number)), "serial");
	gnutls_x509_crt_set_activation_time(crt, now - (days < 0 ? 3 : 1) * DAY_S);
	gnutls_x509_crt_set_expiration_time(crt, now + days * DAY_S);
	must(gnutls_x509_crt_set_key(crt, key), "key");
	set_names(crt, role);
	set_use(crt, role);
	sign(crt, key, authority);
	must(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text), "export");
	cert->cert_fd = file_of(&text, cert->cert_file);
	gnutls_free(text.data);
	must(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), "export");
	cert->key_fd = file_of(&text, cert->key_file);
	gnutls_free(text.data);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
}

void cert_done(struct cert *cert)
{
	close(cert->cert_fd);
	close(cert->key_fd);
}
