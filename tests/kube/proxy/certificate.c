/* SPDX-License-Identifier: Apache-2.0 */
#include "certificate.h"

#include "base/err.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <string.h>
#include <time.h>

#define LIFE_S	  (7 * 24 * 3600)
#define SKEW_S	  3600
#define CA_USAGE  (GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN)
#define KEY_CURVE GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1)

/* A certificate and its key, half made. */
struct pair {
	gnutls_x509_crt_t crt;
	gnutls_x509_privkey_t key;
};

static void pair_done(struct pair *pair)
{
	if (pair->crt)
		gnutls_x509_crt_deinit(pair->crt);
	if (pair->key)
		gnutls_x509_privkey_deinit(pair->key);
}

static int set_serial(gnutls_x509_crt_t crt)
{
	unsigned char serial[16];
	int result = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
	serial[0] &= 0x7f; /* positive */
	serial[0] |= 0x40;
	return result < 0 ? result : gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
}

static int make_pair(struct pair *pair, const char *name)
{
	time_t now = time(NULL);
	int result = gnutls_x509_privkey_init(&pair->key);
	if (result == 0)
		result = gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA, KEY_CURVE, 0);
	if (result == 0)
		result = gnutls_x509_crt_init(&pair->crt);
	if (result == 0)
		result = gnutls_x509_crt_set_version(pair->crt, 3);
	if (result == 0)
		result = set_serial(pair->crt);
	if (result == 0)
		result = gnutls_x509_crt_set_key(pair->crt, pair->key);
	if (result == 0)
		result = gnutls_x509_crt_set_activation_time(pair->crt, now - SKEW_S);
	if (result == 0)
		result = gnutls_x509_crt_set_expiration_time(pair->crt, now + LIFE_S);
	if (result == 0)
		result = gnutls_x509_crt_set_dn_by_oid(pair->crt, GNUTLS_OID_X520_COMMON_NAME, 0,
						       name, (unsigned)strlen(name));
	return result;
}

static int make_authority(struct pair *ca)
{
	unsigned char id[20];
	size_t id_len = sizeof(id);
	int result = make_pair(ca, "fault-proxy authority");
	if (result == 0)
		result = gnutls_x509_crt_set_basic_constraints(ca->crt, 1, 0);
	if (result == 0)
		result = gnutls_x509_crt_set_key_usage(ca->crt, CA_USAGE);
	if (result == 0)
		result = gnutls_x509_crt_get_key_id(ca->crt, GNUTLS_KEYID_USE_SHA1, id, &id_len);
	if (result == 0)
		result = gnutls_x509_crt_set_subject_key_id(ca->crt, id, id_len);
	if (result == 0)
		result = gnutls_x509_crt_sign2(ca->crt, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0);
	return result;
}

static int add_names(gnutls_x509_crt_t crt, const char *host)
{
	struct in_addr address;
	if (inet_pton(AF_INET, host, &address) != 1)
		return GNUTLS_E_INVALID_REQUEST;
	int result = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, "localhost", 9,
							  GNUTLS_FSAN_SET);
	if (result == 0)
		result = gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, &address,
							      sizeof(address), GNUTLS_FSAN_APPEND);
	return result;
}

static int make_server(struct pair *server, const struct pair *ca, const char *host)
{
	unsigned char id[20];
	size_t id_len = sizeof(id);
	int result = make_pair(server, "fault-proxy");
	if (result == 0)
		result = gnutls_x509_crt_set_basic_constraints(server->crt, 0, -1);
	if (result == 0)
		result = gnutls_x509_crt_set_key_usage(server->crt, GNUTLS_KEY_DIGITAL_SIGNATURE);
	if (result == 0)
		result = gnutls_x509_crt_set_key_purpose_oid(server->crt, GNUTLS_KP_TLS_WWW_SERVER,
							     0);
	if (result == 0)
		result = gnutls_x509_crt_get_key_id(ca->crt, GNUTLS_KEYID_USE_SHA1, id, &id_len);
	if (result == 0)
		result = gnutls_x509_crt_set_authority_key_id(server->crt, id, id_len);
	if (result == 0)
		result = add_names(server->crt, host);
	if (result == 0)
		result =
			gnutls_x509_crt_sign2(server->crt, ca->crt, ca->key, GNUTLS_DIG_SHA256, 0);
	return result;
}

static int export_authority(const struct pair *ca, struct strbuf *out)
{
	gnutls_datum_t pem;
	int result = gnutls_x509_crt_export2(ca->crt, GNUTLS_X509_FMT_PEM, &pem);
	if (result < 0)
		return result;
	strbuf_add(out, (const char *)pem.data, pem.size);
	gnutls_free(pem.data);
	return out->failed ? GNUTLS_E_MEMORY_ERROR : 0;
}

int certificate_make(const char *host, struct certificate *ret, struct err *err)
{
	struct pair ca CLEANUP(pair_done) = { 0 };
	struct pair server CLEANUP(pair_done) = { 0 };
	struct certificate made = { .authority = STRBUF_INIT };
	int result = make_authority(&ca);
	if (result == 0)
		result = make_server(&server, &ca, host);
	if (result == 0)
		result = export_authority(&ca, &made.authority);
	if (result == 0)
		result = gnutls_certificate_allocate_credentials(&made.credentials);
	if (result == 0)
		result = gnutls_certificate_set_x509_key(made.credentials, &server.crt, 1,
							 server.key);
	if (result < 0) {
		certificate_done(&made);
		return err_set(err, EIO, "a certificate for %s: %s", host,
			       gnutls_strerror(result));
	}
	*ret = made;
	return 0;
}

void certificate_done(struct certificate *certificate)
{
	if (certificate->credentials)
		gnutls_certificate_free_credentials(certificate->credentials);
	certificate->credentials = NULL;
	strbuf_done(&certificate->authority);
}

int certificate_random_text(char *ret, size_t n, struct err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	if (gnutls_rnd(GNUTLS_RND_KEY, ret, n - 1) < 0)
		return err_set(err, EIO, "no random numbers");
	for (size_t i = 0; i + 1 < n; i++)
		ret[i] = letters[(unsigned char)ret[i] % (sizeof(letters) - 1)];
	ret[n - 1] = '\0';
	return 0;
}
