/* SPDX-License-Identifier: Apache-2.0 */
/* certs_plan.c - certificates that are there: are they good, and for how long? */
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/err.h"
#include "webhook/certs.h"
#include "webhook/certs_private.h"

#define HOUR_S 3600

/* Certificates of one PEM text. */
struct list {
	gnutls_x509_crt_t *items;
	unsigned count;
};

static void list_done(struct list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		gnutls_x509_crt_deinit(list->items[i]);
	gnutls_free(list->items);
}

static int list_read(struct list *ret, const char *pem, const char *what, struct err *err)
{
	gnutls_datum_t text = { (unsigned char *)(uintptr_t)pem, (unsigned)strlen(pem) };
	int rc = gnutls_x509_crt_list_import2(&ret->items, &ret->count, &text, GNUTLS_X509_FMT_PEM,
					      0);

	return rc < 0 ? certs_tls_error(err, what, rc) : 0;
}

static int check_key(const struct certs *certs, gnutls_x509_crt_t cert, struct err *why)
{
	gnutls_datum_t text = { (unsigned char *)certs->key.s, (unsigned)certs->key.len };
	gnutls_x509_privkey_t key CLEANUP(certs_free_key) = NULL;
	unsigned char ours[64], theirs[64];
	size_t our_size = sizeof(ours), their_size = sizeof(theirs);
	int rc = gnutls_x509_privkey_init(&key);

	if (rc >= 0)
		rc = gnutls_x509_privkey_import(key, &text, GNUTLS_X509_FMT_PEM);
	if (rc >= 0)
		rc = gnutls_x509_privkey_get_key_id(key, 0, ours, &our_size);
	if (rc >= 0)
		rc = gnutls_x509_crt_get_key_id(cert, 0, theirs, &their_size);
	if (rc < 0)
		return certs_tls_error(why, "the key", rc);
	if (our_size != their_size || memcmp(ours, theirs, our_size) != 0)
		return err_set(why, EINVAL, "the key is not that of the certificate");
	return 0;
}

static int check_names(gnutls_x509_crt_t cert, const struct certs_order *order, struct err *why)
{
	for (size_t i = 0; i < order->names_count - order->names_spare; i++)
		if (!gnutls_x509_crt_check_hostname(cert, order->names[i]))
			return err_set(why, EINVAL, "the certificate is not for %s",
				       order->names[i]);
	return 0;
}

static int check_times(gnutls_x509_crt_t cert, int64_t at_s, struct err *why)
{
	if (gnutls_x509_crt_get_activation_time(cert) > at_s)
		return err_set(why, EINVAL, "the certificate is not valid yet");
	if (gnutls_x509_crt_get_expiration_time(cert) <= at_s)
		return err_set(why, EINVAL, "the certificate ends soon");
	return 0;
}

/* One at a time: of several with the same name GnuTLS tries but one.  The times are looked at
 * apart, against a moment of ours and not against the clock. */
static bool has_signed(gnutls_x509_crt_t ca, const struct list *chain)
{
	unsigned verdict = 0;
	int rc = gnutls_x509_crt_list_verify(chain->items, (int)chain->count, &ca, 1, NULL, 0,
					     GNUTLS_VERIFY_DISABLE_TIME_CHECKS |
						     GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS,
					     &verdict);

	return rc >= 0 && verdict == 0;
}

/* The certificate and what follows it, up to what is not valid at that moment: that may be one
 * too many, such as an old authority. */
static struct list valid_part(const struct list *chain, int64_t at_s)
{
	struct list part = { chain->items, 1 };

	while (part.count < chain->count && check_times(chain->items[part.count], at_s, NULL) == 0)
		part.count++;
	return part;
}

static int check_authority(const struct list *cas, const struct list *chain, int64_t at_s,
			   struct err *why)
{
	const struct list part = valid_part(chain, at_s);
	bool once = false;

	for (unsigned i = 0; i < cas->count; i++) {
		if (check_times(cas->items[i], at_s, NULL) == 0 &&
		    has_signed(cas->items[i], &part))
			return 0;
		once = once || has_signed(cas->items[i], chain);
	}
	return err_set(why, EINVAL,
		       once ? "the authority of the certificate ends soon"
			    : "the certificate is not signed by its authority");
}

int certs_check(const struct certs *certs, const struct certs_order *order, int64_t at_s,
		struct err *why)
{
	struct list cas CLEANUP(list_done) = { 0 }, chain CLEANUP(list_done) = { 0 };
	int rc;

	if (!certs->cert.len || !certs->key.len)
		return err_set(why, EINVAL, "there is no certificate");
	if (!certs->ca.len)
		return err_set(why, EINVAL, "there is no ca.crt, the authority that signed it");
	if ((rc = list_read(&cas, certs->ca.s, "the authority", why)) < 0 ||
	    (rc = list_read(&chain, certs->cert.s, "the certificate", why)) < 0 ||
	    (rc = check_key(certs, chain.items[0], why)) < 0 ||
	    (rc = check_names(chain.items[0], order, why)) < 0 ||
	    (rc = check_times(chain.items[0], at_s, why)) < 0)
		return rc;
	return check_authority(&cas, &chain, at_s, why);
}

static bool is_in(gnutls_x509_crt_t cert, const struct list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		if (gnutls_x509_crt_equals(cert, list->items[i]))
			return true;
	return false;
}

int certs_join(const char *first, const char *more, int64_t at_s, struct strbuf *ret,
	       struct err *err)
{
	struct list new CLEANUP(list_done) = { 0 }, old CLEANUP(list_done) = { 0 };
	int rc = list_read(&new, first, "the authority", err);

	for (unsigned i = 0; i < new.count &&rc == 0; i++)
		rc = certs_put_cert(ret, new.items[i], err);
	if (rc < 0 || !*more || (rc = list_read(&old, more, "the old authority", err)) < 0)
		return rc;
	for (unsigned i = 0; i < old.count && rc == 0; i++)
		if (!is_in(old.items[i], &new) &&
		    gnutls_x509_crt_get_expiration_time(old.items[i]) > at_s)
			rc = certs_put_cert(ret, old.items[i], err);
	return rc;
}

int certs_times(const char *pem, int64_t *from_s, int64_t *until_s, struct err *err)
{
	struct list list CLEANUP(list_done) = { 0 };
	int rc = list_read(&list, pem, "the certificate", err);

	if (rc < 0)
		return rc;
	*from_s = gnutls_x509_crt_get_activation_time(list.items[0]);
	*until_s = gnutls_x509_crt_get_expiration_time(list.items[0]);
	return 0;
}

void certs_plan_done(struct certs_plan *plan)
{
	certs_done(&plan->next);
}

static int copy_pair(struct certs *ret, const struct certs *from, struct err *err)
{
	strbuf_add(&ret->cert, from->cert.s, from->cert.len);
	strbuf_add(&ret->key, from->key.s, from->key.len);
	if (ret->cert.failed || ret->key.failed)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int renew(const struct certs *current, const struct certs_order *order, int64_t now_s,
		 struct certs_plan *ret, struct err *err)
{
	struct certs made CLEANUP(certs_done) = CERTS_INIT;
	int rc = certs_make(order, now_s, &made, err);

	if (rc < 0)
		return rc;
	rc = certs_join(made.ca.s, current->ca.len ? current->ca.s : "", now_s, &ret->next.ca,
			err);
	/* What cannot be read cannot be known to have signed anything. */
	if (rc == -EINVAL) {
		strbuf_reset(&ret->next.ca);
		rc = certs_join(made.ca.s, "", now_s, &ret->next.ca, err);
	}
	if (rc < 0)
		return rc;
	ret->renewed = ret->changed = true;
	return copy_pair(&ret->next, &made, err);
}

/* Which of its authorities has signed the certificate; they are known to have. */
static gnutls_x509_crt_t signer_of(const struct list *cas, const struct certs *current)
{
	struct list chain CLEANUP(list_done) = { 0 };

	if (list_read(&chain, current->cert.s, "the certificate", NULL) < 0)
		return cas->items[0];
	for (unsigned i = 0; i < cas->count; i++)
		if (has_signed(cas->items[i], &chain))
			return cas->items[i];
	return cas->items[0];
}

/* Authorities other than the one that signed go when the overlap is over. */
static int keep(const struct certs *current, const struct certs_order *order, int64_t now_s,
		struct certs_plan *ret, struct err *err)
{
	struct list cas CLEANUP(list_done) = { 0 };
	int rc = list_read(&cas, current->ca.s, "the authority", err);

	if (rc < 0)
		return rc;
	gnutls_x509_crt_t signer = signer_of(&cas, current);
	int64_t begun_s = gnutls_x509_crt_get_activation_time(signer) + HOUR_S;
	ret->changed = cas.count > 1 && now_s >= begun_s + (int64_t)order->overlap_hours * HOUR_S;
	if (ret->changed)
		rc = certs_put_cert(&ret->next.ca, signer, err);
	else
		strbuf_add(&ret->next.ca, current->ca.s, current->ca.len);
	if (ret->next.ca.failed)
		return err_set(err, ENOMEM, "out of memory");
	return rc < 0 ? rc : copy_pair(&ret->next, current, err);
}

/* What cannot be read is not ours either: we write no such thing. */
static bool is_ours(const struct certs *current)
{
	struct list chain CLEANUP(list_done) = { 0 };
	char issuer[256] = "";
	size_t size = sizeof(issuer);

	return list_read(&chain, current->cert.s, "the certificate", NULL) == 0 &&
	       gnutls_x509_crt_get_issuer_dn_by_oid(chain.items[0], GNUTLS_OID_X520_COMMON_NAME, 0,
						    0, issuer, &size) == 0 &&
	       strncmp(issuer, CERTS_CA_NAME, strlen(CERTS_CA_NAME)) == 0;
}

static int leave(const struct certs *current, const struct certs_order *order, int64_t now_s,
		 struct certs_plan *ret, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = certs_check(current, order, now_s, &why);

	ret->theirs = true;
	if (rc == -EINVAL)
		return err_set(
			err, EEXIST,
			"somebody else made the certificate, and it cannot serve: %s; put a "
			"good one there, or delete it, and one is made",
			why.text);
	strbuf_add(&ret->next.ca, current->ca.s, current->ca.len);
	if (rc < 0 || ret->next.ca.failed)
		return err_set(err, ENOMEM, "out of memory");
	return copy_pair(&ret->next, current, err);
}

int certs_plan(const struct certs *current, const struct certs_order *order, int64_t now_s,
	       struct certs_plan *ret, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = certs_order_check(order, err);

	if (rc < 0)
		return rc;
	rc = certs_check(current, order, now_s + (int64_t)order->renew_hours * HOUR_S, &why);
	if (rc == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	snprintf(ret->why, sizeof(ret->why), "%.255s", why.text);
	if (current->cert.len && !is_ours(current))
		return leave(current, order, now_s, ret, err);
	return rc < 0 ? renew(current, order, now_s, ret, err)
		      : keep(current, order, now_s, ret, err);
}
