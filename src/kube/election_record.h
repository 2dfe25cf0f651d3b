/* SPDX-License-Identifier: Apache-2.0 */
/* election_record.h - what a Lease says about who leads, and how to change it.
 *
 * The whole Lease is remembered, but for its managedFields: a PUT replaces everything, so
 * labels, annotations and fields of other programs are written back as they were read.
 */
#ifndef GS_KUBE_ELECTION_RECORD_H
#define GS_KUBE_ELECTION_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

struct err;
struct json;

struct election_record {
	struct strbuf lease;  /* the document; "" if there is none */
	struct strbuf spec;   /* of it: what counts as a change */
	struct strbuf holder; /* "" if nobody */
	int64_t duration_s;   /* 0: it does not say */
	int64_t transitions;
};

#define ELECTION_LEASE_MAX ((size_t)1 << 20)

void election_record_init(struct election_record *record);
void election_record_done(struct election_record *record);

/* Reads a Lease.  *changed tells whether it is another record than before: another object
 * or another spec.  0, -EINVAL if it is no Lease, -ENOMEM (the record is then empty). */
int election_record_read(struct election_record *record, const struct json *lease, bool *changed,
			 struct err *err);

struct election_claim {
	const char *namespace, *name; /* of the Lease */
	const char *holder;	      /* "": nobody */
	int64_t duration_s;
	int64_t wall_ns; /* now */
	bool acquires;	 /* another held it: the time is noted and the change counted */
};

/* Appends the Lease of the record with the claim in it, with the uid and resourceVersion
 * that were read; or a new one if the record is empty. */
int election_record_write(const struct election_record *record, const struct election_claim *claim,
			  struct strbuf *out);

#endif
