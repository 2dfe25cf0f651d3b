/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <time.h>

#include "base/attr.h"
#include "base/err.h"
#include "kube/pem.h"
#include "kube/secret.h"
#include "unit/http_certs.h"
#include "webhook/certs.h"

#define NOW  INT64_C(1800000000)
#define DAY  INT64_C(86400)
#define HOUR INT64_C(3600)

static const struct certs_order order = {
	.names = { "gpu-scheduler-webhook.ml.svc", "gpu-scheduler-webhook.ml.svc.cluster.local",
		   "127.0.0.1", "::1" },
	.names_count = 4,
	.days = 365,
	.renew_hours = 90 * 24,
	.overlap_hours = 24,
};

static const struct certs nothing = CERTS_INIT;

static unsigned authorities(const struct certs *certs)
{
	unsigned count = 0;

	for (const char *at = certs->ca.s; (at = strstr(at, "BEGIN CERTIFICATE")); at++)
		count++;
	return count;
}

static void plan_at(const struct certs *current, int64_t now_s, struct certs_plan *ret)
{
	struct err err = ERR_INIT;

	CHECKF(certs_plan(current, &order, now_s, ret, &err) == 0, "%s", err.text);
	CHECKF(certs_check(&ret->next, &order, now_s, &err) == 0, "%s", err.text);
}

TEST(a_certificate_is_for_its_names_and_its_time)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct certs_order other = order;
	struct err err = ERR_INIT;
	int64_t from, until;

	CHECK(certs_make(&order, NOW, &certs, &err) == 0);
	CHECK(certs_check(&certs, &order, NOW, &err) == 0);
	CHECK(certs_check(&certs, &order, NOW - HOUR, &err) == 0);
	CHECK(certs_check(&certs, &order, NOW - HOUR - 1, &err) == -EINVAL);
	CHECK(certs_check(&certs, &order, NOW + 365 * DAY - 1, &err) == 0);
	CHECK(certs_check(&certs, &order, NOW + 365 * DAY, &err) == -EINVAL);
	CHECK_STR(err.text, "the certificate ends soon");
	CHECK(certs_times(certs.cert.s, &from, &until, &err) == 0);
	CHECK_INT(from, NOW - HOUR);
	CHECK_INT(until, NOW + 365 * DAY);
	other.names[0] = "webhook.other.svc";
	CHECK(certs_check(&certs, &other, NOW, &err) == -EINVAL);
	CHECK_STR(err.text, "the certificate is not for webhook.other.svc");
	CHECK(pem_check_pair(certs.cert.s, certs.cert.len, certs.key.s, certs.key.len, &err) == 0);
	CHECK(pem_check_trust(certs.ca.s, certs.ca.len, &err) == 0);
}

/* As RFC 5280 and the verifiers of Go want it. */
TEST(a_certificate_has_the_form_that_verifiers_want)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	gnutls_x509_crt_t crt[2];
	unsigned critical, usage, bits, ca;
	int path;
	char purpose[64];
	size_t size = sizeof(purpose);

	CHECK(certs_make(&order, NOW, &certs, NULL) == 0);
	for (unsigned i = 0; i < 2; i++) {
		struct strbuf *text = i ? &certs.cert : &certs.ca;
		gnutls_datum_t pem = { (unsigned char *)text->s, (unsigned)text->len };

		CHECK(gnutls_x509_crt_init(&crt[i]) == 0);
		CHECK(gnutls_x509_crt_import(crt[i], &pem, GNUTLS_X509_FMT_PEM) == 0);
		CHECK_INT(gnutls_x509_crt_get_version(crt[i]), 3);
		CHECK_INT(gnutls_x509_crt_get_pk_algorithm(crt[i], &bits), GNUTLS_PK_ECDSA);
		CHECK_INT(bits, 256);
		CHECK(gnutls_x509_crt_get_basic_constraints(crt[i], &critical, &ca, &path) >= 0);
		CHECK(critical && ca == !i);
		CHECK(gnutls_x509_crt_get_key_usage(crt[i], &usage, &critical) == 0);
		CHECK_INT(usage, i ? GNUTLS_KEY_DIGITAL_SIGNATURE : GNUTLS_KEY_KEY_CERT_SIGN);
	}
	CHECK(gnutls_x509_crt_get_key_purpose_oid(crt[1], 0, purpose, &size, &critical) == 0);
	CHECK_STR(purpose, GNUTLS_KP_TLS_WWW_SERVER);
	CHECK(!gnutls_x509_crt_equals(crt[0], crt[1]));
	gnutls_x509_crt_deinit(crt[0]);
	gnutls_x509_crt_deinit(crt[1]);
}

TEST(a_certificate_is_made_once_and_renewed_before_it_ends)
{
	struct certs_plan first CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct certs_plan same CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct certs_plan second CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;

	plan_at(&nothing, NOW, &first);
	CHECK(first.renewed && first.changed);
	CHECK_STR(first.why, "there is no certificate");
	CHECK_INT(authorities(&first.next), 1);
	plan_at(&first.next, NOW + 275 * DAY - 1, &same);
	CHECK(!same.renewed && !same.changed);
	CHECK_STR(same.next.cert.s, first.next.cert.s);
	plan_at(&first.next, NOW + 275 * DAY, &second);
	CHECK(second.renewed && second.changed);
	CHECK_STR(second.why, "the certificate ends soon");
	CHECK(strcmp(second.next.cert.s, first.next.cert.s) != 0);
	CHECK(strcmp(second.next.key.s, first.next.key.s) != 0);
}

TEST(a_certificate_of_few_days_is_renewed_before_it_ends_too)
{
	static const struct {
		uint32_t days;
		int64_t renewed_s; /* after it is made */
	} rows[] = { { 1, 16 * HOUR },
		     { 2, 32 * HOUR },
		     { 30, 20 * DAY },
		     { 365, 275 * DAY },
		     { 3650, 3560 * DAY } };

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct certs certs CLEANUP(certs_done) = CERTS_INIT;
		struct certs_order few = order;

		few.days = rows[i].days;
		few.renew_hours = certs_renew_hours(few.days);
		CHECK(certs_make(&few, NOW, &certs, NULL) == 0);
		for (int64_t late = 0; late < 2; late++) {
			struct certs_plan plan CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
			const int64_t at_s = NOW + rows[i].renewed_s + late - 1;

			CHECK(certs_plan(&certs, &few, at_s, &plan, NULL) == 0);
			CHECKF(plan.renewed == late, "row %u", i);
		}
	}
}

TEST(during_a_change_both_certificates_are_trusted)
{
	struct certs_plan first CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct certs_plan second CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct certs_plan third CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct certs_plan fourth CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	const int64_t change = NOW + 300 * DAY;

	plan_at(&nothing, NOW, &first);
	plan_at(&first.next, change, &second);
	CHECK_INT(authorities(&second.next), 2);
	/* The old certificate, by the new authorities. */
	struct certs old = { second.next.ca, first.next.cert, first.next.key };
	CHECK(certs_check(&old, &order, change, NULL) == 0);
	plan_at(&second.next, change + 24 * HOUR - 1, &third);
	CHECK(!third.changed);
	CHECK_INT(authorities(&third.next), 2);
	plan_at(&second.next, change + 24 * HOUR, &fourth);
	CHECK(fourth.changed && !fourth.renewed);
	CHECK_INT(authorities(&fourth.next), 1);
	CHECK_STR(fourth.next.cert.s, second.next.cert.s);
	old.ca = fourth.next.ca;
	CHECK(certs_check(&old, &order, change, NULL) == -EINVAL);
}

TEST(an_authority_that_has_ended_is_dropped)
{
	struct certs_plan first CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct certs_plan second CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;

	plan_at(&nothing, NOW, &first);
	plan_at(&first.next, NOW + 365 * DAY, &second);
	CHECK(second.renewed);
	CHECK_INT(authorities(&second.next), 1);
}

/* Whoever made the bundle may have put the newest last. */
TEST(the_authority_that_signed_stays_wherever_it_stands)
{
	struct certs_plan first CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct certs_plan second CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct certs_plan third CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
	struct strbuf turned CLEANUP(strbuf_done) = STRBUF_INIT;

	plan_at(&nothing, NOW, &first);
	plan_at(&first.next, NOW + 300 * DAY, &second);
	CHECK(certs_join(first.next.ca.s, second.next.ca.s, NOW, &turned, NULL) == 0);
	struct certs current = { turned, second.next.cert, second.next.key };
	plan_at(&current, NOW + 310 * DAY, &third);
	CHECK(third.changed && !third.renewed);
	CHECK_INT(authorities(&third.next), 1);
}

TEST(what_cannot_serve_is_replaced)
{
	struct certs one CLEANUP(certs_done) = CERTS_INIT, other CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf noise CLEANUP(strbuf_done) = STRBUF_INIT;

	strbuf_puts(&noise, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	CHECK(certs_make(&order, NOW, &one, NULL) == 0);
	CHECK(certs_make(&order, NOW, &other, NULL) == 0);
	const struct {
		struct certs certs;
		const char *why;
	} rows[] = {
		{ { one.ca, one.cert, other.key }, "the key is not that of the certificate" },
		{ { other.ca, one.cert, one.key },
		  "the certificate is not signed by its authority" },
		{ { noise, one.cert, one.key }, "the authority" },
		{ { one.ca, one.cert, noise }, "the key" },
		{ { nothing.ca, one.cert, one.key }, "there is no ca.crt" },
		{ { one.ca, nothing.cert, one.key }, "there is no certificate" },
	};
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct certs_plan plan CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;

		plan_at(&rows[i].certs, NOW, &plan);
		CHECKF(plan.renewed && strncmp(plan.why, rows[i].why, strlen(rows[i].why)) == 0,
		       "row %u: %s", i, plan.why);
	}
}

/* As somebody else has it, for localhost and peer.test: valid for so many days from now. */
static void make_theirs(struct certs *ret, int ca_days, int days)
{
	struct cert ca, leaf;

	cert_make(&ca, CERT_AUTHORITY, NULL, ca_days);
	cert_make(&leaf, CERT_SERVER, &ca, days);
	CHECK(secret_read(ca.cert_file, CERTS_PEM_MAX, &ret->ca, NULL) == 0);
	CHECK(secret_read(leaf.cert_file, CERTS_PEM_MAX, &ret->cert, NULL) == 0);
	CHECK(secret_read(leaf.key_file, CERTS_PEM_MAX, &ret->key, NULL) == 0);
	cert_done(&ca);
	cert_done(&leaf);
}

/* No service of the cluster is called by its last name. */
static const struct certs_order their_order = {
	.names = { "localhost", "peer.test", "localhost.cluster.local" },
	.names_count = 3,
	.names_spare = 1,
	.days = 365,
	.renew_hours = 90 * 24,
};

TEST(what_somebody_else_made_is_left_as_it_is)
{
	struct certs good CLEANUP(certs_done) = CERTS_INIT, soon CLEANUP(certs_done) = CERTS_INIT;
	const int64_t now_s = time(NULL);

	make_theirs(&good, 300, 300);
	make_theirs(&soon, 300, 30);
	/* Also an authority that has the same name and signed nothing of it. */
	strbuf_add(&good.ca, soon.ca.s, soon.ca.len);
	for (unsigned i = 0; i < 2; i++) {
		struct certs_plan plan CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
		const struct certs *certs = i ? &soon : &good;
		struct err err = ERR_INIT;

		CHECKF(certs_plan(certs, &their_order, now_s, &plan, &err) == 0, "%s", err.text);
		CHECK(plan.theirs && !plan.renewed && !plan.changed);
		CHECK_STR(plan.why, i ? "the certificate ends soon" : "");
		CHECK_STR(plan.next.ca.s, certs->ca.s);
		CHECK_STR(plan.next.cert.s, certs->cert.s);
		CHECK_STR(plan.next.key.s, certs->key.s);
	}
}

/* The API server refuses a certificate whose authority has ended. */
TEST(an_authority_has_to_be_valid_as_long_as_its_certificate)
{
	static const struct {
		int ca_days, days;
		const char *why;
	} rows[] = {
		{ 100, 300, "" },
		{ 80, 300, "the authority of the certificate ends soon" },
		{ 80, 80, "the certificate ends soon" },
	};
	const int64_t now_s = time(NULL);

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct certs certs CLEANUP(certs_done) = CERTS_INIT;
		struct certs_plan plan CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
		struct err err = ERR_INIT;

		make_theirs(&certs, rows[i].ca_days, rows[i].days);
		CHECK(certs_plan(&certs, &their_order, now_s, &plan, &err) == 0);
		CHECKF(strcmp(plan.why, rows[i].why) == 0, "row %u: %s", i, plan.why);
		/* The same again, in the end of a chain. */
		strbuf_add(&certs.cert, certs.ca.s, certs.ca.len);
		CHECK(certs_check(&certs, &their_order, now_s, &err) == 0);
		CHECK(certs_check(&certs, &their_order, now_s + 90 * DAY, &err) ==
		      (*rows[i].why ? -EINVAL : 0));
	}
}

/* Left there by a change of it. */
TEST(an_old_authority_at_the_end_of_a_chain_is_no_harm)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct certs other CLEANUP(certs_done) = CERTS_INIT;
	struct err err = ERR_INIT;

	make_theirs(&certs, 300, 300);
	make_theirs(&other, -1, 300);
	strbuf_add(&certs.cert, other.ca.s, other.ca.len);
	CHECKF(certs_check(&certs, &their_order, time(NULL), &err) == 0, "%s", err.text);
}

TEST(what_somebody_else_made_is_not_replaced)
{
	struct certs good CLEANUP(certs_done) = CERTS_INIT, ended CLEANUP(certs_done) = CERTS_INIT;
	struct certs orphan CLEANUP(certs_done) = CERTS_INIT;
	struct strbuf noise CLEANUP(strbuf_done) = STRBUF_INIT;
	struct certs_order other = their_order;

	strbuf_puts(&noise, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	make_theirs(&good, 300, 300);
	make_theirs(&ended, 300, -1);
	make_theirs(&orphan, -1, 300);
	other.names_spare = 0;
	const struct {
		struct certs certs;
		const struct certs_order *order;
		const char *why;
	} rows[] = {
		{ { nothing.ca, good.cert, good.key }, &their_order, "there is no ca.crt" },
		{ { good.ca, good.cert, nothing.key }, &their_order, "there is no certificate" },
		{ { good.ca, good.cert, ended.key }, &their_order, "the key is not that of the" },
		{ { ended.ca, good.cert, good.key },
		  &their_order,
		  "the certificate is not signed" },
		{ ended, &their_order, "the certificate ends soon" },
		{ orphan, &their_order, "the authority of the certificate ends soon" },
		{ good, &other, "the certificate is not for localhost.cluster.local" },
		{ { good.ca, noise, good.key }, &their_order, "the certificate: " },
	};
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct certs_plan plan CLEANUP(certs_plan_done) = CERTS_PLAN_INIT;
		struct err err = ERR_INIT;

		CHECK(certs_plan(&rows[i].certs, rows[i].order, time(NULL), &plan, &err) ==
		      -EEXIST);
		CHECKF(strstr(err.text, rows[i].why) && !plan.next.cert.len, "row %u: %s", i,
		       err.text);
	}
}

TEST(an_order_that_makes_no_sense_is_refused)
{
	struct certs certs CLEANUP(certs_done) = CERTS_INIT;
	struct certs_order bad = order;

	bad.renew_hours = 365 * 24;
	CHECK(certs_make(&bad, NOW, &certs, NULL) == -EINVAL);
	bad.renew_hours = 0;
	CHECK(certs_make(&bad, NOW, &certs, NULL) == -EINVAL);
	bad = order;
	bad.days = 0;
	CHECK(certs_make(&bad, NOW, &certs, NULL) == -EINVAL);
	bad.days = 4000;
	CHECK(certs_make(&bad, NOW, &certs, NULL) == -EINVAL);
	bad = order;
	bad.names_count = 0;
	CHECK(certs_make(&bad, NOW, &certs, NULL) == -EINVAL);
	bad = order;
	bad.names[1] = "no name";
	CHECK(certs_make(&bad, NOW, &certs, NULL) == -EINVAL);
	CHECK(certs.ca.len == 0 && certs.key.len == 0);
}

TEST_MAIN()
