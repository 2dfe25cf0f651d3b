/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/certs.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "kube/check.h"
#include "webhook/certs_private.h"

#define HOUR_S	     3600
#define DAY_S	     86400
#define SERIAL_BYTES 16
#define KEY_ID_MAX   64
#define DAYS_MAX     3650
#define DAY_HOURS    24U
#define RENEW_DAYS   90U

void certs_done(struct certs *certs)
{
	strbuf_done(&certs->ca);
	strbuf_done(&certs->cert);
	/* The key must not stay behind in memory that others get. */
	if (certs->key.cap)
		gnutls_memset(certs->key.s, 0, certs->key.len);
	strbuf_done(&certs->key);
}

void certs_free_cert(gnutls_x509_crt_t *cert)
{
	if (*cert)
		gnutls_x509_crt_deinit(*cert);
}

void certs_free_key(gnutls_x509_privkey_t *key)
{
	if (*key)
		gnutls_x509_privkey_deinit(*key);
}

int certs_tls_error(struct err *err, const char *what, int code)
{
	int number = code == GNUTLS_E_MEMORY_ERROR ? ENOMEM : EINVAL;

	return err_set(err, number, "%s: %s", what, gnutls_strerror(code));
}

/* The bytes of an IP address, 4 or 16; 0 if it is none. */
unsigned certs_address(const char *name, unsigned char bytes[16])
{
	if (inet_pton(AF_INET, name, bytes) == 1)
		return 4;
	return inet_pton(AF_INET6, name, bytes) == 1 ? 16 : 0;
}

uint32_t certs_renew_hours(uint32_t days)
{
	return MIN(RENEW_DAYS * DAY_HOURS, days * DAY_HOURS / 3);
}

int certs_order_check(const struct certs_order *order, struct err *err)
{
	unsigned char bytes[16];
	int rc = 0;

	if (order->names_count == 0 || order->names_count > CERTS_NAMES_MAX)
		return err_set(err, EINVAL, "a certificate is for 1 to %d names", CERTS_NAMES_MAX);
	if (order->days == 0 || order->days > DAYS_MAX)
		return err_set(err, EINVAL, "a certificate is valid for 1 to %d days", DAYS_MAX);
	if (order->renew_hours == 0)
		return err_set(err, EINVAL, "a certificate has to be renewed before its end");
	if (order->renew_hours >= order->days * DAY_HOURS)
		return err_set(err, EINVAL,
			       "a certificate of %u days that is renewed %u days before its end "
			       "would be renewed at once",
			       order->days, order->renew_hours / DAY_HOURS);
	for (size_t i = 0; i < order->names_count && rc == 0; i++)
		if (!certs_address(order->names[i], bytes))
			rc = kube_check_subdomain("the name", order->names[i], err);
	return rc;
}

static int make_key(gnutls_x509_privkey_t *ret, struct err *err)
{
	int rc = gnutls_x509_privkey_init(ret);

	if (rc >= 0)
		rc = gnutls_x509_privkey_generate(*ret, GNUTLS_PK_ECDSA,
						  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
						  0);
	return rc < 0 ? certs_tls_error(err, "a key cannot be made", rc) : 0;
}

static int set_serial(gnutls_x509_crt_t cert)
{
	unsigned char serial[SERIAL_BYTES];
	int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));

	serial[0] = (serial[0] & 0x7f) | 0x01; /* positive, and never shortened */
	return rc < 0 ? rc : gnutls_x509_crt_set_serial(cert, serial, sizeof(serial));
}

static int set_key_id(gnutls_x509_crt_t cert, gnutls_x509_crt_t issuer)
{
	unsigned char id[KEY_ID_MAX];
	size_t size = sizeof(id);
	int rc = gnutls_x509_crt_get_key_id(cert, 0, id, &size);

	if (rc >= 0)
		rc = gnutls_x509_crt_set_subject_key_id(cert, id, size);
	size = sizeof(id);
	if (rc >= 0)
		rc = gnutls_x509_crt_get_key_id(issuer, 0, id, &size);
	return rc < 0 ? rc : gnutls_x509_crt_set_authority_key_id(cert, id, size);
}

/* What all certificates have: version, number, key, times, name. */
static int begin(gnutls_x509_crt_t *ret, gnutls_x509_privkey_t key, const char *name,
		 int64_t from_s, int64_t until_s)
{
	int rc = gnutls_x509_crt_init(ret);

	if (rc < 0 || (rc = gnutls_x509_crt_set_version(*ret, 3)) < 0 ||
	    (rc = set_serial(*ret)) < 0 || (rc = gnutls_x509_crt_set_key(*ret, key)) < 0 ||
	    (rc = gnutls_x509_crt_set_activation_time(*ret, from_s)) < 0 ||
	    (rc = gnutls_x509_crt_set_expiration_time(*ret, until_s)) < 0)
		return rc;
	return gnutls_x509_crt_set_dn_by_oid(*ret, GNUTLS_OID_X520_COMMON_NAME, 0, name,
					     (unsigned)strlen(name));
}

static int make_authority(gnutls_x509_crt_t *ret, gnutls_x509_privkey_t key, int64_t from_s,
			  int64_t until_s, struct err *err)
{
	char name[64];
	int rc;

	/* Told apart by people who look at a bundle. */
	snprintf(name, sizeof(name), CERTS_CA_NAME "%" PRId64, from_s + HOUR_S);
	if ((rc = begin(ret, key, name, from_s, until_s)) < 0 ||
	    (rc = gnutls_x509_crt_set_basic_constraints(*ret, 1, 0)) < 0 ||
	    (rc = gnutls_x509_crt_set_key_usage(*ret, GNUTLS_KEY_KEY_CERT_SIGN)) < 0 ||
	    (rc = set_key_id(*ret, *ret)) < 0 ||
	    (rc = gnutls_x509_crt_sign2(*ret, *ret, key, GNUTLS_DIG_SHA256, 0)) < 0)
		return certs_tls_error(err, "an authority cannot be made", rc);
	return 0;
}

static int set_names(gnutls_x509_crt_t cert, const struct certs_order *order)
{
	int rc = 0;

	for (size_t i = 0; i < order->names_count && rc >= 0; i++) {
		const char *name = order->names[i];
		unsigned flags = i ? GNUTLS_FSAN_APPEND : GNUTLS_FSAN_SET;
		unsigned char bytes[16];
		unsigned size = certs_address(name, bytes);

		rc = size ? gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, bytes,
								 size, flags)
			  : gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, name,
								 (unsigned)strlen(name), flags);
	}
	return rc;
}

struct authority {
	gnutls_x509_crt_t cert;
	gnutls_x509_privkey_t key;
};

static int make_leaf(gnutls_x509_crt_t *ret, gnutls_x509_privkey_t key,
		     const struct certs_order *order, const struct authority *by, int64_t from_s,
		     int64_t until_s, struct err *err)
{
	char name[65];
	int rc;

	snprintf(name, sizeof(name), "%.64s", order->names[0]); /* as X.509 bounds it */
	if ((rc = begin(ret, key, name, from_s, until_s)) < 0 ||
	    (rc = gnutls_x509_crt_set_basic_constraints(*ret, 0, -1)) < 0 ||
	    (rc = gnutls_x509_crt_set_key_usage(*ret, GNUTLS_KEY_DIGITAL_SIGNATURE)) < 0 ||
	    (rc = gnutls_x509_crt_set_key_purpose_oid(*ret, GNUTLS_KP_TLS_WWW_SERVER, 0)) < 0 ||
	    (rc = set_names(*ret, order)) < 0 || (rc = set_key_id(*ret, by->cert)) < 0 ||
	    (rc = gnutls_x509_crt_sign2(*ret, by->cert, by->key, GNUTLS_DIG_SHA256, 0)) < 0)
		return certs_tls_error(err, "a certificate cannot be made", rc);
	return 0;
}

int certs_put_cert(struct strbuf *out, gnutls_x509_crt_t cert, struct err *err)
{
	gnutls_datum_t text = { NULL, 0 };
	int rc = gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &text);

	if (rc < 0)
		return certs_tls_error(err, "a certificate cannot be written", rc);
	strbuf_add(out, (const char *)text.data, text.size);
	gnutls_free(text.data);
	return out->failed ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* As PKCS 8, which everybody reads. */
static int put_key(struct strbuf *out, gnutls_x509_privkey_t key, struct err *err)
{
	gnutls_datum_t text = { NULL, 0 };
	int rc = gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL,
						   GNUTLS_PKCS_PLAIN, &text);

	if (rc < 0)
		return certs_tls_error(err, "a key cannot be written", rc);
	strbuf_add(out, (const char *)text.data, text.size);
	gnutls_memset(text.data, 0, text.size);
	gnutls_free(text.data);
	return out->failed ? err_set(err, ENOMEM, "out of memory") : 0;
}

int certs_make(const struct certs_order *order, int64_t now_s, struct certs *ret, struct err *err)
{
	int64_t from_s = now_s - HOUR_S, until_s = now_s + (int64_t)order->days * DAY_S;
	gnutls_x509_crt_t ca CLEANUP(certs_free_cert) = NULL;
	gnutls_x509_crt_t cert CLEANUP(certs_free_cert) = NULL;
	gnutls_x509_privkey_t ca_key CLEANUP(certs_free_key) = NULL;
	gnutls_x509_privkey_t key CLEANUP(certs_free_key) = NULL;
	int rc;

	if ((rc = certs_order_check(order, err)) < 0 || (rc = make_key(&ca_key, err)) < 0 ||
	    (rc = make_key(&key, err)) < 0 ||
	    (rc = make_authority(&ca, ca_key, from_s, until_s, err)) < 0)
		return rc;
	const struct authority by = { ca, ca_key };
	if ((rc = make_leaf(&cert, key, order, &by, from_s, until_s, err)) < 0 ||
	    (rc = certs_put_cert(&ret->ca, ca, err)) < 0 ||
	    (rc = certs_put_cert(&ret->cert, cert, err)) < 0)
		return rc;
	return put_key(&ret->key, key, err);
}
