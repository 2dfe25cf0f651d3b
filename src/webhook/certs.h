/* SPDX-License-Identifier: Apache-2.0 */
/* certs.h - the certificate of the webhook, and the authority that the API server trusts.
 *
 * Each certificate has an authority of its own, whose key is thrown away as soon as it has
 * signed: nobody can sign with it later.  So a renewal changes both, and for a while the API
 * server is told to trust the old authority beside the new one, until everybody has the new
 * certificate.  ECDSA on P-256.  All is PEM.  No I/O, and the time is an argument.
 */
#ifndef GS_WEBHOOK_CERTS_H
#define GS_WEBHOOK_CERTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct err;

#define CERTS_PEM_MAX	((size_t)256 << 10)
#define CERTS_NAMES_MAX 16

/* Authorities, the newest first; the certificate; its key. */
struct certs {
	struct strbuf ca, cert, key;
};

#define CERTS_INIT                                                                            \
	{                                                                                     \
		.ca = STRBUF_INIT_MAX(CERTS_PEM_MAX), .cert = STRBUF_INIT_MAX(CERTS_PEM_MAX), \
		.key = STRBUF_INIT_MAX(CERTS_PEM_MAX),                                        \
	}

void certs_done(struct certs *certs);

/* Who it is for and for how long. */
struct certs_order {
	const char *names[CERTS_NAMES_MAX]; /* of the DNS, or IP addresses */
	size_t names_count;
	size_t names_spare;	/* the last so many: one that is there is good without them */
	uint32_t days;		/* that it is valid */
	uint32_t renew_hours;	/* before its end a new one is made; at least 1 */
	uint32_t overlap_hours; /* after that the old authority is trusted, too */
};

#define CERTS_DAYS	    365
#define CERTS_OVERLAP_HOURS 24

/* How long before its end a certificate of so many days is renewed, unless told otherwise: 90
 * days, or a third of its time. */
uint32_t certs_renew_hours(uint32_t days);

/* 0, or -EINVAL if the numbers do not go together or a name is none. */
int certs_order_check(const struct certs_order *order, struct err *err);

/* A new authority and certificate, valid from an hour before `now_s`, as clocks differ. */
int certs_make(const struct certs_order *order, int64_t now_s, struct certs *ret, struct err *err);

/* Whether the certificate can serve what is ordered at that moment: it has its key and the
 * names, one of its authorities has signed it, and both are valid.  0, -EINVAL and why not,
 * -ENOMEM. */
int certs_check(const struct certs *certs, const struct certs_order *order, int64_t at_s,
		struct err *why);

/* The authorities of `first`, then those of `more` that are others and valid at that moment.
 * -EINVAL if one of them cannot be read. */
int certs_join(const char *first, const char *more, int64_t at_s, struct strbuf *ret,
	       struct err *err);

/* When the certificate, or the first of authorities, begins and ends. */
int certs_times(const char *pem, int64_t *from_s, int64_t *until_s, struct err *err);

struct certs_plan {
	struct certs next; /* what should be there */
	bool renewed;	   /* the certificate is a new one */
	bool changed;	   /* anything is other than it was */
	bool theirs;	   /* somebody else made it; so nothing is changed */
	char why[256];	   /* of a renewal, or why they should renew it; empty: all is well */
};

#define CERTS_PLAN_INIT            \
	{                          \
		.next = CERTS_INIT \
	}

void certs_plan_done(struct certs_plan *plan);

/* What should be there, given what is (all empty: nothing): the same; a new certificate and the
 * old authorities; or, once the overlap is over, the newest authority alone.  `ret` is
 * CERTS_PLAN_INIT.
 *
 * A certificate is ours if its issuer is named as certs_make() and hack/gen-webhook-certs.sh
 * name theirs.  Any other is the same for ever: it is not ours to renew, nor its key to throw
 * away.  -EEXIST and why, if such a one cannot serve. */
int certs_plan(const struct certs *current, const struct certs_order *order, int64_t now_s,
	       struct certs_plan *ret, struct err *err);

#endif
